"""Questions by a model on a scripted server: what is shown, what is refused and why, and that nothing is paid twice."""

import json
import re
from threading import Event

import pytest
from werkzeug import Response

from rag_core.judged.questions import ask_for_questions, asked_for, question_prompt, read_question, refusal
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.judge import EndpointJudge, RecordedJudge
from rag_core.llm.run import RunLimits
from rag_core.llm.store import AnswerStore
from rag_core.types import Chunk

TEXT = "The small machine wants {} grams of finely ground coffee for each double shot that it draws."
CHUNKS = [Chunk(f"dose-{size}", f"Coffee dose of the E {size}", TEXT.format(size)) for size in (14, 16, 18)]


@pytest.fixture
def judge(httpserver, tmp_path):
    """A judge whose scripted server asks for the number that the asked chunk holds, and keeps what it was sent."""

    def answer(request):
        sent = request.get_json()["messages"][1]["content"]
        title = re.search(r"ASKED (.*)\]", sent).group(1)
        said = json.dumps({"question": f"How much coffee goes into the {title.split('the ')[1]}?"})
        body = {"choices": [{"message": {"content": said}, "finish_reason": "stop"}], "model": "scripted-questions"}
        return Response(json.dumps(body), content_type="application/json")

    httpserver.expect_request("/v1/chat/completions").respond_with_handler(answer)
    endpoint = Endpoint("scripted", httpserver.url_for("/v1"), "scripted-questions", deadline=10.0)
    return RecordedJudge(AnswerStore(tmp_path / "answers.sqlite"), EndpointJudge(endpoint), endpoint.model)


def test_each_chunk_is_asked_for_once_beside_those_like_it_and_is_the_label(httpserver, judge):
    prompts = [question_prompt(one, [two for two in CHUNKS if two is not one]) for one in CHUNKS]
    families = {one.id: "doses" for one in CHUNKS}
    found = ask_for_questions(prompts, judge, RunLimits(concurrency=1), families=families)
    assert [one.query.text for one in found.made] == [
        f"How much coffee goes into the E {size}?" for size in (14, 16, 18)
    ]
    assert [one.grades for one in found.made] == [{one.id: 3} for one in CHUNKS]
    for one in found.made:
        assert (one.query.made_from, one.query.tags) == ("model", ("generated",))
        assert (one.query.metadata["family"], one.query.metadata["model"]) == ("model: doses", "scripted-questions")
    sent = httpserver.log[0][0].get_json()
    shown = sent["messages"][1]["content"]
    assert shown.count("OTHER") == 2
    assert all(f"| {one.text}" in shown for one in CHUNKS)
    assert sent["response_format"]["json_schema"]["schema"]["properties"] == {"question": {"type": "string"}}
    again = ask_for_questions(prompts, judge, RunLimits(concurrency=1), families=families)
    assert again.made == found.made
    assert (again.run.asked, again.run.cached, len(httpserver.log)) == (0, 3, 3)


def test_a_run_that_was_stopped_goes_on_where_it_was(httpserver, judge):
    prompts = [question_prompt(one, []) for one in CHUNKS]
    first = ask_for_questions(prompts, judge, RunLimits(concurrency=1, max_calls=1))
    assert (len(first.made), set(first.unanswered)) == (1, {"dose-16", "dose-18"})
    stopped = Event()
    stopped.set()
    assert ask_for_questions(prompts, judge, cancel=stopped).run.cancelled
    assert len(ask_for_questions(prompts, judge).made) == 3
    assert len(httpserver.log) == 3


def test_the_first_chunks_stay_when_more_are_wanted_and_short_or_repeated_texts_are_left_out():
    chunks = [Chunk(f"c{at}", "A title", f"{TEXT.format(at)} {at}") for at in range(20)]
    some = asked_for(
        [*chunks, Chunk("twin", "Another", chunks[0].text), Chunk("short", "Short", "Too few words.")], 100
    )
    assert len(some) == 20
    assert "short" not in {one.id for one in some}
    assert asked_for(chunks, 5) == asked_for(list(reversed(chunks)), 12)[:5]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("I would rather talk.", "no object"),
        ('{"question": 3}', "no object"),
        ('{"question": "How?", "grade": 3}', "no object"),
        ('{"question": " "}', "nothing to ask for"),
    ],
)
def test_an_answer_of_another_form_is_refused(answer, reason):
    said, problem = read_question(answer)
    assert said == ""
    assert reason in problem
    assert "cut off" in read_question('{"question": "How much', "length")[1]


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("How many grams does the E 14 need?", ""),
        ("Wie viel Kaffee braucht die E 14?", ""),
        ("Coffee for the E 14 is needed.", "no question"),
        ("Why?", "no question"),
        ("Who says it wants 14 grams of finely ground coffee for each double shot?", "copies"),
        ("What does this passage say of grams?", "speaks of the passage"),
        ("How much is it in dose-14?", "names the chunk's id"),
        ("How strong is the coffee dose of the E 14 after an hour?", "whole title"),
        ("What is the dose of coffee?", "nothing but the chunk's title"),
        (f"How much {'very ' * 80}ground coffee is it?", "longer"),
    ],
)
def test_a_question_that_cannot_be_used_is_refused_with_its_reason(question, reason):
    found = refusal(question, CHUNKS[0])
    assert reason in found if reason else found == ""


def test_an_id_that_the_text_itself_says_may_be_asked_for():
    chunk = Chunk("fireball", "Fireball", "Fireball: a burst of flame that fills the room with smoke and harm.")
    assert refusal("How wide does a fireball burn?", chunk) == ""
