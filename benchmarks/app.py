"""Cold start to the first sight, and the time every page takes to open, beside a bare Streamlit app with one st.write.

The bare app is Streamlit's own minimum: server, web page, connection, one line of text. What the product takes beyond
it is ours. A stock Streamlit app and a Dash app with a slider and two charts start in the same rounds; the Bench has
its rows and figures at first sight. Each round starts every server anew on a fresh workspace (the shipped sets), opens
each in a fresh browser context, then opens every place twice by its address, the bare app's page each time beside it:
the first visit loads the page's code in the server, the second finds it loaded. A page is open when its heading (the
bare app: its text) stands there, the server says that its script has ended, no placeholder is left and two frames have
been drawn. Figures are medians over rounds, ratios medians of per-round ratios; our share of a time is 1 − 1 / ratio,
and nothing where the ratio is below 1. Options: --rounds N.
"""

from __future__ import annotations

import argparse
import statistics
import time
from contextlib import ExitStack
from dataclasses import replace

from benchmarks.peers.serving import APPS, PEERS, QUIET, STREAMLIT, App, chromium, served

ROUNDS = 5
PATIENCE = 180_000  # ms; a busy machine is slow, and a page that never opens still ends the run
AS_STARTED = [part.replace("app.py", "asgi.py") for part in APPS[0].command]
WINNOW = replace(APPS[0], name="winnow", path="/", command=AS_STARTED, chart=".bench .row")
"""The product as `make run` starts it, opened at its root address."""
BARE = App(
    "bare Streamlit",
    [*STREAMLIT, str(PEERS / "bare_streamlit.py"), *QUIET, "--server.port"],
    "/",
    "/_stcore/health",
    "[data-testid=stMarkdown]",
    "",
)
HEADING = ".st-key-rail"
ENDED = """
() => document.querySelector('[data-testid=stApp][data-test-script-state=notRunning]')
  && !document.querySelector('[data-testid=stSkeleton]')
"""
DRAWN = "() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))"
Pair = tuple[float, float]
"""Seconds of the product and of another app, measured one after the other."""


def addresses() -> dict[str, str]:
    """Title → address of every place of the rail."""
    return {
        "Bench": "/",
        **{name.capitalize(): f"/{name}" for name in ("data", "questions", "labels", "ship", "settings")},
    }


def opened(page, address: str, sign: str) -> float:
    """Seconds from asking for an address to an open page."""
    began = time.perf_counter()
    page.goto(address)
    page.locator(sign).first.wait_for()
    page.wait_for_function(ENDED)
    page.evaluate(DRAWN)
    return time.perf_counter() - began


def charted(page, address: str, app: App) -> float:
    """Seconds from asking for an address to the first chart, or to the bare app's text."""
    began = time.perf_counter()
    page.goto(address)
    page.locator(app.chart).first.wait_for()
    return time.perf_counter() - began


def once(browser) -> dict[str, Pair]:
    """One round: row → the two times."""
    with ExitStack() as stack:
        pages, urls, healthy, chart = {}, {}, {}, {}
        for app in (WINNOW, BARE, *APPS[1:]):
            urls[app.name], healthy[app.name] = stack.enter_context(served(app))
            context = stack.enter_context(browser.new_context(viewport={"width": 1440, "height": 900}))
            pages[app.name] = context.new_page()
            pages[app.name].set_default_timeout(PATIENCE)
            chart[app.name] = charted(pages[app.name], urls[app.name] + app.path, app)
        ours, theirs = WINNOW.name, BARE.name
        whole = {name: healthy[name] + chart[name] for name in urls}
        rows = {
            "start to healthy": (healthy[ours], healthy[theirs]),
            "healthy to first sight": (chart[ours], chart[theirs]),
            **{f"cold start, {name}": (whole[ours], taken) for name, taken in whole.items() if name != ours},
        }
        for visit in ("first visit", "again"):
            for title, path in addresses().items():
                own = opened(pages[ours], urls[ours] + path, HEADING)
                rows[f"{title}, {visit}"] = (own, opened(pages[theirs], urls[theirs], BARE.chart))
        return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    with chromium() as browser:
        once(browser)  # fills the file caches
        found = [once(browser) for _ in range(rounds)]
    print(f"data: the shipped eval sets; {rounds} rounds, the apps in turn; the bare app's time is Streamlit's own")
    for row in found[0]:
        show(row, [one[row] for one in found])


def show(row: str, pairs: list[Pair]) -> None:
    """One row: both medians, their ratio, and which share of the time is ours."""
    own, other = (statistics.median(values) for values in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"{row:28s} winnow {own:6.2f} s  it {other:6.2f} s  ratio {ratio:5.2f}  ours {max(0.0, 1 - 1 / ratio):5.0%}")


if __name__ == "__main__":
    main()
