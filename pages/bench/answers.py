"""What can be opened below the Bench: a model's answers from what A and B keep, right or wrong, and why.

Nothing is paid by looking: stored answers are read, and the endpoint's model is asked when a person presses the button.
Without an endpoint a simulated reader answers from the labels, which its title says. Answers are foreign text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from pages import rail, state
from pages.bench import judge
from pages.bench.judge import CURRENCY, bar_of, cost_of
from pages.bench.taking import begin
from pages.components import jobs, say
from pages.labels import WANTED
from pages.widgets.take_along import take_along
from rag_core.answers.answering import Answered, Answering, AnswerRun, SimulatedReader, expected_by
from rag_core.answers.check import FAILED, REFUSED, RIGHT, UNCHECKED, WRONG
from rag_core.errors import WinnowError
from rag_core.judged.entrants import endpoint_judge, in_memory
from rag_core.labelling.pooling import Pair
from rag_core.llm.run import Progress, RunLimits
from rag_core.measure.experiment import PipelineReport
from rag_core.project.deeds import ASK_MODEL
from rag_core.project.session import Session
from rag_core.stage import Pipeline
from rag_core.text import counted
from rag_core.types import Case

KIND = "answers"
MARKS = {
    RIGHT: ":material/check_circle: right",
    WRONG: ":material/cancel: wrong",
    REFUSED: ":material/block: refused",
    FAILED: ":material/error: not answered",
    UNCHECKED: ":material/help: not checked",
}
WORDS = """
A model answers from the chunks that a pipeline keeps, in their order, and from nothing else. **Right** is what the
question's expected answer says; *refused* says that the answer is not in the context. **Why not right**: *lost*, a
chunk that the question needs was not there; *noise*, it is right from the needed chunks alone (one more call); *model*,
it is wrong from exactly these too. On the command line: `winnow answer`.
"""


def of_question(session: Session, pipelines: Mapping[str, Pipeline], case: Case) -> None:
    """The question in sight, answered from A and from B, side by side."""
    ran = _run(session, pipelines, [case])
    if ran is None:
        return
    for report, place in zip(ran.reports, st.columns(len(ran.reports)), strict=True):
        with place:
            _shown(report.pipeline, report.answered[0])


def of_dev(session: Session, pipelines: Mapping[str, Pipeline]) -> None:
    """The dev questions that expect an answer: how many are right, why the others are not, A against B."""
    cases = [case for case in session.dev if expected_by(case) is not None]
    if not cases:
        st.markdown("No dev question says what answer it expects: give `expected_answer` with your questions.")
        rail.link("questions", "Add questions with their answers")
        return
    ran = _run(session, pipelines, cases)
    if ran is None:
        return
    for report in ran.reports:
        st.text(report.to_text())
    for difference in ran.comparisons:
        st.text(f"{difference.to_text()} (dev questions: no verdict)")
    columns: dict[str, list[str | None]] = {"question": [case.query.text for case in cases]}
    columns["expected"] = [one.expected.wanted if one.expected else None for one in ran.reports[0].answered]
    for report in ran.reports:
        columns[f"{report.pipeline}"] = [one.verdict.word for one in report.answered]
        columns[f"why not, {report.pipeline}"] = [
            f"{one.why.kind}: {one.why.text}" if one.why else None for one in report.answered
        ]
    take_along("answers", columns, alt="Per question: what is expected, and whether the answers from A and B are that")
    if ran.flips:
        _candidates(ran, session)


def _candidates(ran: AnswerRun, session: Session) -> None:
    """The chunks that right answers alone had, to be labelled first; none of them is labelled by itself."""
    stand = counted(len(ran.flips), "chunk without a label stands", "chunks without a label stand")
    st.markdown(
        f"**{stand} in the context of right answers alone**: candidates for a label, no more, since an answer may come "
        "right by chance."
    )
    if st.button("Label them first", icon=":material/label:", key="answers.label"):
        chunks = session.source.by_id
        pairs = [Pair(session.case(one["query"]).query, chunks[one["chunk"]]) for one in ran.flips]
        st.session_state[WANTED] = (pairs, "An answer came right with this chunk and wrong without it.")
        st.switch_page("pages/labels/page.py", query_params=state.link())


def _run(session: Session, pipelines: Mapping[str, Pipeline], cases: Sequence[Case]) -> AnswerRun | None:
    """What is stored of the answers, with the button that asks for the rest; None where nothing can be shown."""
    say.quiet(WORDS)
    sides = {side: pipelines[side] for side in ("A", "B") if side in pipelines}
    made = session.reports(list(sides.values()), cases)
    reports = [replace(report, name=side) for side, report in zip(sides, made, strict=True)]
    chosen, settings = judge.choice(session.workspace)
    try:
        if settings is None:
            reader = in_memory(SimulatedReader({case.query.id: case for case in cases}, min_grade=session.min_grade))
            st.markdown("**Simulated**, drawn from labels and expected answers: no model's opinion, no verdict.")
            return Answering(reader).run(reports)
        model = endpoint_judge(session.workspace, chosen.name, store=judge.answers(session.workspace))
        asking = Answering(model, judge=model)
        ahead = asking.preview(reports)
        replayed = replace(asking, model=model.replay(), judge=model.replay()).run(reports)
        open_calls = ahead.calls or sum(report.reasons["unknown"] for report in replayed.reports)
        st.text(f"{model.name}: {counted(ahead.calls, 'call', 'calls')} to make, {ahead.stored:,} stored")
        if open_calls:
            most = "" if ahead.most is None or not ahead.cost else f", at most {ahead.most:.4f} {CURRENCY}"
            tokens = f"about {ahead.prompt_tokens:,} + {ahead.completion_tokens:,} tokens"
            price = f"{tokens}, {cost_of(ahead.cost, 'about ')}{most}"
            st.text(f"{price}; a further call for an answer that is wrong")
            budget = st.number_input(
                f"Budget, {CURRENCY}", 0.0, 1e9, 0.0, 0.1, format="%.4f", key="answers.budget",
                disabled=ahead.most is None, help="No call is started that may pass it. 0: no budget.",
            )  # fmt: skip
            st.button(
                "Ask for the answers" if ahead.calls else "Ask why",
                type="primary",
                icon=":material/forum:",
                key="answers.ask",
                disabled=jobs.running(KIND),
                on_click=_start,
                args=(asking, reports, budget or None),
            )
        return replayed
    except WinnowError as error:
        say.problem("These answers cannot be had.", str(error))
        return None


def _start(asking: Answering, reports: Sequence[PipelineReport], budget: float | None) -> None:
    def work(job: jobs.Job) -> Progress:
        return asking.run(reports, RunLimits(budget=budget, seconds_per_call=60.0), bar_of(job), job.stop).progress

    words = {"verb": "asked", "unit": "calls", "first": "looking what is stored …"}
    begin("Asking for answers", work, ASK_MODEL, asking.model.name, KIND, **words)


def _shown(side: str, answered: Answered) -> None:
    """An answer: the mark, what it says, what was expected, and why it is not right."""
    context = counted(len(answered.context.chunks), "chunk", "chunks")
    st.markdown(f"**{side}** · {MARKS[answered.verdict.word]} · from {context}")
    if answered.said.text is not None:
        st.code(answered.text, language=None, wrap_lines=True)
    lines = [f"expected: {answered.expected.wanted}"] if answered.expected is not None else []
    lines += [answered.verdict.text] if answered.verdict.text else []
    lines += [f"{answered.why.kind}: {answered.why.text}"] if answered.why else []
    st.text("\n".join(lines))
