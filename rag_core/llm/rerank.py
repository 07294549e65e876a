"""Scores of rerankers: asked of an endpoint once, stored, and read from there ever after.

The endpoint is Cohere-shaped: `POST …/rerank {model, query, documents}` answers `results` (or `data`, or a bare list)
of index and relevance_score (or score). A score is stored by address, model, question and text, so that a deeper list
asks for what is new alone. Pipelines read stored scores and never ask (`StoredReranker`); a run asks, within its limits
(`RerankJudge` in `run.answer_all`).
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from rag_core.errors import EndpointError, StoreError
from rag_core.llm.answer import Answer, Price
from rag_core.llm.endpoint import Endpoint
from rag_core.llm.prompt import Prompt
from rag_core.llm.store import SCORES
from rag_core.types import Chunk, Query

if TYPE_CHECKING:
    from rag_core.llm.client import Client

TEXTS_PER_CALL = 100
"""What vendors count as one search; a server that takes fewer refuses, and says so."""
_TABLE = "CREATE TABLE IF NOT EXISTS score (key BLOB PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID"


class ScoreStore:
    """The scores of a workspace's file. Safe for several threads and processes; a fault of the file is a StoreError."""

    def __init__(self, workspace: Path) -> None:
        self.path = workspace / SCORES

    def read(self, keys: Iterable[bytes]) -> dict[bytes, float]:
        """The scores of these keys that are there."""
        wanted = list(keys)
        if not self.path.is_file():
            return {}
        marks = ",".join("?" * len(wanted))
        with self._opened() as connection:
            return dict(connection.execute(f"SELECT key, value FROM score WHERE key IN ({marks})", wanted))  # noqa: S608

    def write(self, scores: Mapping[bytes, float]) -> None:
        """Keep scores; they are on disk when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._opened() as connection, connection:
            connection.execute(_TABLE)
            connection.executemany("INSERT OR REPLACE INTO score VALUES (?, ?)", scores.items())

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=30)) as connection:
                yield connection
        except sqlite3.Error as error:
            raise StoreError(f"the stored scores in {self.path} cannot be used ({error})") from None


@dataclass(frozen=True)
class StoredReranker:
    """An endpoint's reranker as far as it was asked: a question and texts → their stored scores."""

    endpoint: Endpoint
    store: ScoreStore

    def keys(self, question: str, texts: Sequence[str]) -> list[bytes]:
        """The identity of each score: address, model, question, text."""
        parts = [self.endpoint.base_url, self.endpoint.model, question]
        return [hashlib.sha256(json.dumps([*parts, text]).encode()).digest() for text in texts]

    def known(self, question: str, texts: Sequence[str]) -> dict[str, float]:
        """The stored scores by text."""
        keys = self.keys(question, texts)
        stored = self.store.read(keys)
        return {text: stored[key] for text, key in zip(texts, keys, strict=True) if key in stored}

    def __call__(self, question: str, texts: Sequence[str]) -> list[float]:
        """A score a text; an EndpointError where one was never asked for."""
        stored = self.known(question, texts)
        if lacking := sum(text not in stored for text in texts):
            name = self.endpoint.name
            said = f"{lacking} of {len(texts)} texts have no stored score of {name}"
            raise EndpointError(f"{said}, expected all: winnow rerank --endpoint {name}")
        return [stored[text] for text in texts]


def prompts_of(question: Query, chunks: Sequence[Chunk]) -> list[Prompt]:
    """The calls that score chunks for a question; each is as long as what the server is sent."""
    batches = [chunks[at : at + TEXTS_PER_CALL] for at in range(0, len(chunks), TEXTS_PER_CALL)]
    return [
        Prompt(
            tuple({"role": "user", "content": f"{question.text}\n{one.text or one.title}"} for one in batch),
            question,
            tuple(batch),
        )
        for batch in batches
    ]


@dataclass
class RerankJudge:
    """Asks an endpoint's reranker what is not stored, and stores it; a failed call is an answer with the reason."""

    stored_scores: StoredReranker
    price: Price | None = None
    calls: int = field(default=0, init=False)  # that were made
    _client: Client | None = field(default=None, init=False)

    @property
    def name(self) -> str:
        """The model at its endpoint."""
        return f"{self.stored_scores.endpoint.model} at {self.stored_scores.endpoint.name}"

    def stored(self, prompt: Prompt, model: str) -> bool:
        """Whether every score of the call is there."""
        return not self._missing(prompt)

    def most(self, prompt: Prompt) -> float | None:
        """The largest price of a call with all its tries; None where the price is unknown."""
        tries = self.stored_scores.endpoint.attempts
        return None if self.price is None else tries * self.price.of(prompt.most_tokens, 0)

    def ask(
        self, prompts: Sequence[Prompt], *, seconds: float, concurrency: int, model: str, cache: bool
    ) -> list[Answer]:
        """One call a prompt, one after the other, for the texts without a stored score."""
        from rag_core.llm.client import Client  # the HTTP library takes 0.2 s: only who calls an endpoint waits

        self._client = self._client or Client(self.stored_scores.endpoint)
        end, answers = monotonic() + seconds, []
        for prompt in prompts:
            missing = self._missing(prompt)
            self.calls += 1
            scores, answer = self._client.try_rerank(prompt.query.text, missing, max(0.001, end - monotonic()))
            if scores:
                keys = self.stored_scores.keys(prompt.query.text, missing)
                self.stored_scores.store.write(dict(zip(keys, scores, strict=True)))
            if answer.text is not None and self.price is not None:
                tokens = prompt.tokens if answer.prompt_tokens is None else answer.prompt_tokens
                answer = replace(answer, cost=self.price.of(tokens, 0))
            answers.append(answer)
        return answers

    def _missing(self, prompt: Prompt) -> list[str]:
        texts = list(dict.fromkeys(one.text or one.title for one in prompt.chunks))
        known = self.stored_scores.known(prompt.query.text, texts)
        return [text for text in texts if text not in known]
