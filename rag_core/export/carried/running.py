"""The pipeline: each stage takes chunks out and says why. `filter_chunks` is what a service calls."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from rag_core.export.carried.cutting import how_many
from rag_core.export.carried.learning import unlikely
from rag_core.export.carried.refilling import by_rule, refilled

STAGES: list[Any] = []  # (stage, the part of this file that does its work, its settings)
SELF_TEST: list[Any] = []

DEFAULT_CUT = {"gap_threshold": 0.1, "distance_offset": 0.4}


def filter_chunks(
    query: str, chunks: Iterable[Mapping[str, Any]], metric: str = "unknown", order: str = "distance"
) -> list[Mapping[str, Any]]:
    """The chunks that are kept, the very objects that were given, in final order.

    `chunks` come best first: mappings with `distance` (lower is nearer), `similarity` or both, and `query_must` where a
    chunk has a rule. `metric` says what a distance is: cosine, l2, ip or unknown; `order` is `distance` or `fused`.
    Chunks that were added otherwise (expanded, a hop) carry `origin`, and a cut lets them pass. Raises ValueError.
    """
    return [chunk for chunk, _, _ in decide(query, chunks, metric, order) if chunk is not None]


def explain(
    query: str, chunks: Iterable[Mapping[str, Any]], metric: str = "unknown", order: str = "distance"
) -> list[tuple[Mapping[str, Any], str, str]]:
    """What is dropped, as (chunk, stage, reason), in the order of the stages."""
    given = list(chunks)
    return [(given[at], stage, reason) for _, at, (stage, reason) in _run(query, given, metric, order) if stage]


def decide(
    query: str, chunks: Iterable[Mapping[str, Any]], metric: str = "unknown", order: str = "distance"
) -> list[tuple[Any, str, str]]:
    """Kept chunks as (chunk, "", ""), then dropped ones as (None, stage, reason)."""
    given = list(chunks)
    return [
        (None if stage else given[at], stage, reason) for _, at, (stage, reason) in _run(query, given, metric, order)
    ]


def _run(query: str, given: list[Any], metric: str, order: str) -> list[tuple[bool, int, tuple[str, str]]]:
    """(dropped, place in the given list, (stage, reason)); kept ones first, in final order."""
    left = list(range(len(given)))
    scored = [_scores(chunk, metric) for chunk in given]
    dropped: list[tuple[bool, int, tuple[str, str]]] = []
    for name, part, settings in STAGES:
        left, reasons = _stage(part, settings, query, given, scored, left, metric, order)
        dropped += [(True, at, (name, reasons[at])) for at in left if at in reasons]
        left = [at for at in left if at not in reasons]
    return [(False, at, ("", "")) for at in left] + dropped


def _scores(chunk: Mapping[str, Any], metric: str) -> tuple[Any, Any]:
    """(distance, similarity) of a chunk; a cosine similarity alone gives the distance 1 - similarity."""
    distance, similarity = chunk.get("distance"), chunk.get("similarity")
    for value in (distance, similarity):
        if value is not None and not math.isfinite(value):
            raise ValueError(f"a chunk has the score {value!r}, expected a finite number")
    if distance is None and similarity is not None and metric == "cosine":
        distance = 1.0 - similarity
    return distance, similarity


def _stage(
    part: str,
    settings: dict[str, Any],
    query: str,
    given: list[Any],
    scored: list[Any],
    left: list[int],
    metric: str,
    order: str,
) -> tuple[list[int], dict[int, str]]:
    """The places in the order the stage judges them, and why those that go do."""
    if part == "first":
        return left, {at: f"behind the first {settings['k']}" for at in left[settings["k"] :]}
    if part == "rules":
        return left, by_rule(settings, query, given, left)
    if part == "refill":
        return refilled(settings, query, given, [distance for distance, _ in scored], left, order)
    if part == "floor":
        return left, _below(settings["min_relevance"], scored, left, metric)
    if part == "learned":
        return left, unlikely(settings, query, given, [distance for distance, _ in scored], left)
    return _cut(settings, query, given, scored, left, metric, order)


def _below(floor: float, scored: list[Any], left: list[int], metric: str) -> dict[int, str]:
    """Chunks below a cosine similarity; where none is known the floor is skipped."""
    found = {}
    for at in left:
        distance, similarity = scored[at]
        if similarity is None and metric == "cosine" and distance is not None:
            similarity = 1.0 - distance
        if similarity is not None and similarity < floor - 1e-9:
            found[at] = f"cosine similarity {similarity:.4f} < {floor:.4f}"
    return found


def _cut(
    settings: dict[str, Any],
    query: str,
    given: list[Any],
    scored: list[Any],
    left: list[int],
    metric: str,
    order: str,
) -> tuple[list[int], dict[int, str]]:
    """What lies behind the cut; chunks of another origin or without a distance pass."""
    _check_metric(settings, metric)
    judged = [at for at in left if scored[at][0] is not None and not given[at].get("origin")]
    if order == "fused":
        judged = sorted(judged, key=lambda at: (scored[at][0], at))
        left = judged + [at for at in left if at not in judged]
    elif any(scored[at][0] is None and not given[at].get("origin") for at in left):
        raise ValueError("a chunk has no distance, expected one on every chunk")
    distances = [scored[at][0] for at in judged]
    if any(distances[at] < distances[at - 1] for at in range(1, len(distances))):
        raise ValueError("the distances descend, expected the nearest first")
    keep = how_many(distances, settings, query)
    return left, {at: f"distance {scored[at][0]:.4f}, the list ends after {keep}" for at in judged[keep:]}


def _check_metric(settings: dict[str, Any], metric: str) -> None:
    """The default thresholds are cosine distances: they are refused for another metric."""
    if metric in ("cosine", "unknown"):
        return
    gap = settings["gap_policy"] != "relative" and settings["gap_threshold"] == DEFAULT_CUT["gap_threshold"]
    offset = settings["relative_offset"] is None and settings["distance_offset"] == DEFAULT_CUT["distance_offset"]
    if gap or offset:
        raise ValueError(f"the cut has its default thresholds, made for cosine distances, on {metric} distances")


def self_test() -> list[str]:
    """What does not give the kept ids it should; nothing: all is well."""
    found = []
    for case in SELF_TEST:
        kept = filter_chunks(case["query"], case["candidates"], case["metric"], case["order"])
        ids = [chunk["id"] for chunk in kept]
        if ids != case["kept"]:
            found.append(f"{case['id']}: kept {ids}, expected {case['kept']}")
    return found


def main(arguments: list[str]) -> int:
    """`--self-test` checks this file; without it, recorded lists (JSONL) on stdin become kept ids on stdout."""
    if arguments == ["--self-test"]:
        wrong = self_test()
        sys.stdout.write("\n".join([*wrong, f"{len(SELF_TEST) - len(wrong)} of {len(SELF_TEST)} lists as expected\n"]))
        return 1 if wrong else 0
    for line in sys.stdin:
        if line.strip():
            asked = json.loads(line)
            metric, order = asked.get("metric") or "unknown", asked.get("order") or "distance"
            kept = filter_chunks(asked["query"], asked["candidates"], metric, order)
            sys.stdout.write(json.dumps({"id": asked.get("id"), "kept": [chunk.get("id") for chunk in kept]}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
