"""What an exported file does with a list: the very stages of the workbench, run on mappings. Copied with them.

It also runs here, so that an exported file has nothing of its own but its constants (see assemble.py).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from typing import Any

from rag_core.errors import InputError
from rag_core.records import read_case
from rag_core.sources.winnow_record import ListRecorder
from rag_core.stage import Pipeline, Stage
from rag_core.types import SCORES, Candidates, Chunk, Drop, Hit, Metric, Query

ROOT = __name__.rpartition(".export.")[0]
ROUNDING = 1e-4  # by which a store in single precision leaves a metric's range
Given = Mapping[str, Any]
Search = Callable[[str, int], Iterable[Given]]
"""A service's own search: a question, and how many chunks are wanted → the nearest, best first; fewer where it ends."""


@dataclass
class ExportedFilter:
    """A tuned pipeline and what it was tuned on; `stages` are (module, class, settings), `tuned` is metric and score.

    `depth` is how many chunks its own source brought, before anything read on.

    `handles` are what some stages wait for: `entities` (says which entities a question means: `teams`, `at`,
    `explain`), `chunks` (a function: chunk id → mapping, or None) and `reranker` (a question
    and texts → scores, where chunks carry none; while it raises, the order stays).
    """

    stages: list[Any]
    tuned: Mapping[str, Any]
    tests: list[Any]
    fingerprint: str = ""
    depth: int = 50
    handles: dict[str, Any] = field(default_factory=dict)
    recorder: ListRecorder | None = None
    _made: Pipeline | None = None

    def pipeline(self) -> Pipeline:
        """The stages with the handles that were handed over; made once."""
        if self._made is None:
            self._made = Pipeline(tuple(self._stage(*entry) for entry in self.stages))
        return self._made

    def _stage(self, module: str, name: str, settings: Given) -> Stage:
        made: Stage = getattr(import_module(f"{ROOT}.{module}"), name)(**settings)
        missing = made.needs() - set(self.handles)
        if missing:
            raise InputError(f"{name} waits for {min(missing)}, expected it: hand_over({min(missing)}=…)")
        waits = {one.name for one in fields(made) if "needed" in one.metadata}
        return replace(made, **{name: self.handles[name] for name in waits & set(self.handles)})

    def hand_over(self, **handles: Any) -> None:
        """Give stages what they wait for; `chunks` may be a function."""
        self._made = None
        for name, handle in handles.items():
            self.handles[name] = _Lookup(handle) if name == "chunks" and callable(handle) else handle

    def record_to(self, path: Any, **settings: Any) -> ListRecorder:
        """Write down every list from now on, with what was kept; the settings are those of `ListRecorder`."""
        self.recorder = ListRecorder(path, **settings)
        return self.recorder

    def filter_chunks(
        self, query: str, chunks: Iterable[Given], metric: str = "", order: str = "distance"
    ) -> list[Given]:
        """The chunks that are kept, the very objects that were handed in, in final order.

        `chunks` come best first: mappings with `id`, one of distance, similarity, bm25, rrf or score, and `query_must`
        where a chunk has a rule. `metric` says what a distance is (cosine, l2, ip, unknown), "" the one it was tuned
        on; another is refused. `order` is `distance` or `fused`. Chunks that were added otherwise carry `origin`, and a
        cut lets them pass. Raises ValueError.
        """
        return self._filtered(query, chunks, metric, order)[0]

    def retrieve(
        self, query: str, search: Search, metric: str = "", order: str = "distance", depth: int = 0
    ) -> list[Given]:
        """The chunks that are kept of what a search finds, in final order: the very objects that it gave.

        Where rules drop chunks the search is asked again for more, as a refill of the workbench reads on. It gives
        chunks as `filter_chunks` takes them; `depth` is how many it is asked for first, 0 as many as in the workbench.
        Raises ValueError.
        """
        metric = self._metric(metric)
        ranking = _Ranking(self, query, search, metric, order)
        hits = ranking.read(0, depth or self.depth)
        return self._run(replace(ranking.start, hits=hits, reader=ranking), ranking.objects, order)[0]

    def explain(
        self, query: str, chunks: Iterable[Given], metric: str = "", order: str = "distance"
    ) -> list[tuple[Given, str, str]]:
        """What is dropped, as (chunk, stage, reason), in the order of the stages."""
        return self._filtered(query, chunks, metric, order)[1]

    def _metric(self, metric: str) -> str:
        """The metric of a list, by default the one the filter was tuned on; another is refused."""
        expected = self.tuned.get("metric") or "unknown"
        if "unknown" not in (metric or expected, expected) and metric and metric != expected:
            raise InputError(f"the list has {metric} scores, expected {expected} ones: this filter was tuned on them")
        return metric or str(expected)

    def _filtered(
        self, query: str, chunks: Iterable[Given], metric: str, order: str
    ) -> tuple[list[Given], list[tuple[Given, str, str]]]:
        objects: dict[str, Given] = {}
        start, again = self.listed(query, chunks, self._metric(metric), order, objects)
        kept, dropped = self._run(replace(start, recorded=True), objects, order)
        return kept, again + dropped

    def listed(
        self, query: str, chunks: Iterable[Given], metric: str, order: str, objects: dict[str, Given]
    ) -> tuple[Candidates, list[tuple[Given, str, str]]]:
        """The list as candidates, and the chunks that came before in it; `objects` are what it gave, by their id."""
        again: list[tuple[Given, str, str]] = []
        rows: dict[str, Given] = {}
        for rank, chunk in enumerate(chunks, 1):
            identity = str(chunk.get("id") or f"#{rank}")
            if identity in rows:
                again.append((chunk, "this file", "the chunk came before in this list"))
                continue
            objects[identity] = chunk
            rows[identity] = {**chunk, "id": identity}
        record = {"query": query, "metric": metric, "order": order, "candidates": list(rows.values())}
        start = read_case(record, "the list", "list").candidates
        if start is None:
            raise InputError("there is no list, expected chunks")
        self._check_scores(start)
        hits = tuple(replace(hit, origin=str(objects[hit.chunk.id].get("origin") or "")) for hit in start.hits)
        return replace(start, hits=hits, recorded=False), again

    def _run(
        self, start: Candidates, objects: Mapping[str, Given], order: str
    ) -> tuple[list[Given], list[tuple[Given, str, str]]]:
        after = self.pipeline()(start)
        if after.fallbacks and not self.handles:
            raise InputError(f"{after.fallbacks[0].stage}: {after.fallbacks[0].reason}")
        lookup = self.handles.get("chunks")
        added = lookup.seen if isinstance(lookup, _Lookup) else {}
        kept = [objects.get(hit.chunk.id) or added[hit.chunk.id] for hit in after.hits]
        if self.recorder is not None:
            self._record(start, {hit.chunk.id for hit in after.hits}, order)
        return kept, [(_object(drop, objects, added), drop.stage, drop.reason.text) for drop in after.drops]

    def _check_scores(self, candidates: Candidates) -> None:
        """A list of another kind of score, or whose numbers its metric cannot give, is refused."""
        kind = self.tuned.get("score")
        sourced = [hit for hit in candidates.hits if not hit.origin]
        if kind and sourced and not any(kind in hit.scores for hit in sourced):
            had = ", ".join(sourced[0].scores)
            raise InputError(f"the chunks have {had}, expected a {kind}: this filter was tuned on it")
        for hit in sourced:
            distance = hit.distance
            if self.tuned.get("metric") == Metric.COSINE and distance is not None and distance > 2 + ROUNDING:
                raise InputError(f"a chunk has distance {distance:.6g}, expected a cosine distance, 0 to 2")

    def _record(self, start: Candidates, kept: set[str], order: str) -> None:
        if self.recorder is not None:
            hits = [
                {"id": hit.chunk.id, **hit.scores, "text": hit.chunk.text, "kept": hit.chunk.id in kept}
                for hit in start.hits
            ]
            metric = "" if start.metric is Metric.UNKNOWN else str(start.metric)
            self.recorder.record(start.query.text, hits, metric, order, filter=self.fingerprint)

    def self_test(self) -> list[str]:
        """What does not give the kept ids it should; nothing: all is well."""
        wrong = []
        any_metric = ExportedFilter(self.stages, {}, [], handles=self.handles)
        for case in self.tests:
            kept = any_metric.filter_chunks(case["query"], case["candidates"], case["metric"], case["order"])
            ids = [chunk["id"] for chunk in kept]
            if ids != case["kept"]:
                wrong.append(f"{case['id']}: kept {ids}, expected {case['kept']}")
        return wrong

    def main(self, arguments: list[str]) -> int:
        """`--self-test` checks this file; without it, recorded lists (JSONL) on stdin become kept ids on stdout.

        A line that cannot be read, or that has other scores than those tuned on, is one sentence on stderr (exit 2).
        """
        if arguments == ["--self-test"]:
            wrong = self.self_test()
            right = len(self.tests) - len(wrong)
            sys.stdout.write("\n".join([*wrong, f"{right} of {len(self.tests)} lists as expected\n"]))
            return 1 if wrong else 0
        for number, line in enumerate(sys.stdin, 1):
            try:
                sys.stdout.write(self._said(json.loads(line)) if line.strip() else "")
                sys.stdout.flush()
            except BrokenPipeError:  # whoever reads has enough
                sys.stdout = None  # else its end would say so once more
                return 0
            except (InputError, ValueError) as error:
                sys.stderr.write(f"line {number}: {error}\n")
                return 2
        return 0

    def _said(self, record: Any) -> str:
        """What is kept of a recorded list, as a line."""
        if not isinstance(record, dict) or not {"query", "candidates"} <= record.keys():
            raise InputError("no recorded list, expected an object with query and candidates")
        metric, order = record.get("metric") or "", record.get("order") or "distance"
        kept = self.filter_chunks(record["query"], record["candidates"], metric, order)
        return json.dumps({"id": record.get("id"), "kept": [chunk.get("id") for chunk in kept]}) + "\n"


class _Ranking:
    """The ranking of a service's search, asked again for a longer one when a stage reads on."""

    fingerprint = ""

    def __init__(self, exported: ExportedFilter, query: str, search: Search, metric: str, order: str) -> None:
        self.objects: dict[str, Given] = {}
        self.start = Candidates(Query("", query))
        self._exported, self._query, self._search = exported, query, search
        self._metric, self._order = metric, order
        self._hits: tuple[Hit, ...] = ()
        self._asked, self._ended = 0, False

    def read(self, start: int, stop: int) -> tuple[Hit, ...]:
        """The hits at these places of the ranking."""
        if stop > self._asked and not self._ended:
            self._asked = max(stop, 2 * self._asked)  # twice as deep each time: few questions, whatever is dropped
            chunks = list(self._search(self._query, self._asked))
            self.start, _ = self._exported.listed(self._query, chunks, self._metric, self._order, self.objects)
            self._hits, self._ended = self.start.hits, len(chunks) < self._asked
        return self._hits[start:stop]

    def read_excluding(self, ids: Iterable[str], count: int) -> tuple[Hit, ...]:
        """The nearest others: a search that is not told what it may leave out is asked for so many more."""
        without = set(ids)
        self.read(0, len(without) + count)
        return tuple(hit for hit in self._hits if hit.chunk.id not in without)[:count]


class _Lookup:
    """Chunks by id from a function of the service's own, remembered as it gave them."""

    def __init__(self, function: Callable[[str], Given | None]) -> None:
        self.function = function
        self.seen: dict[str, Given] = {}

    def get(self, key: str, /) -> Chunk | None:
        """The chunk of that id, or None."""
        found = self.function(key)
        if found is None:
            return None
        self.seen[key] = found
        entry = {name: value for name, value in found.items() if name not in SCORES}
        read = read_case({"query": "q", "candidates": [{**entry, "id": key, "score": 0}]}, "the chunk", "q").candidates
        return read.hits[0].chunk if read is not None else None


def _object(drop: Drop, objects: Mapping[str, Given], added: Mapping[str, Given]) -> Given:
    return objects.get(drop.hit.chunk.id) or added[drop.hit.chunk.id]
