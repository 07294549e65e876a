"""The one layer of rights: who may what, what the log says of it, and in whose name labels are brought in."""

import json
import threading
from contextlib import suppress

import pytest

from rag_core.errors import Cancelled, InputError
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.judge import EndpointJudge
from rag_core.llm.prompt import Prompt
from rag_core.llm.run import RunLimits, answer_all
from rag_core.project import deeds
from rag_core.project.deeds import FILE, KINDS, Deed, allow, cancel_kind, import_kind, log, perform, undo_kind
from rag_core.roles import Person
from rag_core.store.database import open_store
from rag_core.store.events import ADJUDICATED, COMMAND, IMPORT
from rag_core.store.exchange.line import LabelLine
from rag_core.store.exchange.planning import apply_import, plan_import
from rag_core.store.labels import LabelStore
from rag_core.types import Query

ANN = Person("ann", "annotator")
VIEWER = {"look", "cancel job"}
ANNOTATOR = VIEWER | {
    "label", "adjudicate", "import labels", "undo import", "ask model", "keep run", "note run",
}  # fmt: skip
MAY = {"": set(), "root": set(), "viewer": VIEWER, "annotator": ANNOTATOR, "admin": {kind.name for kind in KINDS}}
"""Role → what it may do. Whatever is not listed is for admins."""


@pytest.fixture
def workspace(tmp_path):
    (tmp_path / "collections").mkdir()
    return tmp_path


@pytest.mark.parametrize("role", MAY)
def test_every_role_does_its_deeds_and_no_other(role, workspace):
    done = set()
    for kind in KINDS:
        with suppress(InputError), perform(Deed(kind, Person("ann", role)), workspace):
            done.add(kind.name)
    assert done == MAY[role]
    said = {row["deed"]: row["outcome"] for row in log(workspace)}
    assert said == {
        kind.name: "done" if kind.name in done else "refused" for kind in KINDS if kind.logged or kind.name not in done
    }


def test_kinds_have_names_of_their_own():
    assert len({kind.name for kind in KINDS}) == len({kind.words for kind in KINDS}) == len(KINDS)


def test_the_log_says_who_did_what_to_what_when_and_what_became_of_it(workspace):
    pressed = "2026-01-31T12:00:00.000000Z"
    root = Person("root", "admin")
    with perform(Deed(deeds.IMPORT_FOR_OTHERS, root, "demo", "bob", COMMAND, pressed), workspace) as performed:
        performed.result = "3 labels, import-1"
    for failure in (OSError("secret words"), Cancelled("stopped")):
        with pytest.raises(type(failure)), perform(Deed(deeds.INGEST, root, "docs"), workspace):
            raise failure
    first, second, third = log(workspace)
    assert first["at"] >= first["pressed_at"] == pressed
    names = ("by", "who", "role", "deed", "about", "whose", "result", "outcome")
    said = ["command", "root", "admin", "import labels for others", "demo", "bob", "3 labels, import-1", "done"]
    assert [first[name] for name in names] == said
    assert (second["outcome"], second["error"]) == ("failed", "OSError")
    assert third["outcome"] == "cancelled"
    assert "secret words" not in (workspace / FILE).read_text()


def test_a_key_in_a_name_is_not_logged(workspace):
    with perform(Deed(deeds.ASK_MODEL, ANN, "https://me:sk-canary123@llm.example.org\nx" + "y" * 5000), workspace):
        pass
    text = (workspace / FILE).read_text()
    assert "canary" not in text
    assert (text.count("\n"), len(text) < 1000) == (1, True)


def test_a_label_is_its_own_record_and_carries_the_deed(workspace):
    with perform(Deed(deeds.LABEL, ANN, "demo", pressed_at="t"), workspace) as performed:
        assert performed.signature == deeds.Signature("ann", "page", "t")
    assert log(workspace) == []
    assert Deed(deeds.IMPORT_LABELS, ANN).signature.actor == IMPORT


def test_what_is_allowed_leaves_no_line_before_it_is_done(workspace):
    allow(Deed(deeds.KEEP_RUN, ANN), workspace)
    assert log(workspace) == []
    with pytest.raises(InputError):
        allow(Deed(deeds.DELETE_RUN, ANN), workspace)
    assert [row["outcome"] for row in log(workspace)] == ["refused"]


def test_lines_of_deeds_done_at_once_stay_whole(workspace):
    def many():
        for _ in range(25):
            with perform(Deed(deeds.KEEP_RUN, ANN, "r" * 150), workspace):
                pass

    threads = [threading.Thread(target=many) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len([json.loads(line) for line in (workspace / FILE).read_text().splitlines()]) == 200


def test_a_workspace_that_is_not_there_or_empty_stays_so(tmp_path):
    """Else a restore that failed would leave a folder that the next one refuses."""
    for place in (tmp_path / "none", tmp_path):
        with perform(Deed(deeds.CLEAR_CACHE, Person("root", "admin")), place):
            pass
    assert list(tmp_path.iterdir()) == []


def test_a_log_that_cannot_be_written_stops_no_deed(workspace):
    (workspace / FILE).mkdir()
    with perform(Deed(deeds.KEEP_RUN, ANN), workspace) as performed:
        performed.result = "r1"
    assert performed.result == "r1"


def test_a_line_cut_short_is_passed_over(workspace):
    (workspace / FILE).write_text('{"deed": "first"}\n[1]\n{"deed": "sec')
    assert log(workspace) == [{"deed": "first"}]


@pytest.mark.parametrize("name", ["bob", ADJUDICATED, "model:small", "Ann", " ann", ""])
def test_an_annotator_brings_in_no_labels_in_another_name(workspace, name):
    with open_store(workspace) as store:
        labels = LabelStore(store)
        plan = plan_import(labels, "demo", [LabelLine("q", "c", 2, name), LabelLine("q", "d", 2, "ann")], name or "x")
        deed = Deed(import_kind(ANN, plan.annotators), ANN, "demo")
        refused = pytest.raises(
            InputError, match="your role is annotator, expected admin to bring in labels in another"
        )
        with refused, perform(deed, workspace) as performed:
            apply_import(labels, plan, by=performed.signature)
        assert labels.history("demo") == []


def test_an_annotator_brings_in_their_own_labels_and_takes_back_only_what_they_brought(workspace):
    with open_store(workspace) as store:
        labels = LabelStore(store)
        plan = plan_import(labels, "demo", [LabelLine("q", "c", 2)], "ann")
        with perform(Deed(import_kind(ANN, plan.annotators), ANN, "demo"), workspace) as performed:
            batch = apply_import(labels, plan, by=performed.signature).batch
        (label,) = labels.labels("demo")
        assert (label.author, label.actor, label.annotator) == ("ann", IMPORT, "ann")
        assert undo_kind(ANN, labels.authors(batch)) is deeds.UNDO_IMPORT
        assert undo_kind(Person("bob", "annotator"), labels.authors(batch)) is deeds.UNDO_ANY_IMPORT
        assert undo_kind(ANN, {None, "ann"}) is deeds.UNDO_ANY_IMPORT


def test_work_is_stopped_by_whoever_began_it_or_an_admin():
    assert cancel_kind(ANN, "ann") is deeds.CANCEL_JOB
    assert cancel_kind(ANN, "root") is deeds.CANCEL_ANY_JOB


def test_no_thread_or_run_makes_more_calls_than_the_quota_of_the_person(workspace, httpserver, monkeypatch):
    """Through the client, past every page: two runs of four threads each, and a call beside them."""
    monkeypatch.setenv("WINNOW_CALLS_A_DAY", "7")
    answer = {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}], "model": "small"}
    httpserver.expect_request("/v1/chat/completions").respond_with_json(answer)
    judge = EndpointJudge(Endpoint("here", httpserver.url_for("/v1"), model="small"))

    def ask(person, first, number):
        prompts = [
            Prompt(({"role": "user", "content": f"{n}"},), Query("q", "?")) for n in range(first, first + number)
        ]
        with perform(Deed(deeds.ASK_MODEL, person), workspace):
            half = answer_all([(judge, prompts[: number // 2])], RunLimits(concurrency=4)).failed
            rest = judge.ask(prompts[number // 2 :], seconds=20, concurrency=4, model="", cache=False)
        return half + sum(one.text is None for one in rest), [one.error for one in rest]

    failed, said = ask(ANN, 0, 12)
    assert (failed, len(httpserver.log)) == (5, 7)
    assert "the 7 calls of a day are made" in "".join(said)
    assert ask(ANN, 12, 12)[0] == 12
    assert len(httpserver.log) == 7
    assert ask(Person("bob", "annotator"), 30, 4)[0] == 0  # each their own
    assert ask(Person("root", "admin"), 40, 10)[0] == 0
    with pytest.raises(InputError, match="expected annotator"):
        ask(Person("vera", "viewer"), 60, 2)
    assert len(httpserver.log) == 7 + 4 + 10
