"""Status: does everything work, and how full is it?"""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.components import jobs, resources, say, who
from rag_core.errors import InputError
from rag_core.health import HealthCheck, checks_of
from rag_core.project.deeds import SEE_STATUS

FOUND = "status.found"


def look() -> None:
    st.session_state[FOUND] = list(checks_of(resources.workspace()))


def draw_checks(checks: list[HealthCheck]) -> None:
    broken = [check for check in checks if not check.ok]
    if broken:
        say.problem(
            f"{len(broken)} of {len(checks)} checks found something wrong.",
            "\n".join(f"{check.name}: {check.detail}" for check in broken),
        )
    else:
        st.markdown(f":material/check: **All {len(checks)} checks passed.**")
    st.dataframe(
        pd.DataFrame(
            {
                "": ["✓ passed" if check.ok else "✕ failed" for check in checks],
                "check": [check.name for check in checks],
                "found": [check.detail for check in checks],
            }
        ),
        hide_index=True,
        key="status.checks",
        height=38 + 35 * len(checks),
        column_config={
            "": st.column_config.TextColumn(width=70),
            "check": st.column_config.TextColumn(width=130),
            "found": st.column_config.TextColumn(width=900),
        },
        alt=f"{len(checks)} checks with what each found",
    )


def draw_job() -> None:
    st.markdown("**Job**")
    job = jobs.current()
    if job is None:
        st.markdown(":gray[None runs. Ingests and searches over settings run one at a time.]")
    elif job.over.is_set():
        st.text(f"{job.title}: {job.problem or job.stopped or 'done'}")
    jobs.show()


def draw() -> None:
    """What the checks found, and the job."""
    try:
        allowed = not who.refusal(SEE_STATUS)
    except InputError as error:
        say.problem("The list of people cannot be read.", str(error))
        return
    if FOUND not in st.session_state and allowed:
        with st.spinner("Looking …"):
            look()
    if allowed:
        st.button("Check again", icon=":material/refresh:", key="status.again", on_click=look)
        draw_checks(st.session_state[FOUND])
    else:
        st.markdown(":gray[What the server’s parts say is shown to admins.]")
    draw_job()
