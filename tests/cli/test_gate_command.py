import json
import random
from xml.etree.ElementTree import parse

import pytest

from rag_core.cli import main
from rag_core.compare.run_file import load_run

GOOD = '{"name": "good", "stages": [{"TopK": {"k": 4}}]}'
BAD = '{"name": "bad", "stages": [{"TopK": {"k": 1}}]}'


def lists(path, count=30, relabelled=False):
    """Lists whose first four of ten chunks are mostly relevant."""
    dice = random.Random(0)
    with path.open("w") as file:
        for number in range(count):
            candidates = [
                {"id": f"c{at}", "distance": at / 10, "relevant": int(dice.random() < (0.8 if at < 4 else 0.1))}
                for at in range(10)
            ]
            if relabelled and number == 0:
                candidates[0]["relevant"] = 3
            file.write(json.dumps({"id": f"q{number}", "query": f"question {number}", "candidates": candidates}) + "\n")
    return str(path)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path / "ws"))
    found = lists(tmp_path / "lists.jsonl")
    assert main(["replay", found, "--pipeline", GOOD, "--run-out", str(tmp_path / "base.json")]) == 0
    return tmp_path


def gate(place, *more, lists_file="lists.jsonl"):
    base, listed = str(place / "base.json"), str(place / lists_file)
    return main(["gate", "--baseline", base, "--lists", listed, *more])


def test_the_same_pipeline_passes(place, capsys):
    capsys.readouterr()
    assert gate(place, "--pipeline", GOOD) == 0
    out, err = capsys.readouterr()
    assert out.startswith("pass: good keeps the same chunks as good")
    assert err == ""


def test_a_verdict_is_said_once(place, capsys):
    capsys.readouterr()
    assert gate(place, "--pipeline", BAD) == 1
    out, err = capsys.readouterr()
    assert out.startswith("fail: ")
    assert err == ""


def test_a_worse_pipeline_exits_1_with_one_sentence_and_files(place, capsysbinary):
    capsysbinary.readouterr()
    files = [
        "--markdown",
        str(place / "gate.md"),
        "--junit",
        str(place / "gate.xml"),
        "--run-out",
        str(place / "new.json"),
    ]
    assert gate(place, "--pipeline", BAD, "--json", *files) == 1
    out, err = capsysbinary.readouterr()
    found = json.loads(out)
    assert (found["outcome"], found["baseline"]) == ("fail", load_run(place / "base.json").id)
    assert found["run"] == load_run(place / "new.json").id
    assert found["pipelines"][0]["regressions"][0]["reasons"]
    assert err.count(b"\n") == 1
    assert b"bad is worse: SetF" in err
    assert "❌ fail" in (place / "gate.md").read_text()
    assert parse(place / "gate.xml").getroot().get("failures") == "1"


def test_other_labels_are_recomputed_and_exit_4_where_they_cannot_be(place, capsys):
    lists(place / "other.jsonl", relabelled=True)
    assert gate(place, "--pipeline", GOOD, lists_file="other.jsonl") == 0
    assert gate(place, "--pipeline", BAD, lists_file="other.jsonl") == 1
    (place / "other.jsonl").write_text((place / "other.jsonl").read_text().replace('"id": "c', '"id": "new'))
    capsys.readouterr()
    assert gate(place, "--pipeline", BAD, lists_file="other.jsonl") == 4
    assert "measured against different labels" in capsys.readouterr().out


def test_too_few_queries_exit_4(place, capsys):
    assert gate(place, "--pipeline", BAD, "--min-queries", "31") == 4
    assert "30 scored queries are too few to tell" in capsys.readouterr().out


def test_a_margin_lets_a_small_drop_pass(place):
    assert gate(place, "--pipeline", BAD, "--margin", "0.9") == 0


def test_one_of_several_pipelines_that_fails_is_enough(place):
    assert gate(place, "--pipeline", GOOD, "--pipeline", BAD) == 1


def test_the_eval_set_of_the_baseline_is_the_default(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path / "ws"))
    base = str(tmp_path / "base.json")
    assert main(["evaluate", "--eval-set", "recorded-combat", "--pipeline", "query-must", "--run-out", base]) == 0
    capsys.readouterr()
    assert main(["gate", "--baseline", base, "--pipeline", "unfiltered", "--min-queries", "3"]) == 4
    assert "3 scored queries are too few to tell, expected at least 6" in capsys.readouterr().out


def test_a_stored_run_is_a_baseline_too(place, capsysbinary):
    assert main(["runs", "import", str(place / "base.json"), "--json"]) == 0
    run = json.loads(capsysbinary.readouterr().out)["run"]
    assert main(["gate", "--baseline", run, "--pipeline", BAD, "--lists", str(place / "lists.jsonl")]) == 1


@pytest.mark.parametrize(
    ("content", "expected"),
    [("{", "is not valid JSON"), ('{"format": "winnow-run", "version": 9}', "has version 9"), ("[]", "is no run file")],
)
def test_a_baseline_that_is_no_run_file_is_exit_2(place, capsys, content, expected):
    (place / "base.json").write_text(content)
    assert gate(place, "--pipeline", GOOD) == 2
    assert expected in capsys.readouterr().err


def test_a_missing_baseline_is_exit_2(place, capsys):
    (place / "base.json").unlink()
    assert gate(place, "--pipeline", GOOD) == 2
    assert "is not there" in capsys.readouterr().err
