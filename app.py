"""The table of contents of the app: page settings and the list of pages. `streamlit run app.py` starts it."""

from pathlib import Path

import streamlit as st

# A file of ours: an icon by name would be fetched from a font server on every visit.
ICON = Path(__file__).parent / "pages" / "components" / "icon.svg"

st.set_page_config(page_title="Winnow", page_icon=str(ICON), layout="wide")

st.session_state["app"] = True  # pages/components/header.py asks for it

PAGES = (
    st.Page("pages/explore.py", title="Explore", icon=":material/filter_alt:", default=True),
    st.Page("pages/start.py", title="Start", icon=":material/flag:"),
)

st.navigation(PAGES).run()
