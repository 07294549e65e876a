"""A run of 500 questions stays small, whatever the size of the answers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

ROOT = Path(__file__).parents[2]
LIMIT_MB = 500
STATUS = Path("/proc/self/status")  # getrusage would also count what the parent held when it started the child
CHILD = """
import re, sys
from pathlib import Path
sys.path.insert(0, str(Path("tests/llm").resolve()))
from test_runner import prompts_of
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.judge import EndpointJudge, RecordedJudge
from rag_core.llm.run import RunLimits, answer_all
from rag_core.llm.store import AnswerStore
folder, address = sys.argv[1:]
judge = EndpointJudge(Endpoint("local", address, "m", deadline=60.0))
store = AnswerStore(Path(folder) / "a.sqlite")
calls = [(RecordedJudge(store, judge, "m"), prompts_of(500))]
done = answer_all(calls, RunLimits(concurrency=8, seconds_per_call=60.0))
peak = int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) // 1024
print(done.done, done.failed, store.count(), peak)
"""


@pytest.mark.slow
@pytest.mark.skipif(not STATUS.exists(), reason="the peak of a process of its own is read from /proc")
@pytest.mark.parametrize(
    ("size", "failed"), [(1_000, 0), (1_900_000, 0), (9_000_000, 250)], ids=["small", "large", "every second too large"]
)
def test_a_run_of_500_questions_stays_under_500_megabytes(tmp_path, size, failed):
    asked = []

    def handler(request):
        asked.append(1)
        server.log.clear()  # it would keep every answer
        long = "x" * (size if size < 2_000_000 or len(asked) % 2 else 10)
        body = {"choices": [{"finish_reason": "stop", "message": {"content": "1 -> KEEP\n" + long}}]}
        return Response(json.dumps(body), content_type="application/json")

    with HTTPServer(threaded=True) as server:
        server.expect_request("/v1/chat/completions").respond_with_handler(handler)
        child = subprocess.run(
            [sys.executable, "-c", CHILD, str(tmp_path), server.url_for("/v1")],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
            timeout=550,
        )
    done, failures, stored, megabytes = map(int, child.stdout.split())
    assert done == 500
    assert failures == pytest.approx(failed, abs=30 if failed else 0)
    assert stored == done - failures
    assert megabytes < LIMIT_MB
