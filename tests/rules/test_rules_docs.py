"""docs/rules.md says what the code does: its example parses, its limits and tables are those of the code."""

import re
from pathlib import Path

from rag_core.files import parse_yaml
from rag_core.retrieve.requery import STRATEGIES
from rag_core.rules import rule as parsing
from rag_core.rules.rule import parse_rule

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")


def first_cells(heading):
    section = TEXT.split(f"## {heading}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `([a-z-]+)` \|", section, re.MULTILINE))


def source(name):
    return (ROOT / "rag_core" / "rules" / name).read_text(encoding="utf-8")


def test_the_example_is_a_rule_with_every_key():
    example = parse_yaml(TEXT.split("```yaml\n")[1].split("```")[0], "docs")
    assert set(parse_rule(example, "docs").as_mapping()) == set(parsing.KEYS)


def test_the_limits_are_those_of_the_code():
    said = (
        f"at most {parsing.MAX_TERMS} terms, a term at most {parsing.MAX_TERM} characters and {parsing.MAX_WORDS} words"
    )
    assert said in TEXT


def test_every_kind_of_finding_and_refusal_is_listed():
    kinds = set(re.findall(r'Finding\(\s*"([a-z-]+)"', source("check.py")))
    assert first_cells("What lint finds") == kinds
    refusals = re.findall(r'Refusal\(\s*[a-z.]+,\s*"([a-z-]+)"', source("check.py") + source("generate.py"))
    assert first_cells("What is refused before storing") == set(refusals)


def test_every_strategy_is_listed():
    assert first_cells("Refill") == set(STRATEGIES)
