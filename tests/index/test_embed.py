"""The bundled model: its vectors, its window, its pinned files."""

import os
import subprocess
import sys

import numpy as np
import pytest

from rag_core.errors import SurroundingsError
from rag_core.index import embed
from rag_core.index.embed import BundledEmbedder, normalise

EMBEDDER = BundledEmbedder()


def test_rows_are_unit_length_float32_in_the_order_of_the_texts():
    texts = ["a dragon breathes fire", "cleric", "the table of hits for fighters and paladins of every level"]
    vectors = EMBEDDER.embed(texts)
    assert vectors.shape == (3, 384)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert np.array_equal(vectors[1], EMBEDDER.embed(["cleric"])[0])


def test_a_vector_is_the_same_bits_whatever_stands_beside_the_text():
    alone = EMBEDDER.embed(["owlbear"])[0]
    beside = EMBEDDER.embed(["owlbear", "a much longer text about something else " * 20, "x"])[0]
    assert np.array_equal(alone, beside)


def test_meaning_orders_the_similarities():
    question, near, far = EMBEDDER.embed(
        ["How do I heal my wounded soldier?", "restoring lost health to an injured unit", "tax forms for 2019"]
    )
    assert question @ near > question @ far + 0.2


def test_similarities_agree_with_the_published_ones_of_the_full_precision_model():
    """The hosted example of all-MiniLM-L6-v2 gives 0.695, 0.943 and 0.257 for these."""
    source, *others = EMBEDDER.embed(
        ["That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"]
    )
    assert [float(source @ other) for other in others] == pytest.approx([0.695, 0.943, 0.257], abs=0.01)


def test_tokens_behind_the_window_are_counted_and_not_read():
    long = "word " * 400
    assert EMBEDDER.count_tokens([long, "one two"]) == [402, 4]
    assert np.array_equal(EMBEDDER.embed([long])[0], EMBEDDER.embed(["word " * 254])[0])


def test_tokens_of_many_texts_are_counted_in_their_order():
    texts = ["word " * (number % 7) for number in range(600)]
    assert EMBEDDER.count_tokens(texts) == [number % 7 + 2 for number in range(600)]


def test_progress_ends_at_the_total():
    seen = []
    EMBEDDER.embed(["a", "b", "c"], lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_no_texts_give_an_empty_array_of_the_right_width():
    assert EMBEDDER.embed([]).shape == (0, 384)


def test_a_zero_row_stays_zero():
    assert normalise(np.zeros((1, 3))).tolist() == [[0, 0, 0]]


def test_a_changed_model_file_is_refused(tmp_path):
    changed = tmp_path / "model.onnx"
    changed.write_bytes(b"not the model")
    with pytest.raises(SurroundingsError, match=r"model\.onnx has sha256"):
        embed._check_hash(changed, embed.MODEL_SHA256)
    with pytest.raises(SurroundingsError, match="not installed"):
        embed._check_hash(tmp_path / "none", embed.MODEL_SHA256)


def test_importing_the_module_loads_neither_the_runtime_nor_the_tokenizer():
    code = "import sys, rag_core.index.embed; print([m for m in ('onnxruntime', 'tokenizers') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_embedding_leaves_no_telemetry_file(tmp_path):
    code = "from rag_core.index.embed import BundledEmbedder; BundledEmbedder().embed(['x'])"
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    environment.pop("CI", None)
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
