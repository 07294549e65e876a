"""The words of a collection: its keyword and synonym lists, editable, and what they do to a question.

A text that is being edited stays until it is saved or discarded, whatever else is looked at. Lists are foreign text and
stand in cells, text areas and inert text only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from pages.components import resources, say, who
from pages.components.act import act, refuse, tell
from pages.widgets.take_along import table
from rag_core import wording
from rag_core.errors import WinnowError
from rag_core.project.deeds import CHANGE_WORDS
from rag_core.project.session import Session
from rag_core.retrieve.rewrite import rewritten
from rag_core.retrieve.word_lists import Keywords, Synonyms
from rag_core.wording import WordList

KINDS = {"Synonyms": "synonyms", "Keywords": "keywords"}
HEIGHT = 320
SAID = "data.words.said"
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
    """The lists, one of them to edit, and a question to try."""
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
    say.quiet("What both lists are worth: `winnow evaluate` of the search with and without its rewrites.")


def _sources(lists: Mapping[str, WordList], taken: tuple[str, ...]) -> None:
    """Where the words come from: the headers and the two files."""
    rows = [("keywords", len(taken), "the headers, at the last ingest", "")]
    for one in (lists["keywords"], lists["synonyms"]):
        rows.append((one.kind, one.entries, _origin(one), _place(one)))
    columns = dict(zip(("list", "entries", "comes from", "file"), zip(*rows, strict=True), strict=True))
    table(columns, "data.words.table", "Each list with its entries, where it comes from and its file")


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
    box, base = _key(name, one.kind, "box"), _key(name, one.kind, "base")
    if st.session_state.get(box) in (None, st.session_state.get(base), one.text):
        st.session_state[box] = st.session_state[base] = one.text
    return str(st.session_state[box])


def _edit(name: str, one: WordList, draft: str, problem: str) -> None:
    """The text area, what is wrong with its text, and the buttons."""
    st.text_area(
        f"The {one.kind} as YAML", key=_key(name, one.kind, "box"), height=HEIGHT, persist_state="session",
        placeholder=PLACEHOLDER[one.kind],
    )  # fmt: skip
    if draft != one.text and st.session_state[_key(name, one.kind, "base")] != one.text:
        say.quiet(
            ":material/warning: The file was changed since you began. Saving keeps your text; the collection’s own "
            "list as it stands is kept beside it as .before."
        )
    if problem:
        refuse(SAID, problem)
    tell(SAID, "This list cannot be saved as it is; your text is kept here.")
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


def _save(name: str, kind: str) -> None:
    text = str(st.session_state[_key(name, kind, "box")])
    said = "Saved. The next question is rewritten with it."
    if act(SAID, CHANGE_WORDS, name, lambda _: wording.save_list(resources.workspace(), name, kind, text), said):
        st.session_state[_key(name, kind, "base")] = text


def _discard(name: str, one: WordList) -> None:
    st.session_state[_key(name, one.kind, "box")] = st.session_state[_key(name, one.kind, "base")] = one.text


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


def _synonyms(synonyms: Synonyms | None) -> None:
    if synonyms is None:
        say.quiet("The table comes back when the text can be read.")
        return
    terms = synonyms.terms
    table(
        {"official term": list(terms), "words people say": [", ".join(said) for said in terms.values()]},
        "data.words.synonyms",
        f"{len(terms)} official terms with the words people say for them",
        tall=HEIGHT + 32,
        config={"words people say": st.column_config.TextColumn(width="large")},
    )


def _keywords(taken: tuple[str, ...], keywords: Keywords | None) -> None:
    """Every keyword with where it comes from."""
    headers, names = set(taken), keywords.names if keywords is not None else taken
    table(
        {"keyword": list(names), "comes from": ["a header" if one in headers else "the list" for one in names]},
        "data.words.keywords",
        f"{len(names)} keywords with where they come from",
        tall=HEIGHT + 32,
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
    table(
        {
            "side": ["before, both sides", "after, dense (embedding)", "after, lexical (BM25)"],
            "question": [found.asked, found.dense_text, found.lexical_text],
            "because of": ["", ", ".join(found.found) or "no keyword in it", added or "no synonym in it"],
        },
        "data.words.tried",
        "The question before and after rewriting, for the embedding and for the search by words",
    )
