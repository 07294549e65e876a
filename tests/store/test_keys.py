import pytest

from rag_core.store.keys import chunk_key, text_hash


def test_hash_of_a_known_text_never_changes():
    assert text_hash("Beholder AC 18") == "4ae89d976ccbe1dd0b5c315dc1d8cd54b0147f8b96415345a04f4053e832ff0a"


@pytest.mark.parametrize("same", ["  beholder ac 18\n", "Beholder\t\u00a0AC  18", "ＢＥＨＯＬＤＥＲ AC 18"])
def test_white_space_case_and_width_do_not_make_another_text(same):
    assert text_hash(same) == text_hash("Beholder AC 18")


def test_other_words_make_another_text():
    assert text_hash("AC 17") != text_hash("AC 18")


@pytest.mark.parametrize("empty", ["", " \n\u2028 "])
def test_no_text_has_no_hash(empty):
    assert text_hash(empty) == ""


def test_half_a_surrogate_pair_can_be_hashed():
    assert len(text_hash("\ud800")) == 64


def test_the_text_decides_where_it_is_known_else_the_id():
    assert chunk_key("c1", "ab") == chunk_key("c2", "ab") == "text:ab"
    assert chunk_key("c1", "") == "id:c1"
