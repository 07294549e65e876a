"""`labels`: import, export, undo, stats, agreement, audit, remap, run-file, and a model as annotator."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

from rag_core.cli.llm_filter import Endpoint, Spending, stop_if
from rag_core.cli.options import Commands, Common, MinGrade, Split
from rag_core.cli.output import AskingBar, echo
from rag_core.cli.replay import laid_over
from rag_core.cli.sessions import LabelOptions, narrowed, open_session
from rag_core.corpus.jsonl import read_jsonl
from rag_core.errors import InputError
from rag_core.eval_sets.facts import chunk_texts
from rag_core.eval_sets.reading import folders, load_set
from rag_core.eval_sets.writing import guidelines
from rag_core.files import read_text, write_whole
from rag_core.index.collection import list_collections, open_collection
from rag_core.judged import entrants, grading
from rag_core.judged.entrants import Bench
from rag_core.judged.grading import GradeProposal
from rag_core.labelling.agreement import agreement
from rag_core.labelling.audit import (
    FEWEST_AGAIN,
    LabelledPair,
    audit,
    blind_sample,
    f_under_errors,
    label_errors,
    labelled,
)
from rag_core.llm.run import answer_all, preview
from rag_core.measure.experiment import kept_ids, run, shown, write_run
from rag_core.project import deeds
from rag_core.project.asking import nearest
from rag_core.project.labels import agreement_of, unmet
from rag_core.project.project import open_project
from rag_core.store.database import has_store, open_store
from rag_core.store.events import Signature, graded_by
from rag_core.store.exchange.formats import (
    escape_id,
    format_of,
    known_format,
    lines_to_export,
    read_labels,
    renamed,
    write_labels,
)
from rag_core.store.exchange.line import parse_grades
from rag_core.store.exchange.planning import Imported, apply_import, plan_import
from rag_core.store.exchange.ragas import read_ragas, write_ragas
from rag_core.store.keys import chunk_key, text_hash
from rag_core.store.labels import LabelStore
from rag_core.store.model_labels import model_annotator, models, store_model_labels
from rag_core.store.remap import SAME, counts, remap

app = Commands()
labels = Commands("Labels: export, import, undo an import, stats, agreement.")
app.add_typer(labels, name="labels")

RAGAS = "ragas"
LISTED = 20  # labels that a remap prints
ONLY = ("labelled", "open", "all")
Raw = typer.Option(False, "--raw", help="CSV without the apostrophe that keeps a cell from running as a formula.")
Format = typer.Option(
    None, "--format", help="jsonl, trec, beir, csv, quepid, srw or ragas; else told by the file's ending."
)
ByText = typer.Option(False, "--query-texts", help="quepid, srw: queries by their text instead of their id.")
TextsFrom = typer.Option(None, "--collection", help="ragas: where the chunks' texts are; else the eval set's own.")
Searched = typer.Option(None, "--collection", help="Search this collection.")
Depth = typer.Option(200, "--depth", min=1, max=10000, help="Candidates per query of a live set.")


@contextmanager
def _opened(folder: Path, create: bool = False, stand_in: bool = False) -> Iterator[LabelStore]:
    """The label store; `stand_in`: an empty one for the time being where there is none yet."""
    with TemporaryDirectory() as empty:
        absent = stand_in and not has_store(folder)
        with open_store(Path(empty) if absent else folder, create=create or absent) as store:
            if store.unwritable:
                sys.stderr.write(f"winnow: {store.unwritable}\n")
            yield LabelStore(store)


def _existing(store: LabelStore, eval_set: str) -> str:
    """The eval set's name, or an InputError listing those that hold labels."""
    names = store.eval_sets()
    if eval_set not in names:
        listed = ", ".join(name[:40] for name in names[:20]) or "none yet"
        raise InputError(f"no labels of eval set {eval_set[:80]!r}, expected one of: {listed}")
    return eval_set


def _texts(eval_set: str, folder: Path, collection: str | None) -> tuple[dict[str, str], Mapping[str, str], int]:
    """(query id → text, chunk id → text, min_grade) of an eval set; the chunks are its own, or a collection's."""
    known = load_set(eval_set, folder)
    chunks = chunk_texts(known) if collection is None else _collection_texts(folder, collection)
    return {case.query.id: case.query.text for case in known.cases}, chunks, known.min_grade


def _collection_texts(folder: Path, collection: str) -> dict[str, str]:
    return {chunk.id: chunk.text for chunk in open_collection(folder, collection).chunks}


def _lists(
    of: LabelOptions, collection: str | None, depth: int, split: str | None = None, first: int | None = None
) -> Bench:
    """The labelled questions with their candidates."""
    session = open_session(of.folder, of.project, of.eval_set, collection)
    return nearest(session, depth, narrowed(session, split, first=first))


@labels.command("export")
def export_labels(
    of: LabelOptions,
    format_name: str | None = Format,
    out: Path | None = typer.Option(None, "--out", help="File to write whole; stdout without it."),
    annotator: str | None = typer.Option(None, "--annotator", help="Only this person's labels."),
    query_texts: bool = ByText,
    collection: str | None = TextsFrom,
    raw: bool = Raw,
) -> None:
    """Write the labels that count now. JSONL keeps everything; trec and beir hold one grade per query and chunk.

    Example: python -m rag_core labels export --eval-set demo --format trec --out demo.qrels
    """
    if of.json and out is None:
        raise InputError("--json and the labels both want stdout, expected --out FILE with --json")
    eval_set, is_ragas = of.name, format_name == RAGAS
    form = RAGAS if is_ragas else known_format(format_name or (format_of(out.name) if out else "jsonl"))
    with _opened(of.folder) as store:
        lines, left_out = lines_to_export(store, _existing(store, eval_set), annotator, "trec" if is_ragas else form)
    if is_ragas:
        text = write_ragas(lines, *_texts(eval_set, of.folder, collection))
    else:
        named = renamed(lines, _texts(eval_set, of.folder, collection)[0]) if query_texts else lines
        text = write_labels(named, form, raw)
    facts = {"eval_set": eval_set, "format": form, "out": str(out or ""), "labels": len(lines), "left_out": left_out}
    words = f"{len(lines)} labels" + (f", {left_out} unsure left out" if left_out else "")
    if out is None:
        sys.stdout.buffer.write(text.encode("utf-8"))
        sys.stdout.flush()
        echo(words, err=True)
        return
    write_whole(out, text)
    of.say(facts, f"{words} → {out}")


@labels.command("import")
def import_labels(
    of: LabelOptions,
    file: Path = typer.Argument(..., help="The label file."),
    format_name: str | None = Format,
    annotator: str = typer.Option("import", "--annotator", help="Whose labels these are where the file does not say."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what is new, equal and conflicting."),
    grades: str = typer.Option("", "--grades", help="What other grades than 0 to 3 mean here, such as 4=3,-2=0."),
    overwrite: bool = typer.Option(False, "--overwrite", help="Let conflicting labels take the file's grade."),
    query_texts: bool = ByText,
    collection: str | None = TextsFrom,
    raw: bool = Raw,
) -> None:
    """Bring labels in as one batch; conflicting ones stay as they are unless --overwrite is given.

    Example: python -m rag_core labels import demo.qrels --eval-set demo --annotator expert --dry-run
    """
    project, strangers = open_project(of.name, of.folder), 0
    eval_set = project.labels
    if format_name == RAGAS:
        queries, chunks, _ = _texts(eval_set, of.folder, collection)
        lines, strangers = read_ragas(read_text(file), file.name, queries, chunks)
    else:
        form = known_format(format_name or format_of(file.name))
        lines = read_labels(read_text(file), form, file.name, raw, parse_grades(grades))
    if query_texts:
        queries = _texts(eval_set, of.folder, collection)[0]
        lines = renamed(lines, {text: query for query, text in queries.items()})
    with _opened(of.folder, create=not dry_run, stand_in=dry_run) as store:
        plan, done = plan_import(store, eval_set, lines, annotator), Imported("", 0, "")
        if not dry_run:
            kind = deeds.import_kind(deeds.person_of_this_machine(), plan.annotators)
            with deeds.command(kind, eval_set, of.folder, ", ".join(plan.annotators)) as performed:
                done = apply_import(store, plan, overwrite, performed.signature)
                performed.result = f"{done.written} labels, {done.batch}"
    remarks = [f"{plan.to_text()}; {done.to_text()}"]
    remarks += [f"{strangers} lines ask what the eval set does not"] if strangers else []
    facts = {**plan.to_json(), "dry_run": dry_run, **asdict(done), "left_out": strangers}
    if eval_set in folders(of.folder):
        lost = unmet(lines, project)  # labels that would count for nothing
        facts |= {"unknown_queries": lost.queries, "unknown_chunks": lost.chunks}
        remarks += [lost.words] if lost.words else []
    else:
        facts |= {"unknown_queries": None, "unknown_chunks": None}
        remarks.append(f"there is no eval set {eval_set[:80]!r} here yet")
    of.say(facts, "; ".join(remarks))


@labels.command("undo")
def undo_import(
    common: Common,
    batch: str = typer.Argument(..., help="The batch that an import named."),
) -> None:
    """Take an import back; labels it had overwritten count again.

    Example: python -m rag_core labels undo import-2026-01-31T12:00:00.000000Z-1a2b3c4d
    """
    with _opened(common.folder) as store:
        kind = deeds.undo_kind(deeds.person_of_this_machine(), store.authors(batch))
        with deeds.command(kind, batch, common.folder) as performed:
            count = store.undo_batch(batch, performed.signature)
            performed.result = f"{count} labels"
    if not count:
        raise InputError(f"no label of batch {batch[:80]!r} still stands, expected the name an import gave")
    common.say({"batch": batch, "undone": count}, f"{count} labels taken back")


@labels.command("stats")
def label_stats(
    common: Common,
    eval_set: str | None = typer.Option(None, "--eval-set", help="Only this one; all without it."),
) -> None:
    """Count labels by grade and annotator.

    Example: python -m rag_core labels stats --json
    """
    with _opened(common.folder) as store:
        names = [_existing(store, eval_set)] if eval_set is not None else store.eval_sets()
        stats = [store.stats(name) for name in names]
    words = "\n".join(one.to_text() for one in stats) or "no labels yet"
    common.say({"eval_sets": [asdict(one) for one in stats]}, words)


@labels.command("agreement")
def label_agreement(of: LabelOptions) -> None:
    """How far annotators agree beyond chance: Cohen by pair, Krippendorff (ordinal), and where they differ.

    Example: python -m rag_core labels agreement --eval-set demo --json
    """
    eval_set = of.name
    with _opened(of.folder) as store:
        events = [event for event in store.labels(_existing(store, eval_set)) if not event.is_led]
    names = {(event.query_id, event.chunk_key): (event.query_id, event.chunk_id) for event in events}
    of.say(agreement(graded_by(events), names), eval_set=eval_set)


@labels.command("audit")
def audit_labels(
    of: LabelOptions,
    top: int = typer.Option(50, "--top", min=1, help="How many of the most suspect labels."),
    sample: int = typer.Option(
        0, "--sample", min=0, help="Instead: so many labels at random, to be given again blind."
    ),
    pipeline: str = typer.Option("fixed-15", "--pipeline", "-p", help="With --sample: whose F₁ the errors would move."),
    collection: str | None = Searched,
    depth: int = Depth,
    seed: int = typer.Option(0, "--seed", help="Seed of the sample."),
) -> None:
    """The labels that their texts, their like or their distance speak against, the most suspect first.

    Labels are those of the set's files with people's laid over them; a suspicion is no correction.
    Example: python -m rag_core labels audit --eval-set rulebook --top 20 --json
    """
    bench = _lists(of, collection, depth)
    known = labelled(bench.cases)
    if sample:
        drawn = blind_sample(known, sample, seed)
        rows: list[dict[str, Any]] = [{"query_id": label.query_id, "chunk_id": label.chunk_id} for label in drawn]
        errors = label_errors(_given_again(of, drawn), bench.min_grade)
        lines = [errors.to_text(), *(f"  {label.query_id}  {label.chunk_id}" for label in drawn)]
        again = {**asdict(errors), "error_rate": list(errors.error_rate) if errors.again else None, "moves": None}
        if errors.again >= FEWEST_AGAIN:
            report = run(bench.cases, laid_over(pipeline), bench.min_grade)
            kept = [kept_ids(outcome.result) for outcome in report.outcomes]
            rate, _, most = errors.error_rate
            moves = [f_under_errors(bench.cases, kept, chance, bench.min_grade) for chance in (rate, most)]
            f = report.summary.means["SetF"]
            again["moves"] = {"pipeline": report.name, "SetF": f, "at_rate": moves[0], "at_most": moves[1]}
            spans = [f"{low:.3f} to {high:.3f}" for low, high in moves]
            lines[1:1] = [
                f"F₁ of {report.name} is {shown(f)} on these labels; were each wrong that often it would read "
                f"{spans[0]}, at the upper end of the interval {spans[1]} (middle 95 %)"
            ]
    else:
        findings = audit(known, bench.min_grade)[:top]
        rows, lines = [finding.to_json() for finding in findings], [f"  {finding.to_text()}" for finding in findings]
    facts = {"eval_set": bench.name, "labels": len(known), "rows": rows, **({"given_again": again} if sample else {})}
    of.say(facts, "\n".join([f"{len(known)} labels of {bench.name}", *lines]))


def _given_again(of: LabelOptions, drawn: Sequence[LabelledPair]) -> Iterator[tuple[int, int]]:
    """(First grade, last grade) of the labels that were given twice, by whomever; the set's own file spoke first."""
    own = load_set(of.name, of.folder) if of.name in folders(of.folder) else None
    files = {case.query.id: case.grades for case in own.cases} if own else {}
    with _opened(of.folder, stand_in=True) as store:
        for label in drawn:
            events = store.history(of.name, label.query_id, label.chunk_id)
            taken_back = {event.undoes for event in events}
            said = [one.grade for one in events if one.grade is not None and one.key not in taken_back]
            first = files.get(label.query_id, {}).get(label.chunk_id)
            grades = [*([] if first is None else [first]), *said]
            if len(grades) > 1:
                yield grades[0], grades[-1]


@labels.command("remap")
def remap_labels(
    of: LabelOptions,
    collection: str = typer.Option(..., "--collection", help="The collection as it is after the ingest."),
    before: Path | None = typer.Option(None, "--before", help="The corpus as it was (JSONL with id and text)."),
) -> None:
    """After a new ingest: which labels meet the same chunk, which moved, were split, or are lost (kept as orphans).

    Texts that the labels were given on come from --before, the eval set's own corpus or lists, and its collection.
    Example: python -m rag_core labels remap --eval-set demo --collection demo --json
    """
    eval_set, chunks = of.name, _collection_texts(of.folder, collection)
    old = list(chunk_texts(load_set(eval_set, of.folder)).values()) if eval_set in folders(of.folder) else []
    if eval_set in {one.name for one in list_collections(of.folder)}:
        old += _collection_texts(of.folder, eval_set).values()
    if before is not None:
        old += [chunk.text for chunk in read_jsonl(read_text(before), before.name)]
    with _opened(of.folder) as store:
        standing = store.labels(_existing(store, eval_set))
    moved = remap(standing, chunks, {text_hash(text): text for text in old if text})
    changed = [one for one in moved if one.outcome != SAME]
    lines = [", ".join(f"{count} {outcome}" for outcome, count in counts(moved).items())]
    lines += [f"  {one.to_text()}" for one in changed[:LISTED]]
    lines += [f"  … and {len(changed) - LISTED} more"] if len(changed) > LISTED else []
    facts = {"eval_set": eval_set, "collection": collection, "counts": counts(moved)}
    of.say({**facts, "labels": [one.to_json() for one in moved]}, "\n".join(lines))


@labels.command("run-file")
def write_run_file(
    of: LabelOptions,
    pipeline: str = typer.Option("fixed-15", "--pipeline", "-p", help="Spec file, inline JSON or a shipped name."),
    out: Path = typer.Option(..., "--out", help="The TREC run to write whole."),
    collection: str | None = Searched,
    split: str | None = Split,
    depth: int = Depth,
) -> None:
    """Write what a pipeline keeps as a TREC run; with `labels export --format trec` other tools give our figures.

    Example: python -m rag_core labels run-file --eval-set recorded-combat -p query-must --out query-must.run
    """
    bench = _lists(of, collection, depth, split)
    report = run(bench.cases, laid_over(pipeline), bench.min_grade)
    text = write_run(report, escape_id)
    write_whole(out, text)
    lines, queries = text.count("\n"), len(bench.cases)
    facts = {"eval_set": bench.name, "pipeline": report.name, "queries": queries, "lines": lines, "out": str(out)}
    of.say(facts, f"{report.name}: {lines} chunks kept for {queries} queries → {out}")


@labels.command("judge")
def judge_labels(
    of: LabelOptions,
    spending: Spending,
    collection: str | None = Searched,
    depth: int = typer.Option(10, "--depth", min=1, max=1000, help="Candidates per query."),
    only: str = typer.Option("all", "--only", help="labelled (to measure agreement), open (to propose) or all."),
    split: str | None = Split,
    first: int | None = typer.Option(None, "-n", min=1, help="Only the first N queries."),
    endpoint: str = Endpoint,
    model: str = typer.Option("", "--model", help="Another model of the endpoint."),
    repeats: int = typer.Option(1, "--repeats", min=1, max=20, help="How often to ask; the first run is the label."),
    prompt: Path | None = typer.Option(None, "--prompt", help="A Jinja2 file with blocks system and user."),
) -> None:
    """Have a model grade chunks 0 to 3 with a reason; its labels count nowhere until they are asked for by name.

    Answers are stored: a stopped run goes on where it was. Ask with --only labelled first, then see judge-agreement.
    Example: python -m rag_core labels judge --eval-set recorded-combat --repeats 2 --preview
    """
    eval_set = of.name
    bench = _lists(of, collection, depth, split, first)
    with _opened(of.folder, create=not spending.preview, stand_in=spending.preview) as store:
        pairs = grading.pairs_of(bench, depth, _wanted(only, bench, store))
        place = folders(of.folder).get(eval_set, Path(eval_set))
        words, rules = grading.wording(prompt), guidelines(place)
        prompts = [grading.grading_prompt(*pair, words, rules) for pair in pairs]
        judge = entrants.endpoint_judge(of.folder, endpoint, model)
        calls = [(judge.again(number), prompts) for number in range(1, repeats + 1)]
        ahead = preview(calls)
        facts: dict[str, Any] = {"judge": judge.name, "eval_set": bench.name, "pairs": len(pairs)}
        facts["preview"] = ahead.to_json()
        said = f"{judge.name} on {bench.name}: {len(pairs)} pairs, {ahead.to_text()}"
        if spending.preview:
            of.say(facts, said)
            return
        with deeds.command(deeds.JUDGE_LABELS, bench.name, of.folder, judge.name) as performed:
            ran = answer_all(calls, spending.limits(), on_progress=AskingBar())
            proposals = grading.proposals(pairs, prompts, judge, repeats)
            written = _stored(store, bench.name, judge.model, proposals, repeats, performed.signature)
            performed.result = f"{written} labels"
    given, annotator = Counter(one.first.grade for one in proposals if one.first), model_annotator(judge.model)
    grades, failures = {str(grade): given[grade] for grade in range(4)}, Counter(one.failure for one in proposals)
    missing = {why: count for why, count in failures.items() if why}
    facts |= {"run": ran.to_json(), "annotator": annotator, "written": written, "grades": grades}
    graded = ", ".join(f"{count} of grade {grade}" for grade, count in grades.items())
    graded += "".join(f"; {count} {why}" for why, count in missing.items())
    graded += f"; stopped: {ran.stopped}" if ran.stopped else ""
    of.say(facts, f"{said}\n{graded}; {written} labels written as {annotator}", without_grade=missing)
    stop_if(ran.cancelled)


def _wanted(only: str, bench: Bench, store: LabelStore) -> Callable[[Any, Any], bool]:
    """Which pairs to ask about: those a person labelled, in the set's files or the store, the others, or all."""
    if only not in ONLY:
        raise InputError(f"--only is {only[:40]!r}, expected one of {', '.join(ONLY)}")
    said = {(event.query_id, event.chunk_key) for event in store.labels(bench.name)}

    def wanted(query: Any, chunk: Any) -> bool:
        there = chunk.id in bench.labels.get(query.id, {})
        there = there or (query.id, chunk_key(chunk.id, text_hash(chunk.text))) in said
        return only == "all" or there == (only == "labelled")

    return wanted


def _stored(
    store: LabelStore, eval_set: str, model: str, proposals: list[GradeProposal], repeats: int, by: Signature
) -> int:
    """Keep every run's grades as labels of the model; how many were written."""
    written = 0
    for number in range(1, repeats + 1):
        graded = ((one, one.runs[number - 1]) for one in proposals)
        said = (
            (one.query.id, one.query.text, one.chunk.id, one.chunk.text, grade.grade, grade.reason)
            for one, grade in graded
            if grade is not None
        )
        written += store_model_labels(store, eval_set, model_annotator(model, number), said, by)
    return written


@labels.command("judge-agreement")
def judge_agreement(
    of: LabelOptions,
    judge: str | None = typer.Option(None, "--judge", help="One model; all that labelled the set without it."),
    against: str = typer.Option("", "--against", help="Only this person's labels; else all people's and the files'."),
    bar: float = typer.Option(0.6, "--bar", min=-1, max=1, help="What the whole interval of kappa must reach."),
    min_grade: int | None = MinGrade,
) -> None:
    """How far models agree with people: kappa with its interval, confusion matrix, flips over runs, and the bar.

    Example: python -m rag_core labels judge-agreement --eval-set recorded-combat --json
    """
    eval_set = of.name
    with _opened(of.folder) as store:
        names = models(store, eval_set)
        if judge is not None and judge not in names:
            raise InputError(f"no labels of {judge[:80]!r}, expected one of: {', '.join(names) or 'none yet'}")
        judges = [judge] if judge else names
        agreed = [agreement_of(store, eval_set, name, of.folder, min_grade, bar, against) for name in judges]
    words = "\n".join(one.to_text() for one in agreed) or "no model has labelled this eval set"
    of.say({"eval_set": eval_set, "judges": [one.to_json() for one in agreed]}, words)
