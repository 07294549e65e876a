from tests.ready_made import shipped_collections  # noqa: F401
