"""Eval sets through AppTest: what exists, a new set with preview, tags, split, guidelines, copy, compare, delete."""

import pytest

from rag_core.evaluate.set_writing import new_set
from rag_core.evaluate.sets import load_set
from rag_core.store.database import open_store
from rag_core.store.events import Event
from rag_core.store.labels import LabelStore
from rag_core.types import Query

QUESTIONS = [Query(f"a{n}", f"topic{n} thing{n} matter{n}?") for n in range(6)]


@pytest.fixture
def sets_page(open_app, workspace):
    def opened(name="", own=True):
        if own:
            new_set(workspace, "mine", QUESTIONS)
        app = open_app()
        if name:
            app.query_params["set"] = name
        return sane(app.switch_page("pages/eval_sets.py").run())

    return opened


def sane(app):
    assert not app.exception, [error.value for error in app.exception]
    return app


def part(app, name):
    control = next(one for one in app.segmented_control if one.label == "Part")
    control.set_value(name)
    return sane(app.run())


def view(app, name):
    app.segmented_control(key="sets.view").set_value(name)
    return sane(app.run())


def press(app, key):
    app.button(key=key).click()
    return sane(app.run())


def test_without_a_set_of_ones_own_the_next_step_is_said(sets_page, words):
    app = sets_page(own=False)
    assert "No eval set of your own yet" in words(app)
    listed = app.dataframe[0].value
    assert set(listed["whose"]) == {"shipped"}
    assert (listed["queries"] > 0).all()


def test_the_address_names_the_set(sets_page):
    app = sets_page("rulebook")
    assert app.selectbox(key="sets.chosen").value == "rulebook"
    assert app.query_params["set"] == ["rulebook"] or app.query_params["set"] == "rulebook"


def test_labels_of_people_are_counted_beside_those_of_the_files(sets_page, workspace):
    with open_store(workspace) as store:
        event = Event(session="s", seq=0, eval_set="mine", query_id="a1", chunk_id="c", annotator="x", grade=1)
        LabelStore(store).append([event])
    table = sets_page().dataframe[0].value.set_index("name")
    assert table.loc["mine", "labels by people"] == 1


def test_pasted_queries_are_looked_at_and_made_a_set(sets_page, workspace, words):
    app = view(sets_page(own=False), "New set")
    assert "Nothing to look at yet" in words(app)
    assert app.button(key="sets.new.make").disabled
    app.text_area(key="sets.new.text").set_value("How far?\nHow high?\nhow far?")
    app = sane(app.run())
    assert "Queries: 3" in words(app)
    assert "1 ask what another one asks" in words(app)
    app.text_input(key="sets.new.name").set_value("table-talk")
    app = press(app, "sets.new.make")
    assert [case.query.text for case in load_set("table-talk", workspace).cases] == [
        "How far?",
        "How high?",
        "how far?",
    ]
    assert app.selectbox(key="sets.chosen").value == "table-talk"


def test_a_dropped_list_is_read_as_its_ending_says(sets_page, words):
    app = view(sets_page(own=False), "New set")
    app.file_uploader(key="sets.new.file").upload("asked.csv", b"id,query,tags\n007,How far?,a;b\n", "text/csv")
    app = sane(app.run())
    assert list(app.dataframe[0].value.iloc[0]) == ["007", "How far?", "a, b"]


@pytest.mark.parametrize(("name", "said"), [("../x", "name"), ("rulebook", "shipped"), ("", "name")])
def test_a_name_that_cannot_be_is_one_sentence_and_nothing_is_made(sets_page, workspace, words, name, said):
    app = view(sets_page(own=False), "New set")
    app.text_area(key="sets.new.text").set_value("How far?")
    app.text_input(key="sets.new.name").set_value(name)
    app = press(sane(app.run()), "sets.new.make")
    assert "Nothing was changed" in words(app)
    assert said in words(app)
    assert not (workspace / "eval_sets").exists() or not list((workspace / "eval_sets").iterdir())


def test_a_bad_list_is_one_sentence_with_its_line(sets_page, words):
    app = view(sets_page(own=False), "New set")
    app.text_area(key="sets.new.text").set_value('{"query": "a"}\n{"nothing": 1}')
    app = sane(app.run())
    assert "line 2 has no query text" in words(app)
    assert app.button(key="sets.new.make").disabled


def test_tags_go_to_the_queries_that_are_shown(sets_page, workspace, words):
    app = sets_page("mine")
    app.text_input(key="sets.find").set_value("topic3")
    app.text_input(key="sets.tag").set_value("far")
    app = press(sane(app.run()), "sets.add")
    assert "Tags of 1 queries changed" in words(app)
    assert {case.query.id: case.query.tags for case in load_set("mine", workspace).cases if case.query.tags} == {
        "a3": ("far",)
    }


def test_an_empty_tag_is_one_sentence(sets_page, words):
    assert "the tag is empty" in words(press(sets_page("mine"), "sets.add"))


def test_a_split_puts_every_query_on_a_side(sets_page, workspace, words):
    app = press(part(sets_page("mine"), "Split"), "sets.split")
    assert "4 dev and 2 test queries" in words(app)
    assert len(load_set("mine", workspace).split("test").cases) == 2


def test_guidelines_are_stored_as_written(sets_page, workspace):
    app = part(sets_page("mine"), "Guidelines")
    app.text_area(key="sets.guidelines.mine").set_value("- 0: nothing\n![x](http://evil.example/x.png)")
    press(sane(app.run()), "sets.guide")
    stored = (workspace / "eval_sets" / "mine" / "guidelines.md").read_text()
    assert stored == "- 0: nothing\n![x](http://evil.example/x.png)\n"


def test_a_shipped_set_can_be_read_and_duplicated_only(sets_page, workspace):
    app = sets_page("recorded-combat")
    control = next(one for one in app.segmented_control if one.label == "Part")
    assert list(control.options) == ["Queries", "Guidelines", "Duplicate"]
    app = part(app, "Duplicate")
    app.text_input(key="sets.copy.name").set_value("my-combat")
    app = press(sane(app.run()), "sets.copy")
    assert load_set("my-combat", workspace).cases == load_set("recorded-combat").cases
    assert app.selectbox(key="sets.chosen").value == "my-combat"


def test_two_sets_are_compared(sets_page, workspace, words):
    from rag_core.evaluate.set_writing import change_tags, copy_set

    app = sets_page("mine")
    copy_set(workspace, "mine", "other")
    change_tags(workspace, "other", ["a1"], add=["far"])
    app = view(app, "Compare")
    app.selectbox(key="sets.before").set_value("mine")
    app.selectbox(key="sets.after").set_value("other")
    app = sane(app.run())
    assert "Queries that differ: 1" in words(app)
    assert list(app.dataframe[0].value.iloc[0]) == ["a1", "changed", "tags"]


def test_deleting_must_be_meant(sets_page, workspace):
    app = part(sets_page("mine"), "Delete")
    assert app.button(key="sets.delete").disabled
    app.checkbox(key="sets.meant.mine").check()
    app = press(sane(app.run()), "sets.delete")
    assert not (workspace / "eval_sets" / "mine").exists()
    assert "mine" not in app.selectbox(key="sets.chosen").options


def test_a_set_that_cannot_be_read_says_why_and_can_be_deleted(sets_page, workspace, words):
    app = sets_page()
    (workspace / "eval_sets" / "mine" / "queries.jsonl").write_text("not json")
    app.selectbox(key="sets.chosen").set_value("mine")
    app = sane(app.run())
    assert "not valid JSON" in words(app)
