"""Capture, evaluation, sweep and ingest on an engine: cut into parts, done anywhere, put together as one machine would.

Queries are cut into runs of ids, a grid along one of its axes, texts into batches. A sweep is never cut along the cut's
threshold, whose sums are shared over the axis: every number is then the same bits as on one machine.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

import rag_core
from rag_core.engine import work
from rag_core.engine.cluster import Engine
from rag_core.files import write_whole
from rag_core.index.embed import BundledEmbedder, Vectors
from rag_core.measure.experiment import ReportFile
from rag_core.measure.scores import QueryScores
from rag_core.records import dump_case
from rag_core.spec import dump_stages
from rag_core.stage import Pipeline
from rag_core.tune.grid import Axis
from rag_core.tune.plane import Table, cut_along
from rag_core.types import Case

FOLDER = "parts"
Progress = Callable[[int, int], None]


def as_part(value: dict[str, Any]) -> str:
    """A part as text: equal parts are equal texts."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def in_parts(
    engine: Engine,
    work: Callable[[str], str],
    parts: Sequence[str],
    workspace: Path,
    progress: Progress | None = None,
) -> Iterator[str]:
    """The result of every part, in order. Each is on disk in the workspace once it is there, until all are read.

    Parts that are kept from an earlier call with the same parts are not done again.
    """
    text = json.dumps([rag_core.__version__, work.__name__, *parts], ensure_ascii=False)
    folder = workspace / FOLDER / hashlib.sha256(text.encode()).hexdigest()[:24]
    files = [folder / f"{number:06d}.json" for number in range(len(parts))]
    missing = [number for number, file in enumerate(files) if not file.is_file()]
    there, given = set(range(len(parts))) - set(missing), 0
    for at, result in engine.each(work, [parts[number] for number in missing]):
        write_whole(files[missing[at]], result)
        there.add(missing[at])
        if progress is not None:
            progress(len(there), len(parts))
        while given in there:  # while the others are done
            yield files[given].read_bytes().decode("utf-8")
            given += 1
    yield from (file.read_bytes().decode("utf-8") for file in files[given:])
    shutil.rmtree(folder, ignore_errors=True)


QUERIES = 50  # at most in a part: what a few parts give is all that the command holds of its results


def pieces(
    count: int, threads: int, least: int = 1, per_thread: int = 8, most: int | None = None
) -> list[tuple[int, int]]:
    """(start, stop) of pieces of `count` things: several for each thread, so that a lost one costs little."""
    size = max(least, min(most or count, -(-count // max(1, threads * per_thread))))
    starts = list(range(0, count, size))
    if len(starts) > 1 and count - starts[-1] < least:
        starts.pop()
    return list(zip(starts, [*starts[1:], count], strict=False))  # of nothing there are no pieces


TEXTS = 256  # texts of a part of an ingest


@dataclass(frozen=True)
class WorkPlace:
    """What the queries of a job are and where they are asked; collection '' : their recorded lists."""

    workspace: Path
    eval_set: str  # a name, or the path of a folder
    set_name: str
    collection: str = ""
    approximate: bool = False
    index: str = ""  # the fingerprint of the collection's index
    state: str = ""  # `files_state` of the set, which a worker must see, too
    places: Mapping[str, int] = field(default_factory=dict)  # of every query in the set, by id

    def part(self, cases: Sequence[Case], **more: Any) -> str:
        """A part for these queries with their labels, which the files of the set need not hold."""
        known = vars(self) | {"workspace": str(self.workspace.resolve())}
        if Path(self.eval_set).is_dir():
            known["eval_set"] = str(Path(self.eval_set).resolve())
        ids = [case.query.id for case in cases]
        places = [self.places[id_] for id_ in ids]
        grades = [list(case.grades.items()) for case in cases]  # as pairs: a part's text sorts the keys of its objects
        return as_part(known | {"ids": ids, "places": places, "grades": grades} | more)


def spec_of(pipeline: Pipeline) -> dict[str, Any]:
    """A pipeline as plain values, with its name."""
    return {"stages": dump_stages(pipeline), "label": pipeline.label}


def asker(
    engine: Engine, place: WorkPlace, depth: int, pipeline: Pipeline | None
) -> Callable[[Sequence[Case]], Iterator[list[str]]]:
    """What capture_to_file asks instead of a source: the lines of the cases, a part at a time as they are ready."""
    spec = spec_of(pipeline) if pipeline is not None else None

    def lines(cases: Sequence[Case]) -> Iterator[list[str]]:
        cut = [cases[start:stop] for start, stop in pieces(len(cases), engine.threads, most=QUERIES)]
        parts = [place.part(some, depth=depth, pipeline=spec) for some in cut]
        return (result.split("\n") for _, result in engine.each(work.capture_part, parts))

    return lines


def evaluate(
    engine: Engine,
    place: WorkPlace,
    cases: Sequence[Case],
    reports: Sequence[ReportFile],
    as_json: bool,
    measures: Sequence[Any],
    progress: Progress | None = None,
) -> None:
    """Fill the reports, whose pipelines run over the cases in parts; a worker says of a question what is written."""
    facts = {
        "pipelines": [spec_of(report.pipeline) for report in reports],
        "min_grade": reports[0].min_grade,
        "measures": [str(measure) for measure in measures],
        "json": as_json,
    }
    cut = [cases[start:stop] for start, stop in pieces(len(cases), engine.threads, most=QUERIES)]
    parts = [place.part(some, **facts) for some in cut]
    for some, result in zip(cut, in_parts(engine, work.evaluate_part, parts, place.workspace, progress), strict=True):
        rows, _, rest = result.partition("\n")
        texts = StringIO(rest)
        for case, row in zip(some, json.loads(rows), strict=True):
            for report, (length, scores, total_known) in zip(reports, row, strict=True):
                report.add_said(texts.read(length), QueryScores(**scores), total_known, case.query.family)


def sweep(
    engine: Engine,
    cases: Sequence[Case],
    pipeline: Pipeline,
    axes: Sequence[Axis],
    workspace: Path,
    min_grade: int = 1,
    progress: Progress | None = None,
) -> Table:
    """Means of every setting of the grid, as plane.sweep gives them; the lists go to the workers by way of a file."""
    file, digest = _shared(cases, workspace)
    along = cut_along(axes)
    # At least two values: a single one may be a default that a cut refuses for the metric of the lists.
    cut = [(0, 1)] if along is None else pieces(len(axes[along].values), engine.threads, least=2)
    parts = []
    for start, stop in cut:
        some = [replace(axis, values=axis.values[start:stop]) if at == along else axis for at, axis in enumerate(axes)]
        facts = {"axes": [asdict(axis) for axis in some], "pipeline": spec_of(pipeline), "min_grade": min_grade}
        parts.append(as_part(facts | {"file": str(file.resolve()), "sha256": digest}))
    results = [json.loads(one) for one in in_parts(engine, work.sweep_part, parts, workspace, progress)]
    means = [np.array(one["means"], dtype=np.float64) for one in results]
    whole = means[0] if along is None else np.concatenate(means, axis=along + 1)
    file.unlink(missing_ok=True)
    return Table(tuple(axes), whole, sum(one["plainly"] for one in results))


def _shared(cases: Sequence[Case], workspace: Path) -> tuple[Path, str]:
    """The lists as a file of the workspace, named by content."""
    text = "".join(json.dumps(dump_case(case), ensure_ascii=False) + "\n" for case in cases)
    digest = hashlib.sha256(text.encode()).hexdigest()
    file = workspace / FOLDER / f"lists-{digest[:24]}.jsonl"
    if not file.is_file():
        write_whole(file, text)
    return file, digest


class SpreadEmbedder(BundledEmbedder):
    """The bundled model on an engine: batches as large as the engine is wide, each text's vector the same bits."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.batch = TEXTS * engine.threads * 2

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Unit vectors of the texts, in their order."""
        cut = [(start, min(start + TEXTS, len(texts))) for start in range(0, len(texts), TEXTS)]
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        parts = [json.dumps(list(texts[start:stop])) for start, stop in cut]
        for done, (number, found) in enumerate(self.engine.each(work.embed_part, parts), 1):
            start, stop = cut[number]
            vectors[start:stop] = np.frombuffer(found, dtype=np.float32).reshape(-1, self.dimension)
            if progress is not None:
                progress(min(done * TEXTS, len(texts)), len(texts))
        return vectors
