"""A gate's verdict for machines and people: JSON values, a Markdown summary, JUnit XML. Decides nothing.

Query ids and reasons are other people's text: in Markdown they stand in code spans that they cannot leave, in XML the
writer escapes them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from rag_core.compare.gate import FAIL, INCONCLUSIVE, GateResult, GateRules, overall

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
