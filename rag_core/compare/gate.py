"""A gate: is a pipeline worse than a baseline by more than chance, on the same queries, labels and corpus?

One question in one direction: fail where the mean of candidate − baseline lies below −margin at level alpha (one-sided
paired permutation test, corrected for the number of candidates). Where the two cannot be set against each other (see
run_file.paired), or the queries are too few to tell, the answer is neither: inconclusive.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rag_core.compare.run_file import Pairing, Run, RunPipeline, changed_besides, paired
from rag_core.errors import InputError
from rag_core.measure.resampling import is_exact, share_at_most, sign_flips
from rag_core.measure.significance import RESAMPLES, TIE, Comparison, compare, holm

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
import re
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

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
                "p": one.p,
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
        f"| pipeline | baseline | {rules.measure} difference | 95 % interval | p (one-sided) | queries | verdict |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(_row(one) for one in results),
        "",
    ]
    for one in results:
        lines.append(_plain(one.sentence))
        lines.extend(f"- besides: {_plain(notice)}" for notice in one.notices)
        lines.append("")
        if one.regressions and one.outcome != INCONCLUSIVE:
            lines += [f"<details><summary>{len(one.regressions)} worst queries</summary>", ""]
            lines += [_bullet(bad) for bad in one.regressions]
            lines += ["", "</details>", ""]
    return "\n".join(lines)


def _row(one: GateResult) -> str:
    found = one.comparison
    delta = "-" if found is None or found.delta is None else f"{found.delta:+.3f}"
    interval = "-" if found is None or found.low is None else f"{found.low:+.3f} … {found.high:+.3f}"
    p = "-" if one.p is None else "< 0.001" if one.p < 0.001 else f"{one.p:.3f}"
    count = "-" if found is None else str(found.queries)
    cells = (_code(one.pipeline), _code(one.baseline), delta, interval, p, count, MARKS[one.outcome])
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
    """When a gate fails. `margin` is how much worse is still accepted."""

    measure: str = "SetF"
    margin: float = 0.0
    alpha: float = 0.05
    least_queries: int = 10
    seed: int = 0

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
    """One candidate's verdict. `p` is one-sided, corrected over the candidates; None where nothing was tested."""

    pipeline: str
    baseline: str
    outcome: str
    sentence: str
    comparison: Comparison | None = None
    p: float | None = None
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
    found = [_judged(before, after, rules, pairs) for after in candidate.pipelines]
    tested = [one.p for one in found if one.p is not None]
    corrected = iter(holm(tested))
    settled = [one if one.p is None else replace(one, p=next(corrected)) for one in found]
    return [replace(_decided(one, rules), notices=(*notices, *one.notices)) for one in settled]


def overall(results: Sequence[GateResult]) -> str:
    """Fail where any candidate fails, else inconclusive where any is, else pass."""
    outcomes = {one.outcome for one in results}
    return next((one for one in (FAIL, INCONCLUSIVE) if one in outcomes), PASS)


def _judged(before: RunPipeline, after: RunPipeline, rules: GateRules, pairs: Pairing) -> GateResult:
    """What a candidate's figures say, not yet decided."""
    for one in (before, after):
        if not any(rules.measure in query["values"] for query in one.queries):
            raise InputError(
                f"{one.name[:80]!r} has no {rules.measure[:40]!r}, expected a measure both runs were made with"
            )
    values = pairs.values(before, after, rules.measure)
    found = compare(*values, names=(before.name, after.name), measure=rules.measure, seed=rules.seed)
    p = None
    if found.queries >= rules.least_queries:
        import numpy as np

        scored = [(x, y) for x, y in zip(*values, strict=True) if x is not None and y is not None]
        p = worse_p(np.asarray([y - x for x, y in scored]) + rules.margin, seed=rules.seed)
    fell_back = after.means.get("queries_fallback") or 0
    notices = (f"{fell_back} queries of {after.name} fell back",) if fell_back else ()
    worst = _regressions(before, after, rules, pairs)
    return GateResult(after.name, before.name, "", "", found, p, worst, notices)


def worse_p(shifted: NDArray[np.float64], *, seed: int = 0, resamples: int = RESAMPLES) -> float:
    """One-sided p of the sign-flip test that the mean of `shifted` (differences + margin) is below 0."""
    import numpy as np

    shifted = np.where(np.abs(shifted) <= TIE, 0.0, shifted)
    drawn = sign_flips(shifted, seed, resamples)
    return share_at_most(drawn, float(shifted.mean()), is_exact(len(shifted), resamples))


def _decided(one: GateResult, rules: GateRules) -> GateResult:
    """The verdict and its sentence."""
    found = one.comparison
    if found is None or found.delta is None or one.p is None:
        count = 0 if found is None else found.queries
        sentence = (
            f"{one.pipeline}: {count} scored queries are too few to tell, expected at least {rules.least_queries}."
        )
        return replace(one, outcome=INCONCLUSIVE, sentence=sentence)
    allowed = f" (a drop of {rules.margin:g} is accepted)" if rules.margin else ""
    shown = "p below 0.001" if one.p < 0.001 else f"p {one.p:.3f}"
    figures = (
        f"{rules.measure} {found.delta:+.3f} against {one.baseline} over {found.queries} queries{allowed}, {shown}"
    )
    if one.p <= rules.alpha:
        return replace(one, outcome=FAIL, sentence=f"{one.pipeline} is worse: {figures}.")
    power = "" if not found.detectable else f"; a drop of {found.detectable:.3f} would be found four times in five"
    return replace(one, outcome=PASS, sentence=f"{one.pipeline} is not shown to be worse: {figures}{power}.")


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
