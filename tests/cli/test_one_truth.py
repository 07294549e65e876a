"""A source that is named is the one that is asked, whatever was captured before, and rules are those of today."""

import json
import shutil

import pytest

from rag_core.cli import main
from rag_core.index.rules import apply_rules
from rag_core.project import session as session_module
from rag_core.project.project import open_project
from rag_core.project.session import Session
from rag_core.rules.rule import read_rule


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    workspace = tmp_path_factory.mktemp("built")
    session = Session(open_project("demo", workspace))
    session.refresh()
    session.close()
    return workspace


@pytest.fixture
def workspace(built, tmp_path):
    place = tmp_path / "ws"
    shutil.copytree(built / "collections", place / "collections")
    return place


@pytest.fixture
def run(workspace, capsysbinary):
    def called(*arguments):
        capsysbinary.readouterr()
        code = main([*map(str, arguments), "--workspace", str(workspace), "--json"])
        out, err = capsysbinary.readouterr()
        return code, json.loads(out) if out else None, err.decode()

    return called


@pytest.fixture
def asked(monkeypatch):
    """(collection, question) of every search."""
    calls = []
    plain = Session._captured

    def counted(self, *arguments):
        before = self.asked
        found = plain(self, *arguments)
        calls.extend([self.project.source.name] * (self.asked - before))
        return found

    monkeypatch.setattr(session_module.Session, "_captured", counted)
    return calls


def break_rules(workspace):
    session = Session(open_project("demo", workspace))
    ruled = [chunk.id for chunk in session.source.chunks if chunk.query_must is not None]
    session.close()
    assert len(ruled) == 138
    apply_rules(workspace, "rulebook", {one: read_rule({"contain": "xyzzy"}) for one in ruled}, "nonsense")


def set_f(document):
    return document["pipelines"][0]["means"]["SetF"]


def test_a_gate_fails_when_every_live_rule_was_replaced_by_nonsense(run, workspace, tmp_path, asked):
    lists, base = tmp_path / "lists.jsonl", tmp_path / "base.json"
    assert run("capture", "--eval-set", "rulebook", "--out", lists)[0] == 0
    code, before, _ = run("evaluate", "--eval-set", "rulebook", "-p", "query-must", "--run-out", base)
    assert code == 0
    searched = len(asked)
    assert searched == 85
    break_rules(workspace)
    code, after, _ = run("evaluate", "--eval-set", "rulebook", "--collection", "rulebook", "-p", "query-must")
    assert code == 0
    assert set_f(after) < 0.8 * set_f(before)
    assert after["fingerprints"]["source"] == before["fingerprints"]["source"]
    assert after["fingerprints"]["rules"] != before["fingerprints"]["rules"]
    for named in (["--collection", "rulebook"], ["--project", "demo"], []):
        code, verdict, _ = run("gate", "--baseline", base, "-p", "query-must", *named)
        assert (code, verdict["outcome"]) == (1, "fail")
    assert len(asked) == searched  # changed rules search nothing again
    code, out, sentence = run(
        "gate", "--baseline", base, "--lists", lists, "--collection", "rulebook", "-p", "query-must"
    )
    assert (code, out) == (2, None)
    assert "--collection" in sentence
