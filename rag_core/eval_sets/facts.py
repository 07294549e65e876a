"""What eval sets hold, and how two of them differ: queries, labels in their files, chunks. Reads only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rag_core.errors import InputError
from rag_core.eval_sets.reading import SHIPPED, EvalSet, folders, load_set, read_set
from rag_core.eval_sets.writing import guidelines
from rag_core.files import lines, read_text
from rag_core.records import parse_json_line
from rag_core.text import some
from rag_core.types import Case, Query

RECORDED, CORPUS, QUERIES_ONLY = "recorded lists", "corpus", "queries only"

LOG = "log"
"""What questions taken from a log are marked with."""


@dataclass(frozen=True)
class SetFacts:
    """One eval set in numbers. `judged` queries have a label; `problem`: it cannot be read."""

    name: str
    title: str = ""
    own: bool = False
    holds: str = ""
    queries: int = 0
    judged: int = 0
    labels: int = 0
    split: Mapping[str, int] = field(default_factory=dict)
    tags: Mapping[str, int] = field(default_factory=dict)
    guidelines: bool = False
    problem: str = ""

    def to_text(self) -> str:
        """The set with its counts, in one line."""
        if self.problem:
            return f"{self.name}: {self.problem}"
        split = ", ".join(f"{count} {side}" for side, count in self.split.items()) or "no split"
        tags = f"{len(self.tags)} tags" if self.tags else "no tags"
        counts = f"{self.queries} queries ({self.judged} judged, {self.labels} labels)"
        return f"{self.name}: {counts}, {split}, {tags}, {self.holds}{'' if self.own else ', shipped'}"


def as_it_is(eval_set: EvalSet) -> EvalSet:
    """The set with the labels in its files alone."""
    return eval_set


def list_sets(workspace: Path, labelled: Callable[[EvalSet], EvalSet] = as_it_is) -> list[SetFacts]:
    """Every eval set, shipped ones first; one that cannot be read is listed with its problem.

    `labelled` lays over a set what labels were given elsewhere.
    """
    return [facts_of(name, folder, labelled) for name, folder in folders(workspace).items()]


def facts_of(name: str, folder: Path, labelled: Callable[[EvalSet], EvalSet] = as_it_is) -> SetFacts:
    """The numbers of the set in a folder."""
    own = folder.parent != SHIPPED
    try:
        found = labelled(read_set(folder))
    except InputError as error:
        return SetFacts(name, own=own, problem=str(error))
    queries = [case.query for case in found.cases]
    return SetFacts(
        name=name,
        title=found.title,
        own=own,
        holds=RECORDED if found.cases and found.recorded else CORPUS if found.corpus else QUERIES_ONLY,
        queries=len(queries),
        judged=sum(bool(case.grades) for case in found.cases),
        labels=sum(len(case.grades) for case in found.cases),
        split=dict(sorted(Counter(_split(query) for query in queries if _split(query)).items())),
        tags=dict(sorted(Counter(tag for query in queries for tag in query.tags).items())),
        guidelines=bool(guidelines(folder)),
    )


def _split(query: Query) -> str:
    return str(query.metadata.get("split") or "")


@dataclass(frozen=True)
class Changes:
    """What the second has that the first has not, the other way round, and what both have differently."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


@dataclass(frozen=True)
class SetDiff:
    """How a second eval set differs from a first. `labels` are (query id, chunk id), of queries that both hold.

    `fields` says per changed query what differs: query, tags, split. `chunks` is None where neither holds any.
    """

    first: str
    second: str
    queries: Changes
    fields: Mapping[str, tuple[str, ...]]
    labels_added: tuple[tuple[str, str], ...]
    labels_removed: tuple[tuple[str, str], ...]
    labels_changed: tuple[tuple[str, str, int, int], ...]
    chunks: Changes | None

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        labels = self.labels_added or self.labels_removed or self.labels_changed
        return not (self.queries or labels or self.chunks)

    def to_text(self) -> str:
        """What differs, a line each with its count and first ids."""
        if self.same:
            return f"{self.first} and {self.second} hold the same"
        rows: list[tuple[str, Sequence[str]]] = [
            ("queries added", self.queries.added),
            ("queries removed", self.queries.removed),
            ("queries changed", [f"{name} ({', '.join(what)})" for name, what in self.fields.items()]),
            ("labels added", [f"{query} {chunk}" for query, chunk in self.labels_added]),
            ("labels removed", [f"{query} {chunk}" for query, chunk in self.labels_removed]),
            ("labels changed", [f"{query} {chunk} {old}→{new}" for query, chunk, old, new in self.labels_changed]),
        ]
        for what in ("added", "removed", "changed") if self.chunks else ():
            rows.append((f"chunks {what}", getattr(self.chunks, what)))
        return "\n".join(f"{len(ids)} {title}: {some(ids, 20)}" for title, ids in rows if ids)


def diff_sets(first: str, second: str, workspace: Path) -> SetDiff:
    """How the second set differs from the first: queries and chunks by id, labels by both."""
    one, other = load_set(first, workspace), load_set(second, workspace)
    before, after = ({case.query.id: case for case in found.cases} for found in (one, other))
    fields = {name: _differing(before[name].query, after[name].query) for name in before if name in after}
    fields = {name: what for name, what in fields.items() if what}
    old = {(name, chunk): grade for name in before if name in after for chunk, grade in before[name].grades.items()}
    new = {(name, chunk): grade for name in after if name in before for chunk, grade in after[name].grades.items()}
    queries = Changes(_missing(after, before), _missing(before, after), tuple(fields))
    return SetDiff(
        first=one.name,
        second=other.name,
        queries=queries,
        fields=fields,
        labels_added=tuple(pair for pair in new if pair not in old),
        labels_removed=tuple(pair for pair in old if pair not in new),
        labels_changed=tuple((*pair, old[pair], new[pair]) for pair in old if pair in new and old[pair] != new[pair]),
        chunks=_chunk_changes(_chunks(one), _chunks(other)),
    )


def _missing(of: Iterable[str], beside: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(name for name in of if name not in beside)


def _differing(one: Query, other: Query) -> tuple[str, ...]:
    pairs = {
        "query": (one.text, other.text),
        "tags": (sorted(one.tags), sorted(other.tags)),
        "split": (_split(one), _split(other)),
    }
    return tuple(name for name, (old, new) in pairs.items() if old != new)


def chunk_texts(eval_set: EvalSet) -> dict[str, str]:
    """Chunk id → text of all chunks that come with a set, in its corpus or its lists."""
    return {chunk_id: text for chunk_id, (_, text) in _chunks(eval_set).items()}


def _chunks(eval_set: EvalSet) -> dict[str, tuple[str, str]]:
    """Chunk id → title and text, of the corpus, else of the recorded lists."""
    if eval_set.corpus is not None:
        rows = (
            parse_json_line(line, f"{eval_set.corpus} line {number}")
            for number, line in lines(read_text(eval_set.corpus))
        )
        return {str(row.get("id")): (str(row.get("title") or ""), str(row.get("text") or "")) for row in rows}
    hits = (hit for case in eval_set.cases if case.candidates for hit in case.candidates.hits)
    return {hit.chunk.id: (hit.chunk.title, hit.chunk.text) for hit in hits}


def _chunk_changes(old: Mapping[str, tuple[str, str]], new: Mapping[str, tuple[str, str]]) -> Changes | None:
    if not old and not new:
        return None
    changed = tuple(name for name in old if name in new and old[name] != new[name])
    return Changes(_missing(new, old), _missing(old, new), changed)


def made_counts(cases: Iterable[Case]) -> dict[str, int]:
    """How many of the cases are generated, and how many are from a log."""
    origins = Counter(case.query.made_from for case in cases)
    return {"generated": origins.total() - origins[""] - origins[LOG], "from_log": origins[LOG]}


def made_said(cases: Iterable[Case]) -> str:
    """`made_counts` in words, '' where people asked all of them here."""
    counts = made_counts(cases)
    said = [f"{counts['generated']:,} generated"] if counts["generated"] else []
    return ", ".join([*said, *([f"{counts['from_log']:,} from a log"] if counts["from_log"] else [])])
