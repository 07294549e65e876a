"""The LLM filter against a scripted endpoint that takes 300 ms per call: 100 queries with 40 candidates each.

Prints wall time beside calls one after the other and beside the limit, latency × calls / concurrency; then the same
run again from stored answers. Then the whole step of single queries: the time it adds.
"""

from __future__ import annotations

import json
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from rag_core.filters.llm import LLMFilter
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.judge import EndpointJudge, RecordedJudge
from rag_core.llm.run import RunLimits, answer_all
from rag_core.llm.store import AnswerStore
from rag_core.types import Candidates, Chunk, Hit, Query

LATENCY = 0.3
QUERIES, CANDIDATES = 100, 40


class Scripted(BaseHTTPRequestHandler):
    """Keeps every fourth candidate, after a pause."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer after the latency."""
        text = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][-1]["content"]
        time.sleep(LATENCY)
        said = [
            {"id": number, "action": "DISCARD" if number % 4 else "KEEP"}
            for number in range(1, text.count(" end of ") + 1)
        ]
        content = json.dumps({"decisions": said})
        body = json.dumps({"choices": [{"finish_reason": "stop", "message": {"content": content}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


class Server(ThreadingHTTPServer):
    """Takes many connections at once."""

    request_queue_size = 128
    daemon_threads = True


@contextmanager
def scripted_endpoint() -> Iterator[Endpoint]:
    server = Server(("127.0.0.1", 0), Scripted)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield Endpoint("scripted", f"http://127.0.0.1:{server.server_address[1]}/v1", "scripted")
    finally:
        server.shutdown()


def lists() -> list[Candidates]:
    dice = random.Random(1)
    found = []
    for number in range(QUERIES):
        chunks = [
            Chunk(f"q{number}c{at}", f"Title {at}", " ".join(f"w{dice.randrange(999)}" for _ in range(60)))
            for at in range(CANDIDATES)
        ]
        hits = tuple(Hit(chunk, rank, {"distance": 0.1 + 0.01 * rank}) for rank, chunk in enumerate(chunks, 1))
        found.append(Candidates(Query(f"q{number}", f"question {number}"), hits))
    return found


def timed_run(prompts: list, endpoint: Endpoint, concurrency: int, path: Path) -> tuple[float, float]:
    """Seconds of a first run and of a second one on its stored answers."""
    judge = RecordedJudge(AnswerStore(path), EndpointJudge(endpoint), endpoint.model)
    seconds = []
    for _ in range(2):
        started = time.perf_counter()
        done = answer_all([(judge, prompts)], RunLimits(concurrency=concurrency))
        seconds.append(time.perf_counter() - started)
        assert done.failed == 0
    return seconds[0], seconds[1]


def main() -> None:
    stage = LLMFilter()
    started = time.perf_counter()
    prompts = [prompt for candidates in lists() for prompt in stage.prompts(candidates)]
    made = time.perf_counter() - started
    print(f"{QUERIES} queries x {CANDIDATES} candidates: {len(prompts)} prompts, made in {made:.2f} s")
    with scripted_endpoint() as endpoint, tempfile.TemporaryDirectory() as folder:
        warm = replace(stage, judge=EndpointJudge(endpoint))
        warm(lists()[0])
        sequential = LATENCY * len(prompts)
        print("concurrency   wall s   limit s   of limit   of sequential   stored, s")
        for concurrency in (4, 8, 16, 32):
            wall, again = timed_run(prompts, endpoint, concurrency, Path(folder) / f"{concurrency}.sqlite")
            limit = sequential / concurrency
            print(
                f"{concurrency:>11}   {wall:6.2f}   {limit:7.2f}   {wall / limit:8.2f}   {wall / sequential:13.3f}"
                f"   {again:9.3f}"
            )
        added = []
        for candidates in lists()[:20]:
            started = time.perf_counter()
            after = warm(candidates)
            added.append(time.perf_counter() - started)
            assert not after.fallbacks
        calls = len(stage.prompts(lists()[0]))
        rounds = -(-calls // stage.concurrency) * LATENCY
        middle = sorted(added)[len(added) // 2]
        print(f"one query, {calls} calls, {stage.concurrency} at once: median {middle:.2f} s, limit {rounds:.2f} s")


if __name__ == "__main__":
    main()
