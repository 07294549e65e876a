"""Explore on lists that are searched now: the bundled model, an index of its own, a small corpus in the workspace."""

import json

import numpy as np
import pytest

from rag_core.evaluate.sets import load_set
from rag_core.index.ingest import ingest
from rag_core.workbench import bring_up_to_date

SPELLS = ("Fire Dart", "Ice Wall", "Light", "Sleep", "Charm", "Shield")
CHUNKS = [
    *(
        {"id": f"ac{ac}", "title": f"Attack matrix, armor class {ac}", "type": "table", "source": "combat.md",
         "text": f"What a cleric needs to roll to hit an opponent with armor class {ac}: {20 - ac}.",
         "query_must": {"contain": f"armor class {ac}"}}
        for ac in range(20)
    ),
    {"id": "strength", "title": "Strength", "type": "rule", "source": "abilities.md",
     "text": "Strength 17 adds one to hit an opponent in melee."},
    *({"id": name, "title": name, "type": "spell", "source": "spells.md", "text": f"{name} is a spell of the cleric."}
      for name in SPELLS),
]  # fmt: skip
QUERIES = [
    {"id": "hit", "query": "What does a cleric need to roll to hit an opponent with armor class 6?"},
    {"id": "sleep", "query": "How does the spell Sleep work?"},
]


class OtherModel:
    """A model that is not the bundled one; every text lies in the same direction."""

    name, dimension, window, batch = "another-model", 4, 256, 8

    def embed(self, texts, progress=None):
        return np.tile(np.array([1, 0, 0, 0], dtype=np.float32), (len(texts), 1))

    def count_tokens(self, texts):
        return [len(text.split()) for text in texts]


def lines(records):
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def small_set(workspace):
    folder = workspace / "eval_sets" / "small"
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text("version: 1\nname: small\ntitle: A small rulebook\n")
    (folder / "corpus.jsonl").write_text(lines(CHUNKS))
    (folder / "queries.jsonl").write_text(lines(QUERIES))
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nhit\tac6\t3\nhit\tstrength\t1\nsleep\tSleep\t3\n")
    return folder


@pytest.fixture
def live(small_set, open_app):
    """A session on the small live set, opened with the given link."""

    def opened(**parameters):
        return sane(open_app(set="small", **parameters))

    return opened


def sane(app):
    assert not app.exception, [error.value for error in app.exception]
    return app


def switch(app, label):
    next(widget for widget in app.toggle if widget.label == label).set_value(True).run()
    return sane(app)


def trace(app):
    return next(one.value for one in app.caption if one.value.startswith("search: "))


def test_a_live_set_is_ingested_searched_and_compared_with_fixed_15(live, workspace, words, figures):
    app = live()
    assert (workspace / "collections" / "small").is_dir()
    assert app.selectbox(key="explore.collection").value == "small"
    assert figures(app)["kept"] == ("15 of 15", "0 dropped")
    assert figures(app)["SetP"][1] == "as fixed k = 15"
    assert "“was” is fixed k = 15" in words(app)
    assert trace(app).startswith("search: depth 15 of 27 chunks, exact, 1 store query, ")


def test_refill_brings_what_query_must_alone_does_not_reach(live, words, figures):
    app = live(query="hit", pipeline='[{"Dense":{"depth":5}},"QueryMust"]')
    assert figures(app)["SetR"][0] == "0.500"
    switch(app, "refill")
    assert figures(app)["SetR"][0] == "1.000"
    assert "refill: 2 rounds, 27 read, 2 store queries, stopped: the list ended" in trace(app)
    assert "5 in → refill read 27, left 8 → 8 kept" in words(app)


@pytest.mark.parametrize("strategy", ["deepen", "exclude", "prefilter"])
def test_every_strategy_of_refill_keeps_the_same_chunks(live, figures, strategy):
    app = live(query="hit", pipeline=f'[{{"Dense":{{"depth":5}}}},{{"Requery":{{"strategy":"{strategy}"}}}}]')
    assert figures(app)["kept"][0].split(" of ")[0] == "8"
    assert figures(app)["SetR"][0] == "1.000"


def test_the_address_restores_set_collection_question_and_pipeline(live, figures):
    app = live()
    app.text_input(key="explore.question").set_value("who sleeps?").run()
    app.text_input(key="explore.where").set_value("type=spell").run()
    address = dict(sane(app).query_params)
    assert address == {
        "set": "small", "collection": "small", "question": "who sleeps?",
        "pipeline": '[{"Dense":{"depth":15,"where":{"type":"spell"}}}]',
    }  # fmt: skip
    again = live(**{name: value for name, value in address.items() if name != "set"})
    assert again.text_input(key="explore.question").value == "who sleeps?"
    assert figures(again)["kept"][0] == "6 of 6"


def test_an_own_question_is_scored_once_it_is_labelled_and_found_again(live, words, figures):
    app = live(question="who sleeps?")
    assert figures(app)["SetF"] == ("–", "not scored")
    app.session_state["explore.selected"] = "Sleep"
    next(one for one in sane(app.run()).button if one.label == "3 answers it").click().run()
    assert figures(sane(app))["SetR"][0] == "1.000"
    again = live(question="  who sleeps? ")
    assert figures(again)["SetR"][0] == "1.000"


def test_a_query_of_the_set_takes_the_place_of_an_own_question(live, figures):
    app = live(question="who sleeps?")
    app.selectbox(key="explore.query_id").set_value("sleep").run()
    assert sane(app).text_input(key="explore.question").value == ""
    assert app.query_params["query"] == "sleep"


def test_conditions_and_file_names_narrow_the_search(live, figures, words):
    pipeline = '[{"Dense":{"depth":15,"where":{"type":["rule","spell"]},"file_filter":"abilities"}}]'
    assert figures(live(pipeline=pipeline))["kept"][0] == "1 of 1"


@pytest.mark.parametrize(
    ("field", "text", "said"),
    [
        ("question", "x" * 2001, "2,001 characters, expected at most 2,000"),
        ("question", "a\x00b", "control character U+0000"),
        ("where", "type", "expected field=value"),
        ("file_filter", "re:(", "no valid pattern"),
    ],
)
def test_what_cannot_be_searched_is_said_and_stays_in_its_box(live, words, figures, field, text, said):
    app = live()
    app.text_input(key=f"explore.{field}").set_value(text).run()
    assert said in words(sane(app))
    assert app.text_input(key=f"explore.{field}").value == text
    assert figures(app)["kept"][0] == "15 of 15"


def test_a_shipped_pipeline_sets_the_controls_and_a_changed_control_makes_it_ones_own(live, figures):
    app = live(query="hit")
    app.selectbox(key="explore.shipped").set_value("demo-tuned").run()
    assert sane(app).slider(key="explore.gap_threshold").value == 0.06
    assert app.number_input(key="explore.depth").value == 200
    app.slider(key="explore.gap_threshold").set_value(0.05).run()
    assert sane(app).selectbox(key="explore.shipped").value == "own settings"


def test_all_queries_are_searched_once_and_say_what_they_are_compared_with(live, words, monkeypatch):
    from rag_core.index.search import CollectionIndex

    app = live(query="hit", pipeline='[{"Dense":{"depth":15}},{"TopK":{"k":3}}]')
    app.segmented_control(key="explore.below").set_value("All queries").run()
    assert "macro over 2 of 2 queries (fixed k = 15 " in words(sane(app))
    asked, search = [], CollectionIndex.reader
    monkeypatch.setattr(
        CollectionIndex, "reader", lambda self, text, *rest: asked.append(text) or search(self, text, *rest)
    )
    app.number_input(key="explore.k").set_value(2).run()
    assert asked == []  # nothing that was searched is searched again, the query in view neither


def test_a_collection_that_is_not_there_is_said_with_those_that_are(live, words):
    app = live(collection="nowhere")
    assert "there is no collection 'nowhere', expected one of small" in words(live()) + words(
        live(collection="nowhere")
    )
    assert app.selectbox(key="explore.collection").value is None


def test_a_hostile_collection_name_is_a_sentence(live, words):
    assert "there is no collection" in words(live(collection="../../etc"))


def test_a_collection_of_another_model_is_refused_naming_both(live, small_set, workspace, words):
    ingest([small_set / "corpus.jsonl"], "other", workspace, OtherModel(), format="jsonl")
    said = words(live(collection="other"))
    assert "collection other was built with another-model (4 dimensions), this query would use " in said


def test_recorded_queries_can_be_searched_in_a_collection(live, small_set, workspace, open_app, figures):
    bring_up_to_date(load_set("small", workspace), workspace)
    app = sane(open_app(set="recorded-combat"))
    app.selectbox(key="explore.collection").set_value("small").run()
    assert figures(sane(app))["SetF"] == ("–", "not scored")
    app.selectbox(key="explore.collection").set_value("").run()
    assert figures(sane(app))["SetP"] == ("0.067", "as without filter")


def test_chroma_that_cannot_start_is_said_and_exact_search_goes_on(live, small_set, workspace, words, figures):
    bring_up_to_date(load_set("small", workspace), workspace)
    (workspace / "collections" / "small" / "chroma").write_text("no folder")
    app = live(search="approximate")
    assert "This question cannot be searched as it is set." in words(app)
    next(widget for widget in app.toggle if widget.label.startswith("approximate")).set_value(False).run()
    assert figures(sane(app))["kept"][0] == "15 of 15"


HYBRID = '["NormaliseKeywords","ExpandSynonyms",{"Hybrid":{"depth":10}},{"TopK":{"k":5}}]'


def shown(app):
    return "\n".join(one.value for one in app.text)


def test_hybrid_search_shows_each_sides_query_and_how_the_rankings_fuse(live, small_set, words):
    (small_set / "synonyms.yaml").write_text("opponent: [enemy]\n")
    app = live(question="to hit an ENEMY with armor class 6", pipeline=HYBRID)
    assert "Searched by words as: to hit an ENEMY with armor class 6 opponent  (ENEMY → opponent)" in shown(app)
    assert "Embedded as: to hit an ENEMY with armor class 6" in shown(app)
    assert "hybrid search: 10 by vectors in " in " ".join(one.value for one in app.caption)
    app.segmented_control(key="explore.below").set_value("Fusion").run()
    table = next(one.value for one in app.dataframe if "rrf" in one.value)
    assert list(table["rank"]) == list(range(1, len(table) + 1))
    assert table["title"][0] == "Attack matrix, armor class 6"
    assert table["dense"].notna().any()
    assert table["lexical"].isna().any() or table["dense"].isna().any()


def test_hops_show_what_the_simulated_judge_found_missing_and_what_it_brought(live, figures):
    app = live(query="hit", pipeline='[{"Dense":{"depth":1}},{"MultiHop":{"max_hops":2}}]')
    assert figures(app)["SetR"][0] in ("0.500", "1.000")
    app.segmented_control(key="explore.below").set_value("Hops").run()
    assert "simulated hop judge that knows the labelled titles · ended: " in shown(app)
    assert "Hop 1 · " in shown(app)


def test_searching_by_words_over_all_queries_is_captured_once(live, words):
    app = live(pipeline='[{"Lexical":{"depth":10}},{"TopK":{"k":5}}]')
    app.segmented_control(key="explore.below").set_value("All queries").run()
    sane(app)
    assert "word search: depth 10 of " in " ".join(one.value for one in app.caption)
