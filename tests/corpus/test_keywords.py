"""Keywords taken from headers: which are long enough, and that an ingest always takes them."""

from rag_core.corpus.names import header_keywords
from rag_core.types import Chunk


def test_headers_of_four_characters_and_more_each_once_in_order():
    titles = ["Lethal 5+", "Hot", "Accurate x", "TEAM - ABILITY", "accurate x", "Lethal 5+", "  Seek  ", "----", ""]
    found = header_keywords(Chunk(str(at), title=title) for at, title in enumerate(titles))
    assert found == ("Accurate x", "accurate x", "Lethal 5+", "Seek", "TEAM - ABILITY")


def test_the_header_is_the_keyword_where_the_title_is_another():
    assert header_keywords([Chunk("a", title="file.md", metadata={"header": "Accurate x"})]) == ("Accurate x",)
