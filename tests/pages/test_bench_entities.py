"""The drawer of EntityFilter and its section: a query, its matches, an alias and what it changes, a structure of one's
own and its labels; what is stored moves the figures of the Bench.
"""

import json
import re

import pytest

from pages import state
from rag_core.resources import with_handles
from rag_core.spec import make_stage, parse_pipeline
from tests.pages.walking import sane

OWN = json.dumps(
    {
        "entities": {
            "Zorgon Clan": {"members": ["Blip"], "abilities": ["Warp Dance"]},
            "Quux ![x](http://foreign.invalid/a.png)": {"members": ["it"]},
        }
    }
).encode()


ENTRY = state.encode(parse_pipeline(["EntityFilter"]))
EXAMPLE = "Can kommando orks use ere we go?"


@pytest.fixture
def bench(open_app):
    """The Bench with the drawer of EntityFilter open."""
    app = sane(open_app(project="recorded-combat", q="combat-1", a=ENTRY, b="unfiltered"))
    app.session_state["bench.drawer"] = 0
    return sane(app.run())


@pytest.fixture
def entities(bench):
    """The section that the drawer opens, with a question asked in it."""
    bench.toggle(key="bench.section").set_value(True).run()
    bench.text_input(key="entities.query").set_value(EXAMPLE).run()
    return sane(bench)


def frame(app, column):
    return next(one.value for one in app.dataframe if column in one.value.columns)


def drop(app, name, data, key="entities.file"):
    next(one for one in app.file_uploader if one.key == key).upload(name, data, "application/octet-stream").run()
    return sane(app)


def type_alias(app, alias, *teams):
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


def test_a_query_that_names_nothing_keeps_the_whole_structure(entities, words):
    entities.text_input(key="entities.query").set_value("how overwatch works").run()
    assert meant(entities, words) == (0, 48, 0)


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


def test_an_alias_shows_the_questions_it_changes_before_it_is_tried(entities, words):
    type_alias(entities, "cleric", "Kommandos")
    rows = frame(entities, "came").to_dict("records")
    assert f"{len(rows)} of " in words(entities)
    assert rows
    assert {(row["came"], row["went"]) for row in rows} == {("Kommandos", "")}
    assert all("cleric" in row["question"].lower() for row in rows)


def test_a_tried_alias_finds_its_entities_until_it_is_taken_back(entities, words, workspace):
    type_alias(entities, "boyz", "Wrecka Krew")
    button(entities, "Add").click().run()
    entities.text_input(key="entities.query").set_value("what can boyz do").run()
    assert meant(entities, words)[:2] == (1, 48)
    assert not (workspace / "structure.json").exists()
    button(entities, "Back to the stored one").click().run()
    assert meant(entities, words)[:2] == (0, 48)


def test_an_alias_without_a_word_is_refused_in_a_sentence(entities, words):
    type_alias(entities, "!!", "Kommandos")
    assert "This alias cannot be used." in words(entities)
    assert "expected a name with a letter or digit in it" in words(entities)


def test_lint_names_the_ordinary_word(entities):
    assert frame(entities, "what a query does")["name"].tolist() == ["Burna Boy"]


def test_a_structure_of_ones_own_is_read_and_used(entities, words):
    drop(entities, "own.json", OWN)
    entities.text_input(key="entities.query").set_value("warp dance").run()
    assert meant(entities, words)[:2] == (1, 2)
    assert list(frame(entities, "strategy")["entity"]) == ["Zorgon Clan"]


def test_a_malformed_structure_is_one_sentence_and_changes_nothing(entities, words):
    drop(entities, "own.json", b'{"entities": {"A": {"members": []}}}')
    assert "This cannot be taken; nothing was changed." in words(entities)
    assert "the file: entities → A → members is empty" in words(entities)
    assert meant(entities, words)[:2] == (2, 48)


def test_a_kept_structure_reaches_pipelines(entities, workspace):
    type_alias(entities, "boyz", "Wrecka Krew")
    button(entities, "Add").click().run()
    button(entities, "Use it in pipelines").click().run()
    (stage,) = with_handles(parse_pipeline(["EntityFilter"]), workspace).stages
    assert stage.entities.extract_relevant_teams("boyz") == ["Wrecka Krew"]


def test_the_drawer_says_what_the_stage_can_judge(bench, words):
    assert "so this stage drops nothing" in words(bench)


def test_foreign_names_never_stand_in_markup(entities, words):
    drop(entities, "own.json", OWN)
    entities.text_input(key="entities.query").set_value("quux").run()
    assert "foreign.invalid" not in "\n".join(str(one.value) for one in (*entities.markdown, *entities.caption))


def test_a_structure_that_cannot_be_read_is_one_sentence_and_another_can_be_opened(open_app, workspace, words):
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / "structure.json").write_text('{"entities": {"A": {"members": []}}}')
    app = sane(open_app(project="recorded-combat", q="combat-1", a=ENTRY, b="unfiltered"))
    app.session_state["bench.drawer"] = 0
    sane(app.run())
    assert "entities → A → members is empty" in words(app)
    app.toggle(key="bench.section").set_value(True).run()
    drop(app, "own.json", OWN)
    button(app, "Use it in pipelines").click().run()
    sane(app)
    assert "members is empty" not in words(app)
