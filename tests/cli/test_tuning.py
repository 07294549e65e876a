import csv
import json

import pyarrow.parquet
import pytest

from rag_core.cli import main
from rag_core.eval_sets.reading import SHIPPED
from rag_core.records import dump_lists
from rag_core.spec import parse_pipeline, read_pipeline
from tests import planted

COMBAT = str(SHIPPED / "recorded-combat" / "lists.jsonl")


@pytest.fixture
def answered(capsysbinary, tmp_path, monkeypatch):
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path / "workspace"))

    def run(*arguments):
        assert main([*arguments, "--json"]) == 0
        return json.loads(capsysbinary.readouterr().out)

    return run


@pytest.fixture
def refused(capsys):
    def run(*arguments):
        code = main(list(arguments))
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1
        return code, err

    return run


@pytest.fixture
def lists(tmp_path):
    path = tmp_path / "lists.jsonl"
    path.write_text("\n".join(dump_lists(planted.planted_gap(1, 40, noise=0.1))))
    return str(path)


def replayed(answered, file, spec):
    means = answered("replay", file, "--pipeline", json.dumps(spec))["pipelines"][0]["means"]
    return [means[name] for name in ("SetP", "SetR", "SetF")]


def test_rows_are_in_product_order_and_equal_to_replay(answered):
    found = answered(
        "sweep", COMBAT, "--stage", "AdaptiveGap", "--grid", "gap_threshold=0.01:0.03:3,distance_offset=0.05|0.4"
    )
    assert found["grid"] == {"gap_threshold": [0.01, 0.02, 0.03], "distance_offset": [0.05, 0.4]}
    assert [row["gap_threshold"] for row in found["rows"]] == [0.01, 0.01, 0.02, 0.02, 0.03, 0.03]
    for row in found["rows"]:
        spec = [{"AdaptiveGap": {name: row[name] for name in ("gap_threshold", "distance_offset")}}]
        assert [row[name] for name in ("SetP", "SetR", "SetF")] == pytest.approx(replayed(answered, COMBAT, spec))


def test_best_is_the_first_row_with_the_highest_f_and_the_optimum_is_at_least_that(answered):
    found = answered("sweep", COMBAT, "--grid", "gap_threshold=0.01:0.3:60,distance_offset=0.05:0.6:40")
    assert len(found["rows"]) == 2400
    assert found["best"] == max(found["rows"], key=lambda row: round(row["SetF"], 12))
    assert found["optimum"]["SetF"] >= found["best"]["SetF"] - 1e-12
    assert found["optimum"]["gap_policy"] == "largest"


def test_the_rules_in_front_are_those_of_the_pipeline(answered):
    found = answered("sweep", COMBAT, "--stage", "TopK", "--grid", "k=15", "--pipeline", "query-must")
    assert found["rows"][0]["SetF"] == pytest.approx((2 / 3 + 16 / 18 + 18 / 19) / 3)


def test_a_stage_and_its_mode_vary_as_variants(answered):
    found = answered("sweep", COMBAT, "--grid", "QueryMust=on|off,gap_threshold=0.1", "--pipeline", "query-must")
    assert [row["kept_mean"] for row in found["rows"]] == [(2 + 10 + 10) / 3, 15]


def test_csv_and_parquet_hold_the_rows(answered, tmp_path):
    out = [tmp_path / "rows.csv", tmp_path / "rows.parquet"]
    found = answered(
        "sweep",
        COMBAT,
        "--grid",
        "gap_policy=largest|first,gap_threshold=0.02|0.1",
        "--csv",
        str(out[0]),
        "--parquet",
        str(out[1]),
    )
    with out[0].open(newline="") as file:
        assert [float(row["SetF"]) for row in csv.DictReader(file)] == [row["SetF"] for row in found["rows"]]
    assert pyarrow.parquet.read_table(out[1]).to_pylist() == found["rows"]


def test_impossible_settings_are_left_out_and_counted(answered):
    found = answered("sweep", COMBAT, "--grid", "min_results=2|9,max_results=5|15")
    assert [(row["min_results"], row["max_results"]) for row in found["rows"]] == [(2, 5), (2, 15), (9, 15)]
    assert found["left_out"] == 1


def test_tune_writes_a_pipeline_that_gives_the_dev_figure(answered, lists, tmp_path):
    out = tmp_path / "tuned.yaml"
    found = answered("tune", lists, "--objective", "SetF", "--folds", "3", "--holdout", "0.25", "--out", str(out))
    assert len(found["queries"]["test"]) == 10
    pipeline = read_pipeline(str(out))
    assert pipeline.stages[0].gap_threshold == found["chosen"]["gap_threshold"]
    arguments = [part for id_ in found["queries"]["dev"] for part in ("-t", id_)]
    means = answered("replay", lists, "--pipeline", str(out), *arguments)["pipelines"][0]["means"]
    assert means["SetF"] == pytest.approx(found["dev"]["SetF"])


def test_a_learned_cut_is_trained_and_saved(answered, lists, tmp_path):
    out = tmp_path / "learned.json"
    found = answered("tune", lists, "--stage", "LearnedCut", "--pipeline", '["QueryMust"]', "--out", str(out))
    assert [stage.name for stage in read_pipeline(str(out)).stages] == ["QueryMust", "LearnedCut"]
    assert found["folds"]["value"] > found["folds"]["baseline_value"]
    means = answered("replay", lists, "--pipeline", str(out))["pipelines"][0]["means"]
    assert means["SetF"] > 0.7


def test_tune_counts_every_look_at_the_held_out_queries(answered, lists):
    more = ([], [], ["--objective", "SetP"])  # looking again at the same is free
    looks = [answered("tune", lists, "--folds", "0", *one)["test"]["looks"] for one in more]
    assert looks == [1, 1, 2]


def test_tune_names_its_baseline_and_says_it_in_words(answered, lists):
    found = answered("tune", lists, "--stage", "TopK", "--constraint", "SetR>=0.5")
    assert found["baseline"]["name"] == f"fixed k {found['chosen']['k']}"
    assert found["sentence"].startswith("On 12 held-out queries SetF")
    assert found["test"]["comparison"][0]["delta"] == 0


def test_a_promised_recall_is_calibrated_on_dev_and_judged_on_the_held_out_queries(answered, lists, tmp_path):
    out = tmp_path / "promised.yaml"
    found = answered("tune", lists, "--method", "conformal", "--alpha", "0.2", "--knob", "k", "--out", str(out))
    assert found["method"] == "conformal"
    assert found["pipeline"]["stages"][0]["TopK"]["k"] == found["value"]
    assert found["calibration"]["miss_share"] <= 0.2
    assert found["test"]["looks"] == 1
    assert found["assumption"] in found["sentence"]
    arguments = [part for id_ in found["queries"]["test"] for part in ("-t", id_)]
    means = answered("replay", lists, "--pipeline", str(out), *arguments)["pipelines"][0]["means"]
    assert 1 - means["SetR"] == pytest.approx(found["test"]["miss_share"])


def test_what_cannot_be_promised_is_said_and_looks_at_nothing(answered, lists, tmp_path):
    found = answered("tune", lists, "--method", "conformal", "--alpha", "0.01", "--knob", "k")
    assert (found["value"], found["pipeline"], found["test"]) == (None, None, None)
    assert found["queries_needed"] == 99
    assert not (tmp_path / "workspace" / "looks.jsonl").exists()


def test_method_learned_is_the_trained_stage(answered, lists):
    found = answered("tune", lists, "--method", "learned")
    assert "parameters" in found["chosen"]
    assert found["test"]["looks"] == 1


def test_a_search_holds_the_baseline_and_its_best_is_judged(answered, lists, tmp_path):
    out = tmp_path / "found.yaml"
    asked = ["tune", lists, "--method", "search", "--objective", "SetP,kept_tokens", "--constraint", "SetR>=0.6"]
    found = answered(*asked, "--trials", "25", "--out", str(out))
    table = found["search"]["table"]
    assert table[0]["name"] == found["baseline"]["name"]
    assert found["search"]["trials"] == 25
    best = max(row["SetP"] for row in table[1:])
    assert found["dev"]["SetP"] == pytest.approx(best)
    assert read_pipeline(str(out)).stages[0].gap_threshold == found["chosen"]["gap_threshold"]


def test_a_named_study_goes_on_where_it_stopped(answered, lists, tmp_path):
    asked = ["tune", lists, "--method", "search", "--study", "mine", "--trials"]
    assert answered(*asked, "5")["search"]["trials"] == 5
    assert answered(*asked, "8")["search"]["trials"] == 8
    assert (tmp_path / "workspace" / "studies.db").exists()


def test_tune_says_what_it_chose_without_json(capsys, lists, tmp_path, monkeypatch):
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path))
    assert main(["tune", lists]) == 0
    assert "chosen on 28 dev queries: gap_threshold" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["sweep", "--stage", "TopK"], "expected one of them"),
        (["sweep", COMBAT, "--grid", "gap=1"], "unknown setting 'gap'"),
        (["sweep", COMBAT, "--stage", "QueryMust"], "no default grid for QueryMust"),
        (["sweep", COMBAT, "--grid", "QueryMust=on|off"], "does not hold"),
        (["sweep", COMBAT, "--grid", "min_results=9,max_results=3"], "no possible setting"),
        (["sweep", "missing.jsonl"], "missing.jsonl is not there"),
        (["tune", COMBAT, "--objective", "nDCG"], "objective is 'nDCG'"),
        (["tune", COMBAT, "--constraint", "SetR=1"], "constraint is"),
        (["tune", COMBAT, "--holdout", "1.5"], "test_share is 1.5"),
        (["tune", COMBAT, "--method", "luck"], "method is 'luck'"),
        (["tune", COMBAT, "--alpha", "0.1"], "--alpha belongs to --method conformal"),
        (["tune", COMBAT, "--method", "search", "--objective", "nDCG"], "objectives are"),
        (["tune", COMBAT, "--method", "search", "--constraint", "SetP>=1", "--trials", "3"], "none of 3 trials"),
        (["tune", COMBAT, "--method", "conformal", "--knob", "depth"], "knob is 'depth'"),
        (["tune", COMBAT, "--method", "conformal", "--alpha", "0.1", "--out", "x.yaml"], "no pipeline to write"),
        (["tune", COMBAT, "--stage", "LearnedCut", "--grid", "min_results=1|2"], "trained, not swept"),
    ],
)
def test_wrong_usage_is_one_sentence_and_code_2(refused, arguments, says):
    code, err = refused(*arguments)
    assert code == 2
    assert says in err


def test_a_file_of_scores_is_tuned_by_fractions_of_its_span_and_what_is_written_is_said(
    answered, capsysbinary, tmp_path
):
    """The default cut was made for cosine distances; where nothing beats the best fixed k, that is what is taken."""
    rows = [
        {
            "id": f"q{q}", "query": f"question {q} about thing {q}", "labels": {f"c{q}-0": 2, f"c{q}-1": q % 2},
            "candidates": [{"id": f"c{q}-{at}", "text": f"{q} {at}", "score": 12 - at + q / 100} for at in range(9)],
        }
        for q in range(15)
    ]  # fmt: skip
    (tmp_path / "scores.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = answered("tune", str(tmp_path / "scores.jsonl"), "--out", str(tmp_path / "out.yaml"))
    assert set(found["chosen"]) == {"gap_threshold", "relative_offset"}
    assert found["dev"]["SetF"] >= found["dev"]["baseline"] - 1e-9
    assert read_pipeline(str(tmp_path / "out.yaml")).stages == parse_pipeline(found["taken"]).stages
    grid = ["--grid", "gap_threshold=0.5:3:6,distance_offset=0.5:5:6"]
    assert answered("tune", str(tmp_path / "scores.jsonl"), *grid)["chosen"]
    answered("init", "scored", "--from", str(tmp_path / "scores.jsonl"))
    best = answered("tune", "--project", "scored", "--method", "best")
    assert best["dev"]["SetF"] >= best["dev"]["baseline"] - 1e-9
    assert main(["tune", str(tmp_path / "scores.jsonl"), "--out", str(tmp_path / "out.yaml")]) == 0
    told = capsysbinary.readouterr().out
    assert b"taken: " in told
    assert b"out.yaml" in told


def test_what_holdout_draws_of_a_project_are_dev_questions_alone(answered, lists):
    answered("init", "own", "--from", lists)
    sides = answered("held-out", "show", "own")
    found = answered(
        "tune", "--project", "own", "--holdout", "0.4", "--grid", "gap_threshold=0.01:0.3:5", "--folds", "0"
    )
    assert {*found["queries"]["dev"], *found["queries"]["test"]} <= set(sides["dev"])
    assert found["queries"]["test"]
    assert answered("held-out", "show", "own")["looks"] == sides["looks"]
