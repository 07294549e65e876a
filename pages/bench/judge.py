"""The judge's drawer: who answers the LLM filter on this Bench, what it said of the question in sight, and asking it.

Nothing is paid by looking. An endpoint's model is asked when a person presses the button and at no other moment; until
then, and ever after, its stored answers are read. The simulated judge answers from the labels: it costs nothing, says
on its card what it is, and no verdict stands on it. Names of endpoints and models and all messages are foreign text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from pages import state
from pages.bench import sight
from pages.bench.sight import SeenList
from pages.bench.taking import begin
from pages.components import jobs, say, who
from rag_core.errors import InputError, WinnowError
from rag_core.filters.llm.stage import LLMFilter
from rag_core.judged.entrants import Bench, Entrant, calls_of, endpoint_judge, limits_of
from rag_core.llm.client import check_connection
from rag_core.llm.endpoint import NO_ENDPOINT, endpoint_of, endpoints
from rag_core.llm.judge import judge_of
from rag_core.llm.run import Progress, answer_all, preview
from rag_core.llm.simulated import SimulatedJudge
from rag_core.llm.store import FILE, AnswerStore
from rag_core.project.asking import bench_of
from rag_core.project.deeds import ASK_MODEL
from rag_core.project.session import Session
from rag_core.settings import ModelSettings
from rag_core.stage import Pipeline
from rag_core.text import counted
from rag_core.types import Case, Step

SIMULATED = "simulated"
CHOICE, CHECKED, KIND = "judge.choice", "judge.checked", "judge"
CURRENCY = "USD"  # providers list their prices in it; who sets prices in another reads costs in that one
NOBODY_TO_ASK = f"{NO_ENDPOINT[0].upper()}{NO_ENDPOINT[1:]}, then start again."
SIMULATED_HELP = "It is no model: it says how good a judge would have to be, before one is paid."
THIS, DEV, HELD_OUT = "this question", "dev", "held-out"


@dataclass(frozen=True)
class JudgeChoice:
    """Who judges in this browser session, and how often the simulated judge errs."""

    name: str = ""  # simulated, or an endpoint's; '': the first endpoint, else simulated
    error_rate: float = 0.1


class LabelsOf(Mapping[str, Mapping[str, int]]):
    """Query id → grades of a session's questions, and of a person's own in sight; read when first asked for."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._grades: dict[str, Mapping[str, int]] | None = None

    @property
    def grades(self) -> Mapping[str, Mapping[str, int]]:
        """All of them."""
        if self._grades is None:
            own = sight.question_in_sight(self.session, state.current().question)
            cases = [*self.session.cases, *([own] if own is not None else [])]
            self._grades = {case.query.id: case.grades for case in cases}
        return self._grades

    def __getitem__(self, query_id: str) -> Mapping[str, int]:
        return self.grades[query_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self.grades)

    def __len__(self) -> int:
        return len(self.grades)


# Who answers


def session() -> Session:
    """The session of the project in sight with the judge of this browser session; an endpoint's is a replay."""
    base = state.session()
    chosen, settings = choice(base.workspace)
    if settings is None:
        judge = SimulatedJudge(LabelsOf(base), chosen.error_rate, min_grade=base.min_grade)
        return base.judged_by(judge, f"{SIMULATED} {chosen.error_rate:g}")
    kept = answers(base.workspace)
    judged = judge_of(settings, kept, replay=True)
    return base.judged_by(judged, f"{judged.place} {settings.model} {kept.state()}")


def choice(workspace: Path) -> tuple[JudgeChoice, ModelSettings | None]:
    """Who was chosen, with the endpoint's settings; None: the simulated judge."""
    known, _ = known_endpoints(workspace)
    chosen: JudgeChoice = st.session_state.get(CHOICE, JudgeChoice())
    name = chosen.name if chosen.name in (SIMULATED, *known) else next(iter(known), SIMULATED)
    return replace(chosen, name=name), known.get(name)


def known_endpoints(workspace: Path) -> tuple[Mapping[str, ModelSettings], str]:
    """The endpoints that can be chosen, and what is wrong with the file that names them."""
    try:
        return endpoints(workspace), ""
    except (WinnowError, OSError) as error:
        return {}, str(error)


def answers(workspace: Path) -> AnswerStore:
    """The workspace's stored answers, open."""
    return _store(str(workspace / FILE))


@st.cache_resource(max_entries=4, show_spinner=False)
def _store(path: str) -> AnswerStore:
    return AnswerStore(Path(path))


# The drawer


def drawer(entry: SeenList, session: Session) -> None:
    """Who judges, what was said of the question in sight, and the button that asks about one or all."""
    chosen, settings = choice(session.workspace)
    known, problem = known_endpoints(session.workspace)
    st.markdown("**Judge**")
    st.selectbox(
        "Answered by",
        [*known, SIMULATED],
        index=[*known, SIMULATED].index(chosen.name),
        format_func=lambda name: "simulated judge" if name == SIMULATED else f"{name}: {known[name].model}",
        key="judge.name",
        on_change=_choose,
    )
    if problem:
        say.problem("The file of endpoints cannot be read.", problem)
    elif not known:
        st.caption(NOBODY_TO_ASK)
    case = sight.question_in_sight(session, state.current().question)
    if settings is None:
        _simulated(chosen, session.judge, case)
    else:
        _connection(settings, session)
    placed = place_of(entry, session)
    if placed is None:
        st.caption("The stage is switched off.")
        return
    pipeline, place = placed
    if case is not None:
        _said(pipeline, place, case, session)
    if settings is not None:
        _ask(pipeline, place, case, session)
    jobs.show(KIND)
    _ended()


def place_of(entry: SeenList, session: Session) -> tuple[Pipeline, int] | None:
    """A, and where the stage stands in it; None while it is switched off."""
    pipeline = state.pipeline_of("A", session)
    if pipeline is None or not entry.on or entry.stage not in pipeline.stages:
        return None
    return pipeline, pipeline.stages.index(entry.stage)


def _choose() -> None:
    """Take over what the boxes hold: the name, and how often a simulated judge errs."""
    held: JudgeChoice = st.session_state.get(CHOICE, JudgeChoice())
    rate = st.session_state.get("judge.rate")
    st.session_state[CHOICE] = JudgeChoice(
        st.session_state["judge.name"], held.error_rate if rate is None else rate / 100
    )


def _simulated(choice: JudgeChoice, judge: Any, case: Case | None) -> None:
    st.markdown(f":material/texture: *{judge.origin}.* No cost, and no verdict.", help=SIMULATED_HELP)
    st.number_input(
        "Decides wrongly, %", 0, 100, round(choice.error_rate * 100), 5, key="judge.rate", on_change=_choose
    )
    if case is not None and not case.grades:
        say.problem("This question has no label, so there is nothing to draw an answer from.")
        st.page_link("pages/labels/page.py", label="Label some", icon=":material/new_label:", query_params=state.link())


def _connection(settings: ModelSettings, session: Session) -> None:
    """Test connection: one small question to the endpoint, and what came of it."""
    if st.button("Test connection", icon=":material/cable:", key="judge.test"):
        try:
            with st.spinner("Asking the endpoint one small question"), who.doing(ASK_MODEL, settings.name):
                text = check_connection(endpoint_of(settings)).to_text()
        except WinnowError as error:
            text = str(error)
        st.session_state[CHECKED] = (settings.name, text)
    name, text = st.session_state.get(CHECKED, ("", ""))
    if name == settings.name:
        st.text(text)


# What was said of the question in sight


def _said(pipeline: Pipeline, place: int, case: Case, session: Session) -> None:
    """What the stage did: who answered, what was judged and kept, tokens, cost and time; a fallback with its reason."""
    try:
        steps = session.run(pipeline, case).result.steps
    except InputError as error:
        say.problem("The pipeline cannot run as it is.", str(error))
        return
    # a run may put a search in front that the pipeline does not name: places count from the end
    step = steps[len(steps) - len(pipeline.stages) + place]
    if "judge" in step.facts:
        st.markdown(f"**{THIS.capitalize()}**")
        st.text("\n".join(facts(step, paid=not isinstance(session.judge, SimulatedJudge))))
    if step.facts.get("fallback_used"):
        say.problem("Where nothing was decided, the nearest chunks stay.", str(step.facts["error"]))


def facts(step: Step, paid: bool) -> list[str]:
    """Who answered, what was decided and brought; of a model tokens, cost and time too: one phrase each."""
    told = step.facts
    brought = f", {told['added']} brought by references" if told["added"] else ""
    phrases = [str(told["judge"]), f"{told['processed_count']} judged, {told['filtered_count']} kept{brought}"]
    if paid and told.get("prompts"):
        answered = told["prompts"] - told["prompts_failed"]
        about = "about " if told["tokens_estimated"] else ""
        phrases.append(f"{answered} of {counted(told['prompts'], 'call', 'calls')} answered")
        if not answered:
            return phrases
        phrases += [
            f"{about}{told['prompt_tokens']:,} + {told['completion_tokens']:,} tokens",
            cost_of(told["cost_without_cache"]),
            f"{sum(told['call_milliseconds']):,.0f} ms in calls",
        ]
    return phrases


def cost_of(cost: float | None, about: str = "") -> str:
    """A cost in words; an unknown one is never nothing."""
    return "cost unknown, no price is set" if cost is None else f"cost {about}{cost:.6f} {CURRENCY}"


# Asking


def _ask(pipeline: Pipeline, place: int, case: Case | None, session: Session) -> None:
    """What asking about one question or all of a side takes, before it is paid, and the button that asks."""
    st.markdown("**Ask the model**")
    sides = {THIS: [case] if case is not None else [], DEV: session.dev, HELD_OUT: session.held_out}
    scope = st.segmented_control(
        "About", list(sides), default=THIS, required=True, key="judge.scope", label_visibility="collapsed"
    )
    stage = pipeline.stages[place]
    assert isinstance(stage, LLMFilter)
    name, store = choice(session.workspace)[0].name, answers(session.workspace)
    try:
        judge = endpoint_judge(session.workspace, name, stage.model, store=store)
        bench = bench_of(session, pipeline, place, sides[scope or THIS])
    except (WinnowError, OSError) as error:
        say.problem("This endpoint cannot be asked.", str(error))
        return
    entrants = [Entrant(stage, judge, judge.name)]
    ahead = preview(calls_of(bench, entrants))
    tokens = f"about {ahead.prompt_tokens:,} + {ahead.completion_tokens:,} tokens, "
    upmost = f", at most {ahead.most:.4f}" if ahead.cost and ahead.most is not None else ""
    price = f"{tokens}{cost_of(ahead.cost, 'about ')}{upmost}" if ahead.calls else "nothing to pay"
    st.text(f"{counted(ahead.calls, 'call', 'calls')} to make, {ahead.stored:,} stored: {price}")
    if ahead.calls:
        with st.popover("Limits", icon=":material/savings:"):
            budget = st.number_input(
                f"Budget, {CURRENCY}", 0.0, 1e9, 0.0, 0.1, format="%.4f", key="judge.ask.budget",
                disabled=ahead.most is None, help="No call is started that may pass it. 0: no budget.",
            )  # fmt: skip
            most = st.number_input("Calls at most", 0, 10_000_000, 0, key="judge.ask.calls", help="0: no limit.")
        st.button(
            f"Make {counted(ahead.calls, 'call', 'calls')}",
            type="primary",
            icon=":material/forum:",
            key="judge.ask.run",
            disabled=jobs.running(KIND),
            on_click=_start,
            args=(bench, entrants, budget or None, int(most) or None),
        )


def _start(bench: Bench, entrants: list[Entrant], budget: float | None, most: int | None) -> None:
    limits = limits_of(entrants, budget, most)

    def work(job: jobs.Job) -> Progress:
        return answer_all(calls_of(bench, entrants), limits, on_progress=bar_of(job), cancel=job.stop)

    words = {"verb": "asked", "unit": "calls", "first": "looking what is stored …"}
    begin("Asking the model", work, ASK_MODEL, ", ".join(one.label for one in entrants), KIND, **words)


def bar_of(job: jobs.Job) -> Callable[[Progress], None]:
    """What tells a job's bar how far asking is, and what it cost so far."""

    def tell(now: Progress) -> None:
        spent = "spend unknown" if now.spent is None else f"spent {now.spent:.4f} {CURRENCY}"
        job.reached(now.done, now.total, spent + (f" · {now.failed:,} failed" if now.failed else ""))

    return tell


def _ended() -> None:
    """How the last run ended, where it did not go through."""
    job = jobs.current(KIND)
    if job is None or not job.over.is_set():
        return
    ran: Any = job.report
    stopped = job.problem or job.stopped or (ran.stopped if isinstance(ran, Progress) else "")
    failures = sorted(ran.failures) if isinstance(ran, Progress) else []
    if stopped:
        say.problem("The last run stopped before its end; what was answered is stored, and it can go on.", stopped)
    if failures:
        say.remarks(f"Why calls of the last run failed: {counted(len(failures), 'reason', 'reasons')}", failures)
