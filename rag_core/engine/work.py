"""What a worker does with a part: the same calls as one machine makes, on the queries or settings the part names.

A part is JSON text; what it needs is opened once per process and kept. A collection that is not the one the part was
cut for is refused, so that a worker with another copy of the workspace cannot mix its answers in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rag_core.errors import StoreError
from rag_core.eval_sets.reading import LISTS, files_state, folder_of, load_set
from rag_core.measure.experiment import Outcome, stream
from rag_core.measure.measures import parse_measure
from rag_core.records import dump_case, load_lists, load_some_lists
from rag_core.retrieve.capture import captured
from rag_core.spec import parse_pipeline
from rag_core.stage import Pipeline
from rag_core.types import Case


@lru_cache(maxsize=4)
def _index(workspace: str, collection: str, approximate: bool, fingerprint: str) -> Any:
    from rag_core import workbench

    index = workbench.opened(Path(workspace), collection, approximate)
    if str(index.fingerprint) != fingerprint:
        raise StoreError(f"a worker's collection {collection} is not the one here, expected one shared workspace")
    return index


@lru_cache(maxsize=4)
def _cases(workspace: str, eval_set: str, state: str) -> dict[str, Case]:
    return {case.query.id: case for case in load_set(eval_set, Path(workspace)).cases}


@lru_cache(maxsize=2)
def _lists(file: str, sha256: str) -> list[Case]:
    return load_lists(Path(file))


def index_of(part: dict[str, Any]) -> Any:
    """The index a part names, None for recorded lists."""
    if not part["collection"]:
        return None
    return _index(part["workspace"], part["collection"], part["approximate"], part["index"])


def asked(part: dict[str, Any]) -> list[Case]:
    """The queries a part names, with the labels it gives them; of a file of lists only their lines are read."""
    folder = folder_of(part["eval_set"], Path(part["workspace"]))
    if files_state(folder) != part["state"]:
        raise StoreError(f"a worker's eval set {part['eval_set']} is not the one here, expected one shared workspace")
    if (folder / LISTS).is_file():
        known = {case.query.id: case for case in load_some_lists(folder / LISTS, part["places"])}
    else:
        known = _cases(part["workspace"], part["eval_set"], part["state"])
    labels = map(dict, part["grades"])
    return [replace(known[identity], grades=grades) for identity, grades in zip(part["ids"], labels, strict=True)]


def capture_part(text: str) -> str:
    """The captured cases of a part, a JSON line each."""
    from rag_core import workbench

    part = json.loads(text)
    spec = pipeline_of(part["pipeline"]) if part["pipeline"] else None
    source = workbench.source_of(index_of(part), part["depth"], spec, part["set_name"])
    return "\n".join(json.dumps(dump_case(captured(case, source)), ensure_ascii=False) for case in asked(part))


def evaluate_part(text: str) -> str:
    """A line of JSON with, per query and pipeline, the length of what the report says, the scores and whether the total
    was brought; then all that is said, one after the other: as JSON it would be escaped and read anew.
    """
    part = json.loads(text)
    pipelines = [runnable(spec, part) for spec in part["pipelines"]]
    measures = [parse_measure(name) for name in part["measures"]]
    say = Outcome.json_text if part["json"] else Outcome.to_text
    texts: list[str] = []
    facts: list[list[tuple[int, dict[str, Any], bool]]] = []
    for outcomes in stream(asked(part), pipelines, part["min_grade"], measures):
        said = [say(one) for one in outcomes]
        texts += said
        facts.append(
            [
                (len(text), asdict(one.scores), one.case.relevant_total is not None)
                for text, one in zip(said, outcomes, strict=True)
            ]
        )
    return "".join([json.dumps(facts), "\n", *texts])


def runnable(spec: dict[str, Any], part: dict[str, Any]) -> Pipeline:
    """A pipeline with what its stages need, on the index of the part where it has one."""
    from rag_core import workbench
    from rag_core.resources import with_handles

    pipeline = pipeline_of(spec)
    index = index_of(part)
    if index is not None:
        return workbench.live(pipeline, index, part["set_name"])
    return with_handles(pipeline)


def pipeline_of(spec: dict[str, Any]) -> Pipeline:
    """A pipeline with its name, as `spec_of` wrote it."""
    return replace(parse_pipeline(spec["stages"]), label=spec["label"])


def sweep_part(text: str) -> str:
    """Means of every setting of a part of a grid; numbers are written so that they read back to the last bit."""
    from rag_core.tune import plane
    from rag_core.tune.grid import Axis

    part = json.loads(text)
    axes = tuple(Axis(one["name"], one["stage"], one["setting"], tuple(one["values"])) for one in part["axes"])
    cases = _lists(part["file"], part["sha256"])
    swept = plane.sweep(cases, pipeline_of(part["pipeline"]), axes, min_grade=part["min_grade"])
    return json.dumps({"means": swept.means.tolist(), "plainly": swept.plainly})


def embed_part(text: str) -> bytes:
    """The vectors of a part's texts by the bundled model, float32 rows one after the other."""
    from rag_core.index.embed import BundledEmbedder

    texts: Sequence[str] = json.loads(text)
    return BundledEmbedder().embed(texts).tobytes()
