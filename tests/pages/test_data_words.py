"""The section Words of Data through AppTest: lists are edited, refused and tried, and nothing typed is lost."""

import pytest

from rag_core.eval_sets.reading import load_set
from rag_core.workbench import bring_up_to_date

NAME = "skirmish-rules"
HOSTILE = "![x](http://foreign.invalid/a.png)"
SYNONYMS, KEYWORDS = f"data.words.box.synonyms.{NAME}", f"data.words.box.keywords.{NAME}"


@pytest.fixture
def page(open_app, workspace):
    bring_up_to_date(load_set(NAME), workspace)
    app = open_app("data", project=NAME)
    app.segmented_control(key="data.section").set_value("Words").run()
    return sane(app)


def sane(app):
    assert not app.exception, [error.value for error in app.exception]
    return app


def frame(app, column):
    return next(one.value for one in app.dataframe if column in one.value.columns)


def typed(app, text, key=SYNONYMS):
    app.text_area(key=key).set_value(text).run()
    return sane(app)


def pressed(app, key):
    app.button(key=key).click().run()
    return sane(app)


def tried(app, question):
    app.text_input(key="data.words.question").set_value(question).run()
    rows = frame(sane(app), "side")
    return dict(zip(rows["side"], rows["question"], strict=True))


def test_the_view_says_where_both_lists_come_from(page):
    rows = frame(page, "entries").to_dict("records")
    assert [row["comes from"] for row in rows] == [
        "the headers, at the last ingest",
        f"eval set {NAME}",
        f"eval set {NAME}",
    ]
    assert rows[2]["file"] == f"eval_sets/{NAME}/synonyms.yaml"
    assert "regain wounds" in frame(page, "official term")["official term"].tolist()


def test_a_question_is_shown_before_and_after_on_both_sides(page):
    assert tried(page, "Can I heal with ACCURATE 1?") == {
        "before, both sides": "Can I heal with ACCURATE 1?",
        "after, dense (embedding)": "Can I heal with Accurate 1?",
        "after, lexical (BM25)": "Can I heal with ACCURATE 1? regain wounds",
    }
    assert frame(page, "side")["because of"].tolist() == ["", "Accurate 1", "heal → regain wounds"]


def test_what_is_typed_is_tried_before_it_is_saved_and_saved_as_the_collections_own(page, workspace):
    typed(page, "fall back: [skedaddle]\n")
    assert tried(page, "may I skedaddle")["after, lexical (BM25)"] == "may I skedaddle fall back"
    assert not (workspace / "words").exists()
    pressed(page, "data.words.save")
    assert (workspace / "words" / NAME / "synonyms.yaml").read_text() == "fall back: [skedaddle]\n"
    assert frame(page, "entries").to_dict("records")[2]["comes from"] == "this collection’s own"


def test_a_malformed_list_is_refused_in_a_sentence_and_what_was_typed_stays(page, workspace, words):
    typed(page, "fall back: skedaddle\n")
    pressed(page, "data.words.save")
    assert "your text is kept here" in words(page)
    assert "expected a list" in words(page)
    assert page.text_area(key=SYNONYMS).value == "fall back: skedaddle\n"
    assert not (workspace / "words").exists()


def test_a_text_that_is_not_saved_outlives_a_look_at_something_else(page):
    typed(page, "fall back: [skedaddle]\n")
    for key, elsewhere, back in (("data.words.list", "Keywords", "Synonyms"), ("data.section", "Numbers", "Words")):
        page.segmented_control(key=key).set_value(elsewhere).run()
        page.segmented_control(key=key).set_value(back).run()
        assert sane(page).text_area(key=SYNONYMS).value == "fall back: [skedaddle]\n"


def test_discarding_brings_the_saved_text_back(page):
    before = page.text_area(key=SYNONYMS).value
    typed(page, "nonsense")
    pressed(page, "data.words.discard")
    assert page.text_area(key=SYNONYMS).value == before


def test_an_edit_by_hand_is_taken_over_and_meets_a_started_edit_without_losing_either(page, workspace, words):
    own = workspace / "words" / NAME / "synonyms.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("dash: [zoom]\n")
    page.run()
    assert page.text_area(key=SYNONYMS).value == "dash: [zoom]\n"
    typed(page, "dash: [whoosh]\n")
    own.write_text("dash: [zip]\n")
    page.run()
    assert "changed since you began" in words(page)
    assert page.text_area(key=SYNONYMS).value == "dash: [whoosh]\n"
    pressed(page, "data.words.save")
    assert own.read_text() == "dash: [whoosh]\n"
    assert own.with_suffix(".before").read_text() == "dash: [zip]\n"


def test_own_keywords_stand_beside_those_of_the_headers(page):
    page.segmented_control(key="data.words.list").set_value("Keywords").run()
    typed(page, "keywords: [Zorgon Blaster]\n", KEYWORDS)
    rows = dict(zip(*(frame(page, "keyword")[one] for one in ("keyword", "comes from")), strict=True))
    assert (rows["Zorgon Blaster"], rows["Accurate x"]) == ("the list", "a header")
    assert tried(page, "a ZORGON blaster")["after, dense (embedding)"] == "a Zorgon Blaster"


def test_hostile_words_stand_in_cells_and_text_only(page):
    typed(page, f"'{HOSTILE}': [boo]\n")
    tried(page, f"boo {HOSTILE}")
    typed(page, f"'{HOSTILE}': boo\n")
    assert not any(HOSTILE in str(one.value) for one in page.markdown)


@pytest.mark.parametrize("text", ["x" * 2001, "a\x07b"])
def test_what_is_no_question_is_one_sentence(page, words, text):
    page.text_input(key="data.words.question").set_value(text).run()
    assert "This is no question to search for." in words(sane(page))


def test_a_viewer_is_refused_in_the_server_and_keeps_what_was_typed(workspace, page, monkeypatch, words):
    from pages.components import who
    from rag_core.roles import Person

    typed(page, "fall back: [skedaddle]\n")
    monkeypatch.setattr(who, "person", lambda: Person("vera@example.org", "viewer"))
    pressed(page, "data.words.save")
    assert page.button(key="data.words.save").disabled
    assert "your text is kept here" in words(page)
    assert page.text_area(key=SYNONYMS).value == "fall back: [skedaddle]\n"
    assert not (workspace / "words").exists()
