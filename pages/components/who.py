"""Who opened this page, in whose name they label, and what they do.

Whatever changes something, costs money or takes long goes through `doing`.

The name comes from the log-in alone: OpenID Connect by st.login, or the header of a proxy that asgi.py trusts. Without
either the app is one person's own and that person is admin. Which deed needs which role is rag_core/project/deeds.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import streamlit as st
from streamlit import config

from pages.components import say
from rag_core.errors import InputError
from rag_core.llm.allowance import spend_from_here
from rag_core.project.deeds import ASK_MODEL, LOOK, Deed, Kind, Performed, allow, allowance_of, perform
from rag_core.roles import ADMIN, FILE, Person, canonical_name, read_roles, role_of
from rag_core.settings import model_settings, server_settings
from rag_core.stage import Stage, needs_of
from rag_core.store.events import GRADES, is_reserved
from rag_core.workspace import resolve_workspace

ME = "me"
NAME_KEY = "label.annotator"
LONGEST_NAME = 80

CHOICES: tuple[tuple[str, int | None], ...] = (
    *((f"{grade} {word}", grade) for grade, word in GRADES.items()),
    ("unsure", None),
)
"""What a person can say of a chunk; unsure counts as unjudged."""


def has_login() -> bool:
    """Whether st.login is set up: an [auth] section in a file that Streamlit reads secrets from, if there is one."""
    return any(Path(file).exists() for file in config.get_option("secrets.files")) and "auth" in st.secrets


def shared() -> bool:
    """Whether people are told apart."""
    return bool(server_settings().user_header) or has_login()


def person() -> Person:
    """Who this session belongs to; on one's own machine `me`, an admin."""
    if not shared():
        return Person(ME, ADMIN)
    name = _logged_in()
    return Person(name, role_of(name, _roles()))


def _logged_in() -> str:
    user = st.user.to_dict()  # once: each look at it searches the disk for secrets, one session at a time
    if not server_settings().user_header and not user.get("is_logged_in", False):
        return ""
    verified = user.get("email_verified", True)  # some providers let people type any address
    return canonical_name(str(user.get("email") or user.get("sub") or "")) if verified is not False else ""


def _roles() -> dict[str, str]:
    path = resolve_workspace() / FILE
    return _read(str(resolve_workspace()), path.stat().st_mtime_ns if path.is_file() else 0)


@st.cache_resource(max_entries=4, show_spinner=False)
def _read(workspace: str, changed_at: int) -> dict[str, str]:
    return read_roles(Path(workspace))


def annotator() -> str:
    """In whose name this session labels: who logged in, else the name typed on Label, else `me`.

    The names under which decisions between people and models' labels are kept are nobody's.
    """
    if shared():
        return person().name
    typed = str(st.session_state.get(NAME_KEY) or "").strip()[:LONGEST_NAME]
    return ME if not typed or is_reserved(typed) else typed


def refusal(kind: Kind) -> str:
    """'' or the sentence why this session's person may not; for what is drawn, since `doing` asks again."""
    return kind.refusal(person())


def deed(kind: Kind, about: str = "", whose: str = "") -> Deed:
    """The deed of this session's person, pressed now."""
    return Deed(kind, person(), about, whose)


def check(kind: Kind, about: str = "") -> None:
    """Nothing, or the InputError that refuses the deed; before what only prepares it."""
    allow(deed(kind, about), resolve_workspace())


def check_models(pipelines: Iterable[Stage]) -> None:
    """Nothing, or the InputError where running these may ask the environment's model, which this person may not.

    Hops ask as they run; the judge of an LLM filter is asked by a button of its own (pages/bench/judge.py).
    """
    paid = model_settings() is not None and any("hop_judge" in needs_of(one) for one in pipelines)
    if paid and (refused := refusal(ASK_MODEL)):
        raise InputError(refused)
    if paid:
        spend_from_here(allowance_of(person(), resolve_workspace()))


@contextmanager
def doing(kind: Kind, about: str = "", whose: str = "") -> Iterator[Performed]:
    """The block does the deed, if this session's person may at this moment; else an InputError. It is logged."""
    with perform(deed(kind, about, whose), resolve_workspace()) as performed:
        yield performed


def gate() -> None:
    """Let nobody past who is not known: offer the log-in, or say whose list they are not on, and stop."""
    if not shared():
        return
    try:
        found = person()
    except InputError as error:
        say.problem("This server's list of people cannot be read.", str(error))
        st.stop()
    if not found.name:
        _ask()
    elif LOOK.refusal(found):
        say.problem("This server does not know you. Ask an admin to add you.", f"logged in as {found.name}")
        _leave()
        st.stop()
    with st.sidebar.container(key="who"):
        st.text(f"{found.name} ({found.role})")
        _leave()


def _ask() -> None:
    if server_settings().user_header:
        say.problem("This server is reached through its log-in proxy.", "the request named no person")
    else:
        st.markdown("### Winnow")
        st.button("Log in", type="primary", icon=":material/login:", on_click=st.login)
    st.stop()


def _leave() -> None:
    if not server_settings().user_header:
        st.button("Log out", key="who.leave", type="tertiary", icon=":material/logout:", on_click=st.logout)
