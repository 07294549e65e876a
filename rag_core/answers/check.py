"""When is an answer right? What a question expects, and whether a text is that. Asks nobody.

A question's `expected_answer` (or `expected`, `answer`, `reference`, `ground_truth`) is one of these:

    10, "10"                                  the number, exactly
    {"number": 2.5, "tolerance": 0.1}         the number, give or take
    "three miles"                             these words in this order, case and form of letters aside
    {"pattern": "1[0-9] ?feet"}               what a regular expression finds (RE2)
    ["three miles", "at night | after dark"]  every fact, each in one of the wordings between the bars
    {"judge": "Only a cleric may turn them."} a model compares with this reference (see `judging`)

A model is asked to end with a line `Answer: …`; numbers and words are looked for in that line first, so that "level 7,
armor class 6" in its reasoning is no answer of 7. A text without such a line is read by its last line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

import re2

from rag_core.errors import InputError
from rag_core.text import fold

RIGHT, WRONG, REFUSED, FAILED, UNCHECKED = "right", "wrong", "refused", "failed", "unchecked"
VERDICTS = (RIGHT, WRONG, REFUSED, FAILED, UNCHECKED)
NOT_THERE = "not in the context"
"""What a model is asked to say where the chunks do not hold the answer."""

MOST_FACTS = 50
FORMS = "a number, a text, a list of facts, or an object with number, pattern, facts or judge"
_ANSWER = re.compile(r"^[\s>*_#-]*(?:final )?answer[*_]*\s*[::][*_]*\s*(.+)$", re.IGNORECASE | re.MULTILINE)
_LONE = re.compile(r"-?\d+(?:\.\d+)?")
_NUMBER = re.compile(r"(?<![\w.,])[-\u2212]?\d+(?:,\d{3})*(?:\.\d+)?(?!\w|[.,]\d)")


@dataclass(frozen=True)
class AnswerCheck:
    """What an answer is, and the sentence why."""

    word: str  # right | wrong | refused | failed | unchecked
    text: str = ""


@dataclass(frozen=True)
class Expected:
    """What a question expects: exactly one of number, facts, pattern or judge."""

    number: float | None = None
    tolerance: float = 0.0
    facts: tuple[tuple[str, ...], ...] = ()  # every fact, each in any of its wordings
    pattern: str = ""
    judge: str = ""

    @cached_property
    def wanted(self) -> str:
        """As it is shown to a person."""
        if self.number is not None:
            return f"{self.number:g}" + (f" ± {self.tolerance:g}" if self.tolerance else "")
        facts = "; ".join(" | ".join(wordings) for wordings in self.facts)
        return facts or (f"/{self.pattern}/" if self.pattern else self.judge)

    def check(self, answer: str, question: str = "") -> AnswerCheck:
        """Whether the text is what is expected; one with a reference for a judge is unchecked here."""
        last = final_line(answer)
        if NOT_THERE in fold(last):
            return AnswerCheck(REFUSED, f"it says that the answer is {NOT_THERE}")
        if self.number is not None:
            return self._number(last, question)
        if self.facts:
            return self._facts(answer)
        if self.pattern:
            hit = re2.search(self.pattern, answer)
            return AnswerCheck(RIGHT if hit else WRONG, "" if hit else f"nothing in it is /{self.pattern}/")
        return AnswerCheck(UNCHECKED, "a judge has to compare it with the reference")

    def _number(self, line: str, question: str) -> AnswerCheck:
        """Right where every number of the line is the expected one or stands in the question, and it is there."""
        assert self.number is not None
        said, repeated = numbers(line), numbers(question)
        fits = [abs(value - self.number) <= self.tolerance + 1e-9 for value in said]
        other = [value for value, fit in zip(said, fits, strict=True) if not fit and value not in repeated]
        if any(fits) and not other:
            return AnswerCheck(RIGHT)
        shown = ", ".join(f"{value:g}" for value in said[:5]) or "no number"
        return AnswerCheck(WRONG, f"it says {shown}, expected {self.wanted}")

    def _facts(self, answer: str) -> AnswerCheck:
        words, said = f" {_words(answer)} ", numbers(answer)

        def told(wording: str) -> bool:
            return float(wording) in said if _LONE.fullmatch(wording) else f" {_words(wording)} " in words

        missing = [wordings for wordings in self.facts if not any(map(told, wordings))]
        if not missing:
            return AnswerCheck(RIGHT)
        if len(self.facts) == 1:
            return AnswerCheck(WRONG, f"it does not say {self.wanted[:200]!r}")
        named = "; ".join(wordings[0] for wordings in missing[:5])
        return AnswerCheck(WRONG, f"{len(missing)} of {len(self.facts)} facts are missing: {named[:200]}")


def final_line(answer: str) -> str:
    """What stands behind the last `Answer:`, else the last line that is not empty."""
    found = _ANSWER.findall(answer)
    if found:
        return str(found[-1]).strip()
    return next((line.strip() for line in reversed(answer.splitlines()) if line.strip()), "")


def numbers(text: str) -> list[float]:
    """The numbers of a text in order; parts of words (7th, 2d10) are none."""
    return [float(number.replace(",", "").replace("\u2212", "-")) for number in _NUMBER.findall(text)]


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", fold(text)))


def expected_of(value: Any) -> Expected:
    """What a value of `expected_answer` says; an InputError where it is none of the forms above."""
    if isinstance(value, bool) or value in (None, "", [], {}):
        raise InputError(f"an expected answer is {value!r}, expected {FORMS}")
    if isinstance(value, int | float):
        return _number_of(value, 0)
    if isinstance(value, str):
        text = value.strip()
        if _LONE.fullmatch(text):
            return _number_of(text, 0)
        return Expected(facts=(_wordings(text),))
    if isinstance(value, Sequence):
        return _facts_of(value)
    kinds = set(value) - {"tolerance"} if isinstance(value, Mapping) else set()
    if isinstance(value, Mapping) and len(kinds) == 1 and ("tolerance" not in value or kinds == {"number"}):
        kind = kinds.pop()
        said = value[kind]
        if kind == "number":
            return _number_of(said, value.get("tolerance", 0))
        if kind == "facts" and isinstance(said, Sequence) and not isinstance(said, str):
            return _facts_of(said)
        if kind == "pattern" and isinstance(said, str) and said:
            try:
                re2.compile(said)
            except re2.error as error:
                raise InputError(f"an expected pattern cannot be read ({error}), expected one of RE2") from None
            return Expected(pattern=said)
        if kind == "judge" and isinstance(said, str) and said.strip():
            return Expected(judge=said.strip())
    raise InputError(f"an expected answer is {str(value)[:80]}, expected {FORMS}")


def _number_of(value: Any, tolerance: Any) -> Expected:
    try:
        number, off = float(value), float(tolerance)
    except (TypeError, ValueError):
        raise InputError(
            f"an expected number is {str(value)[:40]!r} ± {str(tolerance)[:40]!r}, expected numbers"
        ) from None
    if not isfinite(number) or not isfinite(off) or off < 0:
        raise InputError(f"an expected number is {number} ± {off}, expected finite numbers and no negative tolerance")
    return Expected(number=number, tolerance=off)


def _facts_of(facts: Sequence[Any]) -> Expected:
    if not 0 < len(facts) <= MOST_FACTS or not all(isinstance(one, str | int | float) for one in facts):
        raise InputError(f"a list of {len(facts)} expected facts, expected 1 to {MOST_FACTS} texts")
    return Expected(facts=tuple(_wordings(str(one)) for one in facts))


def _wordings(text: str) -> tuple[str, ...]:
    """The wordings between the bars; each has a word or is a number."""
    wordings = tuple(part.strip().replace("\u2212", "-") for part in text.split("|") if _words(part))
    if not wordings:
        raise InputError(f"an expected answer is {text[:80]!r}, expected one with words or a number")
    return wordings
