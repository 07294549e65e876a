"""A structure written as a file reads back as the same structure; labelled queries of a text name their line."""

from rag_core.entities import load_structure
from rag_core.entities.structure import structure_from_text, structure_text


def test_the_demo_structure_survives_being_written_and_read():
    demo = load_structure()
    again = structure_from_text(structure_text(demo))
    assert again == demo
    assert [entity.data for entity in again.entities] == [entity.data for entity in demo.entities]


def test_an_added_alias_is_in_the_file():
    changed = load_structure().with_alias("boyz", ("Kommandos",))
    assert structure_from_text(structure_text(changed)).aliases["boyz"] == ("Kommandos",)
