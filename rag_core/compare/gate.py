"""A gate: is a pipeline no worse than a baseline by more than a margin, on the same queries, labels and corpus?

Non-inferiority, in one direction: pass where the one-sided bound of the mean of candidate − baseline lies above
−margin, fail where the other lies below it, and neither for want of evidence: then it is inconclusive, with the number
of questions it would take. Identical kept lists pass at any number. Alpha is shared by the candidates
(Bonferroni). Where the two cannot be set against each other (see run_file.paired), it is inconclusive too.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement, tostring

from rag_core.compare.run_file import Pairing, Run, RunPipeline, changed_besides, paired
from rag_core.errors import InputError
from rag_core.measure.significance import (
    FEWEST,
    MARGIN,
    POWER,
    TIE,
    Comparison,
    compare,
    difference_interval,
    fewest,
    paired_differences,
    standard_error,
)

if TYPE_CHECKING:
    from rag_core.measure.significance import Row

_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
MARKS = {"pass": "✅ pass", "fail": "❌ fail", "inconclusive": "❔ inconclusive"}


def gate_json(results: Sequence[GateResult], rules: GateRules, run_id: str, baseline_id: str) -> dict[str, Any]:
    """The verdicts as plain values."""
    return {
        "outcome": overall(results),
        "baseline": baseline_id,
        "run": run_id,
        "rules": {name: getattr(rules, name) for name in rules.__dataclass_fields__},
        "pipelines": [
            {
                "name": one.pipeline,
                "baseline": one.baseline,
                "outcome": one.outcome,
                "sentence": one.sentence,
                "bounds": None if one.bounds is None else list(one.bounds),
                "needed": one.needed,
                "comparison": None if one.comparison is None else one.comparison.to_json(),
                "regressions": [
                    {
                        "id": bad.query_id,
                        "baseline": bad.baseline,
                        "candidate": bad.candidate,
                        "reasons": list(bad.reasons),
                    }
                    for bad in one.regressions
                ],
                "notices": list(one.notices),
            }
            for one in results
        ],
    }


def gate_markdown(results: Sequence[GateResult], rules: GateRules) -> str:
    """A summary for a pull request."""
    lines = [
        f"## Retrieval gate: {MARKS[overall(results)]}",
        "",
        f"| pipeline | baseline | {rules.measure} difference | one-sided bounds | margin | queries | verdict |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(_row(one, rules) for one in results),
        "",
    ]
    for one in results:
        lines.append(_plain(one.sentence))
        lines.extend(f"- besides: {_plain(notice)}" for notice in one.notices)
        lines.append("")
        if one.regressions:
            lines += [f"<details><summary>{len(one.regressions)} worst queries</summary>", ""]
            lines += [_bullet(bad) for bad in one.regressions]
            lines += ["", "</details>", ""]
    return "\n".join(lines)


def _row(one: GateResult, rules: GateRules) -> str:
    found = one.comparison
    delta = "-" if found is None or found.delta is None else f"{found.delta:+.3f}"
    interval = "-" if one.bounds is None else f"{one.bounds[0]:+.3f} … {one.bounds[1]:+.3f}"
    count = "-" if found is None else str(found.queries)
    cells = (_code(one.pipeline), _code(one.baseline), delta, interval, f"{rules.margin:g}", count, MARKS[one.outcome])
    return f"| {' | '.join(cells)} |"


def _bullet(bad: Any) -> str:
    why = "".join(f"; lost {_code(reason)}" for reason in bad.reasons[:3])
    more = "".join(f"; {words}" for words in bad.more)
    return f"- {_code(bad.query_id)}: {bad.baseline:.3f} → {bad.candidate:.3f}{why}{more}"


def _code(text: str) -> str:
    """Foreign text as a code span on one line: no back-tick, no pipe can end it or the cell."""
    plain = " ".join(text.split()).replace("`", "'").replace("|", "¦")[:200]
    return f"`{plain}`" if plain else "`-`"


def _plain(text: str) -> str:
    """Our own sentence with foreign names in it: nothing in it is read as Markdown or HTML."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(text.split()))


def gate_junit(results: Sequence[GateResult], rules: GateRules) -> str:
    """JUnit XML: one test case a pipeline; inconclusive ones are skipped, not passed."""
    outcomes = [one.outcome for one in results]
    counts = {"tests": len(results), "failures": outcomes.count(FAIL), "skipped": outcomes.count(INCONCLUSIVE)}
    root = Element("testsuites", {name: str(value) for name, value in counts.items()})
    suite = SubElement(
        root, "testsuite", {"name": "retrieval gate", "errors": "0", **{k: str(v) for k, v in counts.items()}}
    )
    for one in results:
        case = SubElement(
            suite, "testcase", {"classname": f"gate.{rules.measure}", "name": _xml(one.pipeline), "time": "0"}
        )
        if one.outcome == FAIL:
            failure = SubElement(case, "failure", {"message": _xml(one.sentence), "type": "regression"})
            failure.text = _xml("\n".join(_told(bad) for bad in one.regressions))
        elif one.outcome == INCONCLUSIVE:
            SubElement(case, "skipped", {"message": _xml(one.sentence)})
        SubElement(case, "system-out").text = _xml("\n".join([one.sentence, *one.notices]))
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _told(bad: Any) -> str:
    return (
        f"{bad.query_id}: {bad.baseline:.3f} → {bad.candidate:.3f} {'; '.join((*bad.reasons[:3], *bad.more))}".rstrip()
    )


def _xml(text: str) -> str:
    """The text without the characters that XML 1.0 cannot hold."""
    return _NO_XML.sub("�", text)


PASS, FAIL, INCONCLUSIVE = "pass", "fail", "inconclusive"
SHOWN = 10


@dataclass(frozen=True)
class GateRules:
    """When a gate passes and fails. `margin` is how much worse is still accepted."""

    measure: str = "SetF"
    margin: float = MARGIN
    alpha: float = 0.05
    least_queries: int = 10

    def __post_init__(self) -> None:
        if not 0 <= self.margin < 1:
            raise InputError(f"margin is {self.margin!r}, expected a number from 0 to under 1")
        if not 0 < self.alpha < 1:
            raise InputError(f"alpha is {self.alpha!r}, expected a number between 0 and 1")
        if self.least_queries < 2:
            raise InputError(f"the least number of queries is {self.least_queries}, expected at least 2")


@dataclass(frozen=True, slots=True)
class Regression:
    """A query on which the candidate is worse: why it lacks relevant chunks that the baseline kept, and how many more
    others it keeps.
    """

    query_id: str
    baseline: float
    candidate: float
    reasons: tuple[str, ...]
    noise: int = 0  # chunks not known to be relevant that it keeps beyond those of the baseline

    @property
    def more(self) -> tuple[str, ...]:
        """The noise in words; nothing where there is none."""
        return (f"keeps {self.noise} more that are not known to be relevant",) if self.noise else ()


@dataclass(frozen=True, slots=True)
class GateResult:
    """One candidate's verdict. `bounds` are one-sided each, at alpha shared by the candidates; None where too few."""

    pipeline: str
    baseline: str
    outcome: str
    sentence: str
    comparison: Comparison | None = None
    bounds: tuple[float, float] | None = None
    needed: int | None = None  # questions in all with which it would be decided four times in five
    regressions: tuple[Regression, ...] = ()
    notices: tuple[str, ...] = ()


def judge(
    baseline: Run,
    candidate: Run,
    rules: GateRules = GateRules(),
    baseline_pipeline: str | None = None,
    known: Container[str] | None = None,
) -> list[GateResult]:
    """A verdict on every pipeline of the candidate run against one (the first, unless named) of the baseline.

    A question that the candidate lacks counts 0 there, one that the baseline lacks is left out; another source is told,
    other labels are recomputed on the candidate's. `known` holds the ids of the chunks that it
    could have kept.
    """
    before = baseline.pipeline(baseline_pipeline)
    pairs = paired(baseline, candidate, known, guards=True)
    if pairs.problem:
        sentence = f"{pairs.problem} Make a new baseline."
        return [GateResult(one.name, before.name, INCONCLUSIVE, sentence) for one in candidate.pipelines]
    notices = tuple(changed_besides(baseline, candidate, guards=True))
    alpha = rules.alpha / len(candidate.pipelines)
    found = [_judged(before, after, rules, alpha, pairs) for after in candidate.pipelines]
    return [replace(one, notices=(*notices, *one.notices)) for one in found]


def overall(results: Sequence[GateResult]) -> str:
    """Fail where any candidate fails, else inconclusive where any is, else pass."""
    outcomes = {one.outcome for one in results}
    return next((one for one in (FAIL, INCONCLUSIVE) if one in outcomes), PASS)


def _judged(before: RunPipeline, after: RunPipeline, rules: GateRules, alpha: float, pairs: Pairing) -> GateResult:
    """A candidate's figures, and what they say by the rules."""
    for one in (before, after):
        if not any(rules.measure in query["values"] for query in one.queries):
            raise InputError(
                f"{one.name[:80]!r} has no {rules.measure[:40]!r}, expected a measure both runs were made with"
            )
    values = pairs.values(before, after, rules.measure)
    found = compare(*values, names=(before.name, after.name), measure=rules.measure)
    fell_back = after.means.get("queries_fallback") or 0
    notices = (f"{fell_back} queries of {after.name} fell back",) if fell_back else ()
    worst = _regressions(before, after, rules, pairs)
    result = GateResult(after.name, before.name, PASS, "", found, regressions=worst, notices=notices)
    if found.delta is not None and not found.wins + found.losses and _identical(before, after, pairs):
        return replace(result, sentence=f"{after.name} keeps the same chunks as {before.name} on every question.")
    least = max(rules.least_queries, FEWEST)
    if found.delta is None or found.queries < least:
        few = f"{found.queries} scored queries are too few to tell, expected at least {least}"
        sentence = f"{after.name}: {few}."
        return replace(result, outcome=INCONCLUSIVE, sentence=sentence)

    import numpy as np  # here for the start of the command line, as in significance.py

    low, high = bounds_of(np.asarray(paired_differences(*values)[0]), alpha)
    result = replace(result, bounds=(low, high))
    figures = (
        f"{rules.measure} {found.delta:+.3f} against {before.name} over {found.queries} queries, "
        f"one-sided bounds {low:+.3f} and {high:+.3f}, a drop of {rules.margin:g} is accepted"
    )
    if low > -rules.margin:
        return replace(result, sentence=f"{after.name} is no worse: {figures}.")
    if high < -rules.margin:
        return replace(result, outcome=FAIL, sentence=f"{after.name} is worse: {figures}.")
    needed = queries_to_decide(found, rules.margin, alpha)
    more = "" if needed is None else f" About {needed:,} questions in all would tell, if they are like these."
    sentence = f"{after.name}: not yet known whether it is worse: {figures}.{more}"
    return replace(result, outcome=INCONCLUSIVE, sentence=sentence, needed=needed)


def _identical(before: RunPipeline, after: RunPipeline, pairs: Pairing) -> bool:
    """Whether both keep the very same lists on every question they share, and share every question of the first."""
    if pairs.only_first:
        return False
    kept = [{query["id"]: query["kept"] for query in pipeline.queries} for pipeline in (before, after)]
    return all(kept[0][query] == kept[1][query] for query in kept[0].keys() & kept[1].keys())


def bounds_of(row: Row, alpha: float) -> tuple[float, float]:
    """One-sided bounds of a mean difference: what passes must lie above the first, what fails below the second.

    The first counts one question more, that loses as much as any question differs: without it a drop that sits in few
    questions passes in 11 % at ten of them instead of 6 %.
    """
    from scipy.special import stdtrit  # as above

    low, high, _ = difference_interval(row, level=2 * alpha)
    assert low is not None
    assert high is not None
    largest = float(abs(row).max())
    if largest:
        more = [*row.tolist(), -largest]
        low = fmean(more) - float(stdtrit(len(row), 1 - alpha)) * stdev(more) / sqrt(len(more))
    return low, high


def queries_to_decide(found: Comparison, margin: float, alpha: float) -> int | None:
    """Questions with which a gate would pass or fail four times in five, if delta and spread are as seen."""
    from scipy.special import ndtri, stdtrit  # as above

    delta, largest = found.delta or 0.0, found.largest

    def enough(count: int) -> bool:
        edge = float(stdtrit(count - 1, 1 - alpha) + ndtri(POWER))
        if delta < -margin:
            return -margin - delta >= edge * standard_error(count, found.deviation, largest)
        lower = (count * delta - largest) / (count + 1)
        return lower + margin >= edge * sqrt((count * found.deviation**2 + largest**2) / (count * (count + 1)))

    return fewest(enough) if largest and delta != -margin else None


def _regressions(before: RunPipeline, after: RunPipeline, rules: GateRules, pairs: Pairing) -> tuple[Regression, ...]:
    """The queries that got worse, the worst first, with the candidate's own reasons for what it lacks."""
    found = []
    labels, least = pairs.second.document["labels"], pairs.second.document["min_grade"]
    entries = [{query["id"]: query for query in pipeline.queries} for pipeline in (before, after)]
    for query_id, x, y in zip(pairs.ids, *pairs.values(before, after, rules.measure), strict=True):
        if x is None or y is None or y - x >= -TIE:
            continue
        if query_id in pairs.only_first:
            found.append(Regression(query_id, x, y, ("the later run lacks the question",)))
            continue
        one, two = (entry[query_id] for entry in entries)
        grades = labels.get(query_id, {})
        lost = {chunk for chunk in one["kept"] if grades.get(chunk, 0) >= least} - set(two["kept"])
        reasons = [
            f"{reason['id']} ({reason['stage']}: {reason['reason']})"
            for reason in two.get("reasons", ())
            if reason["id"] in lost
        ]
        noise = [sum(grades.get(chunk, 0) < least for chunk in each["kept"]) for each in (one, two)]
        found.append(Regression(query_id, x, y, tuple(reasons), max(0, noise[1] - noise[0])))
    return tuple(sorted(found, key=lambda one: one.candidate - one.baseline)[:SHOWN])
