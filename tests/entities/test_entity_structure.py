"""Reading a structure: what is accepted, and one error that names the place for everything that is not."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.entities import load_structure, parse_structure
from rag_core.entities.structure import structure_from_text
from rag_core.errors import InputError

GOOD = {
    "name": "two teams",
    "version": 1,
    "role_words": ["gunner"],
    "stop_words": ["the"],
    "aliases": {"both": ["Aaron", "Bertil"], "first": "Aaron"},
    "synonyms": {"pair": "both", "flash": "Blink"},
    "entities": {
        "Aaron": {"members": ["Zorg", {"name": "Quux", "text": "quick"}], "abilities": ["Blink"], "initials": ["AA"]},
        "Bertil": {"members": ["Zorg"], "abilities": {"rules": ["Fly"], "gear": []}, "aliases": ["Bert"]},
    },
}


def put(*path_and_value):
    """GOOD with the value at a path; a value of ... takes the key away."""
    *path, last, value = path_and_value
    changed = copy.deepcopy(GOOD)
    place = changed
    for step in path:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return changed


def test_a_structure_is_read_from_a_mapping():
    structure = parse_structure(GOOD)
    first, second = structure.entities
    assert (first.name, first.members, first.abilities, first.initials) == (
        "Aaron",
        ("Zorg", "Quux"),
        ("Blink",),
        ("AA",),
    )
    assert (second.abilities, second.aliases) == (("Fly",), ("Bert",))
    assert structure.aliases == {"both": ("Aaron", "Bertil"), "first": ("Aaron",)}
    assert structure.synonyms == {"pair": "both", "flash": "Blink"}
    assert structure.role_words == {"gunner"}


def test_yaml_and_json_files_give_the_same_structure(tmp_path):
    from ruamel.yaml import YAML

    yaml_file, json_file = tmp_path / "s.yaml", tmp_path / "s.json"
    with yaml_file.open("w") as file:
        YAML().dump(GOOD, file)
    json_file.write_text(json.dumps(GOOD))
    assert load_structure(yaml_file) == load_structure(json_file) == parse_structure(GOOD)


def test_role_and_stop_words_have_defaults():
    structure = parse_structure({"entities": {"Aaron": {"members": ["Zorg"]}}})
    assert len(structure.role_words) >= 15
    assert {"gunner", "warrior", "trooper", "leader", "sniper", "medic"} <= structure.role_words
    assert len(structure.stop_words) >= 70


MALFORMED = {
    "a list at the top": ([], "s.yaml is .* expected a mapping"),
    "nothing at all": (None, "s.yaml is 'None' .* expected a mapping"),
    "an unknown key at the top": (put("teams", {}), "s.yaml has the unknown key 'teams'"),
    "no entities": (put("entities", ...), "s.yaml has no entities"),
    "entities that are a list": (put("entities", []), "s.yaml: entities is .* expected a mapping"),
    "no entity": (put("entities", {}), "s.yaml: entities is empty"),
    "a version to come": (put("version", 2), "s.yaml: version is '2'"),
    "a name that is a number": (put("name", 7), "s.yaml: name is '7' .*expected text"),
    "an entity's name that is a number": (
        put("entities", 40, {}),
        "entities, an entity's name is '40' .*expected text",
    ),
    "an entity's name of blanks": (put("entities", "  ", {}), "an entity's name is .* expected a name with a letter"),
    "two entities of one name": (
        put("entities", "AARON", {"members": ["X1"]}),
        "entities: 'AARON' is the same name as",
    ),
    "an entity that is a list": (put("entities", "Aaron", ["Zorg"]), "entities → Aaron is .* expected a mapping"),
    "an entity of nothing": (put("entities", "Aaron", None), "entities → Aaron is 'None'"),
    "an unknown key of an entity": (put("entities", "Aaron", "operators", []), "entities → Aaron has the unknown key"),
    "no members key": (put("entities", "Aaron", "members", ...), "entities → Aaron has no members"),
    "no member": (put("entities", "Aaron", "members", []), "entities → Aaron → members is empty"),
    "members that are text": (
        put("entities", "Aaron", "members", "Zorg"),
        "Aaron → members is 'Zorg' .* expected a list",
    ),
    "a member that is a number": (put("entities", "Aaron", "members", 1, 12), r"Aaron → members\[1\] is '12' \(int\)"),
    "a member that is nothing": (put("entities", "Aaron", "members", 0, None), r"Aaron → members\[0\] is 'None'"),
    "a member that is true": (put("entities", "Aaron", "members", 0, True), r"Aaron → members\[0\] is 'True' \(bool\)"),
    "a member of signs alone": (
        put("entities", "Aaron", "members", 0, "!?"),
        r"members\[0\] is '!\?' .*letter or digit",
    ),
    "an emoji for a member": (put("entities", "Aaron", "members", 0, "🔥"), r"Aaron → members\[0\] is '🔥'"),
    "a member too long": (put("entities", "Aaron", "members", 0, "x" * 201), r"members\[0\] has 201 characters"),
    "a member without name": (
        put("entities", "Aaron", "members", 0, {"text": "x"}),
        r"Aaron → members\[0\] has no name",
    ),
    "a member named by a list": (
        put("entities", "Aaron", "members", 0, {"name": []}),
        r"members\[0\] → name is '\[\]'",
    ),
    "an ability that is a number": (put("entities", "Aaron", "abilities", [1.5]), r"Aaron → abilities\[0\] is '1.5'"),
    "abilities that are text": (put("entities", "Aaron", "abilities", "Blink"), "Aaron → abilities is 'Blink'"),
    "a heading that is text": (put("entities", "Bertil", "abilities", "rules", "Fly"), "abilities → rules is 'Fly'"),
    "a heading that is a number": (put("entities", "Bertil", "abilities", 3, []), "Bertil → abilities, a key is '3'"),
    "an alias for nobody": (put("aliases", "both", []), "aliases → both is empty"),
    "an alias for a stranger": (put("aliases", "both", ["Zed"]), r"aliases → both\[0\] is 'Zed' .*name of an entity"),
    "an alias for a number": (put("aliases", "both", 3), "aliases → both is '3' .*expected a list"),
    "aliases as a list": (put("aliases", ["both"]), "s.yaml: aliases is .* expected a mapping"),
    "an alias that is a number": (put("aliases", 5, ["Aaron"]), "aliases, an alias is '5'"),
    "an own alias that is a number": (put("entities", "Bertil", "aliases", [9]), r"Bertil → aliases\[0\] is '9'"),
    "initials that are text": (
        put("entities", "Aaron", "initials", "AA"),
        "Aaron → initials is 'AA' .*expected a list",
    ),
    "a synonym of a stranger": (put("synonyms", "pair", "trio"), "synonyms → pair is 'trio' .*expected an alias"),
    "a synonym of a list": (put("synonyms", "pair", ["both"]), "synonyms → pair is .* expected text"),
    "role words as text": (put("role_words", "gunner"), "s.yaml: role_words is 'gunner' .*expected a list"),
    "a role word of two": (
        put("role_words", ["heavy gunner"]),
        r"role_words\[0\] is 'heavy gunner' .*expected one word",
    ),
    "a stop word that is false": (put("stop_words", [False]), r"stop_words\[0\] is 'False' \(bool\)"),
}


@pytest.mark.parametrize(("data", "message"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_structure_is_one_error_that_names_the_place(data, message):
    with pytest.raises(InputError, match=message) as error:
        parse_structure(data, "s.yaml")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500


UNREADABLE = {
    "a key that stands twice": ("entities:\n  A1: {members: [x1]}\n  A1: {members: [y1]}\n", "duplicate key"),
    "an alias of YAML": ("entities:\n  A1: &a {members: [x1]}\n  B1: *a\n", "YAML alias"),
    "a bracket left open": ("entities: {A1: {members: [x1}\n", "line 1"),
    "a tab for indentation": ("entities:\n\tA1: {members: [x1]}\n", "line 2"),
    "a date for a member": ("entities: {A1: {members: [2024-01-01]}}", r"A1 → members\[0\] is '2024-01-01' \(date\)"),
    "a set for members": ("entities: {A1: {members: !!set {x1, y1}}}", "A1 → members is .* expected"),
    "an object of Python": ("entities: !!python/object:os.system {}", "not valid YAML"),
    "a deep list": ("entities: " + "[" * 60 + "]" * 60, "nested too deeply"),
    "too large a file": ("# " + "x" * 1_000_001, "expected at most 1,000,000"),
    "a key of JSON that stands twice": ('{"entities": {}, "entities": {}}', "stands twice"),
    "a number JSON does not know": ('{"entities": {"A1": {"members": [NaN]}}}', "NaN"),
    "a comma too many": ('{"entities": {"A1": {"members": ["x1",]}}}', "not valid JSON"),
}


@pytest.mark.parametrize(("text", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_file_is_one_error_that_names_the_file(text, message):
    with pytest.raises(InputError, match=message) as error:
        structure_from_text(text, "s.yaml")
    assert "s.yaml" in str(error.value)
    assert "\n" not in str(error.value)


def test_data_that_json_cannot_say_is_refused_with_its_place():
    with pytest.raises(InputError, match=r"Aaron → members\[0\] → cost is .*\(set\)"):
        parse_structure(put("entities", "Aaron", "members", 0, {"name": "Zorg", "cost": {1}}))


def test_data_nested_deeper_than_50_is_refused():
    deep = "x"
    for _ in range(60):
        deep = [deep]
    with pytest.raises(InputError, match="nested too deeply"):
        parse_structure(put("entities", "Aaron", "members", 0, {"name": "Zorg", "more": deep}))


@pytest.mark.parametrize("path", ["nowhere.yaml", "."])
def test_a_missing_file_or_a_folder_is_an_input_error(tmp_path, path):
    with pytest.raises(InputError, match="expected a file"):
        load_structure(tmp_path / path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GOOD, "members", "A1"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(value=json_values)
def test_any_data_is_a_structure_or_an_input_error(value):
    try:
        structure = parse_structure({"entities": value} if not isinstance(value, dict) else value)
    except InputError:
        return
    assert structure.entities


def test_an_alias_can_be_added_to_a_structure(small):
    from rag_core.entities import TeamFilter

    structure = parse_structure(GOOD).with_alias("gaffer", ("Bertil",))
    assert TeamFilter(structure).extract_relevant_teams("gaffer") == ["Bertil"]
    with pytest.raises(InputError, match="names 'Nobody'"):
        structure.with_alias("gaffer", ("Nobody",))
