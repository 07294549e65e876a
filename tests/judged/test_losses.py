"""Where relevant chunks are lost: by floor, oversample, model and cap, counted apart; and the floor that is proposed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.errors import InputError
from rag_core.judged.entrants import Bench, answer_simulated, entrants_of, simulated_judge, stages_of
from rag_core.judged.floor import propose_floor
from rag_core.judged.trials import compare
from rag_core.types import Candidates, Case, Chunk, Hit, Metric, Query


def bench_of(lists):
    """A bench of (similarity, grade) lists, the nearest first."""
    cases = []
    for number, rows in enumerate(lists):
        query, hits, grades = Query(f"q{number}", f"{number}?"), [], {}  # equal prompts are asked once
        for rank, (similarity, grade) in enumerate(sorted(rows, reverse=True), 1):
            chunk = Chunk(f"q{number}c{rank}", "", f"text {rank}")
            hits.append(Hit(chunk, rank, {"distance": 1 - similarity}))
            grades[chunk.id] = grade
        cases.append(Case(query, grades, Candidates(query, tuple(hits), metric=Metric.COSINE, recorded=True)))
    chunks = {hit.chunk.id: hit.chunk for case in cases for hit in case.candidates.hits}
    return Bench("made", tuple(cases), chunks, 1)


rows = st.lists(st.tuples(st.floats(-0.2, 1).map(lambda x: round(x, 3)), st.integers(0, 2)), min_size=1, max_size=25)


@given(
    lists=st.lists(rows, min_size=1, max_size=4),
    floor=st.floats(0, 0.8).map(lambda x: round(x, 2)),
    most=st.integers(1, 8),
    rate=st.sampled_from([0.0, 0.3]),
)
def test_every_relevant_chunk_of_a_list_is_kept_or_lost_to_exactly_one_step(lists, floor, most, rate):
    bench = bench_of(lists)
    settled = {"min_relevance_threshold": floor, "max_chunks": most, "oversample_multiplier": 1.5, "timeout_ms": 60_000}
    rivals = entrants_of(stages_of(["terse"], settled), [simulated_judge(bench, rate)])
    answer_simulated(bench, rivals)
    trial = compare(bench, rivals)
    (row,), (rival,) = trial.variants, rivals
    relevant = row["relevant"]
    labelled = [(case, name) for case in bench.cases for name, grade in case.grades.items() if grade]
    assert relevant["listed"] == len(labelled)
    replay, kept = rival.replay(bench), 0
    for case in bench.cases:
        staying = {hit.chunk.id for hit in replay(case.candidates).hits}
        kept += sum(name in staying for other, name in labelled if other is case)
    assert relevant["kept"] == kept
    assert relevant["listed"] == kept + sum(relevant["lost"].values())
    if rate == 0:  # a judge that never errs loses nothing itself: the report names whatever is missing
        assert relevant["lost"]["model"] == 0
        assert relevant["lost"]["failure"] == 0
    assert bool(trial.warnings) == (relevant["lost"]["floor"] > relevant["lost"]["model"])


@given(lists=st.lists(rows, min_size=1, max_size=6))
def test_the_proposed_floor_keeps_what_it_says_and_a_higher_one_would_not(lists):
    bench = bench_of(lists)
    (stage,) = stages_of(["terse"], {})
    values = sorted(
        1 - hit.scores["distance"]
        for case in bench.cases
        for hit in case.candidates.hits
        if case.grades[hit.chunk.id] >= 1
    )
    if not values:
        with pytest.raises(InputError, match="no relevant chunk"):
            propose_floor(bench, stage)
        return
    found = propose_floor(bench, stage)
    assert found.relevant == len(values)
    assert found.proposed.relevant_kept >= 0.98
    reach = sum(value >= found.proposed.floor - 1e-9 for value in values)
    assert found.proposed.relevant_lost == len(values) - reach
    higher = sum(value >= found.proposed.floor + 0.002 for value in values)
    assert higher / len(values) < 0.98
