"""Imports point one way, and only pages know Streamlit; read from the source, so that a lazy import counts too."""

import ast
import re
from functools import cache
from pathlib import Path

from rag_core.spec import STAGES

ROOT = Path(__file__).parents[1]
BASE = {"types", "text", "errors", "files", "rules", "workspace", "rag_core"}
MAY = {
    "errors": set(),
    "types": set(),
    "text": {"errors"},
    "files": {"errors"},
    "workspace": {"errors", "files"},
    "rules": BASE | {"llm"},
    "roles": BASE,
    "health": BASE | {"eval_sets", "spec", "index", "store", "llm", "settings"},
    "backup": BASE | {"settings", "store", "journal"},
    "journal": BASE,
    "child": {"errors"},
    "stage": BASE,
    "records": BASE,
    "settings": {"errors"},
    "filters": BASE | {"stage", "settings", "llm"},
    "retrieve": BASE | {"stage", "filters", "records", "llm"},
    "eval_sets": BASE | {"records", "retrieve"},
    "corpus": BASE | {"records", "text", "child"},
    "index": BASE | {"llm", "corpus"},
    "llm": (BASE - {"rules"}) | {"settings"},
    "entities": BASE,
    "sources": BASE | {"records", "index", "corpus", "store"},
    "store": BASE | {"settings", "child"},
    "spec": BASE | {"stage", "filters", "retrieve"},
    "workbench": BASE
    | {"stage", "retrieve", "spec", "eval_sets", "measure", "compare", "index", "resources", "wording"},
    "wording": BASE | {"stage", "retrieve", "eval_sets", "index", "corpus"},
    "measure": BASE | {"stage", "filters", "spec", "llm"},
    "labelling": BASE | {"stage", "filters", "measure"},
    "compare": BASE | {"stage", "retrieve", "spec", "eval_sets", "measure", "labelling"},
    "tune": BASE | {"stage", "filters", "retrieve", "spec", "records", "eval_sets", "measure"},
    "answers": BASE | {"eval_sets", "llm", "measure"},
    "judged": BASE | {"stage", "filters", "spec", "llm", "measure", "labelling"},
    "engine": BASE
    | {
        "stage",
        "filters",
        "retrieve",
        "records",
        "spec",
        "eval_sets",
        "measure",
        "tune",
        "index",
        "resources",
        "workbench",
    },
    "report": BASE | {"measure", "compare"},
    "export": BASE | {"stage", "records", "spec", "sources", "corpus"},
    "project": BASE
    | {"stage", "filters", "retrieve", "spec", "records", "index", "store", "sources", "settings"}
    | {
        "eval_sets",
        "measure",
        "labelling",
        "compare",
        "resources",
        "workbench",
        "wording",
        "roles",
        "journal",
        "tune",
        "corpus",
        "child",
        "judged",
        "llm",
    },
    "resources": BASE | {"stage", "spec", "entities", "llm"},
}


@cache
def nodes(path):
    """What the tests ask of a module's tree: its imports, classes and texts."""
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [node for node in tree if isinstance(node, (ast.Import, ast.ImportFrom, ast.ClassDef, ast.Constant))]


@cache
def imports(path):
    return tuple(imported(path))


def imported(path):
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == "rag_core")


def room(path):
    parts = path.relative_to(ROOT / "rag_core").with_suffix("").parts
    return parts[0]


MODULES = sorted(
    path for path in (ROOT / "rag_core").rglob("*.py") if room(path) not in ("__init__", "__main__", "cli")
)


def test_a_module_imports_only_what_its_room_may():
    strangers = []
    for path in MODULES:
        own = room(path)
        assert own in MAY, f"{own} is a new room: say in ARCHITECTURE.md and here what it may import"
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "rag_core" and len(parts) > 1 and parts[1] not in MAY[own] | {own}:
                strangers.append(f"{path.relative_to(ROOT)} imports {name}")
    assert strangers == []


def test_no_streamlit_below_rag_core():
    for path in (ROOT / "rag_core").rglob("*.py"):
        assert not any(name.split(".")[0] in ("streamlit", "pages", "app") for name in imports(path)), path


def test_nothing_unpickles():
    for folder in ("rag_core", "pages"):
        for path in (ROOT / folder).rglob("*.py"):
            assert not {"pickle", "joblib", "diskcache", "shelve"} & {name.split(".")[0] for name in imports(path)}, (
                path
            )


REGISTRIES = {"rag_core/spec.py", "rag_core/__init__.py"}
"""Where a name is looked up: the registry of stages, and the package's door."""


def test_no_stage_is_known_by_name_outside_its_class():
    homes = {name: module.replace(".", "/") for name, module in STAGES.items()}
    files = [path for folder in ("rag_core", "pages") for path in (ROOT / folder).rglob("*.py")]
    known = []
    for path in files:
        where = path.relative_to(ROOT).as_posix()
        if where in REGISTRIES:
            continue
        for node in nodes(path):
            name = node.value if isinstance(node, ast.Constant) else None
            if isinstance(name, str) and name in STAGES and not where.startswith(homes[name]):
                known.append(f"{where}:{node.lineno} {name}")
    assert known == [], "ask the stage's class (title, is_cut, needs, kind, isinstance), not its name"


def test_a_class_name_has_one_meaning():
    """Files that an export carries say again, for a place without the workbench, what the rules' own classes say."""
    homes = {}
    for folder in ("rag_core", "pages"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in nodes(path):
                if isinstance(node, ast.ClassDef):
                    homes.setdefault(node.name, set()).add(path.relative_to(ROOT).as_posix())
    assert {name: sorted(places) for name, places in homes.items() if len(places) > 1} == {}


def test_the_glossarys_classes_are_there():
    classes = {
        node.name
        for path in (ROOT / "rag_core").rglob("*.py")
        for node in nodes(path)
        if isinstance(node, ast.ClassDef)
    }
    rows = [line.split("|")[1] for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()[7:]]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert len(rows) >= 60
    assert named - classes == set()
