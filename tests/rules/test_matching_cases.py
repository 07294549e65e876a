"""Every row of docs/matching-cases.md, run as it stands there."""

from pathlib import Path

from rag_core.rules.match import decide
from rag_core.rules.rule import parse_rule

PAGE = Path(__file__).parents[2] / "docs" / "matching-cases.md"


def table(columns):
    """The rows of the page's table with that many columns, as lists of cells."""
    rows = [line[1:-1].split("|") for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in row] for row in rows if len(row) == columns]
    return [row for row in cells if row[0] not in ("query", "---")]


TERMS, NUMBERS = table(5), table(6)
SAYS = {"yes": True, "no": False}


def test_the_page_holds_at_least_sixty_cases():
    assert len(TERMS) >= 60
    assert len(NUMBERS) >= 20


def test_a_term_in_both_modes():
    for row in TERMS:
        query, term, token, substring, _ = row
        rule = parse_rule({"contain": term}, "c1")
        assert decide(rule, query, "token").satisfied is SAYS[token], row
        assert decide(rule, query, "substring").satisfied is SAYS[substring], row


def test_a_number_of_a_label():
    for row in NUMBERS:
        query, label, low, high, holds, given = row
        limits = {key: float(value) for key, value in (("min", low), ("max", high)) if value != "…"}
        verdict = decide(parse_rule({"number_in": [{"label": [label], **limits}]}, "c1"), query)
        assert verdict.satisfied is SAYS[holds], row
        assert list(verdict.parts[0].given) == [float(number) for number in given.split(",") if number], row
