"""TREC runs as recorded lists: order by score, texts from a corpus, questions from a file; and what is refused."""

import json

import pytest

from rag_core.cli import main
from rag_core.errors import RecordError
from rag_core.sources.trec_run import is_run, load_run

RUN = "q1 Q0 d2 1 3.5 tag\nq1 Q0 d%201 2 2.5 tag\nq2 Q0 d3 2 1.0 tag\nq2 Q0 d2 1 9 tag\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.run").write_text(RUN)
    (tmp_path / "queries.jsonl").write_text('{"_id": "q2", "text": "second"}\n{"id": "q1", "query": "first"}\n')
    (tmp_path / "queries.tsv").write_text("q1\tfirst\nq2\tsecond\nq3\tthird\n")
    rows = [{"id": "d 1", "text": "one"}, {"id": "d2", "title": "Two", "text": "two"}, {"id": "d3", "text": "three"}]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "a.qrels").write_text("q1 0 d2 1\nq2 0 d3 1\n")
    return tmp_path


def test_a_run_is_told_from_recorded_lists(files):
    assert is_run(files / "a.run")
    assert not is_run(files / "corpus.jsonl")


def test_queries_and_chunks_get_their_texts_in_the_order_of_the_questions(files):
    cases = load_run(files / "a.run", files / "queries.jsonl", files / "corpus.jsonl")
    assert [(case.query.id, case.query.text) for case in cases] == [("q2", "second"), ("q1", "first")]
    hits = cases[1].candidates.hits
    assert [(hit.chunk.id, hit.chunk.text, hit.rank, dict(hit.scores)) for hit in hits] == [
        ("d2", "two", 1, {"score": 3.5}),
        ("d 1", "one", 2, {"score": 2.5}),
    ]


def test_the_order_is_that_of_the_scores_and_the_file_may_stand_alone(files):
    cases = load_run(files / "a.run")
    assert [hit.chunk.id for hit in cases[1].candidates.hits] == ["d2", "d3"]
    assert cases[1].query.text == "q2"


def test_a_table_of_questions_is_read_too(files):
    assert [case.query.text for case in load_run(files / "a.run", files / "queries.tsv")] == ["first", "second"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("q1 Q0 d1 1 2.0 t\nq1 Q0 d1 2 1.0 t\n", "line 2 has chunk 'd1' of query 'q1' again"),
        ("q1 Q0 d1 1 2.0 t\nq1 Q0 d2 2 1.0\n", "line 2 has 5 columns"),
        ("q1 Q0 d1 1 nan t\n", "line 1 has score 'nan'"),
        ("q1 Q0 d1 first 1 t\n", "line 1 has rank 'first'"),
        ("\n", "holds no line"),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, said):
    (tmp_path / "bad.run").write_text(text)
    with pytest.raises(RecordError, match=said):
        load_run(tmp_path / "bad.run")


def test_a_query_that_the_questions_lack_is_refused(files):
    (files / "some.tsv").write_text("q1\tfirst\n")
    with pytest.raises(RecordError, match=r"has query 'q2', which .*some\.tsv does not hold"):
        load_run(files / "a.run", files / "some.tsv")


def test_replay_measures_a_run_and_chooses_queries_by_name(files, capsysbinary):
    arguments = ["replay", "a.run", "--queries", "queries.tsv", "--corpus", "corpus.jsonl", "--qrels", "a.qrels"]
    paths = [str(files / one) if (files / one).is_file() else one for one in arguments]
    assert main([*paths, "-p", '[{"TopK": {"k": 1}}]', "-t", "q2", "--json"]) == 0
    (report,) = json.loads(capsysbinary.readouterr()[0])["pipelines"]
    (query,) = report["queries"]
    assert (query["id"], query["SetP"], query["SetR"]) == ("q2", 0.0, 0.0)
    assert [hit["id"] for hit in query["kept"]] == ["d2"]
