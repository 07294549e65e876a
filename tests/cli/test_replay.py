import json
import subprocess
import sys
from pathlib import Path

import pytest

from rag_core.cli import main
from rag_core.eval_sets.reading import SHIPPED

COMBAT = str(SHIPPED / "recorded-combat" / "lists.jsonl")
SHORT = str(SHIPPED / "adaptive-short" / "lists.jsonl")
LINE = {"id": "q1", "query": "x", "candidates": [{"id": "a", "distance": 0.1, "relevant": 1}]}


@pytest.fixture
def replayed(capsysbinary):
    def run(*arguments):
        assert main(["replay", *arguments, "--json"]) == 0
        return json.loads(capsysbinary.readouterr().out)

    return run


@pytest.fixture
def refused(capsys):
    def run(*arguments):
        code = main(["replay", *arguments])
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        return code, err

    return run


def table(document, position=0):
    return {
        query["id"]: tuple(round(query[name], 3) for name in ("SetP", "SetR", "SetF"))
        for query in document["pipelines"][position]["queries"]
    }


def test_without_a_filter_the_recorded_lists_have_the_stated_figures(replayed):
    assert table(replayed(COMBAT)) == {
        "combat-1": (0.067, 1.0, 0.125),
        "combat-2": (0.533, 1.0, 0.696),
        "combat-3": (0.6, 1.0, 0.75),
    }


def test_query_must_in_token_mode_gives_the_stated_figures(replayed):
    assert table(replayed(COMBAT, "--pipeline", "query-must")) == {
        "combat-1": (0.5, 1.0, 0.667),
        "combat-2": (0.8, 1.0, 0.889),
        "combat-3": (0.9, 1.0, 0.947),
    }


def test_query_must_in_substring_mode_loses_one_of_combat_3(replayed):
    document = replayed(COMBAT, "--pipeline", '[{"QueryMust": {"mode": "substring"}}]')
    assert table(document) == {
        "combat-1": (0.5, 1.0, 0.667),
        "combat-2": (0.8, 1.0, 0.889),
        "combat-3": (0.889, 0.889, 0.889),
    }


@pytest.mark.parametrize(
    ("mode", "kept"),
    [
        (
            "token",
            {"combat-1": [3, 8], "combat-2": [*range(1, 8), 9, 11, 12], "combat-3": [1, 2, 3, 4, 6, 8, 10, 12, 14, 15]},
        ),
        (
            "substring",
            {"combat-1": [3, 8], "combat-2": [*range(1, 8), 9, 11, 12], "combat-3": [1, 2, 3, 4, 6, 8, 10, 12, 15]},
        ),
    ],
)
def test_query_must_keeps_the_stated_ranks(replayed, mode, kept):
    document = replayed(COMBAT, "--pipeline", json.dumps([{"QueryMust": {"mode": mode}}]))
    queries = document["pipelines"][0]["queries"]
    assert {query["id"]: [hit["rank"] for hit in query["kept"]] for query in queries} == kept


def test_adaptive_with_its_defaults_keeps_15_of_15_three_times(replayed):
    queries = replayed(COMBAT, "--pipeline", "adaptive-default")["pipelines"][0]["queries"]
    assert [len(query["kept"]) for query in queries] == [15, 15, 15]


def test_the_short_option_moves_the_gap_threshold(replayed):
    document = replayed(COMBAT, "--pipeline", "adaptive-default", "--gap-threshold", "0.02", "-t", "combat-1")
    (query,) = document["pipelines"][0]["queries"]
    assert [hit["rank"] for hit in query["kept"]] == [1, 2, 3]
    assert query["dropped"][0]["reason"].startswith("distance 0.7419, cut after rank 3: gap 0.0266 ≥ 0.0200")


@pytest.mark.parametrize(
    ("pipeline", "options", "stage", "setting"),
    [
        ("query-must-refill", ("-k", "7"), "Requery", {"k": 7}),
        ("fixed-15", ("-k", "7"), "TopK", {"k": 7}),
        ("adaptive-default", ("--max-chunks", "7"), "AdaptiveGap", {"max_results": 7}),
        ("fixed-15", ("--max-hops", "2"), "MultiHop", {"max_hops": 2}),
    ],
)
def test_a_short_option_is_laid_over_the_stage_that_has_it(replayed, pipeline, options, stage, setting):
    spec = replayed(COMBAT, "-p", pipeline, *options)["pipelines"][0]["spec"]
    settings = {name: values for entry in spec for name, values in entry.items()}
    assert settings[stage].items() >= setting.items()


def test_the_seven_short_lists(replayed):
    queries = replayed(SHORT, "--pipeline", "adaptive-default")["pipelines"][0]["queries"]
    assert {query["id"]: len(query["kept"]) for query in queries} == {
        "beholder": 4,
        "dragons-10": 8,
        "one-exceptional": 2,
        "nothing-relevant": 3,
        "dragons-5": 5,
        "many-gaps": 4,
        "owlbear": 2,
    }


def test_owlbear_adaptive_against_fixed_k_5(replayed):
    document = replayed(SHORT, "-p", '[{"TopK": {"k": 5}}]', "-p", "adaptive-default", "-t", "owlbear")
    assert table(document, 0)["owlbear"] == (0.4, 1.0, 0.571)
    assert table(document, 1)["owlbear"] == (1.0, 1.0, 1.0)


def test_kept_and_dropped_hold_every_candidate_once_and_every_drop_says_why(replayed):
    for query in replayed(COMBAT, "--pipeline", "query-must")["pipelines"][0]["queries"]:
        assert sorted(hit["rank"] for hit in query["kept"] + query["dropped"]) == list(range(1, 16))
        assert all(drop["reason"] and drop["stage"] == "QueryMust" and drop["would_keep"] for drop in query["dropped"])


def test_a_repeated_name_becomes_name_2_and_is_compared_with_the_first(replayed):
    document = replayed(COMBAT, "-p", "query-must", "-p", "query-must")
    assert [pipeline["name"] for pipeline in document["pipelines"]] == ["query-must", "query-must#2"]
    (row,) = document["comparison"]
    assert (row["a"], row["b"], row["delta"], row["ties"]) == ("query-must", "query-must#2", 0.0, 3)


def test_a_source_is_skipped_with_a_note_so_that_one_spec_serves_live_and_recorded(replayed):
    document = replayed(COMBAT, "-p", '[{"Dense": {"depth": 200}}, {"TopK": {"k": 3}}]', "-t", "combat-1")
    first = document["pipelines"][0]["queries"][0]["stages"][0]
    assert (first["stage"], first["in"], first["out"]) == ("Dense", 15, 15)
    assert "recorded list" in first["skipped"]


def test_queries_without_labels_are_run_not_scored_and_shown_as_null(replayed):
    document = replayed(SHORT, "-t", "beholder")
    query = document["pipelines"][0]["queries"][0]
    assert (query["SetF"], query["scored"]) == (None, False)
    assert document["pipelines"][0]["means"]["queries_scored"] == 0
    assert document["pipelines"][0]["means"]["SetF"] is None


def test_labels_beside_the_lists_say_how_many_relevant_there_are(replayed, tmp_path):
    (tmp_path / "lists.jsonl").write_text(json.dumps(LINE) + "\n")
    (tmp_path / "qrels.txt").write_text("q1 0 a 1\nq1 0 missing 1\n")
    document = replayed(str(tmp_path / "lists.jsonl"), "--qrels", str(tmp_path / "qrels.txt"))
    assert document["pipelines"][0]["queries"][0]["SetR"] == 0.5


def test_an_unreadable_rule_passes_its_chunk_with_a_warning_that_is_counted(replayed, tmp_path):
    record = {"query": "x", "candidates": [{"id": "a", "distance": 0.1, "query_must": {"contain_one_off": [["y"]]}}]}
    (tmp_path / "lists.jsonl").write_text(json.dumps(record) + "\n")
    (query,) = replayed(str(tmp_path / "lists.jsonl"), "-p", "query-must")["pipelines"][0]["queries"]
    assert [hit["id"] for hit in query["kept"]] == ["a"]
    assert [warning["id"] for warning in query["warnings"]] == ["a"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"query": "x", "candidates": []}\n{broken\n', "line 2 is not valid JSON"),
        ('{"query": "x", "candidates": [{"id": "a"}]}\n', "has no score"),
        ('{"query": "x", "candidates": [{"distance": NaN}]}\n', "NaN"),
        ('{"query": "x", "candidates": [{"distance": 2}, {"distance": 1}]}\n', "expected ascending distances"),
        ('{"query": "x", "candidates": [{"id": "a", "distance": 1}, {"id": "a", "distance": 1}]}\n', "again"),
    ],
)
def test_a_bad_file_is_one_sentence_and_exit_code_2(refused, tmp_path, content, message):
    path = tmp_path / "lists.jsonl"
    path.write_text(content)
    code, sentence = refused(str(path))
    assert code == 2
    assert message in sentence


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-file.jsonl"], "no-such-file.jsonl is not there"),
        ([COMBAT, "-p", '["Nope"]'], "unknown stage 'Nope'"),
        ([COMBAT, "-p", '[{"TopK": {"kk": 3}}]'], "unknown setting 'kk'"),
        ([COMBAT, "-p", "adaptive-default", "--gap-threshold", "-1"], "gap_threshold is -1"),
        ([COMBAT, "-p", "unfiltered", "--gap-threshold", "0.1"], "no stage AdaptiveGap"),
        ([COMBAT, "-p", "unfiltered", "--max-chunks", "5"], "no stage AdaptiveGap"),
        ([COMBAT, "-p", "adaptive-default", "-k", "5"], "no stage TopK or Requery"),
        ([COMBAT, "-t", "nope"], "no query 'nope'"),
        ([COMBAT, "--measure", "nDCGG"], "nDCGG"),
        ([COMBAT, "--no-such-option"], "--no-such-option"),
        ([], "Missing argument"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(refused, arguments, message):
    code, sentence = refused(*arguments)
    assert code == 2
    assert message in sentence


def test_a_200_mb_file_is_refused(refused, tmp_path):
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.truncate(200_000_000)
    code, sentence = refused(str(path))
    assert (code, "200,000,000 bytes" in sentence) == (2, True)


def test_debug_prints_the_trace_on_stderr_and_leaves_stdout_alone(capsysbinary):
    assert main(["replay", SHORT, "-p", "adaptive-default", "-t", "beholder", "--debug", "--json"]) == 0
    out, err = capsysbinary.readouterr()
    assert json.loads(out)["version"] == 1
    assert "chosen gap 0.1500 after position 4, 4 stay" in err.decode()


def test_as_a_process_the_exit_code_and_the_streams_hold():
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-m", "rag_core", "replay", "nothing.jsonl"], cwd=root, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "winnow: nothing.jsonl is not there, expected a file\n"


def test_pairs_are_compared_in_the_measures_that_were_asked_for(replayed):
    two = ["-p", '[{"TopK": {"k": 5}}]', "-p", '["QueryMust", {"TopK": {"k": 5}}]']
    assert [row["measure"] for row in replayed(COMBAT, *two)["comparison"]] == ["SetF"]
    found = replayed(COMBAT, *two, "-m", "nDCG@10", "-m", "P@5")
    first, second = found["pipelines"]
    assert [row["measure"] for row in found["comparison"]] == ["nDCG@10", "P@5"]
    for row in found["comparison"]:
        assert row["delta"] == pytest.approx(second["means"][row["measure"]] - first["means"][row["measure"]])
        assert (row["p"], row["verdict"]) == (None, "too few questions")


def test_a_pipeline_without_a_name_is_called_by_its_stages(replayed):
    specs = [
        '["Dense", "QueryMust", {"TopK": {"k": 5}}]',
        '[{"AdaptiveGap": {"gap_threshold": 0.2}}]',
        '[{"TopK": {}}]',
    ]
    found = replayed(COMBAT, *[part for spec in [*specs, specs[2]] for part in ("-p", spec)])
    names = ["Dense > QueryMust > TopK(5)", "AdaptiveGap(gap_threshold=0.2)", "TopK(15)", "TopK(15)#2"]
    assert [one["name"] for one in found["pipelines"]] == names
