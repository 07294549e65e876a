"""Put the carried parts together to one Python file that does what a pipeline does, with its own self-test.

The parts (carried/) are ordinary modules that are tested as they stand; here they are joined in order, their imports
of each other left out, and the two constants STAGES and SELF_TEST filled in. A pipeline with a stage that cannot be
carried is refused. What each part does is in its own docstring.
"""

from __future__ import annotations

import ast
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from pprint import pformat
from typing import Any

from rag_core.errors import InputError, SpecError
from rag_core.files import lines, read_text
from rag_core.records import read_case
from rag_core.spec import STAGES, dump_pipeline, dump_stages, fingerprint, plain, stage_class
from rag_core.stage import Pipeline

PARTS = ("words", "rule_reading", "rule_matching", "refilling", "cutting", "chances", "learning", "running")
ADAPTERS = {"langchain": "langchain", "llamaindex": "llamaindex"}
"""What an exported file may hold a function for → the part that does it."""
HERE = Path(__file__).parent
VECTORS = HERE / "vectors.jsonl"
SHARED = {"chances": HERE.parent / "filters" / "chances.py"}
"""Parts that the workbench itself runs: what is exported is that very text."""


def export_filter(pipeline: Pipeline, adapter: str = "") -> str:
    """The text of a Python file (3.9 or later, standard library only) that keeps what the pipeline keeps.

    A source in front is left to the service, which hands its list over. An `adapter` (see ADAPTERS) adds a function
    for that framework, which is imported when the function is called. A SpecError names the stage that cannot be
    carried.
    """
    check_carried(pipeline)
    if adapter and adapter not in ADAPTERS:
        raise InputError(f"the adapter is {adapter[:40]!r}, expected one of {', '.join(ADAPTERS)}")
    filters = replace(pipeline, stages=tuple(stage for stage in pipeline.stages if stage.kind != "source"))
    stages = [(stage.name, stage.carried, plain(stage.carried_settings())) for stage in filters.stages]
    constants = {"STAGES": _literal(stages), "SELF_TEST": _literal(self_test_of(filters))}
    imports, bodies = _joined(constants, [*PARTS[:-1], *([ADAPTERS[adapter]] if adapter else []), PARTS[-1]])
    return "\n".join([_header(pipeline), *imports, "", *bodies])


@dataclass(frozen=True)
class Fate:
    """What becomes of a stage in an exported file: it goes along, it stays with the service, or it cannot go."""

    stage: str
    title: str
    goes: bool
    stays: bool
    why: str


WHY_NOT = {
    "judge": "it asks a model, and the file asks nobody",
    "hop_judge": "it asks a model and searches again, and the file does neither",
    "entities": "it needs your structure file and fuzzy matching, which are not in the standard library",
    "index": "it reads the collection, which your service does not have",
    "chunks": "it reads chunks by their ids, which the file is not handed",
}
"""What a stage waits for → why it cannot go into a file of the standard library."""


def fates(pipeline: Pipeline) -> list[Fate]:
    """Stage by stage what becomes of it in an exported Python file, and why."""
    found = []
    for stage, entry in zip(pipeline.stages, dump_stages(pipeline), strict=True):
        name, title = stage.name, type(stage).title or stage.name
        if stage.kind == "source":
            settings = ", ".join(f"{key} {value}" for key, value in entry[name].items() if value is not None)
            found.append(Fate(name, title, False, True, f"your own search brings the list: {settings}"))
        elif stage.carried:
            found.append(Fate(name, title, True, False, "in the file, with its settings"))
        else:
            reasons = [why for need, why in WHY_NOT.items() if need in stage.needs()]
            found.append(Fate(name, title, False, False, (reasons or ["no exported file does its work yet"])[0]))
    return found


def export_spec(pipeline: Pipeline, form: str = "json") -> str:
    """The pipeline as a spec with all settings: JSON, or block YAML for people; `read_pipeline` reads both."""
    document = json.loads(json.dumps(dump_pipeline(pipeline)))  # tuples as lists
    if form == "json":
        return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    from ruamel.yaml import YAML  # a tenth of a second that JSON never pays

    text = io.StringIO()
    writer: Any = YAML(typ="safe", pure=True)
    writer.default_flow_style, writer.allow_unicode = False, True
    writer.sort_base_mapping_type_on_output = False
    writer.dump(document, text)
    return text.getvalue()


def check_carried(pipeline: Pipeline) -> None:
    """A SpecError for the first stage that an exported file cannot do."""
    for stage in pipeline.stages:
        if stage.kind != "source" and not stage.carried:
            able = ", ".join(name for name in STAGES if stage_class(name).carried)
            raise SpecError(
                f"pipeline {pipeline.called!r} has the stage {stage.name}, which an exported file cannot "
                f"do, expected only {able} after the source"
            )


def self_test_of(pipeline: Pipeline) -> list[dict[str, Any]]:
    """Lists with the ids that the pipeline keeps of them; a list it refuses (another metric) is left out."""
    found = []
    for number, line in lines(read_text(VECTORS)):
        record = json.loads(line)
        case = read_case(record, f"vector {number}", f"v{number}")
        if case.candidates is None:
            continue
        try:
            kept = [hit.chunk.id for hit in pipeline(case.candidates).hits]
        except InputError:
            continue
        told = {key: record[key] for key in ("id", "query", "candidates")}
        found.append(
            {**told, "metric": record.get("metric", "unknown"), "order": record.get("order", "distance"), "kept": kept}
        )
    return found


def _header(pipeline: Pipeline) -> str:
    """Docstring and first import; what a user named is text that cannot end the docstring."""
    name = _harmless(pipeline.called)
    sources = [json.dumps(entry) for entry, stage in _entries(pipeline) if stage.kind == "source"]
    said = "The lists come from your own search, as this pipeline's source would bring them:"
    about = [f"\n{said} {_harmless(one)}\n" for one in sources]
    return f'''"""Filter of retrieved chunks: pipeline {name} ({fingerprint(pipeline)}).

Exported by Winnow; standard library only, Python 3.9 or later. Copy it into your service:

    from filter import filter_chunks, explain
    kept = filter_chunks(question, chunks)   # mappings, best first, with "distance" and maybe "query_must"

{_reads_on(pipeline)}`python filter.py --self-test` checks that it does what the workbench did when it was exported.
{"".join(about)}"""

from __future__ import annotations
'''


def _reads_on(pipeline: Pipeline) -> str:
    """What a service must know of a pipeline that refills: it can only refill from what it was handed."""
    deep = max((stage.reach for stage in pipeline.stages), default=0)
    return f"It refills what rules drop: hand over a deep list, {deep} chunks or more.\n\n" if deep else ""


def _harmless(text: str) -> str:
    """ASCII on one line, without what could end or escape a docstring."""
    plain = " ".join(text.encode("ascii", "replace").decode().split())
    return plain.replace("\\", "/").replace('"', "'")


def _entries(pipeline: Pipeline) -> list[tuple[dict[str, Any], Any]]:
    return [(entry, stage) for entry, stage in zip(dump_stages(pipeline), pipeline.stages, strict=True)]


def _literal(value: Any) -> str:
    return pformat(value, width=118, sort_dicts=False)


def _joined(constants: dict[str, str], parts: Iterable[str]) -> tuple[list[str], list[str]]:
    """(standard library imports, bodies of the parts) with the constants filled in."""
    imports: set[str] = set()
    bodies = []
    for part in parts:
        source = read_text(SHARED.get(part, HERE / "carried" / f"{part}.py"))
        tree = ast.parse(source)
        imports |= set(_imports(tree))
        bodies.append(_body(source, tree, constants))
    plain = sorted(one for one in imports if one.startswith("import "))
    return [*plain, *sorted(imports.difference(plain))], bodies


def _imports(tree: ast.Module) -> Iterable[str]:
    """The imports of the standard library, one name a line."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (f"import {alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not str(node.module).startswith(("__future__", "rag_core")):
            yield f"from {node.module} import {', '.join(alias.name for alias in node.names)}"


def _body(source: str, tree: ast.Module, constants: dict[str, str]) -> str:
    """A part without docstring and imports, under its docstring's first line, with the constants filled in."""
    said = str(ast.get_docstring(tree)).splitlines()[0]
    rows = source.splitlines()
    for node in reversed(tree.body):
        first, last = node.lineno - 1, node.end_lineno or node.lineno
        docstring = node is tree.body[0]
        if docstring or isinstance(node, ast.Import | ast.ImportFrom):
            rows[first:last] = []
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id in constants:
            rows[first:last] = [f"{node.target.id}: list[Any] = {constants[node.target.id]}"]
    return "\n".join(_section(said, rows))


def _section(said: str, rows: Sequence[str]) -> list[str]:
    text = "\n".join(rows).strip("\n")
    return [f"\n# ---- {said}\n", text, ""]
