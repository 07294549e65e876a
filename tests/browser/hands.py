"""What hands and eyes do on every page: wait until it stands still, see where a mark came to rest, tick a row.

Nothing here waits for a time: each function waits for a state of the page, and fails with Playwright's own timeout.
"""

STILL = """() => {
  const app = document.querySelector('[data-testid=stApp]');
  const drawn = app?.dataset.testScriptState === 'notRunning' && app.dataset.testConnectionState === 'CONNECTED'
    && document.fonts.status === 'loaded'
    && !document.querySelector('[data-testid=stSkeleton], [data-testid=stStatusWidget], [data-stale=true]');
  window.framesStill = drawn ? window.framesStill + 1 : 0;
  return window.framesStill > 12;
}"""
"""The script has run, nothing is left to load, and that for some frames:
a chart asks for its size when it is drawn, and a table tells its selection a moment after the click."""

AT_REST = """async (node) => {
  const place = () => { const box = node.getBoundingClientRect(); return [box.x, box.y, box.width, box.height]; };
  let last = '', same = 0;
  for (let frame = 0; frame < 1200 && same < 8 && node.isConnected; frame++) {
    same = String(place()) === last ? same + 1 : 0;
    last = String(place());
    await new Promise(requestAnimationFrame);
  }
  const [x, y, width, height] = place();
  return same < 8 || !width ? null : { x, y, width, height };
}"""
"""The box of a node that did not move for some frames; null of one that was replaced or never rests."""

IN_QUEUE = """() => {
  const seen = (root) => root.querySelector('.label-queue') ?? [...root.querySelectorAll('*')].map(
    (node) => node.shadowRoot && seen(node.shadowRoot)).find(Boolean);
  return seen(document)?.querySelector('.left')?.dataset.pair ?? '';
}"""
"""The pair that the labelling queue shows; nothing between two pairs and at its end."""


def shown(page):
    return page.evaluate(IN_QUEUE)


def settle(page):
    """Wait until the page stands still: run, loaded, drawn."""
    page.evaluate("() => { window.framesStill = 0; }")
    page.wait_for_function(STILL)


def at_rest(locator):
    """The box of an element, as bounding_box() gives it, once it stays where it is."""
    for _ in range(5):
        if box := locator.evaluate(AT_REST):
            return box
    raise AssertionError(f"{locator} never came to rest")


def middle(locator):
    """The point at which to press the mouse on an element that has come to rest."""
    box = at_rest(locator)
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def tick_row(table, row=0):
    """Tick a row of a table; its cells are drawn on a canvas, so they are found by their place."""
    settle(table.page)
    table.scroll_into_view_if_needed()
    at_rest(table)
    table.click(position={"x": 18, "y": 36 + 35 * row + 17})
    settle(table.page)


def until(page, holds):
    """Wait until a condition of ours holds while the page goes on; `holds` is asked again and again."""
    for _ in range(600):
        if holds():
            return
        page.wait_for_timeout(50)
    raise AssertionError("the condition never held")
