"""What `llm-filter` prints: its documents as short tables. The work is in rag_core.judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rag_core.measure.experiment import shown
from rag_core.measure.significance import comparison_line


def ahead_line(ahead: Mapping[str, Any]) -> str:
    """What a run would take, before it is paid."""
    cost = "cost unknown" if ahead["cost"] is None else f"cost about {ahead['cost']:.4f}"
    tokens = f"about {ahead['prompt_tokens']:,} + {ahead['completion_tokens']:,} tokens"
    calls = f"{ahead['calls']:,} {'call' if ahead['calls'] == 1 else 'calls'}"
    return f"{calls} to make, {ahead['stored']:,} stored, {tokens}, {cost}"


def lines(document: Mapping[str, Any]) -> list[str]:
    """A comparison, or its preview, as a short table."""
    found = [f"{document['judge']} on {document['eval_set']}: {ahead_line(document['preview'])}"]
    if "variants" not in document:
        return found
    if document["run"]["stopped"]:
        found.append(f"stopped: {document['run']['stopped']}")
    found += failure_lines(document["run"])
    rows = [document["baseline"], *document["free"], *document["variants"]]
    wide = max(len(row["name"][:LONGEST_NAME]) for row in rows)
    found.append(f"  {'variant':<{wide}}   SetP   SetR   SetF  {'  '.join(title for title, _ in MORE)}")
    for row in rows:
        scores = "  ".join(shown(row[name]) for name in ("SetP", "SetR", "SetF"))
        rest = "  ".join(f"{tell(row):>{len(title)}}" for title, tell in MORE)
        found.append(f"  {row['name'][:LONGEST_NAME]:<{wide}}  {scores}  {rest}")
    base = document["baseline"]["name"]
    against = [one for one in document["comparison"] if one["a"] == base and one["delta"] is not None]
    return [*found, *map(comparison_line, against)]


def _amount(name: str, form: str) -> Callable[[Mapping[str, Any]], str]:
    """A figure of a row in that form, a dash where the row has none."""
    return lambda row: "-" if row.get(name) is None else format(row[name], form)


LONGEST_NAME = 60
MORE = (
    ("irrelevant removed", _amount("irrelevant_removed", ".3f")),
    ("agreement", _amount("agreement", ".3f")),
    ("kappa", _amount("kappa", ".3f")),
    ("false drops", _amount("false_drops", ",")),
    ("fallback", _amount("fallback_rate", ".3f")),
    ("ms p95", _amount("added_ms_p95", ",.0f")),
    ("cost", _amount("cost", ".4f")),
)
"""Heading → the figure of a row under it; a filter without a model has none, and an unknown cost is a dash."""


def failure_lines(run: Mapping[str, Any]) -> list[str]:
    """How many calls failed and why, with what to do where they only took too long."""
    failed = sum(row["failed"] for row in run["runs"])
    reasons = dict.fromkeys(reason for row in run["runs"] for reason in row["failures"])
    if not failed:
        return []
    slow = any("did not answer within" in reason for reason in reasons)
    advice = ["  a slow model needs more time for a call: a larger --set timeout_ms=…"] if slow else []
    counted = f"{failed:,} {'call' if failed == 1 else 'calls'} failed"
    return [f"{counted}; the candidates stay in distance order:", *(f"  {one}" for one in reasons), *advice]


def simulated_lines(document: Mapping[str, Any]) -> list[str]:
    """Simulated judges and free filters as a short table, with the break-even in words."""
    found = [f"simulated judge on {document['eval_set']}", "  error rate  seed   SetP   SetR   SetF   cost"]
    for row in document["rows"]:
        cost = "unknown" if row["cost"] is None else f"{row['cost']:.4f}"
        scores = "  ".join(shown(row[name]) for name in ("precision", "recall", "f1"))
        found.append(f"  {row['error_rate']:>10.2f}  {row['seed']:>4}  {scores}  {cost}")
    for row in document["free"]:
        found.append(f"  {row['name']:<16.40}  " + "  ".join(shown(row[name]) for name in ("SetP", "SetR", "SetF")))
    even = document["break_even_error_rate"]
    words = "is not crossed by the tried error rates" if even is None else f"is reached at an error rate of {even:.3f}"
    return [*found, f"  break-even with {document['best_free']} {words}"]


def steadiness_lines(document: Mapping[str, Any]) -> list[str]:
    """Repeatability and position bias in words, one line an entrant."""
    found = []
    for row in document["entrants"]:
        found.append(
            f"{row['name']}: repeatability {shown(row['repeatability'])} over {row['runs']} runs, "
            f"{row['flips']} of {row['checked']} decisions flip with the order ({shown(row['flip_rate'])}), "
            f"kept early {shown(row['kept_early'])}, late {shown(row['kept_late'])}, "
            f"fallback {shown(row['fallback_rate'])}"
        )
    return found


def depth_lines(document: Mapping[str, Any]) -> list[str]:
    """Chunks and tokens per depth of expansion."""
    found = ["  depth   chunks   tokens   share relevant   share of the relevant found"]
    for row in document["depths"]:
        found.append(
            f"  {row['depth']:>5}   {row['chunks']:6.1f}   {row['tokens']:6,.0f}   {row['relevant']:14.3f}   "
            f"{shown(row['found']):>27}"
        )
    return found


def answer_lines(document: Mapping[str, Any]) -> list[str]:
    """The answers side by side, one after the other."""
    found = [document["query"]["text"]]
    for context in document["contexts"]:
        note = f" ({context['note']})" if context["note"] else ""
        found.append(f"{context['name']}{note}: {len(context['chunks'])} chunks, about {context['tokens']:,} tokens")
    for row in document["answers"]:
        text = row["text"] if row["text"] is not None else f"no answer: {row['error']}"
        found += ["", f"--- {row['judge']}, {row['context']}", " ".join(text.split())[:2000]]
    return found
