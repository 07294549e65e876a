"""Any search of a person's own as a source: `module:name`, a function, a vector store or a retriever.

It runs in this Python, or in one of theirs (`CallOptions.python`) as a process of its own: see winnow_source.py, which
also says which answers are understood. A function is code of the person's own choosing. It is named on the command line
or in a configuration that only they write, never in a link, an upload or a page's text box; so no stage of a pipeline
names one. Its answers are checked like a recorded list, whatever it is. Documented with recipes in docs/sources.md.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import queue
import re
import signal
import subprocess
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from rag_core.errors import InputError, RecordError, StoreError, WinnowError
from rag_core.index.where import allowed_rows, reader_key
from rag_core.records import read_case
from rag_core.sources import winnow_source
from rag_core.types import SCORES, Candidates, Hit, Metric, Query

Function = Callable[[str, int], Any]
DEEPEST = 10_000
FORM = "module:function"
OURS = ("WINNOW_", "CHUNK_FILTERING_", "OPENAI_", "CHROMA_")
"""How the names of the variables begin that another Python is not handed unless it is said: they hold our keys."""
STARTS_IN = 300.0  # seconds: a framework's first import on a slow disk
ROUNDING = 1e-4  # by which a store in single precision leaves a metric's range


@dataclass(frozen=True, slots=True)
class CallOptions:
    """How a person's search is called, and what its scores are; '' is as its class or its answers say."""

    python: str = ""  # the interpreter of their environment; '' : this one
    score: str = ""  # one of SCORES
    metric: str = ""
    seconds: float = 60.0  # for one question, in another Python
    folder: str = ""  # where their module is found; '' : where this process works
    variables: tuple[str, ...] = ()  # of ours that are handed on, by name

    def __post_init__(self) -> None:
        if self.score and self.score not in SCORES:
            raise InputError(f"the score is {self.score[:40]!r}, expected one of {', '.join(SCORES)}")
        if self.metric and self.metric not in list(Metric):
            raise InputError(f"the metric is {self.metric[:40]!r}, expected one of {', '.join(Metric)}")


def load_callable(named: str | Mapping[str, Any], options: CallOptions = CallOptions()) -> CallableIndex:
    """The source of `module:name`, or of `{"callable": "module:name"}`; an InputError where there is none."""
    if isinstance(named, Mapping):
        if set(named) != {"callable"} or not isinstance(named["callable"], str):
            keys = ", ".join(map(str, named))[:80]
            raise InputError(f'the source is a mapping of {keys}, expected {{"callable": "{FORM}"}}')
        named = named["callable"]
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", named):
        raise InputError(f"the source is {named[:80]!r}, expected {FORM}")
    if options.python:
        process = SourceProcess(named, options)
        return CallableIndex(process, named, process.proposal, options)
    try:
        target = winnow_source.resolve(named)
    except ValueError as error:
        raise InputError(str(error)[:500]) from None
    search = partial(winnow_source.ask, target)
    return CallableIndex(search, named, winnow_source.proposal_of(target), options, _version(target))


class SourceProcess:
    """A search in another Python: one process, started again after it died or hung; only one question at a time."""

    def __init__(self, named: str, options: CallOptions) -> None:
        self.named, self.options = named, options
        self.proposal = winnow_source.Proposal()
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._errors: deque[str] = deque(maxlen=20)
        self._turn = threading.Lock()
        with self._turn:
            self._start()

    def __call__(self, text: str, depth: int) -> Any:
        """The answer to one question; a StoreError where theirs fails, dies or takes too long."""
        request = {"query": text, "depth": depth, "kind": self.options.score, "metric": self.options.metric}
        with self._turn:
            if self._process is None or self._process.poll() is not None:
                self._start()
            process = self._process
            if process is not None and process.stdin is not None:
                with suppress(OSError):  # it died meanwhile: waiting for its answer says so
                    process.stdin.write(json.dumps(request).encode() + b"\n")
                    process.stdin.flush()
            said = self._line(self.options.seconds, f"no answer in {self.options.seconds:g} s")
        if "error" in said:
            raise StoreError(f"source {self.named} failed ({_short(said['error'])}), expected a list of chunks")
        return said["answer"]

    def stop(self) -> None:
        """End the process and whatever it started."""
        process, self._process = self._process, None
        if process is not None:
            _end(process)

    def _start(self) -> None:
        self.stop()
        kept = {
            name: value
            for name, value in os.environ.items()
            if name in self.options.variables or not name.startswith((*OURS, "PYTHON"))
        }
        command = [self.options.python, "-u", str(Path(winnow_source.__file__).resolve()), self.named]
        try:
            self._process = subprocess.Popen(  # noqa: S603  # a Python and a module that the person named
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.options.folder or None,
                env=kept,
                start_new_session=True,
            )
        except OSError as error:
            raise InputError(
                f"{self.options.python[:200]} does not start ({error.strerror}), expected the Python of {self.named}"
            ) from None
        weakref.finalize(self, _end, self._process)  # when nobody asks any more, or Python ends
        self._lines, self._errors = queue.Queue(), deque(maxlen=20)
        stdout, stderr, lines, errors = self._process.stdout, self._process.stderr, self._lines, self._errors

        def listen() -> None:
            for line in stdout or ():
                lines.put(line)
            lines.put(None)

        def keep_last() -> None:
            errors.extend(line.decode("utf-8", "replace") for line in stderr or ())

        for work in (listen, keep_last):
            threading.Thread(target=work, daemon=True).start()
        said = self._line(STARTS_IN, f"not ready in {STARTS_IN:g} s")
        if "error" in said:
            self.stop()
            raise InputError(f"{_short(said['error'])}, in {self.options.python[:200]}")
        self.proposal = winnow_source.Proposal(said["kind"], said["metric"], said["why"])

    def _line(self, seconds: float, late: str) -> dict[str, Any]:
        """The next line of the protocol; the process is ended where none comes."""
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            self.stop()
            raise StoreError(f"source {self.named} was stopped: {late}") from None
        if line is None:
            process = self._process
            code = process.wait() if process is not None else None
            self.stop()
            last = next((one for one in reversed(self._errors) if one.strip()), "nothing on stderr")
            raise StoreError(f"source {self.named} died with exit code {code}: {_short(last)}")
        said: dict[str, Any] = json.loads(line)
        return said


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and whatever it started."""
    if process.poll() is not None:
        return
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _short(text: str) -> str:
    return " ".join(text.split())[:300]


class CallableIndex:
    """What a dense source searches when a function does the searching. How exact it is, only the function knows."""

    exact = False

    def __init__(
        self,
        function: Function,
        name: str,
        proposal: winnow_source.Proposal | None = None,
        options: CallOptions = CallOptions(),
        version: str | None = None,
    ) -> None:
        self.function = function
        self.name = name
        self.options = options
        self.metric = Metric.UNKNOWN  # until an answer says
        own = proposal or winnow_source.Proposal()
        why = "as named" if options.score or options.metric else own.why
        self.proposal = winnow_source.Proposal(options.score or own.kind, options.metric or own.metric, why)
        self._version = _version(function) if version is None else version
        self._direction = ""

    @property
    def scores(self) -> str:
        """What its scores are, and whose word that is."""
        kind, metric = self.proposal.kind, self.proposal.metric
        if not kind:
            return "scores as its answers name them; one without a name is a distance where it rises, else a score"
        return f"{kind}{f' ({metric})' if metric else ''}: {self.proposal.why}"

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
        place = f"the answer of source {self.name}"
        hits, self.metric = _checked(winnow_source.candidates_of(answer, self.proposal), place)
        kinds = [kind for kind in ("distance", "score") if all(kind in hit.scores for hit in hits)]
        if not self.proposal.kind and len(kinds) == 1 and len({hit.scores[kinds[0]] for hit in hits}) > 1:
            # bare numbers are read by their direction, so every list must go the same way
            if self._direction not in ("", kinds[0]):
                raise RecordError(
                    f"{place} has scores that go the other way than before, expected --score to say what they are"
                )
            self._direction = kinds[0]
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


def _checked(answer: Mapping[str, Any], place: str) -> tuple[tuple[Hit, ...], Metric]:
    """The hits of an answer and its metric: a mapping of candidates, metric and order."""
    unknown = set(answer) - winnow_source.ANSWER_KEYS
    if unknown:
        strange = min(map(str, unknown))
        raise RecordError(f"{place} has the key {strange[:80]!r}, expected candidates, metric, order")
    for rank, entry in enumerate(answer.get("candidates") or [], 1):
        if isinstance(entry, Mapping) and not (isinstance(entry.get("id"), str) and entry["id"]):
            raise RecordError(f"{place} candidate {rank} has no id, expected a text that stays the chunk's own")
    found = read_case({"query": "query", **answer}, place, "query").candidates or Candidates(Query("query", ""))
    for hit in found.hits:
        distance = hit.distance
        if found.metric is Metric.COSINE and distance is not None and not -ROUNDING <= distance <= 2 + ROUNDING:
            raise RecordError(
                f"{place} has distance {distance:.6g}, which is no cosine distance (0 to 2), expected another metric"
            )
    return found.hits, found.metric


def _version(function: Any) -> str:
    """A hash of the function's file, so that captures made with other code are told apart."""
    try:
        source = inspect.getsource(inspect.getmodule(function) or function)
    except (OSError, TypeError):
        source = ""
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:12]
