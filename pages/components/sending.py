"""What a person looks at goes to the browser before the rest of the page.

Streamlit sends every 10 ms what a run has drawn by then, and the browser paints all of it together: a chart that stands
in one batch with fifty widgets is seen only when these are done. What is drawn, and when, is for the pages.
"""

from __future__ import annotations

from time import sleep

BATCH = 0.012  # seconds: one wait of Streamlit's between two batches, and a little


def now() -> None:
    """Let what is drawn so far be sent and painted; the run goes on after it."""
    sleep(BATCH)
