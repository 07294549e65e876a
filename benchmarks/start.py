"""Server start → first sight: the Bench of a fresh workspace against a chart in stock Streamlit + Plotly and in Dash.

The Bench has its rows then, both pipelines' figures and the sentence that says what A keeps of B's 15 chunks: the
demo's collection was made for it. Each round starts every app's server anew and opens it in a fresh browser context,
apps interleaved; figures are medians of the seconds from the start of the process to a healthy answer, from there to
the first chart in the page, and in all.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import replace

from benchmarks.peers.serving import APPS, App, chromium, served

ROUNDS = 5
AS_STARTED = [part.replace("app.py", "asgi.py") for part in APPS[0].command]
FRESH = (replace(APPS[0], path="/", command=AS_STARTED), *APPS[1:])
"""The product as `make run` starts it, opened at its root address."""


def once(browser, app: App) -> tuple[float, float]:
    """Seconds to healthy, and from healthy to the first chart."""
    with served(app) as (url, healthy):
        context = browser.new_context(viewport={"width": 1440, "height": 900})
        page = context.new_page()
        began = time.perf_counter()
        page.goto(url + app.path)
        page.locator(app.chart).first.wait_for(timeout=60_000)
        taken = time.perf_counter() - began
        context.close()
        return healthy, taken


def main() -> None:
    times: dict[str, list[tuple[float, float]]] = {app.name: [] for app in FRESH}
    with chromium() as browser:
        for number in range(ROUNDS + 1):
            for app in FRESH:
                taken = once(browser, app)
                if number:  # the first round fills the file caches
                    times[app.name].append(taken)
    totals = {name: [sum(pair) for pair in pairs] for name, pairs in times.items()}
    print(f"winnow: demo of 694 chunks; the others: one list of 15; {ROUNDS} starts each, in turn")
    for name, pairs in times.items():
        healthy, chart = (statistics.median(values) for values in zip(*pairs, strict=True))
        total = statistics.median(totals[name])
        ratio = statistics.median(a / b for a, b in zip(totals["winnow"], totals[name], strict=True))
        parts = f"healthy {healthy:5.2f} s  first chart {chart:5.2f} s  in all {total:5.2f} s"
        print(f"{name:26s} {parts}  winnow / it {ratio:.2f}")
    print("goal: in all <= 0.70 of the stock app")


if __name__ == "__main__":
    main()
