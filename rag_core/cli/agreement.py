"""`labels agreement`: how far annotators agree, and where they do not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_core.cli.label_store import EvalSet, existing, opened, say
from rag_core.cli.options import Json, Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_core.store.events import Event


def label_agreement(eval_set: str = EvalSet, workspace: Path | None = Workspace, json: bool = Json) -> None:
    """How far annotators agree beyond chance: Cohen by pair, Fleiss, Krippendorff (ordinal), and where they differ.

    Example: python -m rag_core labels agreement --eval-set demo --json
    """
    with opened(workspace) as labels:
        events = labels.labels(existing(labels, eval_set))
    document = {"eval_set": eval_set} | _agreement(events)
    say(document, json, _words(document))


def _agreement(events: Sequence[Event]) -> dict[str, Any]:
    from dataclasses import asdict

    from rag_core.labelling.agreement import disagreements, fleiss_kappa, krippendorff_alpha, pair_agreements

    graded = _by_annotator(events)
    ids = {(event.query_id, event.chunk_key): event.chunk_id for event in events}
    return {
        "annotators": sorted(graded),
        "pairs": [asdict(pair) for pair in pair_agreements(graded)],
        "fleiss_kappa": fleiss_kappa(graded),
        "krippendorff_alpha": krippendorff_alpha(graded),
        "disagreements": [
            {"query_id": found.item[0], "chunk_id": ids[found.item], "grades": dict(found.grades)}
            for found in disagreements(graded)
        ],
    }


def _by_annotator(events: Sequence[Event]) -> dict[str, dict[tuple[str, str], int]]:
    """{annotator: {(query id, chunk key): grade}}, unsure left out: the same text is the same item under any id.

    A decision between people is not the word of one more person.
    """
    from rag_core.store.events import ADJUDICATED

    graded: dict[str, dict[tuple[str, str], int]] = {}
    for event in events:
        if event.grade is not None and event.annotator != ADJUDICATED:
            graded.setdefault(event.annotator, {})[event.query_id, event.chunk_key] = event.grade
    return graded


def _words(document: dict[str, Any]) -> str:
    """The agreement as lines; an undefined figure is a dash."""
    pairs = [
        f"{pair['first']} and {pair['second']}: {pair['items']} in common, kappa {_shown(pair['kappa'])}"
        for pair in document["pairs"]
    ]
    overall = f"Fleiss {_shown(document['fleiss_kappa'])}, Krippendorff {_shown(document['krippendorff_alpha'])}"
    return "\n".join([*pairs, overall, f"{len(document['disagreements'])} chunks labelled differently"])


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
