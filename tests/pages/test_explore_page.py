"""Explore through AppTest: what a person does on the page and what the figures say then."""

import sqlite3

import pytest

ALL_DROPPED = [{"id": "q", "query": "roll", "candidates": []}]


def toggle(app, label):
    return next(widget for widget in app.toggle if widget.label == label)


def button(app, label):
    return next(widget for widget in app.button if widget.label == label)


def sane(app):
    assert not app.exception, [error.value for error in app.exception]
    return app


def dropped(app, data, name="lists.jsonl"):
    app.file_uploader[0].upload(name, data, "application/json").run()
    return sane(app)


def test_a_fresh_page_shows_the_first_example_unfiltered(open_app, figures):
    app = sane(open_app())
    assert figures(app) == {
        "SetP": ("0.067", "as without filter"),
        "SetR": ("1.000", "as without filter"),
        "SetF": ("0.125", "as without filter"),
        "kept": ("15 of 15", "0 dropped"),
        "judged": ("15 of 15", "of the kept chunks"),
    }


def test_query_must_keeps_two_of_combat_1(open_app, figures, words):
    app = open_app()
    toggle(app, "query_must").set_value(True).run()
    assert figures(sane(app))["SetP"] == ("0.500", "was 0.067")
    assert figures(app)["SetF"] == ("0.667", "was 0.125")
    assert figures(app)["kept"] == ("2 of 15", "13 dropped")
    assert "15 in → query_must −13 → 2 kept" in words(app)


def test_adaptive_with_its_defaults_keeps_all_and_cuts_at_a_threshold_of_002(open_app, figures, words):
    app = open_app()
    toggle(app, "adaptive").set_value(True).run()
    assert figures(sane(app))["kept"][0] == "15 of 15"
    app.slider(key="explore.gap_threshold").set_value(0.02).run()
    assert figures(sane(app))["kept"] == ("3 of 15", "12 dropped")
    assert "15 in → adaptive −12 → 3 kept" in words(app)


def test_filters_run_one_after_the_other(open_app, words):
    app = sane(open_app(pipeline='["QueryMust",{"AdaptiveGap":{"min_results":1}},{"TopK":{"k":1}}]'))
    assert "15 in → query_must −13 → adaptive −0 → top-k −1 → 1 kept" in words(app)


def test_the_relative_policy_takes_its_own_default_threshold_and_gives_it_back(open_app):
    app = open_app(pipeline='["AdaptiveGap"]')
    app.segmented_control(key="explore.gap_policy").set_value("relative").run()
    assert sane(app).slider(key="explore.gap_threshold").value == 0.25
    app.segmented_control(key="explore.gap_policy").set_value("first").run()
    assert sane(app).slider(key="explore.gap_threshold").value == 0.1


def test_the_view_is_in_the_address_and_a_link_restores_it(open_app, figures):
    app = open_app()
    toggle(app, "adaptive").set_value(True).run()
    app.slider(key="explore.gap_threshold").set_value(0.02).run()
    address = dict(app.query_params)
    assert address == {
        "set": "recorded-combat", "query": "combat-1", "pipeline": '[{"AdaptiveGap":{"gap_threshold":0.02}}]',
    }  # fmt: skip
    assert figures(sane(open_app(**address)))["kept"] == ("3 of 15", "12 dropped")


def test_reset_switches_all_filters_off_and_keeps_the_query(open_app, figures):
    app = open_app(query="combat-2", pipeline='["QueryMust",{"AdaptiveGap":{"gap_threshold":0.02}}]')
    assert '--pipeline \'["QueryMust",{"AdaptiveGap":{"gap_threshold":0.02}}]\'' in app.sidebar.code[1].value
    button(app, "Reset").click().run()
    assert sane(app).selectbox(key="explore.query_id").value == "combat-2"
    assert figures(app)["kept"][0] == "15 of 15"
    toggle(app, "adaptive").set_value(True).run()
    assert app.slider(key="explore.gap_threshold").value == 0.1


def test_another_eval_set_starts_at_its_first_query_without_complaint(open_app, words, figures):
    app = open_app(query="combat-2")
    app.selectbox(key="explore.eval_set").set_value("adaptive-short").run()
    assert sane(app).selectbox(key="explore.query_id").value == "beholder"
    assert "does not hold" not in words(app)


def test_a_bad_link_is_forgotten_once_the_person_goes_on(open_app, words):
    app = open_app(pipeline='["Nope"]')
    assert "unknown stage" in words(app)
    toggle(app, "query_must").set_value(True).run()
    assert "unknown stage" not in words(sane(app))


def test_next_goes_through_the_eval_set(open_app, figures):
    app = open_app(pipeline='["QueryMust"]')
    button(app, "Next").click().run()
    assert sane(app).selectbox(key="explore.query_id").value == "combat-2"
    assert figures(app)["kept"][0] == "10 of 15"


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"pipeline": "["}, "not valid JSON"),
        ({"pipeline": '["Nope"]'}, "unknown stage"),
        ({"pipeline": '[{"AdaptiveGap":{"gap_threshold":-1}}]'}, "at least 0"),
        ({"pipeline": '[{"AdaptiveGap":{"gap_threshold":NaN}}]'}, "NaN"),
        ({"pipeline": '[{"AdaptiveGap":{"gap_threshold":1e300}}]'}, "at most 1000000"),
        ({"pipeline": '["TopK","QueryMust"]'}, "in this order"),
        ({"pipeline": '["TopK","TopK"]'}, "at most one each"),
        ({"pipeline": '["MinSimilarity"]'}, "expected at most one each of"),
        ({"pipeline": "[" * 3000}, "nested too deeply"),
        ({"pipeline": '{"stages":"x"}'}, "expected a list of stages"),
        ({"query": "x" * 5000}, "expected a link copied from this page"),
        ({"set": "../../etc"}, "there is no eval set"),
        ({"set": "/etc"}, "there is no eval set"),
        ({"set": "dropped-0123"}, "dropped again"),
        ({"query": "![x](http://example.invalid/x.png)"}, "names a query that this eval set does not hold"),
    ],
)
def test_a_hostile_link_gives_a_sentence_and_no_exception(open_app, words, parameters, said):
    assert said in words(sane(open_app(**parameters)))


def test_a_link_that_cannot_be_shown_leaves_a_way_out(open_app, figures):
    app = open_app(set="nowhere")
    assert app.selectbox(key="explore.eval_set").value is None
    button(app, "Open the example queries").click().run()
    assert figures(sane(app))["kept"][0] == "15 of 15"


def test_a_dropped_file_is_measured(open_app, figures, jsonl):
    hits = [{"id": f"c{i}", "distance": d, "relevant": r} for i, d, r in [(1, 0.1, 1), (2, 0.2, 0), (3, 0.5, 0)]]
    app = dropped(open_app(pipeline='["AdaptiveGap"]'), jsonl({"id": "own", "query": "mine", "candidates": hits}))
    assert app.selectbox(key="explore.query_id").value == "own"
    assert figures(app)["kept"] == ("2 of 3", "1 dropped")
    assert figures(app)["SetP"] == ("0.500", "was 0.333")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"query": "a", "candidates": []}\n{"query": ', "line 2"),
        (b'{"query": "a", "candidates": [{"id": "c"}]}', "has no score"),
        (b'{"query": "a", "candidates": [{"distance": NaN}]}', "line 1"),
        (b'{"query": "a", "candidates": [{"distance": 2}, {"distance": 1}]}', "ascending"),
        (b'{"query": "a", "candidates": [{"id": "c", "distance": 1}, {"id": "c", "distance": 2}]}', "unique ids"),
        (b"\xff\xfe\x00", "the file"),
        (b"", "holds no line"),
    ],
)
def test_a_file_that_cannot_be_read_is_said_and_changes_nothing(open_app, words, figures, data, said):
    app = dropped(open_app(), data)
    assert said in words(app)
    assert figures(app)["kept"][0] == "15 of 15"


def test_a_list_without_candidates_is_said(open_app, words, jsonl):
    assert "holds no candidates" in words(dropped(open_app(), jsonl(*ALL_DROPPED)))


def test_queries_without_labels_are_run_and_not_scored(open_app, words, figures):
    app = sane(open_app(set="adaptive-short", query="beholder", pipeline='["AdaptiveGap"]'))
    assert figures(app)["kept"][0] == "4 of 5"
    assert figures(app)["SetF"] == ("–", "not scored")
    assert "run, not scored" in words(app)


def test_a_filter_that_cannot_run_on_a_list_is_said_and_the_list_still_shown(open_app, words, figures, jsonl):
    record = {"query": "a", "metric": "l2", "candidates": [{"distance": 100.0}, {"distance": 250.0}]}
    app = dropped(open_app(pipeline='["AdaptiveGap"]'), jsonl(record))
    assert "default thresholds, made for cosine distances" in words(app)
    assert figures(app)["kept"][0] == "2 of 2"


def test_a_list_of_bm25_scores_is_drawn_and_adaptive_is_refused_in_a_sentence(open_app, words, figures, jsonl):
    record = {"query": "a", "candidates": [{"bm25": 9.5, "relevant": 1}, {"bm25": 3.0}]}
    app = dropped(open_app(pipeline='["AdaptiveGap"]'), jsonl(record))
    assert "needs a distance" in words(app)
    assert figures(app)["kept"][0] == "2 of 2"


def test_an_unreadable_rule_keeps_its_chunk_with_a_warning(open_app, words, figures, jsonl):
    record = {"query": "a", "candidates": [{"id": "odd", "distance": 1, "query_must": {"nonsense": 1}}]}
    app = dropped(open_app(pipeline='["QueryMust"]'), jsonl(record))
    assert figures(app)["kept"][0] == "1 of 1"
    assert "rule not read, chunk kept" in words(app)


def label(app, chunk, word):
    app.session_state["explore.selected"] = chunk
    button(sane(app.run()), word).click().run()
    return sane(app)


def test_a_label_moves_the_figures_stays_in_the_store_and_can_be_taken_back(open_app, figures):
    app = label(open_app(pipeline='["QueryMust"]'), "combat-1-08", "2 relevant")
    assert figures(app)["SetP"] == ("1.000", "was 0.133")
    again = open_app(pipeline='["QueryMust"]')
    assert figures(again)["SetP"][0] == "1.000"
    again.session_state["explore.selected"] = "combat-1-08"
    button(sane(again.run()), "Undo").click().run()
    assert figures(sane(again))["SetP"] == ("0.500", "was 0.067")


def test_unsure_makes_a_chunk_unjudged(open_app, figures):
    app = label(open_app(), "combat-1-08", "unsure")
    assert figures(app)["judged"][0] == "14 of 15"


def test_a_label_of_a_dropped_file_is_found_when_it_is_dropped_again(open_app, figures, jsonl):
    data = jsonl({"id": "own", "query": "mine", "candidates": [{"id": "c1", "distance": 0.1, "text": "words"}]})
    label(dropped(open_app(), data), "c1", "3 answers it")
    assert figures(dropped(open_app(), data))["SetF"][0] == "1.000"


def test_nothing_is_written_before_a_label_is_given(open_app, workspace):
    open_app(pipeline='["QueryMust"]')
    assert not (workspace / "winnow.db").exists()


def test_a_store_that_is_no_database_is_said_and_the_page_still_measures(open_app, workspace, words, figures):
    workspace.mkdir()
    (workspace / "winnow.db").write_bytes(b"this is no database at all, only words" * 40)
    app = sane(open_app())
    assert "not an SQLite database" in words(app)
    assert figures(app)["kept"][0] == "15 of 15"


def test_a_label_that_cannot_be_stored_is_said(open_app, workspace, words, figures):
    app = label(open_app(), "combat-1-08", "2 relevant")
    with sqlite3.connect(workspace / "winnow.db") as other:
        other.execute("CREATE TRIGGER t BEFORE INSERT ON label_event BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
    app = label(app, "combat-1-08", "0 irrelevant")
    assert "The last label was not stored." in words(app)
    assert figures(app)["SetP"][0] == "0.133"  # 2 of 15: the label that was stored before


def test_a_store_that_breaks_while_the_page_is_open_is_said(open_app, workspace, words, figures):
    app = label(open_app(), "combat-1-08", "2 relevant")
    with sqlite3.connect(workspace / "winnow.db") as other:
        other.executescript("DROP VIEW label_current; DROP VIEW label_live; DROP TABLE label_event")
    assert "Labels cannot be read or kept here." in words(sane(app.run()))
    assert figures(app)["kept"][0] == "15 of 15"


def test_the_context_view_estimates_tokens_before_and_after(open_app, figures, jsonl):
    hits = [{"id": "a", "distance": 0.1, "text": "x" * 40}, {"id": "b", "distance": 0.2, "text": "y" * 38}]
    app = dropped(open_app(pipeline='[{"TopK":{"k":1}}]'), jsonl({"query": "q", "candidates": hits}))
    app.segmented_control(key="explore.below").set_value("Context").run()
    shown = figures(sane(app))
    assert shown["Before the filters: 2 chunks"] == ("about 20 tokens", "the whole list")
    assert shown["After the filters: 1 chunk"] == ("about 10 tokens", "50% fewer")


def test_all_queries_says_the_mean_over_how_many(open_app, words):
    app = open_app(pipeline='["QueryMust"]')
    app.segmented_control(key="explore.below").set_value("All queries").run()
    assert "**0.834** mean SetF, macro over 3 of 3 queries (without filter 0.524)" in words(sane(app))
