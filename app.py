"""Page settings and the menu; `streamlit run app.py` starts it. The pages: pages/rail.py."""

from pathlib import Path

import streamlit as st

from pages import rail
from pages.components import who

# A file of ours: an icon by name would be fetched from a font server on every visit.
ICON = Path(__file__).parent / "pages" / "components" / "icon.svg"

st.set_page_config(page_title="Winnow", page_icon=str(ICON), layout="wide")
# Chosen values and main buttons are white on the primary colour, which no dark theme can make legible.
WHITE_ON = "[data-tag], [data-testid=stBaseButton-primary]:enabled {background-color: light-dark(#005E94, #1B6FA3)}"
WIDE = "[data-testid=stMainBlockContainer] {padding: 0.75rem 1.5rem 2rem}"  # every place uses the whole window
# pages/questions/page.py: the table and its parts stand under each other where the window is narrow.
STACKED = "@media (max-width: 1000px) {.st-key-questions-body [data-testid=stColumn] {min-width: 100%}}"
# pages/bench/page.py: a link is as high as the buttons beside it, which stand at the bottom under the lists' labels.
LINKED = ".st-key-bench-head [data-testid=stElementContainer]:has([data-testid=stPageLink]) {margin: 4px 0}"
# pages/bench/page.py: in a narrow window its head stays one line.
PICK = ".st-key-bench-head [data-testid=stElementContainer]:has([data-testid=stSelectbox])"
ONE_LINE = f"@media (max-width: 980px) {{{PICK} {{flex: 0 0 170px !important}} .st-key-bench-head {{gap: 0.5rem}}}}"
# pages/rail.py: what is told of unsaved labels takes no room of the page below it.
APART = ".st-key-waiting {position: fixed; width: auto}"
st.html(f"<style>{WHITE_ON} {WIDE} {STACKED} {LINKED} {ONE_LINE} {APART}</style>")
page = st.navigation(rail.pages(), position="hidden")
who.gate()
rail.show(page.url_path)
page.run()
