"""Which lever pays, and the verdict, on lists small enough to check by hand."""

import json

import pytest

from rag_core.errors import InputError
from rag_core.project.ledger import looks
from rag_core.project.levers import CUT, JUDGE, LEARNED, RULES, SEARCH, crossed_levers, levers
from rag_core.project.project import open_project
from rag_core.project.session import Session
from rag_core.project.verdict import BETTER, IDENTICAL, OPEN, SAME, TOO_FEW, judge
from rag_core.spec import parse_pipeline, stage_class
from rag_core.stage import Pipeline

WORDS = ("Kettles", "Grinding", "Boilers cold", "A valve", "Hopper")


@pytest.fixture
def project(tmp_path):
    """A project of recorded lists: one string a question, its letters the labels (+, -, ?) of its list in order."""

    def made(**lists):
        folder = tmp_path / "eval_sets" / "mine"
        folder.mkdir(parents=True)
        (folder / "meta.yaml").write_text("version: 1\nname: mine\n")
        grades = {"+": 1, "-": 0, "?": None}
        with (folder / "lists.jsonl").open("w") as out:
            for name, (side, labels) in lists.items():
                hits = [
                    {
                        "id": f"{name}-{at}",
                        "title": f"{WORDS[at]} of {name}",
                        "distance": at / 10,
                        "relevant": grades[mark],
                    }
                    for at, mark in enumerate(labels)
                ]
                line = {"version": 1, "id": name, "query": f"what of {name}", "metric": "cosine", "split": side}
                if name.startswith("made"):
                    line["made_from"] = "slots"
                out.write(json.dumps({**line, "candidates": hits}) + "\n")
        return Session(open_project("mine", tmp_path))

    return made


def by_name(found):
    return {lever.name: lever.gain for lever in found.levers}


def test_the_bounds_are_those_of_a_list_done_by_hand(project):
    session = project(a=("dev", "+-"), b=("dev", "-+"))
    found = levers(session, Pipeline())
    # k = 1: F₁ 1 and 0; k = 2: 2/3 and 2/3. The best fixed k is 2, the best cut of a is 1 (F₁ 1), of b 2 (2/3).
    assert (found.questions, found.fixed_k) == (2, 2)
    assert found.fixed == pytest.approx(2 / 3)
    assert found.perfect == pytest.approx(1.0)
    gains = by_name(found)
    assert gains[CUT] == pytest.approx((1 + 2 / 3) / 2 - 2 / 3)
    assert gains[JUDGE] == pytest.approx(1 / 3)
    assert gains[SEARCH] == pytest.approx(0)
    assert gains[RULES] == pytest.approx(0)  # no rule, no family


def test_what_a_lever_does_gain_is_told_on_questions_left_out_of_its_choice(project):
    session = project(**{f"q{at}": ("dev", "+---" if at % 2 else "+-+-") for at in range(12)})
    found, bounds = crossed_levers(session, Pipeline()), levers(session, Pipeline())
    gained = {lever.name: lever for lever in found.levers}
    assert set(gained) == {SEARCH, RULES, CUT, JUDGE, LEARNED}
    assert not gained[CUT].bound
    assert gained[CUT].gain <= by_name(bounds)[CUT] + 1e-9
    assert "no label" in gained[LEARNED].text  # 48 labels do not train it
    assert all(row["cost"] for row in found.to_json()["levers"])


def test_of_few_questions_bounds_are_all_that_is_told(project):
    session = project(a=("dev", "+-"), b=("dev", "-+"))
    assert crossed_levers(session, Pipeline()) == levers(session, Pipeline())


def test_where_nothing_pays_it_says_so(project):
    found = levers(project(a=("dev", "+"), b=("dev", "+")), Pipeline())
    assert found.best is None
    assert "No lever pays" in found.to_text()


def test_without_labels_nothing_is_said(project):
    found = levers(project(a=("dev", "??"), b=("dev", "??")), Pipeline())
    assert found.levers == ()
    assert found.to_json()["pays"] is None


def first(k):
    return parse_pipeline([{"TopK": {"k": k}}], name=f"first {k}")


def test_identical_lists_are_the_same_at_any_number_of_questions(project):
    session = project(a=("test", "+-"), b=("dev", "+-"))
    assert judge(session, first(1), parse_pipeline([{"TopK": {"k": 1}}], name="twin")).word == IDENTICAL


def test_five_questions_carry_no_verdict_however_clear(project):
    session = project(**{f"q{at}": ("test", "+----") for at in range(5)})
    said = judge(session, first(1), first(5))
    assert (said.word, said.questions) == (TOO_FEW, 5)


def test_a_clear_difference_is_better_and_every_other_pair_looked_at_costs(project):
    session = project(**{f"q{at}": ("test", "+----" if at % 4 else "++---") for at in range(16)})
    said = judge(session, first(1), first(5))
    assert said.word == BETTER
    assert said.worse == ()
    fourth = [judge(session, first(k), first(5)) for k in (2, 3, 4)][-1]
    assert fourth.ruling.level == pytest.approx(0.05 / (4 * 5))
    again = judge(session, first(1), first(5))
    assert (again.looks, again.ruling) == (4, said.ruling)  # looking again at the same is free
    assert [look.pipeline for look in looks(session.project.state)] != []
    assert len({look.key for look in looks(session.project.state)}) == 4


def test_noise_is_not_yet_known(project):
    session = project(**{f"q{at}": ("test", "+-" if at % 2 else "-+") for at in range(12)})
    said = judge(session, first(1), parse_pipeline([{"MinSimilarity": {"min_relevance": 0.95}}]))
    assert said.word in (OPEN, SAME, IDENTICAL)


def test_without_a_held_out_label_it_is_one_sentence(project):
    session = project(a=("test", "??"), b=("dev", "+-"))
    with pytest.raises(InputError, match="held-out"):
        judge(session, first(1), first(2))
    assert looks(session.project.state) == []


def test_questions_made_from_slots_never_judge_rules_and_are_counted_elsewhere(project):
    asked = {f"q{at}": ("test", "+-") for at in range(7)}
    session = project(**asked, **{f"made{at}": ("test", "-+") for at in range(5)})
    found = judge(session, first(1), first(2))
    assert (found.questions, found.generated) == (12, 5)
    assert "5 of these questions are generated" in found.to_text()
    ruled = Pipeline((stage_class("QueryMust")(), *first(1).stages))
    found = judge(session, ruled, first(2))
    assert (found.questions, found.generated) == (7, 0)


def test_rules_are_not_judged_where_every_held_out_question_was_made_from_slots(project):
    session = project(**{f"made{at}": ("test", "-+") for at in range(7)})
    with pytest.raises(InputError, match="made from slots"):
        judge(session, Pipeline((stage_class("QueryMust")(),)), first(2))


def test_a_stage_that_dropped_nothing_takes_no_part_in_the_verdict(tmp_path):
    without = Session(open_project("skirmish-rules", tmp_path))
    without.refresh()
    verdict = judge(without, without.pipeline("query-must"), without.pipeline("fixed-15"))
    assert verdict.idle == (stage_class("QueryMust").title,)
    assert "dropped nothing" in verdict.to_text()
    assert verdict.word == IDENTICAL
    cut = parse_pipeline(["Dense", "QueryMust", {"TopK": {"k": 2}}])
    assert judge(without, cut, without.pipeline("fixed-15")).idle == verdict.idle
