"""The words of a collection: its keyword and synonym lists, editable, what they do to a question, and to the project's.

A text that is being edited stays until it is saved or discarded, whatever else is looked at. Lists are foreign text and
stand in cells, text areas and inert text only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.components import glossary, resources, say, who
from rag_core import wording
from rag_core.compare.compare import Cell, TableRow, table
from rag_core.compare.rewrites import MEASURES, SEARCHES, measure_rewrites
from rag_core.errors import WinnowError
from rag_core.project.deeds import CHANGE_WORDS
from rag_core.project.session import Session
from rag_core.retrieve.rewrite import rewritten
from rag_core.retrieve.word_lists import Keywords, Synonyms
from rag_core.wording import WordList

KINDS = {"Synonyms": "synonyms", "Keywords": "keywords"}
HEIGHT = 320
SAID, PROBLEM = "data.words.said", "data.words.problem"
MEASURED, MEASURE_PROBLEM = "data.words.measured", "data.words.measure_problem"
QUESTION = "data.words.question"
PLACEHOLDER = {
    "synonyms": "regain wounds: [heal, healing, restore health]\ncontrol range: [melee range, base contact]",
    "keywords": "keywords:\n  - Accurate x\n  - ANGELS OF DEATH - Combat Doctrine",
}
MEANING = {
    "synonyms": "**Official term: the words people say for it.** A question that holds one of them gets the term "
    "appended, for the search by words only. Whole words count, phrases of several too.",
    "keywords": "**Names whose capitals a question takes over**, for the embedding only: those of the headers, which "
    "every ingest takes, and those you add. “Accurate x” stands for any number, “TEAM - ABILITY” also for either side.",
}


def show(session: Session) -> None:
    """The lists, one of them to edit, a question to try, and the effect on the project's questions."""
    workspace, name = session.workspace, session.project.source.name
    try:
        taken = wording.header_words(workspace, name)
        lists = {kind: wording.listed(workspace, name, kind) for kind in KINDS.values()}
    except WinnowError as error:
        say.problem("The words of this collection cannot be read.", str(error))
        return
    _sources(lists, taken)
    drafts = {kind: _draft(name, one) for kind, one in lists.items()}
    chosen = st.segmented_control("List", KINDS, default="Synonyms", required=True, key="data.words.list")
    kind = KINDS[str(chosen)]
    st.markdown(MEANING[kind])
    typed = _typed(name, taken, drafts)
    with st.container(horizontal=True, gap="medium"):  # wraps where the window is narrow
        with st.container(width=440):
            _edit(name, lists[kind], drafts[kind], typed.problems.get(kind, ""))
        with st.container(width="stretch"):
            _synonyms(typed.synonyms) if kind == "synonyms" else _keywords(taken, typed.keywords)
    _try(typed, any(drafts[one] != lists[one].text for one in drafts))
    _effect(session, lists, drafts)


def _sources(lists: Mapping[str, WordList], taken: tuple[str, ...]) -> None:
    """Where the words come from: the headers and the two files."""
    rows = [("keywords", len(taken), "the headers, at the last ingest", "")]
    for one in (lists["keywords"], lists["synonyms"]):
        rows.append((one.kind, one.entries, _origin(one), _place(one)))
    columns = dict(zip(("list", "entries", "comes from", "file"), zip(*rows, strict=True), strict=True))
    st.dataframe(columns, hide_index=True, alt="Each list with its entries, where it comes from and its file")


def _origin(one: WordList) -> str:
    return {"": "no file yet", "collection": "this collection’s own", "workspace": "the workspace, for all"}.get(
        one.origin, one.origin
    )


def _place(one: WordList) -> str:
    """The file as it is found in the workspace, else below the eval sets."""
    if one.file is None:
        return ""
    workspace = resources.workspace()
    inside = one.file.is_relative_to(workspace)
    return str(one.file.relative_to(workspace)) if inside else f"eval_sets/{one.file.parent.name}/{one.file.name}"


def _key(name: str, kind: str, what: str) -> str:
    return f"data.words.{what}.{kind}.{name}"


def _draft(name: str, one: WordList) -> str:
    """The text as this person has it: the file's until it is edited, and again when nothing edited is lost by it."""
    draft, base = _key(name, one.kind, "draft"), _key(name, one.kind, "base")
    if st.session_state.get(draft) in (None, st.session_state.get(base), one.text):
        st.session_state[draft] = st.session_state[base] = one.text
    return str(st.session_state[draft])


def _edit(name: str, one: WordList, draft: str, problem: str) -> None:
    """The text area, what is wrong with its text, and the buttons."""
    box = _key(name, one.kind, "box")
    st.session_state[box] = draft
    st.text_area(
        f"The {one.kind} as YAML",
        key=box,
        height=HEIGHT,
        on_change=_take,
        args=(name, one.kind),
        placeholder=PLACEHOLDER[one.kind],
    )
    if draft != one.text and st.session_state[_key(name, one.kind, "base")] != one.text:
        say.quiet(
            ":material/warning: The file was changed since you began. Saving keeps your text; the collection’s own "
            "list as it stands is kept beside it as .before."
        )
    refused = st.session_state.pop(PROBLEM, "")
    if refused or problem:
        say.problem("This list cannot be saved as it is; your text is kept here.", refused or problem)
    if said := st.session_state.pop(SAID, ""):
        say.quiet(f":material/check: {said}")
    barred = who.refusal(CHANGE_WORDS)
    with st.container(horizontal=True):
        st.button("Save", type="primary", key="data.words.save", disabled=bool(barred),
                  on_click=_save, args=(name, one.kind))  # fmt: skip
        st.button("Discard changes", key="data.words.discard",
                  on_click=_discard, args=(name, one))  # fmt: skip
    say.quiet(
        barred
        or "Saving makes it this collection’s own list, which counts before the eval set’s and can be edited by hand."
    )


def _take(name: str, kind: str) -> None:
    """What was typed is the draft from now on."""
    st.session_state[_key(name, kind, "draft")] = st.session_state[_key(name, kind, "box")]


def _save(name: str, kind: str) -> None:
    _take(name, kind)  # what was typed right before the press
    text = str(st.session_state[_key(name, kind, "draft")])
    try:
        with who.doing(CHANGE_WORDS, name):
            wording.save_list(resources.workspace(), name, kind, text)
    except (WinnowError, OSError) as error:
        st.session_state[PROBLEM] = str(error)
        return
    st.session_state[_key(name, kind, "base")] = text
    st.session_state[SAID] = "Saved. The next question is rewritten with it."


def _discard(name: str, one: WordList) -> None:
    st.session_state[_key(name, one.kind, "draft")] = st.session_state[_key(name, one.kind, "base")] = one.text


@dataclass(frozen=True)
class Typed:
    """Both lists as they are typed; None for one that cannot be read, with why."""

    keywords: Keywords | None  # with those of the headers
    synonyms: Synonyms | None
    problems: Mapping[str, str]


def _typed(name: str, taken: tuple[str, ...], drafts: Mapping[str, str]) -> Typed:
    found: dict[str, Keywords | Synonyms] = {}
    problems: dict[str, str] = {}
    for kind, text in drafts.items():
        try:
            found[kind] = _list(kind, text, taken if kind == "keywords" else ())
        except WinnowError as error:
            problems[kind] = str(error)
    keywords, synonyms = found.get("keywords"), found.get("synonyms")
    return Typed(
        keywords if isinstance(keywords, Keywords) else None,
        synonyms if isinstance(synonyms, Synonyms) else None,
        problems,
    )


@st.cache_resource(max_entries=16, show_spinner=False)
def _list(kind: str, text: str, taken: tuple[str, ...]) -> Keywords | Synonyms:
    found = wording.parse_list(kind, text)
    return wording.with_headers(found, taken) if isinstance(found, Keywords) else found


def _synonyms(found: Synonyms | None) -> None:
    if found is None:
        say.quiet("The table comes back when the text can be read.")
        return
    terms = found.terms
    st.dataframe(
        {"official term": list(terms), "words people say": [", ".join(said) for said in terms.values()]},
        hide_index=True,
        key="data.words.synonyms",
        height=HEIGHT + 32,
        column_config={"words people say": st.column_config.TextColumn(width="large")},
        alt=f"{len(terms)} official terms with the words people say for them",
    )


def _keywords(taken: tuple[str, ...], found: Keywords | None) -> None:
    """Every keyword with where it comes from."""
    headers, names = set(taken), found.names if found is not None else taken
    st.dataframe(
        {"keyword": list(names), "comes from": ["a header" if one in headers else "the list" for one in names]},
        hide_index=True,
        key="data.words.keywords",
        height=HEIGHT + 32,
        alt=f"{len(names)} keywords with where they come from",
    )


def _try(typed: Typed, unsaved: bool) -> None:
    """One question before and after, on both sides."""
    st.markdown("**Try a question**" + (", with the lists as they are typed above, saved or not" if unsaved else ""))
    text = st.text_input(
        "Question", key=QUESTION, placeholder="Can I heal my operative?", label_visibility="collapsed",
        persist_state="session",
    )  # fmt: skip
    if not text:
        return
    if typed.keywords is None or typed.synonyms is None:
        say.quiet(f"The {' and '.join(typed.problems)} list cannot be read; mend it first.")
        return
    try:
        found = rewritten(text, typed.keywords, typed.synonyms)
    except WinnowError as error:
        say.problem("This is no question to search for.", str(error))
        return
    added = ", ".join(f"{word} → {term}" for term, word in found.added)
    st.dataframe(
        {
            "side": ["before, both sides", "after, dense (embedding)", "after, lexical (BM25)"],
            "question": [found.asked, found.dense_text, found.lexical_text],
            "because of": ["", ", ".join(found.found) or "no keyword in it", added or "no synonym in it"],
        },
        hide_index=True,
        key="data.words.tried",
        alt="The question before and after rewriting, for the embedding and for the search by words",
    )


def _effect(session: Session, lists: Mapping[str, WordList], drafts: Mapping[str, str]) -> None:
    """The same search without and with both rewrites over the project's dev questions, as long as both stand so."""
    cases = session.dev or list(session.cases)
    if not any(case.grades for case in cases):
        say.quiet("Once questions have labels, what the lists are worth is measured here.")
        return
    st.markdown(f"**Measure on the {len(cases):,} dev questions**: the same search without and with both rewrites")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        search = st.segmented_control(
            "Search",
            list(SEARCHES),
            default=next(iter(SEARCHES)),
            format_func=str.capitalize,
            required=True,
            key="data.words.search",
        )
        pressed = st.button("Measure", icon=":material/play_arrow:", key="data.words.measure")
    if any(drafts[kind] != one.text for kind, one in lists.items()):
        say.quiet("Measured are the lists as they are saved; what you typed since counts once it is saved.")
    prints = session.fingerprints()
    key = (prints["source"], prints["labels"], search, *(one.text for one in lists.values()))
    if pressed:
        _measure(session, str(search), key)
    if st.session_state.get(MEASURE_PROBLEM):
        say.problem("This cannot be measured.", st.session_state[MEASURE_PROBLEM])
    kept, rows = st.session_state.get(MEASURED, (None, []))
    if kept == key:
        _figures(rows)


def _measure(session: Session, search: str, key: tuple[Any, ...]) -> None:
    st.session_state[MEASURE_PROBLEM] = ""
    cases = session.dev or list(session.cases)
    bar = st.progress(0.0, "Asking …")

    def tell(done: int) -> None:
        bar.progress(min(1.0, done / len(cases)), f"{done:,} of {len(cases):,} questions asked both ways")

    try:
        words = wording.words_of(session.workspace, session.project.source.name, session.project.name)
        tallies = measure_rewrites(session.source.index, cases, words, search, session.project.min_grade, tell)
        st.session_state[MEASURED] = (key, table(tallies, MEASURES))
    except WinnowError as error:
        st.session_state[MEASURE_PROBLEM] = str(error)
    bar.empty()


def _figures(rows: list[TableRow]) -> None:
    """Means with intervals, their difference, and the verdicts in words."""
    before, after = rows
    st.markdown(
        f"**Means**, macro over {before.queries_scored} of {before.queries_total} queries, with 95 % intervals; the "
        "difference is paired, query by query"
    )
    against = {measure: after.cells[measure].against for measure in MEASURES}
    st.dataframe(
        {
            "measure": list(MEASURES),
            before.name: [_cell(before.cells[measure]) for measure in MEASURES],
            after.name: [_cell(after.cells[measure]) for measure in MEASURES],
            "difference": [_signed(one.delta, one.low, one.high) if one else "" for one in against.values()],
            "wins": [one.wins if one else 0 for one in against.values()],
            "ties": [one.ties if one else 0 for one in against.values()],
            "losses": [one.losses if one else 0 for one in against.values()],
        },
        hide_index=True,
        key="corpus.words.effect",
        column_config=glossary.explained(("difference", "wins", "ties", "losses")),
        alt="Per measure: mean as asked and rewritten, paired difference with interval, wins, ties and losses",
    )
    say.quiet(
        "Neither list is cut, so only ranks differ. Lists that were written with these very questions in view look "
        "better here than on new ones."
    )


def _cell(cell: Cell) -> str:
    one = cell.estimate
    if one.mean is None:
        return "–"
    return f"{one.mean:.3f}" + ("" if one.low is None else f" [{one.low:.3f}, {one.high:.3f}]")


def _signed(delta: float | None, low: float | None, high: float | None) -> str:
    if delta is None:
        return "–"
    return f"{delta:+.3f}" + ("" if low is None else f" [{low:+.3f}, {high:+.3f}]")
