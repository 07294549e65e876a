"""A pipeline carries which questions chose it, and figures over those say so or leave them out."""

import json
from dataclasses import replace

import pytest

from rag_core.cli import main
from rag_core.errors import SpecError
from rag_core.project.choosing import best_on_dev
from rag_core.project.project import open_project
from rag_core.project.session import Session
from rag_core.project.split import reset_held_out
from rag_core.project.verdict import judge
from rag_core.spec import dump_pipeline, fingerprint, parse_pipeline, read_pipeline
from rag_core.stage import ChosenOn
from tests.planted import TOPICS


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """Sixteen questions of three chunks, the first or the first two of which are relevant."""
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path))
    folder = tmp_path / "eval_sets" / "mine"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: mine\n")
    rows = []
    for at, topic in enumerate(TOPICS):
        hits = [{"id": f"{topic}{n}", "distance": n / 10, "relevant": int(n <= at % 2)} for n in range(3)]
        rows.append(
            {"version": 1, "id": topic, "query": f"what of the {topic}", "metric": "cosine", "candidates": hits}
        )
    (folder / "lists.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def opened(workspace):
    return Session(open_project("mine", workspace))


def test_a_spec_carries_what_it_was_chosen_on_and_one_without_it_opens_as_before():
    plain = parse_pipeline({"name": "mine", "stages": ["TopK"]})
    assert plain.chosen_on is None
    assert "chosen_on" not in dump_pipeline(plain)
    said = ChosenOn("mine", 42, "ab12", "plane", "2026-01-31")
    tuned = replace(plain, chosen_on=said)
    assert parse_pipeline(dump_pipeline(tuned)).chosen_on == said
    assert (tuned, fingerprint(tuned)) == (plain, fingerprint(plain))  # what it does is the same
    assert read_pipeline("demo-tuned").chosen_on == ChosenOn("rulebook", 42, method="grid")


@pytest.mark.parametrize(
    "said", ["mine", {"split": "mine"}, {"split": "mine", "questions": "42"}, {"split": "", "x": 1}]
)
def test_what_is_no_chosen_on_is_refused(said):
    with pytest.raises(SpecError, match="chosen_on is"):
        parse_pipeline({"stages": ["TopK"], "chosen_on": said})


def test_figures_over_questions_that_chose_a_pipeline_say_so_and_others_say_nothing(workspace):
    session = opened(workspace)
    best = best_on_dev(session, parse_pipeline(["TopK"]), 0, crossed=False)
    dev = len(session.dev)
    assert 0 < dev < len(TOPICS)
    assert (best.pipeline.chosen_on.split, best.pipeline.chosen_on.questions) == (session.split.name, dev)
    assert session.unseen([best.pipeline], session.cases) == session.held_out
    (said,) = session.flattered([best.pipeline], session.cases)
    assert f"chosen on {dev} of these {len(TOPICS)} questions" in said
    assert session.flattered([best.pipeline], session.held_out) == []
    assert session.flattered([parse_pipeline(["TopK"])], session.cases) == []
    strange = replace(best.pipeline, chosen_on=ChosenOn("elsewhere", 9))
    assert "not known" in session.flattered([strange], session.held_out)[0]


def test_a_verdict_leaves_out_questions_that_chose_a_pipeline_before_the_split_was_drawn_anew(workspace):
    session = opened(workspace)
    tuned = best_on_dev(session, parse_pipeline(["TopK"]), 0, crossed=False).pipeline
    old_dev = set(session.split.dev)
    reset_held_out(session.project)
    anew = opened(workspace)
    mixed = [case for case in anew.held_out if case.query.id in old_dev]
    assert mixed
    assert {case.query.id for case in anew.unseen([tuned], anew.cases)} == set(TOPICS) - old_dev
    said = judge(anew, tuned, parse_pipeline([{"TopK": {"k": 3}}]))
    assert (said.left_out, said.questions) == (len(mixed), len(anew.held_out) - len(mixed))
    assert f"Left out are {len(mixed)} held-out questions" in said.to_text()
    other = replace(tuned, chosen_on=anew.chosen_on("plane"))  # it and `tuned` were chosen on nearly all
    assert judge(anew, other, tuned).questions == said.questions


def test_compare_takes_questions_that_chose_none_unless_all_are_asked_for(workspace, capsysbinary):
    def said(*arguments):
        code = main([*map(str, arguments), "--project", "mine", "--workspace", str(workspace), "--json"])
        out = capsysbinary.readouterr()
        assert code == 0, out.err
        return json.loads(out.out)

    spec = workspace / "tuned.yaml"
    said("tune", "--stage", "TopK", "--grid", "k=1|2|3", "--folds", 0, "--out", spec)
    assert read_pipeline(str(spec)).chosen_on.method == "plane"
    session = opened(workspace)
    both = ("-p", spec, "-p", "fixed-15")
    alone = said("compare", *both)
    assert {row["queries_total"] for row in alone["table"]} == {len(session.held_out)}
    assert "--split all" in alone["notices"][0]
    mixed = said("compare", *both, "--split", "all")
    assert {row["queries_total"] for row in mixed["table"]} == {len(TOPICS)}
    for document in (mixed, said("evaluate", *both)):
        assert any("which flatter it" in notice for notice in document["notices"])
    assert "notices" not in said("evaluate", *both, "--split", "test")
    assert "notices" not in said("compare", "-p", "unfiltered", "-p", "fixed-15")
