"""Somebody's RAG, in their own environment: the same 200 documents in every store, and one function a store."""

import hashlib
import os
import tempfile

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

WIDTH = 16
DOCUMENTS = [f"document {n} says {['wolf', 'bear', 'owl', 'toad'][n % 4]} {n * n}" for n in range(200)]
IDS = [f"d{n:03}" for n in range(200)]
QUERIES = [f"question {n} about {['wolf', 'bear', 'owl'][n % 3]}" for n in range(50)]


def vector(text):
    """A vector of a text that is neither of unit length nor near another's."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(0.2, 1, WIDTH).astype(np.float32)


class Hashed(Embeddings):
    def embed_documents(self, texts):
        return [vector(text).tolist() for text in texts]

    def embed_query(self, text):
        return vector(text).tolist()


def documents():
    return [Document(text, metadata={"id": one, "title": one.upper()}) for one, text in zip(IDS, DOCUMENTS)]


def chroma(space):
    import chromadb
    from langchain_chroma import Chroma

    # The default is asked for by saying nothing, as everybody does.
    settings = {} if space == "" else {"collection_configuration": {"hnsw": {"space": space}}}
    store = Chroma(f"c-{space or 'default'}", Hashed(), client=chromadb.EphemeralClient(), **settings)
    store.add_documents(documents(), ids=IDS)
    return store


def faiss(product):
    from langchain_community.vectorstores import FAISS
    from langchain_community.vectorstores.utils import DistanceStrategy

    strategy = DistanceStrategy.MAX_INNER_PRODUCT if product else DistanceStrategy.EUCLIDEAN_DISTANCE
    return FAISS.from_documents(documents(), Hashed(), ids=IDS, distance_strategy=strategy)


def qdrant(space):
    from langchain_qdrant import QdrantVectorStore
    from qdrant_client import QdrantClient, models

    client = QdrantClient(":memory:")
    size = models.VectorParams(size=WIDTH, distance=models.Distance(space))
    client.create_collection("rules", vectors_config=size)
    store = QdrantVectorStore(client, "rules", Hashed(), distance=models.Distance(space))
    store.add_documents(documents())
    return store


def lance(space):
    import lancedb
    from langchain_community.vectorstores import LanceDB

    settings = {"distance": space} if space else {}
    store = LanceDB(lancedb.connect(tempfile.mkdtemp()), Hashed(), **settings)
    store.add_documents(documents(), ids=IDS)
    return store


def milvus(space):
    from langchain_milvus import Milvus

    place = {"uri": os.path.join(tempfile.mkdtemp(), "milvus.db")}
    index = {"metric_type": space, "index_type": "FLAT"}
    store = Milvus(Hashed(), connection_args=place, index_params=index, auto_id=False)
    store.add_documents(documents(), ids=IDS)
    return store


def postgres(strategy):
    import pgserver
    from langchain_postgres import Column, PGEngine, PGVectorStore
    from langchain_postgres.v2.indexes import DistanceStrategy

    server = pgserver.get_server(tempfile.mkdtemp())
    server.psql("CREATE EXTENSION vector")
    engine = PGEngine.from_connection_string(server.get_uri().replace("postgresql://", "postgresql+psycopg://"))
    engine.init_vectorstore_table("rules", WIDTH, id_column=Column("langchain_id", "TEXT"))
    store = PGVectorStore.create_sync(engine, Hashed(), "rules", distance_strategy=DistanceStrategy[strategy])
    store.add_documents(documents(), ids=IDS)
    return store


def plain_postgres():
    """A function over a cursor, as people without a framework have it."""
    import pgserver
    import psycopg
    from pgvector.psycopg import register_vector

    server = pgserver.get_server(tempfile.mkdtemp())
    server.psql("CREATE EXTENSION vector")
    connection = psycopg.connect(server.get_uri(), autocommit=True)
    register_vector(connection)
    connection.execute(f"CREATE TABLE rules (id text, body text, place vector({WIDTH}))")
    for one, text in zip(IDS, DOCUMENTS):
        connection.execute("INSERT INTO rules VALUES (%s, %s, %s)", (one, text, vector(text)))

    def search(text, depth):
        order = "SELECT id, body, place <=> %s AS distance FROM rules ORDER BY distance LIMIT %s"
        return connection.execute(order, (vector(text), depth)).fetchall()

    return search


def llama():
    from llama_index.core import VectorStoreIndex
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.schema import TextNode

    class Vectors(BaseEmbedding):
        def _get_query_embedding(self, query):
            return vector(query).tolist()

        async def _aget_query_embedding(self, query):
            return vector(query).tolist()

        def _get_text_embedding(self, text):
            return vector(text).tolist()

    nodes = [TextNode(text=text, id_=one) for one, text in zip(IDS, DOCUMENTS)]
    return VectorStoreIndex(nodes, embed_model=Vectors()).as_retriever()


STORES = {
    "chroma_default": lambda: chroma(""),
    "chroma_cosine": lambda: chroma("cosine"),
    "chroma_ip": lambda: chroma("ip"),
    "chroma_retriever": lambda: chroma("cosine").as_retriever(),
    "faiss_l2": lambda: faiss(product=False),
    "faiss_ip": lambda: faiss(product=True),
    "qdrant_cosine": lambda: qdrant("Cosine"),
    "qdrant_euclid": lambda: qdrant("Euclid"),
    "qdrant_dot": lambda: qdrant("Dot"),
    "lance_l2": lambda: lance(""),
    "lance_said_cosine": lambda: lance("cosine"),
    "milvus_l2": lambda: milvus("L2"),
    "milvus_cosine": lambda: milvus("COSINE"),
    "milvus_ip": lambda: milvus("IP"),
    "pgvector": lambda: postgres("COSINE_DISTANCE"),
    "pgvector_l2": lambda: postgres("EUCLIDEAN"),
    "pgvector_ip": lambda: postgres("INNER_PRODUCT"),
    "pgvector_plain": plain_postgres,
    "llama_index": llama,
}


def __getattr__(name):
    """The store of that name, made when it is first asked for."""
    if name not in STORES:
        raise AttributeError(name)
    globals()[name] = STORES[name]()
    return globals()[name]


def own_answer(name, text, depth):
    """What the store itself says: [(id, score)], by its own call."""
    store = globals().get(name) or __getattr__(name)
    if name == "llama_index":
        return [(one.node.node_id, float(one.score)) for one in store_at(store, depth).retrieve(text)]
    if name == "pgvector_plain":
        return [(one, float(score)) for one, _, score in store(text, depth)]
    store = getattr(store, "vectorstore", store)  # of a retriever
    return [(one.metadata["id"], float(score)) for one, score in store.similarity_search_with_score(text, k=depth)]


def store_at(retriever, depth):
    retriever.similarity_top_k = depth
    return retriever


def truth(kind, text):
    """The scores of that kind over all documents, by arithmetic."""
    query, rows = vector(text).astype(float), np.array([vector(one) for one in DOCUMENTS], float)
    dots = rows @ query
    cosine = dots / np.linalg.norm(rows, axis=1) / np.linalg.norm(query)
    squared = ((rows - query) ** 2).sum(1)
    values = {"cosine": cosine, "cosine distance": 1 - cosine, "l2": squared, "euclid": squared**0.5}
    return {**values, "dot": dots, "ip": 1 - dots}[kind]


def checks(text, depth):
    """For the test: every store's own answer to a question, and what arithmetic says, as one mapping a store."""
    name, kind, question = text.split("|")
    values = dict(zip(IDS, truth(kind, question).tolist()))
    return [
        {"id": one, "score": -rank, "own": score, "true": values[one]}
        for rank, (one, score) in enumerate(own_answer(name, question, depth))
    ]
