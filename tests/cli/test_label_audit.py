"""`labels audit`: the most suspect labels, people's laid over the files', and a blind sample without grades."""

import json

import pytest

from rag_core.cli import main


@pytest.fixture
def audited(capfdbinary, tmp_path):
    def run(*arguments):
        usual = ["--eval-set", "recorded-combat", "--workspace", str(tmp_path / "workspace"), "--json"]
        assert main(["labels", "audit", *arguments, *usual]) == 0
        return json.loads(capfdbinary.readouterr().out)

    return run


def test_the_most_suspect_come_first_and_nothing_is_made(audited, tmp_path):
    found = audited("--top", "5")
    assert found["labels"] == 45
    suspicions = [row["suspicion"] for row in found["rows"]]
    assert suspicions == sorted(suspicions, reverse=True)
    assert len(suspicions) == 5
    assert not (tmp_path / "workspace").exists()


def test_a_persons_label_is_audited_in_place_of_the_files(audited, tmp_path, capfdbinary):
    worst = audited("--top", "1")["rows"][0]
    usual = ["--eval-set", "recorded-combat", "--workspace", str(tmp_path / "workspace")]
    other = 0 if worst["grade"] else 3
    qrels = tmp_path / "again.qrels"
    qrels.write_text(f"{worst['query_id']} 0 {worst['chunk_id']} {other}\n")
    assert main(["labels", "import", str(qrels), *usual]) == 0
    capfdbinary.readouterr()
    grades = {(row["query_id"], row["chunk_id"]): row["grade"] for row in audited("--top", "100")["rows"]}
    assert grades[worst["query_id"], worst["chunk_id"]] == other


def test_a_blind_sample_tells_no_grade(audited):
    rows = audited("--sample", "4")["rows"]
    assert len(rows) == 4
    assert set(rows[0]) == {"query_id", "chunk_id"}


def test_a_sample_given_again_says_how_often_labels_changed_sides(audited, tmp_path, capfdbinary):
    drawn = audited("--sample", "4")
    assert drawn["given_again"]["again"] == 0
    grades = {(row["query_id"], row["chunk_id"]): row["grade"] for row in audited("--top", "100")["rows"]}
    told = [(row["query_id"], row["chunk_id"]) for row in drawn["rows"]]
    lines = [f"{q} 0 {c} {(0 if grades[q, c] else 1) if at == 0 else grades[q, c]}" for at, (q, c) in enumerate(told)]
    (tmp_path / "again.qrels").write_text("\n".join(lines))
    usual = ["--eval-set", "recorded-combat", "--workspace", str(tmp_path / "workspace")]
    assert main(["labels", "import", str(tmp_path / "again.qrels"), *usual]) == 0
    capfdbinary.readouterr()
    again = audited("--sample", "4")["given_again"]
    assert (again["again"], again["changed"]) == (4, 1)
    assert again["error_rate"][0] == pytest.approx((1 - 0.5**0.5) / 2)


def test_label_errors_say_what_they_would_do_to_f_and_change_nothing(audited, tmp_path, capfdbinary):
    drawn = audited("--sample", "24")
    assert drawn["given_again"]["moves"] is None
    grades = {(row["query_id"], row["chunk_id"]): row["grade"] for row in audited("--top", "100")["rows"]}
    told = [(row["query_id"], row["chunk_id"]) for row in drawn["rows"]]
    lines = [f"{q} 0 {c} {grades[q, c]}" for q, c in told]
    (tmp_path / "again.qrels").write_text("\n".join(lines))
    usual = ["--eval-set", "recorded-combat", "--workspace", str(tmp_path / "workspace")]
    assert main(["labels", "import", str(tmp_path / "again.qrels"), *usual]) == 0
    capfdbinary.readouterr()
    again = audited("--sample", "24", "-p", "query-must")["given_again"]
    assert (again["again"], again["changed"], again["moves"]["pipeline"]) == (24, 0, "query-must")
    same, wide = again["moves"]["at_rate"], again["moves"]["at_most"]
    assert same == [pytest.approx(again["moves"]["SetF"])] * 2  # no label is wrong: nothing moves
    assert wide[0] < wide[1]
    assert {(row["query_id"], row["chunk_id"]): row["grade"] for row in audited("--top", "100")["rows"]} == grades
