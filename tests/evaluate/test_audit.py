"""Audit: contradicted near-duplicates first, odd distances next; most planted errors near the top."""

import random

import pytest

from rag_core.evaluate.audit import CLOSE, FAR, SAME, TWINS, Labelled, audit, blind_sample

LONG = "the knight of the northern keep rides out at dawn with two squires and returns before the feast begins"


def one_query(*rows):
    return [Labelled("q", f"c{i}", grade, text, distance) for i, (grade, text, distance) in enumerate(rows)]


def test_near_duplicates_with_different_labels_come_first_and_name_each_other():
    labels = one_query((2, LONG, 0.3), (0, LONG + "!", 0.31), (0, "other words", 0.9), (2, "more words", 0.2))
    first, second = audit(labels)[:2]
    assert {(one.label.chunk_id, one.against) for one in (first, second)} == {("c0", "c1"), ("c1", "c0")}
    assert first.kind == second.kind == TWINS


def test_a_relevant_label_far_away_and_an_irrelevant_one_at_nothing_are_suspect():
    good = [(3, "", 0.2 + i / 100) for i in range(8)] + [(0, "", 0.7 + i / 100) for i in range(8)]
    labels = one_query(*good, (3, "", 0.95), (0, "", 0.01))
    worst = audit(labels)[:2]
    assert {(one.label.chunk_id, one.kind) for one in worst} == {("c16", FAR), ("c17", SAME)}
    assert {one.kind for one in audit(labels)[2:]} == {FAR, CLOSE}


def test_labels_without_a_distance_are_left_out_unless_a_twin_contradicts():
    assert audit(one_query((1, "one", None), (0, "two", None))) == []


def test_perfectly_separated_labels_do_not_break_the_curve():
    labels = one_query((1, "", 0.1), (1, "", 0.2), (0, "", 0.8), (0, "", 0.9))
    assert all(0 <= one.suspicion <= 1 for one in audit(labels))


def test_the_blind_sample_is_repeatable_and_never_larger_than_the_labels():
    labels = one_query(*[(0, "", 0.1 * i) for i in range(9)])
    assert blind_sample(labels, 4, 1) == blind_sample(labels, 4, 1)
    assert len(blind_sample(labels, 99)) == 9


def flipped_collection(seed, within_stored, queries=225, relevant=8, irrelevant=22, share=0.05):
    """225 queries as in Cranfield, 30 labels each, distances that tell relevance with an AUC of about 0.85; `share` is
    wrong, of each stored grade or of each true one. Returns the labels and which of them are wrong."""
    draw = random.Random(seed)
    stored = [(f"q{q}", i < relevant) for q in range(queries) for i in range(relevant + irrelevant)]
    wrong = set()
    for side in (True, False):
        places = [place for place, (_, label) in enumerate(stored) if label == side]
        wrong |= set(draw.sample(places, round(share * len(places))))
    labels = []
    for place, (query, label) in enumerate(stored):
        other = label != (place in wrong)
        truth, said = (other, label) if within_stored else (label, other)
        distance = draw.gauss(0.6 if truth else 0.747, 0.1) + 0.01 * int(query[1:])
        labels.append(Labelled(query, str(place), int(said), distance=distance))
    return labels, wrong


def found_in_top(order, wrong, top):
    return len(wrong & set(order[: round(top * len(order))])) / len(wrong)


def listed_by_label(labels, wrong, seed):
    """The share found in 15 % of the list by the better of the two orders that a label alone gives."""
    places = list(range(len(labels)))
    random.Random(seed).shuffle(places)
    return max(
        found_in_top(sorted(places, key=lambda place: sign * labels[place].grade), wrong, 0.15) for sign in (1, -1)
    )


@pytest.mark.parametrize(("within_stored", "times"), [(True, 2), (False, 1.75)], ids=["stored", "true"])
@pytest.mark.parametrize("seed", range(4))
def test_the_top_of_the_list_holds_many_times_the_errors_that_listing_by_label_finds(seed, within_stored, times):
    labels, wrong = flipped_collection(seed, within_stored)
    ranked = [int(one.label.chunk_id) for one in audit(labels)]
    curve = {top: round(found_in_top(ranked, wrong, top), 3) for top in (0.05, 0.1, 0.15, 0.3)}
    alone = listed_by_label(labels, wrong, seed)
    print("share of the errors by share of the list:", curve, "by label alone at 0.15:", round(alone, 3))
    assert curve[0.15] >= times * alone
