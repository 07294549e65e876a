"""The same run gives the same bytes, whatever the seed of Python's hashes and the number of threads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LISTS = "eval_sets/recorded-combat/lists.jsonl"
COMMANDS = {
    "replay": ("replay", LISTS, "-p", "query-must", "-p", "adaptive-default", "--json"),
    "sweep": ("sweep", LISTS, "--grid", "gap_threshold=0.02:0.3:6,distance_offset=0.1:0.5:5", "--json"),
}


def bytes_of(command, seed, threads):
    environment = {**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
    run = subprocess.run(
        [sys.executable, "-m", "rag_core", *command], cwd=ROOT, env=environment, capture_output=True, check=True
    )
    return json.dumps(without_times(json.loads(run.stdout)))


def without_times(value):
    if isinstance(value, dict):
        return {name: without_times(one) for name, one in value.items() if name != "milliseconds"}
    return [without_times(one) for one in value] if isinstance(value, list) else value


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_three_hash_seeds_and_two_thread_counts_give_the_same_bytes(name):
    found = {bytes_of(COMMANDS[name], seed, threads) for seed in ("0", "1", "4711") for threads in ("1", "2")}
    assert len(found) == 1
