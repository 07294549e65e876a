"""The adapters of an exported file, against the real packages."""

import importlib
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

    def load(name):
        (tmp_path / "filter.py").write_text(export_filter(PIPELINE, name), encoding="utf-8")
        return importlib.import_module("filter")

    yield load
    sys.modules.pop("filter", None)


def vector(text):
    return list(AXES[next((word for word in AXES if word in text), "wolf")])


def test_the_langchain_retriever_keeps_what_the_pipeline_keeps(exported):
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class Axes(Embeddings):
        def embed_documents(self, texts):
            return [vector(text) for text in texts]

        def embed_query(self, text):
            return vector(text)

    store = InMemoryVectorStore(Axes())
    store.add_documents([Document(text, metadata={"query_must": rule} if rule else {}) for text, rule in TEXTS])
    retriever = exported("langchain").langchain_retriever(store, score_kind="similarity")
    # Nearest first wolf (distance 0), bear (0.05), forest (0.10), armor (1). The bear's rule is not met; armor lies
    # behind the one eligible gap of 0.9.
    assert [one.page_content for one in retriever.invoke("where is a wolf")] == ["wolf", "forest"]


def test_the_llama_index_post_processor_keeps_what_the_pipeline_keeps(exported):
    pytest.importorskip("llama_index.core")
    from llama_index.core.schema import NodeWithScore, TextNode

    nodes = [
        NodeWithScore(node=TextNode(text=text, metadata={"query_must": rule} if rule else {}), score=score)
        for (text, rule), score in zip(TEXTS, (1.0, 0.95, 0.9, 0.0), strict=True)
    ]
    kept = exported("llamaindex").llamaindex_postprocessor().postprocess_nodes(nodes, query_str="where is a wolf")
    assert [one.node.text for one in kept] == ["wolf", "forest"]
    assert kept[0] is nodes[0]


@pytest.mark.parametrize(("block", "name"), [("langchain", "langchain"), ("llama-index", "llamaindex")])
def test_what_the_document_imports_is_in_the_file(block, name, exported):
    (code,) = re.findall(rf"<!-- test: {block} -->\n```python\n(.*?)```", DOCUMENT, re.DOTALL)
    (function,) = re.findall(r"from filter import (\w+)", code)
    assert callable(getattr(exported(name), function))
