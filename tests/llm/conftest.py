"""The group of tests that need the small-model server of scripts/llm_server.py."""


def pytest_configure(config):
    """Name the group's mark."""
    config.addinivalue_line("markers", "llm_server: needs the packages of scripts/llm_server.py (make llm-server)")
