"""Pipelines ⇄ files: read a spec (YAML, JSON, inline), write it with all defaults, inject what stages need.

A spec is `{name, version: 1, stages: [{StageName: {setting: value}}, …]}`; a bare list of stages and a bare stage name
are accepted. This is the only module that knows every stage by name; what they do is in filters/ and retrieve/.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from rag_core.errors import InputError, SpecError
from rag_core.files import parse_json, parse_yaml, read_text
from rag_core.stage import ChosenOn, Pipeline, Setting, Stage
from rag_core.types import Step
from rag_core.workspace import resolve_workspace

VERSION = 1
SHIPPED = Path(__file__).parent / "pipelines"
SAVED = "pipelines"  # the folder of a workspace

STAGES: dict[str, str] = {
    "Dense": "rag_core.retrieve.dense",
    "Lexical": "rag_core.retrieve.lexical",
    "Hybrid": "rag_core.retrieve.hybrid",
    "NormaliseKeywords": "rag_core.retrieve.rewrite",
    "ExpandSynonyms": "rag_core.retrieve.rewrite",
    "Requery": "rag_core.retrieve.requery",
    "MultiHop": "rag_core.retrieve.multihop",
    "QueryMust": "rag_core.filters.query_must",
    "Rerank": "rag_core.filters.rerank",
    "AdaptiveGap": "rag_core.filters.adaptive",
    "EntityFilter": "rag_core.filters.entity",
    "LLMFilter": "rag_core.filters.llm.stage",
    "MinSimilarity": "rag_core.filters.cutoff",
    "TopK": "rag_core.filters.cutoff",
    "LearnedCut": "rag_core.filters.learned",
    "LearnedFilter": "rag_core.filters.learned_filter",
    "Diversity": "rag_core.filters.variety",
    "Deduplicate": "rag_core.filters.variety",
    "Coverage": "rag_core.filters.coverage",
    "ExpandReferences": "rag_core.retrieve.expand",
}
"""Stage name → module; the class has the stage's name. Imported when first named, so that a page starts quickly."""


def stage_class(name: str) -> type[Stage]:
    """The class of a stage by its name, or a SpecError that lists what exists."""
    if name not in STAGES:
        raise SpecError(f"unknown stage {name[:80]!r}, expected one of {', '.join(sorted(STAGES))}")
    found: type[Stage] = getattr(import_module(STAGES[name]), name)
    return found


def setting_fields(cls: type[Stage]) -> dict[str, Setting]:
    """The settings of a stage class by name, in the order they are written."""
    declared = {row.name: row for row in cls.declared()}
    return {f.name: declared[f.name] for f in fields(cls) if f.name in declared}


def make_stage(name: str, settings: Mapping[str, Any] | None = None) -> Stage:
    """A stage from its name and settings; an unknown setting or a value out of range is a SpecError."""
    cls = stage_class(name)
    settings = {} if settings is None else settings
    if not isinstance(settings, Mapping):
        raise SpecError(f"{name} has {settings!r:.80}, expected a mapping of settings")
    known = setting_fields(cls)
    for key in settings:
        if key not in known:
            raise SpecError(
                f"unknown setting {str(key)[:80]!r} of {name}, expected one of {', '.join(known) or 'none'}"
            )

    def made(key: str, value: Any) -> Any:
        """A setting that is a stage itself comes as its mapping of settings."""
        nested = known[key].nested
        return make_stage(nested.__name__, value) if nested is not None and isinstance(value, Mapping) else value

    return cls(**{key: made(key, value) for key, value in settings.items()})


def parse_pipeline(spec: Any, name: str = "") -> Pipeline:
    """The pipeline of a parsed spec: a mapping with `stages`, or a bare list of stages."""
    if isinstance(spec, Pipeline):
        return spec
    if isinstance(spec, list):
        spec = {"stages": spec}
    if not isinstance(spec, Mapping):
        got = "empty" if spec is None else type(spec).__name__
        raise SpecError(f"the pipeline spec is {got}, expected a mapping with stages, or a list of stages")
    unknown = set(spec) - {"name", "version", "stages", "description", "chosen_on"}
    if unknown:
        raise SpecError(
            f"unknown key {sorted(map(str, unknown))[0][:80]!r} in the spec, expected name, version, stages"
        )
    if spec.get("version", VERSION) != VERSION:
        raise SpecError(f"the spec has version {spec['version']!r:.80}, expected {VERSION}")
    stages = spec.get("stages")
    if not isinstance(stages, list):
        raise SpecError(f"stages is {stages!r:.80}, expected a list of stages")
    label = spec.get("name") or name
    if not isinstance(label, str):
        raise SpecError(f"name is {label!r:.80}, expected text")
    pipeline = Pipeline(tuple(_entry(entry) for entry in stages), label, _chosen_on(spec.get("chosen_on")))
    _check_order(pipeline.stages)
    return pipeline


def _chosen_on(said: Any) -> ChosenOn | None:
    if said is None:
        return None
    known = [field.name for field in fields(ChosenOn)]
    fits = isinstance(said, Mapping) and {"split", "questions"} <= set(said) <= set(known)
    if not fits or any(type(value) is not (int if name == "questions" else str) for name, value in said.items()):
        raise SpecError(f"chosen_on is {said!r:.80}, expected a mapping with {', '.join(known)}")
    return ChosenOn(**said)


def _entry(entry: Any) -> Stage:
    """One element of `stages`: a name, or a mapping of one name to its settings."""
    if isinstance(entry, Stage):
        return entry
    if isinstance(entry, str):
        return make_stage(entry)
    if isinstance(entry, Mapping) and len(entry) == 1:
        ((name, settings),) = entry.items()
        return make_stage(str(name), settings)
    raise SpecError(f"a stage is {str(entry)[:80]!r}, expected a stage name or a mapping of one name to its settings")


def _check_order(stages: Sequence[Stage]) -> None:
    """Rewrites stand before the source, and there is at most one source."""
    kinds = [stage.kind for stage in stages]
    if kinds.count("source") > 1:
        raise SpecError(f"the pipeline has {kinds.count('source')} sources, expected at most one")
    if "source" in kinds:
        first = kinds.index("source")
        for stage in stages[:first]:
            if stage.kind != "rewrite":
                raise SpecError(f"{stage.name} stands before the source, expected only query rewriting there")
        for stage in stages[first + 1 :]:
            if stage.kind == "rewrite":
                raise SpecError(f"{stage.name} rewrites the query, expected it before the source")


def read_pipeline(source: str) -> Pipeline:
    """A pipeline from inline JSON, a YAML or JSON file, or the name of a shipped one or of one in the workspace."""
    text = source.strip()
    if text.startswith(("{", "[")):
        return parse_pipeline(parse_json(text, "the inline pipeline"))
    path = _named(source)
    parse = parse_json if path.suffix == ".json" else parse_yaml
    return parse_pipeline(parse(read_text(path, limit=1_000_000), str(path)), name=path.stem)


def _named(name: str) -> Path:
    """The file of a shipped or saved pipeline, else the file at that path; an InputError lists the names there are.

    A file or folder of the same name never hides a shipped pipeline.
    """
    if name.replace("-", "").isalnum():
        for folder in (SHIPPED, resolve_workspace() / SAVED):
            if os.path.isfile(folder / f"{name}.yaml"):  # not Path.is_file, which raises on a name no file can have
                return folder / f"{name}.yaml"
    if os.path.exists(name):
        return Path(name)
    names = ", ".join((*shipped_names(), *saved_names()))
    raise InputError(f"pipeline {name[:200]!r} is no file, expected a spec file, inline JSON or one of {names}")


def shipped_names() -> list[str]:
    """The names of the pipelines that come with the product."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def saved_names(workspace: Path | None = None) -> list[str]:
    """The names of the pipelines that were saved in a workspace, this process's own unless given."""
    found = {path.stem for path in ((workspace or resolve_workspace()) / SAVED).glob("*.yaml")}
    return sorted(found - set(shipped_names()))


def stage_table() -> Iterator[dict[str, Any]]:
    """Every stage as plain values, by name: kind, title, meaning, settings with default and range."""
    for name in sorted(STAGES):
        cls = stage_class(name)
        defaults = dump_stages(cls())[0][name]
        settings = {
            key: {"default": defaults[key], "range": row.range, "help": row.help}
            for key, row in setting_fields(cls).items()
        }
        yield {"name": name, "kind": cls.kind, "title": cls.title, "help": cls.meaning, "settings": settings}


def dump_stages(pipeline: Stage) -> list[dict[str, Any]]:
    """The stages with all settings filled in, as plain JSON values."""
    stages = pipeline.stages if isinstance(pipeline, Pipeline) else (pipeline,)
    return [{stage.name: plain(stage.settings())} for stage in stages]


def plain(value: Any) -> Any:
    """A setting's value as plain JSON values: stages as their settings, tuples as lists."""
    if isinstance(value, Stage):
        return plain(value.settings())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def dump_pipeline(pipeline: Pipeline) -> dict[str, Any]:
    """The whole spec as plain JSON values; `parse_pipeline` gives the same pipeline back."""
    document = {"name": pipeline.called, "version": VERSION, "stages": dump_stages(pipeline)}
    return document if pipeline.chosen_on is None else {**document, "chosen_on": asdict(pipeline.chosen_on)}


def fingerprint(pipeline: Stage) -> str:
    """A short hash of what the pipeline does: equal for equal stages, whatever it is called."""
    text = json.dumps(dump_stages(pipeline), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def with_settings(pipeline: Pipeline, classes: type[Stage] | tuple[type[Stage], ...], **changes: Any) -> Pipeline:
    """The pipeline with some settings of its stages of these classes changed; a SpecError where it holds none."""
    classes = classes if isinstance(classes, tuple) else (classes,)
    if not any(isinstance(stage, classes) for stage in pipeline.stages):
        wanted = " or ".join(cls.__name__ for cls in classes)
        names = ", ".join(stage.name for stage in pipeline.stages) or "none"
        raise SpecError(f"pipeline {pipeline.label!r} has no stage {wanted}, it has {names}")
    stages = (replace(stage, **changes) if isinstance(stage, classes) else stage for stage in pipeline.stages)
    return replace(pipeline, stages=tuple(stages))


def maker(step: Step) -> type[Stage]:
    """The class of the stage that wrote a step, to be asked what the step says; Stage where it is not registered."""
    return stage_class(step.stage) if step.stage in STAGES else Stage


def build(pipeline: Pipeline, resources: Mapping[str, Any]) -> Pipeline:
    """The pipeline with handles injected: each stage field made with `resource()` takes the resource of its name."""

    def injected(stage: Stage) -> Stage:
        wanted = {f.name: resources[f.name] for f in fields(stage) if "needed" in f.metadata and f.name in resources}
        return replace(stage, **wanted) if wanted else stage

    return replace(pipeline, stages=tuple(injected(stage) for stage in pipeline.stages))
