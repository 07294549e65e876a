"""A threshold is dragged and let go → it is painted: the Bench against Dash and stock Streamlit + Plotly, in one run.

500 questions × 200 candidates. *Dragged*: a pointer move on the held slider until the first frame that shows the moved
number, with both lines of figures, is painted. *Let go*: the pointer's release until the first frame that shows the
server's answer is painted; at both zooms. Beside it the time until the frame after that one has begun, as figures of
older versions were taken. The peers have a slider and two Plotly charts with the same figures, computed
in arrays; their step is a key on the slider, Dash's in drag mode. All run in one browser, their steps interleaved.
Figures are medians, ratios medians of per-round ratios.

Run: python -m benchmarks.interaction [--rounds 25]
"""

from __future__ import annotations

import argparse
import statistics
from contextlib import ExitStack
from typing import Any

from benchmarks.peers import many_lists
from benchmarks.peers.serving import APPS, App, chromium, served

ROUNDS, WARM = 25, 3
SLIDER = ".bench input[data-setting=gap_threshold]"
GOALS = "goals: dragged <= 0.10 of Dash, let go <= 0.80 of Dash and 0.40 of stock Streamlit + Plotly"
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
    // A message sent from an animation frame arrives when that frame has been laid out and painted.
    const frame = new MessageChannel();
    addEventListener(kind, () => {
      const start = performance.now();
      frame.port1.onmessage = () => {
        if (read() === before) return requestAnimationFrame(() => frame.port2.postMessage(0));
        const painted = performance.now() - start;
        requestAnimationFrame(() => resolve([painted, performance.now() - start]));
      };
      requestAnimationFrame(() => frame.port2.postMessage(0));
    }, {capture: true, once: true});
  });
}
"""


def step(page: Any, app: App, number: int) -> list[float]:
    """One key on a peer's slider; milliseconds until the new chart is painted, and until the next frame."""
    page.evaluate(WATCH, [app.mark, app.attribute, "keydown"])
    page.keyboard.press("ArrowRight" if number % 10 < 5 else "ArrowLeft")
    return list(page.evaluate("() => window.painted"))


def drag_and_let_go(page: Any, app: App, number: int) -> tuple[list[float], list[float]]:
    """One move of the held slider, then its release; milliseconds of each, as in `step`."""
    box = page.locator(SLIDER).bounding_box()
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.5, height)
    page.mouse.down()
    page.wait_for_timeout(60)  # the press itself is painted
    page.evaluate(WATCH, [SLIDER, "aria-valuetext", "pointermove"])
    page.mouse.move(box["x"] + box["width"] * (0.15 + 0.05 * (number % 6)), height)
    moved = list(page.evaluate("() => window.painted"))
    page.wait_for_timeout(500)  # at zoom All the grab has brought the figures of every question by then
    page.evaluate(WATCH, [app.mark, app.attribute, "pointerup"])
    page.mouse.up()
    return moved, list(page.evaluate("() => window.painted"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    bench, *peers = APPS
    with ExitStack() as stack:
        browser = stack.enter_context(chromium())

        def opened(url: str, sign: str) -> Any:
            page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
            page.goto(url)
            page.locator(sign).first.wait_for(timeout=180_000)
            page.wait_for_timeout(3_000)
            return page

        url, _ = stack.enter_context(served(bench, many_lists.write_set))
        zooms = {
            zoom: opened(f"{url}{bench.path}&zoom={zoom}", f".bench .{row}")
            for zoom, row in (("one", "row"), ("all", "question"))
        }
        pages = {}
        for app in peers:
            url, _ = stack.enter_context(served(app))
            page = pages[app.name] = opened(url, app.chart)
            sliders = page if "Dash" in app.name else page.get_by_test_id("stSidebar")
            sliders.get_by_role("slider").first.focus()
        times: dict[str, list[list[float]]] = {}
        for number in range(rounds + WARM):
            taken = {}
            for zoom, page in zooms.items():
                page.wait_for_timeout(400)
                moved, let_go = drag_and_let_go(page, bench, number)
                taken |= {f"dragged, zoom {zoom}": moved, f"let go, zoom {zoom}": let_go}
            for app in peers:
                pages[app.name].wait_for_timeout(400)
                taken[app.name] = step(pages[app.name], app, number)
            if number >= WARM:
                for name, pair in taken.items():
                    times.setdefault(name, []).append(pair)
    print(f"data: {many_lists.QUERIES} questions × {many_lists.LENGTH} candidates; {rounds} steps each, interleaved")
    for name, taken_times in times.items():
        show(name, taken_times, {app.name: times[app.name] for app in peers})
    print(GOALS)


def show(name: str, taken: list[list[float]], peers: dict[str, list[list[float]]]) -> None:
    """Medians of one row, and its painted time over that of each peer."""
    figures = []
    for column, what in enumerate(("painted", "next frame")):
        values = sorted(pair[column] for pair in taken)
        figures.append(f"{what} {statistics.median(values):6.1f} ms (p95 {values[int(0.95 * len(values))]:6.1f})")
    ratios = [
        f"{statistics.median(own[0] / other[0] for own, other in zip(taken, times, strict=True)):.2f} of {peer}"
        for peer, times in peers.items()
        if peer != name
    ]
    print(f"{name:26s} {'  '.join(figures)}   {', '.join(ratios)}")


if __name__ == "__main__":
    main()
