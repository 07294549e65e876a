"""`rules generate`, `propose` and `apply`: rules of templates, a model or slots, checked, stored as one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rag_core.cli.options import Collection, EvalSetName, Json, Lists, MinGrade, Workspace
from rag_core.cli.output import emit
from rag_core.cli.rule_sources import NamedCollection, Sources, Templates, read_sources, read_templates
from rag_core.errors import GateFailed, InputError
from rag_core.workspace import resolve_workspace

if TYPE_CHECKING:
    from rag_core.rules.model import Rule
    from rag_core.rules.proposals import Checked
    from rag_core.rules.slot_check import SlotCheck
    from rag_core.rules.slots import SlotFamily as SlotFamily
    from rag_core.rules.templates import TemplateFamily
    from rag_core.types import Chunk


def generate(
    collection: str | None = Collection,
    eval_set: str | None = EvalSetName,
    lists: Path | None = Lists,
    family: str | None = typer.Option(None, "--family", help="Only this family, by template or as suggest names it."),
    templates: Path | None = Templates,
    model: bool = typer.Option(False, "--model", help="Let the environment's language model write the rules."),
    out: Path | None = typer.Option(None, "--out", help="File for the rules that pass: YAML, or JSON by its ending."),
    min_grade: int | None = MinGrade,
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Write rules from templates or with a model, check them, and put those that pass into a file. Stores nothing.

    Example: python -m rag_core rules generate --eval-set rulebook --out rules.yaml
    """
    folder = resolve_workspace(workspace)
    sources = read_sources(folder, collection, eval_set, lists, min_grade)
    families = read_templates(templates)
    chunks = _of_family(sources.chunks, family, families)
    checked, facts = _written(chunks, sources, families, folder, model)
    if out is not None:
        write_file(out, checked.accepted)
    _report(checked, json, {**facts, "out": str(out or "")}, f"written to {out}" if out else "pass")


def _of_family(
    chunks: Sequence[Chunk], family: str | None, families: Sequence[TemplateFamily] | None
) -> Sequence[Chunk]:
    """The chunks of one family, by its template's name or as `suggest` names it; all without a name."""
    from rag_core.rules.suggest import suggest as crowds
    from rag_core.rules.templates import propose

    if family is None:
        return chunks
    by_template = [chunk for chunk in chunks if (found := propose(chunk.title, families)) and found.family == family]
    named = {one.name: one.chunks for one in crowds(chunks, families=families)}
    ids = set(named.get(family, ()))
    chosen = by_template or [chunk for chunk in chunks if chunk.id in ids]
    if not chosen:
        raise InputError(f"there is no family {family[:80]!r}, expected one of {'; '.join(named) or 'none'}")
    return chosen


def _written(
    chunks: Sequence[Chunk], sources: Sources, families: Sequence[TemplateFamily] | None, folder: Path, model: bool
) -> tuple[Checked, dict[str, Any]]:
    """The checked rules of a generator, and what the run cost."""
    from rag_core.project import deeds
    from rag_core.rules.generate import check_generated, generate_rules
    from rag_core.rules.proposals import check_proposals, template_proposals

    if not model:
        proposals = template_proposals(chunks, families)
        return check_proposals(proposals, sources.chunks, sources.cases, sources.min_grade, families), {}
    client, name = _model_client()
    with deeds.command(deeds.ASK_MODEL, name, folder):
        made = generate_rules(chunks, client, name, folder / "rule-answers.jsonl", families, progress=_bar())
    checked = check_generated(made, sources.chunks, sources.cases, sources.min_grade, families)
    return checked, {"asked": made.asked, "kept_answers": made.kept, "unanswered": dict(made.unanswered)}


def _model_client() -> tuple[Any, str]:
    from rag_core.llm import Client
    from rag_core.llm.named import endpoint_of
    from rag_core.settings import model_settings

    settings = model_settings()
    if settings is None:
        raise InputError("no model endpoint is set, expected one in the environment; doctor names the variables")
    return Client(endpoint_of(settings)), settings.model


def _bar() -> Any:
    from rag_core.cli.progress import ProgressBar

    return ProgressBar("asked for")


def write_file(out: Path, rules: Mapping[str, Any]) -> None:
    """Write rules whole, as YAML or as JSON by the file's ending."""
    from json import dumps

    from rag_core.files import write_whole
    from rag_core.rules.rule_files import VERSION, write_rules

    if out.suffix == ".json":
        plain = {identity: rules[identity].as_mapping() for identity in sorted(rules)}
        write_whole(out, dumps({"version": VERSION, "rules": plain}, ensure_ascii=False, indent=1) + "\n")
    else:
        write_whole(out, write_rules(rules))


def _report(checked: Checked, json: bool, facts: Mapping[str, Any], done: str) -> None:
    """What passed, and each refusal with its reason."""
    accepted = {identity: rule.as_mapping() for identity, rule in checked.accepted.items()}
    if json:
        refused = [asdict(one) for one in checked.refused]
        emit({"accepted": accepted, "refused": refused, "warnings": list(checked.warnings), **facts})
        return
    lines = [f"refused {one.chunk_id}: {one.reason}" for one in checked.refused]
    lines += [f"warning: {text}" for text in checked.warnings]
    lines += [f"unanswered {identity}: {text}" for identity, text in facts.get("unanswered", {}).items()]
    typer.echo("\n".join([*lines, f"{len(accepted)} rules {done}, {len(checked.refused)} refused"]))


def propose(
    collection: str | None = Collection,
    family: str | None = typer.Option(None, "--family", help="Only families with this in their name, in full."),
    check: bool = typer.Option(False, "--check", help="What the rules would drop on the labelled questions."),
    policy: str = typer.Option(
        "proposed",
        "--policy",
        help="proposed; strict or named for all; labels: strict where labels vouch for it.",
    ),
    apply: bool = typer.Option(False, "--apply", help="Store the rules as one batch; rules undo takes it back."),
    replace: bool = typer.Option(False, "--replace", help="With --apply: also for chunks that carry a rule."),
    eval_set: str | None = EvalSetName,
    lists: Path | None = Lists,
    min_grade: int | None = MinGrade,
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Rules from slots: families of near-duplicate titles, and what a question must name of each member.

    Example: python -m rag_core rules propose --eval-set rulebook --check
    """
    from rag_core.rules import slot_check
    from rag_core.rules.slots import propose as propose_families
    from rag_core.rules.slots import repeated_titles

    folder = resolve_workspace(workspace)
    sources = read_sources(folder, collection, eval_set, lists, min_grade)
    families = _named_so(propose_families(sources.chunks, _synonyms(folder, sources.collection, eval_set)), family)
    families = [_with_policy(one, policy, sources) for one in families]
    checks = [slot_check.check(one, sources.cases, min_grade=sources.min_grade) for one in families] if check else []
    stored = _store_families(folder, sources, families, checks, replace) if apply else None
    repeated = repeated_titles(sources.chunks)
    if json:
        found = [one.to_json() for one in families]
        facts = {"batch": stored[0], "stored": stored[1]} if stored is not None else {"batch": None, "stored": 0}
        emit({"families": found, "checks": [one.to_json() for one in checks], "repeated": repeated, **facts})
        return
    for at, one in enumerate(families):
        typer.echo(one.to_text() if family else one.to_text().splitlines()[0])
        if check:
            typer.echo(checks[at].to_text())
    rules = sum(len(one.rules) for one in families)
    typer.echo(f"{len(families)} families, {rules} rules for {len(sources.chunks)} chunks")
    if repeated:
        shared = sum(map(len, repeated.values()))
        typer.echo(f"{shared} chunks share {len(repeated)} titles: no title tells those apart")
    if stored is not None:
        typer.echo(f"{stored[1]} rules stored as batch {stored[0]}" if stored[1] else "nothing new to store")


def _named_so(families: list[SlotFamily], name: str | None) -> list[SlotFamily]:
    """The families whose name holds the words, or an InputError that lists some there are."""
    chosen = [one for one in families if name is None or name.casefold() in one.name.casefold()]
    if name is not None and not chosen:
        names = "; ".join(one.name for one in families[:20]) or "none"
        raise InputError(f"there is no family {name[:80]!r}, expected one of {names}")
    return chosen


def _with_policy(family: SlotFamily, policy: str, sources: Sources) -> SlotFamily:
    from rag_core.rules.slot_check import settled
    from rag_core.rules.slots import POLICIES

    if policy == "proposed":
        return family
    if policy == "labels":
        return settled(family, sources.cases, sources.min_grade)
    if policy not in POLICIES:
        raise InputError(f"--policy is {policy[:80]!r}, expected proposed, {', '.join(POLICIES)} or labels")
    return family.with_policy(policy)


def _synonyms(folder: Path, collection: str | None, eval_set: str | None) -> Mapping[str, Sequence[str]]:
    """The synonyms that questions to the collection are rewritten with: they name a value as well."""
    from rag_core.wording import synonyms_in, word_file

    return synonyms_in(word_file(folder, collection or "", "synonyms", eval_set or "")).terms


def _store_families(
    folder: Path, sources: Sources, families: Sequence[SlotFamily], checks: Sequence[SlotCheck], replacing: bool
) -> tuple[int | None, int]:
    """(batch, rules stored); a rule that would drop a chunk labelled relevant is left out where that was checked."""
    from rag_core.rules.slots import rules_to_store

    if sources.collection is None:
        raise InputError("rules are stored in a collection, expected --collection NAME")
    wrong = {drop.chunk_id for one in checks for drop in one.wrong}
    rules = rules_to_store(families, sources.chunks, replacing)
    rules = {identity: rule for identity, rule in rules.items() if identity not in wrong}
    about = families[0].name if len(families) == 1 else f"{len(families)} families"
    return _stored(folder, sources.collection, rules, f"slots: {about}"[:200]), len(rules)


def apply(
    file: Path = typer.Argument(..., help="Rules by chunk id, as generate and export write them."),
    collection: str = NamedCollection,
    eval_set: str | None = EvalSetName,
    lists: Path | None = Lists,
    about: str = typer.Option("", "--about", help="A word for the batch; default: the file's name."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Check only."),
    min_grade: int | None = MinGrade,
    workspace: Path | None = Workspace,
    json: bool = Json,
) -> None:
    """Check rules and store those that pass as one batch; nothing is embedded. Exit code 1 where none passes.

    Example: python -m rag_core rules apply rules.yaml --collection rulebook --eval-set rulebook
    """
    from rag_core.rules.proposals import check_proposals
    from rag_core.rules.rule_files import read_rules

    folder = resolve_workspace(workspace)
    sources = read_sources(folder, collection, eval_set, lists, min_grade)
    checked = check_proposals(read_rules(file), sources.chunks, sources.cases, sources.min_grade)
    number = None if dry_run else _stored(folder, collection, checked.accepted, about or file.name)
    _report(checked, json, {"batch": number}, "pass" if number is None else f"stored as batch {number}")
    if not checked.accepted:
        raise GateFailed("no rule passed the check")


def _stored(folder: Path, collection: str, rules: Mapping[str, Rule], about: str) -> int | None:
    """The number of the batch that the rules became, or None where there is none to store."""
    from rag_core.index.rules import apply_rules
    from rag_core.project import deeds

    if not rules:
        return None
    with deeds.command(deeds.CHANGE_RULES, collection, folder) as performed:
        number = apply_rules(folder, collection, rules, about).number
        performed.result = f"batch {number}"
    return number
