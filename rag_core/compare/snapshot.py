"""Making a run: what an evaluation found, with everything it depended on, as plain JSON values.

Fed outcome by outcome, so that traces need not be held: per query it keeps the figures, the kept ids, what each stage
dropped, and the reasons that will be asked for (of relevant chunks, and of chunks another pipeline of the run kept).
Reading and comparing runs is in run_file.py.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import rag_core
from rag_core.compare.overlap import last_drops
from rag_core.compare.run_file import FORMAT, VERSION, Run, read_run, run_id
from rag_core.eval_sets.reading import labels_fingerprint
from rag_core.measure.experiment import Outcome, kept_ids, unique_names
from rag_core.measure.scores import summarise
from rag_core.measure.tally import tally
from rag_core.spec import dump_stages, fingerprint
from rag_core.stage import Pipeline
from rag_core.types import Case

_ROOT = Path(__file__).parents[1]
_PACKAGES = ("numpy", "scipy")


@dataclass(frozen=True)
class About:
    """What a run says of itself besides its figures. `corpus` and `models` are '' and empty for recorded lists, whose
    own fingerprint is taken instead.
    """

    name: str = ""
    eval_set: str = ""
    seed: int = 0
    corpus: str = ""  # the fingerprint of the source of a live run
    rules: str = ""  # the fingerprint of every rule of its chunks
    models: Mapping[str, str] = field(default_factory=dict)  # role → model, such as embedding


class ListsDigest:
    """What recorded lists are, fed question by question: chunks with texts and scores, and apart the rules."""

    def __init__(self) -> None:
        self._lists, self._rules = hashlib.sha256(), hashlib.sha256()

    def add(self, case: Case) -> None:
        """One question; without a list it adds nothing."""
        if case.candidates is None:
            return
        hits = case.candidates.hits
        listed = [[hit.chunk.id, hit.chunk.text, sorted(hit.scores.items())] for hit in hits]
        for digest, values in ((self._lists, listed), (self._rules, [hit.chunk.query_must for hit in hits])):
            digest.update(json.dumps([case.query.id, values], default=dict, sort_keys=True).encode())

    @property
    def source(self) -> str:
        """The fingerprint of the lists."""
        return self._lists.hexdigest()[:16]

    @property
    def rules(self) -> str:
        """The fingerprint of the rules that their chunks carry."""
        return self._rules.hexdigest()[:16]


class Recorder:
    """Takes the outcomes of all pipelines query by query (`add`) and gives the run (`run`)."""

    def __init__(self, pipelines: Sequence[Pipeline], min_grade: int, about: About | None = None) -> None:
        self.pipelines, self.min_grade, self.about = tuple(pipelines), min_grade, about or About()
        self.names = list(unique_names(pipelines))
        self._queries: list[list[dict[str, Any]]] = [[] for _ in self.pipelines]
        self._scores: list[list[Any]] = [[] for _ in self.pipelines]
        self._cases: list[Case] = []
        self._chunks: dict[str, str] = {}
        self._recorded = ListsDigest()

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """The outcomes of one query, one per pipeline."""
        case = outcomes[0].case
        self._cases.append(Case(case.query, case.grades, None, case.relevant_total))
        self._recorded.add(case)
        kept = [kept_ids(outcome.result) for outcome in outcomes]
        wanted = {chunk for ids in kept for chunk in ids}
        wanted |= {chunk for chunk, grade in case.grades.items() if grade >= self.min_grade}
        for at, outcome in enumerate(outcomes):
            self._queries[at].append(self._entry(outcome, wanted - set(kept[at])))
            self._scores[at].append(outcome.scores)
            for hit in outcome.result.hits:
                self._chunks[hit.chunk.id] = hit.chunk.title

    def _entry(self, outcome: Outcome, wanted: Iterable[str]) -> dict[str, Any]:
        """One query of one pipeline."""
        one = tally(outcome, self.min_grade)
        scores = one.scores
        return {
            "id": one.query_id,
            "values": dict(scores.values),
            "low": dict(scores.low),
            "high": dict(scores.high),
            "scored": scores.scored,
            "judged": scores.judged,
            "relevant_total": scores.relevant_total,
            "candidates": one.candidates,
            "retrieved": one.retrieved,
            "kept": list(one.kept),
            "dropped": {stage: [d.relevant, d.irrelevant, d.unjudged] for stage, d in one.dropped.items()},
            "economy": {name: getattr(one.economy, name) for name in type(one.economy).__slots__},
            "fallbacks": [[fallback.stage, fallback.reason] for fallback in outcome.result.fallbacks],
            "reasons": self._reasons(outcome, wanted),
        }

    def _reasons(self, outcome: Outcome, wanted: Iterable[str]) -> list[dict[str, Any]]:
        """Why the chunks of interest are not kept, best ranked first; what no stage saw is not listed."""
        drops = last_drops(outcome)
        found = []
        for chunk in wanted:
            if chunk in drops:
                label, drop = drops[chunk]
                self._chunks[chunk] = drop.hit.chunk.title
                found.append({"id": chunk, "rank": drop.hit.rank, "stage": label, "reason": drop.reason.text})
        return sorted(found, key=lambda one: (one["rank"], one["id"]))

    def run(self, at: str = "") -> Run:
        """The run of what was added; `at` is when, in UTC (now unless given)."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "at": at or datetime.now(UTC).isoformat(timespec="milliseconds"),
            "name": self.about.name or " · ".join(self.names),
            "eval_set": self.about.eval_set,
            "min_grade": self.min_grade,
            "seed": self.about.seed,
            "fingerprints": self._fingerprints(),
            "models": dict(self.about.models) | models_of(self.pipelines),
            "platform": platform_facts(),
            "queries": [
                {"id": case.query.id, "query": case.query.text, "tags": list(case.query.tags)} for case in self._cases
            ],
            "labels": {case.query.id: dict(case.grades) for case in self._cases},
            "chunks": dict(sorted(self._chunks.items())),
            "pipelines": [
                {
                    "name": name,
                    "fingerprint": fingerprint(pipeline),
                    "spec": dump_stages(pipeline),
                    "means": summarise(self._scores[at]).to_json(),
                    "queries": self._queries[at],
                }
                for at, (name, pipeline) in enumerate(zip(self.names, self.pipelines, strict=True))
            ],
        }
        plain = json.loads(json.dumps(document, ensure_ascii=False, allow_nan=False))
        return read_run({"id": run_id(plain), **plain}, "the run")

    def _fingerprints(self) -> dict[str, str]:
        asked = json.dumps([[case.query.id, case.query.text] for case in self._cases], ensure_ascii=False)
        return {
            "queries": hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()[:16],
            "labels": labels_fingerprint(self._cases),
            "corpus": self.about.corpus or self._recorded.source,
            "rules": self.about.rules or self._recorded.rules,
            "code": code_fingerprint(),
        }


def models_of(pipelines: Sequence[Pipeline]) -> dict[str, str]:
    """The language models that stages of the pipelines name: stage → model."""
    named = {stage.name: getattr(stage, "model", "") for pipeline in pipelines for stage in pipeline.stages}
    return {name: model for name, model in named.items() if isinstance(model, str) and model}


@cache
def code_fingerprint() -> str:
    """The version of the library and a short hash of its source files."""
    digest = hashlib.sha256()
    for path in sorted(_ROOT.rglob("*.py")):
        digest.update(str(path.relative_to(_ROOT)).encode() + b"\0" + path.read_bytes())
    return f"{rag_core.__version__}-{digest.hexdigest()[:12]}"


def platform_facts() -> dict[str, str]:
    """Python, system and the libraries that figures depend on."""
    found = {
        "python": platform.python_version(),
        "system": sys.platform,
        "machine": platform.machine(),
    }
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
