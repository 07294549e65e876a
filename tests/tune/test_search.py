"""Searches by Optuna against the exact optimum; studies that processes share and resume."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rag_core.errors import Cancelled, InputError
from rag_core.spec import parse_pipeline
from rag_core.store.studies import file_storage
from rag_core.tune.grid import parse_grid, pipeline_at
from rag_core.tune.plane import best_of_plane
from rag_core.tune.search import choice_of, search
from rag_core.tune.tune import values_of
from tests import planted

CUT = parse_pipeline(["AdaptiveGap"])
PLANE = parse_grid("gap_threshold=0.01:0.3:5,distance_offset=0.05:0.6:5", "AdaptiveGap")
CASES = planted.planted_gap(1, 20, noise=0.2)


def test_no_search_beats_the_exact_optimum_and_every_trial_is_what_the_plain_pipeline_gives():
    found = search(CASES, CUT, PLANE, trials=25)
    assert len(found.rows) == 25
    _, best = best_of_plane(CASES, CUT, PLANE)
    assert best.SetF >= max(row.values["SetF"] for row in found.rows) - 1e-12
    row = found.front[0]
    plain = values_of(CASES, pipeline_at(CUT, [(axis, row.settings[axis.name]) for axis in PLANE]), "SetF")
    assert row.values["SetF"] == pytest.approx(sum(plain) / len(plain))


@pytest.mark.slow
def test_the_optimum_is_at_least_200_trials_of_tpe_on_five_seeds():
    for seed in range(5):
        cases = planted.planted_gap(seed, 30, noise=0.3)
        _, best = best_of_plane(cases, CUT, PLANE)
        found = search(cases, CUT, PLANE, trials=200, seed=seed)
        assert best.SetF >= found.front[0].values["SetF"] - 1e-12


def test_the_baseline_stands_in_the_table():
    found = search(CASES, CUT, PLANE, trials=3)
    assert found.table[0] is found.baseline
    assert found.baseline.name.startswith("fixed k ")


def test_a_floor_keeps_what_misses_it_out_of_the_front():
    found = search(CASES, CUT, PLANE, objectives=("SetP",), floor=("SetR", 0.85), trials=30)
    for row in found.front:
        means = values_of(CASES, pipeline_at(CUT, [(axis, row.settings[axis.name]) for axis in PLANE]), "SetR")
        assert sum(means) / len(means) >= 0.85 - 1e-12
    assert not all(row.feasible for row in found.rows)


def test_two_objectives_give_a_front():
    found = search(CASES, CUT, PLANE, objectives=("SetR", "kept_mean"), trials=60)
    pairs = sorted({(row.values["kept_mean"], row.values["SetR"]) for row in found.front})
    assert len(pairs) > 2
    assert [recall for _, recall in pairs] == sorted(recall for _, recall in pairs)


def test_impossible_settings_are_passed_over():
    axes = parse_grid("min_results=1:9:9,max_results=1:9:9", "AdaptiveGap")
    found = search(CASES, CUT, axes, trials=20)
    assert len(found.rows) == 20
    assert all(row.settings["min_results"] <= row.settings["max_results"] for row in found.rows)


def test_a_study_resumes_where_it_stopped_and_refuses_another_task(tmp_path):
    kept = {"storage": file_storage(tmp_path / "studies.db"), "name": "one"}
    first = search(CASES, CUT, PLANE, trials=6, **kept)
    more = search(CASES, CUT, PLANE, trials=10, **kept)
    assert [row.settings for row in more.rows[:6]] == [row.settings for row in first.rows]
    assert len(more.rows) == 10
    with pytest.raises(InputError, match="is of another pipeline, grid or eval set"):
        search(CASES[:5], CUT, PLANE, trials=10, **kept)


SCRIPT = """
import sys
from tests import planted
from pathlib import Path
from rag_core.tune.grid import parse_grid
from rag_core.tune.search import search
from rag_core.spec import parse_pipeline
from rag_core.store.studies import file_storage
axes = parse_grid("gap_threshold=0.01:0.3:5,distance_offset=0.05:0.6:5", "AdaptiveGap")
search(planted.planted_gap(1, 20, noise=0.2), parse_pipeline(["AdaptiveGap"]), axes,
       trials=int(sys.argv[2]), storage=file_storage(Path(sys.argv[1])), name="shared")
"""


def started(storage, trials):
    root = str(Path(__file__).parents[2])
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(storage), str(trials)],
        cwd=root, env={**os.environ, "PYTHONPATH": root},
    )  # fmt: skip


@pytest.mark.slow
def test_two_processes_share_a_study_and_a_killed_one_is_finished_by_another(tmp_path):
    storage = tmp_path / "studies.db"
    search(CASES, CUT, PLANE, trials=1, storage=file_storage(storage), name="shared")
    killed = started(storage, 100_000)
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and len(finished(storage)) < 10:
        time.sleep(0.5)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    done = len(finished(storage))
    assert done >= 10
    both = [started(storage, done + 30) for _ in range(2)]
    assert [one.wait(timeout=200) for one in both] == [0, 0]
    assert done + 30 <= len(finished(storage)) <= done + 32


def finished(storage):
    import optuna

    study = optuna.load_study(study_name="shared", storage=f"sqlite:///{storage}")
    return study.get_trials(states=(optuna.trial.TrialState.COMPLETE,))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"objectives": ("nDCG",)}, "objectives are"),
        ({"trials": 0}, "trials is 0"),
    ],
)
def test_what_cannot_be_sought_is_refused(more, says):
    with pytest.raises(InputError, match=says):
        search(CASES, CUT, **{"axes": PLANE, **more})


def test_a_cancelled_search_gives_what_is_done():
    def stop(done, total):
        if done == 4:
            raise Cancelled("enough")

    assert len(search(CASES, CUT, PLANE, trials=50, progress=stop).rows) == 4


def test_a_row_as_a_choice_has_the_values_of_its_pipelines():
    found = search(CASES, CUT, PLANE, objectives=("SetP",), floor=("SetR", 0.5), trials=10)
    choice = choice_of(found, found.best, CASES, CUT, PLANE)
    for pipeline, value in ((choice.pipeline, choice.value), (choice.baseline, choice.baseline_value)):
        plain = values_of(CASES, pipeline, "SetP")
        assert value == pytest.approx(sum(plain) / len(plain))
    assert choice.value == found.best.values["SetP"]
    assert choice.baseline_k == found.baseline.settings["k"]


def test_a_choice_of_words_and_a_whole_range_are_sought():
    axes = parse_grid("gap_policy=largest|first|relative,max_results=3:9:7,gap_threshold=0.1", "AdaptiveGap")
    found = search(CASES, CUT, axes, trials=30)
    assert {row.settings["gap_policy"] for row in found.rows} == {"largest", "first", "relative"}
    assert all(row.settings["max_results"] in range(3, 10) for row in found.rows)
