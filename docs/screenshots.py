"""Take the screenshots of the docs from the running app: `python docs/screenshots.py [NAME…]` (needs Chromium)."""

import sys
from pathlib import Path

from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.peers.serving import APPS, chromium, served

TABLE = "[data-testid=stDataFrame]"
CHART = "g.point[data-id]"
PLOT = ".js-plotly-plot .main-svg"
VIEWS = {
    "explore": ('/?set=recorded-combat&query=combat-1&pipeline=["QueryMust"]', CHART),
    "explore-adaptive": (
        '/?set=recorded-combat&query=combat-1&pipeline=[{"AdaptiveGap":{"gap_threshold":0.02}}]',
        CHART,
    ),
    "explore-live": ('/?set=rulebook&query=combat-strength&pipeline=["QueryMust"]', CHART),
    "labels": ("/labels?project=skirmish-rules", ".label-queue .card .readable, .label-queue .card .many"),
    "questions": ("/questions?project=rulebook", TABLE),
    "entities": ("/entities", TABLE),
    "llm-filter": ("/llm_filter", TABLE),
    "tune": ("/tune", ".plane .marker"),
    "evaluate": ("/evaluate", TABLE),
    "compare": ("/compare?set=rulebook", TABLE),
    "headroom": ("/headroom", PLOT),
    "data": ("/data?project=rulebook", TABLE),
    "data-families": ("/data?project=rulebook&section=Families", "[data-testid=stSelectbox] >> nth=1"),
    "ship": ("/ship?project=rulebook", TABLE),
    "settings": ("/settings", TABLE),
    "settings-history": ("/settings?view=history", TABLE),
}
"""Name of the picture → address, and what is there when the page is drawn."""

QUESTIONS = ("What does a bowman roll at long range?", "Which saving throw is made against poison?")
BUSY = "[data-testid=stSkeleton], [data-testid=stSpinner], [data-testid=stStatusWidget]"


def fill(workspace: Path) -> None:
    """A workspace as it is after a first look: the demo collection, and questions asked of it."""
    from rag_core.cli import main as command

    here = ["-p", "fixed-15", "--workspace", str(workspace)]
    asked = [["query", question, "--collection", "rulebook", *here] for question in QUESTIONS]
    kept = ["evaluate", "--project", "rulebook", "--save-run", "-p", "query-must-refill", *here[2:]]
    for arguments in (["evaluate", "--eval-set", "rulebook", "--split", "dev", *here], kept, *asked):
        if command(arguments):
            raise SystemExit(f"this command did not work: {arguments[0]}")


def capture(browser: Browser, url: str, page_name: str) -> None:
    """Take the lists that the pages under Decide work on, once, as a visitor does."""
    page = browser.new_page()
    page.goto(f"{url}/{page_name}")
    page.get_by_role("button", name="Capture").click(timeout=60_000)
    page.get_by_role("button", name="Capture").wait_for(state="hidden", timeout=300_000)
    page.close()


def shoot(page: Page, url: str, name: str, path: Path) -> None:
    """One view, when it is drawn and nothing moves any more."""
    address, sign = VIEWS[name]
    page.goto(url + address)
    page.locator(sign).first.wait_for(timeout=120_000)
    page.wait_for_function(f"() => !document.querySelector({BUSY!r})", timeout=120_000)
    page.wait_for_timeout(2500)
    page.screenshot(path=path)


def main(names: list[str]) -> None:
    """Every view, or those that are named, at 1440×900, light and dark, into docs/images."""
    wanted = names or list(VIEWS)
    with served(APPS[0], fill) as (url, _), chromium() as browser:
        if {"tune", "headroom"} & set(wanted):
            capture(browser, url, "tune")
        if "llm-filter" in wanted:
            capture(browser, url, "llm_filter")
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
            page = context.new_page()
            for name in wanted:
                shoot(page, url, name, ROOT / "docs" / "images" / f"{name}-{scheme}.png")
            context.close()


if __name__ == "__main__":
    main(sys.argv[1:])
