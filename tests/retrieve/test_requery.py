"""Requery: rounds and their end, conservation, and that both strategies give the same list."""

from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_core.errors import SpecError
from rag_core.filters.query_must import QueryMust
from rag_core.retrieve.requery import Requery
from rag_core.stage import counterfactuals
from rag_core.types import Candidates, Chunk, Hit, Query

YES, NO = {"contain": "cleric"}, {"contain": "druid"}


@dataclass
class ListReader:
    """A reader over a list, counting what it is asked; its exclude mode looks for unseen ids as a store would."""

    hits: tuple
    fingerprint: str = "list"
    asked: list = field(default_factory=list)

    def read(self, start, stop):
        self.asked.append((start, stop))
        return self.hits[start:stop]

    def read_excluding(self, ids, count):
        self.asked.append(count)
        excluded = set(ids)
        return tuple([hit for hit in self.hits if hit.chunk.id not in excluded][:count])


def hits_of(passes, ids=None):
    return tuple(
        Hit(Chunk(ids[rank - 1] if ids else f"c{rank}", query_must=YES if ok else NO), rank, {"distance": rank / 100})
        for rank, ok in enumerate(passes, 1)
    )


def recorded(passes):
    return Candidates(Query("q", "a cleric"), hits_of(passes), recorded=True)


def live(passes, in_hand):
    ranking = hits_of(passes)
    return Candidates(Query("q", "a cleric"), ranking[:in_hand], reader=ListReader(ranking))


def ranks(candidates):
    return [hit.rank for hit in candidates.hits]


def facts(after):
    return after.steps[-1].facts


def test_one_round_where_no_noisy_family_is_near():
    after = Requery(k=3)(live([True] * 10, 3))
    assert ranks(after) == [1, 2, 3]
    assert (facts(after)["rounds"], facts(after)["store_queries"]) == (1, 0)
    assert facts(after)["stop"] == "k 3 found"


@pytest.mark.parametrize("strategy", ["deepen", "exclude"])
def test_two_rounds_with_some_noise_bring_k_chunks_in_distance_order(strategy):
    after = Requery(k=4, strategy=strategy)(live([True, False, True, False] * 5, 4))
    assert ranks(after) == [1, 3, 5, 7]
    assert [hit.chunk.id for hit in after.hits] == ["c1", "c3", "c5", "c7"]
    assert (facts(after)["rounds"], facts(after)["store_queries"]) == (2, 1)


def test_three_rounds_at_the_limit_see_at_most_k_times_max_iterations_candidates():
    after = Requery(k=4, max_iterations=3)(live([False] * 100, 4))
    assert ranks(after) == []
    assert facts(after)["read"] == 12
    assert facts(after)["stop"] == "max_iterations 3 reached"


def test_a_crowded_out_entry_is_in_the_refilled_list():
    crowd = [False] * 15 + [True]
    assert ranks(Requery()(live(crowd, 15))) == [16]


def test_a_full_round_that_drops_nothing_is_the_last():
    after = Requery(k=3, max_iterations=5)(live([False, True, True, True, True, True, False], 3))
    assert facts(after)["stop"] == "k 3 found"
    assert facts(after)["rounds"] == 2


def test_the_rounds_end_where_the_list_ends():
    after = Requery(k=4)(live([True, False, True], 3))
    assert ranks(after) == [1, 3]
    assert facts(after)["stop"] == "the list ended"


def test_a_recorded_list_is_walked_and_its_reader_not_asked():
    before = recorded([True, False, True, True, True])
    reader = ListReader(hits_of([True] * 50))
    after = Requery(k=2)(Candidates(before.query, before.hits, recorded=True, reader=reader))
    assert ranks(after) == [1, 3]
    assert reader.asked == []
    assert facts(after)["store_queries"] == 0
    assert facts(after)["milliseconds"] == 0


def test_what_was_never_read_ends_as_a_drop_not_read():
    after = Requery(k=2)(recorded([True, True, True, False]))
    assert [(drop.hit.rank, drop.reason.text) for drop in after.drops] == [(3, "not read"), (4, "not read")]


def test_a_survivor_beyond_k_says_its_position():
    after = Requery(k=2)(recorded([True, False, True, True]))
    assert ranks(after) == [1, 3]
    assert [(d.hit.rank, d.reason.text) for d in after.drops if d.hit.rank == 4] == [
        (4, "position 3 of those that pass > k 2")
    ]


def test_a_drop_by_rule_names_the_words_it_lacked():
    (drop,) = Requery(k=2)(recorded([True, False])).drops
    assert (drop.stage, drop.reason.text) == ("Requery", "no word of: druid")


def test_wrong_in_the_original_survivors_do_not_come_back_and_are_not_counted_twice():
    after = Requery(k=4, strategy="exclude")(live([True, False, True, False] * 5, 4))
    assert max(Counter(hit.chunk.id for hit in after.hits).values()) == 1
    assert facts(after)["read"] == 8


def test_wrong_in_the_original_where_ids_are_not_excluded_nothing_is_read_twice_and_the_walk_ends():
    class Deaf(ListReader):
        def read_excluding(self, ids, count):
            return self.hits[:count]

    before = live([False] * 30, 5)
    after = Requery(k=5, strategy="exclude")(Candidates(before.query, before.hits, reader=Deaf(before.reader.hits)))
    assert facts(after)["stop"] == "the list ended"
    assert len(after.drops) == 5


def test_wrong_in_the_original_refill_brings_k_chunks_and_not_two_or_three():
    assert len(Requery()(live([True, False] * 40, 15)).hits) == 15


def test_what_an_earlier_stage_dropped_does_not_come_back():
    from rag_core.types import Drop, Reason

    before = live([True, False, True, True, True, True], 3)
    dropped = Drop(before.hits[0], "Other", Reason("gone"))
    after = Requery(k=3)(Candidates(before.query, before.hits[1:], (dropped,), reader=before.reader))
    assert ranks(after) == [3, 4, 5]


def test_a_chunk_that_comes_twice_is_kept_once_and_accounted_for_twice():
    hits = (*hits_of([True]), Hit(Chunk("c1", query_must=YES), 2, {"distance": 0.5}, origin="hop 2"))
    after = Requery()(Candidates(Query("q", "a cleric"), hits, recorded=True))
    assert ranks(after) == [1]
    assert [drop.hit.key for drop in after.drops] == [("c1", "hop 2")]


def test_counterfactuals_of_unread_chunks_name_k_and_max_iterations():
    found = counterfactuals(Requery(k=2, max_iterations=1), recorded([True, False, True, False, True]))
    k, iterations = found[("c3", "")]
    assert (k.parameter, k.value) == ("k", 3)
    assert (iterations.parameter, iterations.value) == ("max_iterations", 2)
    k, iterations = found[("c5", "")]
    assert (k.value, iterations.value) == (5, None)
    assert found[("c2", "")][0].parameter == "query"


def test_the_settings_of_query_must_may_come_as_a_mapping():
    assert Requery(rules={"mode": "substring"}) == Requery(rules=QueryMust("substring"))
    with pytest.raises(SpecError, match=r"unknown setting 'modes' of Requery.rules, expected mode"):
        Requery(rules={"modes": "token"})
    with pytest.raises(SpecError, match="expected a mapping of QueryMust's settings"):
        Requery(rules="token")
    with pytest.raises(SpecError, match=r"Requery.k is 0, expected 1 to 1000"):
        Requery(k=0)


def test_an_unreadable_rule_passes_with_a_notice():
    hit = Hit(Chunk("c1", query_must="{"), 1, {"distance": 0.1})
    after = Requery()(Candidates(Query("q", "x"), (hit,), recorded=True))
    assert len(after.hits) == 1
    assert [notice.chunk_id for notice in after.notices] == ["c1"]


PASSES = st.lists(st.booleans(), max_size=60)
STAGES = st.builds(
    Requery, k=st.integers(1, 8), max_iterations=st.integers(1, 5), strategy=st.sampled_from(["deepen", "exclude"])
)


@given(PASSES, STAGES, st.integers(0, 60), st.booleans())
def test_conservation_every_chunk_in_hand_is_a_hit_or_a_drop_exactly_once(passes, stage, in_hand, is_recorded):
    before = recorded(passes) if is_recorded else live(passes, in_hand)
    after = stage(before)
    counts = Counter(hit.key for hit in (*after.hits, *(drop.hit for drop in after.drops)))
    assert all(counts[hit.key] == 1 for hit in before.hits)
    assert set(counts.values()) <= {1}


@given(PASSES, st.integers(1, 8), st.integers(1, 5), st.integers(0, 60))
def test_deepen_and_exclude_return_the_same_list(passes, k, max_iterations, in_hand):
    deepen, exclude = (
        Requery(k, max_iterations, strategy)(live(passes, in_hand)) for strategy in ("deepen", "exclude")
    )
    assert deepen.hits == exclude.hits
    assert deepen.drops == exclude.drops
    assert facts(deepen)["rounds"] == facts(exclude)["rounds"]


def plain_rounds(passes, k, max_iterations):
    """The rule of the rounds, written down once more: the 1-based ranks that are kept, and the rounds."""
    kept, rounds, at = [], 0, 0
    while rounds < max_iterations and at < len(passes):
        batch = list(enumerate(passes[at : at + k], at + 1))
        at, rounds = at + len(batch), rounds + 1
        kept += [rank for rank, ok in batch if ok]
        if len(kept) >= k or all(ok for _, ok in batch):
            break
    return kept[:k], rounds


@settings(deadline=None)
@given(PASSES, STAGES, st.integers(0, 60))
def test_the_rounds_equal_their_plain_rule(passes, stage, in_hand):
    kept, rounds = plain_rounds(passes, stage.k, stage.max_iterations)
    for candidates in (live(passes, in_hand), recorded(passes)):
        after = stage(candidates)
        assert ranks(after) == kept
        assert facts(after)["rounds"] == rounds


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(1, 5), st.integers(1, 3), st.booleans())
def test_a_counterfactual_is_the_first_value_that_keeps_the_chunk(passes, k, max_iterations, prefilter):
    stage, before = Requery(k, max_iterations, "prefilter" if prefilter else "deepen"), recorded(passes)
    tried = {"k": range(k + 1, len(passes) + 1), "max_iterations": range(max_iterations + 1, 101)}
    kept = {
        (name, value): {hit.key for hit in replace(stage, **{name: value})(before).hits}
        for name, values in tried.items()
        for value in values
    }
    for key, found in counterfactuals(stage, before).items():
        for one in found:
            if one.parameter in tried:
                assert one.value == next((n for n in tried[one.parameter] if key in kept[one.parameter, n]), None)


@dataclass
class AdmittingReader(ListReader):
    """A reader that knows which of its chunks a query admits."""

    def read_admitted(self, query, mode, without, count, plurals=True):
        self.asked.append(("admitted", query, mode, count))
        passing = [hit for hit in self.hits if hit.chunk.query_must == YES and hit.chunk.id not in set(without)]
        return tuple(passing[:count])


def prefiltered(passes, in_hand, k, reader=AdmittingReader):
    ranking = hits_of(passes)
    before = Candidates(Query("q", "a cleric"), ranking[:in_hand], reader=reader(ranking))
    return before.reader, Requery(k=k, max_iterations=1, strategy="prefilter")(before)


def test_prefilter_asks_once_for_what_the_hits_in_hand_leave_open():
    reader, after = prefiltered([True, False, False, False, True, False, True, True], 3, 3)
    assert ranks(after) == [1, 5, 7]
    assert reader.asked == [("admitted", "a cleric", "token", 2)]
    assert facts(after)["stop"] == "k 3 found"


def test_prefilter_asks_nothing_where_the_hits_in_hand_are_enough():
    reader, after = prefiltered([True, False, True, True, True], 5, 2)
    assert ranks(after) == [1, 3]
    assert reader.asked == []
    assert [(drop.hit.rank, drop.reason.text) for drop in after.drops] == [
        (2, "no word of: druid"),
        (4, "position 3 of those that pass > k 2"),
        (5, "not read"),
    ]


def test_prefilter_walks_a_reader_that_does_not_know_rules_to_the_end_of_its_list():
    _, after = prefiltered([False] * 90 + [True, True], 5, 2, ListReader)
    assert ranks(after) == [91, 92]
    assert facts(after)["store_queries"] == 45 - 1


def test_prefilter_on_a_recorded_list_walks_all_of_it():
    after = Requery(k=2, max_iterations=1, strategy="prefilter")(recorded([False] * 9 + [True]))
    assert ranks(after) == [10]
    assert facts(after)["stop"] == "the list ended"


def test_counterfactuals_of_prefilter_name_k_alone():
    found = counterfactuals(Requery(k=1, strategy="prefilter"), recorded([True, False, True]))
    ((k),) = found[("c3", "")]
    assert (k.parameter, k.value) == ("k", 2)


@given(PASSES, st.integers(1, 8), st.integers(0, 60), st.booleans())
def test_prefilter_returns_the_list_of_deepen_with_rounds_enough(passes, k, in_hand, knows_rules):
    _, after = prefiltered(passes, in_hand, k, AdmittingReader if knows_rules else ListReader)
    deepen = Requery(k, 100)(live(passes, in_hand))
    assert after.hits == deepen.hits
    counts = Counter(hit.key for hit in (*after.hits, *(drop.hit for drop in after.drops)))
    assert set(counts.values()) <= {1}
    assert set(counts) >= {(f"c{rank}", "") for rank in range(1, min(in_hand, len(passes)) + 1)}
