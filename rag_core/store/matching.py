"""Which chunk a stored label is about today: the one with the same text, else the one with the same id.

Pure; works on label events that count now (oldest first), as labels.py reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rag_core.store.events import Event


def grades_by_chunk(
    labels: Sequence[Event],
    recorded: Mapping[tuple[str, str], set[str]],
    chunks: Mapping[str, str] | None = None,
) -> dict[str, dict[str, int]]:
    """{query id: {chunk id: grade}}; of several labels that meet one chunk the last counts, unsure is left out.

    Args:
        labels: what counts now, oldest first and adjudicated last, of one or several annotators.
        recorded: {(query id, chunk key): the ids it was labelled under}; used where `chunks` is None.
        chunks: {chunk id: text hash or ''} of the corpus at hand, where there is one.
    """
    by_text = _ids_by_text(chunks or {})
    newest: dict[tuple[str, str, str], tuple[int, Event]] = {}
    for place, label in enumerate(labels):
        known = recorded.get((label.query_id, label.chunk_key), {label.chunk_id})
        for chunk_id in known if chunks is None else _at_hand(label, chunks, by_text):
            newest[label.annotator, label.query_id, chunk_id] = (place, label)
    found: dict[str, dict[str, int]] = {}
    for (_, query_id, chunk_id), (_, label) in sorted(newest.items(), key=lambda item: item[1][0]):
        if label.grade is not None:  # an annotator's "unsure" hides their own older grade, not another's
            found.setdefault(query_id, {})[chunk_id] = label.grade
    return found


def _ids_by_text(chunks: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for chunk_id, text_hash in chunks.items():
        if text_hash:
            found.setdefault(text_hash, []).append(chunk_id)
    return found


def _at_hand(label: Event, chunks: Mapping[str, str], by_text: Mapping[str, list[str]]) -> Iterable[str]:
    same_text = by_text.get(label.text_hash, []) if label.text_hash else []
    either_unknown = label.chunk_id in chunks and not (label.text_hash and chunks[label.chunk_id])
    return [*same_text, label.chunk_id] if either_unknown else same_text
