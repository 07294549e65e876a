"""Labels that a model gave: how far they agree with people's, and figures that count them where nobody labelled."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rag_core.errors import InputError
from rag_core.eval_sets.reading import folders, load_set
from rag_core.labelling.judge_agreement import BAR, JudgeAgreement, judge_agreement
from rag_core.measure.experiment import with_labels
from rag_core.store.database import open_store
from rag_core.store.labels import LabelStore
from rag_core.store.model_labels import peoples_grades, runs_of
from rag_core.types import Case


def agreement_of(
    labels: LabelStore,
    eval_set: str,
    judge: str,
    workspace: Path,
    min_grade: int | None = None,
    bar: float = BAR,
    against: str = "",
    seed: int = 0,
) -> JudgeAgreement:
    """A model's agreement with people on an eval set; labels of the set's own files are people's too."""
    known = load_set(eval_set, workspace) if eval_set in folders(workspace) or "/" in eval_set else None
    files = {case.query.id: case.grades for case in known.cases} if known else {}
    people = peoples_grades(labels, eval_set, labels.labels(eval_set, judge), files, against)
    least = min_grade or (known.min_grade if known else 1)
    return judge_agreement(judge, people, runs_of(labels, eval_set, judge), least, bar, seed)


def with_judge_labels(
    eval_set: str, cases: Iterable[Case], judge: str, workspace: Path, min_grade: int, bar: float = BAR
) -> tuple[list[Case], str]:
    """The cases with a model's labels where no person's is, and the sentence that figures from them must carry.

    An InputError where the model's agreement with people does not pass the bar.
    """
    cases = list(cases)
    with open_store(workspace, create=False) as store:
        labels = LabelStore(store)
        agreed = agreement_of(labels, eval_set, judge, workspace, min_grade, bar)
        if not agreed.passes:
            raise InputError(f"{agreed.words}, expected one that passes before its labels count")
        graded, people = labels.current(eval_set, judge), labels.current(eval_set)
    overlay: dict[str, dict[str, int | None]] = {}
    for case in cases:
        taken = {**case.grades, **people.get(case.query.id, {})}
        model = graded.get(case.query.id, {})
        overlay[case.query.id] = {chunk: grade for chunk, grade in model.items() if chunk not in taken}
    count = sum(map(len, overlay.values()))
    return with_labels(cases, overlay), f"{count} labels of these figures are a model's: {agreed.words}"
