"""Which chunks a learned model expects to be relevant: its signals are computed on the list that is handed over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_core.filters.chances import chances_of, keep_by, signals


def unlikely(
    settings: Mapping[str, Any],
    query: str,
    given: Sequence[Mapping[str, Any]],
    distances: Sequence[Any],
    left: Sequence[int],
) -> dict[int, str]:
    """Why the chunks go that are not among the likeliest; chunks of another origin pass."""
    judged = [at for at in left if not given[at].get("origin")]
    looked, model = judged[: settings["max_results"]], settings["parameters"]
    falls: list[Any] = [distances[at] for at in looked]
    if all(fall is None for fall in falls):
        kinds = ("score", "rrf", "similarity", "bm25")
        kind = next((kind for kind in kinds if any(given[at].get(kind) is not None for at in looked)), "")
        falls = [None if given[at].get(kind) is None else -given[at][kind] for at in looked]
    last = max((fall for fall in falls if fall is not None), default=0.0)
    falls = [last if fall is None else fall for fall in falls]
    chunks = [(given[at].get("title") or "", given[at].get("text") or "") for at in looked]
    chances = chances_of(signals(query, chunks, falls), model["signals"], model["intercept"])
    kept, lowest = keep_by(chances, settings["min_results"], settings["recall"])
    stays = {looked[at] for at in kept}
    gone = {at: f"behind the first {settings['max_results']}" for at in judged[len(looked) :]}
    for at, chance in zip(looked, chances):  # noqa: B905  Python 3.9
        if at not in stays:
            gone[at] = f"chance {chance:.3f} < {lowest:.3f}"
    return gone
