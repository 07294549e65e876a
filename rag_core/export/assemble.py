"""Copy the modules that a pipeline runs on into one Python file that does what it does, with its own self-test.

Nothing is written twice: the file holds the sources of the stages' modules and of all that they import of ours, under a
package name of their own, and constants. A stage goes along where its modules need the standard library alone; one that
asks a model or searches again is refused (see `fates`). Which modules a stage imports is read from their sources.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from pprint import pformat
from typing import Any

from rag_core.errors import InputError, SpecError
from rag_core.files import lines, read_text, yaml_text
from rag_core.records import read_case
from rag_core.spec import STAGES, dump_pipeline, dump_stages, fingerprint, plain, stage_class
from rag_core.stage import Pipeline, Stage, needs_of
from rag_core.types import SCORES, Metric

ADAPTERS = {
    "chroma": ("chroma_retriever",),
    "langchain": ("langchain_retriever", "langchain_compressor"),
    "llamaindex": ("llamaindex_postprocessor",),
}
"""What an exported file may be an adapter for → the functions of adapters.py that it then has."""
VECTORS = Path(__file__).with_name("vectors.jsonl")
ROOT = "rag_core"
WHY_NOT = {
    "judge": "it asks a model with prompts that need Jinja2: run the spec with this library",
    "hop_judge": "it asks a model and searches again, and the file does neither",
    "index": "it reads the collection, which your service does not have",
}
"""What a stage waits for → why it cannot go into a file of the standard library."""
HANDED = {
    "entities": "in the file; your service hands over who is meant: hand_over(entities=…)",
    "chunks": "in the file; your service hands over its chunks by id: hand_over(chunks=function)",
    "reranker": "in the file; chunks carry the score, or your service hands over its reranker: hand_over(reranker=…)",
}
"""What a stage waits for → how a service gives it to the file."""


@dataclass(frozen=True)
class Fate:
    """What becomes of a stage in an exported file: it goes along, it stays with the service, or it cannot go."""

    stage: str
    title: str
    goes: bool
    stays: bool
    why: str


def fate_of(stage: Stage) -> Fate:
    """What becomes of one stage in an exported Python file, and why."""
    name, title = stage.name, type(stage).title or stage.name
    if stage.kind in ("source", "rewrite"):
        settings = ", ".join(f"{key} {value}" for key, value in stage.settings().items() if value is not None)
        does = "brings the list" if stage.kind == "source" else "rewrites the question before it searches"
        return Fate(name, title, False, True, f"your own search {does}{f': {settings}' if settings else ''}")
    for need, why in WHY_NOT.items():
        if need in stage.needs():
            return Fate(name, title, False, False, why)
    handed = [words for need, words in HANDED.items() if any(one.name == need for one in fields(stage))]
    return Fate(name, title, True, False, (handed or ["in the file, with its settings"])[0])


def fates(pipeline: Pipeline) -> list[Fate]:
    """Stage by stage what becomes of it in an exported Python file, and why."""
    return [fate_of(stage) for stage in pipeline.stages]


def export_filter(
    pipeline: Pipeline,
    adapter: str = "",
    metric: str = "",
    score: str = "",
    fields: Mapping[str, str] | None = None,
) -> str:
    """The text of a Python file (3.11 or later, standard library only) that keeps what the pipeline keeps.

    A source in front is left to the service, which hands its list or its search over. `metric` and `score` are those of
    the lists it was tuned on, "" where nobody knows; others are then refused. `fields` say which metadata of the
    store's records is what. An `adapter` (see ADAPTERS) adds functions for that framework, which is imported when they
    are called. A SpecError names the stage that cannot go.
    """
    _check(pipeline, adapter, metric, score)
    stages = tuple(stage for stage, fate in zip(pipeline.stages, fates(pipeline), strict=True) if fate.goes)
    filters = replace(pipeline, stages=stages)
    constants = {
        "STAGES": [
            (STAGES[stage.name].removeprefix(f"{ROOT}."), stage.name, plain(stage.carried_settings()))
            for stage in filters.stages
        ],
        "TUNED": {"metric": metric, "score": score, **({"fields": dict(fields)} if fields else {})},
        "SELF_TEST": self_test_of(filters),
        "DEPTH": _depth(pipeline),
    }
    wanted = [*(STAGES[stage.name] for stage in filters.stages), "rag_core.export.running"]
    sources = dict(copied([*wanted, *(["rag_core.export.adapters"] if adapter else [])]))
    # Two files of other Winnows in one service do not share a module.
    package = "winnow_" + hashlib.sha256("".join(sources.values()).encode()).hexdigest()[:12]
    functions = "".join(
        f'\n\ndef {name}(*places: Any, **names: Any) -> Any:\n    """See adapters.{name} above."""\n'
        f"    return _loaded['export.adapters'].{name}(exported, *places, **names)\n"
        for name in ADAPTERS.get(adapter, ())
    )
    return "\n".join(
        [
            _header(pipeline),
            *(f"{name} = {pformat(value, width=118, sort_dicts=False)}\n" for name, value in constants.items()),
            "MODULES: dict[str, str] = {}",
            *(_quoted(name, source, package) for name, source in sources.items()),
            LOADER.replace("PACKAGE", repr(package)).replace("PRINT", repr(fingerprint(pipeline))),
            functions,
            '\nif __name__ == "__main__":\n    sys.exit(exported.main(sys.argv[1:]))\n',
        ]
    )


LOADER = '''

def _load(package: str) -> dict[str, Any]:
    """The modules above as a package of their own, in the order they stand in: each imports only earlier ones."""
    loaded: dict[str, Any] = {}
    for name in ["", *MODULES]:
        full = f"{package}.{name}" if name else package
        parts = full.split(".")
        for end in range(1, len(parts) + 1):
            path = ".".join(parts[:end])
            if path not in sys.modules:
                sys.modules[path] = types.ModuleType(path)
                sys.modules[path].__path__ = []
                sys.modules[path].__file__ = __file__
                if end > 1:
                    setattr(sys.modules[".".join(parts[: end - 1])], parts[end - 1], sys.modules[path])
        loaded[name] = sys.modules[full]
        loaded[name].__package__ = full.rpartition(".")[0]
        if name and not hasattr(loaded[name], "_source"):
            loaded[name]._source = MODULES[name]
            exec(compile(MODULES[name], f"{__file__}: {name}", "exec"), loaded[name].__dict__)
    return loaded


_loaded = _load(PACKAGE)
exported = _loaded["export.running"].ExportedFilter(STAGES, TUNED, SELF_TEST, PRINT, DEPTH)
filter_chunks, explain, retrieve = exported.filter_chunks, exported.explain, exported.retrieve
self_test = exported.self_test
hand_over, record_to = exported.hand_over, exported.record_to
'''


def _check(pipeline: Pipeline, adapter: str, metric: str, score: str) -> None:
    """An InputError or SpecError for what no exported file can be."""
    if adapter and adapter not in ADAPTERS:
        raise InputError(f"the adapter is {adapter[:40]!r}, expected one of {', '.join(ADAPTERS)}")
    if metric and metric not in list(Metric):
        raise InputError(f"the metric is {metric[:40]!r}, expected one of {', '.join(Metric)}")
    if score and score not in SCORES:
        raise InputError(f"the score is {score[:40]!r}, expected one of {', '.join(SCORES)}")
    for fate in fates(pipeline):
        if not fate.goes and not fate.stays:
            able = ", ".join(name for name in STAGES if fate_of(stage_class(name)()).goes)
            raise SpecError(
                f"pipeline {pipeline.called!r} has the stage {fate.stage}, which an exported file cannot do "
                f"({fate.why}), expected only {able} after the source"
            )


def copied(modules: list[str]) -> Iterator[tuple[str, str]]:
    """(name without `rag_core.`, source) of the modules and of all of ours they import, each after what it imports."""
    done: dict[str, str] = {}

    def visit(module: str) -> None:
        if module in done:
            return
        path = _file_of(module)
        if path is None:
            raise InputError(f"{module} is no module, expected one of {ROOT}")
        source = read_text(path)
        done[module] = ""  # a module is on its way only once
        for one in imported(source):
            visit(one)
        del done[module]
        done[module] = source

    for module in modules:
        visit(module)
    for module, source in done.items():
        yield module.removeprefix(f"{ROOT}."), source


def imported(source: str) -> Iterator[str]:
    """The modules of ours that a source imports when it is loaded."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == ROOT:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if _file_of(inner) else str(node.module)


def _file_of(module: str) -> Path | None:
    base = Path(__file__).parents[2].joinpath(*module.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def _quoted(name: str, source: str, package: str) -> str:
    """A module's source as a raw literal; its imports of ours name the file's own package."""
    renamed = re.sub(rf"^(\s*from ){ROOT}\b", rf"\1{package}", source, flags=re.MULTILINE)
    raw = "'''" not in renamed and not renamed.rstrip("\n").endswith(("'", "\\"))
    literal = f"r'''{renamed}'''" if raw else repr(renamed)
    return f"\n# ---- {name}\nMODULES[{name!r}] = {literal}"


def export_spec(pipeline: Pipeline, form: str = "json") -> str:
    """The pipeline as a spec with all settings: JSON, or block YAML for people; `read_pipeline` reads both."""
    document = json.loads(json.dumps(dump_pipeline(pipeline)))  # tuples as lists
    if form == "json":
        return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    return yaml_text(document)


def self_test_of(pipeline: Pipeline) -> list[dict[str, Any]]:
    """Lists with the ids that the pipeline keeps of them; a list it refuses (another metric, no score) is left out.

    Empty where a stage waits for something that only the service has.
    """
    if needs_of(pipeline):
        return []
    tests = []
    for number, line in lines(read_text(VECTORS)):
        record = json.loads(line)
        case = read_case(record, f"vector {number}", f"v{number}")
        if case.candidates is None:
            continue
        try:
            after = pipeline(case.candidates)
        except InputError:
            continue
        if after.fallbacks:  # the file refuses a list without the scores that a stage waits for
            continue
        kept = [hit.chunk.id for hit in after.hits]
        parts = {key: record[key] for key in ("id", "query", "candidates")}
        tests.append(
            {**parts, "metric": record.get("metric", "unknown"), "order": record.get("order", "distance"), "kept": kept}
        )
    return tests


def _depth(pipeline: Pipeline) -> int:
    """How many chunks the pipeline's own source brings; without one as many as its stages read, or 50."""
    depths = [int(stage.settings()["depth"]) for stage in pipeline.stages if "depth" in stage.settings()]
    return next(iter(depths), 0) or _reach(pipeline) or 50


def _reach(pipeline: Pipeline) -> int:
    return max((stage.reach for stage in pipeline.stages), default=0)


def _header(pipeline: Pipeline) -> str:
    """Docstring and first imports; what a user named is text that cannot end the docstring."""
    name = _harmless(pipeline.called)
    deep = _reach(pipeline)
    deeper = (
        f"It refills what rules drop: hand over a deep list, {deep} chunks or more, or your search itself:\n\n"
        "    kept = retrieve(question, search)   # search(question, count): the nearest; asked again for more\n\n"
        if deep
        else ""
    )
    stays = [
        f"\nLeft to your own search: {_harmless(json.dumps(entry))}\n"
        for entry, fate in zip(dump_stages(pipeline), fates(pipeline), strict=True)
        if fate.stays
    ]
    return f'''"""Filter of retrieved chunks: pipeline {name} ({fingerprint(pipeline)}).

Exported by Winnow; standard library only, Python 3.11 or later. Copy it into your service:

    from filter import filter_chunks, explain
    kept = filter_chunks(question, chunks)   # mappings, best first, with "distance" and maybe "query_must"

{deeper}`python filter.py --self-test` checks that it does what the workbench did when it was exported. The modules
below are Winnow's own, as they ran there; `record_to("lists.jsonl")` writes down what it decides, for Winnow to read.
{"".join(stays)}"""

from __future__ import annotations

import sys
import types
from typing import Any

if sys.version_info < (3, 11):
    raise ImportError(f"Python is {{sys.version.split()[0]}}, expected 3.11 or later")
'''


def _harmless(text: str) -> str:
    """ASCII on one line, without what could end or escape a docstring."""
    plain = " ".join(text.encode("ascii", "replace").decode().split())
    return plain.replace("\\", "/").replace('"', "'")
