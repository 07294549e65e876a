"""After re-chunking every label is accounted for: same, moved, split or lost."""

from rag_core.store.keys import text_hash
from rag_core.store.remap import counts, remap
from tests.store.conftest import make_event

FIRST = "A sleeping character may be hit without a roll and takes double damage from every blow that lands on him."
SECOND = "Sling stones are counted as light and twenty of them weigh as much as one bag of small coins from the mint."


def label(text, chunk_id="c1"):
    return make_event(0, chunk_id=chunk_id, text_hash=text_hash(text))


def outcome(one_label, chunks, old=()):
    (found,) = remap([one_label], chunks, {text_hash(text): text for text in old})
    return found.outcome, found.chunk_ids


def test_the_same_text_under_the_same_id_is_same_whatever_its_white_space():
    assert outcome(label(FIRST), {"c1": FIRST.replace(" ", "  ")}) == ("same", ("c1",))


def test_the_same_text_under_another_id_has_moved():
    assert outcome(label(FIRST), {"c9": FIRST, "c1": SECOND}) == ("moved", ("c9",))


def test_a_text_inside_a_larger_chunk_is_split_and_named():
    assert outcome(label(FIRST), {"c7": f"{SECOND} {FIRST}"}, [FIRST]) == ("split", ("c7",))


def test_a_text_cut_in_two_names_both_parts():
    words = f"{FIRST} {SECOND}".split()
    halves = {"a": " ".join(words[:22]), "b": " ".join(words[22:])}
    found, ids = outcome(label(f"{FIRST} {SECOND}"), halves, [f"{FIRST} {SECOND}"])
    assert (found, set(ids)) == ("split", {"a", "b"})


def test_a_text_that_is_gone_is_lost_even_where_another_took_its_id():
    assert outcome(label(FIRST), {"c1": SECOND}, [FIRST]) == ("lost", ())


def test_a_label_without_a_text_goes_by_its_id():
    assert outcome(make_event(0, chunk_id="c1"), {"c1": SECOND}) == ("same", ("c1",))
    assert outcome(make_event(0, chunk_id="c1"), {"c2": SECOND}) == ("lost", ())


def test_every_label_is_counted_once():
    found = remap([label(FIRST), label(SECOND), label("gone")], {"c1": FIRST, "c2": SECOND})
    assert counts(found) == {"same": 1, "moved": 1, "split": 0, "lost": 1}
