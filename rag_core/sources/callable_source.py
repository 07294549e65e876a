"""Any Python function as a source: `module:function`, called with (query text, depth), answers a list of mappings.

A function is code of the person's own choosing. It is named on the command line or in a configuration that only they
write, never in a link, an upload or a page's text box; so no stage of a pipeline names one. Its answers are checked
like a recorded list, whatever it is. Documented with an example in docs/sources.md.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag_core.errors import InputError, RecordError, StoreError, WinnowError
from rag_core.index.search import reader_key
from rag_core.index.where import allowed_rows
from rag_core.records.reading import read_case
from rag_core.types import Candidates, Hit, Metric, Query

Function = Callable[[str, int], Any]
DEEPEST = 10_000
FORM = "module:function"


def load_callable(named: str | Mapping[str, Any]) -> CallableIndex:
    """The source of `module:function`, or of `{"callable": "module:function"}`; an InputError where there is none."""
    if isinstance(named, Mapping):
        if set(named) != {"callable"} or not isinstance(named["callable"], str):
            keys = ", ".join(map(str, named))[:80]
            raise InputError(f'the source is a mapping of {keys}, expected {{"callable": "{FORM}"}}')
        named = named["callable"]
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", named):
        raise InputError(f"the source is {named[:80]!r}, expected {FORM}")
    module_name, _, path = named.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:  # the module is a person's own code: whatever it raises, it cannot be used
        raise InputError(f"module {module_name[:80]} cannot be imported ({type(error).__name__}: {error})") from None
    for part in path.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise InputError(f"module {module_name[:80]} has no function {path[:80]}, expected {FORM}")
    return CallableIndex(found, named)


class CallableIndex:
    """What a dense source searches when a function does the searching. How exact it is, only the function knows."""

    exact = False

    def __init__(self, function: Function, name: str) -> None:
        self.function = function
        self.name = name
        self.metric = Metric.UNKNOWN  # until an answer says
        self._version = _version(function)

    @property
    def fingerprint(self) -> str:
        """The function's name and source; the state of what it searches is not known to us."""
        return f"callable-{self.name}-{self._version}"

    def reader(
        self, text: str, where: Mapping[str, Any] | None = None, file_filter: str | None = None
    ) -> CallableReader:
        """The function's ranking for a query text; conditions are applied to what it answers."""
        return CallableReader(self, text, where, file_filter)

    def lexical_reader(self, *_: Any) -> Any:
        """Not there: words are counted over a collection's chunks, which a function does not show."""
        raise InputError(f"source {self.name} searches by itself, expected Dense in place of a search by words")

    def ask(self, text: str, depth: int) -> tuple[Hit, ...]:
        """The function's answer, checked, at most `depth` hits; a StoreError where it fails, a RecordError if wrong."""
        try:
            answer = self.function(text, depth)
        except WinnowError:
            raise
        except Exception as error:  # its message may hold anything
            raise StoreError(f"source {self.name} failed ({type(error).__name__}), expected a list of chunks") from None
        hits, self.metric = _checked(answer, f"the answer of source {self.name}")
        return hits[:depth]


class CallableReader:
    """Reads a function's ranking, deeper on demand. What was read once keeps its place."""

    def __init__(
        self, index: CallableIndex, text: str, where: Mapping[str, Any] | None, file_filter: str | None
    ) -> None:
        self.fingerprint = reader_key(index.fingerprint, text, where, file_filter)
        self.store_queries = 0
        self._index = index
        self._text = text
        self._conditions = (where, file_filter)
        self._hits: list[Hit] = []
        self._asked = 0
        self._ended = False

    @property
    def matching(self) -> int:
        """How many chunks are known to meet the conditions: those read so far."""
        return len(self._hits)

    def read(self, start: int, stop: int) -> tuple[Hit, ...]:
        """Hits at positions start…stop−1 (0-based), asking the function for more while it may have more."""
        while len(self._hits) < stop and not self._ended:
            self._deeper(min(DEEPEST, max(stop, 2 * self._asked)))
        return tuple(self._hits[start:stop])

    def read_excluding(self, ids: Iterable[str], count: int) -> tuple[Hit, ...]:
        """The first `count` hits whose chunk id is not among `ids`; ranks are the full list's."""
        without = set(ids)
        self.read(0, count + len(without))
        return tuple(hit for hit in self._hits if hit.chunk.id not in without)[:count]

    def _deeper(self, depth: int) -> None:
        found = self._index.ask(self._text, depth)
        self.store_queries += 1
        self._asked = depth
        self._ended = len(found) < depth or depth >= DEEPEST
        allowed = allowed_rows([hit.chunk for hit in found], *self._conditions)
        known = {hit.chunk.id for hit in self._hits}
        for row, hit in enumerate(found):
            if (allowed is None or allowed[row]) and hit.chunk.id not in known:
                self._hits.append(replace(hit, rank=len(self._hits) + 1))


def _checked(answer: Any, place: str) -> tuple[tuple[Hit, ...], Metric]:
    """The hits of an answer and its metric: a list of candidates, or a mapping of candidates, metric and order."""
    if isinstance(answer, Mapping):
        unknown = set(answer) - {"candidates", "metric", "order"}
        if unknown:
            strange = min(map(str, unknown))
            raise RecordError(f"{place} has the key {strange[:80]!r}, expected candidates, metric, order")
        record = dict(answer)
    else:
        is_list = isinstance(answer, Sequence) and not isinstance(answer, str)
        record = {"candidates": list(answer) if is_list else answer}
    for rank, entry in enumerate(record.get("candidates") or [], 1):
        if isinstance(entry, Mapping) and not (isinstance(entry.get("id"), str) and entry["id"]):
            raise RecordError(f"{place} candidate {rank} has no id, expected a text that stays the chunk's own")
    found = read_case({"query": "query", **record}, place, "query").candidates or Candidates(Query("query", ""))
    return found.hits, found.metric


def _version(function: Function) -> str:
    """A hash of the function's file, so that captures made with other code are told apart."""
    try:
        source = inspect.getsource(inspect.getmodule(function) or function)
    except (OSError, TypeError):
        source = ""
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:12]
