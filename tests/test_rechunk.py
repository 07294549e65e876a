"""Cutting anew: what would happen, what happens, and where each label's text went."""

import json

import pytest

from rag_core.cli import main
from rag_core.errors import InputError
from rag_core.index.collection import open_collection
from rag_core.index.embed import BundledEmbedder
from rag_core.index.ingest import ingest
from rag_core.rechunk import look, recut, roots_of
from rag_core.store.database import open_store
from rag_core.store.events import Event
from rag_core.store.keys import text_hash
from rag_core.store.labels import LabelStore

BOOK = (
    "# Book\n\n## Climbing\nA climb of any kind costs the climber two of his moves.\n\n"
    "### Ropes\nA rope halves what a climb costs to whoever holds it.\n\n"
    "## Falling\nA fall hurts whoever falls by the height of the fall.\n"
)


@pytest.fixture
def book(tmp_path):
    folder = tmp_path / "docs" / "part"
    folder.mkdir(parents=True)
    (folder / "book.md").write_text(BOOK)
    ingest([tmp_path / "docs"], "book", tmp_path / "ws", BundledEmbedder(), header_level=3)
    return tmp_path / "ws"


def event(seq, chunk, hashed):
    return Event(
        session="s", seq=seq, eval_set="set", query_id="q1", chunk_id=chunk, annotator="me", grade=2, text_hash=hashed
    )


def labels_of(workspace):
    """One label on every chunk."""
    chunks = open_collection(workspace, "book").chunks
    return [event(seq, chunk.id, text_hash(chunk.text)) for seq, chunk in enumerate(chunks, 1)]


def titles(workspace):
    return [chunk.title for chunk in open_collection(workspace, "book").chunks]


def test_looking_says_what_would_happen_and_writes_nothing(book):
    before = titles(book)
    found = look(book, "book", 2, BundledEmbedder(), labels_of(book))
    assert (found.before, found.after, found.unchanged) == (3, 2, 1)
    assert found.outcomes == {"same": 1, "moved": 0, "split": 2, "lost": 0}
    assert titles(book) == before
    assert found.report is None


def test_cutting_does_what_looking_said_and_embeds_only_what_changed(book):
    labels = labels_of(book)
    looked = look(book, "book", 2, BundledEmbedder(), labels)
    done = recut(book, "book", 2, BundledEmbedder(), labels)
    assert (done.labels, done.after, done.unchanged) == (looked.labels, looked.after, looked.unchanged)
    assert done.report.embedded == 1
    assert sorted(titles(book)) == ["Climbing", "Falling"]
    back = recut(book, "book", 3, BundledEmbedder(), labels)
    assert back.after == 3
    assert len(open_collection(book, "book").chunks) == 3


def test_ids_keep_the_folder_they_were_ingested_from(book, tmp_path):
    before = {chunk.id for chunk in open_collection(book, "book").chunks}
    assert roots_of(book, "book") == [tmp_path / "docs"]
    recut(book, "book", 3, BundledEmbedder())
    assert {chunk.id for chunk in open_collection(book, "book").chunks} == before


def test_labels_of_other_corpora_are_not_reported(book):
    assert look(book, "book", 2, BundledEmbedder(), [event(1, "elsewhere", text_hash("another text"))]).labels == ()


def test_what_is_no_markdown_or_gone_is_refused(book, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": "a", "text": "b"}\n')
    ingest([tmp_path / "a.jsonl"], "lines", book, BundledEmbedder())
    with pytest.raises(InputError, match=r"holds 'a\.jsonl', expected Markdown files alone"):
        look(book, "lines", 2, BundledEmbedder())
    (tmp_path / "docs" / "part" / "book.md").unlink()
    with pytest.raises(InputError, match=r"book\.md is not there any more"):
        look(book, "book", 2, BundledEmbedder())


def test_the_command_looks_and_cuts(book, capsysbinary):
    with open_store(book) as store:
        LabelStore(store).append(labels_of(book))
    arguments = [
        "collections",
        "recut",
        "--collection",
        "book",
        "--header-level",
        "2",
        "--workspace",
        str(book),
        "--json",
    ]
    assert main([*arguments, "--look"]) == 0
    looked = json.loads(capsysbinary.readouterr()[0])
    assert main(arguments) == 0
    assert json.loads(capsysbinary.readouterr()[0]) == looked
    assert (looked["after"], looked["split"], looked["same"]) == (2, 2, 1)
    assert {one["outcome"] for one in looked["labels"]} == {"same", "split"}
