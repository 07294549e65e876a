"""What a person looks at, as one value, and its way into the address and back: /bench?project&q&zoom&a&b&c&lens.

Project, question and pipelines are the same on every page; nothing else remembers a choice. Links of the first version
(set, query, pipeline …) lead to the same project, question and pipelines. A pipeline stands here as an entry: a saved
name, `auto`, or `~` and the settings that differ from their defaults, deflated. Nothing here draws.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from rag_core.errors import InputError
from rag_core.files import parse_json
from rag_core.project.project import ALIASES, Project, open_project
from rag_core.project.session import Session
from rag_core.retrieve.question import check_question
from rag_core.spec import dump_stages, make_stage, parse_pipeline
from rag_core.stage import Pipeline
from rag_core.workspace import resolve_workspace

DEFAULT_PROJECT = ALIASES["demo"]
FIRST_QUESTION = "combat-1"
ONE, ALL = "one", "all"
THRESHOLD, DIFFERENCES, LOSSES = "threshold", "differences", "losses"
ZOOMS, LENSES = (ONE, ALL), (THRESHOLD, DIFFERENCES, LOSSES)
AUTO = "auto"
KEY, ADDRESS, PROBLEM, BEGINNING = "page.state", "page.address", "page.problem", "page.beginning"
NEW = "new"
"""Parameter of a link that begins a new project."""
LONGEST = 4000
"""Characters of a pipeline in an address; a longer one is kept with the project under its fingerprint."""
MOST_INFLATED = 200_000
NAME = re.compile(r"[\w-]{1,64}")


@dataclass(frozen=True, slots=True)
class PageState:
    """One state of the app. `a`, `b`, `c` are entries of pipelines ('' : what the project says)."""

    project: str = DEFAULT_PROJECT
    question: str = FIRST_QUESTION
    zoom: str = ONE
    a: str = ""
    b: str = ""
    c: str = ""
    lens: str = THRESHOLD


PARAMETERS = {"project": "project", "q": "question", "zoom": "zoom", "a": "a", "b": "b", "c": "c", "lens": "lens"}
"""Name in the address → field."""
OLDER_PARAMETERS = ("set", "collection", "query", "question", "pipeline", "pipelines")
"""What a link of the first version named."""


def current() -> PageState:
    """The state of this session."""
    state: PageState = st.session_state.setdefault(KEY, PageState())
    return state


def change(**changes: str) -> None:
    """Change fields; another project forgets question and pipelines, which were of the one before."""
    before = current()
    if changes.get("project", before.project) != before.project:
        changes = {"question": "", "a": "", "b": "", "c": "", **changes}
    st.session_state[KEY] = replace(before, **changes)
    st.session_state[PROBLEM] = ""
    st.session_state[BEGINNING] = False


def begin() -> None:
    """Begin a new project: Data asks for its name and source until it stands, or another place is opened."""
    st.session_state[BEGINNING] = True


def beginning() -> bool:
    """Whether a new project is being made, so that no other project's data may be shown."""
    return bool(st.session_state.get(BEGINNING))


def problem() -> str:
    """Why the address could not be followed, '' where it could."""
    return str(st.session_state.get(PROBLEM, ""))


def read_address() -> None:
    """Follow an address that was opened or edited; what is wrong with it is one sentence, and the rest is followed."""
    address = st.query_params.to_dict()
    if address == st.session_state.get(ADDRESS):
        return
    st.session_state[ADDRESS] = address
    if NEW in address:
        begin()
    named = {field: address[name] for name, field in PARAMETERS.items() if name in address}
    try:
        st.session_state[KEY] = checked({**asdict(current()), **_of_project(named), **named})
        st.session_state[PROBLEM] = ""
    except InputError as error:
        st.session_state[PROBLEM] = str(error)


def follow_older_link() -> bool:
    """Take over a link of the first version and write it as one of today; whether there was one.

    What cannot be followed is one sentence, as for any link.
    """
    address = st.query_params.to_dict()
    if not set(address) & set(OLDER_PARAMETERS):
        return False
    try:
        named = older(address)
        st.session_state[KEY] = checked({**asdict(current()), **_of_project(named), **named})
        st.session_state[PROBLEM] = ""
    except InputError as error:
        st.session_state[PROBLEM] = str(error)
    write_address()
    return True


def older(address: Mapping[str, str]) -> dict[str, str]:
    """The fields that a link of the first version named: set, collection, query, question, pipeline, pipelines.

    An InputError where it asked one collection with the questions of another: a project has one source.
    """
    fields: dict[str, str] = {}
    questions, collection = address.get("set", ""), address.get("collection", "")
    if questions and collection and questions != collection:
        raise InputError(
            f"the link searches collection {collection[:80]!r} with the questions of {questions[:80]!r}, "
            "expected both of one project"
        )
    if questions or collection:
        fields["project"] = questions or collection
    if address.get("question"):
        fields["question"] = f"?{check_question(address['question'])}"
    elif address.get("query"):
        fields["question"] = address["query"]
    if address.get("pipeline"):
        fields["a"] = _older_entry(address["pipeline"])
    if address.get("pipelines"):
        fields |= _older_sides(address)
    return fields


def _older_entry(text: str) -> str:
    """The entry of a pipeline that stood in a link as a name or as JSON."""
    if text.lstrip()[:1] in ("[", "{"):
        return encode(parse_pipeline(parse_json(text, "the link's pipeline")))
    return text


def _older_sides(address: Mapping[str, str]) -> dict[str, str]:
    """A, B and C of a comparison: the pipeline looked at, the one it is held against, and one more."""
    entries = parse_json(address["pipelines"], "the link's pipelines")
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise InputError("the link's pipelines are no list of names, expected a link copied from Winnow")
    places = [address.get("other", "1"), address.get("baseline", "0")]
    if not all(place.isdecimal() and len(place) < 3 for place in places):
        raise InputError(f"the link's places are {', '.join(places)[:40]!r}, expected numbers from 0")
    order = [*map(int, places), *range(len(entries))]
    chosen = [entries[at] for at in dict.fromkeys(order) if at < len(entries)]
    return {side: _older_entry(entry) for side, entry in zip("abc", chosen, strict=False)}


def _of_project(named: dict[str, str]) -> dict[str, str]:
    """An address that names another project starts from that project, not from what stood here."""
    if named.get("project") in (None, current().project):
        return {}
    return {"question": "", "a": "", "b": "", "c": ""}


def checked(fields: dict[str, Any]) -> PageState:
    """The state of these fields, or an InputError for one that cannot be shown."""
    state = PageState(**{name: str(value) for name, value in fields.items()})
    state = replace(state, project=ALIASES.get(state.project, state.project))
    if "/" in state.project:
        raise InputError(f"the link names the folder {state.project[:80]!r}, expected a project by name")
    for name, known in (("zoom", ZOOMS), ("lens", LENSES)):
        if getattr(state, name) not in known:
            raise InputError(f"the link has {name} {getattr(state, name)[:40]!r}, expected one of {', '.join(known)}")
    for side in ("a", "b", "c"):
        entry = getattr(state, side)
        if not entry.startswith("~"):
            if entry and not NAME.fullmatch(entry):  # a name, and never a path
                raise InputError(f"the link's {side} is {entry[:40]!r}, expected a pipeline's name or one of the Bench")
        elif not entry.startswith("~~"):
            decode(entry)
    return state


def write_address(**of_place: str) -> None:
    """Put the state into the address, where it differs: a second write would take Back two presses.

    `of_place` are parameters of a place's own that a reload must find again.
    """
    fresh = PageState()
    shown = {
        name: value
        for name, field in PARAMETERS.items()
        if (value := str(getattr(current(), field))) and (value != getattr(fresh, field) or name == "project")
    }
    shown |= of_place
    if st.query_params.to_dict() != shown:
        st.query_params.from_dict(shown)
    st.session_state[ADDRESS] = shown


def link(**changes: str) -> dict[str, str]:
    """The address parameters of the state with some fields changed: what a link to another place carries."""
    state = replace(current(), **changes)
    return {name: value for name, field in PARAMETERS.items() if (value := str(getattr(state, field)))}


# Pipelines as entries


def encode(pipeline: Pipeline, session: Session | None = None) -> str:
    """The entry of a pipeline: its settings that differ from their defaults. A long one is kept with the project."""
    short = []
    for full in dump_stages(pipeline):
        ((name, settings),) = full.items()
        ((_, defaults),) = dump_stages(make_stage(name))[0].items()
        kept = {key: value for key, value in settings.items() if value != defaults[key]}
        if dump_stages(make_stage(name, kept)) != [full]:  # one setting's default may depend on another
            kept = settings
        short.append({name: kept} if kept else name)
    document: Any = [pipeline.label, short] if pipeline.label else short
    if pipeline.chosen_on is not None:
        chosen_on = {name: value for name, value in asdict(pipeline.chosen_on).items() if value}
        document = {"name": pipeline.label, "stages": short, "chosen_on": chosen_on}
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    packed = zlib.compress(text.encode("utf-8", "surrogatepass"), 9)
    entry = "~" + base64.urlsafe_b64encode(packed).decode().rstrip("=")
    if len(entry) <= LONGEST or session is None:
        return entry
    return f"~~{session.keep_link(text)}"


def decode(entry: str, session: Session | None = None) -> Pipeline:
    """The pipeline of an entry that `encode` made; an InputError for anything else."""
    try:
        if entry.startswith("~~"):
            if session is None:
                raise ValueError
            text = session.kept_link(entry[2:])
        else:
            packed = base64.urlsafe_b64decode(entry[1:] + "=" * (-len(entry[1:]) % 4))
            inflater = zlib.decompressobj()
            text = inflater.decompress(packed, MOST_INFLATED).decode("utf-8", "surrogatepass")
            if inflater.unconsumed_tail:
                raise ValueError
    except (ValueError, zlib.error, binascii.Error):
        raise InputError(f"the link's pipeline is {entry[:40]!r}, expected one copied from the Bench") from None
    document = parse_json(text, "the link's pipeline")
    labelled = isinstance(document, list) and [type(part) for part in document] == [str, list]
    if labelled:
        return parse_pipeline(document[1], name=document[0])
    return replace(parse_pipeline(document), label=str(document.get("name", "")) if isinstance(document, dict) else "")


def pipeline_of(side: str, session: Session) -> Pipeline | None:
    """The pipeline on a side, `auto` resolved; None for an empty C. An InputError where the entry cannot be read."""
    entry = getattr(current(), side.lower()) or session.project.pipelines.get(side.upper()) or ""
    if not entry:
        if side.upper() == "C":
            return None
        entry = AUTO if side.upper() == "B" else "unfiltered"
    if entry == AUTO:
        rival = session.project.baseline
        if rival != AUTO:
            return session.pipeline(rival)
        first = pipeline_of("A", session)
        return session.baseline(first) if first is not None and side.upper() != "A" else session.pipeline("unfiltered")
    return session.whole(decode(entry, session) if entry.startswith("~") else session.pipeline(entry))


# The project


def session() -> Session:
    """The session of the chosen project, shared by all who look at it; an InputError where there is none."""
    return session_of(current().project)


def session_of(name: str) -> Session:
    """The session of a project by name, '' for the one that a first visit opens."""
    project = project_of(name)
    return _session(str(project.workspace), project.name, _marks(project))


def project_of(name: str) -> Project:
    """A project of the workspace by name."""
    return open_project(name, resolve_workspace())


def _marks(project: Project) -> tuple[str, ...]:
    """What makes a project another one: its own file, and whether its questions and lists are there."""
    files = [project.folder / "project.yaml", project.state / "project.yaml", project.folder / "meta.yaml"]
    files += [project.folder / "lists.jsonl", project.folder / "queries.jsonl"]
    return tuple(str(file.stat().st_mtime_ns) if file.is_file() else "" for file in files)


@st.cache_resource(max_entries=8, show_spinner=False)
def _session(workspace: str, name: str, marks: tuple[str, ...]) -> Session:
    return Session(open_project(name, Path(workspace)))
