"""What chunks refer to, breadth first: which further ids they bring, from which one, how many steps away.

A pure function over ids. Which chunks deserve expansion is a filter's decision; fetching their texts is the caller's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from rag_core.errors import InputError


def expand(
    start_ids: Iterable[str], refs: Mapping[str, Sequence[str]], depth: int, cap: int
) -> list[tuple[str, str, int]]:
    """(id, from id, steps) of every chunk within `depth` references of a start chunk, nearest first, at most `cap`.

    Starts are not in the result, no id is in it twice, and `from id` is the chunk whose reference found it first:
    starts in their order, references in theirs. Cycles end where they close. An id that `refs` lacks refers to
    nothing, so one that does not exist may be in the result. An InputError for a negative depth or cap.
    """
    if depth < 0 or cap < 0:
        raise InputError(f"expansion has depth {depth} and cap {cap}, expected both at least 0")
    starts = tuple(dict.fromkeys(start_ids))
    seen = set(starts)
    pending = deque((one, 0) for one in starts)
    found: list[tuple[str, str, int]] = []
    while pending:
        origin, steps = pending.popleft()
        if steps == depth:
            break
        for target in refs.get(origin, ()):
            if len(found) == cap:
                return found
            if target not in seen:
                seen.add(target)
                found.append((target, origin, steps + 1))
                pending.append((target, steps + 1))
    return found
