"""Write docs/api.md from the docstrings of the public functions and types: `python docs/api.py`."""

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

import rag_core

INTRODUCTION = """# The library

What a program may rely on, with each contract as it stands in the code. Everything under *From the top* is imported as
`from rag_core import …`; the other parts by their module. What is not listed here is ours to change. Stages and their
settings: [stages.md](stages.md); measures: [measures.md](measures.md); files: [formats.md](formats.md).

Input that cannot be used raises `InputError`; every error of ours is a `WinnowError` and says what, got and expected
in one sentence. This page is written by `python docs/api.py`, and a test compares it with the code.
"""
LINE = 100
PLAIN = re.compile(r"(?<=: )'([^']*)'")  # an annotation in quotes
ENUM = re.compile(r"<(\w+\.\w+): [^>]+>")
FACTORY = re.compile(r"<(factory|.* at 0x[0-9a-f]+)>")
PARTS = {
    "Evaluation": (
        "rag_core.measure.measures",
        "rag_core.measure.experiment",
        "rag_core.compare.compare",
        "rag_core.tune.plane",
        "rag_core.tune.tune",
        "rag_core.retrieve.capture",
        "rag_core.eval_sets.reading",
        "rag_core.eval_sets.writing",
    ),
    "Collections and search": (
        "rag_core.index.ingest",
        "rag_core.index.collection",
        "rag_core.sources",
        "rag_core.workbench",
    ),
    "Rules, entities, labels": (
        "rag_core.rules.rule",
        "rag_core.rules.match",
        "rag_core.rules.slots",
        "rag_core.entities",
        "rag_core.store.database",
        "rag_core.store.labels",
    ),
    "Take it home": ("rag_core.export", "rag_core.compare.run_file", "rag_core.compare.gate"),
}
"""Heading → modules whose public names are listed."""


def names_of(module: ModuleType) -> list[str]:
    """The public functions and classes of a module: those it lists, else those it defines, in the order of its text."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [name for name in listed if inspect.isclass(vars(module).get(name)) or callable(vars(module).get(name))]
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return [name for name in own if not name.startswith("_") and inspect.getdoc(vars(module)[name])]


def signature_of(value: Any) -> str:
    """How it is called: annotations and defaults as they are written, one parameter a line where it is long."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parts = [PLAIN.sub(r"\1", str(one)) for one in signature.parameters.values() if one.name not in ("self", "cls")]
    parts = [FACTORY.sub("…", ENUM.sub(r"\1", part)).replace("rag_core.types.", "") for part in parts]
    back = signature.return_annotation
    after = "" if back in (inspect.Signature.empty, "None", None) else f" -> {back}"
    short = f"({', '.join(parts)}){after}"
    if any(one.kind is one.KEYWORD_ONLY for one in signature.parameters.values()) and "*" not in short:
        at = next(n for n, one in enumerate(signature.parameters.values()) if one.kind is one.KEYWORD_ONLY)
        parts.insert(at - (len(signature.parameters) - len(parts)), "*")
        short = f"({', '.join(parts)}){after}"
    return short if len(short) < LINE else "(\n    " + ",\n    ".join(parts) + f",\n){after}"


def entry(name: str, value: Any, level: str = "####") -> list[str]:
    """One function or class: how it is called, and its contract."""
    kind = "class " if inspect.isclass(value) else ""
    text = inspect.getdoc(value) or ""
    if inspect.isclass(value) and text.startswith(f"{value.__name__}("):
        text = ""  # a dataclass without words of its own: its signature again
    lines = [f"{level} {name}", "", "```python", f"{kind}{name}{signature_of(value)}", "```", "", text, ""]
    if inspect.isclass(value):
        lines += methods_of(value)
    return lines


def methods_of(value: type) -> list[str]:
    """The public methods and properties a class defines itself, one line each."""
    found = []
    for name, member in vars(value).items():
        inner = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        if name.startswith("_") or not inspect.isfunction(inner) or not inspect.getdoc(inner):
            continue
        call = "" if isinstance(member, property) else " ".join(signature_of(inner).split())
        first = (inspect.getdoc(inner) or "").split("\n\n")[0].replace("\n", " ")
        found.append(f"- `.{name}{call}`: {first}")
    return [*found, ""] if found else []


def written() -> str:
    """The page as it should stand."""
    lines = [INTRODUCTION, "## From the top", ""]
    for name in rag_core.__all__:
        lines += entry(name, getattr(rag_core, name), "###")
    for heading, modules in PARTS.items():
        lines += [f"## {heading}", ""]
        for path in modules:
            module = import_module(path)
            lines += [f"### {path}", "", (module.__doc__ or "").strip(), ""]
            for name in names_of(module):
                lines += entry(name, getattr(module, name))
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "api.md").write_text(written(), encoding="utf-8")
