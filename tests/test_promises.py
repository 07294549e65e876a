"""docs/promises.md names tests that exist, and every promise has one."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROWS = re.findall(
    r"^\| (T\d+|–) \|.*?`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs/promises.md").read_text(), re.MULTILINE
)


def test_a_named_test_exists():
    assert [f"{file}::{test}" for _, file, test in ROWS if f"def {test}(" not in (ROOT / file).read_text()] == []


def test_every_promise_has_a_test():
    assert {name for name, *_ in ROWS} >= {f"T{number}" for number in range(1, 24)}


def test_every_row_names_one():
    lines = [line for line in (ROOT / "docs/promises.md").read_text().splitlines() if line.startswith(("| T", "| –"))]
    assert len(lines) == len(ROWS)
