"""Three workers at once: a module that makes something once stays on one of them, and no port is given twice."""

import socket

import pytest

from tests.conftest import free_port, together


@pytest.mark.parametrize(
    ("folder", "text", "stays"),
    [("store", '@pytest.fixture(scope="module")', True), ("browser", "", True), ("store", "@pytest.fixture", False)],
)
def test_tests_stay_together_where_their_module_shares_something(tmp_path, folder, text, stays):
    module = tmp_path / folder / "test_one.py"
    module.parent.mkdir()
    module.write_text(text)
    first, second = (together(tmp_path, f"{folder}/test_one.py::test_{name}[a::b]") for name in "xy")
    assert (first == second) is stays


def test_ports_of_two_workers_are_never_the_same_and_below_those_of_outgoing_connections(monkeypatch):
    given = {}
    for worker in ("gw0", "gw1", "gw2"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        given[worker] = {free_port() for _ in range(50)}
    assert not given["gw0"] & given["gw1"] | given["gw1"] & given["gw2"] | given["gw0"] & given["gw2"]
    assert max(max(ports) for ports in given.values()) < 32_768


def test_a_port_that_is_taken_is_not_given(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", free_port()))
        number = taken.getsockname()[1]
        offers = iter([number, number + 1])
        monkeypatch.setattr("tests.conftest.secrets.randbelow", lambda _: next(offers) - first_of(number))
        assert free_port() != number


def first_of(port):
    """The first port of the worker that was given this one."""
    return 12_000 + (port - 12_000) // 2_000 * 2_000
