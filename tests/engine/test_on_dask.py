"""On two workers everything is what one machine gives, to the last byte; also when one is killed in the middle."""

import hashlib
import json
import threading

import pytest

from rag_core.cli import main
from rag_core.eval_sets.reading import SHIPPED

LISTS = SHIPPED / "recorded-combat" / "lists.jsonl"
CORPUS = SHIPPED / "rulebook" / "corpus.jsonl"
GRID = "gap_threshold=0.02:0.3:8,distance_offset=0.05:0.6:9,max_results=5|10|15"


def said(capfdbinary, *arguments):
    """What a command prints with --json."""
    assert main([*arguments, "--json"]) == 0
    return json.loads(capfdbinary.readouterr().out)


def without_times(value):
    """Without the steps, too: here they are of captured lists, on the cluster of a search."""
    if isinstance(value, dict):
        return {name: without_times(one) for name, one in value.items() if name not in ("milliseconds", "stages")}
    return [without_times(one) for one in value] if isinstance(value, list) else value


@pytest.fixture
def workspace(tmp_path):
    return tmp_path / "workspace"


@pytest.mark.slow
def test_capture_evaluate_sweep_and_ingest_give_what_one_machine_gives(cluster, workspace, tmp_path, capfdbinary):
    place = ("--workspace", str(workspace))
    there = ("--engine", cluster.address)
    capture = ("capture", "--eval-set", "rulebook", "--depth", "40", *place)
    said(capfdbinary, *capture, "--out", str(tmp_path / "here.jsonl"))
    said(capfdbinary, *capture, "--out", str(tmp_path / "there.jsonl"), *there)
    assert (tmp_path / "there.jsonl").read_bytes() == (tmp_path / "here.jsonl").read_bytes()

    evaluate = ("evaluate", "--eval-set", "rulebook", "-p", "query-must", "-p", "adaptive-default", *place)
    assert without_times(said(capfdbinary, *evaluate, *there)) == without_times(said(capfdbinary, *evaluate))

    recorded = ("evaluate", "--eval-set", "recorded-combat", "-p", "query-must", "-m", "nDCG@10", *place)
    assert without_times(said(capfdbinary, *recorded, *there)) == without_times(said(capfdbinary, *recorded))

    sweep = ("sweep", str(LISTS), "--grid", GRID, *place)
    assert said(capfdbinary, *sweep, *there) == said(capfdbinary, *sweep)

    (tmp_path / "corpus.jsonl").write_text("".join(CORPUS.open().readlines()[:60]))
    for name, how in (("here", ()), ("there", there)):
        said(capfdbinary, "ingest", str(tmp_path / "corpus.jsonl"), "--collection", name, *place, *how)
    assert vectors_of(workspace, "there") == vectors_of(workspace, "here")


def vectors_of(workspace, name):
    from rag_core.workbench import opened

    index = opened(workspace, name)
    return index.fingerprint, hashlib.sha256(index.snapshot.vectors.tobytes()).hexdigest()


def own_set(workspace, count):
    """An eval set of one's own with many queries for the demo corpus."""
    folder = workspace / "eval_sets" / "many"
    folder.mkdir(parents=True)
    shipped = [json.loads(line) for line in (SHIPPED / "rulebook" / "queries.jsonl").open()]
    (folder / "meta.yaml").write_text((SHIPPED / "rulebook" / "meta.yaml").read_text())
    (folder / "corpus.jsonl").write_bytes(CORPUS.read_bytes())
    vectors = SHIPPED / "rulebook" / "vectors.npz"
    if vectors.is_file():
        (folder / "vectors.npz").write_bytes(vectors.read_bytes())
    with (folder / "queries.jsonl").open("w") as file:
        for number in range(count):
            row = shipped[number % len(shipped)]
            file.write(json.dumps({"id": f"q{number}", "query": f"{row['query']} ({number})"}) + "\n")
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n")
    return folder


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_of_a_capture_of_2000_queries_changes_no_byte(
    cluster, workspace, tmp_path, capfdbinary
):
    folder = own_set(workspace, 2000)
    capture = ("capture", "--eval-set", str(folder), "--depth", "20", "--workspace", str(workspace))
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    said(capfdbinary, *capture, "--out", str(here))
    killed = kill_when(cluster, lambda: at_least(300, lines_in(there.with_name("there.jsonl.part"))))
    said(capfdbinary, *capture, "--out", str(there), "--engine", cluster.address)
    assert 300 <= killed() < 2000
    assert there.read_bytes() == here.read_bytes()
    assert len(here.read_bytes().splitlines()) == 2000


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_of_a_sweep_changes_no_number(cluster, workspace, capfdbinary):
    grid = "gap_threshold=0.02:0.3:6,distance_offset=0.05:0.6:6,TopK.k=1:40:40"
    pipeline = '["TopK","AdaptiveGap","QueryMust"]'
    sweep = ("sweep", str(LISTS), "--grid", grid, "-p", pipeline, "--workspace", str(workspace))
    here = said(capfdbinary, *sweep)
    killed = kill_when(cluster, lambda: at_least(3, len(list(workspace.glob("parts/*/*.json")))))
    assert said(capfdbinary, *sweep, "--engine", cluster.address) == here
    assert killed() >= 3
    assert not list(workspace.glob("parts/*"))


def at_least(floor, count):
    return count if count >= floor else 0


def lines_in(path):
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def kill_when(cluster, reached):
    """Kill a worker once that much is done; the call that is given back says how much that was."""
    seen = []

    def watch():
        from time import sleep

        while not (done := reached()):
            sleep(0.005)
        cluster.kill_one()
        seen.append(done)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()

    def killed():
        assert seen, "the work was over before a worker was killed"
        return seen[0]

    return killed
