"""The prose of the demo rulebook: entries have their own titles, a length like real ones, and are not one another's copies."""

import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

PROSE = Path(__file__).parents[2] / "eval_sets" / "rulebook" / "prose"
WORD = re.compile(r"[\w'’+-]*\w")
SHORTEST, LONGEST = 30, 220
GRAM, TOO_ALIKE = 5, 0.2


def entries_of(path: Path) -> list[tuple[str, str]]:
    """(title, body) of every level-2 section of a file, in its order."""
    _, *sections = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [(title.strip(), body) for title, _, body in (section.partition("\n") for section in sections)]


def words_of(text: str) -> list[str]:
    """The lower-cased words of a text; table bars and bullets are none."""
    return [word.lower() for word in WORD.findall(text)]


def grams_of(text: str) -> set[tuple[str, ...]]:
    """All runs of five words."""
    words = words_of(text)
    return {tuple(words[start : start + GRAM]) for start in range(len(words) - GRAM + 1)}


def jaccard(left: set[tuple[str, ...]], right: set[tuple[str, ...]]) -> float:
    """Shared runs over all runs, 0 where there are none."""
    return len(left & right) / len(left | right) if left or right else 0.0


ENTRIES = [entry for path in sorted(PROSE.glob("*.md")) for entry in entries_of(path)]


def test_jaccard_of_two_texts_that_share_one_of_three_runs() -> None:
    assert jaccard(grams_of("a b c d e f"), grams_of("b c d e f g")) == 1 / 3


@pytest.mark.parametrize(("name", "fewest"), [("spells.md", 170), ("monsters.md", 180)])
def test_a_file_holds_as_many_entries_as_the_demo_needs(name: str, fewest: int) -> None:
    assert len(entries_of(PROSE / name)) >= fewest


def test_titles_are_unique() -> None:
    counts = Counter(title.casefold() for title, _ in ENTRIES)
    assert [title for title, count in counts.items() if count > 1] == []


def test_every_entry_is_as_long_as_a_rulebook_entry() -> None:
    lengths = {title: len(words_of(body)) for title, body in ENTRIES}
    assert {title: count for title, count in lengths.items() if not SHORTEST <= count <= LONGEST} == {}


def test_no_two_entries_are_too_alike() -> None:
    grams = [(title, grams_of(body)) for title, body in ENTRIES]
    alike = [(a, b) for (a, left), (b, right) in combinations(grams, 2) if jaccard(left, right) >= TOO_ALIKE]
    assert alike == []


def test_only_a_heading_stands_before_the_first_entry() -> None:
    leading = [path.read_text(encoding="utf-8").split("## ", 1)[0].strip() for path in sorted(PROSE.glob("*.md"))]
    assert [text for text in leading if not re.fullmatch(r"# [^\n]+", text)] == []
