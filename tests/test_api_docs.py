"""docs/api.md is what the code says now: every public name with how it is called and its contract."""

import importlib.util
import re
from pathlib import Path

import pytest

import rag_core

DOCS = Path(__file__).parents[1] / "docs"
TEXT = (DOCS / "api.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("api_docs", DOCS / "api.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_its_script_writes_now(generator):
    assert generator.written() == TEXT, "run: python docs/api.py"


def test_every_name_of_the_top_has_a_section():
    top = TEXT.partition("## From the top")[2].partition("\n## ")[0]
    assert re.findall(r"^### (\w+)$", top, re.M) == list(rag_core.__all__)


def test_every_entry_has_a_contract_below_its_call():
    entries = re.findall(r"^#{3,4} (\w+)\n\n```python\n[^`]+\n```\n+(.)", TEXT, re.M)
    assert len(entries) > 100
    assert [name for name, first in entries if first in "#-"] == []


def test_no_place_in_memory_stands_on_the_page():
    assert " at 0x" not in TEXT
    assert "<factory>" not in TEXT
