import pytest

from rag_core.entities import TeamFilter, load_structure


@pytest.fixture(scope="session")
def demo():
    return load_structure()


@pytest.fixture(scope="session")
def demo_filter(demo):
    return TeamFilter(demo)


@pytest.fixture(scope="session")
def small():
    """A filter over a structure given as data, with the shared words at their defaults."""

    def build(entities, **top):
        return TeamFilter({"entities": entities, **top})

    return build
