"""Random histories of labellers, importers and restores at the same time, held against a plain model of labels."""

import shutil
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_core import backup
from rag_core.errors import StoreError
from rag_core.store import holding
from rag_core.store.database import FILE, open_store
from rag_core.store.events import LABEL, UNDO, Signature, undo_of
from rag_core.store.labels import LabelStore
from tests.store.conftest import make_event

PEOPLE = ("ann", "bob", "eve")
DEEDS = [
    st.tuples(st.just("label"), st.integers(0, 2), st.integers(0, 3)),  # chunk, grade
    st.tuples(st.just("label"), st.integers(0, 2), st.integers(0, 3)),
    st.tuples(st.just("undo"), st.integers(0, 9), st.just(0)),  # of what this person said before
    st.tuples(st.just("again"), st.integers(0, 9), st.just(0)),  # the same is sent twice, as after a lost answer
    st.tuples(st.just("import"), st.integers(0, 2), st.integers(0, 3)),  # labels in everybody's name
    st.tuples(st.just("take back"), st.integers(0, 9), st.just(0)),  # an import
    st.tuples(st.just("close"), st.just(0), st.just(0)),
]
# of a workspace's own file; a server has its own copies
RESTORE = st.tuples(st.just("restore"), st.just(0), st.just(0))


def histories(*deeds):
    return st.lists(st.lists(st.one_of(*deeds), min_size=1, max_size=8), min_size=2, max_size=3)


HISTORIES, ON_A_SERVER = histories(*DEEDS, RESTORE), histories(*DEEDS)


class Actor(threading.Thread):
    """One person with a session of their own: what they tried, what was acknowledged and when."""

    def __init__(self, name, deeds, workspace, copy, eval_set="demo"):
        super().__init__()
        self.who, self.deeds, self.workspace, self.copy, self.eval_set = name, deeds, workspace, copy, eval_set
        self.tried, self.acknowledged, self.imports, self.restored, self.faults = {}, {}, [], [], []
        self.seq, self.store = 0, None

    def run(self):
        for deed in self.deeds:
            try:
                self.do(*deed)
            except StoreError:  # refused: nothing was promised
                self.close()
            except Exception as error:
                self.faults.append(repr(error))
        self.close()

    def close(self):
        if self.store is not None:
            self.store.close()
            self.store = None

    def do(self, deed, number, grade):
        if deed in ("close", "restore"):
            self.close()
            if deed == "restore":
                backup.restore(self.copy, self.workspace, force=True)
                self.restored.append(time.monotonic())
            return
        self.store = self.store or open_store(self.workspace, create=False)
        labels, mine = LabelStore(self.store), [event for event, _ in self.acknowledged.values()]
        if deed == "label":
            self.send(labels, self.event(self.who, number, grade))
        elif deed == "import":
            self.imports.append(batch := f"{self.who} {self.eval_set} {len(self.imports)}")
            self.send(labels, *(self.event(name, number, grade, batch=batch) for name in PEOPLE))
        elif deed == "again" and mine:
            self.send(labels, mine[number % len(mine)])
        elif deed == "undo" and (said := [event for event in mine if event.kind == LABEL]):
            self.send(labels, undo_of(said[number % len(said)], self.who, self.next(), by=Signature(self.who)))
        elif deed == "take back" and self.imports:
            labels.undo_batch(self.imports[number % len(self.imports)], Signature(self.who))

    def next(self):
        self.seq += 1
        return self.seq

    def event(self, name, chunk, grade, batch=""):
        chunk_id, session = f"c{chunk}", f"{self.who} {self.eval_set}"
        more = {"annotator": name, "batch": batch, "author": self.who, "eval_set": self.eval_set}
        return make_event(self.next(), grade, session=session, chunk_id=chunk_id, **more)

    def send(self, labels, *events):
        self.tried |= {event.key: event for event in events}
        labels.append(events)
        now = time.monotonic()
        self.acknowledged |= {event.key: (event, now) for event in events}


def said(event):
    """What of an event must never change: under whose name, what, by whom."""
    return event.kind, event.annotator, event.chunk_id, event.grade, event.undoes, event.author, event.batch


def plain(events):
    """{chunk: grade} of what counts: the newest label of anybody that was not taken back."""
    gone = set()
    for event in reversed(events):
        if event.kind == UNDO and event.key not in gone:
            gone.add(event.undoes)
    newest = {}
    for event in events:
        if event.kind == LABEL and event.key not in gone:
            newest[event.chunk_id] = event.grade
    return newest


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A workspace with one label, and its copy."""
    folder = tmp_path_factory.mktemp("made")
    with open_store(folder / "w") as store:
        LabelStore(store).append([make_event(0, 1, session="before", chunk_id="c9")])
    backup.make(folder / "w", folder / "copy.zip")
    return folder


def check(made, history):
    with TemporaryDirectory(dir=made) as place:
        workspace = Path(place) / "w"
        shutil.copytree(made / "w", workspace)
        (workspace / holding.FILE).touch()  # a new workspace: no copy is due, which would outlive the folder
        actors = [Actor(who, deeds, workspace, made / "copy.zip") for who, deeds in zip(PEOPLE, history, strict=False)]
        run(actors)
        with open_store(workspace) as store:
            final, current = LabelStore(store).history("demo"), LabelStore(store).current("demo")
        kept = {event.key: event for event in final}
        for folder in Path(place).glob("w.before-*"):
            assert (folder / FILE).exists()
            with open_store(folder) as store:
                kept |= {event.key: event for event in LabelStore(store).history("demo")}
        agree(actors, final, current, kept, before={("before", 0)})


def run(actors):
    for actor in actors:
        actor.start()
    for actor in actors:
        actor.join()
    assert [actor.faults for actor in actors if actor.faults] == []


def agree(actors, final, current, kept, before=frozenset()):
    """What was acknowledged is there, once, as it was said; nothing else is; what counts is what the model says."""
    stored = {event.key: event for event in final}
    assert len(stored) == len(final)
    last = max([at for actor in actors for at in actor.restored], default=0.0)
    for actor in actors:
        for key, (event, at) in actor.acknowledged.items():
            assert said(kept[key]) == said(event)
            assert key in stored or at < last
        for key, event in stored.items():
            if key in actor.tried:
                assert said(event) == said(actor.tried[key])
    known = {key for actor in actors for key in actor.tried} | before
    assert all(key in known or key[0].startswith("undo:") for key in stored)
    assert current.get("q1", {}) == plain(final)


def check_on_a_server(workspace, history):
    eval_set = f"demo {uuid4().hex}"  # of one database
    actors = [Actor(who, deeds, workspace, None, eval_set) for who, deeds in zip(PEOPLE, history, strict=False)]
    run(actors)
    with open_store(workspace) as store:
        labels = LabelStore(store)
        final = labels.history(eval_set)
        agree(actors, final, labels.current(eval_set), {event.key: event for event in final})


QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@given(HISTORIES)
@settings(max_examples=25, **QUIET)
def test_no_acknowledged_label_is_lost_doubled_or_under_anothers_name(made, history):
    check(made, history)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@given(HISTORIES)
@settings(max_examples=10_000, **QUIET)
def test_ten_thousand_histories_lose_double_and_rename_nothing(made, history):
    check(made, history)


@pytest.mark.postgres
@given(ON_A_SERVER)
@settings(max_examples=15, **QUIET)
def test_nor_where_the_team_shares_a_server(postgres, workspace, history):
    open_store(workspace).close()
    check_on_a_server(workspace, history)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.postgres
@given(ON_A_SERVER)
@settings(max_examples=10_000, **QUIET)
def test_ten_thousand_histories_on_a_server_lose_double_and_rename_nothing(postgres, workspace, history):
    open_store(workspace).close()
    check_on_a_server(workspace, history)
