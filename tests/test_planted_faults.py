"""Faults planted by hand in filters, measures and the store: for each, the tests of that part must fail.

Every fault is a text of the source and what replaces it; it is planted in a copy, and the copy's tests run there.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

FAULTS = [
    # (file, what stands there, what replaces it, tests that must notice)
    ("filters/cut.py", "enumerate(gaps[1:], 1)", "enumerate(gaps[1:], 2)", "filters/test_cut.py"),
    ("filters/cut.py", "largest[last] >= threshold", "largest[last] > threshold", "filters/test_cut.py"),
    ("filters/cut.py", "if gap > top:", "if gap >= top:", "filters/test_cut.py"),
    ("filters/cut.py", "min(max(ruled, rule.min_results), looked)", "min(ruled, looked)", "filters/test_cut.py"),
    ("filters/cutoff.py", "if position > self.k else None", "if position >= self.k else None", "test_stage.py"),
    ("filters/cutoff.py", "self.min_relevance - 1e-9", "self.min_relevance + 1e-9", "test_stage.py filters"),
    ("filters/query_must.py", "and not answer.satisfied else None", "else None", "filters/test_query_must.py"),
    ("filters/variety.py", "text.numbers == other.numbers", "True", "filters/test_variety.py"),
    ("filters/entity.py", 'self.on_none == "keep")', 'self.on_none != "keep")', "filters/test_entity_filter.py"),
    ("rules/match.py", "all([part.satisfied", "any([part.satisfied", "rules/test_match.py"),
    ("rules/match.py", "among=part.among, named=", "among=part.among, named=None and ", "rules/test_match.py"),
    ("rules/slots.py", 'policy = "strict" if place.kind', 'policy = "named" if place.kind', "rules/test_slots.py"),
    ("rules/slots.py", "< BOUND * uses", "> BOUND * uses", "rules/test_slots.py"),
    ("rules/match.py", "MAX_SUMS = 4_000", "MAX_SUMS = 0", "rules"),
    ("retrieve/requery.py", "if hit.chunk.id not in self.known:", "if True:", "retrieve/test_requery.py"),
    ("stage.py", "if reason is None)", "if reason is not None)", "test_stage.py"),
    (
        "measure/measures.py",
        "beta * beta * total + kept",
        "beta * total + kept",
        "measure/test_scores.py measure/test_measures.py",
    ),
    (
        "measure/measures.py",
        "sum(judged.relevant[:k]) / k",
        "sum(judged.relevant[:k]) / max(1, len(judged.relevant[:k]))",
        "measure/test_scores.py measure/test_measures.py",
    ),
    (
        "measure/measures.py",
        "_dcg(judged.ideal[:k])",
        "_dcg(sorted(judged.grades, reverse=True)[:k])",
        "measure/test_scores.py measure/test_measures.py",
    ),
    ("measure/scores.py", "found + more, kept, reach", "found + more, kept + more, reach", "measure/test_scores.py"),
    ("measure/scores.py", "scored = not unjudged and total > 0", "scored = not unjudged", "measure/test_scores.py"),
    ("measure/significance.py", "(len(p_values) - done) * p_values", "p_values", "measure/test_significance.py"),
    ("store/labels.py", "if there[name] != row[name]]", "if False]", "store"),
    ("store/labels.py", "0 if largest is None else int(largest) + 1", "0", "store"),
    ("store/migrations.py", "position DESC", "position ASC", "store"),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the product in which faults may be planted."""
    place = tmp_path_factory.mktemp("copy")
    for name in ("rag_core", "tests", "eval_sets", "pages", "docs", "benchmarks"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (*ROOT.glob("*.toml"), *ROOT.glob("*.py"), *ROOT.glob("*.md")):
        shutil.copy(path, place)
    return place


def run(place, tests):
    """Run some tests of the copy until the first that fails; the finished process."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly",
               "-m", "not slow and not browser", *(f"tests/{name}" for name in tests.split())]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault[0]}: {fault[2]}")
def test_a_planted_fault_is_noticed(copy, fault):
    name, stands, replaces, tests = fault
    path = copy / "rag_core" / name
    source = path.read_text(encoding="utf-8")
    assert source.count(stands) == 1, "the fault's place has changed: plant it anew"
    path.write_text(source.replace(stands, replaces), encoding="utf-8")
    try:
        done = run(copy, tests)
    finally:
        path.write_text(source, encoding="utf-8")
    assert done.returncode == 1, f"no test of {tests} noticed:\n{done.stdout[-2000:]}{done.stderr[-500:]}"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_copy_without_a_fault_passes(copy):
    every = sorted({name for fault in FAULTS for name in fault[3].split()})
    done = run(copy, " ".join(every))
    assert done.returncode == 0, done.stdout[-3000:]
