"""The queue on the server: a window of a long pool, order, coverage, what is done and what comes back."""

import gc
import os
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.labels.leases import AHEAD, SECONDS, Leases
from pages.labels.pairs import BLIND, LEAST, WINDOW, PairPool, make_queue, pair_id
from pages.labels.queue.intake import Entry
from rag_core.filters.cutoff import TopK
from rag_core.labelling.pooling import Pair, pool
from rag_core.measure.experiment import run_all
from rag_core.stage import Pipeline
from rag_core.store.events import SEEING, Event, undo_of
from rag_core.store.keys import chunk_key, text_hash
from rag_core.types import Candidates, Case, Chunk, Hit, Query


def many(count, size=10):
    query = Query("q", "question")
    return [Pair(query, Chunk(f"c{i}", text=f"text {i} ".ljust(size, "x")), places={"a": 1}) for i in range(count)]


def queue(pairs, grades=None, mine=(), unjudged_only=True, **more):
    return make_queue(PairPool.of("s", pairs), "ann", grades or {}, mine, unjudged_only, **more)


def said(pair, seq=0, grade=2):
    event = Event(
        session="t", seq=seq, eval_set="s", query_id=pair.query.id, chunk_id=pair.chunk.id, annotator="ann",
        grade=grade, text_hash=text_hash(pair.chunk.text),
    )  # fmt: skip
    return Entry(pair_id("s", pair), (event,))


def ids(one_queue, later=()):
    return [item.chunk_id for item in one_queue.window(later)]


def test_the_browser_gets_a_window_however_long_the_queue():
    assert len(queue(many(50_000)).window()) == WINDOW
    assert len(queue(many(200, size=200_000)).window()) == LEAST


def test_a_window_of_fifty_thousand_pairs_takes_no_memory_that_grows():
    one = queue(many(50_000))
    one.window()
    tracemalloc.start()
    for seq, pair in enumerate(list(one.pairs.values())[:2000]):
        one.take([said(pair, seq)])
        if seq % 50 == 0:
            one.window()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000
    assert ids(one)[0] == "c2000"


def resident():
    """Resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="resident memory is read from /proc")
def test_a_pool_of_fifty_thousand_pairs_is_labelled_to_its_end_in_constant_memory():
    """What grows is a mark per label: measured 4 MB over all 50,000; the pool itself took 17 MB, the queue 7 MB."""
    reports = run_all([case_of(number) for number in range(500)], [Pipeline(label="a"), Pipeline((TopK(50),))], 1, ())
    one = queue(pool(reports, 100))
    gc.collect()
    before, sent, seq = resident(), 0, 0
    while items := one.window():
        sent = max(sent, len(items))
        one.take([entry_of(item, seq + at) for at, item in enumerate(items)])
        seq += len(items)
    assert seq == 50_000
    assert sent <= WINDOW
    assert resident() - before < 25


def case_of(number):
    query = Query(f"q{number}", f"question {number}")
    chunks = [Chunk(f"q{number} c{i}", f"Title {i}", f"Text {number} {i}. " + "word " * 80) for i in range(100)]
    hits = tuple(Hit(chunk, i, {"distance": 0.2 + i / 1000}) for i, chunk in enumerate(chunks, 1))
    return Case(query, {}, Candidates(query, hits))


def entry_of(item, seq):
    event = Event(
        session="t", seq=seq, eval_set="s", query_id=item.query_id, chunk_id=item.chunk_id, annotator="ann", grade=1,
        text_hash=item.text_hash,
    )  # fmt: skip
    return Entry(item.id, (event,))


def test_what_is_asked_for_comes_first_and_is_labelled_again():
    pairs = many(3)
    one = queue(pairs[:2], {"q": {"c1": 1}})
    assert ids(one) == ["c0"]
    one.bring([pairs[1], pairs[2]], "the audit doubts it")
    assert ids(one) == ["c1", "c2", "c0"]
    assert [item.why for item in one.window()][:2] == ["the audit doubts it"] * 2
    one.take([said(pairs[1])])
    assert ids(one) == ["c2", "c0"]


def test_what_is_labelled_leaves_and_what_is_taken_back_returns():
    pairs = many(3)
    one = queue(pairs)
    one.take([said(pairs[0])])
    assert ids(one) == ["c1", "c2"]
    first = said(pairs[0])
    one.take([Entry(first.pair, (undo_of(first.event, "t", 1),))])
    assert ids(one) == ["c0", "c1", "c2"]


def test_what_was_put_off_comes_last():
    pairs = many(3)
    assert ids(queue(pairs), [pair_id("s", pairs[0])]) == ["c1", "c2", "c0"]


def test_another_persons_entry_changes_nothing():
    pairs = many(2)
    one = queue(pairs)
    stranger = said(pairs[0])
    one.take([Entry(stranger.pair, (Event(**{**vars_of(stranger.event), "annotator": "bob"}),))])
    assert ids(one) == ["c0", "c1"]


def vars_of(event):
    return {name: getattr(event, name) for name in event.__slots__}


def test_judged_by_anybody_or_only_by_me():
    pairs = many(3)
    grades = {"q": {"c0": 1}}
    mine = {("q", chunk_key("c1", text_hash(pairs[1].chunk.text)))}
    assert ids(queue(pairs, grades, mine)) == ["c2"]
    assert ids(queue(pairs, grades, mine, unjudged_only=False)) == ["c0", "c2"]
    assert queue(pairs, grades, mine).coverage(15) == ("labelled of the first 15: a 67%",)


def test_nothing_in_an_item_tells_where_it_came_from_unless_asked():
    query = Query("q", "question")
    pair = Pair(query, Chunk("c", text="t"), places={"secret-pipeline": 4}, distance=0.123)
    blind = queue([pair]).window()[0]
    assert "secret" not in repr(blind)
    assert "0.123" not in repr(blind)
    assert queue([pair], show_origin=True).window()[0].origin == "distance 0.1230 · kept by secret-pipeline at 4"


def test_what_decides_comes_first_and_settled_is_said():
    query = Query("q", "question")
    hits = tuple(Hit(Chunk(f"c{i}", text=f"t{i}"), i, {"distance": i / 10}) for i in range(1, 5))
    case = Case(query, {}, Candidates(query, hits, recorded=True))
    reports = run_all([case], [Pipeline((TopK(k=k),), label=f"top{k}") for k in (3, 4)])
    one = queue(pool(reports), rivals=tuple(reports))
    assert ids(one)[0] == "c4"
    assert one.settled().startswith("Open: mean F₁ of top3 minus top4")
    assert "can change which" in one.window()[0].why
    one.take([said(pair, seq, 2) for seq, pair in enumerate(one.pairs.values())])
    one.rank()
    assert one.settled().startswith("Settled: top4 has the higher")


def test_settled_holds_for_a_chunk_that_was_brought_from_outside_of_the_pool():
    """Both keep one relevant chunk, the second an irrelevant one beside it; anything open elsewhere costs both."""
    query = Query("q", "question")
    hits = tuple(Hit(Chunk(f"c{i}", text=f"t{i}"), i, {"distance": i / 10}) for i in (1, 2))
    case = Case(query, {"c1": 0, "c2": 0}, Candidates(query, hits, recorded=True))
    reports = run_all([case], [Pipeline((TopK(k=k),), label=f"top{k}") for k in (1, 2)])
    one = queue(pool(reports), rivals=tuple(reports), grades={"q": {"c1": 1, "c2": 0}})
    assert one.comparison.bounds == pytest.approx((1 / 3, 1 / 3))  # 2·1/(1+1) − 2·1/(2+1)
    one.bring([Pair(query, Chunk("far", text="far"), places={})], "asked for")
    one.rank()
    assert one.comparison.bounds == pytest.approx((2 / 3 - 2 / 4, 1 / 3))  # relevant: 2·1/(1+2) − 2·1/(2+2)


def label(one_queue, seq):
    """What the browser does with the first pair of its window."""
    pair = next(iter(one_queue.window()))
    entry = Entry(pair.id, (replace(said(one_queue.pairs[pair.id], seq).event, annotator=one_queue.annotator),))
    one_queue.take([entry])
    return pair.id


def several(pairs, people, **more):
    """Queues of these people in a session each, over one pool and one register."""
    leases, pool = Leases(), PairPool.of("s", pairs)
    return [
        make_queue(pool, who, {}, (), leases=leases, holder=str(number), **more) for number, who in enumerate(people)
    ]


@given(st.lists(st.integers(0, 2), min_size=60, max_size=60))
def test_nobody_is_asked_what_another_session_is_asked_or_has_labelled(turns):
    """Two people, one of them in two tabs; each browser knows its own last window alone."""
    queues = several(many(60), ["ann", "ann", "bob"], unjudged_only=True)
    ahead = [[item.id for item in one.window()][:AHEAD] for one in queues]
    labelled = []
    for seq, turn in enumerate(turns):
        labelled.append(label(queues[turn], seq))
        ahead[turn] = [item.id for item in queues[turn].window()][:AHEAD]
        if len(labelled) + len(queues) * AHEAD <= 60:
            shown = [name for one in ahead for name in one]
            assert len(set(shown)) == len(shown)
    assert len(set(labelled)) == 60


def test_a_second_opinion_is_asked_of_another_person_and_of_no_other_tab_of_the_first():
    first, tab, other = several(many(3), ["ann", "ann", "bob"], unjudged_only=False)
    done = {label(first, seq) for seq in range(3)}
    assert [item.id for item in tab.window()] == []
    assert {item.id for item in other.window()} == done


def test_pairs_of_a_silent_session_are_asked_of_others_in_time_and_wanted_ones_at_once(monkeypatch):
    silent, other = several(many(AHEAD + 2), ["ann", "bob"], unjudged_only=True)
    held = [item.id for item in silent.window()][:AHEAD]
    assert [item.id for item in other.window()][-AHEAD:] == held  # last, but not never
    other.bring([other.pairs[held[3]]], "wanted")
    assert other.window()[0].id == held[3]
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + SECONDS + 1)
    assert [item.id for item in other.window()][1:4] == held[:3]


def proposing(pairs, grade=3, **more):
    said = {(pair.query.id, chunk_key(pair.chunk.id, text_hash(pair.chunk.text))): grade for pair in pairs}
    return queue(pairs, proposals=said, proposer="model:small", **more)


def test_a_model_proposes_for_all_but_a_blind_share_that_is_the_same_for_everybody():
    pairs = many(1000)
    shown = {item.chunk_id for one in (proposing(pairs),) for item in map(one.item, one.order) if item.proposed == 3}
    assert pytest.approx(len(shown) / 1000, abs=0.05) == 1 - 1 / BLIND
    again = proposing(list(reversed(pairs)), seed=5)
    assert {item.chunk_id for item in map(again.item, again.order) if item.proposed is not None} == shown
    assert all(item.proposed is None for item in queue(pairs).window())


def test_a_proposal_counts_for_nothing_until_somebody_says_so_and_then_it_is_marked():
    pairs = many(40)
    one = proposing(pairs)
    assert (one.judged, one.done, one.grades) == (set(), set(), {})
    for entry in one.drawn([said(pair, seq) for seq, pair in enumerate(pairs)]):
        (event,) = entry.events
        shown = one.item(entry.pair).proposed is not None
        assert event.is_led == shown
        assert event.sampler == f"{SEEING}model:small" if shown else event.inclusion_p is not None
