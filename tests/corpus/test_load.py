"""Files and folders to documents: what is read, passed over and refused."""

import json
import sys

import pyarrow as pa
import pyarrow.parquet
import pytest

from rag_core.corpus import load
from rag_core.corpus.load import LIMITS, columns_of
from rag_core.errors import InputError


def write(folder, **files):
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def row(**fields):
    return json.dumps(fields) + "\n"


def test_a_folder_is_read_in_the_order_of_its_paths_with_names_inside_it(tmp_path):
    write(tmp_path, b_DOT_md="## B\nx", sub__a_DOT_md="## A\nx", c_DOT_jsonl=row(id="c", text="x"), notes_DOT_pdf="%")
    corpus = load([tmp_path])
    assert [document.name for document in corpus.documents] == ["b.md", "c.jsonl", "sub/a.md"]
    assert [chunk.id for chunk in corpus.chunks] == ["b.md#b", "c", "sub/a.md#a"]
    assert len(corpus.others) == 1
    assert corpus.roots == (tmp_path.resolve(),)


def test_hidden_files_and_links_are_passed_over(tmp_path):
    write(tmp_path, a_DOT_md="x", _DOT_hidden__b_DOT_md="x", _DOT_c_DOT_md="x")
    outside = tmp_path.parent / f"{tmp_path.name}-secret.md"
    outside.write_text("secret")
    (tmp_path / "link.md").symlink_to(outside)
    assert [document.name for document in load([tmp_path]).documents] == ["a.md"]


def test_one_file_is_read_and_the_header_level_is_settable(tmp_path):
    path = write(tmp_path, a_DOT_md="## A\nx\n#### B\ny\n") / "a.md"
    assert len(load([path]).chunks) == 1
    assert len(load([path], header_level=4).chunks) == 2


def test_a_beir_folder_gives_its_corpus_only(tmp_path):
    write(tmp_path, corpus_DOT_jsonl=row(_id="d", text="x"), queries_DOT_jsonl=row(_id="q", text="y"))
    assert [chunk.id for chunk in load([tmp_path]).chunks] == ["d"]
    assert load([tmp_path], format="beir").chunks == load([tmp_path]).chunks


def test_the_same_file_under_two_paths_is_read_once(tmp_path):
    write(tmp_path, a_DOT_md="x")
    assert len(load([tmp_path, tmp_path / "a.md"]).documents) == 1


def test_a_byte_order_mark_is_dropped(tmp_path):
    path = write(tmp_path, a_DOT_md=b"\xef\xbb\xbf## A\nx") / "a.md"
    assert load([path]).chunks[0].text == "## A\nx"


def refuse(match, paths, **options):
    with pytest.raises(InputError, match=match) as caught:
        load(paths, **options)
    assert "\n" not in str(caught.value)


def test_a_folder_without_documents_is_refused(tmp_path):
    write(tmp_path, photo_DOT_png="x")
    refuse("holds no documents", [tmp_path])


def test_a_binary_file_is_refused_though_it_is_called_markdown(tmp_path):
    write(tmp_path, a_DOT_md="fine", b_DOT_md=b"\x89PNG\x00\x01")
    refuse(r"b\.md looks like a binary file", [tmp_path])


def test_text_that_is_not_utf8_is_refused(tmp_path):
    write(tmp_path, a_DOT_md=b"caf\xe9")
    refuse("not UTF-8", [tmp_path])


def test_an_oversize_file_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(LIMITS, "markdown", 10)
    refuse("11 bytes, expected at most 10", [write(tmp_path, a_DOT_md="x" * 11) / "a.md"])


def test_missing_and_unknown_paths_are_refused(tmp_path):
    refuse("is not there", [tmp_path / "none"])
    refuse("no path was given", [])
    refuse(r"ends in \.pdf", [write(tmp_path, a_DOT_pdf="x") / "a.pdf"])


def test_an_unknown_format_is_refused(tmp_path):
    refuse("format is 'docx'", [tmp_path], format="docx")


def test_an_id_in_two_files_is_refused_naming_both(tmp_path):
    write(tmp_path, a_DOT_jsonl=row(id="x", text="1"), b_DOT_jsonl=row(id="x", text="2"))
    refuse(r"b\.jsonl has the id 'x' that .*a\.jsonl has", [tmp_path])


def test_documents_without_any_text_are_refused(tmp_path):
    write(tmp_path, a_DOT_md=" \n")
    refuse("holds no text", [tmp_path])


def test_a_child_reads_what_would_be_read_in_place(tmp_path, monkeypatch):
    """Every format with its warnings, left-out records and columns; a refusal word for word."""
    (tmp_path / "a.md").write_text("# T\n\nbefore\n\n## One\n\né \U0001f600\n\n## Two\n\nx\n")
    (tmp_path / "b.jsonl").write_text(
        '{"text": "x", "n": 1.5, "m": [null, {"k": true}], "ref_ids": ["a"]}\n{"no": 1}\n'
    )
    (tmp_path / "c.csv").write_text('id,text,query_must\nc1,"two\nlines","{""contain"": ""x""}"\n')
    pyarrow.parquet.write_table(pa.table({"text": ["p", "q"], "n": [1, None]}), tmp_path / "d.parquet")
    (tmp_path / "e.json").write_text(
        json.dumps({"openapi": "3.0.0", "paths": {"/p": {"get": {"responses": {"200": {"$ref": "#/no"}}}}}})
    )
    wrong = tmp_path / "wrong" / "f.csv"
    wrong.parent.mkdir()
    wrong.write_text("id,text\n1\n")

    def everything():
        read = load([path for path in tmp_path.iterdir() if path.is_file()], skip_bad=True)
        with pytest.raises(InputError) as refused:
            load([wrong])
        return read, columns_of([tmp_path / "b.jsonl", tmp_path / "d.parquet"]), type(refused.value), str(refused.value)

    module = sys.modules["rag_core.corpus.load"]  # the package has a function of that name
    monkeypatch.setattr(module, "_largest", lambda files: 0)
    in_place = everything()
    monkeypatch.setattr(module, "_largest", lambda files: 1)
    assert everything() == in_place
    assert len(in_place[0].documents) == 5
