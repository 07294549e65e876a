"""The rule's two readers: strict where it is stored, tolerant where it arrives; and the schema beside them."""

import contextlib
import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import RuleError
from rag_core.rules.generate import rule_schema
from rag_core.rules.rule import NumberIn, Rule, WhenNamed, parse_rule, read_rule

FULL = {
    "contain_one_of": [["cleric", "druid"], ["armor class 6", "ac 6"]],
    "contain_all_of": ["undead", 7],
    "contain": "turn",
    "number_in": [
        {"label": ["intelligence"], "min": 10, "max": 13},
        {"sum_of": [["intelligence"], ["wisdom"]], "min": 26},
    ],
    "when_named": [{"one_of": ["ghoul"], "among": ["ghoul", "wight"]}],
}


def test_every_key_is_read_and_a_number_is_read_as_text():
    rule = parse_rule(FULL, "c1")
    assert rule.contain_one_of == (("cleric", "druid"), ("armor class 6", "ac 6"))
    assert rule.contain_all_of == ("undead", "7")
    assert rule.contain == "turn"
    assert rule.number_in[0] == NumberIn((("intelligence",),), 10.0, 13.0)
    assert rule.when_named == (WhenNamed(("ghoul",), ("ghoul", "wight")),)
    assert rule.number_in[1] == NumberIn((("intelligence",), ("wisdom",)), 26.0, None, summed=True)


def test_a_rule_written_out_is_the_same_rule_read_back():
    rule = parse_rule(FULL, "c1")
    assert parse_rule(rule.as_mapping(), "c1") == rule
    assert read_rule(rule.as_json()) == rule


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ({"contains": ["x"]}, "'contains' is an unknown key with value ['x']"),
        ({"contain_one_of": "cleric"}, "contain_one_of is 'cleric', expected a list"),
        ({"contain_one_of": ["cleric"]}, "contain_one_of holds 'cleric', expected a list of terms"),
        ({"contain_one_of": []}, "contain_one_of is an empty list"),
        ({"contain_one_of": [["cleric"], []]}, "contain_one_of holds an empty group []"),
        ({"contain_one_of": [["cleric", ""]]}, "contain_one_of holds the empty term ''"),
        ({"contain_all_of": [" ?! "]}, "contain_all_of holds the empty term ' ?! '"),
        ({"contain_all_of": []}, "contain_all_of holds an empty group []"),
        ({"contain": None}, "contain holds None, expected a term"),
        ({"contain": True}, "contain holds True, expected a term"),
        ({"contain": ["x"]}, "contain holds ['x'], expected a term"),
        ({"contain": float("nan")}, "contain holds nan, expected a finite number"),
        ({"contain": 10**5000}, "contain holds a number of thousands of digits"),
        ({}, "the rule is empty"),
        (["cleric"], "the rule is ['cleric'], expected a mapping"),
        ("cleric", "the rule is 'cleric', expected a mapping"),
        ({"number_in": {"label": ["x"], "min": 1}}, "number_in is {'label': ['x'], 'min': 1}, expected a list"),
        ({"number_in": [{"label": ["x"]}]}, "number_in holds {'label': ['x']}, expected min, max or both"),
        ({"number_in": [{"min": 1}]}, "expected either label or sum_of"),
        ({"number_in": [{"label": [], "min": 1}]}, "number_in.label holds an empty group []"),
        ({"number_in": [{"label": ["x"], "min": 5, "max": 1}]}, "number_in has min 5 above max 1"),
        ({"number_in": [{"label": ["x"], "min": "5"}]}, "number_in.min is '5', expected a number"),
        ({"number_in": [{"label": ["x"], "min": float("inf")}]}, "number_in.min is inf, expected a number"),
        ({"number_in": [{"label": ["x"], "least": 1}]}, "number_in holds the unknown key 'least'"),
        ({"number_in": [{"sum_of": [["x"], []], "min": 1}]}, "number_in.sum_of holds an empty group []"),
        ({"when_named": [{"one_of": ["x"]}]}, "when_named holds {'one_of': ['x']}, expected a mapping with one_of and"),
        ({"when_named": [{"one_of": ["x"], "among": []}]}, "when_named.among holds an empty group []"),
        ({"query_must": {"query_must": {"contain": "x"}}}, "'query_must' is an unknown key"),
    ],
)
def test_what_may_not_be_stored_names_chunk_key_and_value(raw, says):
    with pytest.raises(RuleError) as error:
        parse_rule(raw, "chunk c7")
    assert "chunk c7" in str(error.value)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("raw", "rule"),
    [
        ({"contain_one_of": [["a1", "b"]]}, Rule(contain_one_of=(("a1", "b"),))),
        ('{"contain_one_of": [["a1", "b"]]}', Rule(contain_one_of=(("a1", "b"),))),
        ({"contain_one_of": ["a1", "b"]}, Rule(contain_one_of=(("a1", "b"),))),
        (["a1", "b"], Rule(contain_one_of=(("a1", "b"),))),
        ([["a1"], ["b"]], Rule(contain_one_of=(("a1",), ("b",)))),
        ('["a1", 6]', Rule(contain_one_of=(("a1", "6"),))),
        ({"contain_one_of": "a1"}, Rule(contain_one_of=(("a1",),))),
        ({"contain_all_of": "a1"}, Rule(contain_all_of=("a1",))),
        ({"contain": ["a1"]}, Rule(contain="a1")),
        ({"number_in": {"label": ["a1"], "min": 1}}, Rule(number_in=(NumberIn((("a1",),), 1.0),))),
        ({"query_must": {"contain_one_of": [["a1"]]}}, Rule(contain_one_of=(("a1",),))),
        ('{"query_must": {"contain": "a1"}}', Rule(contain="a1")),
        ("{'query_must': {'contain_one_of': [['a1', 6]]}}", Rule(contain_one_of=(("a1", "6"),))),
        ("{'contain': \"ogre's\"}", Rule(contain="ogre's")),
    ],
)
def test_a_recorded_rule_is_read_in_the_shapes_collections_hold(raw, rule):
    assert read_rule(raw) == rule


@pytest.mark.parametrize("raw", [None, "", "  "])
def test_no_rule_is_none(raw):
    assert read_rule(raw) is None


@pytest.mark.parametrize(
    "raw",
    [
        "{",
        "[" * 100_000,
        '{"contain": NaN}',
        '{"contain": "a", "contain": "b"}',
        "{'contain': 'a', 'contain': 'b'}",
        "{'contain': __import__('os')}",
        "{'contain': {'a'}}",
        '"' + "x" * 200_000 + '"',
        7,
        {},
        [],
        {1: "x"},
        {"contain": ""},
        {"contain": object()},
        {"contain_one_of": [[]]},
        {"contain_one_of": ["a", ["b"]]},
    ],
    ids=lambda raw: repr(raw)[:30],
)
def test_a_broken_recorded_rule_is_a_sentence_not_an_error(raw):
    found = read_rule(raw)
    assert isinstance(found, str)
    assert 0 < len(found) < 300


def test_a_rule_that_holds_itself_is_a_sentence():
    loop = {}
    loop["contain"] = loop
    assert isinstance(read_rule(loop), str)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*FULL, "label", "min", "max", "sum_of"]), inner),
)


@given(JSON)
def test_no_json_value_crashes_the_tolerant_reader(raw):
    assert isinstance(read_rule(raw), Rule | str | None)


@given(JSON)
def test_the_strict_reader_gives_a_rule_that_the_schema_takes_or_a_rule_error(raw):
    with contextlib.suppress(RuleError):
        jsonschema.validate(parse_rule(raw, "c1").as_mapping(), rule_schema())


def test_the_schema_takes_a_full_rule_and_refuses_an_unknown_key():
    schema = rule_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(FULL, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"contains": "x"}, schema)
    assert json.loads(json.dumps(schema)) == schema


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ({"contain_one_of": [[f"x{n}" for n in range(100)], [f"y{n}" for n in range(101)]]}, "has 201 terms"),
        ({"number_in": [{"label": [f"x{n}" for n in range(201)], "min": 1}]}, "has 201 terms"),
        ({"contain": "x" * 201}, "a term of 201 characters"),
        ({"contain": "x " * 21}, "a term of 21 words"),
    ],
)
def test_a_rule_larger_than_any_query_needs_is_refused(raw, says):
    with pytest.raises(RuleError, match=says):
        parse_rule(raw, "chunk c")
    assert says in read_rule(raw)


def test_a_rule_at_the_limits_is_read():
    groups = [["x " * 20, *(f"y{n}" for n in range(199))]]
    assert parse_rule({"contain_one_of": groups}, "chunk c") == read_rule({"contain_one_of": groups})


def test_the_wrapper_of_the_designs_may_be_stored_and_is_taken_off():
    assert parse_rule({"query_must": {"contain": "a1"}}, "c1") == Rule(contain="a1")


@given(st.recursive(st.text() | st.integers() | st.booleans() | st.none(), lambda inner: st.lists(inner)), st.data())
def test_the_text_of_a_python_dict_is_read_as_its_json(value, data):
    raw = {data.draw(st.sampled_from([*FULL, "query_must"])): value}
    json_text, python_text = json.dumps(raw), str(raw)
    expected, found = read_rule(json_text), read_rule(python_text)
    assert found == expected or (isinstance(found, str) and isinstance(expected, str))
