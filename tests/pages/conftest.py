"""The app through AppTest, each test with a workspace of its own."""

import json
from functools import cache
from pathlib import Path

import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from tests.ready_made import shipped_collections  # noqa: F401

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session", autouse=True)
def components_found_once():
    """Streamlit reads the metadata of every installed package for each new session; the packages stay the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", cache(manifest_scanner.scan_component_manifests))
        yield


@pytest.fixture(scope="session", autouse=True)
def scripts_compiled_once():
    """AppTest compiles a page's script at each run; a file that stays the same compiles to the same."""
    compile_script = ScriptCache.get_bytecode
    compiled = cache(lambda path, changed_at: compile_script(ScriptCache(), path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScriptCache, "get_bytecode", lambda _, path: compiled(path, Path(path).stat().st_mtime_ns))
        yield


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path / "workspace"))
    st.cache_resource.clear()
    return tmp_path / "workspace"


@pytest.fixture
def app_at(workspace):
    """A fresh session of the app at an address, not run yet: the Bench, or the place that is named."""

    def at(place="", **parameters):
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        app._page_hash = calc_hash(place) if place else ""  # by way of the Bench, each test would make the demo first
        for name, value in parameters.items():
            app.query_params[name] = value
        return app

    return at


@pytest.fixture
def open_app(app_at):
    """A fresh session of the app, opened at that address."""

    def opened(place="", **parameters):
        return app_at(place, **parameters).run()

    return opened


@pytest.fixture
def words():
    """All text of a page that a person reads, for looking words up."""

    def collected(app):
        return "\n".join(str(element.value) for kind in (app.markdown, app.text, app.caption) for element in kind)

    return collected


@pytest.fixture
def figures():
    """The measures line as a dict: label → (value, note)."""

    def collected(app):
        return {metric.label: (metric.value, metric.delta) for metric in app.metric}

    return collected


@pytest.fixture
def jsonl():
    """Queries as the bytes of a recorded-list file."""

    def written(*records):
        return "\n".join(json.dumps(record) for record in records).encode()

    return written
