"""What can be opened below the Bench, what the address of a first visit shows, and where older links lead."""

import json
import sqlite3

import pytest

from pages import state
from rag_core.project.ledger import looks
from rag_core.project.project import open_project
from rag_core.project.session import Session
from rag_core.spec import parse_pipeline
from rag_core.store.database import open_store
from rag_core.store.labels import LabelStore
from tests.pages.walking import sane

FAR = "recorded-combat"


@pytest.fixture
def bench(open_app):
    """The Bench, opened at the root with a link; of recorded lists unless it says otherwise."""

    def opened(**link):
        return sane(open_app(**{"project": FAR, "a": "query-must", "b": "unfiltered", **link}))

    return opened


@pytest.fixture
def own(workspace, jsonl):
    """A project of recorded lists of one's own."""

    def written(*records, name="own"):
        folder = workspace / "eval_sets" / name
        folder.mkdir(parents=True)
        (folder / "meta.yaml").write_text(f"version: 1\nname: {name}\ntitle: Own lists\n")
        (folder / "lists.jsonl").write_bytes(jsonl(*records))
        return name

    return written


def open_below(app, tool):
    return sane(app.segmented_control(key="bench.tool").set_value(tool).run(timeout=60))


def table(app, *columns):
    return next(frame.value for frame in app.dataframe if set(columns) <= set(frame.value.columns))


def now(app):
    return app.session_state[state.KEY]


# A first visit


def test_a_first_visit_says_what_the_example_shows_and_is_put_away_with_a_button(open_app, words):
    app = sane(open_app())
    assert "keeps 15 and A **2**: precision **0.067 → 0.500**" in words(app)
    app.button(key="bench.play").click()
    assert "0.067 → 0.500" not in words(sane(app.run(timeout=60)))


def test_a_link_is_no_first_visit(bench):
    assert "bench.play" not in {button.key for button in bench().button}


def test_nothing_is_written_before_a_label_is_given(bench, workspace):
    bench()
    assert not (workspace / "winnow.db").exists()


# One question


def test_the_context_is_what_is_kept_with_its_tokens(bench, own, words):
    hits = [{"id": "a", "distance": 0.1, "text": "x" * 40}, {"id": "b", "distance": 0.2, "text": "y" * 38}]
    name = own({"id": "q", "query": "q", "candidates": hits})
    app = open_below(bench(project=name, a="fixed-15", b=state.encode(parse_pipeline([{"TopK": {"k": 1}}]))), "Context")
    assert "**A**: 2 chunks, about 20 tokens" in words(app)
    assert "**B**: 1 chunk, about 10 tokens" in words(app)
    assert next(code.value for code in app.code) == f"{'x' * 40}\n\n{'y' * 38}"


def test_the_trace_has_a_line_a_stage_with_its_milliseconds_and_its_warnings(bench, own):
    name = own({"query": "a", "candidates": [{"id": "odd", "distance": 1, "query_must": {"nonsense": 1}}]})
    said = "\n".join(one.value for one in open_below(bench(project=name), "Trace").text)
    assert "ms" in said
    assert "rule not read, chunk kept" in said


def test_any_chunk_can_be_followed_by_its_title(bench, open_app):
    app = open_below(bench(q="combat-1"), "Why not this chunk?")
    for wanted in ("Opponent Armor", "no such chunk anywhere", "![x](http://foreign.invalid/a.png)"):
        app.text_input(key="bench.why_not").set_value(wanted)
        assert sane(app.run(timeout=60)).text_input(key="bench.why_not").value == wanted


def test_a_question_is_a_table_with_its_csv(bench):
    rows = table(open_below(bench(q="combat-1"), "Table"), "rank", "A", "reason")
    assert list(rows["A"]).count("kept") == 2
    assert all(reason for reason, said in zip(rows["reason"], rows["A"], strict=True) if said != "kept")


def test_the_link_and_the_command_are_those_of_what_is_in_sight(bench):
    link, command = [one.value for one in open_below(bench(q="combat-1"), "Share").code]
    assert "project=recorded-combat" in link
    assert "a=query-must" in link
    assert command.startswith("winnow evaluate --project recorded-combat --split dev --pipeline ")
    assert '"QueryMust"' in command


def test_the_command_of_share_gives_the_figures_of_the_page(bench, workspace, capsys):
    import shlex

    from rag_core.cli import main

    command = [one.value for one in open_below(bench(), "Share").code][-1].split("\n\n")[0]
    assert main([*shlex.split(command)[1:], "--workspace", str(workspace), "--json"]) == 0
    means = [one["means"]["SetF"] for one in json.loads(capsys.readouterr().out)["pipelines"]]
    session = Session(open_project("recorded-combat", workspace))
    shown = session.measure([session.pipeline("query-must"), session.pipeline("unfiltered")], session.dev)
    assert means == pytest.approx([one.summary.means["SetF"] for one in shown])
    assert not looks(session.project.state)  # what is on the screen is no look


# All questions


@pytest.fixture
def tagged(own):
    """Forty questions, half of them tagged; the first chunk is relevant, for every third one the last too."""
    return own(
        *(
            {
                "id": f"q{n}",
                "query": f"question {n}?",
                "tags": ["even"] if n % 2 == 0 else [],
                "candidates": [
                    {"id": f"{n}.{at}", "distance": at / 10, "relevant": int(at == 0 or (at == 2 and n % 3 == 0))}
                    for at in range(3)
                ],
            }
            for n in range(40)
        )
    )


def tops(*sizes):
    entries = [state.encode(parse_pipeline({"name": f"first {k}", "stages": [{"TopK": {"k": k}}]})) for k in sizes]
    return dict(zip("abc", entries, strict=False))


def test_every_measure_stands_with_its_meaning_and_the_difference_is_that_of_the_questions(bench, tagged):
    app = open_below(bench(project=tagged, zoom="all", **tops(1, 2, 3)), "Measures")
    rows = table(app, "measure", "A − B").set_index("measure")
    assert {"SetP", "SetR", "SetF", "P@15", "R@15", "RR", "AP", "nDCG@15"} <= set(rows.index)
    assert all(rows["what it counts"])
    assert rows["A − B"]["SetF"] == pytest.approx(rows["A first 1"]["SetF"] - rows["B first 2"]["SetF"])
    assert set(table(app, "pipeline", "scored")["pipeline"]) == {"A first 1", "B first 2", "C first 3"}


def test_tags_have_figures_of_their_own_and_a_question_without_one_is_said_so(bench, tagged):
    rows = table(open_below(bench(project=tagged, zoom="all", **tops(1, 2)), "Tags"), "tag", "scored")
    assert set(rows["tag"]) == {"even", "(no tag)"}
    assert "None" not in rows.to_string()


def test_the_regressions_of_a_third_pipeline_stand_first(bench, tagged):
    rows = table(open_below(bench(project=tagged, zoom="all", **tops(2, 2, 3)), "Questions"), "question", "C − B")
    worst = [min(pair) for pair in zip(rows["A − B"], rows["C − B"], strict=True)]
    assert worst == sorted(worst)
    assert worst[0] < 0


def test_losses_are_said_stage_by_stage(bench, tagged):
    rows = table(open_below(bench(project=tagged, zoom="all", **tops(1, 3)), "Losses"), "where", "relevant lost")
    by_pipeline = rows.groupby("pipeline")["relevant lost"].sum()
    assert by_pipeline["A first 1"] > by_pipeline["B first 3"] == 0


# Links


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ({"set": FAR, "query": "combat-2", "pipeline": '["QueryMust"]'}, {"question": "combat-2"}),
        ({"set": FAR, "question": "who sleeps?"}, {"question": "?who sleeps?"}),
        ({"collection": FAR}, {"project": FAR}),
        ({"set": FAR, "pipelines": '["unfiltered","query-must","fixed-15"]'}, {"a": "query-must", "c": "fixed-15"}),
    ],
)
def test_a_link_of_the_first_version_leads_to_the_same_project_question_and_pipelines(open_app, link, expected):
    app = sane(open_app(**link))
    assert now(app).project == FAR
    assert {name: getattr(now(app), name) for name in expected} == expected
    assert set(app.query_params) & set(state.OLDER_PARAMETERS) == set()
    if "pipeline" in link:
        assert state.decode(now(app).a).stages == parse_pipeline(["QueryMust"]).stages


@pytest.mark.parametrize(
    "link",
    [
        {"pipeline": "["},
        {"pipeline": '["Nope"]'},
        {"pipeline": '[{"AdaptiveGap":{"gap_threshold":NaN}}]'},
        {"pipeline": "[" * 3000},
        {"pipeline": "../../etc/passwd"},
        {"pipelines": "[1]"},
        {"pipelines": '["../../secret"]'},
        {"set": "../../etc"},
        {"set": "rulebook", "collection": FAR},
        {"question": "x" * 3000},
        {"a": "../../etc/passwd"},
        {"a": "/etc/hostname"},
    ],
)
def test_a_link_that_cannot_be_followed_is_one_sentence_and_the_project_stands(open_app, words, link):
    app = sane(open_app(**link))
    assert "could not be followed" in words(app)
    assert "root:" not in words(app)
    assert now(app).project == state.DEFAULT_PROJECT


@pytest.mark.parametrize("link", [{"project": "nowhere"}, {"q": "![x](http://foreign.invalid/x.png)"}, {"a": "nosuch"}])
def test_a_name_that_is_not_there_is_said_or_passed_over_and_nothing_breaks(open_app, link):
    assert now(sane(open_app(**link))).project == link.get("project", state.DEFAULT_PROJECT)


# Lists that not every stage can read


def test_a_stage_that_cannot_run_on_a_list_is_said_and_the_other_side_is_shown(bench, own):
    name = own({"query": "a", "candidates": [{"id": "x", "bm25": 9.5, "relevant": 1}, {"id": "y", "bm25": 3.0}]})
    shown = now(sane(bench(project=name, a="adaptive-default", b="fixed-15")))
    assert (shown.project, shown.a, shown.b) == (name, "adaptive-default", "fixed-15")


def test_a_list_without_candidates_is_no_error(bench, own):
    name = own({"id": "q", "query": "roll", "candidates": []})
    assert now(sane(bench(project=name))).project == name


def test_a_store_that_is_no_database_is_said_in_one_sentence(bench, workspace, words):
    workspace.mkdir()
    (workspace / "winnow.db").write_bytes(b"this is no database at all, only words" * 40)
    assert "SQLite" in words(bench())


def test_a_label_counts_in_every_figure(bench, own, workspace):
    from pages.bench import labelling
    from rag_core.project.project import open_project
    from rag_core.project.session import Session

    name = own({"id": "q", "query": "q", "candidates": [{"id": "a", "distance": 0.1, "text": "words"}]})
    session = Session(open_project(name, workspace))
    case = session.cases[0]
    bench(project=name)
    hit = session.run(session.pipeline("unfiltered"), case).result.hits[0]
    labelling.give(name, case, hit, 3, 1.7e12)
    with open_store(workspace) as store:
        (event,) = LabelStore(store).labels(name)
    assert (event.grade, event.sampler) == (3, labelling.IN_SIGHT)
    assert session.run(session.pipeline("unfiltered"), session.cases[0]).scores.values["SetP"] == 1.0
    assert sqlite3.connect(workspace / "winnow.db").execute("SELECT count(*) FROM label_event").fetchone() == (1,)


# Reranking


def test_the_gain_of_a_reranker_by_depth_is_read_from_the_lists_and_nobody_is_asked(bench, own, words):
    rows = [
        {
            "id": f"q{number}",
            "query": f"question {number}",
            "split": "dev",
            "candidates": [
                {"id": f"q{number}-{at}", "distance": at / 10, "rerank": float(at == 4), "relevant": int(at == 4)}
                for at in range(1, 6)
            ],
        }
        for number in range(3)
    ]
    name = own(*rows)
    app = open_below(bench(project=name, a="fixed-15", b="unfiltered", zoom="all"), "Reranking")
    gains = table(app, "depth", "SetF")
    assert list(gains["best k"]) == [4, 1, 1, 1, 1]
    assert gains["SetF"].tolist() == pytest.approx([0.4, 1, 1, 1, 1])
    assert "over 3 dev questions" in words(app)
    app = open_below(bench(project=FAR, a="query-must", zoom="all"), "Reranking")
    assert "No reranker" in words(app)
