"""`rules`: lint, suggest, propose, generate, apply, export, import, batches, undo, push."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from dataclasses import replace as replace_field
from pathlib import Path
from typing import Any

import typer

from rag_core import workbench
from rag_core.cli.llm_filter import Endpoint, Spending
from rag_core.cli.options import Collection, Commands, Common, EvalSetName, Lists, MinGrade
from rag_core.cli.output import AskingBar, ProgressBar
from rag_core.cli.sessions import InProject, open_session, project_named
from rag_core.errors import GateFailed, InputError
from rag_core.index.collection import open_collection
from rag_core.index.push import push_rules, undo_push
from rag_core.index.rules import apply_rules, rule_batches, undo_rules
from rag_core.judged.entrants import endpoint_judge
from rag_core.llm.run import preview
from rag_core.project import deeds
from rag_core.project.project import COLLECTION
from rag_core.project.rules import store_of
from rag_core.records import load_lists
from rag_core.retrieve.capture import captured
from rag_core.rules import siblings as crowding
from rag_core.rules import slots
from rag_core.rules.check import SEVERITIES, Checked, check_proposals, lint_rules, template_proposals
from rag_core.rules.generate import SECONDS, generate_rules, rule_prompts
from rag_core.rules.rule import Rule, read_rules, save_rules, stored_rules, unreadable_lines
from rag_core.rules.templates import TemplateFamily, propose, read_families
from rag_core.text import counted
from rag_core.types import Case, Chunk, chunks_in
from rag_core.wording import synonyms_in, word_file

app = Commands()
rules = Commands("Chunk-side rules: lint, suggest, propose, generate, apply, import, export, batches, undo, push.")
app.add_typer(rules, name="rules")

Templates = typer.Option(None, "--templates", help="A file of rule templates; default: those that ship.")


@dataclass(frozen=True)
class StoredRules(InProject):
    """The collection whose rules a command works on, by name or by its project."""

    collection: str | None = typer.Option(None, "--collection", help="The collection's name.")

    @property
    def name(self) -> str:
        """The collection; an InputError where neither it nor a project that searches one is named."""
        project = None if self.collection else self.opened()
        source = project.source if project else None
        name = self.collection or (source.name if source and source.kind == COLLECTION else None)
        if name is None:
            raise InputError("no collection is named, expected --collection NAME or --project NAME")
        return name


@dataclass(frozen=True)
class Material:
    """Chunks with their rules, questions that may choose (of a project those not held out), what is relevant."""

    chunks: Sequence[Chunk]
    cases: Sequence[Case]
    min_grade: int
    collection: str | None
    index: Any = None

    def listed(self, k: int) -> list[Case]:
        """The questions with their first k of the collection, where no list was recorded."""
        source = workbench.source_of(self.index, k) if self.index is not None else None
        return [case if case.candidates or not source else captured(case, source) for case in self.cases]


@dataclass(frozen=True)
class RulesAbout(InProject):
    """Chunks and labelled questions that rules are checked against."""

    collection: str | None = Collection
    eval_set: str | None = EvalSetName
    lists: Path | None = Lists
    min_grade: int | None = MinGrade

    def read(self) -> Material:
        """The collection's chunks (an eval set with a corpus brings its own), else those of the recorded lists."""
        named = self.collection or self.eval_set or project_named(self.project)
        recorded = tuple(load_lists(self.lists)) if self.lists else ()
        if not recorded and not named:
            raise InputError(
                "no chunks were named, expected --collection NAME, an --eval-set with chunks or --lists FILE"
            )
        if recorded and not (self.collection or self.eval_set):
            return Material(tuple(chunks_in(recorded).values()), recorded, self.min_grade or 1, None)
        project = None if recorded or (self.collection and not self.project) else self.project
        session = open_session(self.folder, project, self.eval_set, self.collection, min_grade=self.min_grade)
        source, opened = session.project.source, session.source
        if not opened.chunks:
            raise InputError(f"{source.text} names no chunks, expected --collection NAME or an --eval-set with chunks")
        collection = source.name if source.kind == COLLECTION else None
        cases = (*recorded, *(session.dev or session.cases))
        return Material(opened.chunks, cases, session.min_grade, collection, opened.index)


def _families(templates: Path | None) -> Sequence[TemplateFamily] | None:
    return read_families(templates) if templates else None


@rules.command("lint")
def lint(about: RulesAbout) -> None:
    """Check stored rules against queries, labels and one another. Exit code 1 where there are errors.

    Example: python -m rag_core rules lint --eval-set rulebook
    """
    material = about.read()
    findings = lint_rules(material.chunks, material.cases, material.min_grade)
    counts = {severity: sum(finding.severity == severity for finding in findings) for severity in SEVERITIES}
    lines = [*(finding.to_text() for finding in findings), ", ".join(f"{n} {kind}s" for kind, n in counts.items())]
    facts = {"chunks": len(material.chunks), "counts": counts, "findings": [asdict(finding) for finding in findings]}
    about.say(facts, "\n".join(lines))
    if counts["error"]:
        raise GateFailed(f"the rules have {counts['error']} errors")


@rules.command("suggest")
def suggest(
    about: RulesAbout,
    k: int = typer.Option(15, "-k", min=1, max=1000, help="How many places of each list count."),
    templates: Path | None = Templates,
) -> None:
    """Families of near-duplicate titles, those that crowd result lists most first, and how many carry rules.

    Example: python -m rag_core rules suggest --eval-set rulebook
    """
    material, families = about.read(), _families(templates)
    crowds = crowding.suggest(material.chunks, material.listed(k), k, material.min_grade, families)
    covered = crowding.coverage(material.chunks, crowds)
    facts = {"coverage": asdict(covered), "families": [asdict(crowd) for crowd in crowds]}
    about.say(facts, "\n".join([*(crowd.to_text() for crowd in crowds), covered.to_text()]))


@rules.command("generate")
def generate(
    about: RulesAbout,
    spending: Spending,
    family: str | None = typer.Option(None, "--family", help="Only this family, by template or as suggest names it."),
    templates: Path | None = Templates,
    model: bool = typer.Option(False, "--model", help="Let a language model write the rules."),
    endpoint: str = Endpoint,
    out: Path | None = typer.Option(None, "--out", help="File for the rules that pass: YAML, or JSON by its ending."),
) -> None:
    """Write rules from templates or with a model, check them, and put those that pass into a file. Stores nothing.

    Example: python -m rag_core rules generate --eval-set rulebook --out rules.yaml
    """
    material, families = about.read(), _families(templates)
    chunks = _of_family(material.chunks, family, families)
    against = (material.chunks, material.cases, material.min_grade, families)
    facts: dict[str, Any] = {"out": str(out or "")}
    if model:
        judge = endpoint_judge(about.folder, endpoint)
        prompts = rule_prompts(chunks, families)
        ahead = preview([(judge, prompts)])
        facts["preview"] = ahead.to_json()
        if spending.preview:
            about.say(facts, ahead.to_text())
            return
        limits = spending.limits(seconds_per_call=SECONDS)
        with deeds.command(deeds.ASK_MODEL, judge.model, about.folder):
            made = generate_rules(prompts, judge, limits, AskingBar())
        checked = check_proposals(made.proposals, *against, made.refused)
        facts |= {"asked": made.asked, "kept_answers": made.kept, "unanswered": dict(made.unanswered)}
    else:
        checked = check_proposals(template_proposals(chunks, families), *against)
    if out is not None:
        save_rules(out, checked.accepted)
    _report(about, checked, facts, f"written to {out}" if out else "pass")


def _of_family(
    chunks: Sequence[Chunk], family: str | None, families: Sequence[TemplateFamily] | None
) -> Sequence[Chunk]:
    """The chunks of one family, by its template's name or as `suggest` names it; all without a name."""
    if family is None:
        return chunks
    by_template = [chunk for chunk in chunks if (found := propose(chunk.title, families)) and found.family == family]
    named = {crowd.name: crowd.chunks for crowd in crowding.suggest(chunks, families=families)}
    ids = set(named.get(family, ()))
    members = by_template or [chunk for chunk in chunks if chunk.id in ids]
    if not members:
        raise InputError(f"there is no family {family[:80]!r}, expected one of {'; '.join(named) or 'none'}")
    return members


def _report(common: Common, checked: Checked, facts: Mapping[str, Any], done: str) -> None:
    """What passed and each refusal with its reason; `done` says what became of the rules that passed."""
    lines = [f"unanswered {chunk}: {text}" for chunk, text in facts.get("unanswered", {}).items()]
    said = f"{len(checked.accepted)} rules {done}, {len(checked.refused)} refused"
    common.say(checked, "\n".join([*checked.remarks, *lines, said]), **facts)


@rules.command("propose")
def propose_from_slots(
    about: RulesAbout,
    family: str | None = typer.Option(None, "--family", help="Only families with this in their name, in full."),
    check: bool = typer.Option(False, "--check", help="What the rules would drop on the labelled dev questions."),
    policy: str = typer.Option(
        "proposed",
        "--policy",
        help="proposed; strict or named for all; labels: strict where labels vouch for it.",
    ),
    apply: bool = typer.Option(
        False,
        "--apply",
        help="Store the rules of families that lose no dev answer, as one batch; rules undo takes it back.",
    ),
    replace: bool = typer.Option(False, "--replace", help="With --apply: also for chunks that carry a rule."),
) -> None:
    """Rules from slots: families of near-duplicate titles, and what a question must name of each member.

    Example: python -m rag_core rules propose --eval-set rulebook --check
    """
    material = about.read()
    # The synonyms that questions are rewritten with name a value as well.
    synonyms = synonyms_in(word_file(about.folder, material.collection or "", "synonyms", about.eval_set or "")).terms
    families = slots.named_so(slots.propose(material.chunks, synonyms), family)
    families = [slots.with_policy(one, policy, material.cases, material.min_grade) for one in families]
    checks = [slots.check(one, material.cases, min_grade=material.min_grade) for one in families]
    batch, stored = None, 0
    safe = slots.safe(families, checks)
    if apply:
        if material.collection is None:
            raise InputError("rules are stored in a collection, expected --collection NAME")
        found = slots.rules_to_store(safe, material.chunks, replace)
        title = families[0].name if len(families) == 1 else f"{len(families)} families"
        batch, stored = _store(about.folder, material.collection, found, f"slots: {title}"[:200]), len(found)
    repeated = slots.repeated_titles(material.chunks)
    shown = checks if check else []
    facts = {"families": [one.to_json() for one in families], "checks": [one.to_json() for one in shown]}
    lines = []
    for at, one in enumerate(families):
        lines.append(one.to_text() if family else one.to_text().splitlines()[0])
        lines += [shown[at].to_text()] if check else []
    count = sum(len(one.rules) for one in families)
    lines.append(f"{len(families)} families, {count} rules for {len(material.chunks)} chunks")
    if check:
        lines.append(f"checked on {counted(len(material.cases), 'question', 'questions')}, none of them held out")
    if apply and len(safe) < len(families):
        left = len(families) - len(safe)
        lines.append(f"{counted(left, 'family loses', 'families lose')} an answer of a dev question: not stored")
    if repeated:
        shared = sum(map(len, repeated.values()))
        lines.append(f"{shared} chunks share {len(repeated)} titles: no title tells those apart")
    if apply:
        lines.append(f"{stored} rules stored as batch {batch}" if stored else "nothing new to store")
    about.say(facts, "\n".join(lines), repeated=repeated, batch=batch, stored=stored)


@rules.command("apply")
def apply_file(
    about: RulesAbout,
    file: Path = typer.Argument(..., help="Rules by chunk id, as generate and export write them."),
    batch: str = typer.Option("", "--about", help="A word for the batch; default: the file's name."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Check only."),
) -> None:
    """Check rules and store those that pass as one batch; nothing is embedded. Exit code 1 where none passes.

    Example: python -m rag_core rules apply rules.yaml --collection rulebook --eval-set rulebook
    """
    collection = StoredRules(about.workspace, project=about.project, collection=about.collection).name
    material = replace_field(about, collection=collection).read()
    checked = check_proposals(read_rules(file), material.chunks, material.cases, material.min_grade)
    number = None if dry_run else _store(about.folder, collection, checked.accepted, batch or file.name)
    _report(about, checked, {"batch": number}, "pass" if number is None else f"stored as batch {number}")
    if not checked.accepted:
        raise GateFailed("no rule passed the check")


def _store(folder: Path, collection: str, rules: Mapping[str, Rule], about: str) -> int | None:
    """The number of the batch that the rules became, or None where there is none to store."""
    if not rules:
        return None
    with deeds.command(deeds.CHANGE_RULES, collection, folder) as performed:
        number = apply_rules(folder, collection, rules, about).number
        performed.result = f"batch {number}"
    return number


@rules.command("export")
def export(
    stored: StoredRules,
    out: Path = typer.Option(..., "--out", help="YAML, or JSON by its ending."),
) -> None:
    """Write the collection's rules to a file that apply reads, from wherever its chunks keep them."""
    found, wrong = stored_rules(open_collection(stored.folder, stored.name).chunks)
    save_rules(out, found)
    facts = {"out": str(out), "rules": len(found), "unreadable": wrong}
    stored.say(facts, "\n".join([*unreadable_lines(wrong), f"{len(found)} rules → {out}"]))


@rules.command("import")
def import_metadata(stored: StoredRules) -> None:
    """Bring rules that stand in the chunks' metadata (a JSON string, flat lists) into the rules' own place."""
    chunks = open_collection(stored.folder, stored.name).chunks
    found, wrong = stored_rules(chunks)
    own = {chunk.id: chunk.query_must for chunk in chunks}
    fresh = {chunk: rule for chunk, rule in found.items() if own[chunk] != rule.as_mapping()}
    number = _store(stored.folder, stored.name, fresh, "import of metadata")
    line = f"{len(fresh)} rules imported" + (f" as batch {number}" if number else "")
    facts = {"batch": number, "imported": len(fresh), "unreadable": wrong}
    stored.say(facts, "\n".join([*unreadable_lines(wrong), line]))


@rules.command("batches")
def batches(stored: StoredRules) -> None:
    """The batches of rules stored in a collection, oldest first."""
    found = rule_batches(stored.folder, stored.name)
    lines = [*(batch.to_text() for batch in found), f"{len(found)} batches"]
    stored.say({"batches": [asdict(batch) for batch in found]}, "\n".join(lines))


@rules.command("undo")
def undo(
    stored: StoredRules,
    batch: int | None = typer.Option(None, "--batch", help="The batch's number; default: the last one standing."),
) -> None:
    """Take a batch of rules back; chunks whose rules were changed since keep them."""
    with deeds.command(deeds.UNDO_RULES, stored.name, stored.folder) as performed:
        undone = undo_rules(stored.folder, stored.name, batch)
        performed.result = f"batch {undone.number}"
    stored.say(asdict(undone), undone.to_text())


@rules.command("push")
def push(
    stored: StoredRules,
    to: str = typer.Option("chroma", "--to", help="Where to: the Chroma store that the collection was connected from."),
    form: str = typer.Option(
        "auto", "--form", help="How a rule is written: plain, wrapper, or auto as the store has it."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what would change."),
    undo: bool = typer.Option(False, "--undo", help="Give every chunk of the last push what it had before."),
) -> None:
    """Write the rules set here into the person's own Chroma store: metadata alone, and only what differs.

    Example: winnow rules push --collection monsters --to chroma --dry-run
    """
    if to != "chroma":
        raise InputError(f"--to is {to[:40]!r}, expected chroma")
    if dry_run and undo:
        raise InputError("got --dry-run and --undo, expected one of them")
    name, folder = stored.name, stored.folder
    place = store_of(folder, name)
    progress = ProgressBar("written")
    if dry_run:
        told = push_rules(folder, name, place, form=form, dry_run=True)
    else:
        with deeds.command(deeds.UNDO_RULES if undo else deeds.CHANGE_RULES, f"{name} in {place.said}", folder) as deed:
            if undo:
                told = undo_push(folder, name, place, progress=progress)
            else:
                told = push_rules(folder, name, place, form=form, progress=progress)
            deed.result = f"push {told.number}"
    stored.say(told, told.to_text())
