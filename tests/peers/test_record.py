"""The recorder inside LangChain, LlamaIndex and OpenTelemetry, against the real packages."""

from rag_core.records import load_lists
from rag_core.sources.winnow_record import ListRecorder

TEXTS = ["wolves hunt", "bears sleep"]


def read(path):
    (case,) = load_lists(path)
    return case.query.text, [(hit.chunk.id, hit.scores) for hit in case.candidates.hits]


def test_a_langchain_callback_records_what_a_retriever_brings(tmp_path):
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Fixed(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document(text, id=f"c{n}", metadata={"relevance_score": 1 - n / 2}) for n, text in enumerate(TEXTS)]

    recorder = ListRecorder(tmp_path / "l.jsonl")
    Fixed().invoke("who hunts?", config={"callbacks": [recorder.langchain()]})
    assert recorder.flush()
    assert read(tmp_path / "l.jsonl") == ("who hunts?", [("c0", {"score": 1.0}), ("c1", {"score": 0.5})])


def test_a_llama_index_handler_records_what_a_retriever_brings(tmp_path):
    from llama_index.core.instrumentation import get_dispatcher
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    class Fixed(BaseRetriever):
        def _retrieve(self, query_bundle):
            return [NodeWithScore(node=TextNode(text=t, id_=f"c{n}"), score=1 - n / 2) for n, t in enumerate(TEXTS)]

    recorder = ListRecorder(tmp_path / "l.jsonl")
    dispatcher = get_dispatcher()
    handler = recorder.llamaindex()
    dispatcher.add_event_handler(handler)
    try:
        Fixed().retrieve("who hunts?")
    finally:
        dispatcher.event_handlers.remove(handler)
    assert recorder.flush()
    assert read(tmp_path / "l.jsonl") == ("who hunts?", [("c0", {"score": 1.0}), ("c1", {"score": 0.5})])


def test_an_exporter_records_retriever_spans_alone(tmp_path):
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    recorder = ListRecorder(tmp_path / "l.jsonl")
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(recorder.opentelemetry()))
    tracer = provider.get_tracer("test")
    for kind in ("LLM", "RETRIEVER"):
        with tracer.start_as_current_span("s") as span:
            span.set_attributes({"openinference.span.kind": kind, "input.value": "who hunts?"})
            for n, text in enumerate(TEXTS):
                start = f"retrieval.documents.{n}.document"
                span.set_attributes({f"{start}.id": f"c{n}", f"{start}.content": text, f"{start}.score": 1 - n / 2})
    assert recorder.flush()
    assert read(tmp_path / "l.jsonl") == ("who hunts?", [("c0", {"score": 1.0}), ("c1", {"score": 0.5})])
