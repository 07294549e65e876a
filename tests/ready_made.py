"""What tests make again and again from what ships, made once a worker. A conftest takes the fixture over."""

import hashlib
import shutil

import pytest

from rag_core import workbench
from rag_core.eval_sets.reading import SHIPPED
from rag_core.index.collection import folder_of


@pytest.fixture(scope="session", autouse=True)
def shipped_collections(tmp_path_factory):
    """The first workspace that lacks a shipped set's collection ingests its corpus; each further one is given a copy.

    A test that ingests into a collection which is there, or a corpus of its own, does so.
    """
    kept, reports, ingest = tmp_path_factory.mktemp("collections"), {}, workbench.ingest

    def ingest_or_copy(paths, collection, workspace, embedder, **options):
        (corpus,) = paths
        folder = folder_of(workspace, collection)
        if folder.exists() or not corpus.is_relative_to(SHIPPED):
            return ingest(paths, collection, workspace, embedder, **options)
        key = hashlib.sha256(f"{type(embedder)} {embedder.name}".encode() + corpus.read_bytes()).hexdigest()
        if key not in reports:
            reports[key] = ingest(paths, collection, workspace, embedder, **options)
            shutil.copytree(folder, kept / key, ignore=shutil.ignore_patterns("*-wal", "*-shm"))
        else:
            shutil.copytree(kept / key, folder)
        return reports[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workbench, "ingest", ingest_or_copy)
        yield
