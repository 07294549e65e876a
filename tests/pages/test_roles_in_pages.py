"""Roles through AppTest: what a person may not do is refused in the server, whatever the page shows."""

import ast
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.components import jobs
from pages.labels.queue.intake import read_batch
from rag_core.project.deeds import log
from rag_core.store.database import open_store
from rag_core.store.labels import LabelStore
from tests.pages.conftest import ROOT
from tests.project.test_deeds import MAY
from tests.store.conftest import database, no_server, postgres, schema  # noqa: F401 — fixtures

LIST = "admin: [ann@example.org]\nannotator: [bob@example.org]\nviewer: [vera@example.org]\n"


@pytest.fixture
def as_person(app_at, workspace, monkeypatch):
    """The app as it is for somebody whose name the trusted proxy gave."""
    monkeypatch.setenv("WINNOW_USER_HEADER", "X-Forwarded-Email")
    workspace.mkdir()
    (workspace / "roles.yaml").write_text(LIST)

    def opened(email, place="", beginning=False):
        app = app_at(place)
        app.user = {"email": email} if email else {}
        app.session_state["page.beginning"] = beginning
        return app.run()

    return opened


def shown(app):
    return "\n".join(str(one.value) for kind in (app.markdown, app.text, app.caption) for one in kind)


def test_who_is_not_logged_in_sees_no_page(as_person):
    app = as_person("")
    assert "log-in proxy" in shown(app)
    assert not app.sidebar.selectbox
    assert "Explore" not in shown(app)


def test_who_is_on_no_list_sees_no_page(as_person):
    app = as_person("eve@example.org")
    assert "does not know you" in shown(app)
    assert "Explore" not in shown(app)


def test_a_list_that_cannot_be_read_lets_nobody_in(as_person, workspace):
    (workspace / "roles.yaml").write_text("root: [ann@example.org]")
    app = as_person("ann@example.org")
    assert "cannot be read" in shown(app)
    assert "Explore" not in shown(app)


def test_a_person_that_is_known_is_named_with_the_role(as_person):
    app = as_person("vera@example.org")
    assert not app.exception
    assert "vera@example.org (viewer)" in shown(app)
    assert "Every dropped chunk says why" in shown(app)


def test_labels_carry_the_name_of_the_log_in(as_person):
    app = as_person("bob@example.org", "labels")
    assert "Labelling as bob@example.org" in shown(app)
    assert not [box for box in app.text_input if box.label == "Your name"]


def test_an_annotator_gets_a_store_that_writes_and_a_viewer_one_that_refuses(as_person):
    assert "your role is viewer, expected annotator to label" in shown(as_person("vera@example.org", "labels"))
    assert "your role" not in shown(as_person("bob@example.org", "labels"))


LABEL_ANYWAY = """
from pages.components import resources
from rag_core.store.labels import LabelStore
from tests.store.conftest import make_event
LabelStore(resources.label_store()).append([make_event(0)])
"""


@pytest.mark.parametrize(("email", "stored"), [("vera@example.org", 0), ("bob@example.org", 1)])
def test_a_page_that_forgets_to_ask_still_cannot_write_labels(as_person, workspace, email, stored):
    app = AppTest.from_string(LABEL_ANYWAY, default_timeout=60)
    app.user = {"email": email}
    app.run()
    assert bool(app.exception) == (stored == 0)
    with open_store(workspace) as store:
        assert len(LabelStore(store).history("demo")) == stored


CHANGES = {
    "rules": "from pages.data import rules\nfrom rag_core.project.project import open_project\n"
    "from rag_core.workspace import resolve_workspace\nrules.undo(open_project('demo', resolve_workspace()), 1)\n"
    "import streamlit as st\nst.text(st.session_state[rules.FAILED])",
    "questions": "from pages.questions import change\nchange.do(lambda: 1, str)\n"
    "import streamlit as st\nst.text(st.session_state[change.DONE][1])",
    "ingest": "from pages.data import source\nfrom rag_core.project.intake import Documents\n"
    "from rag_core.project.project import open_project\nfrom rag_core.workspace import resolve_workspace\n"
    "source.start(open_project('demo', resolve_workspace()), Documents(('/etc/hosts',)))",
    "preview": "from pages.data import source\nfrom rag_core.project.intake import Documents\n"
    "source._look(Documents(('/etc/hosts',)), 'preview')\nimport streamlit as st\nst.text(st.session_state[source.PROBLEM])",
    "structure": "from pages.bench import entities\nfrom rag_core.entities import load_structure\n"
    "from rag_core.workspace import resolve_workspace\nentities._keep(load_structure(), resolve_workspace())\n"
    "import streamlit as st\nst.text(st.session_state[entities.PROBLEM][1])",
}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("email", ["vera@example.org", "bob@example.org"])
def test_only_an_admin_changes_things(as_person, what, email):
    app = AppTest.from_string(CHANGES[what], default_timeout=60)
    app.user = {"email": email}
    app.run()
    said = shown(app) + "".join(one.message for one in app.exception)
    assert "expected admin to" in said


def test_an_admin_may(as_person, workspace):
    app = AppTest.from_string(CHANGES["structure"], default_timeout=60)
    app.user = {"email": "Ann@Example.org"}
    app.run()
    assert not app.exception
    assert (workspace / "structure.json").is_file()


def test_a_viewer_is_not_shown_the_way_in(as_person):
    app = as_person("vera@example.org", "data", beginning=True)
    assert not app.exception
    assert not app.get("file_uploader")


ENTRY = {
    "pair": "p", "session": "s", "seq": 0, "eval_set": "demo", "query_id": "q", "chunk_id": "c", "annotator": "eve",
    "query_hash": "", "text_hash": "", "note": "", "kind": "label", "grade": 2,
}  # fmt: skip


CANCEL = """
import threading
import streamlit as st
from pages.components import jobs, who
from rag_core.project.deeds import INGEST, Deed
from rag_core.roles import Person
job = jobs.Job("work", Deed(INGEST, Person("ann@example.org", "admin"), "docs"), who.resolve_workspace())
jobs._cancel(job)
st.text(f"stopping {job.stop.is_set()} {st.session_state.get(jobs.PROBLEM, '')}")
"""


WORKING = """
import time
import streamlit as st
from pages.components import jobs, who
from rag_core.project.deeds import LOOK
def work(job):
    for done in range(10**6):
        job(done, 10**6)
        time.sleep(0.005)
kind = st.query_params["kind"]
if kind not in st.session_state.setdefault("asked", set()) or st.session_state.pop("again", False):
    st.session_state["asked"].add(kind)
    jobs.start("work", work, who.deed(LOOK, "x"), kind)
own = jobs.current(kind)
st.text(f"of {own.deed.person.name if own else 'nobody'}; {len(jobs.under_way())} run")
jobs.show(kind)
"""


@pytest.fixture
def works(as_person):
    """A person's page that begins work of a kind; all work ends with the test."""
    yield lambda email, kind: started(email, kind)
    for job in jobs.under_way():
        job.stop.set()
        assert job.over.wait(20)


def started(email, kind):
    app = AppTest.from_string(WORKING, default_timeout=60)
    app.user = {"email": email}
    app.query_params["kind"] = kind
    return app.run()


def test_several_jobs_run_at_once_each_somebodys(works):
    vera, bob = works("vera@example.org", "search"), works("bob@example.org", "search")
    assert "of vera@example.org; 1 run" in shown(vera)
    assert "of bob@example.org; 2 run" in shown(bob)
    vera.session_state["again"] = True
    assert "of vera@example.org; 2 run" in shown(vera.run())  # a person has one of a kind
    shared = works("bob@example.org", "data mine")
    assert "of bob@example.org; 3 run" in shown(shared)
    seen = works("vera@example.org", "data mine")  # of what people share there is one, and all see whose
    assert "of bob@example.org; 3 run" in shown(seen)
    assert "begun by bob@example.org" in shown(seen)
    assert "of ann@example.org; 4 run" in shown(works("ann@example.org", "search"))
    assert "of nobody; 4 run" in shown(works("ann@example.org", "data other"))  # as much as the server does at once
    seen.button(key="job.cancel").click().run()
    assert "your role is viewer, expected admin to stop somebody else's work" in shown(seen)
    vera.button(key="job.cancel").click().run()
    assert not [job for job in jobs.under_way() if job.deed.person.name.startswith("vera") and not job.stop.is_set()]
    assert len([job for job in jobs.under_way() if not job.stop.is_set()]) == 3


@pytest.mark.parametrize(("email", "stops"), [("vera@example.org", False), ("ann@example.org", True)])
def test_another_persons_work_is_stopped_by_admins(as_person, workspace, email, stops):
    app = AppTest.from_string(CANCEL, default_timeout=60)
    app.user = {"email": email}
    app.run()
    assert f"stopping {stops}" in shown(app)
    assert ("expected admin to stop" in shown(app)) != stops
    assert log(workspace)[-1]["outcome"] == ("done" if stops else "refused")


TAKE = """
import streamlit as st
from pages.components import resources, who
from pages.components import jobs
from pages.labels.queue.intake import read_batch, take
from rag_core.project.deeds import LABEL
from rag_core.store.labels import LabelStore
store = st.session_state.setdefault("store", resources.label_store())  # the one that the page was drawn with
batch = read_batch({"entries": [st.session_state["entry"]], "stream": "s", "attempt": 1}, who.person().name)
st.text(take(LabelStore(store), batch, who.deed(LABEL, "demo")).problem)
"""


def test_whoever_was_taken_off_the_list_labels_no_more_from_an_open_page(as_person, workspace):
    app = AppTest.from_string(TAKE, default_timeout=60)
    app.user = {"email": "bob@example.org"}
    app.session_state["entry"] = ENTRY | {"annotator": "bob@example.org"}
    app.run()
    assert not app.exception
    (workspace / "roles.yaml").write_text("admin: [ann@example.org]\n")
    app.session_state["entry"] = ENTRY | {"annotator": "bob@example.org", "seq": 1}
    app.run()
    assert "your role is none, expected annotator to label" in shown(app)
    with open_store(workspace) as store:
        assert [(event.seq, event.author) for event in LabelStore(store).history("demo")] == [(0, "bob@example.org")]


def test_a_label_in_anothers_name_is_refused():
    batch = read_batch({"entries": [ENTRY], "stream": "s", "attempt": 1}, "bob")
    assert batch.entries == ()
    assert (batch.entries, len(batch.unfit)) == ((), 1)
    assert "'eve', expected 'bob'" in batch.unfit[0].why
    assert len(read_batch({"entries": [ENTRY]}, "eve").entries) == 1


def test_without_a_log_in_everybody_is_admin_of_their_own_workspace(open_app):
    app = open_app()
    assert not app.exception
    assert "(admin)" not in shown(app)


MODEL = """
from pages.components import who
from rag_core.spec import parse_pipeline
who.check_models([parse_pipeline(["Dense", {!r}])])
"""


@pytest.mark.parametrize(
    ("email", "pipeline", "endpoint", "refused"),
    [
        ("vera@example.org", "MultiHop", True, True),
        ("vera@example.org", "MultiHop", False, False),
        ("vera@example.org", "LLMFilter", True, False),  # its stored answers are read
        ("vera@example.org", "QueryMust", True, False),
        ("bob@example.org", "MultiHop", True, False),
    ],
)
def test_a_link_makes_no_viewer_pay(as_person, monkeypatch, email, pipeline, endpoint, refused):
    if endpoint:
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    app = AppTest.from_string(MODEL.format(pipeline), default_timeout=60)
    app.user = {"email": email}
    app.run()
    assert ["expected annotator to ask a model" in one.message for one in app.exception] == [True] * refused


@pytest.mark.parametrize(("email", "asked"), [("vera@example.org", False), ("bob@example.org", True)])
def test_asking_a_model_on_the_bench_is_a_deed(as_person, monkeypatch, email, asked):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_MODEL", "small")
    app = as_person(email)
    app.query_params.update({"project": "recorded-combat", "pipeline": '["LLMFilter"]'})
    app.run()
    app.session_state["bench.drawer"] = 0
    app.run()
    app.button(key="judge.ask.run").click().run()
    assert not app.exception
    assert (("judge", email) in jobs._kept()) == asked


WRITERS = {
    "apply_rules", "undo_rules", "delete_collection", "write_whole", "ingest", "delete_set",
    "change_tags", "connect", "save_pipeline", "save_list", "init_project", "copy_project",
    "add_questions", "reset_overlay", "reset_held_out", "undo_all", "undo_batch", "apply_import", "copy_labels",
    "store_model_labels",
}  # fmt: skip
ASK = {
    "doing",
    "check",
    "start",
    "act",
    "do",
    "_tried",
}  # the deed itself, or a function that asks before it does anything


def calls(nodes):
    for node in nodes:
        for one in ast.walk(node):
            if isinstance(one, ast.Call):
                yield one.func.attr if isinstance(one.func, ast.Attribute) else getattr(one.func, "id", "")


@pytest.mark.parametrize(
    ("room", "writers", "ask"), [("pages", WRITERS, ASK), ("rag_core/cli", WRITERS - {"write_whole"}, {"command"})]
)
def test_every_function_that_changes_the_workspace_does_it_as_a_deed(room, writers, ask):
    """Canary for pages and commands to come: a writing function with no deed around it, and none handed to it."""
    found = []
    for path in sorted((ROOT / room).rglob("*.py")):
        for node in ast.parse(Path(path).read_text()).body:
            if isinstance(node, ast.FunctionDef) and "by" not in [one.arg for one in node.args.args]:
                names = set(calls(node.body))
                if names & writers and not names & ask:
                    found.append(f"{path.name}:{node.name} calls {', '.join(sorted(names & writers))}")
    assert found == []


EVERY_DEED = """
import streamlit as st
from contextlib import suppress
from pages.components import who
from rag_core.errors import InputError
from rag_core.project.deeds import KINDS
for kind in KINDS:
    with suppress(InputError), who.doing(kind):
        st.session_state.setdefault("done", set()).add(kind.name)
"""


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(("name", "role"), [("ann", "admin"), ("bob", "annotator"), ("vera", "viewer"), ("eve", "")])
def test_every_cell_of_deed_and_role_holds_for_who_the_proxy_named(as_person, workspace, name, role):
    """The whole table, by the name of the log-in and the list of people; then taken off the list: nothing more."""
    app = AppTest.from_string(EVERY_DEED, default_timeout=60)
    app.user = {"email": f"{name}@example.org"}
    app.session_state["done"] = set()
    app.run()
    assert app.session_state["done"] == MAY[role]
    rows = log(workspace)
    assert {(row["who"], row["role"]) for row in rows} == {(f"{name}@example.org", role)}
    assert {row["deed"] for row in rows if row["outcome"] == "refused"} == MAY["admin"] - MAY[role]
    (workspace / "roles.yaml").write_text("admin: [root@example.org]\n")
    app.session_state["done"] = set()
    app.run()
    assert app.session_state["done"] == set()
