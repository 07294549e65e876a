"""Fusion against another library, where it is installed (requirements-peers.txt)."""

import random

import pytest

from rag_core.retrieve.fuse import fuse

ranx = pytest.importorskip("ranx")
pytestmark = pytest.mark.peers


def test_fusion_equals_ranx_on_500_random_pairs_of_lists():
    dice = random.Random(3)
    pairs = [[dice.sample(range(80), dice.randint(1, 50)) for _ in range(2)] for _ in range(500)]
    runs = [
        ranx.Run(
            {f"q{at}": {f"d{one}": 1 / rank for rank, one in enumerate(pair[side], 1)} for at, pair in enumerate(pairs)}
        )
        for side in range(2)
    ]
    theirs = ranx.fuse(runs, method="rrf", params={"k": 60}).to_dict()
    for at, pair in enumerate(pairs):
        ours = fuse([[f"d{one}" for one in ids] for ids in pair])
        assert {one[0]: one[1] for one in ours} == pytest.approx(theirs[f"q{at}"], abs=1e-12)
        best = sorted(theirs[f"q{at}"].items(), key=lambda row: (-round(row[1], 12), row[0]))
        assert [one[0] for one in sorted(ours, key=lambda one: (-round(one[1], 12), one[0]))] == [
            one for one, _ in best
        ]
