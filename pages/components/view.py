"""What Explore shows, as one value, and its way into the address and back.

A view is an eval set, a query and the settings of the stages on the page. The address holds the eval set's name, the
collection that is searched, the query's id or the question itself, and the pipeline as a compact spec, so that a copied
link restores the view. Nothing here draws.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pages.components import llm_view, search_view
from rag_core.errors import InputError
from rag_core.files import parse_json
from rag_core.filters.cut import DEFAULT_OFFSET, DEFAULT_RELATIVE_THRESHOLD, DEFAULT_THRESHOLD
from rag_core.filters.query_form import threshold_factor
from rag_core.retrieve.question import check_question
from rag_core.settings import chunk_filtering
from rag_core.spec import make_stage, parse_pipeline
from rag_core.stage import Pipeline

DEFAULT_SET = "recorded-combat"
ADAPTIVE = ("gap_threshold", "distance_offset", "min_results", "max_results", "gap_policy", "relative_offset")
ORDER = (*search_view.BEFORE, "QueryMust", "Requery", "AdaptiveGap", "LLMFilter", "TopK", "MultiHop")
"""The stages of the page, in the order in which they run; one source at most, Requery in place of QueryMust."""

LONGEST_ADDRESS = 4000
LARGEST_LIMIT = 1_000_000.0
MOST_READ = 10_000


@dataclass(frozen=True, slots=True)
class View:
    """One state of the page. A filter that is off keeps its settings for when it is switched on again.

    `collection` is searched live; '' means the lists that the eval set brings. A `question` of one's own stands in
    place of a query of the set.
    """

    eval_set: str = DEFAULT_SET
    query_id: str = ""
    collection: str = ""
    question: str = ""
    approximate: bool = False
    depth: int = 15
    where: str = ""
    file_filter: str = ""
    engine: str = "vector"
    rrf_k: float = 60.0
    dense_weight: float = 1.0
    lexical_weight: float = 1.0
    normalise: bool = False
    synonyms: bool = False
    max_hops: int = 0
    rules_on: bool = False
    mode: str = "token"
    refill_on: bool = False
    refill_k: int = 15
    max_iterations: int = 3
    strategy: str = "deepen"
    adaptive_on: bool = False
    gap_threshold: float = DEFAULT_THRESHOLD
    distance_offset: float = DEFAULT_OFFSET
    min_results: int = 2
    max_results: int = 15
    gap_policy: str = "largest"
    relative_offset: float | None = None
    query_specific: bool = False
    llm_on: bool = False
    judge: str = llm_view.SIMULATED
    error_rate: float = 0.1
    judge_depth: int = 0
    max_chunks: int = 25
    oversample_multiplier: float = field(default_factory=lambda: chunk_filtering().oversample_multiplier)
    min_relevance_threshold: float = field(default_factory=lambda: chunk_filtering().min_relevance_threshold)
    variant: str = "terse"
    check_order: bool = False
    llm_mode: str = "listwise"
    top_on: bool = False
    k: int = 15

    @property
    def adaptive(self) -> dict[str, Any]:
        """The settings of AdaptiveGap."""
        return {name: getattr(self, name) for name in (*ADAPTIVE, "query_specific")}

    def adaptive_for(self, question: str) -> dict[str, Any]:
        """The rule's numbers for one question, whose form may move the threshold: what the chart cuts by."""
        return {
            **{name: getattr(self, name) for name in ADAPTIVE},
            "gap_threshold": self.gap_threshold * self.factor(question),
        }

    def factor(self, question: str) -> float:
        """What the question's form makes of the threshold; 1 unless query_specific is on."""
        return threshold_factor(question) if self.query_specific else 1.0

    @property
    def refilled(self) -> bool:
        """Whether Requery runs."""
        return self.rules_on and self.refill_on

    @property
    def filtered(self) -> bool:
        """Whether any filter runs."""
        return self.rules_on or self.adaptive_on or self.llm_on or self.top_on

    def changed(self, **changes: Any) -> View:
        """The view with some fields changed; a change between absolute and relative policy takes that one's default."""
        policy = changes.get("gap_policy", self.gap_policy)
        if "gap_threshold" not in changes and (policy == "relative") != (self.gap_policy == "relative"):
            changes["gap_threshold"] = DEFAULT_RELATIVE_THRESHOLD if policy == "relative" else DEFAULT_THRESHOLD
        if policy != "relative":
            changes["relative_offset"] = None
        return replace(self, **changes)


def stages(view: View) -> list[dict[str, dict[str, Any]]]:
    """The source of a live view and the filters that are on, in order, with all settings: a pipeline spec."""
    requery = {"k": view.refill_k, "max_iterations": view.max_iterations, "strategy": view.strategy}
    chosen = {
        **search_view.settings_of(view),
        "QueryMust": {"mode": view.mode} if view.rules_on and not view.refilled else None,
        "Requery": {**requery, "rules": {"mode": view.mode}} if view.refilled else None,
        "AdaptiveGap": view.adaptive if view.adaptive_on else None,
        "LLMFilter": llm_view.settings_of(view) if view.llm_on else None,
        "TopK": {"k": view.k} if view.top_on else None,
    }
    return [{name: settings} for name in ORDER if (settings := chosen[name]) is not None]


def pipeline_of(view: View) -> Pipeline:
    """The filters the page runs on a list, and hops after them; where the list comes from is not among them."""
    kept = [stage for stage in stages(view) if not set(stage) & set(search_view.BEFORE)]
    return parse_pipeline(kept, name="explore")


def front_of(view: View, depth: int) -> Pipeline:
    """Where a live list comes from: the query's rewriting and the source, at a depth."""
    front = [stage for stage in stages(replace(view, depth=depth)) if set(stage) & set(search_view.BEFORE)]
    return parse_pipeline(front, name="explore")


def to_address(view: View) -> dict[str, str]:
    """The query parameters that restore the view."""
    live = {"collection": view.collection, "search": "approximate" if view.approximate else ""}
    asked = {"question": view.question} if view.question else {"query": view.query_id}
    usual = llm_view.write_judge(View())
    return {
        "set": view.eval_set,
        **{name: value for name, value in live.items() if view.collection and value},
        **asked,
        **({"judge": judge} if view.llm_on and (judge := llm_view.write_judge(view)) != usual else {}),
        "pipeline": compact(view),
    }


def compact(view: View) -> str:
    """The pipeline as short JSON: settings at their default are left out."""
    short: list[Any] = []
    for stage in stages(view):
        ((name, settings),) = stage.items()
        defaults = make_stage(name, {"gap_policy": settings["gap_policy"]} if name == "AdaptiveGap" else {}).settings()
        if name == "Requery":
            defaults["rules"] = defaults["rules"].settings()
        if "weights" in defaults:
            defaults["weights"] = list(defaults["weights"])
        kept = {key: value for key, value in settings.items() if value != defaults[key] or key == "gap_policy"}
        if kept.get("gap_policy") == "largest":
            del kept["gap_policy"]
        short.append({name: kept} if kept else name)
    return json.dumps(short, separators=(",", ":"))


def from_address(parameters: Mapping[str, str]) -> View:
    """The view a link names; what the link leaves out is as at first. An InputError says what cannot be shown."""
    if sum(map(len, parameters.values())) > LONGEST_ADDRESS:
        raise InputError(
            f"the link holds more than {LONGEST_ADDRESS} characters, expected a link copied from this page"
        )
    question = parameters.get("question", "")
    view = View(
        eval_set=parameters.get("set") or DEFAULT_SET,
        query_id="" if question else parameters.get("query", ""),
        collection=parameters.get("collection", ""),
        question=check_question(question) if question else "",
        approximate=parameters.get("search") == "approximate",
        **(llm_view.read_judge(parameters["judge"]) if parameters.get("judge") else {}),
    )
    spec = parameters.get("pipeline")
    return with_pipeline(view, parse_pipeline(parse_json(spec, "the link's pipeline"))) if spec else view


def with_pipeline(view: View, pipeline: Pipeline) -> View:
    """The view with the stages of a pipeline, where the page has them all; stages it lacks are off."""
    names = [stage.name for stage in pipeline.stages]
    one_only = ({"QueryMust", "Requery"}, set(search_view.ENGINES.values()))
    if names != [name for name in ORDER if name in names] or any(len(one & set(names)) > 1 for one in one_only):
        raise InputError(
            f"the link's pipeline is {', '.join(names)[:200]}, expected at most one each of {', '.join(ORDER)}, "
            "in this order, one source, and Requery only without QueryMust"
        )
    view = replace(view, rules_on=False, refill_on=False, adaptive_on=False, llm_on=False, top_on=False)
    view = replace(view, engine=View().engine, normalise=False, synonyms=False, max_hops=0)
    for stage in pipeline.stages:
        view = replace(view, **_fields(stage.name, stage.settings()))
    return view


def _fields(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The view's fields that a stage's settings set."""
    for key, value in settings.items():
        if isinstance(value, float) and value > LARGEST_LIMIT:
            raise InputError(f"{name}.{key} is {value!r}, expected at most {LARGEST_LIMIT:.0f} on this page")
    if name in (*search_view.BEFORE, "MultiHop"):
        other = [one for one in settings if one not in ("max_hops", *search_view.HELD) and _set(name, one, settings)]
        if other:
            raise InputError(f"{name}.{other[0]} is set, expected it at its default on this page")
        return search_view.fields_of(name, settings)
    if name == "Requery":
        walk = {"max_iterations": settings["max_iterations"], "strategy": settings["strategy"]}
        return {"rules_on": True, "refill_on": True, "refill_k": settings["k"], "mode": settings["rules"].mode, **walk}
    if name == "LLMFilter":
        return llm_view.fields_of(settings, make_stage(name).settings())
    switch = {"QueryMust": "rules_on", "AdaptiveGap": "adaptive_on", "TopK": "top_on"}[name]
    return {switch: True, **{key: value for key, value in settings.items() if key in View.__slots__}}


def _set(name: str, setting: str, settings: Mapping[str, Any]) -> bool:
    """Whether a setting differs from its default."""
    return bool(settings[setting] != make_stage(name).settings()[setting])
