"""Rules from a model on a scripted server: only what is good is stored, each refusal has its reason, nothing is paid twice."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path
from threading import Event

import pytest
from generating import corpus
from werkzeug import Response

from rag_core.errors import Cancelled
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.judge import EndpointJudge, RecordedJudge
from rag_core.llm.run import RunLimits
from rag_core.llm.store import AnswerStore
from rag_core.rules.check import check_proposals
from rag_core.rules.generate import generate_rules, rule_prompts
from rag_core.types import Case, Chunk, Query

CHAT = "/v1/chat/completions"
HERE = Path(__file__).parent
CHUNKS = corpus()
CLASSES = ["cleric", "clerics", "druid", "druids", "monk", "monks"]


def rule(n):
    return {"contain_one_of": [CLASSES, [f"armor class {n}", f"ac {n}"]]}


def completion(text, reason="stop"):
    return {"choices": [{"index": 0, "finish_reason": reason, "message": {"content": text}}], "model": "small-model"}


def rules_text(*rules):
    return json.dumps({"rules": [{"number": number, "query_must": one} for number, one in enumerate(rules, 1)]})


def asked_for(server, chunks, file, model="small-model", batch=1, cancel=None):
    """The rules of the chunks, asked one call after the other of a server, with the answers of a file."""
    judge = EndpointJudge(Endpoint("local", server.url_for("/v1"), model, deadline=10.0))
    recorded = RecordedJudge(AnswerStore(file), judge, model)
    return generate_rules(rule_prompts(chunks, batch=batch), recorded, RunLimits(concurrency=1), cancel=cancel)


def scripted(server, *answers):
    """Answer the calls in turn; the last answer repeats."""
    left = list(answers)

    def handler(request):
        answer = left.pop(0) if len(left) > 1 else left[0]
        body = answer if isinstance(answer, dict) else completion(answer)
        return Response(json.dumps(body), content_type="application/json")

    server.expect_request(CHAT).respond_with_handler(handler)


def calls(server):
    return sum(request.path == CHAT for request, _ in server.log)


def generated(server, tmp_path, *answers, chunks=CHUNKS[:1], batch=1, **more):
    scripted(server, *answers)
    return asked_for(server, chunks, tmp_path / "answers.sqlite", batch=batch, **more)


def test_the_request_holds_instruction_example_schema_and_the_chunks(httpserver, tmp_path):
    generated(httpserver, tmp_path, rules_text(rule(0), rule(1)), chunks=CHUNKS[:2], batch=2)
    asked = httpserver.log[0][0].get_json()
    system, user = (message["content"] for message in asked["messages"])
    assert "ONE group" in system
    assert '"armor class 0"' in system  # what the template of the family writes
    assert [entry["title"] for entry in json.loads(user)] == [chunk.title for chunk in CHUNKS[:2]]
    schema = asked["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["rules"]["items"]["properties"]["number"]["enum"] == [1, 2]


def checked_with(found, cases=()):
    return check_proposals(found.proposals, CHUNKS, cases, unread=found.refused)


def test_good_rules_pass_the_check(httpserver, tmp_path):
    found = generated(httpserver, tmp_path, rules_text(*map(rule, range(6))), chunks=CHUNKS, batch=8)
    checked = checked_with(found, [Case(Query("q", "a cleric, ac 3"), {"ac3": 3})])
    assert {identity: one.as_mapping() for identity, one in checked.accepted.items()} == {
        f"ac{n}": rule(n) for n in range(6)
    }
    assert (checked.refused, found.asked) == ((), 1)


TORN = {"contain_one_of": [["cleric"], ["druid"], ["monk"], ["armor class 0"]]}
FAULTS = {
    "truncated": (completion('{"rules": [{"number": 1, "query', "length"), "answer", "cut off at the model's length"),
    "cut JSON that claims to be whole": ('{"rules": [{"number": 1, "query', "answer", "no list of rules"),
    "broken JSON": ('{"rules": [}', "answer", "not valid JSON"),
    "prose": ("I cannot do that.", "answer", "no list of rules"),
    "another object": ('{"answer": 1}', "answer", "no list of rules"),
    "wrong keys around it": ('{"rules": [{"id": 1, "rule": {}}]}', "answer", "other keys"),
    "wrong keys in the rule": (rules_text({"must_contain": ["x"]}), "unreadable", "unknown key"),
    "empty group": (rules_text({"contain_one_of": [["cleric"], []]}), "unreadable", "an empty group"),
    "empty term": (rules_text({"contain_one_of": [[" "]]}), "unreadable", "the empty term"),
    "four groups": (rules_text(TORN), "torn-group", "asks for cleric and druid and monk together"),
    "no rule": ('{"rules": []}', "answer", "gives no rule for it"),
    "another number": ('{"rules": [{"number": 7, "query_must": {"contain": "x"}}]}', "answer", "gives no rule for it"),
    "two rules": (
        json.dumps({"rules": [{"number": 1, "query_must": rule(n)} for n in (0, 1)]}),
        "answer",
        "gives 2 rules for it",
    ),
    "drops what is labelled": (rules_text(rule(5)), "drops-relevant", "no word of: armor class 5 / ac 5"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_faulty_answer_is_refused_with_its_reason_and_nothing_is_stored(httpserver, tmp_path, name):
    answer, kind, says = FAULTS[name]
    found = generated(httpserver, tmp_path, answer)
    checked = checked_with(found, [Case(Query("q", "a cleric, ac 0"), {"ac0": 3})])
    assert checked.accepted == {}
    assert [(one.chunk_id, one.kind) for one in checked.refused] == [("ac0", kind)]
    assert says in checked.refused[0].reason


def test_of_a_mixed_answer_only_the_good_is_kept(httpserver, tmp_path):
    alike = rule(9)
    answer = rules_text(rule(0), alike, alike, TORN, {"contain_one_of": []}, rule(5))
    found = generated(httpserver, tmp_path, answer, chunks=CHUNKS, batch=6)
    checked = checked_with(found)
    assert set(checked.accepted) == {"ac0", "ac5"}
    assert {one.chunk_id: one.kind for one in checked.refused} == {
        "ac1": "siblings-alike",
        "ac2": "siblings-alike",
        "ac3": "torn-group",
        "ac4": "unreadable",
    }


@pytest.mark.parametrize("wrapped", ["```json\n{}\n```", "Here it is: {} Anything else?"])
def test_words_around_the_answer_do_no_harm(httpserver, tmp_path, wrapped):
    found = generated(httpserver, tmp_path, wrapped.replace("{}", rules_text(rule(0))))
    assert found.proposals == {"ac0": rule(0)}


def test_a_chunk_that_needs_no_rule_gets_none(httpserver, tmp_path):
    found = generated(httpserver, tmp_path, rules_text(None))
    assert (found.proposals, found.refused) == ({}, ())


def test_what_the_endpoint_refuses_is_unanswered_and_asked_again(httpserver, tmp_path):
    httpserver.expect_ordered_request(CHAT).respond_with_json({"error": {"message": "no"}}, status=403)
    httpserver.expect_ordered_request(CHAT).respond_with_json(completion(rules_text(rule(0))))
    journal = tmp_path / "answers.sqlite"
    first = asked_for(httpserver, CHUNKS[:1], journal, "small-model")
    assert "status 403" in first.unanswered["ac0"]
    again = asked_for(httpserver, CHUNKS[:1], journal, "small-model")
    assert (again.proposals, again.unanswered) == ({"ac0": rule(0)}, {})


def test_a_second_run_asks_nothing_and_a_bad_answer_is_not_paid_for_again(httpserver, tmp_path):
    generated(httpserver, tmp_path, "prose", rules_text(rule(1)), chunks=CHUNKS[:2])
    again = asked_for(httpserver, CHUNKS[:2], tmp_path / "answers.sqlite", "small-model")
    assert calls(httpserver) == 2
    assert (again.asked, again.kept) == (0, 2)
    assert again.proposals == {"ac1": rule(1)}
    assert [one.chunk_id for one in again.refused] == ["ac0"]


def test_another_model_or_another_text_is_asked_anew(httpserver, tmp_path):
    generated(httpserver, tmp_path, rules_text(rule(0)))
    journal = tmp_path / "answers.sqlite"
    assert asked_for(httpserver, CHUNKS[:1], journal, "large-model").asked == 1
    changed = [Chunk("ac0", CHUNKS[0].title, "now with a text")]
    assert asked_for(httpserver, changed, journal, "small-model").asked == 1


def test_cancelling_keeps_what_was_answered(httpserver, tmp_path):
    class AfterTwo(Event):
        def is_set(self):
            return calls(httpserver) == 2

    scripted(httpserver, *(rules_text(rule(n)) for n in range(6)))
    journal = tmp_path / "answers.sqlite"
    with pytest.raises(Cancelled, match="stopped after 2 of 6 calls"):
        asked_for(httpserver, CHUNKS, journal, cancel=AfterTwo())
    done = asked_for(httpserver, CHUNKS, journal)
    assert (done.asked, done.kept) == (4, 2)
    assert set(done.proposals) == {chunk.id for chunk in CHUNKS}


def test_a_killed_run_resumes_and_repeats_no_paid_call(httpserver, tmp_path):
    asked, answered, third, go_on = [], [], threading.Event(), threading.Event()

    def handler(request):
        title = json.loads(request.get_json()["messages"][1]["content"])[0]["title"]
        asked.append(title)
        if len(asked) == 3:
            third.set()
            go_on.wait(30)  # the process is killed while this call is open: it never gets the answer
            return Response(status=503)
        answered.append(title)
        text = rules_text(rule(int(title.rsplit(" ", 1)[1])))
        return Response(json.dumps(completion(text)), content_type="application/json")

    httpserver.expect_request(CHAT).respond_with_handler(handler)
    journal = tmp_path / "answers.sqlite"
    command = [sys.executable, str(HERE / "generating.py"), httpserver.url_for("/v1"), str(journal)]
    process = subprocess.Popen(command, cwd=HERE.parents[1], env={"PYTHONPATH": str(HERE.parents[1])})
    try:
        assert third.wait(60)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        go_on.set()
    assert process.returncode == -signal.SIGKILL
    done = asked_for(httpserver, CHUNKS, journal, "small-model")
    assert (done.asked, done.kept) == (4, 2)
    assert set(done.proposals) == {chunk.id for chunk in CHUNKS}
    assert sorted(answered) == sorted(set(answered))  # every answer was paid for once
