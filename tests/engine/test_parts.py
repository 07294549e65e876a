"""Parts: cut without gaps, kept until all are there, done once; the plain engine is the twin of the cluster."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.engine.cluster import opened, scheduler_address
from rag_core.engine.jobs import FOLDER, WorkPlace, in_parts, pieces
from rag_core.engine.work import asked
from rag_core.errors import InputError, StoreError, SurroundingsError
from rag_core.eval_sets.reading import files_state, load_set
from rag_core.files import write_whole
from rag_core.tune.grid import parse_grid
from rag_core.tune.plane import cut_along


@given(st.integers(0, 500), st.integers(1, 40), st.integers(1, 5))
def test_pieces_hold_everything_once_and_are_large_enough(count, threads, least):
    cut = pieces(count, threads, least)
    assert all(stop - start <= 7 for start, stop in pieces(count, threads, most=7))
    assert [number for start, stop in cut for number in range(start, stop)] == list(range(count))
    assert all(stop - start >= min(least, count) for start, stop in cut)


def doubled(text):
    return json.dumps(json.loads(text) * 2)


class Here:
    """The plain twin: this process, one part after the other."""

    threads = 1

    def each(self, work, parts):
        return ((number, work(part)) for number, part in enumerate(parts))


class Failing(Here):
    """An engine that is gone after some parts."""

    def __init__(self, parts):
        self.parts, self.done = parts, []

    def each(self, work, parts):
        for number, part in enumerate(parts):
            if len(self.done) == self.parts:
                raise SurroundingsError("gone")
            self.done.append(part)
            yield number, work(part)


def test_what_was_done_before_the_engine_was_gone_is_not_done_again(tmp_path):
    parts = [str(number) for number in range(10)]
    first, second = Failing(4), Failing(99)
    with pytest.raises(SurroundingsError):
        list(in_parts(first, doubled, parts, tmp_path))
    assert list(in_parts(second, doubled, parts, tmp_path)) == [str(number * 2) for number in range(10)]
    assert first.done + second.done == parts
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_other_parts_are_other_work(tmp_path):
    with pytest.raises(SurroundingsError):
        list(in_parts(Failing(1), doubled, ["1", "2"], tmp_path))
    assert list(in_parts(Here(), doubled, ["1", "3"], tmp_path)) == ["2", "6"]


@pytest.mark.parametrize("recorded", [True, False])
def test_a_worker_reads_the_queries_of_its_part_and_refuses_files_that_are_others(tmp_path, recorded):
    file = tmp_path / "set" / ("lists.jsonl" if recorded else "queries.jsonl")
    more = {"candidates": [{"id": "a", "distance": 0.5, "relevant": 1}]} if recorded else {}

    def written(words):
        write_whole(file.with_name("meta.yaml"), "version: 1\nname: set\n")
        rows = [json.dumps({"id": f"q{n}", "query": f"{words} {n}"} | more) for n in range(5)]
        write_whole(file, "\n\n".join(rows))
        cases = load_set(str(file.parent)).cases
        places = {case.query.id: place for place, case in enumerate(cases)}
        state = files_state(file.parent)
        return WorkPlace(tmp_path, str(file.parent), "set", state=state, places=places), cases

    place, cases = written("a question")
    part = json.loads(place.part([cases[3], cases[1]]))
    assert asked(part) == [cases[3], cases[1]]
    later, others = written("another")
    assert asked(json.loads(later.part(others))) == list(others) != list(cases)
    with pytest.raises(StoreError, match="is not the one here"):
        asked(part)


def test_a_grid_is_cut_along_its_longest_axis_but_never_where_values_belong_together():
    grid = "gap_threshold=0.01:0.3:60,distance_offset=0.1:0.5:5,min_results=1:40:40,TopK.k=1:9:9"
    assert cut_along(parse_grid(grid, "AdaptiveGap")) == 3
    assert cut_along(parse_grid("gap_threshold=0.01:0.3:60", "AdaptiveGap")) is None


@pytest.mark.parametrize(
    ("address", "place"), [("dask://10.0.0.7:8786", "tcp://10.0.0.7:8786"), ("dask://[::1]:8786", "tcp://[::1]:8786")]
)
def test_an_address_is_written_as_dask_does(address, place):
    assert scheduler_address(address) == place


@pytest.mark.parametrize("address", ["tcp://h:1", "dask://h", "dask://:1", "dask://h:x", "dask://u:p@h:1", "h:1", ""])
def test_another_address_is_refused(address):
    with pytest.raises(InputError, match="expected dask://host:port"):
        scheduler_address(address)


def test_a_scheduler_that_is_away_is_one_sentence(monkeypatch):
    monkeypatch.setattr("rag_core.engine.cluster.SECONDS", 0.5)
    with pytest.raises(SurroundingsError, match="cannot be reached"), opened("dask://127.0.0.1:9"):
        pass
