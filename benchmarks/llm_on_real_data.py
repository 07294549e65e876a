"""The LLM filter on public API descriptions, decided by the simulated judge; reads them from WINNOW_SHARED (../shared).

restbench-spotify (MIT, RestGPT): 57 queries labelled with the operations that answer them. Figures before the filter
and after a judge of error rate 0 to 0.3, three seeds each, and what EXPAND_1 brings. amazon-ads-openapi: how many
chunks and tokens references bring at depth 0, 1, 3 and 5. No model is asked and nothing is copied.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory

import numpy as np

from rag_core.corpus.openapi import read_openapi
from rag_core.filters.cutoff import TopK
from rag_core.filters.llm.reach import reach
from rag_core.filters.llm.stage import LLMFilter
from rag_core.index.embed import BundledEmbedder
from rag_core.judged.entrants import Bench, answer_simulated, entrants_of, simulated_judge, stages_of
from rag_core.judged.floor import propose_floor
from rag_core.judged.trials import classifier, compare, irrelevant_removed, spent
from rag_core.llm.prompt import estimate_tokens
from rag_core.llm.simulated import SimulatedJudge
from rag_core.measure.experiment import PipelineReport, run
from rag_core.project.asking import nearest
from rag_core.project.project import open_project
from rag_core.project.session import Session
from rag_core.stage import Pipeline
from rag_core.types import Candidates, Case, Chunk, Hit, Metric, Query

DATA = Path(os.environ.get("WINNOW_SHARED", Path(__file__).resolve().parents[2] / "shared")) / "data"
STORY = "How do I authenticate with sponsored-display API?"


def api_chunks(folder: Path, names: Sequence[str] = ()) -> list[Chunk]:
    paths = [folder / name for name in names] or sorted(folder.glob("*.json"))
    return read_openapi({path.name: path.read_text(encoding="utf-8") for path in paths})[0]


def ranked(chunks: Sequence[Chunk], queries: Sequence[str], depth: int) -> list[tuple[Hit, ...]]:
    """The `depth` nearest chunks of each query by the bundled model, cosine distance."""
    embedder = BundledEmbedder()
    vectors = embedder.embed([f"{chunk.title}\n{chunk.text}" for chunk in chunks])
    found = []
    for vector in embedder.embed(queries):
        distances = 1 - vectors @ vector
        order = np.argsort(distances, kind="stable")[:depth]
        found.append(
            tuple(Hit(chunks[at], rank, {"distance": float(distances[at])}) for rank, at in enumerate(order, 1))
        )
    return found


def spotify() -> tuple[list[Case], dict[str, Chunk]]:
    folder = DATA / "restbench-spotify"
    chunks = api_chunks(folder, ["spotify_oas.json"])
    places = {f"{c.metadata['method'].upper()} {c.metadata['path']}": c.id for c in chunks if c.type == "operation"}
    rows = json.loads((folder / "spotify.json").read_text(encoding="utf-8"))
    lists = ranked(chunks, [row["query"] for row in rows], 60)
    cases = []
    for number, (row, hits) in enumerate(zip(rows, lists, strict=True)):
        query = Query(f"q{number}", row["query"])
        grades = {places[name]: 1 for name in row["solution"] if name in places}
        cases.append(Case(query, grades, Candidates(query, hits, metric=Metric.COSINE)))
    return cases, {chunk.id: chunk for chunk in chunks}


def judged(cases: list[Case], chunks: Mapping[str, Chunk], rate: float, seed: int, depth: int) -> PipelineReport:
    labels = {case.query.id: case.grades for case in cases}
    judge = SimulatedJudge(labels, rate, seed, depth=depth)
    stage = replace(LLMFilter(min_relevance_threshold=0.0), judge=judge, chunks=chunks)
    return run(cases, Pipeline((stage,)))


def line(name: str, reports: Sequence[PipelineReport], baseline: PipelineReport) -> str:
    scores = [fmean(report.summary.means[name] or 0.0 for report in reports) for name in ("SetP", "SetR", "SetF")]
    used = [spent(report, 4) for report in reports]
    removed = fmean(irrelevant_removed(report, baseline) or 0.0 for report in reports)
    agreed = [value for report in reports if (value := classifier(report)["agreement"]) is not None]
    tokens = fmean(one["prompt_tokens"] + one["completion_tokens"] for one in used)
    agreement = f"{fmean(agreed):.3f}" if agreed else "-"
    return (
        f"{name:<28} {scores[0]:6.3f} {scores[1]:6.3f} {scores[2]:6.3f} {removed:9.3f} {agreement:>9} "
        f"{fmean(one['prompts'] for one in used):7.0f} {tokens:9,.0f} {fmean(one['kept_mean'] for one in used):6.1f}"
    )


def spotify_table() -> None:
    cases, chunks = spotify()
    operations = sum(chunk.type == "operation" for chunk in chunks.values())
    print(f"restbench-spotify: {len(cases)} queries, {operations} operations, {len(chunks) - operations} schemas")
    print(f"{'':<28}   SetP   SetR   SetF   removed agreement   calls    tokens   kept")
    baseline = run(cases, Pipeline((TopK(k=25),)))
    print(line("rerank off, 25 nearest", [baseline], baseline))
    for rate in (0.0, 0.1, 0.2, 0.3):
        reports = [judged(cases, chunks, rate, seed, 0) for seed in range(3)]
        print(line(f"simulated judge, error {rate:g}", reports, baseline))
    report = judged(cases, chunks, 0.0, 0, 1)
    print(line("error 0, EXPAND_1", [report], baseline))
    hits = [hit for outcome in report.outcomes for hit in outcome.result.hits]
    brought = [hit for hit in hits if hit.origin]
    schemas = sum(hit.chunk.type == "schema" for hit in brought)
    print(f"EXPAND_1 brings {len(brought)} chunks over all queries, {schemas} of them schemas")


def floor_table(name: str, bench: Bench) -> None:
    """A judge that never errs: what the filter loses all the same, by step, at the usual floor and at the proposed one.

    The floor is proposed from every second question and counted on all, on those it was made of and on the others.
    """
    (usual,) = stages_of(["terse"], {})
    dev = replace(bench, cases=bench.cases[::2])
    proposal = propose_floor(dev, usual)
    print(f"\n{name}: {len(bench.cases)} questions, {proposal.to_text()}")
    sides = {"all": bench, "dev": dev, "held out": replace(bench, cases=bench.cases[1::2])}
    for floor in (usual.min_relevance_threshold, proposal.proposed.floor):
        for side, part in sides.items():
            stage = replace(usual, min_relevance_threshold=floor)
            rivals = entrants_of([stage], [simulated_judge(part, 0.0)])
            answer_simulated(part, rivals)
            trial = compare(part, rivals)
            (row,) = trial.variants
            relevant = row["relevant"]
            lost = ", ".join(f"{cause} {count}" for cause, count in relevant["lost"].items() if count)
            print(
                f"  floor {floor:.3f}, {side:<8}  SetR {row['SetR']:.3f}  SetP {row['SetP']:.3f}  listed "
                f"{relevant['listed']}  kept {relevant['kept']}  lost to: {lost or 'nothing'}  calls {row['prompts']}"
            )


def amazon_table() -> None:
    found = api_chunks(DATA / "amazon-ads-openapi")
    chunks = {chunk.id: chunk for chunk in found}
    starts = [chunk for chunk in found if chunk.type == "operation"]
    print(f"\namazon-ads-openapi: {len(starts)} operations, {len(found) - len(starts)} schemas")
    print("per operation:   depth   chunks mean   median   max   tokens mean   at the cap of 50")
    for depth in (0, 1, 3, 5):
        sets = [[start, *(one.chunk for one in reach((start,), depth, 50, chunks)[0])] for start in starts]
        sizes = [len(one) for one in sets]
        tokens = fmean(sum(estimate_tokens(chunk.text) for chunk in one) for one in sets)
        capped = sum(size == 51 for size in sizes)
        print(
            f"{depth:>22}   {fmean(sizes):11.1f}   {median(sizes):6.0f}   {max(sizes):3}   {tokens:11,.0f}   {capped:5}"
        )
    (hits,) = ranked(found, [STORY], 25)
    print(f"25 nearest of {STORY!r}:   depth   chunks   tokens")
    for depth in (0, 1, 3, 5):
        together = {hit.chunk.id: hit.chunk for hit in hits}
        for hit in hits:
            together |= {one.chunk.id: one.chunk for one in reach((hit.chunk,), depth, 50, chunks)[0]}
        tokens = sum(estimate_tokens(chunk.text) for chunk in together.values())
        print(f"{depth:>70}   {len(together):6}   {tokens:6,}")


def main() -> None:
    if not DATA.is_dir():
        print(f"no data at {DATA}: set WINNOW_SHARED")
        return
    spotify_table()
    cases, chunks = spotify()
    floor_table("restbench-spotify", Bench("restbench-spotify", tuple(cases), chunks, 1))
    with TemporaryDirectory() as folder:
        session = Session(open_project("api-docs", Path(folder)))
        floor_table("api-docs", nearest(session, 200, session.cases))
    amazon_table()


if __name__ == "__main__":
    main()
