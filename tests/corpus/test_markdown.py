"""Markdown at header levels: what cuts, what does not, and that no character is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.corpus.markdown import find_headers, split_markdown
from rag_core.errors import InputError

DOCUMENT = """# Rulebook

Some words first.

## Combat

How to fight.

### Attack rolls

Roll.

#### Details

Small print.

## Magic
Spells.
"""


def titles(text, level=3):
    return [chunk.title for chunk in split_markdown(text, "book.md", level)]


def test_chunks_begin_at_headers_of_level_two_to_the_set_one():
    assert titles(DOCUMENT, 2) == ["Rulebook", "Combat", "Magic"]
    assert titles(DOCUMENT) == ["Rulebook", "Combat", "Attack rolls", "Magic"]
    assert titles(DOCUMENT, 4) == ["Rulebook", "Combat", "Attack rolls", "Details", "Magic"]


def test_ids_are_the_document_and_the_heading_path():
    assert [chunk.id for chunk in split_markdown(DOCUMENT, "rules/my book.md")] == [
        "rules/my%20book.md",
        "rules/my%20book.md#combat",
        "rules/my%20book.md#combat/attack-rolls",
        "rules/my%20book.md#magic",
    ]


def test_metadata_says_header_path_level_position_and_source():
    chunk = split_markdown(DOCUMENT, "book.md")[2]
    assert dict(chunk.metadata) == {
        "header": "Attack rolls",
        "headers": ["Combat", "Attack rolls"],
        "level": 3,
        "position": 3,
        "source": "book.md",
    }


def test_a_title_alone_goes_with_the_first_section():
    chunks = split_markdown("# Rulebook\n\n## Combat\n\nFight.\n", "book.md")
    assert [(chunk.title, chunk.id) for chunk in chunks] == [("Combat", "book.md#combat")]
    assert chunks[0].text.startswith("# Rulebook")


def test_a_title_further_down_begins_a_part():
    text = "# One\n\n## A\n\na\n\n# Two\n\nwords\n\n## A\n\nb\n"
    assert [chunk.id for chunk in split_markdown(text, "b.md")] == ["b.md#a", "b.md#two", "b.md#a~2"]
    bare = "## A\n\na\n\n# Two\n\n## B\n\nb\n"
    assert [chunk.text for chunk in split_markdown(bare, "b.md")] == ["## A\n\na\n\n", "# Two\n\n## B\n\nb\n"]


def test_equal_headers_get_numbered_ids():
    chunks = split_markdown("## A\none\n## A\ntwo\n## A\nthree\n", "b.md")
    assert [chunk.id for chunk in chunks] == ["b.md#a", "b.md#a~2", "b.md#a~3"]


def test_a_document_without_such_a_header_is_one_chunk():
    text = "# Only a title\n\nwords\n\n#### too deep\n\nmore\n"
    (chunk,) = split_markdown(text, "notes/plain.md")
    assert (chunk.id, chunk.title, chunk.text) == ("notes/plain.md", "Only a title", text)
    assert split_markdown("just words", "plain.md")[0].title == "plain"


def test_bold_lines_are_headers_where_a_document_has_no_others():
    text = "**Ogre**\nBig.\n\n**Armor:** 15\n\n**Goblin:**\n\nSmall. **Mean.**\n\n**This is a whole sentence.**\n"
    assert [(chunk.title, chunk.id) for chunk in split_markdown(text, "m.md")] == [
        ("Ogre", "m.md#ogre"),
        ("Goblin", "m.md#goblin"),
    ]
    assert titles("## Monsters\n\n" + text) == ["Monsters"]


def test_a_blank_document_has_no_chunk():
    assert split_markdown("", "a.md") == split_markdown(" \n\n", "a.md") == []


@pytest.mark.parametrize(
    "inside",
    [
        "```\n## not a header\n```",
        "~~~python\n## a comment\n~~~",
        "````\n```\n## still inside\n```\n````",
        "    ## indented code",
        "| a | b |\n|---|---|\n| ## x | y |",
        "> ## quoted",
        "- ## in a list",
        "<!--\n## hidden\n-->",
        "\\## escaped",
        "##no space",
        "####### seven",
    ],
)
def test_what_only_looks_like_a_header_does_not_cut(inside):
    text = f"## Real\n\n{inside}\n\nafter\n"
    assert titles(text) == ["Real"]


def test_an_unclosed_fence_runs_to_the_end():
    assert titles("## A\n```\n## B\n## C\n") == ["A"]


def test_underlined_headers_cut_and_closing_marks_and_markup_are_no_part_of_the_title():
    assert titles("Combat\n---\n\nwords\n\n## *Attack* `rolls` [here](x) ##\n\nmore\n") == [
        "Combat",
        "Attack rolls here",
    ]


def test_front_matter_is_no_header():
    text = "---\ntitle: A book\ntags: x\n---\n\n## A\n\nwords\n"
    assert [header.text for header in find_headers(text)] == ["A"]
    assert "".join(chunk.text for chunk in split_markdown(text, "b.md")) == text


def test_a_rule_at_the_top_is_not_taken_for_front_matter():
    assert titles("---\n\n## A\n\nwords\n\n---\n\n## B\n\nx\n") == ["book", "A", "B"]


def test_a_level_out_of_range_is_refused():
    with pytest.raises(InputError, match="one of 2, 3, 4"):
        split_markdown("x", "a.md", 5)


LINES = st.sampled_from(
    [
        "# T",
        "## A",
        "## A",
        "### B",
        "#### C",
        "text",
        "",
        "```",
        "~~~",
        "> ## q",
        "- x",
        "---",
        "===",
        "| a |",
        "|--|",
        "title: x",
        "\u2028## u",
        "\x0b",
        "\x85",
        "<!--",
        "-->",
        "    ## code",
        "\t# t",
        "## ",
        "#",
    ]
)
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])
DOCUMENTS = st.lists(st.tuples(LINES, ENDS)).map(lambda pairs: "".join(line + end for line, end in pairs))


@given(st.one_of(DOCUMENTS, DOCUMENTS.map(str.rstrip), st.text(max_size=200)), st.sampled_from([2, 3, 4]))
def test_the_texts_joined_are_the_document_and_ids_are_unique_and_repeatable(text, level):
    chunks = split_markdown(text, "d.md", level)
    assert "".join(chunk.text for chunk in chunks) == (text if text.strip() else "")
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    assert all(chunk.text.strip() for chunk in chunks)
    assert chunks == split_markdown(text, "d.md", level)


@given(DOCUMENTS)
def test_every_header_of_a_cutting_level_begins_exactly_one_chunk(text):
    cutting = [header for header in find_headers(text) if 2 <= header.level <= 3]
    chunks = split_markdown(text, "d.md", 3)
    assert sum(chunk.metadata["level"] in (2, 3) for chunk in chunks) == len(cutting)


def test_a_deeply_quoted_document_is_split_in_bounded_time():
    text = ">" * 20_000 + " x\n\n## A\n\ny\n"
    assert titles(text)[-1] == "A"
