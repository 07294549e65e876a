"""A project at work: what is captured is ids and scores, everything else is of today, and nothing is searched twice."""

import json
import shutil
from dataclasses import replace
from statistics import median

import pytest

from rag_core import workbench
from rag_core.cli import main
from rag_core.errors import InputError
from rag_core.index.rules import apply_rules
from rag_core.llm.simulated import SimulatedJudge
from rag_core.measure.experiment import run_case
from rag_core.project.project import ProjectSource, add_questions, init_project, open_project, project_names, save
from rag_core.project.rules import apply, undo
from rag_core.project.session import Session
from rag_core.project.verdict import judge
from rag_core.rules.rule import Rule, read_rule
from rag_core.spec import dump_stages, parse_pipeline, read_pipeline, shipped_names
from rag_core.store.database import open_store
from rag_core.store.events import Event
from rag_core.store.labels import LabelStore
from rag_core.types import Query
from rag_core.wording import own_file


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    workspace = tmp_path_factory.mktemp("workspace")
    session = Session(open_project("demo", workspace))
    session.refresh()
    return session


@pytest.fixture
def fresh(demo, tmp_path):
    """The demo in a workspace of its own: whatever a test does to it is undone by the end of the folder."""
    shutil.copytree(demo.workspace / "collections", tmp_path / "collections")
    return Session(open_project("demo", tmp_path))


def kept(outcome):
    return [hit.chunk.id for hit in outcome.result.hits]


OWN = (
    {"stages": [{"Dense": {"depth": 5}}, {"Requery": {"k": 20, "max_iterations": 4}}, {"TopK": {"k": 18}}]},
    {"stages": [{"Hybrid": {"depth": 30, "rrf_k": 5, "weights": [2, 1]}}, {"TopK": {"k": 12}}]},
    {"stages": ["NormaliseKeywords", {"Lexical": {"depth": 7}}, {"MinSimilarity": {"min_relevance": 0.2}}]},
    {"stages": [{"Requery": {"k": 3, "strategy": "prefilter"}}]},
    {"stages": [{"Dense": {"depth": 9}}, {"AdaptiveGap": {"max_results": 4}}, {"Requery": {"k": 6}}]},
)


@pytest.mark.parametrize("entry", [*shipped_names(), *(json.dumps(one) for one in OWN)])
def test_a_captured_list_gives_what_a_live_search_gives(demo, entry):
    pipeline = demo.pipeline(entry)
    ready = workbench.live(pipeline, demo.source.index, "rulebook")
    for case in demo.cases[::9]:
        live = run_case(replace(case, candidates=None), ready)
        captured = demo.run(pipeline, case)
        assert kept(captured) == kept(live)
        assert [hit.scores for hit in captured.result.hits] == [hit.scores for hit in live.result.hits]
        assert {drop.hit.chunk.id: drop.reason for drop in captured.result.drops} == {
            drop.hit.chunk.id: drop.reason for drop in live.result.drops if drop.reason.text != "not read"
        } | {drop.hit.chunk.id: drop.reason for drop in captured.result.drops if drop.reason.text == "not read"}


def test_figures_without_traces_are_those_of_the_traces(demo):
    pipeline = demo.pipeline("demo-tuned")
    (tally,) = demo.measure([pipeline], demo.dev)
    for case, row in zip(demo.dev, tally.queries, strict=True):
        assert row.scores.values["SetF"] == demo.run(pipeline, case).scores.values["SetF"]
        assert list(row.kept) == kept(demo.run(pipeline, case))


def test_no_list_is_searched_twice_by_any_session(fresh):
    fresh.measure([fresh.pipeline("query-must")], fresh.dev)
    assert fresh.asked == len(fresh.dev)
    fresh.measure([fresh.pipeline("demo-tuned"), fresh.pipeline("fixed-15")], fresh.dev)
    other = Session(fresh.project)
    other.measure([other.pipeline("adaptive-default")], fresh.dev)
    assert (fresh.asked, other.asked) == (len(fresh.dev), 0)


def test_changed_rules_count_at_once_and_search_nothing_again(fresh):
    pipeline, case = fresh.pipeline("query-must"), fresh.case("combat-1")
    before, prints = fresh.run(pipeline, case), fresh.fingerprints()
    nonsense = {
        chunk.id: read_rule({"contain": "xyzzy"}) for chunk in fresh.source.chunks if chunk.query_must is not None
    }
    assert len(nonsense) == 138
    apply_rules(fresh.workspace, "rulebook", nonsense, "nonsense")
    asked = fresh.asked
    after = fresh.run(pipeline, case)
    assert after.scores.values["SetR"] == 0 < before.scores.values["SetR"]
    assert fresh.asked == asked
    now = fresh.fingerprints()
    assert now["source"] == prints["source"]
    assert now["rules"] != prints["rules"]


def test_a_changed_word_list_counts_at_once(fresh):
    pipeline = parse_pipeline([{"ExpandSynonyms": {}}, {"Lexical": {"depth": 50}}, {"TopK": {"k": 10}}])
    case = fresh.question("What may a glimmerfolk do?")

    def seen():
        return [hit.chunk.id for hit in fresh.run(pipeline, case).result.hits]

    def measured():
        return fresh.measure([pipeline], fresh.dev)[0].summary.means

    before, figures = seen(), measured()
    own = own_file(fresh.workspace, "rulebook", "synonyms")
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text("halfling: [glimmerfolk]\n")
    after = seen()
    assert after != before
    assert after == [
        hit.chunk.id for hit in Session(open_project("demo", fresh.workspace)).run(pipeline, case).result.hits
    ]
    assert measured() == Session(open_project("demo", fresh.workspace)).measure([pipeline], fresh.dev)[0].summary.means
    assert figures


def test_a_label_counts_in_the_next_figure(fresh):
    pipeline, case = fresh.pipeline("fixed-15"), fresh.case("combat-1")
    before, labels = fresh.run(pipeline, case), fresh.fingerprints()["labels"]
    second = before.result.hits[1]
    with open_store(fresh.workspace) as store:
        event = Event(
            session="s", seq=1, eval_set="rulebook", query_id="combat-1", chunk_id=second.chunk.id, annotator="me",
            grade=0 if before.case.grades.get(second.chunk.id) else 3,
        )  # fmt: skip
        LabelStore(store).append([event])
    after = fresh.run(pipeline, fresh.case("combat-1"))
    assert after.scores.values != before.scores.values
    assert fresh.fingerprints()["labels"] != labels


def test_a_changed_text_is_searched_anew_and_only_its_chunks_are_embedded(tmp_path):
    from rag_core.index.embed import BundledEmbedder
    from rag_core.index.ingest import ingest

    document = tmp_path / "machines.md"
    sections = [f"## Coffee dose of the E {size}\n\nUse {size} grams.\n" for size in (10, 20, 30)]
    document.write_text("# Manual\n\n" + "\n".join(sections))
    workspace = tmp_path / "workspace"
    ingest([document], "machines", workspace, BundledEmbedder())
    project = init_project(workspace, "espresso", ProjectSource("collection", "machines"))
    add_questions(project, [Query("q1", "How many grams for the E 20?"), Query("q2", "How much for the E 30?")])
    session = Session(open_project("espresso", workspace))
    pipeline = session.pipeline("fixed-15")
    first = session.run(pipeline, session.case("q1"))
    session.capture(pipeline)
    assert session.asked == 2
    document.write_text(document.read_text().replace("Use 20 grams.", "Use eighteen grams of finely ground coffee."))
    report = ingest([document], "machines", workspace, BundledEmbedder())
    assert report.embedded == 1
    second = session.run(pipeline, session.case("q1"))
    assert session.asked == 3
    texts = [{hit.chunk.title: hit.chunk.text for hit in one.result.hits} for one in (first, second)]
    assert texts[0] != texts[1]
    assert set(texts[0]) == set(texts[1])


def test_recorded_lists_take_the_rules_that_the_project_lays_over_them(tmp_path):
    session = Session(open_project("recorded-combat", tmp_path))
    pipeline, case = read_pipeline("query-must"), session.case("combat-1")
    assert len(session.run(pipeline, case).result.hits) == 2
    ids = [hit.chunk.id for hit in case.candidates.hits]
    before = kept(session.run(pipeline, case))
    apply(session.project, {ids[1]: Rule(contain="cleric"), ids[2]: Rule(contain="xyzzy")}, "by hand")
    outcome = session.run(pipeline, session.case("combat-1"))
    assert ids[1] in kept(outcome)
    assert ids[2] not in kept(outcome)
    assert session.source.by_id[ids[2]].query_must == {"contain": "xyzzy"}
    assert undo(session.project).restored == (ids[1], ids[2])
    assert kept(session.run(pipeline, session.case("combat-1"))) == before


def test_the_baseline_is_the_last_cut_at_the_best_fixed_k_of_dev(demo):
    def mean(pipeline):
        (tally,) = demo.measure([pipeline], demo.dev)
        return tally.summary.means["SetF"]

    tuned = demo.pipeline("demo-tuned")
    baseline = demo.baseline(tuned)
    assert dump_stages(baseline)[:2] == dump_stages(tuned)[:2]
    tried = [parse_pipeline([*dump_stages(tuned)[:2], {"TopK": {"k": k}}]) for k in range(1, 16)]
    assert mean(baseline) == pytest.approx(max(map(mean, tried)))
    assert [stage.name for stage in demo.baseline(demo.pipeline("query-must-refill")).stages] == ["Dense", "TopK"]


def test_without_labels_the_baseline_is_as_long_as_what_is_kept(tmp_path):
    demo = open_project("recorded-combat", tmp_path)
    unlabelled = Session(demo)
    unlabelled._with_labels = lambda: replace(
        demo.eval_set, cases=tuple(replace(case, grades={}, relevant_total=None) for case in demo.eval_set.cases)
    )
    pipeline = read_pipeline("query-must")
    (tally,) = unlabelled.measure([pipeline], unlabelled.dev)
    kept = sorted(len(row.kept) for row in tally.queries)
    assert dump_stages(unlabelled.baseline(pipeline))[-1] == {"TopK": {"k": round(median(kept))}}


def test_every_set_and_every_collection_opens_as_a_project(fresh):
    names = project_names(fresh.workspace)
    assert names[0] == "rulebook"
    assert {"adaptive-short", "api-docs", "recorded-combat", "skirmish-rules"} <= set(names)
    for name in names:
        assert open_project(name, fresh.workspace).name == name
    with pytest.raises(InputError, match="rulebook"):
        open_project("no-such", fresh.workspace)


def test_what_a_person_sets_is_there_when_the_project_is_opened_again(tmp_path):
    project = open_project("demo", tmp_path)
    session = Session(project)
    session.save_pipeline("mine", read_pipeline("fixed-15"))
    save(project, pipelines={"A": "mine", "B": "auto", "C": None}, baseline="fixed-15")
    again = open_project("demo", tmp_path)
    assert again.pipelines["A"] == "mine"
    assert again.baseline == "fixed-15"
    assert again.examples == project.examples
    assert again.source == project.source
    assert dump_stages(Session(again).pipeline("mine")) == dump_stages(read_pipeline("fixed-15"))


@pytest.mark.parametrize("entry", [*shipped_names(), *(json.dumps(one) for one in OWN)])
def test_figures_in_arrays_are_those_of_the_plain_pipeline(demo, entry):
    pipeline = demo.pipeline(entry)
    figures, (tally,) = demo.figures(pipeline, demo.dev), demo.measure([pipeline], demo.dev)
    for at, name in enumerate(("SetP", "SetR", "SetF")):
        assert figures.means[name] == tally.summary.means[name]
        assert [None if value != value else value for value in figures.values[at].tolist()] == tally.values(name)
    assert figures.values[3].tolist() == [row.scores.kept for row in tally.queries]


def test_what_changes_meanwhile_is_seen_after_a_steady_look(fresh):
    chunk = fresh.run(fresh.pipeline("fixed-15"), fresh.case("combat-1")).result.hits[1].chunk.id
    with fresh.steady():
        before = fresh.case("combat-1").grades
        grade = 0 if before.get(chunk) else 3
        with open_store(fresh.workspace) as store:
            event = Event(
                session="s", seq=1, eval_set="rulebook", query_id="combat-1", chunk_id=chunk, annotator="me",
                grade=grade,
            )  # fmt: skip
            LabelStore(store).append([event])
        assert fresh.case("combat-1").grades == before
    assert fresh.case("combat-1").grades[chunk] == grade


def test_another_structure_of_the_workspace_is_another_state(tmp_path, monkeypatch):
    """Its own workspace's, whatever the environment names; figures remembered of the one before are not shown again."""
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path / "another"))
    session = Session(open_project("demo", tmp_path / "workspace"))
    pipeline = parse_pipeline([{"Dense": {"depth": 5}}, {"EntityFilter": {"field": "source", "on_none": "drop"}}])
    cases = list(session.cases[:2])
    assert session.figures(pipeline, cases).means["kept"] == 5
    (session.workspace / "structure.json").write_text('{"entities": {"corpus.jsonl": {"members": ["Zyxwv"]}}}')
    assert session.figures(pipeline, cases).means["kept"] == 0
    assert [one.scores.kept for one in session.reports([pipeline], cases)[0].outcomes] == [0, 0]


def test_another_judge_gives_other_figures_without_searching_again(demo):
    pipeline = parse_pipeline(["Dense", {"LLMFilter": {"min_relevance_threshold": -1}}])
    labels = {case.query.id: case.grades for case in demo.cases}
    right = demo.judged_by(SimulatedJudge(labels, 0.0), "right")
    wrong = demo.judged_by(SimulatedJudge(labels, 1.0), "wrong")
    best = right.figures(pipeline, demo.dev).means["SetP"]
    asked = demo.asked
    assert best > wrong.figures(pipeline, demo.dev).means["SetP"]
    assert right.figures(pipeline, demo.dev).means["SetP"] == best
    assert demo.asked == asked
    with pytest.raises(InputError, match="simulated"):
        judge(right, pipeline, parse_pipeline(["Dense"]))


def test_a_cleared_cache_searches_anew(tmp_path):
    def searched():
        session = Session(open_project("demo", tmp_path))
        session.refresh()
        session.capture(session.pipeline("fixed-15"), session.cases[:2])
        return session.asked

    assert (searched(), searched()) == (2, 0)
    assert main(["cache", "clear", "--workspace", str(tmp_path)]) == 0
    assert searched() == 2
