"""References followed breadth first, against networkx."""

import random

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.filters.llm.reach import Layered, reach
from rag_core.types import Chunk


def chunks_of(edges):
    return {name: Chunk(name, ref_ids=tuple(names)) for name, names in edges.items()}


def test_direct_references_come_first_in_their_order():
    chunks = chunks_of({"a": ["c", "b"], "b": ["d"], "c": ["e"], "d": [], "e": []})
    found, missing = reach([chunks["a"]], 3, 50, chunks)
    assert [(one.chunk.id, one.steps) for one in found] == [("c", 1), ("b", 1), ("e", 2), ("d", 2)]
    assert missing == 0


def test_a_cycle_ends_and_never_brings_the_start():
    chunks = chunks_of({"a": ["b", "a"], "b": ["c"], "c": ["a", "b"]})
    assert [one.chunk.id for one in reach([chunks["a"]], 5, 50, chunks)[0]] == ["b", "c"]


def test_depth_and_cap_hold():
    chunks = chunks_of({str(at): [str(at + 1)] for at in range(20)} | {"20": []})
    assert [one.chunk.id for one in reach([chunks["0"]], 3, 50, chunks)[0]] == ["1", "2", "3"]
    assert [one.chunk.id for one in reach([chunks["0"]], 5, 2, chunks)[0]] == ["1", "2"]
    assert reach([chunks["0"]], 5, 0, chunks)[0] == []


def test_references_to_nothing_are_counted_once_each():
    found, missing = reach([Chunk("a", ref_ids=("x", "y", "x"))], 1, 50, {})
    assert (found, missing) == ([], 2)


def test_the_first_look_up_wins():
    near, far = Chunk("b", "near"), Chunk("b", "far")
    assert Layered({"b": near}, {"b": far}).get("b") is near
    assert Layered({}, {"b": far}).get("b") is far
    assert Layered({}, None).get("b") is None


@given(st.randoms(use_true_random=True))
def test_random_graphs_with_cycles_are_walked_as_networkx_does(dice):
    size = dice.randrange(2, 40)
    names = [str(at) for at in range(size)]
    edges = {name: dice.choices(names, k=dice.randrange(0, 5)) for name in names}
    depth = dice.choice((1, 3, 5))
    graph = networkx.DiGraph([(name, other) for name, others in edges.items() for other in others])
    graph.add_nodes_from(names)
    expected = networkx.single_source_shortest_path_length(graph, "0", cutoff=depth)
    chunks = chunks_of(edges)
    found, _ = reach([chunks["0"]], depth, 1000, chunks)
    assert {one.chunk.id: one.steps for one in found} == {
        name: steps for name, steps in expected.items() if name != "0"
    }
    assert [one.steps for one in found] == sorted(one.steps for one in found)
    cap = dice.randrange(0, 10)
    assert reach([chunks["0"]], depth, cap, chunks)[0] == found[:cap]


def test_from_one_start_the_order_is_that_of_networkx():
    for seed in range(100):
        graph, chunks, starts, depth = random_graph(seed)
        found, _ = reach([chunks[starts[0]]], depth, 1000, chunks)
        edges = networkx.bfs_edges(graph, starts[0], depth_limit=depth)
        assert [one.chunk.id for one in found] == [name for _, name in edges]


@pytest.mark.parametrize("block", range(5))
def test_from_several_starts_each_chunk_comes_once_and_from_the_nearest(block):
    for seed in range(block * 100, block * 100 + 100):
        graph, chunks, starts, depth = random_graph(seed)
        found, _ = reach([chunks[name] for name in starts], depth, 1000, chunks)
        graph.add_edges_from(("start", name) for name in starts)
        lengths = networkx.single_source_shortest_path_length(graph, "start", cutoff=depth + 1)
        assert {one.chunk.id: one.steps for one in found} == {
            name: steps - 1 for name, steps in lengths.items() if steps > 1
        }
        assert len({one.chunk.id for one in found}) == len(found)
        graph.remove_node("start")
        for one in found:
            assert networkx.shortest_path_length(graph, one.start, one.chunk.id) == one.steps


def random_graph(seed):
    """A directed graph with cycles and self-references as chunks, some starts, a depth."""
    dice = random.Random(seed)
    size = dice.randint(1, 40)
    graph = networkx.gnp_random_graph(size, dice.uniform(0, 4 / size), seed=seed, directed=True)
    graph.add_edges_from((node, node) for node in range(size) if dice.random() < 0.1)
    graph = networkx.relabel_nodes(graph, str)
    chunks = chunks_of({node: list(graph.successors(node)) for node in graph})
    return graph, chunks, dice.sample(list(graph), dice.randint(1, min(5, size))), dice.choice([0, 1, 3, 5, size])


def test_of_equally_near_starts_the_first_brings_a_chunk():
    chunks = chunks_of({"x": ["z"], "y": ["z"], "z": []})
    found, _ = reach([chunks["x"], chunks["y"]], 1, 50, chunks)
    assert [(one.chunk.id, one.start) for one in found] == [("z", "x")]
