"""`replay`: run pipelines over recorded result lists and measure them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import typer

from rag_core.cli.options import Commands, Common
from rag_core.cli.output import echo, emit
from rag_core.compare.snapshot import About, ListsDigest, Recorder
from rag_core.compare.systems import joined
from rag_core.errors import InputError
from rag_core.eval_sets.reading import labels_fingerprint
from rag_core.files import write_whole
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import TopK
from rag_core.measure.experiment import Outcome, ReportFile, stream, unique_names, with_labels
from rag_core.measure.measures import DEFAULT_MEASURES, SET_MEASURES, parse_measure
from rag_core.measure.significance import Comparison, compare_reports
from rag_core.resources import with_handles
from rag_core.retrieve.multihop import MultiHop
from rag_core.retrieve.requery import Requery
from rag_core.rules.templates import read_families, with_rules
from rag_core.sources.trec_run import is_run, read_lists, read_qrels, unanswered
from rag_core.spec import fingerprint, read_pipeline, with_settings
from rag_core.stage import Pipeline
from rag_core.types import Case

app = Commands()
FILES_HELP = "Recorded lists, JSONL, one query a line (docs/formats.md), or a TREC run; several are several systems."
Pipelines = typer.Option(None, "--pipeline", "-p", help="Spec file, inline JSON or a shipped name; may be repeated.")


RunOut = typer.Option(None, "--run-out", help="Write the run to this file (docs/formats.md); gates read it.")


@dataclass(frozen=True)
class Keeping:
    """Whether a run is kept, where, and under which name."""

    save_run: bool = typer.Option(False, "--save-run", help="Keep the run in the workspace (see `runs`).")
    run_out: Path | None = RunOut
    run_name: str = typer.Option("", "--run-name", help="What to call the run; default: its pipelines.")

    @property
    def wanted(self) -> bool:
        """Whether the run goes anywhere."""
        return self.save_run or self.run_out is not None

    def keep(self, recorder: Recorder, folder: Path) -> None:
        """Store the run that was recorded, write its file, or neither; where it went is said on stderr."""
        if not self.wanted:
            return

        # The database layer takes a fifth of a second: only who keeps a run waits for it.
        from rag_core.cli.runs import store_run
        from rag_core.compare.run_file import dump_run

        run = recorder.run()
        if self.run_out is not None:
            write_whole(self.run_out, dump_run(run))
            sys.stderr.write(f"run {run.id} → {self.run_out}\n")
        if self.save_run:
            store_run(run, folder)
            sys.stderr.write(f"run {run.id} kept in the workspace\n")


@dataclass(frozen=True)
class Short:
    """The settings that are tried most, without a spec; a pipeline that lacks their stage refuses them."""

    gap_threshold: float | None = typer.Option(None, "--gap-threshold", help="AdaptiveGap.gap_threshold.")
    distance_threshold: float | None = typer.Option(None, "--distance-threshold", help="AdaptiveGap.distance_offset.")
    max_chunks: int | None = typer.Option(None, "--max-chunks", help="AdaptiveGap.max_results.")
    max_hops: int | None = typer.Option(
        None,
        "--max-hops",
        help="MultiHop.max_hops: most further retrievals, 0 is off; a pipeline without that stage gets it at its end. "
        "Recorded lists are not hopped.",
    )
    k: int | None = typer.Option(None, "-k", help="TopK.k and Requery.k.")

    def over(self, pipeline: Pipeline) -> Pipeline:
        """The pipeline with these settings laid over its stages; a SpecError names the stage that it lacks."""
        if self.gap_threshold is not None:
            pipeline = with_settings(pipeline, AdaptiveGap, gap_threshold=self.gap_threshold)
        if self.distance_threshold is not None:
            pipeline = with_settings(pipeline, AdaptiveGap, distance_offset=self.distance_threshold)
        if self.max_chunks is not None:
            pipeline = with_settings(pipeline, AdaptiveGap, max_results=self.max_chunks)
        if self.k is not None:
            pipeline = with_settings(pipeline, (TopK, Requery), k=self.k)
        if self.max_hops is None:
            return pipeline
        if any(isinstance(stage, MultiHop) for stage in pipeline.stages):
            return with_settings(pipeline, MultiHop, max_hops=self.max_hops)
        return replace(pipeline, stages=(*pipeline.stages, MultiHop(max_hops=self.max_hops)))


@app.command()
def replay(
    common: Common,
    short: Short,
    keeping: Keeping,
    files: list[Path] = typer.Argument(..., help=FILES_HELP),
    pipeline: list[str] = Pipelines,
    queries: Path | None = typer.Option(None, help="Of a TREC run: its questions, JSONL or `id TAB text`."),
    corpus: Path | None = typer.Option(None, help="Of a TREC run: the documents its ids name."),
    qrels: Path | None = typer.Option(None, help="Labels beside the lists: TREC qrels or BEIR tsv."),
    trec_ties: bool = typer.Option(
        False, "--trec-ties", help="Of a TREC run: equal scores by document id, last first, as trec_eval orders them."
    ),
    rules: Path | None = typer.Option(None, help="query_must templates by title pattern, YAML."),
    min_grade: int = typer.Option(1, "--min-grade", min=1, help="Relevant means this grade or more."),
    measure: list[str] = typer.Option(None, "--measure", "-m", help="A measure, such as nDCG@10; may be repeated."),
    name: list[str] = typer.Option(None, "-t", help="Only the query with this id; may be repeated."),
    first: int | None = typer.Option(None, "-n", min=1, help="Only the first N queries."),
    debug: bool = typer.Option(False, "--debug", help="The trace of every query as text, on stderr."),
) -> None:
    """Run filters over recorded lists: what stays, what goes and why, and the measures against the labels.

    Several files are several systems over the same questions, each against the first.
    """
    lists: dict[str, list[Case]] = {}
    notices: list[str] = []
    unasked: dict[str, Case] = {}  # labelled questions that a run has no line for
    for file in files:
        cases = read_lists(file, queries, corpus, "trec" if trec_ties else "rank")
        if rules is not None:
            cases = with_rules(cases, read_families(rules))
        if qrels is not None:
            chunks = {hit.chunk.id for case in cases if case.candidates for hit in case.candidates.hits}
            labels = read_qrels(qrels, {case.query.id for case in cases}, chunks)
            cases = with_labels(cases, labels)
            missing = {case.query.id: case for case in unanswered(labels, cases, queries)}
            unasked |= missing if is_run(file) else {}
            if missing and len(files) == 1:
                counted = "count 0" if is_run(file) else "are left out: recorded lists bring their questions"
                ids = ", ".join(list(missing)[:10]) + (" …" if len(missing) > 10 else "")
                notices.append(f"{file.name} lacks {len(missing)} labelled questions, which {counted}: {ids}")
        label = file.stem if file.stem not in lists else str(file)
        if label in lists:
            raise InputError(f"{file} is named twice, expected each file once")
        lists[label] = cases
    listed = {case.query.id for cases in lists.values() for case in cases}
    lacking = [case for query_id, case in unasked.items() if query_id not in listed]
    pipelines = [laid_over(spec, short) for spec in pipeline or ["unfiltered"]]
    reports, measures = Reports(min_grade, common.json, debug), measures_of(measure)
    if len(files) == 1:
        cases = chosen(cases + lacking, name, first)
        recorder = Recorder(pipelines, min_grade, About(keeping.run_name, eval_set_of(files[0])))
        watch = [recorder.add] if keeping.wanted else []
        reports.read(unique_names(pipelines), pipelines, stream(cases, pipelines, min_grade, measures), *watch)
        facts = lists_stand_on(cases, pipelines)
        keeping.keep(recorder, common.folder)
    else:
        if keeping.wanted:
            raise InputError("got several files and --save-run or --run-out, expected one system in a run")
        systems, told = joined(lists, lacking)
        notices += told
        for system in systems:
            cases = chosen(list(system.cases), name, first)
            several = [f"{system.name} · {pipeline.called}" for pipeline in pipelines]
            names = [system.name] if len(pipelines) == 1 else several
            reports.read(names, pipelines, stream(cases, pipelines, min_grade, measures))
        rows = [
            {"name": one.name, "questions": len(one.cases), "missing": list(one.missing)}
            | {"fingerprints": lists_stand_on(one.cases, pipelines)["fingerprints"]}
            for one in systems
        ]
        facts = {**lists_stand_on(systems[0].cases, pipelines), "systems": rows}
    reports.show(compare_reports(reports.files, measures=measure or ["SetF"]), notices, facts)


def eval_set_of(file: Path) -> str:
    """What a run of recorded lists says it was measured on: the file's name, or its folder's in an eval set."""
    return file.resolve().parent.name if file.name == "lists.jsonl" else file.stem


def chosen(cases: list[Any], names: list[str] | None, first: int | None) -> list[Any]:
    """The cases of those ids, then the first N; an InputError where none is left."""
    if names:
        known = {case.query.id for case in cases}
        missing = next((name for name in names if name not in known), None)
        if missing is not None:
            raise InputError(
                f"there is no query {missing[:80]!r}, expected one of the {len(known)} query ids of the file"
            )
        cases = [case for case in cases if case.query.id in names]
    return cases[:first] if first else cases


def laid_over(source: str, short: Short | None = None, session: Any = None) -> Pipeline:
    """The pipeline of a spec with the short options laid over it and its handles in place.

    A session knows the names its project gave; it hands the stages what they need when they run.
    """
    pipeline = read_pipeline(source) if session is None else session.pipeline(source)
    if short is not None:
        pipeline = short.over(pipeline)
    return with_handles(pipeline) if session is None else pipeline


def lists_stand_on(cases: Sequence[Case], pipelines: Sequence[Pipeline]) -> dict[str, Any]:
    """`fingerprints` and `split` of figures over a file of recorded lists; its split is what its questions declare."""
    lists = ListsDigest()
    for case in cases:
        lists.add(case)
    declared = [str(case.query.metadata.get("split") or "") for case in cases]
    sides: Mapping[str, int] = {"dev": declared.count("dev"), "held_out": declared.count("test"), "examples": 0}
    prints = {"labels": labels_fingerprint(cases), "pipeline": fingerprints_of(pipelines), "model": ""}
    return {
        "fingerprints": {"source": lists.source, "rules": lists.rules, **prints},
        "split": {"fingerprint": "", "declared": any(declared), **sides},
    }


def fingerprints_of(pipelines: Iterable[Pipeline]) -> str:
    """The fingerprint of a pipeline; of several, theirs in a row."""
    return " ".join(fingerprint(pipeline) for pipeline in pipelines)


def measures_of(names: list[str] | None) -> Any:
    """The measures of those names, or the default ones; the set measures always come first."""
    if not names:
        return DEFAULT_MEASURES
    asked = [parse_measure(name) for name in names]
    return (*SET_MEASURES, *(measure for measure in asked if measure not in SET_MEASURES))


@dataclass
class Reports:
    """What a command prints of pipelines: read question by question, shown when all is read."""

    min_grade: int
    json: bool
    debug: bool = False
    files: list[ReportFile] = field(default_factory=list)

    def opened(self, names: Iterable[str], pipelines: Sequence[Pipeline]) -> list[ReportFile]:
        """A report of each pipeline, with nothing in it yet."""
        say = Outcome.json_text if self.json else Outcome.to_text
        made = [ReportFile(*one, self.min_grade, say) for one in zip(names, pipelines, strict=True)]
        self.files += made
        return made

    def read(
        self,
        names: Iterable[str],
        pipelines: Sequence[Pipeline],
        rows: Iterable[Sequence[Outcome]],
        *watch: Callable[[Sequence[Outcome]], Any],
    ) -> None:
        """The outcomes of these pipelines, question by question; `watch` sees them in passing. Traces go to stderr."""
        reports = self.opened(names, pipelines)
        traces = [ReportFile(one.name, one.pipeline, self.min_grade, Outcome.trace) for one in reports]
        for outcomes in rows:
            for report, trace, outcome in zip(reports, traces, outcomes, strict=True):
                report.add(outcome)
                if self.debug:
                    trace.add(outcome)
            for see in watch:
                see(outcomes)
        for trace in traces if self.debug else ():
            echo("\n".join([f"== {trace.name}", *trace.lines()]), err=True)

    def show(
        self,
        comparison: Sequence[Comparison] = (),
        notices: Sequence[str] = (),
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """The reports as JSON or as a short table; `notices` are what whoever reads the figures must know.

        `facts` is what the figures stand on.
        """
        if self.json:
            rows = [row.to_json() for row in comparison]
            made = {"pipelines": (report.to_json() for report in self.files), "comparison": rows, **(facts or {})}
            emit({"min_grade": self.min_grade, **made, **({"notices": list(notices)} if notices else {})})
            return
        for notice in notices:
            echo(f"note: {notice}")
        for text in (*(one.to_text() for one in self.files), *(one.to_text() for one in comparison)):
            echo(text)
