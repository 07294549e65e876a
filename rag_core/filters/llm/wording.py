"""Prompt variants: Jinja2 files, run in a sandbox, that give a system text and a user text.

A file says in comments at its top how it wants to be answered (`answer: json`, `json with reasons` or `lines`) and what
it is for. Shipped ones lie in rag_core/filters/prompts, a user's own in the workspace's folder prompts. The fenced
candidates come ready made from prompts.py: a variant decides about words, never about the fence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from rag_core.errors import SpecError
from rag_core.files import read_text
from rag_core.workspace import resolve_workspace

SHIPPED = Path(__file__).resolve().parents[1] / "prompts"
MAX_FILE = 50_000
ANSWERS = ("json", "json with reasons", "lines")
DEFAULT = "terse"


@dataclass(frozen=True)
class Variant:
    """A prompt's wording: `system` and `user` take query, wanted, count, candidates and mark."""

    name: str
    answer: str  # one of ANSWERS
    about: str
    source: str

    def render(self, block: str, **values: Any) -> str:
        """The text of block `system` or `user`, without the blank lines around it."""
        template = _compiled(self.source)
        try:
            return "".join(template.blocks[block](template.new_context(values))).strip()
        except Exception as error:  # a template of the user's may fail in any way
            raise SpecError(f"prompt variant {self.name!r} cannot be rendered ({type(error).__name__})") from None


@lru_cache(maxsize=64)
def _compiled(source: str) -> Any:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    return ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False).from_string(source)


def folders() -> Iterator[Path]:
    """Where variants lie: shipped ones first, their names cannot be taken."""
    yield SHIPPED
    yield resolve_workspace() / "prompts"


def variant_names() -> list[str]:
    """The names of all variants, shipped and own."""
    return sorted({path.stem for folder in folders() if folder.is_dir() for path in folder.glob("*.j2")})


def read_variant(name: str) -> Variant:
    """The variant of that name, or a SpecError: unknown, unreadable, or without its two blocks."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_\-]{0,63}", name):
        for folder in folders():
            if (path := folder / f"{name}.j2").is_file():
                return parse_variant(name, read_text(path, limit=MAX_FILE))
    raise SpecError(f"LLMFilter.variant is {name[:80]!r}, expected one of {', '.join(variant_names())}")


@lru_cache(maxsize=64)
def parse_variant(name: str, source: str) -> Variant:
    """A variant from its file's text, checked by compiling it."""
    from jinja2 import TemplateSyntaxError

    comments = re.findall(r"\{#\s*(.*?)\s*#\}", source, re.DOTALL)
    answer = next((text[7:].strip() for text in comments if text.startswith("answer:")), "json")
    if answer not in ANSWERS:
        raise SpecError(f"prompt variant {name!r} wants answer {answer[:80]!r}, expected one of {', '.join(ANSWERS)}")
    try:
        blocks = _compiled(source).blocks
    except TemplateSyntaxError as error:
        raise SpecError(f"prompt variant {name!r} is no valid template (line {error.lineno})") from None
    if not {"system", "user"} <= set(blocks):
        raise SpecError(f"prompt variant {name!r} lacks a block, expected blocks system and user")
    about = next((text for text in comments if not text.startswith("answer:")), "")
    return Variant(name, answer, " ".join(about.split()), source)
