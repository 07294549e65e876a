"""EntityFilter: drop or mark hits whose metadata names an entity that the query does not mean.

Which entities a query means is asked of a finder that is injected (an entities.TeamFilter has this form); hits without
the field, or with values the finder does not know, always stay.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from rag_core.errors import SpecError
from rag_core.stage import Filter, Judgement, resource, setting
from rag_core.types import Candidates, Counterfactual, Drop, Hit, Notice, Reason, Step

LOWEST = 50  # below this likeness says nothing; counterfactual thresholds are looked for from here, in tenths


class Explained(Protocol):
    """What a query was found to mean."""

    @property
    def teams(self) -> Sequence[str]:
        """The teams, sorted."""


class TeamFinder(Protocol):
    """Says which teams a query means."""

    @property
    def teams(self) -> Sequence[str]:
        """All teams there are."""

    def at(self, threshold: float) -> TeamFinder:
        """The same finder with another threshold for misspelt names."""

    def explain(self, query: str) -> Explained:
        """The teams a query means."""


@dataclass(frozen=True)
class EntityFilter(Filter):
    """Keep the chunks of the entities the query names, and those that belong to no entity."""

    field: str = setting("team", "the metadata key that names a chunk's entity, or a list of them", priority=2)
    on_none: str = setting(
        "keep", "what becomes of entities' chunks where the query names none", choices=("keep", "drop"), priority=3
    )
    action: str = setting("drop", "drop such chunks, or only mark them", choices=("drop", "mark"), priority=4)
    threshold: float = setting(
        80.0, "least likeness of a misspelt name", low=0, high=100, priority=1, step=1, usual=(60, 100)
    )
    entities: TeamFinder | None = resource()

    title: ClassVar[str] = "entities"
    drawer: ClassVar[str] = "entities"

    @classmethod
    def said(cls, step: Step) -> str:
        """Which entities the query means, and how many chunks of others were dropped or marked."""
        meant = ", ".join(step.facts.get("teams", ())) or "no entity"
        marked = step.facts.get("would_drop", 0) if step.left == step.entered else 0
        return f"the query means {meant}: {super().said(step)}" + (f", {marked} marked" if marked else "")

    def judge(self, candidates: Candidates) -> Judgement:
        """A reason for every hit that belongs only to entities the query does not mean; under `mark` it is a note."""
        meant, spelt = self._meant(candidates), self._spelt()
        reasons = [self._reason(self._owners(hit, spelt), meant) for hit in candidates.hits]
        facts = {"teams": meant, "would_drop": sum(reason is not None for reason in reasons)}
        notices = tuple(self._unknown(candidates.hits))
        if self.action == "mark":
            notes = [None if reason is None else reason.text for reason in reasons]
            return Judgement([None] * len(reasons), facts, notices, notes)
        return Judgement(reasons, facts, notices)

    def would_keep(self, before: Candidates, drop: Drop) -> tuple[Counterfactual, ...]:
        """Marking, keeping where no entity is named, or the threshold at which the query names the chunk's entity."""
        found = [Counterfactual("action", "mark", "action mark would have kept it")]
        if not self._meant(before):
            found.append(Counterfactual("on_none", "keep", "on_none keep would have kept it"))
        return (*found, self._nearest_threshold(before, self._owners(drop.hit, self._spelt())))

    def _finder(self) -> TeamFinder:
        if self.entities is None:
            raise SpecError(f"{self.name} has no structure, expected one (its drawer on the Bench)")
        return self.entities

    def _meant(self, candidates: Candidates) -> tuple[str, ...]:
        return tuple(self._finder().at(self.threshold).explain(candidates.query.text).teams)

    def _spelt(self) -> dict[str, str]:
        """Case-folded name → the name as the structure spells it."""
        return {team.casefold(): team for team in self._finder().teams}

    def _owners(self, hit: Hit, spelt: Mapping[str, str]) -> frozenset[str]:
        """The known entities a chunk names."""
        return frozenset(spelt[value] for value in entities_named(hit.chunk.metadata, self.field) if value in spelt)

    def _reason(self, owners: frozenset[str], meant: Sequence[str]) -> Reason | None:
        if not owners or owners & set(meant) or (not meant and self.on_none == "keep"):
            return None
        wanted = f"it means {', '.join(meant)}" if meant else "it names no entity"
        return Reason(f"belongs to {', '.join(sorted(owners))}, which the query does not name: {wanted}")

    def _unknown(self, hits: Iterable[Hit]) -> Iterable[Notice]:
        """A notice per hit whose field names something the structure does not have."""
        known = self._spelt()
        for hit in hits:
            strange = [value for value in entities_named(hit.chunk.metadata, self.field) if value not in known]
            if strange:
                text = f"{self.field} {strange[0][:80]!r} is no entity of the structure: the chunk was not judged by it"
                yield Notice(self.name, text, hit.chunk.id)

    def _nearest_threshold(self, before: Candidates, owners: frozenset[str]) -> Counterfactual:
        """The highest threshold, to a tenth, at which the query names one of the owners; lower ones name it too."""

        def missed(tenths: int) -> bool:
            return owners.isdisjoint(self._finder().at(tenths / 10).explain(before.query.text).teams)

        tenths = range(LOWEST * 10, int(self.threshold * 10) + 1)
        reached = bisect_left(tenths, True, key=missed)
        if not reached:
            return Counterfactual("threshold", None, "threshold: no value would have kept it")
        value = tenths[reached - 1] / 10
        return Counterfactual("threshold", value, f"threshold {value:.1f} would have kept it")


def entities_named(metadata: Mapping[str, Any], field: str) -> list[str]:
    """What a chunk's metadata names under a field, case folded; a list gives each of its texts, anything else none."""
    value = metadata.get(field)
    values = value if isinstance(value, list | tuple) else [value]
    return [item.casefold() for item in values if isinstance(item, str) and item.strip()]
