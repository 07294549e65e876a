"""Ragas and Quepid by text, remap after a new ingest, and TREC runs that other tools read, all from the command line."""

import json

import pytest

from rag_core.cli import main
from rag_core.index.collection import open_collection
from rag_core.index.embed import BundledEmbedder
from rag_core.index.ingest import ingest
from rag_core.store.database import open_store
from rag_core.store.events import Event
from rag_core.store.keys import text_hash
from rag_core.store.labels import LabelStore

TEXTS = {
    "moves": "A knight moves six inches and one more for every squire that runs beside the horse today",
    "shoots": "A bow reaches twelve inches and the arrow falls where the wind of the morning carries it, "
    "unless a wall of stone or a hedge of thorn stands between the archer and the mark at which he aims his shot, in "
    "which case the arrow is lost and the archer may draw another one only when his next turn has come around",
    "sleeps": "Nobody sleeps in the keep while the banner stands above the eastern gate and the drums beat",
}
QUESTIONS = {"q1": "How far does a knight move?", "q2": "How far does a bow reach?"}


@pytest.fixture
def workspace(tmp_path):
    folder = tmp_path / "workspace" / "eval_sets" / "mine"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: mine\n")
    rows = [json.dumps({"id": id_, "query": text}) for id_, text in QUESTIONS.items()]
    (folder / "queries.jsonl").write_text("\n".join(rows))
    (folder / "corpus.jsonl").write_text(corpus(TEXTS))
    return tmp_path / "workspace"


def corpus(texts):
    return "".join(json.dumps({"id": id_, "text": text}) + "\n" for id_, text in texts.items())


@pytest.fixture
def run(capfdbinary, workspace):
    def run(*arguments):
        code = main(["labels", *map(str, arguments), "--eval-set", "mine", "--workspace", str(workspace)])
        out, err = capfdbinary.readouterr()
        return code, out.decode(), err.decode()

    return run


@pytest.fixture
def labelled(workspace):
    rows = [("q1", "moves", 3), ("q1", "shoots", 0), ("q2", "shoots", 2), ("q2", "sleeps", 1)]
    with open_store(workspace) as store:
        LabelStore(store).append(
            [
                Event(session="s", seq=seq, eval_set="mine", query_id=query, chunk_id=chunk, annotator="ann",
                      grade=grade, text_hash=text_hash(TEXTS[chunk]))
                for seq, (query, chunk, grade) in enumerate(rows)
            ]
        )  # fmt: skip


def current(workspace, name="mine"):
    with open_store(workspace) as store:
        return LabelStore(store).current(name)


def test_ragas_goes_out_by_text_and_comes_back(run, labelled, workspace, tmp_path):
    out = tmp_path / "ragas.jsonl"
    assert run("export", "--format", "ragas", "--out", out)[0] == 0
    samples = [json.loads(line) for line in out.read_text().splitlines()]
    assert samples == [
        {"user_input": QUESTIONS["q1"], "reference_contexts": [TEXTS["moves"]]},
        {"user_input": QUESTIONS["q2"], "reference_contexts": [TEXTS["shoots"], TEXTS["sleeps"]]},
    ]
    out.write_text(out.read_text() + json.dumps({"user_input": "Why?", "reference_contexts": []}) + "\n")
    code, said, _ = run("import", out, "--format", "ragas", "--annotator", "ragas", "--json")
    assert code == 0
    assert (json.loads(said)["new"], json.loads(said)["left_out"]) == (3, 1)
    with open_store(workspace) as store:
        events = LabelStore(store).labels("mine", "ragas")
    assert {(e.query_id, e.chunk_id) for e in events} == {("q1", "moves"), ("q2", "shoots"), ("q2", "sleeps")}


def test_quepid_names_queries_by_text_out_and_in(run, labelled, workspace, tmp_path):
    out = tmp_path / "quepid.csv"
    assert run("export", "--format", "quepid", "--query-texts", "--out", out)[0] == 0
    assert f"{QUESTIONS['q1']},moves,3" in out.read_text()
    wide = tmp_path / "wide.csv"
    wide.write_text(f"Query Text,Doc ID,Title,Rating\n{QUESTIONS['q1']},sleeps,a title,1\n{QUESTIONS['q2']},moves,b,\n")
    code, said, err = run("import", wide, "--format", "quepid", "--query-texts", "--annotator", "quepid", "--json")
    assert (code, err) == (0, "")
    assert json.loads(said)["written"] == 1
    assert current(workspace)["q1"]["sleeps"] == 1


def test_a_wide_quepid_table_without_its_columns_is_refused_with_the_line(run, tmp_path):
    wide = tmp_path / "wide.csv"
    wide.write_text("Query Text,Title\na,b\n")
    code, _, err = run("import", wide, "--format", "quepid")
    assert code == 2
    assert "line 1: no Quepid header" in err


def test_after_a_new_ingest_labels_are_told_same_moved_split_and_lost(run, labelled, workspace, tmp_path):
    first, second = TEXTS["shoots"][:200], TEXTS["shoots"][200:]
    new = {"moves": TEXTS["moves"], "bow-1": first, "bow-2": second}
    (tmp_path / "new.jsonl").write_text(corpus(new))
    ingest([tmp_path / "new.jsonl"], "cut", workspace, BundledEmbedder())
    code, said, _ = run("remap", "--collection", "cut", "--json")
    document = json.loads(said)
    assert code == 0
    assert document["counts"] == {"same": 1, "moved": 0, "split": 2, "lost": 1}
    split = next(row for row in document["labels"] if row["outcome"] == "split")
    assert set(split["chunk_ids"]) == {"bow-1", "bow-2"}
    (tmp_path / "again.jsonl").write_text(corpus({"renamed": TEXTS["moves"], "sleeps": TEXTS["sleeps"]}))
    ingest([tmp_path / "again.jsonl"], "renamed", workspace, BundledEmbedder())
    counts = json.loads(run("remap", "--collection", "renamed", "--json")[1])["counts"]
    assert counts == {"same": 1, "moved": 1, "split": 0, "lost": 2}
    assert current(workspace) == {"q1": {"moves": 3, "shoots": 0}, "q2": {"shoots": 2, "sleeps": 1}}  # orphans are kept


def test_a_collection_cut_otherwise_beside_the_first_shows_where_labels_would_go(run, workspace, tmp_path):
    book = (
        "# Book\n\n## Climbing\nA climb costs two moves.\n\n### Ropes\nA rope halves it.\n\n## Falling\nA fall hurts.\n"
    )
    (tmp_path / "book.md").write_text(book)
    for name, level in (("mine", 3), ("trial", 2)):
        ingest([tmp_path / "book.md"], name, workspace, BundledEmbedder(), header_level=level)
    chunks = open_collection(workspace, "mine").chunks
    facts = {"session": "s", "eval_set": "mine", "query_id": "q1", "annotator": "me", "grade": 2}
    with open_store(workspace) as store:
        given = [Event(**facts, seq=n, chunk_id=c.id, text_hash=text_hash(c.text)) for n, c in enumerate(chunks)]
        LabelStore(store).append(given)
    counts = json.loads(run("remap", "--collection", "trial", "--json")[1])["counts"]
    assert counts == {"same": 1, "moved": 0, "split": 2, "lost": 0}


def test_a_run_and_qrels_of_the_command_line_give_our_figures_in_other_tools(capfdbinary, tmp_path):
    ir_measures, pytrec_eval = pytest.importorskip("ir_measures"), pytest.importorskip("pytrec_eval")
    workspace, run_file, qrels = tmp_path / "w", tmp_path / "kept.run", tmp_path / "labels.qrels"
    usual = ["--eval-set", "recorded-combat", "--workspace", str(workspace)]
    assert main(["labels", "run-file", *usual, "-p", "fixed-15", "--out", str(run_file)]) == 0
    from rag_core.eval_sets.reading import load_set
    from rag_core.store.exchange.formats import write_trec
    from rag_core.store.exchange.line import LabelLine

    cases = load_set("recorded-combat").cases
    qrels.write_text(
        write_trec(LabelLine(c.query.id, chunk, grade) for c in cases for chunk, grade in c.grades.items())
    )
    assert main(["labels", "import", str(qrels), *usual]) == 0
    assert main(["labels", "export", *usual, "--format", "trec", "--out", str(qrels)]) == 0
    capfdbinary.readouterr()
    names = ["nDCG@10", "AP", "P@5"]
    asked = [part for name in names for part in ("-m", name)]
    assert main(["evaluate", *usual, "-p", "fixed-15", *asked, "--json"]) == 0
    means = json.loads(capfdbinary.readouterr().out)["pipelines"][0]["means"]
    judged = list(ir_measures.read_trec_qrels(str(qrels)))
    theirs = ir_measures.calc_aggregate(
        [ir_measures.parse_measure(name) for name in names], judged, list(ir_measures.read_trec_run(str(run_file)))
    )
    for name in names:
        assert theirs[ir_measures.parse_measure(name)] == pytest.approx(means[name], abs=1e-9)
    with qrels.open() as labels, run_file.open() as ranked:
        found = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(labels), {"ndcg_cut_10", "map"}).evaluate(
            pytrec_eval.parse_run(ranked)
        )
    for theirs_name, ours in (("ndcg_cut_10", "nDCG@10"), ("map", "AP")):
        assert sum(row[theirs_name] for row in found.values()) / len(found) == pytest.approx(means[ours], abs=1e-9)
