"""Answers of a model on disk as they come, so that a run that was killed asks nothing twice.

A JSON line per answer: key, finish reason, text. A line that a kill cut short is cut away when the file is opened.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from rag_core.errors import InputError


def key_of(model: str, messages: Sequence[Mapping[str, str]]) -> str:
    """What an answer depends on, as a hash."""
    return hashlib.sha256(json.dumps([model, list(messages)]).encode()).hexdigest()


class Journal:
    """The answers of a file, and more as they come; `answers` is key → (text, finish reason)."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.answers: dict[str, tuple[str, str]] = dict(self._read())

    def add(self, key: str, text: str, finish_reason: str) -> None:
        """Keep an answer; on disk when this returns."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        entry = json.dumps({"key": key, "finish_reason": finish_reason, "text": text})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(entry + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.answers[key] = (text, finish_reason)

    def _read(self) -> list[tuple[str, tuple[str, str]]]:
        if not self._path.is_file():
            return []
        data = self._path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            with self._path.open("r+b") as file:
                file.truncate(len(whole))
        try:
            entries = [json.loads(line) for line in whole.splitlines()]
            return [(entry["key"], (str(entry["text"]), str(entry["finish_reason"]))) for entry in entries]
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{self._path} is no journal of answers, expected the file an earlier run wrote") from None
