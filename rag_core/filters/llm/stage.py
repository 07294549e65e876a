"""LLMFilter: a language model keeps, expands or discards each candidate.

Two steps under one name. A judge that is handed in annotates (it costs, and its answers are kept), the filter decides
on the annotations: another floor or cap is decided anew on the same answers. Prompts, answers, references and what is
told of a step are in the modules beside this one; whatever fails, the list that leaves is not empty for that reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, ClassVar

from rag_core.filters.cutoff import cosine_similarity
from rag_core.filters.llm.asking import Asking, CandidateVerdict, ask
from rag_core.filters.llm.deciding import FAILURE, FLOOR, OVERSAMPLE, DecidedHits, decide
from rag_core.filters.llm.prompts import DEFAULT, FILE_KEYS, PromptSettings, make_prompts, read_variant, reordered
from rag_core.filters.llm.reach import ChunkLookup
from rag_core.llm.endpoint import NO_ENDPOINT
from rag_core.llm.judge import Judge
from rag_core.llm.prompt import Prompt
from rag_core.settings import chunk_filtering
from rag_core.stage import Stage, resource, setting
from rag_core.text import counted
from rag_core.types import Candidates, Counterfactual, Drop, Fallback, Hit, Metric, Notice, Reason, Step


def fallbacks(name: str, asked: Asking, known: Sequence[CandidateVerdict], made: DecidedHits) -> tuple[Fallback, ...]:
    """Why candidates were left undecided and what became of them; none where every prompt was answered."""
    if not asked.failures:
        return ()
    undecided = sum(bool(verdict.failure) for verdict in known)
    text = (
        f"{'; '.join(asked.failures)[:1000]}: {undecided} of {len(known)} candidates undecided, "
        f"{made.kept_by_fallback} of them kept in distance order, unexpanded"
    )
    return (Fallback(name, text),)


def notices(
    name: str, first: Sequence[Hit], metric: Metric, hits: Sequence[Hit], made: DecidedHits, floor: float
) -> tuple[Notice, ...]:
    """What a reader must know: floor skipped, empty on the model's word, references not found, flips.

    `first` are the hits within the oversample, `hits` those of them that were judged.
    """
    unknown = sum(cosine_similarity(hit, metric) is None for hit in first)
    told = []
    if unknown:
        told.append(
            f"similarity floor skipped for {unknown} of {len(first)} candidates: "
            f"no similarity given and the metric is {metric}"
        )
    if first and not hits:
        told.append(f"no candidate reaches the floor of {floor:g}: the model was not asked")
    elif hits and not made.kept:
        told.append(f"the list is empty because the model kept none of {len(hits)} candidates")
    if made.missing:
        told.append(f"{made.missing} referenced chunks were not found")
    flips = [
        Notice(name, f"{verdict_text(verdict)}: the decision depends on the order", hit.chunk.id)
        for hit, verdict in made.flipped
    ]
    return (*(Notice(name, text) for text in told), *flips)


def verdict_text(verdict: CandidateVerdict) -> str:
    """The two decisions of a verdict, as words."""
    first = verdict.decision.action if verdict.decision else "not mentioned"
    second = verdict.second.action if verdict.second else "not mentioned"
    return f"{first}, in the other order {second}"


def facts_of(
    candidates: Candidates, known: Sequence[CandidateVerdict], made: DecidedHits, asked: Asking
) -> dict[str, Any]:
    """The stats of the step."""
    entered, base = len(candidates.hits), len(made.kept) - made.added
    files = {hit.chunk.metadata.get(key) for hit in candidates.hits for key in FILE_KEYS[:2]} - {None}
    return {
        "llm_intelligence_enabled": True,
        "original_count": entered,
        "processed_count": len(known),
        "filtered_count": base,
        "reduction_ratio": 1 - base / entered if entered else 0.0,
        "decisions": made.decisions,
        "causes": {key[0]: cause for key, cause in made.causes.items()},
        "total_found": entered,
        "files_searched": len(files),
        "search_time_ms": sum(step.milliseconds for step in candidates.steps),
        "error": "; ".join(asked.failures)[:1000],
        "decided": sum(verdict.decision is not None for verdict in known),
        "not_mentioned": sum(not verdict.decision and not verdict.failure for verdict in known),
        "undecided": sum(bool(verdict.failure) for verdict in known),
        "kept_by_fallback": made.kept_by_fallback,
        "expanded": made.expanded,
        "added": made.added,
        "references_missing": made.missing,
        "order_flips": len(made.flipped),
        **asked.facts,
    }


MODES = ("listwise", "isolated")
NO_JUDGE = f"{NO_ENDPOINT}, or use the simulated judge"
UNASKED = Reason("not judged: the model was asked under other settings")
_REMEMBERED = 2000  # lists whose verdicts one stage object remembers


@dataclass(frozen=True)
class LLMFilter(Stage):
    """Ask a model about each candidate: KEEP it, EXPAND it by its references, or DISCARD it."""

    enabled: bool = setting(factory=lambda: chunk_filtering().enabled, help="off: the list passes as it is")
    max_chunks: int = setting(
        25,
        "most chunks kept, before expansion",
        low=1,
        high=1000,
        priority=1,
        unit="chunks",
        step=1,
        usual=(5, 50),
        cheap=True,  # this one, the floor and the cap of EXPAND are decided on the answers there are
    )
    oversample_multiplier: float = setting(
        factory=lambda: chunk_filtering().oversample_multiplier,
        help="how many times max_chunks are judged",
        low=1,
        high=20,
        priority=2,
        step=0.5,
        usual=(1, 5),
    )
    min_relevance_threshold: float = setting(
        factory=lambda: chunk_filtering().min_relevance_threshold,
        help="least cosine similarity to be judged at all",
        low=-1,
        high=1,
        priority=3,
        unit="cosine similarity",
        step=0.01,
        usual=(0.2, 0.7),
        cheap=True,
    )
    timeout_ms: int = setting(
        factory=lambda: chunk_filtering().llm_timeout_ms,
        help="for the whole step",
        low=1,
        high=3_600_000,
        unit="ms",
        step=1000,
        usual=(1000, 60_000),
    )
    max_prompt_tokens: int = setting(
        factory=lambda: chunk_filtering().max_prompt_tokens,
        help="largest prompt, estimated",
        low=500,
        high=1_000_000,
        unit="tokens",
        step=500,
        usual=(500, 32_000),
    )
    model: str = setting("", "the model's name; empty: the endpoint's own")
    variant: str = setting(DEFAULT, "the prompt's wording: a file of the prompts folder", priority=4)
    mode: str = setting("listwise", "several candidates per call, or one (isolated)", choices=MODES, priority=5)
    concurrency: int = setting(4, "calls under way at once", low=1, high=64, unit="calls", step=1)
    cache: bool = setting(True, "use stored answers; off: ask anew")
    max_total_chunks: int = setting(
        50, "most chunks one EXPAND brings", low=0, high=1000, unit="chunks", step=1, usual=(0, 100), cheap=True
    )
    min_coverage: float = setting(0.0, "least share of candidates an answer must mention", low=0, high=1, step=0.05)
    check_order: bool = setting(False, "ask again in reverse order and flag what changes; twice the calls")
    judge: Judge | None = resource()
    chunks: ChunkLookup | None = resource()
    asked: Asking | None = resource(
        needed=False
    )  # verdicts of an earlier asking: they are decided on, and nobody is asked
    memory: dict[Any, Asking] = field(init=False, default_factory=dict, compare=False, repr=False)

    kind: ClassVar[str] = "filter"
    costly: ClassVar[bool] = True
    title: ClassVar[str] = "LLM filter"
    drawer: ClassVar[str] = "judge"

    @classmethod
    def said(cls, step: Step) -> str:
        """What the model judged, what was kept and brought, in how many calls; or that the filter is off."""
        facts = step.facts
        if "llm_intelligence_enabled" not in facts:
            return super().said(step)
        if not facts["llm_intelligence_enabled"]:
            return "switched off: the list passes as it is"
        judged = f"{facts['processed_count']} judged, {facts['filtered_count']} kept"
        brought = f", {facts['added']} brought by references" if facts["added"] else ""
        calls = counted(facts.get("prompts", 0), "call", "calls")
        return f"{judged}{brought}, {calls}" + (", fell back" if facts["fallback_used"] else "")

    @classmethod
    def change(cls, step: Step) -> str:
        """What it took away, and what references brought."""
        added = step.facts.get("added", 0)
        return f"−{step.entered - step.left + added}" + (f" +{added} by references" if added else "")

    def __post_init__(self) -> None:
        super().__post_init__()
        read_variant(self.variant)

    @property
    def oversample(self) -> int:
        """How many candidates are judged at most."""
        return int(self.max_chunks * self.oversample_multiplier + 1e-9)

    def apply(self, candidates: Candidates) -> tuple[Candidates, Mapping[str, Any]]:
        """Ask the judge, unless verdicts were handed in, and decide."""
        if not self.enabled:
            return candidates, {"llm_intelligence_enabled": False, "fallback_used": False}
        return self.decide(candidates, self.asked or self.ask(candidates))

    def again(self, candidates: Candidates) -> Candidates:
        """The stage on a list it has seen, without asking again."""
        asked = self.asked or self.memory.get(candidates.identity)
        if asked is None or not self.enabled:
            return self(candidates)
        return self.decide(candidates, asked)[0]

    def settled(self, candidates: Candidates) -> LLMFilter:
        """The stage with its verdicts on this list, asked for now where it has not seen the list."""
        if not self.enabled:
            return self
        return replace(self, asked=self.asked or self.memory.get(candidates.identity) or self.ask(candidates))

    def judged(self, candidates: Candidates) -> tuple[Hit, ...]:
        """The hits that are asked about: the first of the list, without those under the floor."""
        first = candidates.hits[: self.oversample]
        return tuple(hit for hit in first if self._below(hit, candidates) is None)

    def prompts(self, candidates: Candidates) -> list[Prompt]:
        """What is sent for the list: every call of it, before any is made."""
        hits = self.judged(candidates)
        settings = PromptSettings(
            read_variant(self.variant), self.max_chunks, self.max_prompt_tokens, self.mode == "isolated"
        )
        similarities = [cosine_similarity(hit, candidates.metric) for hit in hits]
        prompts = make_prompts(candidates.query, hits, settings, similarities)
        if self.check_order and self.mode == "listwise":
            prompts += [reordered(one, settings, hits, similarities) for one in prompts if len(one.chunks) > 1]
        return prompts

    def ask(self, candidates: Candidates, prompts: Sequence[Prompt] | None = None) -> Asking:
        """The judge's verdicts on the judged hits, in their order, within the time-out; never raises for a fault.

        `prompts` are this stage's own for the list, where they are at hand.
        """
        started = perf_counter()
        hits = self.judged(candidates)
        if self.judge is None:
            asked = Asking(tuple(CandidateVerdict(failure=NO_JUDGE) for _ in hits), {}, (NO_JUDGE,) if hits else ())
        else:
            prompts = self.prompts(candidates) if prompts is None else prompts
            asked = ask(
                self.judge,
                prompts,
                count=len(hits),
                seconds=max(0.001, self.timeout_ms / 1000 - (perf_counter() - started)),
                concurrency=self.concurrency,
                model=self.model,
                cache=self.cache,
                min_coverage=self.min_coverage,
            )
        judge = self.judge.name if self.judge else "none"
        facts = {**asked.facts, "judge": judge, "processing_time_ms": (perf_counter() - started) * 1000}
        asked = replace(asked, facts=facts, keys=tuple(hit.key for hit in hits))
        while len(self.memory) >= _REMEMBERED:
            self.memory.pop(next(iter(self.memory)))
        self.memory[candidates.identity] = asked
        return asked

    def decide(self, candidates: Candidates, asked: Asking) -> tuple[Candidates, dict[str, Any]]:
        """The list after the verdicts of `asked`; asks nobody.

        Other settings than those asked with are decided on the same verdicts, and the facts say so; a hit that only
        these settings let in was never judged and goes.
        """
        verdicts = dict(zip(asked.keys, asked.verdicts, strict=True))
        wanted = self.judged(candidates)
        hits = [hit for hit in wanted if hit.key in verdicts]
        known = [verdicts[hit.key] for hit in hits]
        made = decide(hits, known, candidates.hits, self.max_chunks, self.max_total_chunks, self.chunks)
        for hit in wanted:
            if hit.key not in verdicts:
                made.drop(hit.key, FAILURE, UNASKED)
        for position, hit in enumerate(candidates.hits, 1):
            if position > self.oversample:
                made.drop(hit.key, OVERSAMPLE, Reason("beyond the oversample", position, self.oversample))
            elif (below := self._below(hit, candidates)) is not None:
                made.drop(hit.key, FLOOR, below)
        drops = self._drops(candidates, made)
        fallback = fallbacks(self.name, asked, known, made)
        first = candidates.hits[: self.oversample]
        after = replace(
            candidates,
            hits=tuple(hit.noted(self.name, made.notes[hit.key]) for hit in made.kept),
            drops=candidates.drops + drops,
            notices=candidates.notices
            + notices(self.name, first, candidates.metric, hits, made, self.min_relevance_threshold),
            fallbacks=candidates.fallbacks + fallback,
        )
        again = {"stored_decisions": tuple(hit.key for hit in wanted) != asked.keys, "fallback_used": bool(fallback)}
        return after, {**facts_of(candidates, known, made, asked), **again}

    def _below(self, hit: Hit, candidates: Candidates) -> Reason | None:
        """Why the hit is under the floor, None where it is not or nothing is known of its similarity."""
        similarity = cosine_similarity(hit, candidates.metric)
        if similarity is None or similarity >= self.min_relevance_threshold - 1e-9:
            return None
        text = f"cosine similarity {similarity:.4f} < {self.min_relevance_threshold:.4f}: not judged"
        return Reason(text, similarity, self.min_relevance_threshold)

    def _drops(self, candidates: Candidates, made: DecidedHits) -> tuple[Drop, ...]:
        """Every hit that came in and does not go on under its own key, in order, with its one reason."""
        drops = []
        for hit in candidates.hits:
            reason = made.reasons.get(hit.key)
            if reason is not None:
                brought = made.brought.get(hit.chunk.id)
                reason = replace(reason, text=f"{reason.text}; in again, {brought}") if brought else reason
                drops.append(Drop(hit.noted(self.name, reason.text), self.name, reason))
        return tuple(drops)

    def would_keep(self, before: Candidates, drop: Drop) -> tuple[Counterfactual, ...]:
        """The multiplier, floor or cap that would have let the chunk be judged or kept; none against the model."""
        position = [hit.key for hit in before.hits].index(drop.hit.key) + 1
        if position > self.oversample:
            value = position / self.max_chunks
            text = f"oversample_multiplier {value:.2f} would have had it judged"
            return (Counterfactual("oversample_multiplier", value, text),)
        below = self._below(drop.hit, before)
        if below is not None:
            text = f"min_relevance_threshold {below.value:.4f} would have had it judged"
            return (Counterfactual("min_relevance_threshold", below.value, text),)
        if drop.reason.threshold is not None:
            value = int(drop.reason.value or 0)
            return (Counterfactual("max_chunks", value, f"max_chunks {value} would have kept it"),)
        return (Counterfactual("max_chunks", None, "no setting would have kept it: the model decided"),)
