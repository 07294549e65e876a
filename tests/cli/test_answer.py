"""`answer` on the command line: a scripted reader over recorded lists, previews, refusals."""

import json

import pytest

from rag_core.cli import main


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """Four questions with recorded lists; the needed chunk stands first, second, fifth and nowhere."""
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path / "workspace"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "WINNOW_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    rows = []
    for number, place in enumerate((0, 1, 4, None)):
        names = [f"q{number}-{at}" for at in range(6)]
        candidates = [
            {"id": name, "title": name, "text": f"Text {name}", "distance": 0.1 * at, "relevant": int(at == place)}
            for at, name in enumerate(names, 1)
        ]
        for at, one in enumerate(candidates):
            one["relevant"] = int(at == place)
        row = {"id": f"q{number}", "query": f"question {number}", "expected_answer": f"seven {number}"}
        rows.append(json.dumps({**row, "candidates": candidates}))
    lists = tmp_path / "lists.jsonl"
    lists.write_text("\n".join(rows))
    assert main(["init", "mine", "--from", str(lists)]) == 0


TOP = '{"name": "top %d", "stages": [{"TopK": {"k": %d}}]}'


def asked(capsysbinary, *arguments):
    capsysbinary.readouterr()
    assert main(["answer", "--project", "mine", "--json", *arguments]) == 0
    return json.loads(capsysbinary.readouterr().out)


def test_pipelines_are_answered_checked_explained_and_compared(capsysbinary):
    ids = ("-t", "q0", "-t", "q1", "-t", "q2", "-t", "q3")
    found = asked(capsysbinary, "-p", TOP % (2, 2), "-p", TOP % (5, 5), *ids, "--simulated")
    short, long = found["pipelines"]
    verdicts = {row["id"]: (row["verdict"], (row["why"] or {}).get("kind")) for row in short["queries"]}
    assert verdicts["q0"] == verdicts["q1"] == ("right", None)
    assert verdicts["q2"] == ("refused", "lost")
    assert short["queries"][2]["why"]["lost"] == [["q2-4", "TopK"]]
    assert verdicts["q3"] == ("failed", None)  # the simulated reader knows no label
    assert [row["verdict"] for row in long["queries"]][:3] == ["right", "right", "wrong"]
    assert long["queries"][2]["why"]["kind"] == "noise"
    (difference,) = found["comparison"]
    assert (difference["a"], difference["b"], difference["delta"]) == ("top 2", "top 5", 0.0)
    assert {"looks", "fingerprints", "prompt"} <= set(found)


def test_a_preview_asks_nobody_and_an_own_question_can_be_given_what_it_expects(capsysbinary):
    found = asked(capsysbinary, "-p", TOP % (2, 2), "-t", "q0", "--simulated", "--preview", "--expect", "seven")
    assert found["preview"]["calls"] == 1
    assert "pipelines" not in found


def test_what_cannot_be_answered_is_refused_in_one_sentence(capsys):
    wrong = [
        (["-t", "q0", "--simulated", "--expect", '{"number": "x"}'], 2, "expected numbers"),
        (["-t", "q0", "-t", "q1", "--simulated", "--expect", "10"], 2, "expected one"),
        (["-t", "q0"], 3, "OPENAI"),
        (["-t", "q0", "--simulated", "--room", "9000000"], 2, "room"),
    ]
    for arguments, code, said in wrong:
        capsys.readouterr()
        assert main(["answer", "--project", "mine", "-p", TOP % (2, 2), *arguments]) == code
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert said in err, err
