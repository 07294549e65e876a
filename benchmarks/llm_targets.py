"""The LLM filter's targets on `api-docs`: a simulated judge behind a scripted endpoint that takes 300 ms a call.

    python -m benchmarks.llm_targets [--queries 20] [--error-rate 0.1]

The answers are the simulated judge's, drawn from the labels; they travel over HTTP, so that calls, waiting and parsing
are those of a real endpoint. Prints per oversampling the share of irrelevant chunks removed (net, against the 25
nearest), the agreement of decisions with labels, precision and recall before and after, and the time the step adds.
Then all calls of the queries in one run at several concurrencies, beside the limit: latency × calls / concurrency.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.parts.pairs import verdict
from rag_core.filters.cutoff import TopK
from rag_core.filters.llm.stage import LLMFilter
from rag_core.judged.trials import figures
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.judge import EndpointJudge, RecordedJudge
from rag_core.llm.run import RunLimits, answer_all
from rag_core.llm.simulated import SimulatedJudge
from rag_core.llm.store import AnswerStore
from rag_core.measure.experiment import run, start_of
from rag_core.project.asking import nearest
from rag_core.project.project import open_project
from rag_core.project.session import Session
from rag_core.stage import Pipeline

LATENCY, LEAST = 0.3, 0.9
MULTIPLIERS = (1.2, 1.6, 2.0)


class Server(ThreadingHTTPServer):
    """A scripted endpoint: it answers what was prepared for a message, after the latency."""

    request_queue_size = 128
    daemon_threads = True
    prepared: dict[str, str]


class Answering(BaseHTTPRequestHandler):
    """One call."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Wait, then give the prepared answer."""
        sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(LATENCY)
        text = self.server.prepared[json.dumps(sent["messages"])]
        choice = {"finish_reason": "stop", "message": {"content": text}}
        body = json.dumps({"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def scripted_endpoint() -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), Answering)
    server.prepared = {}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()


@dataclass
class ThroughHttp:
    """Asks the endpoint, for which the simulated judge's answers are prepared."""

    simulated: SimulatedJudge
    endpoint: EndpointJudge
    server: Server
    price: Any = field(default=None)

    @property
    def name(self) -> str:
        """Says what it is."""
        return f"{self.simulated.name}, behind a scripted endpoint of {LATENCY * 1000:.0f} ms"

    def stored(self, prompt: Any, model: str) -> bool:
        """Nothing is stored."""
        return False

    def most(self, prompt: Any) -> float:
        """Nothing is paid."""
        return 0.0

    def ask(self, prompts: Sequence[Any], **how: Any) -> list[Any]:
        """The simulated judge's answers, over HTTP."""
        quiet = {**how, "cache": False}
        for prompt, answer in zip(prompts, self.simulated.ask(prompts, **quiet), strict=True):
            self.server.prepared[json.dumps(list(prompt.messages))] = answer.text
        return self.endpoint.ask(prompts, **how)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--queries", type=int, default=20)
    options.add_argument("--error-rate", type=float, default=0.1)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, scripted_endpoint() as server:
        session = Session(open_project("api-docs", Path(folder)))
        bench = nearest(session, 60, session.cases[: chosen.queries])
        address = f"http://127.0.0.1:{server.server_address[1]}/v1"
        endpoint = EndpointJudge(Endpoint("scripted", address, "scripted"))
        judge = ThroughHttp(SimulatedJudge(bench.labels, chosen.error_rate), endpoint, server)
        run(bench.cases[:1], Pipeline((replace(LLMFilter(), judge=judge, chunks=bench.chunks),)))  # loads the client
        baseline = run(bench.cases, Pipeline((TopK(25),)), bench.min_grade)
        before = baseline.summary.means
        print(f"{len(bench.cases)} queries of api-docs; {judge.name}; before: the 25 nearest")
        print(f"  before          SetP {before['SetP']:.3f}  SetR {before['SetR']:.3f}  SetF {before['SetF']:.3f}")
        for multiplier in MULTIPLIERS:
            stage = replace(LLMFilter(oversample_multiplier=multiplier), judge=judge, chunks=bench.chunks)
            report = run(bench.cases, Pipeline((stage,)), bench.min_grade)
            shown = figures(report, baseline, stage.concurrency)
            after = report.summary.means
            added = sorted(outcome.result.steps[-1].milliseconds / 1000 for outcome in report.outcomes)
            print(
                f"  oversample {multiplier:<4} SetP {after['SetP']:.3f}  SetR {after['SetR']:.3f}"
                f"  SetF {after['SetF']:.3f}"
                f"  irrelevant removed {shown['irrelevant_removed']:.0%}  agreement {shown['agreement']:.0%}"
                f"  added median {added[len(added) // 2]:.2f} s, most {added[-1]:.2f} s"
                f"  fallbacks {report.summary.queries_fallback}"
            )
        prompts = [prompt for case in bench.cases for prompt in LLMFilter().prompts(start_of(case))]
        judge.ask(prompts, seconds=60.0, concurrency=32, model="", cache=False)  # prepares the answers
        for concurrency in (4, 8, 16, 32):
            store = AnswerStore(Path(folder) / f"{concurrency}.sqlite")
            began = time.perf_counter()
            done = answer_all(
                [(RecordedJudge(store, endpoint, "scripted"), prompts)], RunLimits(concurrency=concurrency)
            )
            taken, limit = time.perf_counter() - began, LATENCY * len(prompts) / concurrency
            assert not done.failed
            said = verdict(limit / taken >= LEAST, f"{LEAST:g} of the limit") if concurrency == 8 else ""
            share = f"{limit / taken:.2f} of the limit {limit:.2f} s"
            print(f"  {len(prompts)} calls, {concurrency:>2} at once: {taken:6.2f} s, {share}{said}", flush=True)


if __name__ == "__main__":
    main()
