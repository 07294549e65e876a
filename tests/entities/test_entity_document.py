"""A structure written as a file reads back as the same structure; labelled queries of a text name their line."""

import pytest

from rag_core.entities import load_structure
from rag_core.entities.agreement import labelled_from_text
from rag_core.entities.structure import structure_from_text, structure_text
from rag_core.errors import RecordError


def test_the_demo_structure_survives_being_written_and_read():
    demo = load_structure()
    again = structure_from_text(structure_text(demo))
    assert again == demo
    assert [entity.data for entity in again.entities] == [entity.data for entity in demo.entities]


def test_an_added_alias_is_in_the_file():
    changed = load_structure().with_alias("boyz", ("Kommandos",))
    assert structure_from_text(structure_text(changed)).aliases["boyz"] == ("Kommandos",)


def test_labelled_queries_of_a_text_name_the_line_that_is_wrong():
    text = '{"query": "a", "teams": ["T"]}\n{"query": "b", "teams": "T"}\n'
    with pytest.raises(RecordError, match="the labelled queries line 2: teams is 'T', expected a list"):
        labelled_from_text(text)
