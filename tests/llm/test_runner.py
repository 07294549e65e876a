"""Runs over many prompts: limits, progress, cancelling, resuming, being killed."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event, Lock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer
from werkzeug import Response

from rag_core.errors import InputError
from rag_core.llm.answer import Answer, Price
from rag_core.llm.judge import RecordedJudge
from rag_core.llm.prompt import Prompt
from rag_core.llm.run import RunLimits, answer_all, preview
from rag_core.llm.store import AnswerStore
from rag_core.types import Query

ROOT = Path(__file__).parents[2]


def Ask(text):  # noqa: N802
    """A prompt of 100 tokens by estimate, and no more by its bytes."""
    content = text.ljust(400)
    return Prompt(({"role": "user", "content": content},), Query("q", "?"))


class Counting:
    """Answers with the prompt's text after a pause; fails for the texts in `bad`."""

    name = "counting"

    def __init__(self, price=None, bad=(), pause=0.0, real_tokens=100, unclear=0):
        self.price, self.bad, self.pause, self.real_tokens = price, set(bad), pause, real_tokens
        self.unclear = unclear
        self.asked, self._lock, self.now, self.at_once = [], Lock(), 0, 0

    def stored(self, prompt, model):
        return False

    def most(self, prompt):
        return self.price and self.price.of(prompt.tokens, 0)

    def ask(self, prompts, *, seconds, concurrency, model, cache):
        (prompt,) = prompts
        text = prompt.messages[0]["content"].strip()
        with self._lock:
            self.asked.append(text)
            self.now += 1
            self.at_once = max(self.at_once, self.now)
        time.sleep(self.pause)
        with self._lock:
            self.now -= 1
        if text in self.bad:
            return [Answer(error="broken", unclear=self.unclear)]
        cost = self.price.of(self.real_tokens, 0) if self.price else None
        return [Answer(text, prompt_tokens=self.real_tokens, completion_tokens=0, cost=cost)]


def prompts_of(count):
    return [Ask(f"p{at}") for at in range(count)]


UNIT = Price(1000.0, 0.0)  # 100 tokens cost 0.1


def test_every_prompt_is_asked_once_and_counted():
    judge = Counting(UNIT)
    done = answer_all([(judge, prompts_of(50))])
    assert Counter(judge.asked) == Counter(f"p{at}" for at in range(50))
    assert (done.total, done.done, done.failed, done.stopped) == (50, 50, 0, "")
    assert done.spent == pytest.approx(5.0)
    assert done.prompt_tokens == 5000


def test_concurrency_is_a_limit_that_is_used():
    judge = Counting(pause=0.02)
    answer_all([(judge, prompts_of(20))], RunLimits(concurrency=3))
    assert judge.at_once == 3


def test_an_unknown_price_makes_an_unknown_spend():
    assert answer_all([(Counting(), prompts_of(3))]).spent is None


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_budget_of_one_stops_at_one(concurrency):
    judge = Counting(UNIT, pause=0.002)
    done = answer_all([(judge, prompts_of(100))], RunLimits(concurrency=concurrency, budget=1.0))
    assert done.spent == pytest.approx(1.0)
    assert len(judge.asked) == 10
    assert "the budget of 1 is reached" in done.stopped


def test_calls_that_turn_out_cheaper_leave_budget_for_more():
    judge = Counting(UNIT, real_tokens=50, pause=0.002)
    done = answer_all([(judge, prompts_of(100))], RunLimits(concurrency=8, budget=1.0))
    assert done.spent <= 1.0
    assert len(judge.asked) == 19  # 18 cost 0.9, then one estimated at 0.1 fits, then none


@given(
    costs=st.lists(st.integers(0, 100), min_size=1, max_size=60),
    budget=st.floats(0.05, 3.0),
    concurrency=st.integers(1, 6),
    every=st.integers(2, 9),
)
def test_the_budget_is_never_exceeded_not_even_by_calls_that_ended_unclear(costs, budget, concurrency, every):
    """Whatever calls cost below their largest price, and though a failed one may have been paid for in full."""

    class Varying(Counting):
        def ask(self, prompts, **how):
            (answer,) = super().ask(prompts, **how)
            at = int(prompts[0].messages[0]["content"].strip()[1:])
            if at % every == 0:
                return [Answer(error="too late", unclear=1)]
            return [replace(answer, cost=self.price.of(costs[at], 0))]

    judge = Varying(UNIT)
    done = answer_all([(judge, prompts_of(len(costs)))], RunLimits(concurrency=concurrency, budget=budget))
    unclear = sum(int(text[1:]) % every == 0 for text in judge.asked)
    assert done.spent + 0.1 * unclear <= budget + 1e-9


def test_a_limit_of_one_call_makes_one():
    judge = Counting()
    done = answer_all([(judge, prompts_of(9))], RunLimits(max_calls=1))
    assert len(judge.asked) == 1
    assert "the limit of 1 calls is reached" in done.stopped


def test_a_budget_needs_a_price():
    with pytest.raises(InputError, match="price is not known"):
        answer_all([(Counting(), prompts_of(1))], RunLimits(budget=1.0))


@pytest.mark.parametrize(
    "wrong", [{"concurrency": 0}, {"budget": 0.0}, {"per_second": -1.0}, {"max_calls": 0}, {"seconds_per_call": 0}]
)
def test_limits_that_cannot_be_are_refused(wrong):
    with pytest.raises(InputError):
        RunLimits(**wrong)


def test_failures_are_counted_with_their_reasons_and_do_not_end_the_run():
    done = answer_all([(Counting(UNIT, bad={"p3", "p7"}), prompts_of(20))])
    assert (done.done, done.failed, done.failures) == (20, 2, ("broken",))
    assert done.spent == pytest.approx(1.8)


def test_ten_failures_in_a_row_end_the_run():
    judge = Counting(bad={f"p{at}" for at in range(100)})
    done = answer_all([(judge, prompts_of(100))], RunLimits(concurrency=1))
    assert len(judge.asked) == 10
    assert done.stopped == "10 calls in a row failed: broken"


def test_progress_tells_n_of_total_rate_and_rest():
    told = []
    answer_all([(Counting(UNIT, pause=0.001), prompts_of(5))], RunLimits(concurrency=1), on_progress=told.append)
    assert [one.done for one in told] == [1, 2, 3, 4, 5]
    assert told[-1].rate > 0
    assert told[-1].remaining_seconds == 0


def test_cancelling_stops_after_the_calls_under_way():
    cancel, judge = Event(), Counting()

    def tell(progress):
        if progress.done == 5:
            cancel.set()

    done = answer_all([(judge, prompts_of(100))], RunLimits(concurrency=1), on_progress=tell, cancel=cancel)
    assert len(judge.asked) == 5
    assert done.stopped == "cancelled"


def test_a_judge_that_raises_ends_the_run_with_its_error():
    class Broken(Counting):
        def ask(self, prompts, **options):
            raise RuntimeError("bug")

    with pytest.raises(RuntimeError, match="bug"):
        answer_all([(Broken(), prompts_of(5))])


def test_a_run_resumed_asks_only_for_the_rest(tmp_path):
    behind = Counting(UNIT)
    judge = RecordedJudge(AnswerStore(tmp_path / "a.sqlite"), behind, "m")
    answer_all([(judge, prompts_of(20))], RunLimits(max_calls=8))
    done = answer_all([(judge, prompts_of(20))])
    assert (done.cached, done.asked) == (8, 12)
    assert Counter(behind.asked).most_common(1)[0][1] == 1


def test_a_preview_counts_calls_tokens_and_cost_of_what_is_not_stored(tmp_path):
    judge = RecordedJudge(AnswerStore(tmp_path / "a.sqlite"), Counting(UNIT), "m")
    answer_all([(judge, prompts_of(5))])
    ahead = preview([(judge, prompts_of(20))])
    assert (ahead.prompts, ahead.stored, ahead.calls, ahead.prompt_tokens) == (20, 5, 15, 1500)
    assert ahead.cost == pytest.approx(1.5)
    assert preview([(Counting(), prompts_of(2))]).cost is None


CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, str(Path("tests/llm").resolve()))
from test_runner import prompts_of
from rag_core.llm.answer import Price
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.judge import EndpointJudge, RecordedJudge
from rag_core.llm.run import RunLimits, answer_all
from rag_core.llm.store import AnswerStore
folder, address, count = sys.argv[1:]
judge = EndpointJudge(Endpoint("local", address, "m"), Price(1000.0, 1000.0))
judge = RecordedJudge(AnswerStore(Path(folder) / "a.sqlite"), judge, "m")
done = answer_all([(judge, prompts_of(int(count)))], RunLimits(concurrency=4))
print(done.done, done.failed)
"""


def run_apart(folder, server, count, wanted=None):
    """What a run in a process of its own printed; None where it was killed, once `wanted` calls had come in."""
    before = sum(server.asked.values())
    command = [sys.executable, "-c", CHILD, str(folder), server.url_for("/v1"), str(count)]
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True
    ) as child:
        while wanted is not None and child.poll() is None:
            if sum(server.asked.values()) - before >= wanted:
                child.send_signal(signal.SIGKILL)
                return None
            time.sleep(0.001)
        return child.communicate(timeout=250)[0].split()


@pytest.mark.slow
def test_a_run_of_500_killed_ten_times_asks_no_stored_answer_again_and_ends_with_the_same_totals(tmp_path):
    asked = Counter()

    def handler(request):
        text = request.get_json()["messages"][0]["content"]
        asked[text] += 1
        time.sleep(0.02)
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        body = {"choices": [{"finish_reason": "stop", "message": {"content": f"{text} -> KEEP"}}], "usage": usage}
        return Response(json.dumps(body), content_type="application/json")

    dice = random.Random(7)
    with HTTPServer(threaded=True) as server:
        server.asked = asked
        server.expect_request("/v1/chat/completions").respond_with_handler(handler)
        for _ in range(10):  # at most 45 calls each: the run is not done when it is killed for the tenth time
            stored = AnswerStore(tmp_path / "a.sqlite").count()
            before = Counter(asked)
            assert run_apart(tmp_path, server, 500, dice.randint(1, 45)) is None
            again = [text for text, times in asked.items() if before[text] and times > before[text]]
            assert len(again) <= len(before) - stored  # only what was under way when it was killed
        assert run_apart(tmp_path, server, 500) == ["500", "0"]
    store = AnswerStore(tmp_path / "a.sqlite")
    assert store.count() == 500
    assert len(asked) == 500
    assert sum(asked.values()) <= 500 + 10 * 4
    with closing(sqlite3.connect(tmp_path / "a.sqlite")) as connection:
        ((total,),) = connection.execute("SELECT sum(cost) FROM answer")
    assert total == pytest.approx(500 * (100 + 10) / 1000)
