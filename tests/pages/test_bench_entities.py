"""The drawer of EntityFilter and its section: a query, its matches, an alias and what it changes, a structure of one's
own and its labels; what is stored moves the figures of the Bench.
"""

import json
import re

import pytest

from pages import state
from rag_core.resources import with_entities
from rag_core.spec import make_stage, parse_pipeline
from tests.pages.walking import go, sane

OWN = json.dumps(
    {
        "entities": {
            "Zorgon Clan": {"members": ["Blip"], "abilities": ["Warp Dance"]},
            "Quux ![x](http://foreign.invalid/a.png)": {"members": ["it"]},
        }
    }
).encode()
LABELS = b'{"id": "a", "query": "blip moves", "teams": ["Zorgon Clan"]}\n{"query": "x", "teams": ["Nobody"]}\n'


ENTRY = state.encode(parse_pipeline(["EntityFilter"]))
EXAMPLE = "Can kommando orks use ere we go?"


@pytest.fixture
def bench(open_app):
    """The Bench with the drawer of EntityFilter open."""
    app = go(open_app(), "bench/page", project="recorded-combat", q="combat-1", a=ENTRY, b="unfiltered")
    app.session_state["bench.drawer"] = 0
    return sane(app.run())


@pytest.fixture
def entities(bench):
    """The section that the drawer opens, with a question asked in it."""
    bench.toggle(key="bench.section").set_value(True).run()
    bench.text_input(key="entities.query").set_value(EXAMPLE).run()
    return sane(bench)


def show(app, view):
    return sane(app.segmented_control(key="entities.view").set_value(view).run())


def frame(app, column):
    return next(one.value for one in app.dataframe if column in one.value.columns)


def drop(app, name, data, key="entities.file"):
    next(one for one in app.file_uploader if one.key == key).upload(name, data, "application/octet-stream").run()
    return sane(app)


def type_alias(app, alias, *teams):
    show(app, "Aliases")
    app.text_input(key="entities.alias").set_value(alias)
    app.multiselect(key="entities.alias_teams").set_value(list(teams)).run()
    return app


def button(app, label):
    return next(widget for widget in app.button if widget.label == label)


def meant(app, words):
    """(entities meant, of how many, share of tokens saved in percent) as the line of figures says it."""
    return tuple(
        map(float, re.search(r"\*\*(\d+) of (\d+)\*\* entities meant.*\*\*([\d.]+)%\*\* saved", words(app)).groups())
    )


def test_the_example_finds_two_teams_and_saves_tokens(entities, words):
    found, every, saved = meant(entities, words)
    assert (found, every) == (2, 48)
    assert saved > 94


def test_each_match_has_strategy_words_score_confidence_and_reason(entities):
    rows = frame(entities, "strategy").to_dict("records")
    assert {
        "entity": "Kommandos",
        "strategy": "ability",
        "found name": "Ere We Go",
        "words": "ere go",
        "score": 100.0,
        "confidence": 1.0,
        "reason": "2 of 2 words (left out as stop words: we)",
    } in rows


def test_the_tree_holds_only_the_entities_found(entities):
    assert list(json.loads(entities.json[0].value)) == ["Kommandos", "Wrecka Krew"]


def test_a_query_that_names_nothing_keeps_the_whole_structure_and_tells_a_model_what_fits(entities, words):
    entities.text_input(key="entities.query").set_value("how overwatch works").run()
    assert meant(entities, words) == (0, 48, 0)
    sent = len(json.loads(entities.json[0].value))
    assert 0 < sent < 48
    assert f"{sent} of 48 entities sent" in words(entities)
    assert "names none" in words(entities)


@pytest.mark.parametrize("query", ["", "\x00", "🙂" * 500, "‮שלום", "x" * 10_000])
def test_odd_queries_do_not_break_the_page(entities, query):
    entities.text_input(key="entities.query").set_value(query).run()
    assert not entities.exception


def test_the_threshold_decides_on_misspelt_names(entities, words):
    entities.text_input(key="entities.query").set_value("deathwach kill zone").run()
    assert meant(entities, words)[:2] == (1, 48)
    entry = state.encode(parse_pipeline([make_stage("EntityFilter", {"threshold": 98.0})]))
    entities.session_state[state.KEY] = state.PageState("recorded-combat", "combat-1", a=entry, b="unfiltered")
    entities.run()
    assert meant(entities, words)[:2] == (0, 48)


def test_an_alias_shows_the_labelled_queries_it_changes_before_it_is_kept(entities, words):
    type_alias(entities, "hordes", "Kommandos")
    assert "1 of 80 labelled queries change**: 0 right now, 1 wrong now" in words(entities)
    assert frame(entities, "came").to_dict("records") == [
        {
            "query": "skeleton hordes",
            "verdict": "✕ wrong now",
            "came": "Kommandos",
            "went": "",
            "meant": "Bonewright Guild, Gravelight Procession",
            "id": "e38",
        }
    ]


def test_a_kept_alias_finds_its_entities_until_it_is_taken_back(entities, words):
    type_alias(entities, "boyz", "Wrecka Krew")
    button(entities, "Keep this alias").click().run()
    entities.text_input(key="entities.query").set_value("what can boyz do").run()
    assert meant(entities, words)[:2] == (1, 48)
    button(entities, "Take back the last one").click().run()
    assert meant(entities, words)[:2] == (0, 48)


def test_an_alias_without_a_word_is_refused_in_a_sentence(entities, words):
    type_alias(entities, "!!", "Kommandos")
    assert "This alias cannot be used." in words(entities)
    assert "expected a name with a letter or digit in it" in words(entities)


def test_agreement_is_shown_together_and_per_strategy_with_its_misses(entities, words):
    show(entities, "Labelled queries")
    rows = {row["found by"]: row for row in frame(entities, "micro precision").to_dict("records")}
    assert list(rows) == ["all together", "operative", "ability", "alias", "team_name"]
    assert round(rows["all together"]["precision"], 3) == 0.975
    assert round(rows["all together"]["recall"], 3) == 0.988
    assert "macro over 80 labelled queries" in words(entities)
    assert len(frame(entities, "too much")) == 2


def test_the_half_narrows_the_labelled_queries(entities, words):
    show(entities, "Labelled queries")
    entities.segmented_control(key="entities.half").set_value("test").run()
    assert "macro over 40 labelled queries" in words(entities)


def test_lint_names_the_ordinary_word(entities):
    show(entities, "Lint")
    assert frame(entities, "what a query does")["name"].tolist() == ["Burna Boy"]


def test_a_structure_of_ones_own_is_read_and_used(entities, words):
    drop(entities, "own.json", OWN)
    entities.text_input(key="entities.query").set_value("warp dance").run()
    assert meant(entities, words)[:2] == (1, 2)
    assert list(json.loads(entities.json[0].value)) == ["Zorgon Clan"]


def test_a_malformed_structure_is_one_sentence_and_changes_nothing(entities, words):
    drop(entities, "own.json", b'{"entities": {"A": {"members": []}}}')
    assert "This file cannot be opened; nothing was changed." in words(entities)
    assert "the file: entities → A → members is empty" in words(entities)
    assert meant(entities, words)[:2] == (2, 48)


def test_shipped_labels_are_not_used_for_a_foreign_structure_and_ones_own_are(entities, words):
    drop(entities, "own.json", OWN)
    show(entities, "Labelled queries")
    assert "There are no labelled queries for this structure" in words(entities)
    drop(entities, "labels.jsonl", LABELS, key="entities.labels")
    assert "1 labelled queries mean entities that this structure does not have" in words(entities)
    assert frame(entities, "micro precision")["recall"][0] == 1.0


def test_a_kept_structure_reaches_pipelines(entities, workspace):
    type_alias(entities, "boyz", "Wrecka Krew")
    button(entities, "Keep this alias").click().run()
    button(entities, "Use it in pipelines").click().run()
    (stage,) = with_entities(parse_pipeline(["EntityFilter"]), workspace).stages
    assert stage.entities.extract_relevant_teams("boyz") == ["Wrecka Krew"]


def test_the_drawer_says_what_the_stage_can_judge(bench, words):
    assert "so this stage drops nothing" in words(bench)


def test_foreign_names_never_stand_in_markup(entities, words):
    drop(entities, "own.json", OWN)
    entities.text_input(key="entities.query").set_value("quux").run()
    for view in ("Matches", "Aliases", "Labelled queries", "Lint"):
        show(entities, view)
        assert "foreign.invalid" not in "\n".join(str(one.value) for one in (*entities.markdown, *entities.caption))


def test_a_structure_that_cannot_be_read_is_one_sentence_and_another_can_be_opened(open_app, workspace, words):
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / "structure.json").write_text('{"entities": {"A": {"members": []}}}')
    app = go(open_app(), "bench/page", project="recorded-combat", q="combat-1", a=ENTRY, b="unfiltered")
    app.session_state["bench.drawer"] = 0
    sane(app.run())
    assert "entities → A → members is empty" in words(app)
    app.toggle(key="bench.section").set_value(True).run()
    drop(app, "own.json", OWN)
    button(app, "Use it in pipelines").click().run()
    sane(app)
    assert "members is empty" not in words(app)
