"""Fixtures: an open store in a fresh workspace, and a short way to write an event."""

import pytest

from rag_core.store.database import open_store
from rag_core.store.events import Event
from rag_core.store.labels import LabelStore


@pytest.fixture
def workspace(tmp_path):
    return tmp_path / "workspace"


@pytest.fixture
def store(workspace):
    with open_store(workspace) as opened:
        yield opened


@pytest.fixture
def labels(store):
    return LabelStore(store)


@pytest.fixture
def event():
    return make_event


def make_event(seq, grade=2, **changes):
    values = {"session": "tab-1", "eval_set": "demo", "query_id": "q1", "chunk_id": "c1", "annotator": "ann"}
    return Event(**values | {"seq": seq, "grade": grade} | changes)
