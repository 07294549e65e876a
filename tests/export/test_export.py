import ast
import json
import random
import subprocess
import sys
import types
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rag_core.cli import main
from rag_core.errors import InputError, SpecError
from rag_core.eval_sets.reading import SHIPPED
from rag_core.export import export_filter, fates
from rag_core.export.assemble import fate_of
from rag_core.filters.learned import FEATURES
from rag_core.records import dump_case, load_lists, read_case
from rag_core.spec import STAGES, parse_pipeline, read_pipeline, shipped_names, stage_class

PARAMETERS = {
    "features": list(FEATURES),
    "metric": "unknown",
    "mean": [0.3] * len(FEATURES),
    "scale": [0.5] * len(FEATURES),
    "weights": [(-1) ** at * 0.7 for at in range(len(FEATURES))],
    "intercept": -0.4,
}

SPECS = [
    ["QueryMust", "AdaptiveGap", {"TopK": {"k": 10}}],
    [{"QueryMust": {"mode": "substring"}}],
    [{"QueryMust": {"plurals": False}}],
    [{"AdaptiveGap": {"gap_policy": "first", "min_results": 0, "max_results": 12, "gap_threshold": 0.03}}],
    [{"AdaptiveGap": {"gap_policy": "relative", "relative_offset": 0.3}}],
    [{"AdaptiveGap": {"gap_policy": "knee", "weak_top": 0.5}}],
    [
        {"AdaptiveGap": {"gap_policy": "autocut", "jumps": 2, "min_results": 1}},
        {"AdaptiveGap": {"gap_policy": "ratio"}},
    ],
    [{"AdaptiveGap": {"worst_score": 0.45, "min_results": 0}}],
    [{"AdaptiveGap": {"query_specific": True, "distance_offset": 0.11}}, {"MinSimilarity": {"min_relevance": 0.3}}],
    [{"MinSimilarity": {"min_relevance": 0.55}}, {"TopK": {"k": 3}}, "QueryMust"],
    [{"TopK": {"k": 20}}, "AdaptiveGap", {"AdaptiveGap": {"min_results": 0, "gap_threshold": 0.01}}],
    [{"Requery": {"k": 4, "max_iterations": 2}}, "AdaptiveGap"],
    [{"Requery": {"k": 3, "strategy": "prefilter", "rules": {"mode": "substring"}}}, {"TopK": {"k": 2}}],
    [{"LearnedFilter": {"max_results": 12}}],
    ["QueryMust", {"LearnedFilter": {"recall": 0.8, "min_results": 2}}],
    [{"LearnedCut": {"parameters": PARAMETERS, "min_results": 1, "max_results": 12}}],
    ["QueryMust", {"Deduplicate": {"likeness": 0.7}}, {"Diversity": {"k": 5}}],
    ["QueryMust", "AdaptiveGap", "Coverage"],
    [{"Requery": {"k": 12}}, {"LearnedFilter": {"beside": 0.2, "max_results": 3}}, {"TopK": {"k": 4}}],
    [],
]


def loaded(pipeline):
    """The exported file as a module's names."""
    names = {"__name__": "exported", "__file__": "filter.py"}
    exec(compile(export_filter(pipeline), "filter.py", "exec"), names)
    return names


@pytest.fixture(scope="module")
def exported():
    return [(parse_pipeline(spec, f"p{at}"), loaded(parse_pipeline(spec, f"p{at}"))) for at, spec in enumerate(SPECS)]


def kept_by_file(names, record):
    kept = names["filter_chunks"](
        record["query"], record["candidates"], record.get("metric", "unknown"), record.get("order", "distance")
    )
    return [chunk["id"] for chunk in kept]


# ---------------------------------------------------------------- the file


@pytest.fixture
def run_alone(tmp_path):
    def run(text, *arguments, given=""):
        path = tmp_path / "filter.py"
        path.write_text(text, encoding="utf-8")
        command = [sys.executable, "-I", "-S", str(path), *arguments]
        return subprocess.run(command, input=given, capture_output=True, text=True, encoding="utf-8", check=False)

    return run


@pytest.mark.parametrize("spec", SPECS)
def test_its_self_test_passes_with_nothing_installed(run_alone, spec):
    done = run_alone(export_filter(parse_pipeline(spec)), "--self-test")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("lists as expected\n")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("return math.floor(value * 1e9 + 0.5)", "return math.floor(value * 1e1 + 0.5)"),
        (".casefold()", ".lower()"),
        ("if not word.isalpha():", "if True:"),
    ],
)
def test_its_self_test_fails_where_the_file_was_broken(run_alone, right, wrong):
    text = export_filter(parse_pipeline(SPECS[0]))
    assert right in text
    done = run_alone(text.replace(right, wrong), "--self-test")
    assert done.returncode == 1
    assert "expected" in done.stdout


def test_it_filters_recorded_lists_from_stdin(run_alone):
    lines = (SHIPPED / "recorded-combat" / "lists.jsonl").read_text(encoding="utf-8")
    pipeline = read_pipeline("query-must")
    done = run_alone(export_filter(pipeline), given=lines)
    ours = [[hit.chunk.id for hit in pipeline(case.candidates).hits] for case in load_lists(lines.encode(), "lists")]
    assert [json.loads(line)["kept"] for line in done.stdout.splitlines()] == ours


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ('{"id": "a"}', "line 1: no recorded list, expected an object with query and candidates"),
        ("no json", "line 1: Expecting value"),
        ('{"query": "q", "candidates": [{"id": "a", "score": 3}]}', "line 1: AdaptiveGap has its default thresholds"),
    ],
)
def test_what_it_cannot_filter_is_one_sentence_with_its_line(run_alone, given, said):
    done = run_alone(export_filter(parse_pipeline(["AdaptiveGap"])), given=given)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)
    assert len(done.stderr.splitlines()) == 1


def test_it_returns_the_very_objects_and_explains_the_rest(exported):
    _, names = exported[0]
    chunks = [{"distance": 0.1, "mine": 1}, {"distance": 0.15, "query_must": [["wolf"]]}]
    kept = names["filter_chunks"]("bears", chunks)
    assert kept == [chunks[0]]
    assert kept[0] is chunks[0]
    assert names["explain"]("bears", chunks) == [(chunks[1], "QueryMust", "no word of: wolf")]


def test_what_a_user_named_cannot_end_the_docstring():
    name = 'evil """ \\" \n import os\nos.system("x")'
    text = export_filter(replace(parse_pipeline(["TopK"]), label=name))
    tree = ast.parse(text)
    assert not any(isinstance(node, ast.Import) and node.names[0].name == "os" for node in ast.walk(tree))
    assert ast.get_docstring(tree).startswith("Filter of retrieved chunks: pipeline evil ''' /' import os")


# ---------------------------------------------------------------- what can be carried


GOES = [name for name in STAGES if fate_of(stage_class(name)()).goes]
SELF_SUFFICIENT = [name for name in GOES if not stage_class(name).needs()]


def test_every_filter_goes_but_those_that_ask_a_model_or_search():
    filters = {name for name in STAGES if stage_class(name).kind not in ("source", "rewrite")}
    assert filters - set(GOES) == {
        name for name in filters if {"judge", "hop_judge", "index"} & stage_class(name).needs()
    }
    for name in filters - set(GOES):
        with pytest.raises(SpecError, match=f"the stage {name}, which an exported file cannot do"):
            export_filter(parse_pipeline(["QueryMust", name], "mine"))


def entity_records():
    return [{"id": f"c{n}", "distance": n / 10, "team": team} for n, team in enumerate(["red", "blue", None, "red"])]


def test_who_is_meant_is_handed_over():
    class Finder:
        teams = ("red", "blue")

        def at(self, threshold):
            return self

        def explain(self, query):
            return types.SimpleNamespace(teams=[team for team in self.teams if team in query])

    pipeline = parse_pipeline(["EntityFilter", {"TopK": {"k": 2}}])
    names = loaded(pipeline)
    with pytest.raises(ValueError, match="hand_over"):
        names["filter_chunks"]("red ones", entity_records())
    names["hand_over"](entities=Finder())
    assert [one["id"] for one in names["filter_chunks"]("red ones", entity_records())] == ["c0", "c2"]
    assert "who is meant" in fates(pipeline)[0].why


def test_references_are_followed_through_a_function_of_the_service():
    shelf = {"x": {"id": "x", "text": "far", "ref_ids": ["y"]}, "y": {"id": "y", "text": "farther"}}
    names = loaded(parse_pipeline([{"ExpandReferences": {"depth": 2}}]))
    names["hand_over"](chunks=shelf.get)
    kept = names["filter_chunks"]("q", [{"id": "a", "distance": 0.1, "ref_ids": ["x"]}])
    assert [one["id"] for one in kept] == ["a", "x", "y"]
    assert kept[2] is shelf["y"]


def test_a_list_of_another_metric_or_kind_is_refused():
    pipeline = parse_pipeline(["AdaptiveGap"], "mine")
    names = {"__name__": "exported", "__file__": "filter.py"}
    exec(compile(export_filter(pipeline, metric="cosine", score="distance"), "filter.py", "exec"), names)
    near = [{"id": "a", "distance": 0.1}, {"id": "b", "distance": 0.9}]
    assert len(names["filter_chunks"]("q", near)) == 2
    for chunks, metric in (
        (near, "l2"),
        ([{"id": "a", "score": 3.0}], ""),
        ([{"id": "a", "distance": 11.6}], ""),
        ([{"id": "a", "bm25": 3.0}], "cosine"),
    ):
        with pytest.raises(ValueError, match="expected"):
            names["filter_chunks"]("q", chunks, metric)


def test_a_service_brings_the_score_or_hands_its_reranker_over_and_other_lists_are_refused():
    cut = {"AdaptiveGap": {"gap_threshold": 0.5, "distance_offset": 0.3, "min_results": 1, "score_kind": "rerank"}}
    pipeline = parse_pipeline([{"Rerank": {"endpoint": "cohere", "depth": 3}}, cut])
    names = loaded(pipeline)
    assert "cohere" not in str(names["STAGES"])
    bare = [{"id": name, "distance": at / 10, "text": name * 3} for at, name in enumerate("abcd")]
    scored = [{**chunk, "rerank": score} for chunk, score in zip(bare, (0.1, 0.9, 0.8, 1.0), strict=True)]
    assert [chunk["id"] for chunk in names["filter_chunks"]("q", scored, "cosine")] == ["b", "c"]
    with pytest.raises(ValueError, match="carry no score 'rerank', expected it on each"):
        names["filter_chunks"]("q", bare, "cosine")
    names["hand_over"](reranker=lambda question, texts: [float(text == "ccc") for text in texts])
    assert [chunk["id"] for chunk in names["filter_chunks"]("q", bare, "cosine")] == ["c"]
    names["hand_over"](reranker=lambda question, texts: 1 / 0)  # is down: the service goes on
    assert [chunk["id"] for chunk in names["filter_chunks"]("q", bare, "cosine")] == ["a", "b", "c"]
    alone = loaded(parse_pipeline([cut]))
    with pytest.raises(ValueError, match="thresholds for rerank on a list by distance"):
        alone["filter_chunks"]("q", bare, "cosine")
    best_first = sorted(scored, key=lambda chunk: -chunk["rerank"])
    assert [chunk["id"] for chunk in alone["filter_chunks"]("q", best_first, "rerank")] == ["d", "b", "c"]


def test_a_source_is_left_to_the_service_and_named_in_the_file():
    text = export_filter(parse_pipeline([{"Dense": {"depth": 50}}, "TopK"]))
    assert "{'Dense': {'depth': 50" in text
    assert "'Dense'" not in text.split('"""', 2)[2]


# ---------------------------------------------------------------- the same kept ids


@pytest.mark.parametrize("folder", ["recorded-combat", "adaptive-short"])
def test_kept_ids_equal_the_workbench_on_every_recorded_demo_list(exported, folder):
    for case in load_lists(SHIPPED / folder / "lists.jsonl"):
        for pipeline, names in exported:
            assert kept_by_file(names, dump_case(case)) == [hit.chunk.id for hit in pipeline(case.candidates).hits]


def test_every_shipped_pipeline_that_can_be_carried_gives_the_same(exported):
    cases = load_lists(SHIPPED / "recorded-combat" / "lists.jsonl")
    carried = 0
    for name in shipped_names():
        pipeline = read_pipeline(name)
        try:
            names = loaded(pipeline)
        except SpecError:
            continue
        carried += 1
        for case in cases:
            assert kept_by_file(names, dump_case(case)) == [hit.chunk.id for hit in pipeline(case.candidates).hits]
    assert carried >= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rulebook", "skirmish-rules", "api-docs"])
def test_kept_ids_equal_the_workbench_on_the_live_demo_sets(exported, name, tmp_path):
    from rag_core import workbench
    from rag_core.eval_sets.reading import load_set

    found = load_set(name)
    workbench.bring_up_to_date(found, tmp_path)
    index = workbench.opened(tmp_path, name)
    source = workbench.source_of(index, 50)
    from rag_core.types import Candidates

    for case in found.cases:
        start = source(Candidates(case.query))
        handed = replace(start, recorded=True)
        record = dump_case(replace(case, candidates=handed))
        for pipeline, names in exported:
            assert kept_by_file(names, record) == [hit.chunk.id for hit in pipeline(handed).hits]


def test_a_pipeline_that_refills_says_how_deep_a_list_it_wants():
    text = export_filter(read_pipeline("demo-tuned"))
    assert "hand over a deep list" in ast.get_docstring(ast.parse(text))


def test_what_is_not_refilled_is_explained():
    names = loaded(parse_pipeline([{"Requery": {"k": 1, "max_iterations": 2}}]))
    chunks = [{"id": "a", "distance": 0.1, "query_must": [["wolf"]]}, *({"id": one, "distance": 0.2} for one in "bbc")]
    assert names["filter_chunks"]("bears", chunks) == [chunks[1]]
    reasons = {chunk["id"]: reason for chunk, _, reason in names["explain"]("bears", chunks)}
    assert reasons == {"a": "no word of: wolf", "b": "the chunk came before in this list", "c": "not read"}


VOCABULARY = [
    "armor", "class", "armor classes", "AC", "a.c.", "level", "7th", "levels", "3", "-3", "\u22123", "4.5", "2d10", "and", "or", ",",
    ".", "?", "/", "of", "the", "is", "straße", "STRASSE", "ﬁre", "cafe\u0301", "café", "ＡＣ", "wolf", "wolves", "berries", "berry",
    "fighter's", "2\u20134", "intelligence", "wisdom", "12", "14", "한국", "\u1112\u1161\u11ab", "İstanbul", "what is", "tell me about", '"',
]  # fmt: skip
texts = st.one_of(
    st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=8).map(" ".join), st.text(min_size=1, max_size=20)
)
terms = st.one_of(texts, st.sampled_from(VOCABULARY), st.integers(-20, 20), st.floats(allow_nan=False, width=16))
groups = st.lists(st.lists(terms, max_size=3), max_size=3)
limits = st.one_of(st.none(), st.integers(-5, 30), st.floats(-5, 30))
numbers = st.fixed_dictionaries(
    {}, optional={"label": st.lists(terms, max_size=2), "sum_of": groups, "min": limits, "max": limits}
)
named = st.fixed_dictionaries({"one_of": st.lists(terms, max_size=2)}, optional={"among": st.lists(terms, max_size=3)})
rules = st.one_of(
    st.none(),
    st.fixed_dictionaries({"contain_one_of": groups}),
    st.fixed_dictionaries(
        {},
        optional={
            "contain_one_of": st.one_of(groups, terms, st.lists(terms)),
            "contain_all_of": st.one_of(terms, st.lists(terms, max_size=3)),
            "contain": st.one_of(terms, st.lists(terms, max_size=2), st.none()),
            "number_in": st.one_of(numbers, st.lists(numbers, max_size=2)),
            "when_named": st.one_of(named, st.lists(named, max_size=2)),
            "other": st.just(1),
        },
    ),
    groups,
    texts,
).flatmap(lambda rule: st.sampled_from([rule, json.dumps(rule), str(rule), {"query_must": rule}]))
steps = st.one_of(st.sampled_from([0.0, 1e-9, 0.001, 0.03, 0.1, 0.11, 0.4]), st.floats(0, 0.5))


@st.composite
def records(draw):
    distance, candidates = draw(st.floats(0, 1)), []
    fused = draw(st.booleans())
    for number in range(draw(st.integers(0, 18))):
        entry = {"id": f"c{number}", "distance": distance}
        if fused and draw(st.integers(0, 4)) == 0:
            entry = {"id": f"c{number}", "rrf": 0.01}
        if draw(st.integers(0, 3)) == 0:
            entry["similarity"] = draw(st.floats(-1, 1))
        rule = draw(rules)
        candidates.append(entry if rule is None else {**entry, "query_must": rule})
        distance = draw(st.floats(0, 1)) if fused else distance + draw(steps)
    metric = draw(st.sampled_from(["cosine", "unknown", "l2", "ip"]))
    order = "fused" if fused else "distance"
    return {"query": draw(texts.filter(str.strip)), "candidates": candidates, "metric": metric, "order": order}


@settings(suppress_health_check=list(HealthCheck))
@given(record=records())
@example(record={"query": "x", "candidates": [{"id": "a", "rrf": 1.0}], "metric": "unknown", "order": "distance"})
def test_kept_ids_equal_the_workbench_on_random_lists(exported, record):
    case = read_case(record, "the list", "q")
    for pipeline, names in exported:
        try:
            ours = [hit.chunk.id for hit in pipeline(case.candidates).hits]
        except InputError:
            with pytest.raises(ValueError):
                kept_by_file(names, record)
            continue
        assert kept_by_file(names, record) == ours


def random_record(dice, number):
    """A list as services have them: ties, rules, repeated texts, references."""
    distance, candidates = dice.random(), []
    for at in range(dice.randint(0, 25)):
        entry = {
            "id": f"c{at}",
            "distance": distance,
            "rerank": dice.random(),
            "text": " ".join(dice.choices(VOCABULARY, k=dice.randint(1, 9))),
        }
        if dice.random() < 0.4:
            words = dice.sample(VOCABULARY, 2)
            entry["query_must"] = dice.choice(
                [
                    {"contain_one_of": [words]},
                    {"contain_all_of": words[:1]},
                    {"number_in": {"label": ["level"], "max": 5}},
                ]
            )
        candidates.append(entry)
        distance += dice.choice([0, 1e-9, 0.001, 0.01, 0.05, 0.1, dice.random() / 3])
    query = " ".join(dice.choices(VOCABULARY, k=dice.randint(1, 8)))
    return {"id": f"q{number}", "query": query, "candidates": candidates}


RERANKED = {"AdaptiveGap": {"gap_threshold": 0.2, "distance_offset": 0.3, "min_results": 1, "score_kind": "rerank"}}
"""What a stage behind a reranker's score needs other than its defaults."""


@pytest.mark.parametrize("lists", [40, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("front", ["QueryMust", "Rerank"])
@pytest.mark.parametrize("name", SELF_SUFFICIENT)
def test_every_stage_alone_on_bare_python_keeps_what_the_workbench_keeps(name, front, lists, run_alone):
    dice = random.Random(name)
    settings = {"parameters": PARAMETERS} if name == "LearnedCut" else {}  # which has no prior
    if front == "Rerank":
        settings |= RERANKED.get(name, {})
    pipeline = parse_pipeline([front, {name: settings}])
    records = [random_record(dice, number) for number in range(lists)]
    done = run_alone(export_filter(pipeline), given="".join(json.dumps(record) + "\n" for record in records))
    assert done.stderr == ""
    for record, line in zip(records, done.stdout.splitlines(), strict=True):
        ours = pipeline(read_case(record, "the list", "q").candidates)
        assert json.loads(line) == {"id": record["id"], "kept": [hit.chunk.id for hit in ours.hits]}


def test_what_it_decides_is_written_down_as_recorded_lists(exported, tmp_path):
    _, names = exported[0]
    recorder = names["record_to"](tmp_path / "lists.jsonl")
    chunks = [{"id": "a", "distance": 0.1, "text": "secret"}, {"id": "b", "distance": 0.15, "query_must": [["wolf"]]}]
    try:
        names["filter_chunks"]("bears", chunks, "cosine")
        names["filter_chunks"]("wolf", chunks, "cosine")
        assert recorder.flush()
    finally:
        names["exported"].recorder = None
    cases = load_lists(tmp_path / "lists.jsonl")
    assert [case.query.text for case in cases] == ["bears", "wolf"]
    first = cases[0].candidates.hits
    assert [(hit.chunk.id, hit.chunk.metadata["kept"], hit.chunk.text) for hit in first] == [
        ("a", True, ""),
        ("b", False, ""),
    ]
    assert cases[0].query.metadata["filter"] == names["exported"].fingerprint


# ---------------------------------------------------------------- the command


def test_the_command_writes_the_file_and_says_so(tmp_path, capsysbinary):
    out = tmp_path / "filter.py"
    assert main(["export", "query-must", "--out", str(out), "--json"]) == 0
    found = json.loads(capsysbinary.readouterr().out)
    assert (found["out"], found["format"]) == (str(out), "python")
    assert out.read_text(encoding="utf-8") == export_filter(read_pipeline("query-must"))


def test_the_spec_format_gives_the_same_pipeline_back(tmp_path):
    out = tmp_path / "spec.json"
    assert main(["export", "demo-tuned", "--format", "spec", "--out", str(out)]) == 0
    assert read_pipeline(str(out)) == read_pipeline("demo-tuned")


def test_what_cannot_be_exported_is_one_sentence_and_nothing_is_written(tmp_path, capsys):
    out = tmp_path / "filter.py"
    assert main(["export", '["LLMFilter"]', "--out", str(out)]) == 2
    assert "has the stage LLMFilter" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("adapter", ["langchain", "llamaindex"])
def test_a_file_with_an_adapter_still_tests_itself_on_bare_python(adapter, tmp_path):
    path = tmp_path / "filter.py"
    assert main(["export", "demo-tuned", "--adapter", adapter, "--out", str(path)]) == 0
    done = subprocess.run([sys.executable, "-I", "-S", str(path), "--self-test"], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"def {adapter}_" in path.read_text()


def test_an_adapter_that_does_not_exist_is_refused(capsys):
    assert main(["export", "demo-tuned", "--adapter", "haystack"]) == 2
    assert "langchain, llamaindex" in capsys.readouterr().err


def test_a_pipeline_of_a_project_is_exported_by_its_name(tmp_path):
    from rag_core.project.project import open_project
    from rag_core.project.session import Session

    workspace = tmp_path / "ws"
    Session(open_project("recorded-combat", workspace)).save_pipeline("mine", read_pipeline("query-must"))
    out = ["--out", str(tmp_path / "filter.py"), "--workspace", str(workspace)]
    assert main(["export", "mine", "--project", "recorded-combat", *out]) == 0
    assert "mine" in (tmp_path / "filter.py").read_text().splitlines()[0]
