import gc

import pytest

from rag_core.errors import InputError
from rag_core.files import MAX_DEPTH, MUCH, collector_at_rest, parse_yaml


def nested(levels):
    return "[" * levels + "1" + "]" * levels


def test_yaml_may_be_nested_to_the_limit_and_no_deeper():
    found = parse_yaml(nested(MAX_DEPTH), "f.yaml")
    for _ in range(MAX_DEPTH):
        (found,) = found
    assert found == 1
    with pytest.raises(InputError, match=r"f\.yaml is nested too deeply"):
        parse_yaml(nested(MAX_DEPTH + 1), "f.yaml")


def test_beside_one_another_levels_do_not_add_up():
    side_by_side = "".join(f"- {nested(MAX_DEPTH - 1)}\n" for _ in range(3))
    assert len(parse_yaml(side_by_side, "f.yaml")) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &x [1]\nb: *x", "holds a YAML alias"),
        ("b: *nowhere", "holds a YAML alias"),
        ("a: 1\na: 2", "line 2: found duplicate key"),
        ("a: 1\n--- 2", "another document"),
        ("a: [1", "line 1"),
        ("a: !!python/object:os.system x", "is not valid YAML"),
        ("[" * 5000, "nested too deeply"),
        ("? [a, {b: c}]\n: d", "is not valid YAML"),
    ],
)
def test_yaml_that_is_not_plain_is_refused_in_one_sentence(text, said):
    with pytest.raises(InputError, match=said):
        parse_yaml(text, "f.yaml")


def test_the_value_of_a_repeated_key_is_cut_short():
    with pytest.raises(InputError, match="found duplicate key") as told:
        parse_yaml(f"a: 1\na: {'x' * 5000}", "f.yaml")
    assert len(str(told.value)) < 300


def test_plain_yaml_is_read_as_version_1_2():
    assert parse_yaml("a: yes\nb: 0o17\nc: {d: [1, 2.5, null]}", "f.yaml") == {
        "a": "yes",
        "b": 15,
        "c": {"d": [1, 2.5, None]},
    }


def test_much_that_is_read_with_the_collector_at_rest_is_old_at_once_unless_an_app_has_frozen_its_own(monkeypatch):
    for frozen, count, generation in ((0, MUCH + 1, 2), (1, MUCH + 1, 0), (0, 1, 0)):
        monkeypatch.setattr(gc, "get_freeze_count", lambda frozen=frozen: frozen)
        gc.collect()
        with collector_at_rest():
            assert not gc.isenabled()
            made = [[] for _ in range(count)]
        gc.disable()  # so that it stays where it was put
        assert any(one is made for one in gc.get_objects(generation))
        gc.enable()
