"""Three workers at once: a module that makes something once stays on one of them, and no port is given twice."""

import socket

from tests.conftest import free_port, group


def test_tests_stay_together_where_their_module_shares_something(tmp_path):
    texts = {
        "store/test_made_once.py": '@pytest.fixture(scope="module")',
        "store/test_alone.py": "@pytest.fixture",
        "browser/test_own.py": "",
        "browser/test_one.py": "def test_it(page, app):",
        "browser/test_two.py": "def test_it_too(app, page):",
    }
    groups = []
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
        groups.append(group(tmp_path / name))
    assert groups[1] == ""
    assert groups[3] == groups[4]
    assert len({*groups[:4]}) == 4


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
