"""Tests against other people's libraries; each is skipped where its library is not installed."""

from pathlib import Path

import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "peers: needs the libraries of requirements-peers.txt")


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(item.path).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.peers)
