import json
import re
from pathlib import Path

import pytest

from rag_core.cli import main
from rag_core.eval_sets.reading import SHIPPED

COMBAT = str(SHIPPED / "recorded-combat" / "lists.jsonl")
BOTH = ["--pipeline", "unfiltered", "--pipeline", "query-must"]


@pytest.fixture
def said(capsysbinary):
    def run(*arguments):
        assert main([*arguments, "--json"]) == 0
        return json.loads(capsysbinary.readouterr().out)

    return run


@pytest.fixture
def refused(capsys):
    def run(*arguments):
        assert main(list(arguments)) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        return err

    return run


def test_the_table_has_the_means_that_replay_gives(said):
    found = said("compare", "--lists", COMBAT, *BOTH)
    replayed = said("replay", COMBAT, *BOTH)
    assert found["baseline"] == "unfiltered"
    for row, one in zip(found["table"], replayed["pipelines"], strict=True):
        for name in ("SetP", "SetR", "SetF"):
            assert row["measures"][name]["mean"] == pytest.approx(one["means"][name], abs=1e-12)
    assert found["table"][1]["measures"]["SetF"]["against"]["delta"] == replayed["comparison"][0]["delta"]


def test_contrasts_stand_in_the_order_asked_for(said):
    found = said("compare", "--lists", COMBAT, *BOTH, "--order", "improvements", "-n", "2")
    assert [one["query_id"] for one in found["contrasts"]["query-must"]] == ["combat-1", "combat-3"]
    found = said("compare", "--lists", COMBAT, *BOTH)
    assert found["contrasts"]["query-must"][-1]["query_id"] == "combat-1"


def test_one_query_side_by_side_has_reasons(said):
    found = said("compare", "--eval-set", "recorded-combat", *BOTH, "-t", "combat-1")["query"]
    (against,) = found["against"]
    assert len(against["differences"]) == 13
    assert all(one["stage"] == "QueryMust" for one in against["differences"])
    assert against["jaccard"] == pytest.approx(2 / 15)


def test_as_text_it_says_who_is_better(capsys):
    assert main(["compare", "--lists", COMBAT, *BOTH, "-t", "combat-1"]) == 0
    out = capsys.readouterr().out
    assert "query-must is 0.311 higher in SetF than unfiltered (3 wins, 0 ties, 0 losses)" in out
    assert "only unfiltered: combat-1-01  query-must QueryMust: no word of: armor class 7" in out


def test_attribution_says_what_each_stage_brings(said):
    (found,) = said("attribute", "--eval-set", "recorded-combat", "--pipeline", '["QueryMust"]')["pipelines"]
    assert found["waterfall"][-1] == {"step": "kept", "chunks": 18}
    (rules,) = found["stages"]
    assert rules["gain"] == pytest.approx(found["together"])
    assert found["shared"] == pytest.approx(0)


def test_attribution_as_text(capsys):
    assert main(["attribute", "--lists", COMBAT, "--pipeline", "query-must"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("query-must: SetF 0.834, unfiltered 0.524, over ")
    assert "QueryMust: drops 0 relevant, 23 irrelevant, 0 unjudged; without it SetF 0.524 (-0.311)" in out


def test_wrong_usage_is_one_sentence(refused):
    assert "got 1 pipelines" in refused("compare", "--lists", COMBAT, "--pipeline", "query-must")
    assert "nothing to work on is named" in refused("compare", *BOTH)
    assert "order is 'worst'" in refused("compare", "--lists", COMBAT, *BOTH, "--order", "worst")
    assert "no query 'x'" in refused("compare", "--lists", COMBAT, *BOTH, "-t", "x")
    assert "no query with tag 'x'" in refused("attribute", "--lists", COMBAT, "--tag", "x")


def test_the_example_workflow_uses_options_that_exist(capsys):
    workflow = (Path(__file__).parents[2] / "docs" / "examples" / "gate.yml").read_text(encoding="utf-8")
    command = re.search(r"rag_core gate(.*?)code=", workflow, re.DOTALL)[1]
    assert main(["gate", "--help"]) == 0
    known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    used = set(re.findall(r"--[a-z-]+", command))
    assert used
    assert used <= known


@pytest.mark.parametrize("command", ["compare", "attribute"])
def test_a_relevant_grade_of_0_is_refused_and_not_taken_for_none_given(command, refused):
    assert "--min-grade" in refused(command, "--lists", COMBAT, *BOTH, "--min-grade", "0")
