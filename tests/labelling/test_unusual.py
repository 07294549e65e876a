"""A log of an exported file comes back without a script, and what is unlike the tuned lists leads it."""

import json
import random

import pytest

from rag_core.cli import main
from rag_core.errors import InputError
from rag_core.export import export_filter
from rag_core.labelling.unusual import unusual_first
from rag_core.records import load_lists
from rag_core.spec import read_pipeline


def a_list(dice, odd):
    """Distances of a search; odd ones begin far off, hardly rise, or fall off a cliff."""
    kind = dice.choice(["far", "flat", "cliff"]) if odd else ""
    distance = dice.gauss(0.75, 0.03) if kind == "far" else dice.gauss(0.35, 0.04)
    rows = []
    for at in range(30):
        rows.append({"id": f"c{at}", "distance": distance})
        step = abs(dice.gauss(0.008, 0.003))
        distance += {"flat": step / 20, "cliff": 0.4 if at == 1 else step}.get(kind, step)
    return rows


@pytest.mark.parametrize("lists", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_planted_tenth_leads_the_log_of_an_exported_file(lists, tmp_path, capsysbinary):
    dice = random.Random(11)
    tuned = [{"id": f"q{n}", "query": f"question {n}", "candidates": a_list(dice, False)} for n in range(60)]
    (tmp_path / "tuned.jsonl").write_text("".join(json.dumps(row) + "\n" for row in tuned))
    place = ["--workspace", str(tmp_path / "ws"), "--json"]
    assert main(["init", "mine", "--from", str(tmp_path / "tuned.jsonl"), *place]) == 0
    names = {"__name__": "exported", "__file__": "filter.py"}
    exec(compile(export_filter(read_pipeline("adaptive-default")), "filter.py", "exec"), names)
    recorder = names["record_to"](tmp_path / "log.jsonl", waiting=2000)
    for n in range(lists):
        names["filter_chunks"](f"asked {n}{' odd' if n % 10 == 3 else ''}", a_list(dice, n % 10 == 3))
    assert recorder.flush(60)
    capsysbinary.readouterr()
    assert main(["import", str(tmp_path / "log.jsonl"), "--as", "shipped", "--like", "mine", *place]) == 0
    said = json.loads(capsysbinary.readouterr().out)
    assert (said["preset"], said["lists"], said["skipped"]) == ("winnow", lists, {})
    cases = load_lists(tmp_path / "ws" / "eval_sets" / "shipped" / "lists.jsonl")
    assert sum(case.query.text.endswith("odd") for case in cases[: lists // 10]) >= 0.8 * lists // 10
    far = [case.query.metadata["unlikeness"] for case in cases]
    assert far == sorted(far, reverse=True)


def test_lists_of_other_scores_cannot_be_compared():
    tuned = load_lists(
        b"".join(json.dumps({"query": f"q{n}", "candidates": [{"distance": n}]}).encode() + b"\n" for n in range(5))
    )
    other = load_lists(json.dumps({"query": "q", "candidates": [{"bm25": 3}]}).encode())
    with pytest.raises(InputError, match="no kind of score in common"):
        unusual_first(other, tuned)
    with pytest.raises(InputError, match="expected 4 or more"):
        unusual_first(other, tuned[:2])
