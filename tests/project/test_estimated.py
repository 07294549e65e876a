"""Measures from partial labels: exact where the pool is judged, else bounds that hold, and what they stand on."""

import json

import pytest

from rag_core.cli import main
from rag_core.filters.cutoff import TopK
from rag_core.labelling.label_next import compare
from rag_core.labelling.pooling import pool
from rag_core.project.labels import ALONE, estimated, kept_of, with_searches
from rag_core.project.project import open_project
from rag_core.project.session import Session
from rag_core.spec import parse_pipeline
from rag_core.stage import Pipeline

GRADES = {"+": 1, "-": 0, "?": None}
TWO, ALL = parse_pipeline([{"TopK": {"k": 2}}], "two"), parse_pipeline([], "all")


def project(folder, *lists):
    """A project of recorded lists: one string a question, its letters the labels of its list in order."""
    place = folder / "eval_sets" / "mine"
    place.mkdir(parents=True, exist_ok=True)
    (place / "meta.yaml").write_text("version: 1\nname: mine\n")
    rows = []
    for at, labels in enumerate(lists):
        hits = [
            {"id": f"{at}-{n}", "text": f"text {n} of {at}", "distance": n / 10, "relevant": GRADES[mark]}
            for n, mark in enumerate(labels)
        ]
        rows.append({"version": 1, "id": f"q{at}", "query": f"question {at}", "metric": "cosine", "candidates": hits})
    (place / "lists.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return Session(open_project("mine", folder))


def test_a_pool_that_is_wholly_judged_is_exact_and_equals_what_evaluate_says(tmp_path):
    session = project(tmp_path, "+--+", "-+--", "----")
    said = estimated(session, [TWO, ALL])
    assert said.kind == "exact"
    for tally, bounds in zip(session.measure([TWO, ALL]), said.bounds, strict=True):
        for name, (low, high) in bounds.items():
            assert low == high == pytest.approx(tally.summary.means[name])


def test_relevant_labels_outside_of_the_pool_count(tmp_path):
    """Two of four relevant chunks stand in the first two places: recall is 1/2 whatever the pool."""
    session = project(tmp_path, "++++")
    (bounds,) = estimated(session, [TWO]).bounds
    assert bounds == {"SetP": (1, 1), "SetR": (1 / 2, 1 / 2), "SetF": pytest.approx((2 / 3, 2 / 3))}


def test_what_every_pipeline_drops_is_of_the_pool_too(tmp_path):
    """Both kept chunks are judged, two dropped ones are not: recall is 1 only if neither is relevant."""
    session = project(tmp_path, "+-??")
    said = estimated(session, [TWO])
    assert (said.kind, said.labelled, said.pairs, said.names) == ("bounds", 2, 4, ("two",))
    assert said.bounds[0]["SetR"] == (pytest.approx(1 / 3), 1.0)
    assert said.bounds[0]["SetP"] == (1 / 2, 1 / 2)


def test_two_cuts_are_not_settled_while_what_both_drop_may_be_relevant(tmp_path):
    """TopK(1) leads by 2/2 − 2/3; both dropped chunks relevant, 2/4 and 2/5: ahead by less."""
    session = project(tmp_path, "+-??")
    rivals = with_searches([Pipeline((TopK(k=1),), label="one"), TWO])
    assert [one.called for one in rivals] == ["one", "two", ALONE]
    reports = [kept_of(session, one, lambda *_: None) for one in rivals]
    shown = [pair.chunk.id for pair in pool(reports)]
    assert compare(*reports[:2], lambda _: shown).bounds == pytest.approx((2 / 4 - 2 / 5, 2 / 2 - 2 / 3))


def test_of_few_labels_bounds_are_all_that_is_said_and_by_the_command_too(tmp_path, capsysbinary):
    session = project(tmp_path, "+???")
    said = estimated(session, [TWO, ALL])
    assert (said.kind, said.found, said.labelled, said.pairs) == ("bounds", None, 1, 4)
    assert said.bounds[0]["SetR"] == (pytest.approx(1 / 3), 1.0)  # both further ones relevant, or only what is kept
    assert "Too few labels" in said.to_text()
    arguments = ["estimate", "--project", "mine", "--workspace", str(tmp_path), "-p", "unfiltered", "--json"]
    assert main(arguments) == 0
    document = json.loads(capsysbinary.readouterr().out)
    assert document["kind"] == "bounds"
    assert document["pipelines"][0]["bounds"]["SetP"] == [1 / 4, 1.0]
    assert {"fingerprints", "split"} <= set(document)
