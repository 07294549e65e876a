"""Ingest: incremental by content, resumable, switched whole, one writer."""

import json
import resource
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from fakes import HashEmbedder

from rag_core.errors import Cancelled, EndpointError, InputError, RecordError, StoreError
from rag_core.index.collection import open_collection
from rag_core.index.embed import BundledEmbedder
from rag_core.index.ingest import ingest, ingest_chunks, look
from rag_core.index.lock import writing
from rag_core.index.store import FILE, opened
from rag_core.types import Chunk


@pytest.fixture
def docs(tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.md").write_text(f"## One {name}\nfirst {name}\n## Two {name}\nsecond {name}\n")
    return folder


@pytest.fixture
def run(tmp_path, docs):
    def run(*paths, embedder=None, **options):
        return ingest(paths or [docs], "books", tmp_path / "ws", embedder or HashEmbedder(), **options)

    return run


@pytest.fixture
def snapshot(tmp_path):
    return lambda: open_collection(tmp_path / "ws", "books")


def test_a_first_ingest_embeds_every_text_and_stores_what_was_read(run, snapshot):
    report = run()
    assert (report.documents, report.chunks, report.added, report.embedded) == (3, 6, 6, 6)
    stored = snapshot()
    assert [chunk.id for chunk in stored.chunks] == [f"{n}.md#{o}-{n}" for n in "abc" for o in ("one", "two")]
    assert stored.chunks[0].text == "## One a\nfirst a\n"
    assert stored.model == "hash-16"
    expected = HashEmbedder().embed([chunk.text for chunk in stored.chunks])
    assert np.array_equal(stored.vectors, expected)


def test_again_embeds_nothing_and_changes_nothing(run, snapshot):
    run()
    before = snapshot()
    embedder = HashEmbedder()
    report = run(embedder=embedder)
    assert embedder.embedded == []
    assert (report.embedded, report.added, report.changed, report.removed) == (0, 0, 0, 0)
    assert snapshot() == before


def test_one_file_changed_embeds_only_its_changed_chunks(run, docs, snapshot):
    run()
    before = snapshot()
    (docs / "b.md").write_text("## One b\nfirst b\n## Two b\nsecond b, better\n")
    embedder = HashEmbedder()
    report = run(embedder=embedder)
    assert embedder.embedded == ["## Two b\nsecond b, better\n"]
    assert (report.changed, report.added, report.removed) == (1, 0, 0)
    assert snapshot().fingerprint != before.fingerprint


def test_what_a_document_no_longer_holds_is_deleted_with_its_vector(run, docs, snapshot, tmp_path):
    run()
    (docs / "c.md").unlink()
    report = run()
    assert (report.removed, report.chunks, report.embedded) == (2, 4, 0)
    assert {chunk.metadata["source"] for chunk in snapshot().chunks} == {"a.md", "b.md"}
    with sqlite3.connect(tmp_path / "ws/collections/books" / FILE) as file:
        assert file.execute("SELECT count(*) FROM vector").fetchone() == (4,)


def test_a_second_folder_is_added_and_the_first_stays(run, docs, tmp_path, snapshot):
    run()
    other = tmp_path / "other"
    other.mkdir()
    (other / "d.md").write_text("## D\nwords\n")
    report = run(other)
    assert (report.added, report.removed, report.chunks) == (1, 0, 7)


def test_one_file_of_an_ingested_folder_replaces_that_file_only(run, docs, snapshot):
    run()
    (docs / "a.md").write_text("## One a\nfirst a\n")
    report = run(docs / "a.md")
    assert (report.removed, report.chunks, report.embedded) == (1, 5, 0)


def test_two_folders_with_one_id_are_refused_and_nothing_is_written(run, docs, tmp_path, snapshot):
    run()
    before = snapshot()
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.md").write_text("## One a\nsomething else\n")
    with pytest.raises(InputError, match=r"'a\.md#one-a' that .*docs/a\.md already has"):
        run(other)
    assert snapshot() == before


def test_a_moved_folder_takes_its_chunks_along(run, docs, tmp_path, snapshot):
    run()
    moved = docs.rename(tmp_path / "moved")
    (moved / "a.md").write_text("## One a\nfirst a\n")
    report = run(moved)
    assert (report.embedded, report.removed, report.chunks) == (0, 1, 5)


def test_a_rule_edit_is_a_change_without_embedding_and_keeps_the_fingerprint(tmp_path, snapshot):
    path = tmp_path / "c.jsonl"

    def write(rule):
        path.write_text(json.dumps({"id": "m", "text": "x", "query_must": rule}) + "\n")
        return ingest([path], "books", tmp_path / "ws", HashEmbedder())

    write({"contain": "ac 6"})
    before = snapshot()
    report = write({"contain": "ac 7"})
    after = snapshot()
    assert (report.changed, report.embedded) == (1, 0)
    assert after.chunks[0].query_must == {"contain": "ac 7"}
    assert after.fingerprint == before.fingerprint
    assert after.revision != before.revision


def test_force_embeds_all_anew_and_leaves_nothing_else(run, docs, tmp_path):
    run()
    report = run(docs / "a.md", force=True)
    assert (report.embedded, report.removed, report.chunks) == (2, 4, 2)


def test_another_model_is_refused_naming_both_and_force_replaces_it(run, snapshot):
    run()
    with pytest.raises(InputError, match=r"built with hash-16 \(16 dimensions\), this ingest uses other \(8\)"):
        run(embedder=HashEmbedder("other", 8))
    run(embedder=HashEmbedder("other", 8), force=True)
    assert (snapshot().model, snapshot().vectors.shape) == ("other", (6, 8))


def test_a_chunk_over_the_window_is_reported_with_its_tokens(run, docs):
    (docs / "a.md").write_text("## Long\n" + "word " * 60)
    report = run(split_long=False)
    assert report.too_long == (("a.md#long", 62),)
    assert report.window == 50


def test_a_long_section_is_taken_apart_and_that_is_said(run, docs, snapshot):
    (docs / "a.md").write_text("## Long\n" + "word " * 60)
    report = run()
    assert report.too_long == ()
    assert "a.md has 1 chunk of more than the 50 tokens" in report.warnings[0]
    assert [chunk.id for chunk in snapshot().chunks[:2]] == ["a.md#long@1", "a.md#long@2"]
    assert run().embedded == 0


def test_a_long_line_of_a_table_keeps_its_id_unless_everything_is_split(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"id": "c", "text": "word " * 60}))
    embedder = HashEmbedder()
    assert ingest([path], "lines", tmp_path, embedder).too_long == (("c", 60),)
    assert ingest([path], "lines", tmp_path, embedder, split_long=True).too_long == ()


def test_bad_records_are_left_out_and_named_where_that_is_wanted(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [{"id": "a", "text": "one"}, {"id": "b", "text": ""}, {"id": "c", "text": "x" * 1_000_001}, "no object"]
    path.write_text("\n".join(map(json.dumps, rows)) + "\nno JSON\n")
    with pytest.raises(RecordError, match="line 2 has an empty text"):
        ingest([path], "lines", tmp_path, HashEmbedder())
    report = ingest([path], "lines", tmp_path, HashEmbedder(), skip_bad=True)
    assert (report.chunks, len(report.skipped)) == (1, 4)
    assert "4 records were left out, the first: a.jsonl line 2 has an empty text" in report.to_text()


def test_a_look_says_lengths_share_and_work_and_writes_nothing(docs, tmp_path):
    (docs / "a.md").write_text("## Long\n" + "word " * 60)
    seen = look([docs / "a.md"], "book", tmp_path / "new", HashEmbedder(), split_long=False)
    assert seen.tokens == (62,)
    assert seen.share == pytest.approx(50 / 62)
    assert seen.lengths == {"shortest": 62, "median": 62, "p95": 62, "longest": 62, "over_window": 1}
    assert (seen.texts_to_embed, seen.tokens_to_embed) == (1, 50)
    assert not (tmp_path / "new").exists()
    ingest([docs / "a.md"], "book", tmp_path / "new", HashEmbedder())
    assert look([docs / "a.md"], "book", tmp_path / "new", HashEmbedder()).texts_to_embed == 0


@pytest.mark.slow
def test_ten_thousand_sections_with_tables_fit_the_window_in_bounded_memory(tmp_path):
    rows = "".join(f"<tr><td>{level}</td><td>{level * 2_000}</td><td>{level}d6</td></tr>" for level in range(1, 40))
    table = f"<table><tr><th>Level</th><th>Experience</th><th>Hit dice</th></tr>{rows}</table>"
    for part in range(20):
        sections = (f"## Class {part}-{number}\n\nIt climbs.\n\n{table}\n\n" for number in range(500))
        (tmp_path / f"{part:02}.md").write_text("".join(sections))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seen = look([tmp_path], "book", tmp_path / "w", BundledEmbedder())
    assert (seen.lengths["over_window"], seen.share) == (0, 1.0)
    assert len(seen.corpus.chunks) > 20_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kB


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bad.jsonl", b'{"id": "x", "text": "y", "query_must": {"contains": "z"}}'),
        ("bad.jsonl", b'{"id": "x", "text": "y", "query_must": {"contain_one_of": [[]]}}'),
        ("bad.jsonl", b'{"text": '),
        ("bad.md", b"\x00\x01\x02"),
    ],
)
def test_bad_input_writes_nothing(run, docs, snapshot, tmp_path, name, content):
    (docs / name).write_bytes(content)
    with pytest.raises(InputError):
        run()
    assert not (tmp_path / "ws").exists()


def test_a_folder_without_documents_writes_nothing(run, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no documents"):
        run(tmp_path / "empty")
    assert not (tmp_path / "ws").exists()


def test_a_cancelled_ingest_keeps_what_is_done_and_resumes(run, snapshot):
    with pytest.raises(Cancelled, match="stopped after 4 of 6"):
        run(cancel=iter([False, True]).__next__)
    with pytest.raises(StoreError, match="no finished ingest"):
        snapshot()
    assert run().embedded == 2
    assert len(snapshot().chunks) == 6


def test_a_failing_endpoint_keeps_what_is_done_and_the_old_state_searchable(run, docs, snapshot):
    run()
    before = snapshot()
    for name in "abc":
        (docs / f"{name}.md").write_text(f"## One {name}\nnew {name}\n## Two {name}\nnewer {name}\n")

    class Failing(HashEmbedder):
        def embed(self, texts, progress=None):
            if self.embedded:
                raise EndpointError("endpoint x did not answer in time")
            return super().embed(texts)

    with pytest.raises(EndpointError):
        run(embedder=Failing())
    assert snapshot() == before
    assert run().embedded == 2


def test_progress_counts_texts_to_the_end(run):
    seen = []
    run(progress=lambda *step: seen.append(step))
    assert seen == [(4, 6), (6, 6)]


def test_equal_texts_are_embedded_once(tmp_path):
    chunks = [Chunk(id=str(number), text="the same") for number in range(5)]
    assert ingest_chunks(chunks, "books", tmp_path, HashEmbedder()).embedded == 1
    assert len(open_collection(tmp_path, "books").vectors) == 5


def test_the_tokens_of_a_text_are_counted_once_and_again_by_force(tmp_path):
    counted = []

    class Counter(HashEmbedder):
        def count_tokens(self, texts):
            counted.extend(texts)
            return super().count_tokens(texts)

    def run(*texts, **options):
        counted.clear()
        chunks = [Chunk(str(number), text=text) for number, text in enumerate(texts)]
        ingest_chunks(chunks, "books", tmp_path, Counter(), **options)
        with opened(tmp_path / "collections/books") as file:
            assert [row.tokens for row in file.rows()] == [len(text.split()) for text in texts]
        return counted

    assert run("a b", "c", "a b") == ["a b", "c"]
    assert run("c", "d e f") == ["d e f"]
    assert run("c", "d e f", force=True) == ["c", "d e f"]


def test_the_switch_waits_for_the_disk_and_a_batch_of_vectors_does_not(tmp_path):
    facts, full, normal = {"model": "m"}, [(2,)], [(1,)]
    (tmp_path / "books").mkdir()
    with opened(tmp_path / "books", write=True) as file:
        file.add_vectors("m", ["x"], np.ones((1, 4), dtype=np.float32))
        assert file.read("PRAGMA synchronous") == normal
        file.switch([], [], facts)
        assert file.read("PRAGMA synchronous") == full
        file.add_vectors("m", ["y"], np.ones((1, 4), dtype=np.float32))
        file.change_rules({}, facts, ("now", "nothing", {}))
        assert file.read("PRAGMA synchronous") == full


def test_chunks_replace_the_whole_collection_and_ids_are_unique(tmp_path):
    ingest_chunks([Chunk("a", text="x"), Chunk("b", text="y")], "books", tmp_path, HashEmbedder())
    assert ingest_chunks([Chunk("b", text="y")], "books", tmp_path, HashEmbedder()).removed == 1
    with pytest.raises(InputError, match="one id"):
        ingest_chunks([Chunk("b"), Chunk("b")], "books", tmp_path, HashEmbedder())


def test_a_second_writer_is_refused_naming_the_holder_and_a_reader_is_not(run, docs, tmp_path, snapshot):
    run()
    folder = tmp_path / "ws/collections/books"
    code = (
        "import sys; from pathlib import Path; from rag_core.index.lock import writing\n"
        "with writing(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match=f"being written by process {holder.pid} on "):
            run()
        assert len(snapshot().chunks) == 6
    finally:
        holder.kill()
        holder.communicate()
    assert run().embedded == 0  # the system frees a dead holder's lock


def test_the_lock_is_free_after_an_error_inside(tmp_path):
    with pytest.raises(ZeroDivisionError), writing(tmp_path / "c"):
        _ = 1 / 0
    with writing(tmp_path / "c"):
        pass


def test_a_damaged_file_is_one_sentence_and_force_builds_it_anew(run, tmp_path, snapshot):
    run()
    path = tmp_path / "ws/collections/books" / FILE
    for suffix in ("-wal", "-shm"):
        path.with_name(FILE + suffix).unlink(missing_ok=True)
    path.write_bytes(b"not a database, but long enough to be taken for one " * 100)
    with pytest.raises(StoreError, match="collection books cannot be read"):
        snapshot()
    with pytest.raises(StoreError):
        run()
    assert run(force=True).embedded == 6
    assert len(snapshot().chunks) == 6


def test_an_empty_file_is_no_finished_ingest(run, tmp_path, snapshot):
    folder = tmp_path / "ws/collections/books"
    folder.mkdir(parents=True)
    (folder / FILE).touch()
    with pytest.raises(StoreError):
        snapshot()
    assert run().embedded == 6
