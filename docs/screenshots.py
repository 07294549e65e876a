"""Take the screenshots of the docs from the running app: `python docs/screenshots.py` (needs Chromium on the PATH)."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from peers.serving import APPS, chromium, served

VIEWS = {
    "explore": '/?set=recorded-combat&query=combat-1&pipeline=["QueryMust"]',
    "explore-adaptive": '/?set=recorded-combat&query=combat-1&pipeline=[{"AdaptiveGap":{"gap_threshold":0.02}}]',
    "start": "/start",
}


def main() -> None:
    """Every view at 1440×900, light and dark, into docs/images."""
    with served(APPS[0]) as (url, _), chromium() as browser:
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme=scheme)
            page = context.new_page()
            for name, address in VIEWS.items():
                page.goto(url + address)
                page.wait_for_load_state("networkidle")
                page.wait_for_timeout(4000)
                page.screenshot(path=ROOT / "docs" / "images" / f"{name}-{scheme}.png")
            context.close()


if __name__ == "__main__":
    main()
