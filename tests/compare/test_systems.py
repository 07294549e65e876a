"""Several recorded systems over the same questions: what one lacks counts 0 there, and labels count in all of them."""

import json

import pytest

from rag_core.cli import main
from rag_core.compare.systems import joined
from rag_core.errors import InputError
from rag_core.records import load_lists


def write(path, rows):
    path.write_text(
        "".join(json.dumps({"id": query, "query": f"text {query}", "candidates": hits}) + "\n" for query, hits in rows)
    )
    return path


def hits(*ids, relevant=()):
    return [
        {"id": one, "distance": at / 10, **({"relevant": 1} if one in relevant else {})} for at, one in enumerate(ids)
    ]


@pytest.fixture
def two(tmp_path):
    first = write(tmp_path / "ours.jsonl", [("q1", hits("a", "b", relevant="a")), ("q2", hits("c", relevant="c"))])
    second = write(tmp_path / "theirs.jsonl", [("q1", hits("x", "a", relevant="x"))])
    return first, second


def test_a_question_that_one_system_lacks_counts_0_and_is_listed(two, capsysbinary):
    assert main(["replay", *map(str, two), "-p", "unfiltered", "--json"]) == 0
    found = json.loads(capsysbinary.readouterr().out)
    ours, theirs = found["pipelines"]
    assert [one["name"] for one in found["pipelines"]] == ["ours", "theirs"]
    # a and x are relevant to q1, whoever brought them: ours keeps a, b (1 of 2, 1 of 2), theirs x, a (2 of 2, 2 of 2).
    assert [query["SetF"] for query in ours["queries"]] == [0.5, 1.0]
    assert [query["SetF"] for query in theirs["queries"]] == [1.0, 0.0]
    assert found["systems"][1]["missing"] == ["q2"]
    assert any("q2" in notice for notice in found["notices"])
    assert any("another source" in notice for notice in found["notices"])
    assert found["comparison"][0]["delta"] == pytest.approx(-0.25)


def test_chunks_numbered_by_rank_meet_by_their_text(tmp_path):
    rows = [{"text": "one", "distance": 0.1, "relevant": 1}, {"text": "two", "distance": 0.2}]
    first = write(tmp_path / "a.jsonl", [("q1", rows)])
    turned = [{"text": row["text"], "distance": at / 10} for at, row in enumerate(reversed(rows))]
    second = write(tmp_path / "b.jsonl", [("q1", turned)])
    (a, b), _ = joined({path.stem: load_lists(path) for path in (first, second)})
    assert a.cases[0].grades == {"q1#1": 1}
    assert b.cases[0].grades == {"q1#2": 1}


def test_one_id_for_two_questions_is_refused(tmp_path):
    first = write(tmp_path / "a.jsonl", [("q1", hits("a"))])
    second = tmp_path / "b.jsonl"
    second.write_text(first.read_text().replace("text q1", "something else"))
    with pytest.raises(InputError, match="asks another text"):
        joined({path.stem: load_lists(path) for path in (first, second)})
