"""Status: does everything work, and how full is it?"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import streamlit as st

from pages.components import jobs, resources, say, who
from pages.widgets.take_along import table
from rag_core.errors import InputError
from rag_core.health import HealthCheck, checks_of
from rag_core.project.deeds import SEE_STATUS

MINUTES = 10


@st.cache_data(ttl=60 * MINUTES, max_entries=4, show_spinner="Looking …")
def looked(folder: str) -> tuple[str, list[HealthCheck]]:
    """When the workspace was looked at, and what was found; once for all who ask within minutes, since all is read."""
    return datetime.now().strftime("%H:%M"), list(checks_of(Path(folder)))


def draw_checks(checks: list[HealthCheck]) -> None:
    broken = [check for check in checks if not check.ok]
    if broken:
        say.problem(
            f"{len(broken)} of {len(checks)} checks found something wrong.",
            "\n".join(f"{check.name}: {check.detail}" for check in broken),
        )
    else:
        st.markdown(f":material/check: **All {len(checks)} checks passed.**")
    table(
        {
            "": ["✓ passed" if check.ok else "✕ failed" for check in checks],
            "check": [check.name for check in checks],
            "found": [check.detail for check in checks],
        },
        "status.checks",
        f"{len(checks)} checks with what each found",
        tall=1000,
        config={
            "": st.column_config.TextColumn(width=70),
            "check": st.column_config.TextColumn(width=130),
            "found": st.column_config.TextColumn(width=900),
        },
    )


def draw_job() -> None:
    st.markdown("**Jobs**")
    if not jobs.under_way():
        st.markdown(f":gray[None runs. Up to {jobs.AT_ONCE} run at once, one of a kind for each person or project.]")
    jobs.show()


def draw() -> None:
    """What the checks found, and the job."""
    try:
        allowed = not who.refusal(SEE_STATUS)
    except InputError as error:
        say.problem("The list of people cannot be read.", str(error))
        return
    if allowed:
        folder = str(resources.workspace())
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                "Check again", icon=":material/refresh:", key="status.again", on_click=looked.clear, args=(folder,)
            )
            at, checks = looked(folder)
            st.markdown(f":small[:gray[looked at {at}]]")
        draw_checks(checks)
    else:
        st.markdown(":gray[What the server’s parts say is shown to admins.]")
    draw_job()
