"""Tests against other people's libraries; each is skipped where its library is not installed."""

import socket
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(item.path).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.peers)


@pytest.fixture
def free_port():
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
