"""A threshold is moved → the chart is painted: the product against stock Streamlit + Plotly and Dash, same charts.

Server-driven: a key on the focused slider until the chart shows the new threshold, plus two animation frames. Drag
preview: a pointer move on the chart's own limit until the line has moved, plus two frames; Dash is its peer there with
its slider in drag mode, key by key. All apps run in one browser, their steps interleaved; figures are medians, ratios
medians of per-round ratios. Data: the recorded list combat-1, 15 chunks.

`--tune` compares Tune's marker instead: dragging it over 500 queries × 200 candidates, all of them computed in the
browser, against a threshold slider of Dash (drag mode) and of stock Streamlit + Plotly with the same curve and the same
500 bars. Options: --tune, --rounds N.
"""

from __future__ import annotations

import argparse
import re
import statistics
from contextlib import ExitStack

from benchmarks.peers import many_lists
from benchmarks.peers.serving import APPS, MANY, App, chromium, served

ROUNDS = 25
WATCH = """
([selector, attribute, kind]) => {
  const deep = (root) => {
    const found = root.querySelector(selector);
    if (found) return found;
    for (const node of root.querySelectorAll('*')) {
      if (node.shadowRoot) { const inner = deep(node.shadowRoot); if (inner) return inner; }
    }
    return null;
  };
  const read = () => { const e = deep(document); return e && (attribute ? e.getAttribute(attribute) : e.textContent); };
  const before = read();
  window.painted = new Promise((resolve) => {
    addEventListener(kind, () => {
      const start = performance.now();
      const look = () => {
        if (read() === before) return setTimeout(look, 0);
        const changed = performance.now() - start;
        requestAnimationFrame(() => requestAnimationFrame(() => resolve([changed, performance.now() - start])));
      };
      look();
    }, {capture: true, once: true});
  });
}
"""


def step(page, app: App, number: int) -> list[float]:
    """One key on the slider; milliseconds until the page holds the new chart, and until it is painted."""
    page.evaluate(WATCH, [app.mark, app.attribute, "keydown"])
    page.keyboard.press("ArrowRight" if number % 10 < 5 else "ArrowLeft")
    return page.evaluate("() => window.painted")


def drag(page, app: App, y: float, x: float) -> list[float]:
    """One pointer move while the limit is held; milliseconds as in `step`."""
    page.evaluate(WATCH, [app.mark, app.attribute, "pointermove"])
    page.mouse.move(x, y)
    return page.evaluate("() => window.painted")


def dragged(page, app: App, rounds: int) -> list[list[float]]:
    grip = page.locator("g.limit[data-limit=gap_threshold] .grip").bounding_box()
    x, y = grip["x"] + grip["width"] / 2, grip["y"] + grip["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    times = [drag(page, app, y + 4 * (1 + number % 12), x) for number in range(rounds)]
    page.mouse.up()
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tune", action="store_true", help="Tune's marker on 500 queries × 200 candidates")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    (tune if options.tune else explore)(options.rounds)


def tune(rounds: int) -> None:
    """Tune's marker and the peers' sliders, step by step in turn."""
    with ExitStack() as stack:
        browser = stack.enter_context(chromium())
        pages = {}
        for app in MANY:
            url, _ = stack.enter_context(served(app, many_lists.write_set if app is MANY[0] else None))
            page = browser.new_context(viewport={"width": 1440, "height": 1000}).new_page()
            page.goto(url + app.path)
            if app is MANY[0]:
                open_many(page)
            page.locator(app.chart).first.wait_for(timeout=120_000)
            page.wait_for_timeout(3_000)
            if app is not MANY[0]:
                sliders = page if "Dash" in app.name else page.get_by_test_id("stSidebar")
                sliders.get_by_role("slider").first.focus()
            pages[app.name] = page
        times: dict[str, list[list[float]]] = {app.name: [] for app in MANY}
        hold(pages[MANY[0].name])
        for number in range(rounds + 3):
            for app in MANY:
                page = pages[app.name]
                page.wait_for_timeout(400)
                taken = pull(page, app, number) if app is MANY[0] else step(page, app, number)
                if number >= 3:
                    times[app.name].append(taken)
        pages[MANY[0].name].mouse.up()
    print(f"data: {many_lists.QUERIES} queries × {many_lists.LENGTH} candidates; {rounds} steps each, interleaved")
    for name, taken in times.items():
        show(f"marker  {name}", taken, times[MANY[0].name], taken)
    print("the last column of a row is Tune's time over that row's; goal: <= 0.25 of Dash, painted")


def open_many(page) -> None:
    """The large eval set, with every chunk of every list looked at."""
    page.get_by_role("combobox", name=re.compile("Eval set")).click()
    page.get_by_role("option", name="Many lists").click()
    page.get_by_role("status").filter(has_text=f"macro over {many_lists.QUERIES - 1} dev").wait_for(timeout=120_000)
    page.get_by_label("Max results").fill(str(many_lists.MOST))
    page.get_by_label("Max results").press("Enter")
    page.wait_for_timeout(5_000)


def hold(page) -> None:
    """Take the marker."""
    page.locator(".plane .area").scroll_into_view_if_needed()
    page.mouse.move(*pixel(page, 0))
    page.mouse.down()


def pull(page, app: App, number: int) -> list[float]:
    """One pointer move of the held marker."""
    x, y = pixel(page, number + 1)
    return drag(page, app, y, x)


def pixel(page, number: int) -> tuple[float, float]:
    """A place on the plane, another for every number."""
    box = page.locator(".plane .area").bounding_box()
    share = 0.15 + 0.06 * (number % 11)
    return box["x"] + box["width"] * (0.3 + 0.03 * (number % 7)), box["y"] + box["height"] * (1 - share)


def explore(rounds: int) -> None:
    """Explore's threshold by key, and its drag preview."""
    with ExitStack() as stack:
        browser = stack.enter_context(chromium())
        pages = {}
        for app in APPS:
            url, _ = stack.enter_context(served(app))
            page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
            page.goto(url + app.path)
            page.locator(app.chart).first.wait_for(timeout=60_000)
            page.wait_for_timeout(3_000)
            sliders = page.get_by_test_id("stSidebar") if "Dash" not in app.name else page
            sliders.get_by_role("slider").first.focus()
            pages[app.name] = page
        times: dict[str, list[list[float]]] = {app.name: [] for app in APPS}
        for number in range(rounds + 3):
            for app in APPS:
                pages[app.name].wait_for_timeout(400)
                taken = step(pages[app.name], app, number)
                if number >= 3:
                    times[app.name].append(taken)
        preview = dragged(pages["winnow"], APPS[0], rounds)
    report(times, preview, rounds)


def report(times: dict[str, list[list[float]]], preview: list[list[float]], rounds: int) -> None:
    print(
        f"data: recorded list combat-1, 15 chunks; {rounds} steps each, interleaved; painted = in the page + two frames"
    )
    for name, taken in times.items():
        show(f"server-driven  {name}", taken, times["winnow"], taken)
    show("drag preview   winnow, of Dash", preview, preview, times["Dash"])
    print("goals: server-driven <= 0.50 of stock, <= 0.90 of Dash; drag preview <= 0.25 of Dash")


def show(name: str, taken: list[list[float]], own: list[list[float]], peer: list[list[float]]) -> None:
    """Medians of one row, and the product's time over the peer's."""
    figures = []
    for column, what in enumerate(("in the page", "painted")):
        values = sorted(pair[column] for pair in taken)
        ratio = statistics.median(a[column] / b[column] for a, b in zip(own, peer, strict=True))
        figures.append(
            f"{what} {statistics.median(values):6.1f} ms (p95 {values[int(0.95 * len(values))]:6.1f}), {ratio:.2f}"
        )
    print(f"{name:42s} {'  '.join(figures)}")


if __name__ == "__main__":
    main()
