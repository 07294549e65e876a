"""The adapters of docs/take-home.md as they stand there, over an exported file, against the real packages."""

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
def adapter(tmp_path, monkeypatch):
    """The names a marked code block of the document defines, beside an exported filter.py."""
    (tmp_path / "filter.py").write_text(export_filter(PIPELINE), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "filter", raising=False)

    def load(name):
        (code,) = re.findall(rf"<!-- test: {name} -->\n```python\n(.*?)```", DOCUMENT, re.DOTALL)
        names = {"__name__": "adapter"}
        exec(compile(code, "take-home.md", "exec"), names)
        return names, len(code.strip().splitlines())

    yield load
    sys.modules.pop("filter", None)


def vector(text):
    return list(AXES[next((word for word in AXES if word in text), "wolf")])


def test_the_langchain_retriever_keeps_what_the_pipeline_keeps(adapter):
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
    names, _ = adapter("langchain")
    retriever = names["FilteredRetriever"](store=store, score_kind="similarity")
    # Nearest first wolf (distance 0), bear (0.05), forest (0.10), armor (1). The bear's rule is not met; armor lies
    # behind the one eligible gap of 0.9.
    assert [one.page_content for one in retriever.invoke("where is a wolf")] == ["wolf", "forest"]


def test_the_llama_index_post_processor_keeps_what_the_pipeline_keeps(adapter):
    pytest.importorskip("llama_index.core")
    from llama_index.core.schema import NodeWithScore, TextNode

    names, _ = adapter("llama-index")
    nodes = [
        NodeWithScore(node=TextNode(text=text, metadata={"query_must": rule} if rule else {}), score=score)
        for (text, rule), score in zip(TEXTS, (1.0, 0.95, 0.9, 0.0), strict=True)
    ]
    kept = names["ChunkFilter"]().postprocess_nodes(nodes, query_str="where is a wolf")
    assert [one.node.text for one in kept] == ["wolf", "forest"]
    assert kept[0] is nodes[0]


@pytest.mark.parametrize("name", ["langchain", "llama-index"])
def test_an_adapter_is_about_ten_lines(name):
    (code,) = re.findall(rf"<!-- test: {name} -->\n```python\n(.*?)```", DOCUMENT, re.DOTALL)
    written = [line for line in code.splitlines() if line.strip() and "import" not in line]
    assert len(written) <= 10
