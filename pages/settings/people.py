"""People: who may do what, what was done lately, and what the environment sets."""

from __future__ import annotations

import streamlit as st

from pages.components import resources, say, who
from pages.widgets.take_along import table
from rag_core.errors import InputError
from rag_core.project.deeds import KINDS, SEE_STATUS, log
from rag_core.roles import FILE, ROLES, read_roles
from rag_core.settings import shown

LATEST = 200


def draw() -> None:
    """Who this is, the roles and what each may, the list of people, and the latest deeds for admins."""
    try:
        person, admin = who.person(), not who.refusal(SEE_STATUS)
        people = read_roles(resources.workspace())
    except InputError as error:
        say.problem("The list of people cannot be read.", str(error), f"Mend `{FILE}` in the workspace.")
        return
    if who.shared():
        st.text(f"You are {person.name}, {person.role}. Roles, from the least: {', '.join(ROLES)}.")
    else:
        st.markdown("No log-in: this is one person’s own machine, who is admin. A team’s server: docs/server.md.")
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.markdown("**Who may do what**")
        least = [(kind.words, kind.least) for kind in KINDS]
        least.sort(key=lambda pair: (ROLES.index(pair[1]), pair[0]))
        table(
            {"to": [words for words, _ in least], "least role": [role for _, role in least]},
            "people.rights",
            "Each kind of deed and the least role that may do it",
            tall=320,
        )
        if people and admin:
            st.markdown(f"**People** of `{FILE}`")
            table(
                {"name": list(people), "role": list(people.values())},
                "people.list",
                f"{len(people)} people with their roles",
            )
    with right:
        st.markdown("**Done lately**")
        if not admin:
            st.markdown(":gray[What others did is shown to admins.]")
            return
        rows = list(reversed(log(resources.workspace())[-LATEST:]))
        if not rows:
            st.markdown(":gray[Nothing yet: every write, paid call and job leaves a line here.]")
            return
        columns = [
            name
            for name in ("at", "who", "role", "deed", "about", "result", "outcome", "by")
            if any(name in row for row in rows)
        ]
        table(
            {name: [str(row.get(name, "")) for row in rows] for name in columns},
            "people.deeds",
            f"The latest {len(rows)} deeds, newest first",
            tall=388,
        )


def draw_environment() -> None:
    """Every variable that is read, with the value it has now; keys and passwords are never shown."""
    if who.refusal(SEE_STATUS):
        st.markdown(":gray[What the environment sets is shown to admins.]")
        return
    rows = shown()
    st.caption("Read when the app starts; docs/settings.md says what each means.")
    table(
        {
            "variable": [row.name for row in rows],
            "now": [row.value or "not set" for row in rows],
            "set": ["✓" if row.given else "" for row in rows],
        },
        "settings.environment",
        "Every variable of the environment with its value",
        tall=1000,
        width=860,
    )
