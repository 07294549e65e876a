"""The exported file asks a service's own search again, as the workbench reads on: a live Chroma server, a function."""

import json
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.cli import main
from rag_core.export import export_filter
from rag_core.export.running import ExportedFilter
from rag_core.index.chroma_server import ChromaServer
from rag_core.index.embed import BundledEmbedder
from rag_core.project.project import open_project
from rag_core.project.session import Session
from rag_core.records import read_case
from rag_core.spec import STAGES, parse_pipeline
from rag_core.stage import Pipeline

STRATEGIES = ("deepen", "exclude", "prefilter")
FIELDS = {"title": "heading", "type": "chunk_type", "query_must": "needs"}


def loaded(text):
    """The exported file as a module's names."""
    names = {"__name__": "exported", "__file__": "filter.py"}
    exec(compile(text, "filter.py", "exec"), names)
    return names


def written(rule, number):
    """A rule as stores hold it: JSON, Python's text, the designs' wrapper."""
    return [json.dumps(rule), str(rule), json.dumps({"query_must": rule})][number % 3] if rule else ""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A Chroma server with the demo's chunks under names of its own, connected by its address."""
    workspace = tmp_path_factory.mktemp("workspace")
    demo = Session(open_project("demo", workspace))
    demo.refresh()
    snapshot = demo.source.index.snapshot
    server = ChromaServer(tmp_path_factory.mktemp("chroma"))
    collection = server.client().create_collection(
        "theirs", configuration={"hnsw": {"space": "cosine", "ef_search": 1000}}, embedding_function=None
    )
    chunks = snapshot.chunks
    metadatas = [
        {
            "heading": chunk.title,
            "chunk_type": chunk.type or "-",
            "needs": written(chunk.query_must, number),
            "score": 7,
        }
        for number, chunk in enumerate(chunks)
    ]
    for start in range(0, len(chunks), 300):
        part = slice(start, start + 300)
        ids, texts = [chunk.id for chunk in chunks[part]], [chunk.text for chunk in chunks[part]]
        collection.add(ids=ids, embeddings=snapshot.vectors[part], documents=texts, metadatas=metadatas[part])
    address = [
        "--chroma-url",
        f"http://127.0.0.1:{server.port}",
        "--collection",
        "theirs",
        "--workspace",
        str(workspace),
    ]
    said = [f"{one}={key}" for one, key in FIELDS.items()]
    assert main(["connect", *address, "--model", "bundled", "--map", ",".join(said)]) == 0
    titles = [f"What does it say of {chunk.title}?" for chunk in chunks[:: len(chunks) // 115][:115]]
    yield workspace, collection, [*(case.query.text for case in demo.cases), *titles]
    server.stop()


class Counted:
    """A collection that counts how often it is asked."""

    def __init__(self, collection):
        self.configuration, self.metadata = collection.configuration, collection.metadata
        self.collection, self.asked = collection, 0

    def query(self, **asked):
        self.asked += 1
        return self.collection.query(**asked)


@pytest.mark.parametrize(
    ("strategies", "every"), [(STRATEGIES, 4), *(pytest.param((one,), 1, marks=pytest.mark.slow) for one in STRATEGIES)]
)
def test_over_a_live_chroma_server_it_keeps_what_the_workbench_keeps(store, strategies, every):
    """50 questions, a strategy each in turn; each strategy with all 200 where there is time."""
    workspace, collection, all_questions = store
    questions = all_questions[::every]
    folder = workspace / "eval_sets" / "own"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meta.yaml").write_text("version: 1\nname: own\n")
    (folder / "project.yaml").write_text("version: 1\nname: own\nsource: {kind: collection, name: theirs}\n")
    session = Session(open_project("own", workspace))
    embedder, theirs = BundledEmbedder(), Counted(collection)
    ways = []
    for strategy in strategies:
        refill = {"Requery": {"k": 15, "max_iterations": 4, "strategy": strategy}}
        pipeline = parse_pipeline([{"Dense": {"depth": 15}}, refill, {"AdaptiveGap": {"max_results": 12}}])
        text = export_filter(pipeline, "chroma", *session.scores_of(pipeline), session.record_fields())
        retrieve = loaded(text)["chroma_retriever"](theirs, lambda question: embedder.embed([question])[0])
        ways.append((pipeline, retrieve))
    for question, (pipeline, retrieve) in zip(questions, cycle(ways), strict=False):
        kept = [chunk["id"] for chunk in retrieve(question)]
        assert kept == [hit.chunk.id for hit in session.run(pipeline, session.question(question)).result.hits], question
    assert len(questions) == 200 / every
    assert theirs.asked > 1.5 * len(questions)  # asked again where rules dropped


class Ranked:
    """The workbench's reader over a whole ranking."""

    fingerprint = ""

    def __init__(self, hits):
        self.hits = hits

    def read(self, start, stop):
        return self.hits[start:stop]

    def read_excluding(self, ids, count):
        return tuple(hit for hit in self.hits if hit.chunk.id not in set(ids))[:count]


RULES = [
    None,
    {"contain_one_of": [["ac 3", "armor class 3"]]},
    {"contain_one_of": [["ac 4"]]},
    {"number_in": {"ac": [3]}},
]
rankings = st.lists(st.tuples(st.sampled_from(RULES), st.floats(0, 0.2)), max_size=30)


@given(
    rankings,
    st.sampled_from(STRATEGIES),
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(1, 12),
    st.sampled_from([[], ["AdaptiveGap"], [{"LearnedFilter": {}}]]),
)
def test_any_search_is_read_on_as_the_workbench_reads_on(rows, strategy, k, rounds, depth, behind):
    distances = np.cumsum([step for _, step in rows]).tolist()
    chunks = [
        {
            "id": f"c{at}",
            "distance": distance,
            "title": f"T {at}",
            "text": "…",
            **({"query_must": rule} if rule else {}),
        }
        for at, (distance, (rule, _)) in enumerate(zip(distances, rows, strict=True))
    ]
    refill = {"Requery": {"k": k, "max_iterations": rounds, "strategy": strategy}}
    pipeline = parse_pipeline([{"Dense": {"depth": depth}}, refill, *behind])
    case = read_case({"query": "what hits ac 3?", "candidates": chunks}, "the list", "q")
    reader = Ranked(case.candidates.hits)
    start = replace(case.candidates, hits=reader.read(0, depth), reader=reader, recorded=False)
    stages = [(STAGES[one.name].removeprefix("rag_core."), one.name, one.settings()) for one in pipeline.stages[1:]]
    exported = ExportedFilter(stages, {}, [], depth=depth)
    kept = exported.retrieve(case.query.text, lambda _, count: chunks[:count])
    expected = Pipeline(pipeline.stages[1:])(start)
    assert [chunk["id"] for chunk in kept] == [hit.chunk.id for hit in expected.hits]
    assert all(any(one is chunk for chunk in chunks) for one in kept)


def test_what_a_search_raises_or_gives_wrong_is_said_and_nothing_is_kept_of_it():
    retrieve = loaded(export_filter(parse_pipeline([{"Requery": {"k": 2}}]), metric="cosine"))["retrieve"]
    with pytest.raises(ValueError, match="expected a cosine distance"):
        retrieve("q", lambda question, count: [{"id": "a", "distance": 7.0}])
    with pytest.raises(ConnectionError, match="away"):
        retrieve("q", unreachable)
    with pytest.raises(ValueError, match="expected cosine ones"):
        retrieve("q", lambda question, count: [], metric="l2")
    assert retrieve("q", lambda question, count: []) == []


def unreachable(question, count):
    raise ConnectionError("the store is away")
