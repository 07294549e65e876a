"""Benchmarks are run by hand; that each can be started at all is seen on every run of the tests."""

import importlib
from pathlib import Path

import pytest

NAMES = sorted(path.stem for path in (Path(__file__).resolve().parents[1] / "benchmarks").glob("[a-z]*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_finds_what_it_imports_and_says_what_it_measures(name):
    module = importlib.import_module(f"benchmarks.{name}")
    assert module.__doc__
    assert callable(module.main)
