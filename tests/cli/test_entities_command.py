import json

import pytest

from rag_core.cli.entities import entities
from rag_core.cli.options import Common
from rag_core.errors import InputError

JSON, TEXT = Common(None, True), Common(None, False)


@pytest.fixture
def answered(capsysbinary):
    def run(query=None, **options):
        settings = {
            "structure": None,
            "budget": None,
            "threshold": 80.0,
            "lint": False,
            "labelled": None,
            **options,
        }
        entities(JSON, query, **settings)
        return json.loads(capsysbinary.readouterr().out)

    return run


def test_the_answer_has_teams_matches_and_tokens(answered):
    document = answered("Can kommando use stikkbombs?")
    assert document["teams"] == ["Kommandos"]
    assert document["matches"][1] == {
        "team": "Kommandos",
        "strategy": "ability",
        "item": "Stikkbombs",
        "words": ["stikkbombs"],
        "score": 100.0,
        "reason": "1 of 1 words",
        "confidence": 1.0,
    }
    assert document["tokens_filtered"] < 0.05 * document["tokens_full"]
    assert document["version"] == 1


def test_a_query_that_names_nothing_keeps_all_tokens(answered):
    document = answered("how overwatch works")
    assert (document["teams"], document["matches"]) == ([], [])
    assert document["tokens_filtered"] == document["tokens_full"]


def test_a_structure_file_is_used_instead_of_the_demo(answered, tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text("entities: {Aaron: {members: [Zorgon]}}")
    assert answered("zorgon and kommandos", structure=file)["teams"] == ["Aaron"]


def test_lint_lists_findings(answered):
    assert [finding["name"] for finding in answered(lint=True)["findings"]] == ["Burna Boy"]


def test_text_names_teams_words_and_the_saving(capsys):
    entities(TEXT, "orkz", structure=None, budget=None, threshold=80.0, lint=False, labelled=None)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Kommandos, Wrecka Krew"
    assert lines[1].startswith("  Kommandos: alias 'orks' by 'orkz', close to 'orks'")
    assert lines[-1].startswith("tokens: ")


def test_no_query_and_no_lint_is_wrong_usage():
    with pytest.raises(InputError, match="no query was given"):
        entities(JSON, None, structure=None, budget=None, threshold=80.0, lint=False, labelled=None)


def test_a_missing_structure_file_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="not there"):
        entities(JSON, "x", structure=tmp_path / "none.yaml", budget=None, threshold=80.0, lint=False, labelled=None)


def test_labelled_queries_measure_the_structure_and_suggest_aliases(answered, tmp_path):
    rows = [{"query": f"the zorblings {verb}", "teams": ["Kommandos"]} for verb in ("shoot", "fight")]
    rows.append({"query": "Can kommando use stikkbombs?", "teams": ["Kommandos"]})
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    document = answered(labelled=tmp_path / "q.jsonl")
    assert document["agreement"]["recall"] == pytest.approx(1 / 3)
    assert [miss["missing"] for miss in document["agreement"]["misses"]] == [["Kommandos"]] * 2
    assert [(one["alias"], one["teams"], one["count"]) for one in document["aliases"]] == [
        ("zorblings", ["Kommandos"], 2)
    ]
    entities(TEXT, None, None, None, 80.0, False, tmp_path / "q.jsonl")
