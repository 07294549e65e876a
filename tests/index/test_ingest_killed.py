"""Ingest under `kill -9`: it resumes, nothing half-written is searched, and the end equals an undisturbed run."""

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fakes import HashEmbedder

from rag_core.errors import StoreError
from rag_core.index.collection import open_collection
from rag_core.index.embed import BundledEmbedder
from rag_core.index.ingest import ingest

CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from fakes import HashEmbedder
from rag_core.index.embed import BundledEmbedder
from rag_core.index.ingest import ingest
embedder = BundledEmbedder() if sys.argv[2] == "bundled" else HashEmbedder()
report = ingest([sys.argv[3]], "books", Path(sys.argv[4]), embedder, progress=lambda *step: print(step, flush=True))
print("done", flush=True)
"""


def write_documents(folder, count, note):
    folder.mkdir(exist_ok=True)
    for number in range(count):
        (folder / f"{number}.md").write_text(f"## One\n{note} {number}\n## Two\nmore {note} {number}\n")


def killed_ingest(kind, docs, workspace, after, chance):
    """Start an ingest in a process of its own and kill it after some batches and a moment; whether it had ended."""
    arguments = [sys.executable, "-c", CHILD, str(Path(__file__).parent), kind, str(docs), str(workspace)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as child:
        lines = [child.stdout.readline() for _ in range(after)]
        try:
            child.wait(timeout=chance.random() * 0.01)
        except subprocess.TimeoutExpired:
            child.kill()
        return "done" in "".join(lines) + child.stdout.read()


def state(workspace):
    try:
        return open_collection(workspace, "books")
    except StoreError:
        return None


def storm(tmp_path, kind, kills, documents, seed):
    chance, embedder = random.Random(seed), BundledEmbedder() if kind == "bundled" else HashEmbedder()
    docs, workspace = tmp_path / "docs", tmp_path / "ws"
    done, landed, version = None, 0, 0
    while landed < kills:
        version += 1
        write_documents(docs, documents, f"note {version}")
        finished = False
        while not finished and landed < kills:
            finished = killed_ingest(kind, docs, workspace, chance.randint(1, 4), chance)
            landed += not finished
            found = state(workspace)
            whole = found is None or len({chunk.text.split()[3] for chunk in found.chunks if "One" in chunk.text}) == 1
            assert whole, "a mixture of two versions was searchable"
            assert found is None or len(found.chunks) == 2 * documents
    last = ingest([docs], "books", workspace, embedder)
    done = open_collection(workspace, "books")
    ingest([docs], "clean", workspace, embedder)
    clean = open_collection(workspace, "clean")
    assert done.chunks == clean.chunks
    assert done.fingerprint == clean.fingerprint
    assert np.array_equal(done.vectors, clean.vectors)
    return last


def test_five_kills_resume_to_the_same_collection(tmp_path):
    last = storm(tmp_path, "hash", kills=5, documents=20, seed=1)
    assert last.embedded < 40  # what was committed before the last kill was not embedded again


@pytest.mark.slow
def test_thirty_kills_with_the_bundled_model_resume_to_equal_embeddings(tmp_path):
    storm(tmp_path, "bundled", kills=30, documents=40, seed=2)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_hundred_kills_resume_to_every_id_and_equal_embeddings(tmp_path):
    storm(tmp_path, "hash", kills=100, documents=40, seed=3)
