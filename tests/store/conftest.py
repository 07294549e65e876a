"""Fixtures: an open store in a fresh workspace, on either database, and a short way to write an event."""

import os
import uuid

import pytest
from sqlalchemy import create_engine, make_url, text

from rag_core.settings import DATABASE
from rag_core.store.database import open_store
from rag_core.store.events import Event
from rag_core.store.labels import LabelStore

URL = "WINNOW_TEST_DATABASE_URL"
BOTH = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


@pytest.fixture(autouse=True)
def no_server(monkeypatch):
    """A database of the person who runs the tests is never touched."""
    monkeypatch.delenv(DATABASE, raising=False)


def server_url():
    """The address of a PostgreSQL for tests; without one the test is skipped, or fails where it is mandatory."""
    url = os.environ.get(URL, "")
    if not url:
        why = f"{URL} names no PostgreSQL for tests"
        pytest.fail(why) if os.environ.get("WINNOW_REQUIRE_POSTGRES") else pytest.skip(why)
    return url


@pytest.fixture
def schema():
    """An address whose tables are a test's own; its connections bear the name of the schema made for it."""
    url, name = server_url(), f"test_{uuid.uuid4().hex}"
    admin = create_engine(make_url(url).set(drivername="postgresql+psycopg"))
    with admin.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
    own = make_url(url).update_query_dict({"options": f"-csearch_path={name}", "application_name": name})
    yield own.render_as_string(hide_password=False)
    with admin.begin() as connection:
        connection.execute(text(f"DROP SCHEMA {name} CASCADE"))
        connection.execute(text(f"DROP SCHEMA IF EXISTS {name}_studies CASCADE"))
    admin.dispose()


@pytest.fixture
def postgres(schema, monkeypatch, no_server):
    """The process's stores are on PostgreSQL."""
    monkeypatch.setenv(DATABASE, schema)
    return schema


@pytest.fixture(params=BOTH)
def database(request):
    """For `pytestmark = pytest.mark.usefixtures("database")`: every test of the module runs on both databases."""
    if request.param == "postgresql":
        request.getfixturevalue("postgres")
    return request.param


@pytest.fixture
def workspace(tmp_path):
    return tmp_path / "workspace"


@pytest.fixture
def store(workspace, request):
    if "database" in request.fixturenames:
        request.getfixturevalue("database")
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
