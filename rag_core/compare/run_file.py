"""The run file: one evaluation as it was, in JSON, so that it can be kept, sent, compared and guarded against.

Format version 1, documented in docs/formats.md. Here it is read and checked, and two runs are asked whether their
figures may be compared at all. How one comes about is in snapshot.py, where it is kept in store/runs.py.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from rag_core.errors import InputError, RecordError
from rag_core.files import parse_json, read_text
from rag_core.measure.measures import parse_measure
from rag_core.measure.scores import score
from rag_core.measure.significance import Comparison, compare

Values = list[float | None]

FORMAT = "winnow-run"
VERSION = 1
TOLD_APART = {"queries", "labels", "corpus"}
"""Fingerprints whose difference is told in words of its own."""

_KINDS: dict[str, type | tuple[type, ...]] = {
    "id": str,
    "at": str,
    "name": str,
    "eval_set": str,
    "min_grade": int,
    "seed": int,
    "fingerprints": dict,
    "platform": dict,
    "models": dict,
    "queries": list,
    "chunks": dict,
    "labels": dict,
    "pipelines": list,
}


@dataclass(frozen=True)
class RunPipeline:
    """One pipeline of a run: its spec, its means and, per query, plain values as they stand in the file."""

    name: str
    spec: Sequence[Any]
    means: Mapping[str, Any]
    queries: Sequence[Mapping[str, Any]]

    def values(self, measure: str) -> list[float | None]:
        """The measure of every query; None where it is unscored or was not measured."""
        return [query["values"].get(measure) for query in self.queries]


@dataclass(frozen=True)
class Run:
    """A run as read from its file. `document` is the whole of it."""

    document: Mapping[str, Any]
    pipelines: tuple[RunPipeline, ...]

    @property
    def id(self) -> str:
        """The run's id, made from its contents."""
        return str(self.document["id"])

    @property
    def name(self) -> str:
        """What it was called."""
        return str(self.document["name"])

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """What it depended on: queries, labels, corpus, rules, code."""
        found: Mapping[str, str] = self.document["fingerprints"]
        return found

    @property
    def intact(self) -> bool:
        """Whether the contents are still those the id was made from."""
        return run_id(self.document) == self.id

    @property
    def query_ids(self) -> list[str]:
        """The ids of its queries, in order."""
        return [str(query["id"]) for query in self.pipelines[0].queries] if self.pipelines else []

    def pipeline(self, name: str | None = None) -> RunPipeline:
        """The pipeline of that name, the first where none is named; a RecordError lists what the run holds."""
        found = next((one for one in self.pipelines if name is None or one.name == name), None)
        if found is None:
            held = ", ".join(one.name for one in self.pipelines) or "none"
            raise RecordError(f"run {self.id} has no pipeline {(name or '')[:80]!r}, expected one of {held}")
        return found


def run_id(document: Mapping[str, Any]) -> str:
    """The id of a run: a hash of all it holds but the id itself."""
    rest = {key: value for key, value in document.items() if key != "id"}
    text = json.dumps(rest, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return "r" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:15]


def load_run(path: Path) -> Run:
    """The run of a file, or an InputError that says what is wrong with it."""
    return read_run(parse_json(read_text(path), str(path)), str(path))


def dump_run(run: Run) -> str:
    """The run as the text of its file; `load_run` gives the same run back."""
    return json.dumps(run.document, ensure_ascii=False, allow_nan=False) + "\n"


def read_run(document: Any, where: str) -> Run:
    """The run of a parsed file; a RecordError names `where` and what is not as it should be."""
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise RecordError(f"{where} is no run file, expected an object with format: {FORMAT}")
    if document.get("version") != VERSION:
        raise RecordError(f"{where} has version {str(document.get('version'))[:20]}, expected {VERSION}")
    for key, kind in _KINDS.items():
        if not isinstance(document.get(key), kind) or isinstance(document.get(key), bool):
            raise RecordError(f"{where} has no usable {key}, expected it as docs/formats.md says")
    pipelines = tuple(_pipeline(entry, where) for entry in document["pipelines"])
    if not pipelines:
        raise RecordError(f"{where} holds no pipeline, expected at least one")
    first = [query["id"] for query in pipelines[0].queries]
    asked = [query.get("id") if isinstance(query, Mapping) else None for query in document["queries"]]
    if asked not in ([], first) or any([query["id"] for query in one.queries] != first for one in pipelines[1:]):
        raise RecordError(f"{where} has pipelines over different queries, expected the same ones")
    return Run(document, pipelines)


def _pipeline(entry: Any, where: str) -> RunPipeline:
    try:
        found = RunPipeline(entry["name"], entry["spec"], entry["means"], entry["queries"])
        good = isinstance(found.name, str) and isinstance(found.spec, list) and isinstance(found.means, Mapping)
        good = good and all(_is_query(query) for query in found.queries)
    except (KeyError, IndexError, TypeError, AttributeError):
        good = False
    if not good:
        raise RecordError(f"{where} has a pipeline that lacks name, spec, means or queries with id, values and kept")
    return found


def _is_query(query: Mapping[str, Any]) -> bool:
    """Whether a query's entry has what comparing needs; what telling shows may be absent, not of another form."""
    values = query["values"]
    numbers = all(value is None or (isinstance(value, int | float) and isfinite(value)) for value in values.values())
    told = all({"id", "stage", "reason"} <= set(reason) for reason in query.get("reasons", ()))
    counted = all(isinstance(query.get(name, 0), int) for name in ("retrieved", "relevant_total"))
    lost = all(isinstance(counts[0], int) for counts in query.get("dropped", {}).values())
    return isinstance(query["id"], str) and isinstance(query["kept"], list) and numbers and told and counted and lost


def summary_of(run: Run) -> dict[str, Any]:
    """What a list of runs shows: its pipelines with their means, and how many queries it has."""
    shown = ("SetP", "SetR", "SetF", "queries_scored", "queries_total")
    return {
        "queries": len(run.query_ids),
        "labels": run.fingerprints.get("labels", ""),
        "pipelines": [{"name": one.name, **{name: one.means.get(name) for name in shown}} for one in run.pipelines],
    }


@dataclass(frozen=True)
class Pairing:
    """Two runs question by question: the second's questions, then those that only the first asked.

    A question is the same where id and text are. `told` is what else a reader must know. Where `problem` is not empty
    the figures of the two may not be set against each other.
    """

    second: Run
    ids: tuple[str, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    relabelled: frozenset[str]  # the first run's values there are recomputed on the second's labels
    told: tuple[str, ...]
    problem: str = ""
    guards: bool = False

    def values(self, before: RunPipeline, after: RunPipeline, measure: str) -> tuple[Values, Values]:
        """The measure of every question in both runs; one that a run lacks counts 0 there where the other scores it.

        A gate leaves out what the first run lacks: it must not pass because questions were added.
        """
        entries = [{str(query["id"]): query for query in pipeline.queries} for pipeline in (before, after)]
        rows: tuple[Values, Values] = ([], [])
        for query_id in self.ids:
            one, two = (values.get(query_id, {"values": {}})["values"].get(measure) for values in entries)
            if query_id in self.relabelled:
                one = _relabelled(entries[0][query_id], query_id, measure, self.second)
            if query_id in self.only_second:
                one = None if two is None or self.guards else 0.0
            elif query_id in self.only_first:
                two = None if one is None else 0.0
            rows[0].append(one)
            rows[1].append(two)
        return rows


def paired(first: Run, second: Run, known: Container[str] | None = None, guards: bool = False) -> Pairing:
    """The two runs question by question, on the second's labels.

    Another source or other rules are told. Other labels are recomputed from the lists that the first run kept; that
    cannot be done where the source differs too and a relevant chunk of the first is neither labelled in the second nor
    among `known`, the ids of its chunks.
    """
    texts = [{str(query["id"]): query.get("query") for query in run.document["queries"]} for run in (first, second)]
    asked = [dict.fromkeys(run.query_ids) for run in (first, second)]
    same = {one for one in asked[0] if one in asked[1] and texts[0].get(one) == texts[1].get(one, texts[0].get(one))}
    only_first = tuple(one for one in asked[0] if one not in asked[1])
    only_second = tuple(one for one in asked[1] if one not in same)
    other_grade = first.document["min_grade"] != second.document["min_grade"]
    before, after = _labels_of(first), _labels_of(second)
    relabelled = {one for one in same if other_grade or before[one] != after[one]}
    if first.fingerprints.get("labels") != second.fingerprints.get("labels"):  # what a run does not hold may differ
        relabelled |= {one for one in same if one not in second.document["labels"]}
    told = [
        *_said(only_first, "the later run lacks", "count 0 there"),
        *_said(only_second, "the earlier run lacks", "are left out" if guards else "count 0 there"),
    ]
    if relabelled:
        told.append(f"the earlier run's figures of {len(relabelled)} questions are recomputed on the later labels")
    problem = ""
    if not same:
        problem = (
            f"Runs {first.id} and {second.id} have no question in common: a difference between them means nothing."
        )
    elif lost := next((one for one in sorted(relabelled) if not _can_relabel(first, second, one, known)), None):
        problem = (
            f"Runs {first.id} and {second.id} were measured against different labels, and the lists of question "
            f"{lost[:80]!r} cannot be measured on the later ones: a difference between their figures means nothing."
        )
    ids = (*asked[1], *only_first)
    return Pairing(second, ids, only_first, only_second, frozenset(relabelled), tuple(told), problem, guards)


def _said(lacking: Sequence[str], who: str, counted: str) -> list[str]:
    shown = ", ".join(lacking[:10]) + (f" and {len(lacking) - 10} more" if len(lacking) > 10 else "")
    return [f"{who} {len(lacking)} questions, which {counted}: {shown}"] if lacking else []


def _labels_of(run: Run) -> dict[str, tuple[Any, Any]]:
    """By question its labels, and how many relevant chunks there are in all."""
    labels = run.document["labels"]
    return {
        str(query["id"]): (dict(labels.get(query["id"], {})), query.get("relevant_total"))
        for query in run.pipelines[0].queries
    }


def _can_relabel(first: Run, second: Run, query_id: str, known: Container[str] | None) -> bool:
    """Whether the lists that the first run kept for a question can be measured on the second's labels."""
    after = second.document["labels"].get(query_id)
    if after is None:
        return False
    if first.fingerprints.get("corpus") == second.fingerprints.get("corpus"):
        return True
    before, least = first.document["labels"].get(query_id, {}), first.document["min_grade"]
    kept = {
        chunk for one in first.pipelines for query in one.queries if query["id"] == query_id for chunk in query["kept"]
    }
    return all(
        chunk in after or (known is not None and chunk in known) for chunk in kept if before.get(chunk, 0) >= least
    )


def _relabelled(entry: Mapping[str, Any], query_id: str, measure: str, labels: Run) -> float | None:
    """A measure of a kept list on the labels of another run."""
    grades = {str(chunk): int(grade) for chunk, grade in labels.document["labels"][query_id].items()}
    total = next(query.get("relevant_total") for query in labels.pipelines[0].queries if query["id"] == query_id)
    least = labels.document["min_grade"]
    return score(entry["kept"], grades, total or None, least, [parse_measure(measure)]).values[measure]


def not_comparable(first: Run, second: Run) -> str:
    """Why the figures of two runs may not be set against each other, as one sentence; '' where they may."""
    return paired(first, second).problem


def changed_besides(first: Run, second: Run, guards: bool = False) -> list[str]:
    """What else differs between two runs and may explain a difference: questions, labels, source, rules, code."""
    found = list(paired(first, second, guards=guards).told)
    if first.fingerprints.get("corpus") != second.fingerprints.get("corpus"):
        found.append("the source differs")
    found += [
        f"the {name} fingerprint differs"
        for name in sorted(set(first.fingerprints) | set(second.fingerprints))
        if name not in TOLD_APART and first.fingerprints.get(name) != second.fingerprints.get(name)
    ]
    if first.document["platform"] != second.document["platform"]:
        found.append("the platform differs")
    return found


def compare_pipelines(first: Run, second: Run, measure: str = "SetF", pipeline: str | None = None) -> Comparison:
    """How the second run's pipeline differs from the first's (that of a name, else the first of each), per query.

    A question that one of them lacks counts 0 there. An InputError where the two may not be compared, or one lacks the
    measure.
    """
    pairs = paired(first, second)
    if pairs.problem:
        raise InputError(pairs.problem)
    before, after = first.pipeline(pipeline), second.pipeline(pipeline)
    for run, one in ((first, before), (second, after)):
        if not any(measure in query["values"] for query in one.queries):
            raise InputError(f"run {run.id} has no {measure[:40]!r}, expected a measure it was made with")
    names = (f"{first.id} {before.name}", f"{second.id} {after.name}")
    return compare(*pairs.values(before, after, measure), names=names, measure=measure)
