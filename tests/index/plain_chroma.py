"""Stores as other people make them: plain chromadb code in a process of its own, and their checksums."""

import hashlib
import subprocess
import sys

CODE = """
import json, sys
import numpy as np
import chromadb
client = chromadb.PersistentClient(sys.argv[1])
for name, space in json.loads(sys.argv[2]).items():
    how = {"configuration": {"hnsw": {"space": space}}} if space else {}
    collection = client.create_collection(name, **how)
    vectors = np.random.default_rng(7).normal(size=(60, 16)).astype("float32")
    documents = None if name.endswith("bare") else [f"text of {n}" for n in range(60)]
    metadatas = [{"n": n, "title": f"Title {n}", "query_must": json.dumps({"contain_one_of": [[f"word{n}"]]})} for n in range(60)]
    collection.add(ids=[f"d{n:02}" for n in range(60)], embeddings=vectors, documents=documents,
                   metadatas=None if name.endswith("bare") else metadatas)
    answer = collection.query(query_embeddings=[vectors[3] * 0.5], n_results=60, include=["distances"])
    print(json.dumps([name, answer["ids"][0], answer["distances"][0], (vectors[3] * 0.5).tolist()]))
"""

SPACES = {
    "plain": None,
    "ell-two": "l2",
    "cosine": "cosine",
    "inner": "ip",
    "cosine-bare": "cosine",
    "plain-bare": None,
}


def make_store(folder, collections=SPACES):
    """The store, and what Chroma itself answered per collection: (ids, distances, query vector)."""
    import json

    run = subprocess.run(
        [sys.executable, "-c", CODE, str(folder), json.dumps(collections)], capture_output=True, text=True, check=True
    )
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    return {name: rest for name, *rest in answers}


def rewrite(folder, collection, identity, text):
    """Give a record another document, its vector as it was, by a process of its own."""
    code = (
        "import sys, chromadb; c = chromadb.PersistentClient(sys.argv[1]).get_collection(sys.argv[2]);"
        "v = c.get(ids=[sys.argv[3]], include=['embeddings'])['embeddings'];"
        "c.update(ids=[sys.argv[3]], documents=[sys.argv[4]], embeddings=v)"
    )
    subprocess.run([sys.executable, "-c", code, str(folder), collection, identity, text], check=True)


def checksums(folder):
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
