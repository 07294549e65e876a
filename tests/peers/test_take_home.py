"""The adapters of an exported file, against the real packages."""

import asyncio
import importlib
import json
import re
import sys
from pathlib import Path

import pytest

from rag_core.export import export_filter
from rag_core.spec import parse_pipeline

DOCUMENT = (Path(__file__).parents[2] / "docs" / "take-home.md").read_text(encoding="utf-8")
PIPELINE = parse_pipeline(["QueryMust", {"AdaptiveGap": {"min_results": 1}}, {"TopK": {"k": 3}}])
AXES = {"wolf": (1.0, 0.0, 0.0), "forest": (0.9, 0.44, 0.0), "armor": (0.0, 1.0, 0.0), "bear": (0.95, 0.3, 0.0)}
TEXTS = [
    ("wolf", None),
    ("bear", {"contain_one_of": [["bear"]]}),
    ("forest", '{"contain_one_of": [["wolf", "wolves"]]}'),
    ("armor", None),
]


@pytest.fixture
def exported(tmp_path, monkeypatch):
    """The module of a file that was exported with an adapter."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "filter", raising=False)

    def load(name, pipeline=PIPELINE, **tuned):
        (tmp_path / "filter.py").write_text(export_filter(pipeline, name, **tuned), encoding="utf-8")
        return importlib.import_module("filter")

    yield load
    sys.modules.pop("filter", None)


def vector(text):
    return list(AXES[next((word for word in AXES if word in text), "wolf")])


def embeddings():
    from langchain_core.embeddings import Embeddings

    class Axes(Embeddings):
        def embed_documents(self, texts):
            return [vector(text) for text in texts]

        def embed_query(self, text):
            return vector(text)

    return Axes()


def documents():
    from langchain_core.documents import Document

    flat = [rule if rule is None or isinstance(rule, str) else json.dumps(rule) for _, rule in TEXTS]  # Chroma's are
    return [
        Document(text, metadata={"query_must": rule} if rule else {})
        for (text, _), rule in zip(TEXTS, flat, strict=True)
    ]


def answers(retriever, question):
    """What a chain over a retriever says, called as it is and awaited."""
    from langchain_core.runnables import RunnableLambda, RunnablePassthrough

    chain = {"context": retriever, "question": RunnablePassthrough()} | RunnableLambda(
        lambda given: [one.page_content for one in given["context"]]
    )
    now, later = chain.invoke(question), asyncio.run(chain.ainvoke(question))
    assert now == later
    return now


def test_the_langchain_retriever_keeps_what_the_pipeline_keeps_in_a_chain(exported):
    from langchain_core.vectorstores import InMemoryVectorStore

    store = InMemoryVectorStore(embeddings())
    store.add_documents(documents())
    retriever = exported("langchain").langchain_retriever(store)
    # Nearest first wolf (distance 0), bear (0.05), forest (0.10), armor (1). The bear's rule is not met; armor lies
    # behind the one eligible gap of 0.9.
    assert answers(retriever, "where is a wolf") == ["wolf", "forest"]


def test_squared_l2_of_chroma_is_no_cosine(exported):
    import chromadb
    from langchain_chroma import Chroma

    store = Chroma("default", embeddings(), client=chromadb.EphemeralClient())
    store.add_documents(documents())
    module = exported("langchain", metric="cosine", score="distance")
    with pytest.raises(ValueError, match="l2 scores, expected cosine"):
        module.langchain_retriever(store).invoke("where is a wolf")
    right = Chroma(
        "right", embeddings(), client=chromadb.EphemeralClient(), collection_configuration={"hnsw": {"space": "cosine"}}
    )
    right.add_documents(documents())
    assert answers(module.langchain_retriever(right), "where is a wolf") == ["wolf", "forest"]


def test_the_compressor_cuts_what_a_reranker_scored(exported):
    from langchain_core.documents import Document

    reranked = [
        Document(text, metadata={"relevance_score": score})
        for text, score in zip("abcd", (0.9, 0.8, 0.7, 0.1), strict=True)
    ]
    compressor = exported("langchain", parse_pipeline([{"TopK": {"k": 2}}])).langchain_compressor()
    kept = compressor.compress_documents(reranked, "q")
    assert [one.page_content for one in kept] == ["a", "b"]
    assert [one.page_content for one in asyncio.run(compressor.acompress_documents(reranked, "q"))] == ["a", "b"]


def test_the_llama_index_post_processor_keeps_what_the_pipeline_keeps(exported, monkeypatch):
    from llama_index.core import QueryBundle, Settings
    from llama_index.core.llms import MockLLM
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    nodes = [
        NodeWithScore(node=TextNode(text=text, metadata={"query_must": rule} if rule else {}), score=score)
        for (text, rule), score in zip(TEXTS, (1.0, 0.95, 0.9, 0.0), strict=True)
    ]

    class Fixed(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle):
            return nodes

    processor = exported("llamaindex").llamaindex_postprocessor(metric="cosine")
    assert processor.postprocess_nodes(nodes, query_str="where is a wolf")[0] is nodes[0]
    monkeypatch.setattr(Settings, "_llm", MockLLM())
    synthesizer = get_response_synthesizer(MockLLM(), response_mode=ResponseMode.NO_TEXT)
    engine = RetrieverQueryEngine(Fixed(), synthesizer, node_postprocessors=[processor])
    now, later = engine.query("where is a wolf"), asyncio.run(engine.aquery("where is a wolf"))
    assert [[one.node.text for one in each.source_nodes] for each in (now, later)] == [["wolf", "forest"]] * 2


@pytest.mark.parametrize(("block", "name"), [("langchain", "langchain"), ("llama-index", "llamaindex")])
def test_what_the_document_imports_is_in_the_file(block, name, exported):
    (code,) = re.findall(rf"<!-- test: {block} -->\n```python\n(.*?)```", DOCUMENT, re.DOTALL)
    (function,) = re.findall(r"from filter import (\w+)", code)
    assert callable(getattr(exported(name), function))
