"""Write down what a search brought, where it runs: recorded lists as JSONL, which Winnow reads as they are.

This one file needs the standard library and Python 3.8, nothing of Winnow: copy it into a service. It never raises into
its caller: what cannot be written is counted in `dropped`. Only what is handed over is kept; texts only where `texts`
says so, and `redact` sees every record before it is written.

    recorder = ListRecorder("lists.jsonl", sample=0.1)
    recorder.record("what is a wolf?", [{"id": "c1", "distance": 0.2}], metric="cosine")

    @recorder.watch                        # a function of a question that returns chunks
    chain.invoke(question, config={"callbacks": [recorder.langchain()]})
    Settings.callback_manager / get_dispatcher().add_event_handler(recorder.llamaindex())
    provider.add_span_processor(SimpleSpanProcessor(recorder.opentelemetry()))
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import queue
import random
import threading
import time
from typing import Any

SCORES = ("distance", "similarity", "bm25", "rrf", "score", "rerank")


class ListRecorder:
    """A file of recorded lists that grows; one thread writes, whoever records waits for nothing.

    `sample` is the share of questions that is kept; `texts` whether chunks' texts are; `redact` gets each record and
    returns the one to write, or None for none. At `most_bytes` the file becomes `NAME.1` (the one before it goes).
    """

    def __init__(
        self,
        path: Any,
        sample: float = 1.0,
        texts: bool = False,
        redact: Any = None,
        waiting: int = 1000,
        most_hits: int = 200,
        most_text: int = 20_000,
        most_bytes: int = 100_000_000,
    ) -> None:
        self.path, self.sample, self.texts, self.redact = os.fspath(path), sample, texts, redact
        self.most_hits, self.most_text, self.most_bytes = most_hits, most_text, most_bytes
        self.written = self.dropped = 0
        self._queue: queue.Queue[Any] = queue.Queue(maxsize=waiting)
        self._started = False
        self._lock = threading.Lock()

    def record(self, query: str, hits: Any, metric: str = "", order: str = "", **about: Any) -> None:
        """Keep one list, best first: mappings with `id` and a score; `about` is kept beside the question."""
        try:
            if random.random() >= self.sample:
                return
            identity = f"{time.time_ns():x}-{os.getpid()}-{random.randrange(1 << 30):x}"
            record = {"version": 1, "id": identity, "query": str(query)[: self.most_text], "at": round(time.time(), 3)}
            record.update(
                {key: value for key, value in (("metric", metric), ("order", order), *about.items()) if value}
            )
            record["candidates"] = [self._hit(hit, rank) for rank, hit in enumerate(list(hits)[: self.most_hits], 1)]
            self._queue.put_nowait(record)
            self._start()
        except Exception:  # a service must not fail because its log does
            self._drop()

    def _hit(self, hit: Any, rank: int) -> dict[str, Any]:
        entry = {str(key): value for key, value in hit.items() if self.texts or key not in ("text", "title")}
        text = str(hit.get("text") or "")
        entry["id"] = str(hit.get("id") or _hash(text) if (hit.get("id") or text) else rank)
        if self.texts and text:
            entry["text"] = text[: self.most_text]
        if not any(entry.get(name) is not None for name in SCORES):
            entry["score"] = 1 / rank
        return entry

    def _drop(self) -> None:
        with self._lock:  # callers and the writer count at once
            self.dropped += 1

    def _start(self) -> None:
        with self._lock:
            if not self._started:
                self._started = True
                threading.Thread(target=self._write, name="winnow-record", daemon=True).start()

    def _write(self) -> None:
        while True:
            record = self._queue.get()
            try:
                if self.redact is not None:
                    record = self.redact(record)
                if record is not None:
                    line = json.dumps(record, ensure_ascii=False, default=str) + "\n"
                    self._rotate(len(line))
                    with open(self.path, "a", encoding="utf-8", errors="replace") as file:
                        file.write(line)
                    self.written += 1
            except Exception:  # a full disk, a value that no JSON holds
                self._drop()
            finally:
                self._queue.task_done()

    def _rotate(self, more: int) -> None:
        try:
            if os.path.getsize(self.path) + more > self.most_bytes:
                os.replace(self.path, self.path + ".1")
        except FileNotFoundError:
            return

    def flush(self, seconds: float = 10.0) -> bool:
        """Wait until all that was recorded stands in the file; False where that takes longer."""
        end = time.monotonic() + seconds
        while self._queue.unfinished_tasks and time.monotonic() < end:
            time.sleep(0.005)
        return not self._queue.unfinished_tasks

    # ---------------------------------------------------------------- where lists come by

    def watch(self, function: Any) -> Any:
        """The function, whose first argument is the question and whose answer is a list of chunks, recorded."""

        @functools.wraps(function)
        def watched(query: Any, *places: Any, **names: Any) -> Any:
            answer = function(query, *places, **names)
            try:
                self.record(query, [_hit_of(one) for one in answer])
            except Exception:  # an answer of another form
                self._drop()
            return answer

        return watched

    def langchain(self) -> Any:
        """A LangChain callback handler that records what retrievers bring."""
        from langchain_core.callbacks import BaseCallbackHandler  # theirs, where this is called

        recorder = self
        asked: dict[Any, str] = {}

        class Handler(BaseCallbackHandler):
            def on_retriever_start(self, serialized: Any, query: str, *, run_id: Any, **more: Any) -> None:
                if len(asked) < 10_000:
                    asked[run_id] = query

            def on_retriever_end(self, documents: Any, *, run_id: Any, **more: Any) -> None:
                recorder.record(asked.pop(run_id, ""), [_hit_of(one) for one in documents])

            def on_retriever_error(self, error: BaseException, *, run_id: Any, **more: Any) -> None:
                asked.pop(run_id, None)

        return Handler()

    def llamaindex(self) -> Any:
        """A LlamaIndex event handler that records what retrievers bring."""
        from llama_index.core.instrumentation.event_handlers import BaseEventHandler  # theirs

        recorder = self

        class Handler(BaseEventHandler):
            @classmethod
            def class_name(cls) -> str:
                return "WinnowRecorder"

            def handle(self, event: Any, **more: Any) -> None:
                if type(event).__name__ == "RetrievalEndEvent":
                    question = getattr(event.str_or_query_bundle, "query_str", event.str_or_query_bundle)
                    recorder.record(question, [_hit_of(one) for one in event.nodes])

        return Handler()

    def opentelemetry(self) -> Any:
        """An OpenTelemetry span exporter that records OpenInference retriever spans."""
        from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult  # theirs

        recorder = self

        class Exporter(SpanExporter):
            def export(self, spans: Any) -> Any:
                for span in spans:
                    attributes = dict(span.attributes or {})
                    if attributes.get("openinference.span.kind") == "RETRIEVER":
                        recorder.record(str(attributes.get("input.value", "")), list(_span_documents(attributes)))
                return SpanExportResult.SUCCESS

        return Exporter()


def _hit_of(one: Any) -> dict[str, Any]:
    """A chunk of LangChain, LlamaIndex or a mapping, as a mapping; a score stands under its own name or `score`."""
    if isinstance(one, dict):
        return dict(one)
    if isinstance(one, (tuple, list)) and len(one) == 2:
        return {**_hit_of(one[0]), "score": float(one[1])}
    if isinstance(one, str):
        return {"text": one}
    if hasattr(one, "node"):
        row = {"id": one.node.node_id, "text": one.node.get_content()}
        return row if one.score is None else {**row, "score": float(one.score)}
    metadata = dict(one.metadata or {})
    identity = getattr(one, "id", None) or metadata.get("id")
    row = {"id": identity, "text": one.page_content, "title": metadata.get("title")}
    score = metadata.get("relevance_score", metadata.get("score"))
    return row if score is None else {**row, "score": float(score)}


def _span_documents(attributes: dict[str, Any]) -> Any:
    start = "retrieval.documents."
    places = sorted({int(key[len(start) :].split(".")[0]) for key in attributes if key.startswith(start)})
    for place in places:
        found = {
            name: attributes.get(f"{start}{place}.document.{key}")
            for name, key in (("id", "id"), ("text", "content"), ("score", "score"))
        }
        yield {key: value for key, value in found.items() if value is not None}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
