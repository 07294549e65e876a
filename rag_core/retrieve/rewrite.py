"""NormaliseKeywords and ExpandSynonyms: the question in the documents' words, each for one side of the search.

They stand before the source and change the query only: capitals for the embedding side, official terms for the word
side. Rules, filters and judges read the question as it was asked. The lists are handed in (word_lists.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from rag_core.retrieve.question import check_question
from rag_core.retrieve.word_lists import Keywords, Synonyms
from rag_core.stage import Stage, resource
from rag_core.types import Candidates, Query, Step

_RECORDED = {"skipped": "recorded list: the source was not asked"}


class Rewrite(Stage):
    """A stage that gives one side of the search another text; the question as it was put stays."""

    kind: ClassVar[str] = "rewrite"
    drawer: ClassVar[str] = "words"

    @classmethod
    def said(cls, step: Step) -> str:
        """Whether the query was rewritten, and from how many known words."""
        facts = step.facts
        if "known" not in facts:
            return str(facts.get("skipped") or super().said(step))
        done = "the query is rewritten" if facts.get("found") or facts.get("added") else "nothing found"
        return f"{done} among {facts['known']:,} known"

    @classmethod
    def details(cls, step: Step) -> tuple[str, ...]:
        """The text that its side of the search gets."""
        sides = (side for side in ("dense", "lexical") if f"{side}_query" in step.facts)
        return tuple(f"{side} query: {step.facts[f'{side}_query']}" for side in sides)

    @classmethod
    def change(cls, step: Step) -> str:
        """Whether the query is another one now: it brings and drops no chunk."""
        return "rewritten" if step.facts.get("found") or step.facts.get("added") else ""


@dataclass(frozen=True)
class NormaliseKeywords(Rewrite):
    """Give keywords of the documents' headers their capitals, in the query that is embedded."""

    keywords: Keywords | None = resource()

    title: ClassVar[str] = "keywords"

    def apply(self, candidates: Candidates) -> tuple[Candidates, Mapping[str, Any]]:
        """The query with its `dense_text`; facts: that text, the keywords found, how many are known."""
        if candidates.recorded:
            return candidates, candidates.searched.get(self.name, _RECORDED)
        known = self.keywords or Keywords()
        query = candidates.query
        text, found = known.normalised(query.dense_text or query.text)
        facts = {"dense_query": text, "found": ", ".join(found), "known": len(known.names)}
        return replace(candidates, query=replace(query, dense_text=text)), facts


@dataclass(frozen=True)
class ExpandSynonyms(Rewrite):
    """Append official terms for users' words, in the query that is searched by words; what was asked stays."""

    synonyms: Synonyms | None = resource()

    title: ClassVar[str] = "synonyms"

    def apply(self, candidates: Candidates) -> tuple[Candidates, Mapping[str, Any]]:
        """The query with its `lexical_text`; facts: that text, what was added for which word, how many are known."""
        if candidates.recorded:
            return candidates, candidates.searched.get(self.name, _RECORDED)
        known = self.synonyms or Synonyms()
        query = candidates.query
        text = query.lexical_text or query.text
        added = known.expansions(text)
        expanded = " ".join([text, *(term for term, _ in added)])
        said = ", ".join(f"{word} → {term}" for term, word in added)
        facts = {"lexical_query": expanded, "added": said, "known": len(known.terms)}
        return replace(candidates, query=replace(query, lexical_text=expanded)), facts


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A question as it was asked, and as each side of the search gets it."""

    asked: str
    dense_text: str
    lexical_text: str
    found: tuple[str, ...]  # keywords, as they stand in the dense text
    added: tuple[tuple[str, str], ...]  # (official term, the user's word that stands for it)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "added": [{"term": term, "word": word} for term, word in self.added]}

    def to_text(self) -> str:
        """A line a side of the search, with the words that made the difference."""
        said = ", ".join(f"{word} → {term}" for term, word in self.added) or "no synonym"
        dense = f"dense:   {self.dense_text}  ({', '.join(self.found) or 'no keyword'})"
        return "\n".join([f"asked:   {self.asked}", dense, f"lexical: {self.lexical_text}  ({said})"])


def rewritten(text: str, keywords: Keywords, synonyms: Synonyms) -> Rewritten:
    """What the two stages make of a question, with nothing searched; an InputError where it is no question."""
    asked = check_question(text)
    query = ExpandSynonyms(synonyms)(NormaliseKeywords(keywords)(Candidates(Query("query", asked)))).query
    dense, lexical = query.dense_text or asked, query.lexical_text or asked
    return Rewritten(asked, dense, lexical, keywords.normalised(asked)[1], synonyms.expansions(asked))
