"""No character of a document is lost: the chunks' texts joined are the document, whatever it is made of.

Exactly: for every text that is not blank, "".join(chunk.text for chunk in split_markdown(text)) == text; and for a file,
the texts of its chunks joined are its bytes read as UTF-8, less one leading byte order mark, NUL and lone surrogates
replaced by U+FFFD.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nasty_markdown import ENDS, FEATURES, documents

from rag_core.corpus.load import load
from rag_core.corpus.markdown import find_headers, split_markdown

DOCUMENTS = documents(200)
PIECES = st.sampled_from([text for text in FEATURES.values() if len(text) < 600])
MIXED = st.builds(
    lambda pieces, mark: "".join(pieces).replace("\n", mark),
    st.lists(st.one_of(PIECES, st.text(max_size=30)), max_size=12),
    st.sampled_from([*ENDS.values(), "\n\r"]),
)


def joined(chunks):
    return "".join(chunk.text for chunk in chunks)


def test_there_are_two_hundred_different_documents():
    assert len({text for _, text in DOCUMENTS}) == len(DOCUMENTS) == 200


@pytest.mark.parametrize("level", [2, 3, 4])
def test_two_hundred_nasty_documents_lose_nothing(level):
    for name, text in DOCUMENTS:
        chunks = split_markdown(text, "book.md", level)
        assert joined(chunks) == (text if text.strip() else ""), name
        assert len({chunk.id for chunk in chunks}) == len(chunks), name
        assert [chunk.metadata["position"] for chunk in chunks] == list(range(1, len(chunks) + 1)), name


def test_two_hundred_nasty_files_are_read_whole(tmp_path):
    kept = {}
    for number, (_, text) in enumerate(DOCUMENTS):
        if text.replace("\ufeff", "", 1).strip():
            (tmp_path / f"{number:03}.md").write_bytes(text.encode("utf-8"))
            kept[f"{number:03}.md"] = text[1:] if text.startswith("\ufeff") else text
    found = {document.name: joined(document.chunks) for document in load([tmp_path]).documents}
    assert found == kept


@given(MIXED, st.sampled_from([2, 3, 4]))
def test_random_joins_of_features_lose_nothing(text, level):
    assert joined(split_markdown(text, "book.md", level)) == (text if text.strip() else "")


@given(MIXED)
def test_each_header_found_stands_where_it_says(text):
    """The line a header names holds its words, so that a cut is never inside another block."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for header in find_headers(text):
        assert 0 <= header.line < header.stop <= len(lines)
        assert any("#" in line or set(line.strip()) <= {"=", "-"} for line in lines[header.line : header.stop])


@pytest.mark.parametrize(
    "name", ["fence with #", "tilde fence with #", "indented code", "table", "script", "html comment"]
)
def test_what_only_looks_like_a_header_cuts_nothing(name):
    text = f"## One\n{FEATURES[name]}"
    hidden = [
        header.text for header in find_headers(text) if header.text in ("no header", "nor this", "inside", "hidden")
    ]
    assert hidden == []
