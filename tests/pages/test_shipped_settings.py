"""What the app ships with: settings that exist and keep to the machine, sinks that are inert, imports that wait."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())
PAGES = sorted((ROOT / "pages").rglob("*.py"))
SCRIPTS = sorted((ROOT / "pages").rglob("*.js"))


def flat(settings, before=""):
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{key}.")
        else:
            yield before + key, value


def test_every_setting_exists_in_streamlit():
    from streamlit import config

    assert dict(flat(SETTINGS)).keys() - config.get_config_options().keys() == set()


def test_the_app_listens_on_loopback_only_and_reports_nothing():
    settings = dict(flat(SETTINGS))
    assert settings["server.address"] == "127.0.0.1"
    assert settings["browser.gatherUsageStats"] is False
    assert settings["server.maxUploadSize"] <= 50


def test_no_menu_of_file_names_stands_there_while_the_app_loads():
    assert dict(flat(SETTINGS))["client.showSidebarNavigation"] is False


def test_no_page_asks_for_raw_html():
    raw = re.compile(r"unsafe_allow|st\.html\(|components\.v1|iframe")
    assert [path for path in PAGES if raw.search(path.read_text())] == []


def test_no_script_parses_markup_or_speaks_to_the_network():
    live = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|DOMParser|fetch\(|XMLHttp|http")
    texts = {path: path.read_text().replace("http://www.w3.org/2000/svg", "") for path in SCRIPTS}
    assert [path for path, text in texts.items() if live.search(text)] == []


# Plotly is not among them: Streamlit itself imports it wherever it is installed.
LATE = ("scipy", "sklearn", "chromadb", "ranx", "ir_measures", "sqlalchemy", "alembic", "openai")
DRAW = """
import sys
from streamlit.testing.v1 import AppTest
loaded, drawn = [], []
import pages.bench.component as chart
show = chart.show
def watched(*args, **named):
    loaded.extend(name for name in {late} if name in sys.modules)
    drawn.append(1)
    return show(*args, **named)
chart.show = watched
app = AppTest.from_file("app.py", default_timeout=60)
app.query_params["project"] = "recorded-combat"
app.run()
assert not app.exception
assert drawn
print("loaded before the chart:", " ".join(loaded))
"""


def test_no_heavy_package_is_imported_before_the_chart_is_drawn(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", DRAW.format(late=LATE)],
        cwd=ROOT,
        env={**os.environ, "WINNOW_WORKSPACE": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert run.stdout.strip().splitlines()[-1] == "loaded before the chart:"
