"""Take the screenshots of the docs from the running app: `python docs/screenshots.py [NAME…]` (needs Chromium)."""

import sys
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.peers.serving import APPS, QUIET, STREAMLIT, chromium, served

TABLE = "[data-testid=stDataFrame]"
VIEWS = {
    "bench": ("/bench?project=rulebook&q=combat-1", ".curves .dot"),
    "bench-cut": ("/bench?project=rulebook&q=combat-strength&a=demo-tuned&b=auto", ".curves .dot"),
    "bench-all": ("/bench?project=rulebook&zoom=all&lens=differences&a=demo-tuned&b=auto", ".lists"),
    "bench-losses": ("/bench?project=rulebook&zoom=all&lens=losses&a=demo-tuned&b=auto", ".lists"),
    "bench-judge": ('/bench?project=api-docs&pipeline=["LLMFilter"]', ".bench .row"),
    "data": ("/data?project=rulebook", TABLE),
    "data-families": ("/data?project=rulebook&section=Families", "[data-testid=stSelectbox] >> nth=1"),
    "questions": ("/questions?project=rulebook", TABLE),
    "labels": ("/labels?project=skirmish-rules", ".label-queue .card .readable, .label-queue .card .many"),
    "ship": ("/ship?project=rulebook", TABLE),
    "settings": ("/settings", TABLE),
    "settings-history": ("/settings?view=history", TABLE),
}
"""Name of the picture → address, and what is there when the page is drawn."""

APP = replace(APPS[0], command=[*STREAMLIT, str(ROOT / "asgi.py"), *QUIET, "--server.port"])
"""Started as `make run` does: app.py alone says "Page not found" to the first visitor of a place."""
QUESTIONS = ("What does a bowman roll at long range?", "Which saving throw is made against poison?")
BUSY = "[data-testid=stSkeleton], [data-testid=stSpinner], [data-testid=stStatusWidget]"


def fill(workspace: Path) -> None:
    """A workspace as it is after a first look: the demo collection, and questions asked of it."""
    from rag_core.cli import main as command

    here = ["-p", "fixed-15", "--workspace", str(workspace)]
    asked = [["query", question, "--collection", "rulebook", *here] for question in QUESTIONS]
    for arguments in (["evaluate", "--eval-set", "rulebook", "--split", "dev", *here], *asked):
        if command(arguments):
            raise SystemExit(f"this command did not work: {arguments[0]}")


def shoot(page: Page, url: str, name: str, path: Path) -> None:
    """One view, when it is drawn and nothing moves any more."""
    address, sign = VIEWS[name]
    page.goto(url + address)
    page.locator(sign).first.wait_for(timeout=120_000)
    if name == "bench-judge":
        page.locator(".bench .stage .drawer").last.click()
    page.wait_for_function(f"() => !document.querySelector({BUSY!r})", timeout=120_000)
    page.wait_for_timeout(2500)
    page.screenshot(path=path)


def main(names: list[str]) -> None:
    """Every view, or those that are named, at 1440×900, light and dark, into docs/images."""
    wanted = names or list(VIEWS)
    with served(APP, fill) as (url, _), chromium() as browser:
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
            page = context.new_page()
            for name in wanted:
                shoot(page, url, name, ROOT / "docs" / "images" / f"{name}-{scheme}.png")
            context.close()


if __name__ == "__main__":
    main(sys.argv[1:])
