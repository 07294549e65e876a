import json
import math
import platform
from dataclasses import replace

import pytest

from rag_core import __version__
from rag_core.compare.gate import GateRules, judge
from rag_core.compare.run_file import (
    changed_besides,
    compare_pipelines,
    dump_run,
    load_run,
    not_comparable,
    paired,
    read_run,
    summary_of,
)
from rag_core.compare.snapshot import About, Recorder, code_fingerprint
from rag_core.errors import InputError, RecordError
from rag_core.filters.cutoff import TopK
from rag_core.filters.query_must import QueryMust
from rag_core.measure.experiment import run_all, stream
from rag_core.measure.significance import compare
from rag_core.report import report_html
from rag_core.spec import parse_pipeline
from rag_core.stage import Pipeline
from tests import random_pipelines as made

CASES = made.random_cases(1, 12)
PIPELINES = [Pipeline((QueryMust(), TopK(4)), label="rules"), Pipeline((TopK(9),), label="nine")]


def run_over(cases=CASES, pipelines=PIPELINES, min_grade=1, **about):
    recorder = Recorder(pipelines, min_grade, About(**about))
    for outcomes in stream(cases, pipelines, min_grade):
        recorder.add(outcomes)
    return recorder.run()


RUN = run_over(name="first", eval_set="random", seed=3)


def test_a_run_file_comes_back_as_it_was_written(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(dump_run(RUN), encoding="utf-8")
    assert load_run(path) == RUN
    assert load_run(path).intact


def test_a_run_says_what_it_was_and_depended_on():
    document = RUN.document
    assert (document["name"], document["eval_set"], document["seed"], document["version"]) == ("first", "random", 3, 1)
    assert set(document["fingerprints"]) == {"queries", "labels", "corpus", "rules", "code"}
    assert document["fingerprints"]["code"] == code_fingerprint()
    assert code_fingerprint().startswith(f"{__version__}-")
    assert document["platform"]["python"] == platform.python_version()
    assert document["labels"] == {case.query.id: dict(case.grades) for case in CASES}


def test_its_figures_are_those_of_the_reports():
    reports = run_all(CASES, PIPELINES)
    for one, report in zip(RUN.pipelines, reports, strict=True):
        assert one.name == report.name
        assert parse_pipeline(list(one.spec)) == report.pipeline
        assert one.means == report.summary.to_json()
        assert one.values("SetF") == [outcome.scores.values["SetF"] for outcome in report.outcomes]
        assert one.values("nDCG@3") == [None] * len(CASES)


def test_its_reasons_are_of_relevant_chunks_and_of_what_another_pipeline_kept():
    reports = run_all(CASES, PIPELINES)
    for at, one in enumerate(RUN.pipelines):
        for query, case in zip(one.queries, CASES, strict=True):
            number = CASES.index(case)
            other = reports[1 - at].outcomes[number].result
            wanted = {hit.chunk.id for hit in other.hits} | {chunk for chunk, grade in case.grades.items() if grade}
            listed = {hit.chunk.id for hit in case.candidates.hits}
            assert {reason["id"] for reason in query["reasons"]} == (wanted & listed) - set(query["kept"])
            assert all(reason["reason"] and reason["stage"] for reason in query["reasons"])


def test_two_runs_at_different_times_have_different_ids():
    recorder = Recorder(PIPELINES, 1)
    for outcomes in stream(CASES, PIPELINES):
        recorder.add(outcomes)
    assert recorder.run("2026-01-01").id != recorder.run("2026-01-02").id


def test_a_changed_file_is_seen_to_be_changed():
    document = json.loads(dump_run(RUN))
    document["pipelines"][0]["means"]["SetF"] = 1.0
    assert not read_run(document, "x").intact


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda run: run.update(format="other"), "is no run file"),
        (lambda run: run.update(version=2), "has version 2, expected 1"),
        (lambda run: run.pop("labels"), "has no usable labels"),
        (lambda run: run.update(min_grade=True), "has no usable min_grade"),
        (lambda run: run.update(pipelines=[]), "holds no pipeline"),
        (lambda run: run["pipelines"][0].pop("means"), "has a pipeline that lacks"),
        (lambda run: run["pipelines"][0]["queries"][0].update(values={"SetF": "high"}), "has a pipeline that lacks"),
        (lambda run: run["pipelines"][0]["queries"][0].update(values={"SetF": math.inf}), "has a pipeline that lacks"),
        (lambda run: run["pipelines"][0]["queries"][0].update(reasons=[{"id": "c"}]), "has a pipeline that lacks"),
        (lambda run: run["pipelines"][0]["queries"][0].update(dropped=[1]), "has a pipeline that lacks"),
        (lambda run: run["pipelines"][0]["queries"][0].update(dropped={"TopK": []}), "has a pipeline that lacks"),
        (lambda run: run["pipelines"][1]["queries"].pop(), "over different queries"),
        (lambda run: run["queries"].pop(), "over different queries"),
        (lambda run: run.update(pipelines=[7]), "has a pipeline that lacks"),
    ],
)
def test_a_file_that_is_no_run_is_refused_in_one_sentence(change, expected):
    document = json.loads(dump_run(RUN))
    change(document)
    with pytest.raises(RecordError, match=expected) as refused:
        read_run(document, "run.json")
    assert str(refused.value).startswith("run.json ")


def test_a_number_beyond_every_float_is_refused(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(dump_run(RUN).replace('"seed": 3', '"seed": 3, "more": 1e999'))
    with pytest.raises(InputError, match="1e999 is too large a number"):
        load_run(path)


def test_what_no_comparison_needs_may_be_absent():
    document = json.loads(dump_run(RUN))
    for one in document["pipelines"]:
        one["means"] = {}
        one["queries"] = [{name: query[name] for name in ("id", "values", "kept")} for query in one["queries"]]
    bare = read_run(document, "run.json")
    assert "Where relevant chunks are lost" in report_html(bare)
    assert {one.outcome for one in judge(RUN, bare, GateRules(least_queries=2))} <= {"pass", "fail", "inconclusive"}


@pytest.mark.parametrize("document", [None, [], 3, "run"])
def test_other_json_is_refused(document):
    with pytest.raises(RecordError, match="is no run file"):
        read_run(document, "x")


def relabelled(cases):
    first = next(case for case in cases if case.grades)
    chunk = next(iter(first.grades))
    return [replace(case, grades={**case.grades, chunk: 2}) if case is first else case for case in cases]


@pytest.mark.parametrize("measure", ["SetF", "nDCG@15"])
@pytest.mark.parametrize("change", [{"cases": relabelled(CASES)}, {"min_grade": 2}])
def test_an_earlier_run_is_measured_on_the_later_labels(change, measure):
    other = run_over(**change, pipelines=[Pipeline((TopK(2),), label="two")])
    again = run_over(**change)  # what the earlier run would have been on those labels
    pairs = paired(RUN, other)
    values = pairs.values(RUN.pipelines[0], other.pipelines[0], measure)
    assert values == (again.pipelines[0].values(measure), other.pipelines[0].values(measure))
    assert any("recomputed" in one for one in changed_besides(RUN, other))


def test_other_labels_on_chunks_that_are_gone_have_a_sentence_instead_of_a_difference():
    def renamed(case):
        hits = tuple(replace(hit, chunk=replace(hit.chunk, id=f"new-{hit.chunk.id}")) for hit in case.candidates.hits)
        grades = {f"new-{chunk}": grade for chunk, grade in case.grades.items()}
        return replace(case, grades=grades, candidates=replace(case.candidates, hits=hits))

    other = run_over([renamed(case) for case in CASES])
    assert "different labels" in not_comparable(RUN, other)
    with pytest.raises(InputError, match="different labels"):
        compare_pipelines(RUN, other)


def test_another_source_is_told():
    case = CASES[-1]
    shorter = replace(case, candidates=replace(case.candidates, hits=case.candidates.hits[:-1]))
    other = run_over([*CASES[:-1], shorter])
    assert not_comparable(RUN, other) == ""
    assert "the source differs" in changed_besides(RUN, other)


def test_a_question_that_one_run_lacks_counts_0_there_and_is_listed():
    scored = next(case for case in CASES if any(grade >= 1 for grade in case.grades.values()))
    fewer = run_over([case for case in CASES if case is not scored])
    for first, second in ((RUN, fewer), (fewer, RUN)):
        pairs = paired(first, second)
        values = pairs.values(first.pipelines[0], second.pipelines[0], "SetR")
        at = pairs.ids.index(scored.query.id)
        assert [row[at] for row in values][first is RUN] == 0
        assert any(scored.query.id in one for one in changed_besides(first, second))


def test_runs_without_a_common_question_are_not_comparable():
    assert "no question in common" in not_comparable(run_over(CASES[:3]), run_over(CASES[3:]))


def test_other_rules_are_named_and_do_not_stop_a_comparison():
    def bare(case):
        hits = tuple(replace(hit, chunk=replace(hit.chunk, query_must=None)) for hit in case.candidates.hits)
        return replace(case, candidates=replace(case.candidates, hits=hits))

    other = run_over([bare(case) for case in CASES])
    assert not_comparable(RUN, other) == ""
    assert changed_besides(RUN, other) == ["the rules fingerprint differs"]


def test_a_comparison_of_two_runs_is_that_of_their_values():
    other = run_over(pipelines=[Pipeline((TopK(2),), label="two")])
    found = compare_pipelines(RUN, other)
    ours = compare(RUN.pipelines[0].values("SetF"), other.pipelines[0].values("SetF"))
    assert (found.delta, found.low, found.p) == (ours.delta, ours.low, ours.p)


def test_a_measure_a_run_was_not_made_with_is_refused():
    with pytest.raises(InputError, match="has no 'RR@3'"):
        compare_pipelines(RUN, RUN, "RR@3")


def test_a_pipeline_it_does_not_hold_is_refused_with_what_it_holds():
    with pytest.raises(RecordError, match="expected one of rules, nine"):
        RUN.pipeline("x")


def test_the_summary_names_pipelines_with_their_means():
    found = summary_of(RUN)
    assert found["queries"] == 12
    assert [one["name"] for one in found["pipelines"]] == ["rules", "nine"]
    assert found["pipelines"][0]["SetF"] == RUN.pipelines[0].means["SetF"]
