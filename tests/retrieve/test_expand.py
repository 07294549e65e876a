"""Reference expansion: the same as networkx' breadth-first search, cycles harmless, caps hold, nothing twice."""

import random

import networkx
import pytest

from rag_core.errors import InputError
from rag_core.retrieve.expand import expand

CHAIN = {"a": ["b"], "b": ["c"], "c": ["d"], "d": ["e"], "e": ["f"], "f": ["a"]}


def random_case(seed):
    """A directed graph with cycles and self-references, some starts, a depth."""
    source = random.Random(seed)
    size = source.randint(1, 40)
    graph = networkx.gnp_random_graph(size, source.uniform(0, 4 / size), seed=seed, directed=True)
    graph.add_edges_from((node, node) for node in range(size) if source.random() < 0.1)
    refs = {str(node): [str(target) for target in graph.successors(node)] for node in graph}
    starts = [str(node) for node in source.sample(range(size), source.randint(1, min(5, size)))]
    return networkx.relabel_nodes(graph, str), refs, starts, source.choice([0, 1, 3, 5, size])


@pytest.mark.parametrize("block", range(5))
def test_it_equals_breadth_first_search_on_random_graphs(block):
    for seed in range(block * 100, block * 100 + 100):
        graph, refs, starts, depth = random_case(seed)
        found = expand(starts, refs, depth, cap=1000)
        graph.add_edges_from(("start", one) for one in starts)
        lengths = networkx.single_source_shortest_path_length(graph, "start", cutoff=depth + 1)
        wanted = {node: steps - 1 for node, steps in lengths.items() if steps > 1}
        assert {one: steps for one, _, steps in found} == wanted, f"seed {seed}"
        assert len(found) == len(wanted), f"seed {seed}"


@pytest.mark.parametrize("block", range(5))
def test_from_one_start_the_order_is_that_of_breadth_first_search(block):
    for seed in range(block * 100, block * 100 + 100):
        graph, refs, starts, depth = random_case(seed)
        edges = networkx.bfs_edges(graph, starts[0], depth_limit=depth)
        assert [(origin, one) for one, origin, _ in expand(starts[:1], refs, depth, cap=1000)] == list(edges)


def test_it_goes_as_far_as_the_depth():
    assert expand(["a"], CHAIN, 3, cap=50) == [("b", "a", 1), ("c", "b", 2), ("d", "c", 3)]


def test_a_cycle_ends_where_it_closes():
    assert [one for one, _, _ in expand(["a"], CHAIN, 100, cap=50)] == ["b", "c", "d", "e", "f"]
    assert expand(["a"], {"a": ["a"]}, 5, cap=50) == []


def test_the_cap_holds_and_keeps_the_nearest():
    refs = {"a": ["b", "c"], "b": ["d"], "c": ["e"]}
    assert expand(["a"], refs, 2, cap=3) == [("b", "a", 1), ("c", "a", 1), ("d", "b", 2)]
    assert expand(["a"], refs, 2, cap=0) == []


def test_a_chunk_reached_from_two_starts_is_brought_by_the_first():
    assert expand(["x", "y"], {"x": ["z"], "y": ["z"]}, 1, cap=50) == [("z", "x", 1)]


def test_a_start_is_never_brought_by_another():
    assert expand(["x", "y", "x"], {"x": ["y"], "y": ["x"]}, 3, cap=50) == []


@pytest.mark.parametrize(("depth", "cap"), [(-1, 50), (1, -1)])
def test_negative_bounds_are_refused(depth, cap):
    with pytest.raises(InputError, match="at least 0"):
        expand(["a"], CHAIN, depth, cap)
