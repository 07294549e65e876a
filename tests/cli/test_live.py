"""Collections on the command line: ingest, ask, capture, evaluate; and every way to be refused."""

import json

import pytest

from rag_core.cli import main


@pytest.fixture
def folder(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "hats.md").write_text("# Hats\n\n## Bowler\nA hard round hat.\n\n## Beret\nA soft flat cap.\n")
    (docs / "boots.md").write_text("# Boots\n\n## Wellington\nA boot of rubber for rain.\n")
    return docs


@pytest.fixture
def run(tmp_path, capsysbinary):
    def called(*arguments, code=0):
        assert main([*map(str, arguments), "--workspace", str(tmp_path / "ws"), "--json"]) == code
        out, err = capsysbinary.readouterr()
        return json.loads(out) if code == 0 else (out, err.decode())

    return called


def test_ingest_again_embeds_nothing_and_a_changed_file_only_its_chunks(run, folder):
    assert run("ingest", folder, "--collection", "wear")["embedded"] == 3
    assert run("ingest", folder, "--collection", "wear")["embedded"] == 0
    (folder / "boots.md").write_text("# Boots\n\n## Wellington\nA boot of rubber for mud and rain.\n")
    again = run("ingest", folder, "--collection", "wear")
    assert (again["embedded"], again["changed"], again["chunks"]) == (1, 1, 3)


def test_a_question_brings_the_nearest_chunk_first_and_says_what_was_dropped(run, folder):
    run("ingest", folder, "--collection", "wear")
    document = run("query", "footwear for wet weather", "--collection", "wear", "-p", '["Dense", {"TopK": {"k": 1}}]')
    (query,) = document["pipelines"][0]["queries"]
    assert [hit["title"] for hit in query["kept"]] == ["Wellington"]
    assert len(query["dropped"]) == 2
    assert query["metric"] == "cosine"


def test_in_words_a_weak_match_and_a_stage_that_fell_back_are_said(run, folder, tmp_path, capsysbinary, monkeypatch):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    run("ingest", folder, "--collection", "wear")
    asked = (
        "query",
        "footwear for wet weather",
        "--collection",
        "wear",
        "-p",
        '["Dense", {"MultiHop": {"max_hops": 1}}]',
    )
    weak = [hit["title"] for hit in run(*asked)["pipelines"][0]["queries"][0]["kept"] if hit.get("weak")]
    assert main([*asked, "--workspace", str(tmp_path / "ws")]) == 0
    said = capsysbinary.readouterr().out.decode()
    assert weak
    assert [line.split("  ")[-2] for line in said.splitlines() if line.endswith("(weak match)")] == weak
    assert "  MultiHop fell back: no model endpoint is set" in said


def test_a_demo_that_is_not_there_yet_is_made_when_it_is_asked(run):
    question = "What does a 7th level cleric need to roll to hit an opponent with armor class 6?"
    document = run("query", question, "--collection", "rulebook", "-p", "demo-tuned")
    (query,) = document["pipelines"][0]["queries"]
    assert [hit["id"] for hit in query["kept"]] == ["tables/attack-cleric-ac6"]
    assert [one["name"] for one in run("collections")["collections"]] == ["rulebook"]


def test_collections_lists_what_was_built(run, folder):
    assert run("collections")["collections"] == []
    run("ingest", folder, "--collection", "wear")
    (one,) = run("collections")["collections"]
    assert (one["name"], one["chunks"], one["documents"], one["problem"]) == ("wear", 3, 2, "")


def test_a_capture_is_a_recorded_list_that_replays_to_the_live_result(run, folder, tmp_path):
    run("ingest", folder, "--collection", "wear")
    own = tmp_path / "set"
    own.mkdir()
    (own / "meta.yaml").write_text("version: 1\nname: wear\n")
    (own / "queries.jsonl").write_text('{"id": "q1", "query": "a cap"}\n{"id": "q2", "query": "rain"}\n')
    chunk = run("query", "a cap", "--collection", "wear", "-p", "fixed-15")["pipelines"][0]["queries"][0]["kept"][0]
    (own / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\nq1\t{chunk['id']}\t2\n")
    arguments = ("--eval-set", own, "--collection", "wear")
    live = run("evaluate", *arguments, "-p", "demo-tuned")
    out = tmp_path / "lists.jsonl"
    assert run("capture", *arguments, "--depth", "200", "--out", out)["asked"] == 2
    assert main(["replay", str(out), "-p", "demo-tuned", "--json"]) == 0
    assert live["pipelines"][0]["means"]["queries_scored"] == 1


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("", "the query is empty"),
        ("   ", "the query is empty"),
        ("x" * 5000, "5,000 characters, expected at most 2,000"),
    ],
)
def test_a_question_that_cannot_be_asked_is_one_sentence(run, question, message):
    out, sentence = run("query", question, "--collection", "wear", code=2)
    assert (out, message in sentence, sentence.count("\n")) == (b"", True, 1)


def test_a_folder_without_documents_a_binary_file_and_a_bad_rule_are_refused_and_nothing_is_written(run, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    binary = tmp_path / "chunk.jsonl"
    binary.write_bytes(b"\x00\x01\x02\x03")
    ruled = tmp_path / "ruled.jsonl"
    rows = [{"id": "a", "text": "fine"}, {"id": "b", "text": "x", "query_must": {"contain_on_of": [["y"]]}}]
    ruled.write_text("\n".join(map(json.dumps, rows)) + "\n")
    for path, message in ((empty, "document"), (binary, "binary"), (ruled, "contain_on_of"), (tmp_path / "no", "no")):
        out, sentence = run("ingest", path, "--collection", "wear", code=2)
        assert (out, message in sentence, sentence.count("\n")) == (b"", True, 1), sentence
    assert not list((tmp_path / "ws").rglob("*.db")) + list((tmp_path / "ws").rglob("*.sqlite*"))


def test_a_collection_that_is_not_there_is_exit_code_3(run):
    out, sentence = run("query", "anything", "--collection", "nothing", code=3)
    assert (out, "there is no collection 'nothing'" in sentence) == (b"", True)


def test_a_chroma_that_does_not_start_is_exit_code_3(run, folder, monkeypatch):
    from rag_core.index import chroma_server

    run("ingest", folder, "--collection", "wear")
    monkeypatch.setattr(chroma_server.sys, "executable", "/bin/false")
    out, sentence = run("query", "a cap", "--collection", "wear", "--approximate", code=3)
    assert (out, sentence.count("\n")) == (b"", 1)


def test_an_eval_set_that_is_not_there_lists_what_is(run):
    out, sentence = run("evaluate", "--eval-set", "nope", code=2)
    assert (out, "recorded-combat" in sentence) == (b"", True)


def test_a_recorded_set_is_evaluated_as_it_stands(run):
    document = run("evaluate", "--eval-set", "recorded-combat", "-p", "unfiltered", "-p", "query-must")
    assert [round(one["means"]["SetF"], 3) for one in document["pipelines"]] == [0.524, 0.834]
    assert document["comparison"][0]["verdict"] == "too few questions"


CODES = "\x1b[31m\x9b2J\x1b]0;owned\x07\r"
COMMANDS = [
    ("query", f"a hard hat {CODES}", "--collection", "wear"),
    ("query", "hat", "--collection", "wear", "-p", "query-must", "--debug"),
    ("collections", "show", "wear"),
    ("rules", "lint", "--collection", "wear"),
    ("query", "hat", "--collection", CODES),
    ("evaluate", "--eval-set", CODES),
]


@pytest.mark.parametrize(
    "command", COMMANDS, ids=lambda command: " ".join(command[:2]).encode("ascii", "ignore").decode()
)
def test_no_title_name_or_question_commands_the_terminal(folder, tmp_path, capfdbinary, command):
    record = {"id": "a", "title": f"Bowler {CODES}", "text": f"A hard round hat. {CODES}"}
    workspace = ("--workspace", str(tmp_path / "ws"))
    (folder / "rows.jsonl").write_text(json.dumps(record) + "\n")
    assert main(["ingest", str(folder), "--collection", "wear", *workspace]) == 0
    capfdbinary.readouterr()
    main([*command, *workspace])
    for printed in capfdbinary.readouterr():
        text = printed.decode()
        assert not set(text) & {"\x1b", "\x9b", "\x07", "\r"}, text
