import json

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import InputError, RecordError
from rag_core.records import SCHEMA, dump_case, dump_lists, load_lists, load_some_lists
from rag_core.types import Metric, Order

GOOD = {"id": "q1", "query": "a question", "candidates": [{"id": "a", "distance": 0.1, "relevant": 1}]}


def load(*records):
    return load_lists(b"\n".join(json.dumps(record).encode() for record in records), "lists.jsonl")


def test_only_query_and_one_score_are_required_and_ids_are_made():
    (case,) = load({"query": "x", "candidates": [{"distance": 0.1}, {"distance": 0.2}]})
    assert case.query.id == "q1"
    assert [hit.chunk.id for hit in case.candidates.hits] == ["q1#1", "q1#2"]


def test_order_in_the_file_is_the_rank_and_unknown_keys_are_metadata():
    (case,) = load({**GOOD, "channel": "web", "candidates": [{"distance": 0.1, "rank": 7, "page": 3}]})
    hit = case.candidates.hits[0]
    assert (hit.rank, hit.chunk.metadata) == (1, {"rank": 7, "page": 3})
    assert case.query.metadata == {"channel": "web"}


def test_an_absent_metric_is_unknown_and_cosine_similarities_become_distances():
    assert load(GOOD)[0].candidates.metric is Metric.UNKNOWN
    (case,) = load({"query": "x", "metric": "cosine", "candidates": [{"similarity": 0.75}]})
    assert case.candidates.hits[0].distance == 0.25


def test_null_and_absent_relevant_are_unjudged():
    (case,) = load(
        {
            "query": "x",
            "candidates": [{"distance": 0, "relevant": None}, {"distance": 0}, {"distance": 0, "relevant": 0}],
        }
    )
    assert case.grades == {"q1#3": 0}


def test_line_separators_inside_texts_do_not_break_a_record():
    (case,) = load_lists('{"query": "a\u2028b\u0085c", "candidates": []}'.encode(), "f")
    assert case.query.text == "a\u2028b\u0085c"


def test_an_unreadable_rule_is_kept_as_it_stands():
    (case,) = load({"query": "x", "candidates": [{"distance": 0.1, "query_must": {"nonsense": 1}}]})
    assert case.candidates.hits[0].chunk.query_must == {"nonsense": 1}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"candidates": []}, "line 1 has query None"),
        ({"query": " ", "candidates": []}, "line 1 has query ' '"),
        ({"query": "x"}, "has candidates null, expected a list"),
        ({"query": "x", "candidates": [{"id": "a"}]}, "line 1 candidate 1 has no score, expected one of distance"),
        ({"query": "x", "candidates": [{"distance": "0.1"}]}, 'has distance "0.1", expected a finite number'),
        (
            {"query": "x", "candidates": [{"distance": 0.2}, {"distance": 0.1}]},
            "candidate 2 has distance 0.1 after 0.2, expected ascending distances",
        ),
        (
            {"query": "x", "candidates": [{"bm25": 1}, {"bm25": 2}]},
            r"candidate 2 has bm25 2\.0 after 1\.0, expected descending bm25",
        ),
        (
            {"query": "x", "candidates": [{"distance": 0.1}, {"similarity": 1}]},
            "candidate 2 has no distance, expected one as the others have",
        ),
        (
            {"query": "x", "candidates": [{"id": "a", "distance": 0}, {"id": "a", "distance": 0}]},
            r"candidate 2 has id 'a' again \(candidate 1\)",
        ),
        ({"query": "x", "candidates": [{"distance": 0, "relevant": -1}]}, "has relevant -1, expected a whole number"),
        ({"query": "x", "candidates": [{"distance": 0, "relevant": 0.5}]}, "has relevant 0.5"),
        ({"query": "x", "candidates": [], "metric": "hamming"}, 'has metric "hamming", expected one of cosine'),
        ({"query": "x", "candidates": [], "order": "random"}, "expected one of distance, fused"),
        ({"query": "x", "candidates": [], "version": 2}, "has version 2, expected 1"),
        ({"query": "x", "candidates": [3]}, "candidate 1 is int, expected an object"),
        ({"query": "x", "candidates": [], "labels": [1]}, "has labels"),
        ({"query": "x", "candidates": [], "labels": {"a": -1}}, "the label of 'a' -1"),
        ([{"query": "x"}], r"line 1 begins a JSON list, expected one object a line \(JSONL\)"),
        (["x"], "line 1 is list, expected an object"),
    ],
)
def test_a_bad_record_is_one_sentence_with_its_line(record, message):
    with pytest.raises(RecordError, match=message) as caught:
        load(record)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"query": "x", "candidates": []}\n{"query": ', "lists.jsonl line 2 is not valid JSON"),
        (b'{"query": "x", "candidates": [{"distance": NaN}]}', "NaN is not a number JSON knows"),
        (b'{"query": "x", "query": "y", "candidates": []}', "key 'query' stands twice"),
        (b"", "holds no line"),
        (b"\x00\x01\x02", "looks like a binary file"),
        (b'{"query": "\xff"}', "is not UTF-8 text"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_bad_bytes_are_one_sentence(data, message):
    with pytest.raises(InputError, match=message):
        load_lists(data, "lists.jsonl")


def test_a_duplicate_query_id_names_both_lines():
    with pytest.raises(RecordError, match=r"line 2 has query id 'q1' again \(line 1\)"):
        load(GOOD, GOOD)


@pytest.mark.parametrize(
    ("size", "message"), [(5_000_000_000, "5,000,000,000 bytes, expected at most"), (60_000_000, "line 1 has over 50,")]
)
def test_a_huge_file_is_refused_before_it_is_read_and_a_huge_line_before_it_is_parsed(size, message, tmp_path):
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.truncate(size)
    with pytest.raises(InputError, match=message):
        load_lists(path)


NAMELESS = json.dumps({"query": "wie groß?", "candidates": GOOD["candidates"]}, ensure_ascii=False).encode()


@given(
    st.lists(st.sampled_from([b"", b"  ", b"\r", NAMELESS, NAMELESS]), max_size=12),
    st.booleans(),
    st.booleans(),
    st.data(),
)
def test_a_file_read_line_by_line_is_what_its_bytes_are_and_any_of_its_lists_can_be_read_alone(
    tmp_path_factory, rows, marked, ended, data
):
    text = b"\xef\xbb\xbf" * marked + b"\r\n".join(rows) + b"\n" * ended
    path = tmp_path_factory.mktemp("lists") / "lists.jsonl"
    path.write_bytes(text)
    if NAMELESS not in rows:
        with pytest.raises(RecordError, match="holds no line"):
            load_lists(path)
        return
    cases = load_lists(path)
    assert cases == load_lists(text, str(path))
    places = data.draw(st.lists(st.integers(0, len(cases) - 1)))
    assert load_some_lists(path, places) == [cases[place] for place in places]


def test_what_is_no_text_in_a_later_line_is_told_with_its_byte(tmp_path):
    path = tmp_path / "lists.jsonl"
    path.write_bytes(json.dumps(GOOD).encode() + b"\n" + b'{"query": "\xff"}')
    with pytest.raises(InputError, match=rf"is not UTF-8 text \(byte {path.read_bytes().index(0xFF)}\)"):
        load_lists(path)


def test_order_fused_is_not_checked():
    (case,) = load({"query": "x", "order": "fused", "candidates": [{"distance": 0.2}, {"distance": 0.1}]})
    assert case.candidates.order is Order.FUSED


def test_labels_of_chunks_outside_the_list_are_kept_and_written_again():
    (case,) = load({**GOOD, "labels": {"far": 2, "farther": 0}})
    assert case.grades == {"a": 1, "far": 2, "farther": 0}
    assert load_lists("\n".join(dump_lists([case])).encode(), "f") == [case]


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(str.strip)
candidates = st.lists(
    st.fixed_dictionaries(
        {"distance": st.floats(0, 2)},
        optional={
            "title": texts,
            "text": texts,
            "relevant": st.one_of(st.none(), st.integers(0, 3)),
            "ref_ids": st.lists(texts, max_size=2),
            "page": st.integers(),
        },
    ),
    max_size=6,
).map(lambda made: sorted(made, key=lambda one: one["distance"]))


@given(texts, candidates, st.sampled_from([None, "cosine", "l2", "ip"]))
def test_written_and_read_again_is_the_same_and_fits_the_schema(query, made, metric):
    cases = load({"query": query, "candidates": made, "metric": metric})
    written = list(dump_lists(cases))
    jsonschema.validate(json.loads(written[0]), SCHEMA)
    assert load_lists("\n".join(written).encode(), "f") == cases


@pytest.mark.parametrize("bad", [{}, {"query": "", "candidates": []}, {"query": "x", "candidates": [{"id": "a"}]}])
def test_the_schema_refuses_what_the_reader_refuses(bad):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(bad, SCHEMA)
    with pytest.raises(RecordError):
        load(bad)


def as_lines(*records):
    return "\n".join(json.dumps(record) for record in records).encode()


def test_a_chunk_in_the_lists_of_many_queries_is_held_once():
    chunk = {
        "id": "c1",
        "title": "Armour",
        "text": "long " * 50,
        "file": "a.md",
        "query_must": {"contain_one_of": [["x"]]},
    }
    lists = [{"query": f"question {n}", "candidates": [{**chunk, "distance": n / 10}]} for n in range(3)]
    first, *others = [case.candidates.hits[0].chunk for case in load_lists(as_lines(*lists), "lists")]
    assert all(one is first for one in others)


@pytest.mark.parametrize("change", [{"text": "other"}, {"page": 1.0}, {"page": True}, {"query_must": {"a": [[1.0]]}}])
def test_a_chunk_that_differs_under_one_id_stays_as_it_was_written(change):
    chunk = {"id": "c1", "distance": 0.1, "page": 1, "query_must": {"a": [[1]]}}
    lists = as_lines({"query": "one", "candidates": [chunk]}, {"query": "two", "candidates": [{**chunk, **change}]})
    cases = load_lists(lists, "lists")
    assert json.dumps(dump_case(cases[1])["candidates"][0], sort_keys=True) == json.dumps(
        {"title": "", **chunk, **change}, sort_keys=True
    )


def test_titles_are_shared_between_chunks_and_bare_chunks_hold_no_empty_metadata():
    listed = [{"id": f"c{n}", "title": "Chapter seven", "distance": n} for n in range(2)]
    one, two = (
        hit.chunk for hit in load_lists(as_lines({"query": "q", "candidates": listed}), "lists")[0].candidates.hits
    )
    assert one.title is two.title
    assert one.metadata is two.metadata
