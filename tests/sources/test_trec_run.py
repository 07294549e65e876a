"""TREC runs as recorded lists: order by score, texts from a corpus, questions from a file; and what is refused."""

import json

import pytest

from rag_core.cli import main
from rag_core.errors import RecordError
from rag_core.sources.trec_run import is_run, load_run, read_qrels

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


def test_a_labelled_question_that_a_run_lacks_counts_0_and_is_said(files, capsysbinary):
    (files / "a.qrels").write_text("# by hand\nq1 0 d2 1\nq2 0 d3 1\nq3 0 d3 1\nq4 0 d3 0\n")
    paths = ["replay", str(files / "a.run"), "--qrels", str(files / "a.qrels"), "-m", "RR", "--json"]
    assert main(paths) == 0
    found = json.loads(capsysbinary.readouterr()[0])
    means = found["pipelines"][0]["means"]
    # q1 has its chunk at rank 1, q2 at rank 2, q3 is missing; nothing is relevant to q4.
    assert (means["queries_scored"], means["RR"]) == (3, pytest.approx((1 + 0.5 + 0) / 3))
    assert any("q3, q4" in notice for notice in found["notices"])


def test_questions_that_were_asked_are_those_of_the_file_of_questions(files, capsysbinary):
    (files / "a.qrels").write_text("q1 0 d2 1\nq3 0 d3 1\nq9 0 d3 1\n")
    arguments = ["replay", "a.run", "--queries", "queries.tsv", "--qrels", "a.qrels", "--json"]
    assert main([str(files / one) if (files / one).is_file() else one for one in arguments]) == 0
    found = json.loads(capsysbinary.readouterr()[0])["pipelines"][0]
    assert [query["id"] for query in found["queries"]] == ["q1", "q2", "q3"]


def test_of_several_systems_a_run_lacks_what_only_the_labels_name(files, capsysbinary):
    (files / "b.run").write_text("q1 Q0 d3 1 1 b\nq3 Q0 d3 1 1 b\n")
    (files / "a.qrels").write_text("q1 0 d2 1\nq3 0 d3 1\nq4 0 d3 1\n")
    arguments = ["replay", "a.run", "b.run", "--qrels", "a.qrels", "--json"]
    assert main([str(files / one) if (files / one).is_file() else one for one in arguments]) == 0
    found = json.loads(capsysbinary.readouterr()[0])
    assert [set(one["missing"]) for one in found["systems"]] == [{"q3", "q4"}, {"q2", "q4"}]
    assert [one["means"]["SetR"] for one in found["pipelines"]] == pytest.approx([1 / 3, 1 / 3])


def test_a_comment_is_no_line_but_an_id_may_begin_like_one(tmp_path):
    (tmp_path / "a.run").write_text("# bm25, made today\n#1 Q0 #d 1 2.0 tag\n")
    (tmp_path / "a.qrels").write_text("#by hand\n#1 0 #d 2\n# end\n")
    assert is_run(tmp_path / "a.run")
    (case,) = load_run(tmp_path / "a.run")
    assert (
        read_qrels(tmp_path / "a.qrels") == {case.query.id: {case.candidates.hits[0].chunk.id: 2}} == {"#1": {"#d": 2}}
    )


def test_an_id_with_a_percent_sign_is_the_same_in_run_labels_and_corpus(files):
    ids = ["a%2Fb", "a%20b", "50%", "%"]
    (files / "corpus.jsonl").write_text("".join(json.dumps({"id": one, "text": one}) + "\n" for one in ids))
    (files / "a.run").write_text("".join(f"q1 Q0 {one} {rank} {-rank} t\n" for rank, one in enumerate(ids)))
    (files / "a.qrels").write_text("".join(f"q1 0 {one} 1\n" for one in ids))
    (case,) = load_run(files / "a.run", corpus=files / "corpus.jsonl")
    assert [hit.chunk.text for hit in case.candidates.hits] == ids
    assert list(read_qrels(files / "a.qrels", chunks=ids)["q1"]) == ids
