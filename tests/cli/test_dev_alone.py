"""What chooses reads dev questions alone: a rule or setting that only held-out ones speak for or against says nothing.

And what measures no held-out question writes down no look.
"""

import json

import pytest

from rag_core.cli import main
from rag_core.project.project import open_project
from rag_core.project.session import Session
from tests import planted

TOPICS = [*planted.TOPICS, *(f"old {topic}" for topic in planted.TOPICS)]
UNLABELLED = TOPICS[::4]
NEVER = {"contain_one_of": [["no question says this"]]}


def write_lists(folder, ruled=()):
    """A question a topic with three chunks; the first is relevant where anything is labelled."""
    rows = []
    for topic in TOPICS:
        hits = [{"id": f"{topic}{n}", "title": f"{topic} {n}", "distance": n / 10} for n in range(3)]
        for n, hit in enumerate(hits) if topic not in UNLABELLED else ():
            hit["relevant"] = int(n == 0)
        if topic in ruled:
            hits[0]["query_must"] = NEVER
        asked = f"what of the {topic}"
        rows.append({"version": 1, "id": topic, "query": asked, "metric": "cosine", "candidates": hits})
    (folder / "lists.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path))
    made = tmp_path / "eval_sets" / "mine"
    made.mkdir(parents=True)
    (made / "meta.yaml").write_text("version: 1\nname: mine\n")
    write_lists(made)
    return made


@pytest.fixture
def session(folder, tmp_path):
    return Session(open_project("mine", tmp_path))


@pytest.fixture
def said(capfd):
    def run(*arguments, code=0):
        assert main([*map(str, arguments), "--project", "mine", "--json"]) == code
        return json.loads(capfd.readouterr().out)

    return run


def looks(capfd):
    assert main(["held-out", "show", "mine", "--json"]) == 0
    return len(json.loads(capfd.readouterr().out)["looks"])


def labelled(ids):
    return sorted(set(ids) - set(UNLABELLED))


def test_a_sweep_of_a_project_is_over_its_dev_questions_and_counts_the_scored_ones(session, said, capfd):
    dev = session.split.dev
    found = said("sweep", "--stage", "TopK", "--grid", "k=1|2")
    assert (found["queries_total"], found["queries_scored"]) == (len(dev), len(labelled(dev)))
    assert found["queries_scored"] < found["queries_total"] < len(TOPICS)
    assert (found["split"]["dev"], found["split"]["held_out"]) == (len(dev), 0)
    assert looks(capfd) == 0
    assert main(["sweep", "--project", "mine", "--stage", "TopK", "--grid", "k=1|2"]) == 0
    assert f"means over {len(labelled(dev))} of {len(dev)} dev queries" in capfd.readouterr().out


def test_rules_that_lose_held_out_answers_alone_are_no_errors_and_those_that_lose_dev_ones_are(folder, session, said):
    dev, held_out = labelled(session.split.dev), labelled(session.split.held_out)
    write_lists(folder, ruled=held_out)
    assert said("rules", "lint")["counts"]["error"] == 0
    write_lists(folder, ruled=(dev[0], held_out[0]))
    errors = [one for one in said("rules", "lint", code=1)["findings"] if one["severity"] == "error"]
    assert [one["chunks"] for one in errors] == [[f"{dev[0]}0"]]


def test_rules_suggest_counts_the_places_of_dev_lists_alone(session, said):
    (family,) = (one for one in said("rules", "suggest")["families"] if f"{session.split.dev[0]}0" in one["chunks"])
    assert family["share"] == pytest.approx(1 / len(session.split.dev))


def test_a_gate_on_a_baseline_of_dev_questions_looks_at_none_that_is_held_out(session, said, capfd, tmp_path):
    base = tmp_path / "base.json"
    pipelines = [json.dumps({"name": f"k{k}", "stages": [{"TopK": {"k": k}}]}) for k in (1, 2, 3)]
    said("evaluate", "-p", pipelines[0], "--split", "dev", "--run-out", base)
    dev = session.split.dev
    for one in pipelines:
        found = said("gate", "--baseline", base, "-p", one, "--margin", "0.9")
        assert (found["split"]["dev"], found["split"]["held_out"], found["looks"]) == (len(dev), 0, 0)
        assert found["pipelines"][0]["comparison"]["queries"] == len(labelled(dev))
    assert looks(capfd) == 0
    said("evaluate", "-p", pipelines[0], "--run-out", base)
    assert said("gate", "--baseline", base, "-p", pipelines[1], "--margin", "0.9")["looks"] == 2


def test_a_pipeline_carries_as_many_questions_that_chose_it_as_are_scored_whoever_chose(session, said):
    scored = len(labelled(session.split.dev))
    fixed = session.baseline(session.pipeline("unfiltered")).chosen_on
    tuned = said("tune", "--method", "plane", "--stage", "TopK", "--grid", "k=1|2")["pipeline"]["chosen_on"]
    assert (fixed.questions, tuned["questions"]) == (scored, scored)
    assert fixed.fingerprint == tuned["fingerprint"]
