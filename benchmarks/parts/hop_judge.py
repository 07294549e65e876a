"""What hops bring where their judge is right: a judge that knows the labelled titles, in place of a model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rag_core.llm.answer import Answer, Price
from rag_core.llm.prompt import Prompt
from rag_core.llm.simulated import Simulated
from rag_core.types import Case, Chunk


@dataclass(frozen=True)
class SimulatedHopJudge(Simulated):
    """Names the labelled titles that the chunks shown do not have; it can answer once there are none."""

    titles: Mapping[str, Sequence[str]] = field(repr=False)  # query id, or its text → titles an answer needs
    price: Price | None = None

    @property
    def name(self) -> str:
        """Always says that it is simulated."""
        return "simulated hop judge that knows the labelled titles"

    def _answer(self, prompt: Prompt) -> Answer:
        needed = self.titles.get(prompt.query.id) or self.titles.get(prompt.query.text) or ()
        shown = {chunk.title for chunk in prompt.chunks}
        missing = [title for title in needed if title not in shown]
        reasoning = (
            f"{len(needed) - len(missing)} of {len(needed)} labelled titles are there" if needed else "no labels"
        )
        quoted = ", ".join(f'"{title}"' if '"' not in title else title for title in missing)
        said = {"can_answer": not missing, "reasoning": reasoning, "missing_query": quoted}
        return Answer(text=json.dumps(said, ensure_ascii=False), finish_reason="stop")


def labelled_titles(cases: Iterable[Case], chunks: Iterable[Chunk], min_grade: int = 1) -> dict[str, list[str]]:
    """Query id and query text → the titles of its chunks with at least that grade, the best grades first.

    Where a query has chunks of the highest grade in its labels, only those are needed.
    """
    by_id = {chunk.id: chunk.title for chunk in chunks}
    found: dict[str, list[str]] = {}
    for case in cases:
        best = max(case.grades.values(), default=0)
        needed = [one for one, grade in case.grades.items() if grade >= max(best, min_grade) and one in by_id]
        found[case.query.id] = found[case.query.text] = list(dict.fromkeys(by_id[one] for one in needed))
    return found
