"""Runs and qrels read by pytrec_eval and ir_measures give our own figures."""

import random

import pytest

from rag_core.errors import InputError
from rag_core.filters.cutoff import TopK
from rag_core.measure.experiment import run, write_run
from rag_core.measure.measures import parse_measure
from rag_core.stage import Pipeline
from rag_core.store.exchange.formats import escape_id, write_trec
from rag_core.store.exchange.line import LabelLine
from rag_core.types import Candidates, Case, Chunk, Hit, Query

NAMES = ("AP", "RR", "nDCG@10", "P@5", "R@10")


def cases():
    draw = random.Random("runs")
    for q in range(25):
        query = Query(f"q {q}", "text")
        hits = tuple(Hit(Chunk(f"c%{i}\u00a0x"), i, {"distance": i / 100}) for i in range(1, 20))
        grades = {hit.chunk.id: draw.randint(0, 3) for hit in hits if draw.random() < 0.6} | {"c%1\u00a0x": 1}
        yield Case(query, grades, Candidates(query, hits, recorded=True))


def report():
    return run(list(cases()), Pipeline((TopK(k=12),), label="top 12"), 1, [parse_measure(name) for name in NAMES])


def qrels(one_report):
    lines = [
        LabelLine(outcome.case.query.id, chunk, grade)
        for outcome in one_report.outcomes
        for chunk, grade in outcome.case.grades.items()
    ]
    return write_trec(lines)


def test_ir_measures_reads_what_is_written_and_gives_our_figures():
    ir_measures = pytest.importorskip("ir_measures")
    one = report()
    judged = list(ir_measures.read_trec_qrels(qrels(one)))
    ranked = list(ir_measures.read_trec_run(write_run(one, escape_id)))
    theirs = ir_measures.calc_aggregate([ir_measures.parse_measure(name) for name in NAMES], judged, ranked)
    for name in NAMES:
        assert theirs[ir_measures.parse_measure(name)] == pytest.approx(one.summary.means[name], abs=1e-9)


def test_pytrec_eval_reads_what_is_written_and_gives_our_figures():
    pytrec_eval = pytest.importorskip("pytrec_eval")
    one = report()
    judged = pytrec_eval.parse_qrel(qrels(one).splitlines(keepends=True))
    ranked = pytrec_eval.parse_run(write_run(one, escape_id).splitlines(keepends=True))
    found = pytrec_eval.RelevanceEvaluator(judged, {"map", "recip_rank", "P_5", "recall_10", "ndcg_cut_10"}).evaluate(
        ranked
    )
    for theirs, ours in (
        ("map", "AP"),
        ("recip_rank", "RR"),
        ("P_5", "P@5"),
        ("recall_10", "R@10"),
        ("ndcg_cut_10", "nDCG@10"),
    ):
        mean = sum(row[theirs] for row in found.values()) / len(found)
        assert mean == pytest.approx(one.summary.means[ours], abs=1e-9)


def test_an_id_with_white_space_is_refused_unless_escaped():
    with pytest.raises(InputError, match="white space"):
        write_run(report())
