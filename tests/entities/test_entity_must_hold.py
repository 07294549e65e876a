"""Every example of the demo structure that the documentation promises, and every mistake it says is not made here."""

import pytest
from rapidfuzz import fuzz

from rag_core.entities.structure import ordinary_words

ORKS = ["Kommandos", "Wrecka Krew"]
MARINES = [
    "Angels Of Death",
    "Deathwatch",
    "Emberhelm Veterans",
    "Greycloak Sentinels",
    "Ironvow Vanguard",
    "Phobos Strike Team",
    "Stormlance Brothers",
]


def teams(team_filter, query):
    return team_filter.extract_relevant_teams(query)


def test_kommando_orks_using_ere_we_go_is_exactly_the_two_ork_teams(demo_filter):
    assert teams(demo_filter, "Can kommando orks use ere we go?") == ORKS


def test_kommando_orks_is_found_by_every_strategy(demo_filter):
    found = demo_filter.explain("Can kommando orks use ere we go?").by_strategy()
    own = ("Kommandos",)
    assert found == {"operative": own, "ability": own, "alias": tuple(ORKS), "team_name": own}


def test_orkz_finds_orks(demo_filter):
    assert teams(demo_filter, "orkz") == ORKS


def test_deathwach_finds_deathwatch(demo_filter):
    assert teams(demo_filter, "deathwach") == ["Deathwatch"]


def test_kasrkins_finds_kasrkin(demo_filter):
    assert teams(demo_filter, "kasrkins") == ["Kasrkin"]


def test_kommando_finds_kommandos(demo_filter):
    assert teams(demo_filter, "kommando") == ["Kommandos"]


def test_kommando_and_stikkbombs_is_exactly_kommandos(demo_filter):
    assert teams(demo_filter, "Can kommando use stikkbombs?") == ["Kommandos"]


def test_space_marine_abilities_finds_all_seven(demo_filter):
    assert teams(demo_filter, "space marine abilities") == MARINES


def test_astartes_abilities_is_found_through_the_ability(demo_filter):
    assert demo_filter.explain("astartes abilities").by_strategy() == {"ability": tuple(MARINES)}


def test_chaos_cult_gunner_finds_chaos_cult_as_a_member_by_its_full_name(demo_filter):
    found = [m for m in demo_filter.explain("Chaos Cult Gunner").matches if m.strategy == "operative"]
    assert [(m.team, m.reason) for m in found] == [("Chaos Cult", "the full name, in order")]


@pytest.mark.parametrize("query", ["how overwatch works", "orbs of cover", "gunner", "where does ere work?"])
def test_a_query_that_names_nothing_finds_no_team(demo_filter, query):
    assert teams(demo_filter, query) == []


def test_assault_finds_the_team_of_assault_intercessor_warrior(demo_filter):
    assert teams(demo_filter, "assault") == ["Angels Of Death"]


def test_a_query_that_names_nothing_keeps_the_full_structure(demo_filter):
    assert len(demo_filter.filter_structure(teams(demo_filter, "how overwatch works"))) == 48


@pytest.mark.parametrize(
    ("alias", "count"), [("orks", 2), ("chaos", 8), ("space marines", 7), ("guard", 4), ("tau", 1)]
)
def test_an_alias_stands_for_as_many_teams_as_the_documentation_says(demo_filter, alias, count):
    assert len(teams(demo_filter, alias)) == count


def test_the_demo_has_48_teams_of_about_50_items_and_over_20_aliases(demo):
    sizes = [len(entity.members) + len(entity.abilities) for entity in demo.entities]
    assert len(sizes) == 48
    assert min(sizes) >= 45
    assert max(sizes) <= 55
    assert len(demo.aliases) >= 20


# Where the original is wrong


def test_a_short_misspelling_is_found_though_its_ratio_is_under_the_threshold(demo_filter):
    (match, _) = demo_filter.explain("orkz").matches
    assert match.score == fuzz.ratio("orkz", "orks") == 75.0


def test_a_short_ordinary_word_is_not_a_misspelling_though_its_ratio_is_over_the_threshold(small):
    assert round(fuzz.ratio("workz", "orkz")) == 89
    team_filter = small({"Orkz": {"members": ["Nobb"]}})
    assert "orks" not in ordinary_words()
    assert teams(team_filter, "the orbs and the works") == []
    assert teams(team_filter, "orkx") == ["Orkz"]


def test_works_does_not_find_orks(demo_filter):
    assert round(fuzz.ratio("works", "orks")) == 89
    assert teams(demo_filter, "it works") == []


@pytest.mark.parametrize("word", ["orkzz", "arkz", "orxx", "orkzs"])
def test_a_short_misspelling_has_the_same_length_the_same_first_letter_and_one_letter_different(demo_filter, word):
    assert teams(demo_filter, word) == []


def test_a_long_ordinary_word_is_never_a_misspelling(small):
    team_filter = small({"Weaponz": {"members": ["Nobb"]}})
    assert fuzz.ratio("weapons", "weaponz") > 80
    assert teams(team_filter, "which weapons") == []
    assert teams(team_filter, "which weaponzz") == ["Weaponz"]


def test_a_word_of_the_structure_is_never_a_misspelling(small):
    team_filter = small({"Drakkon": {"members": ["Xul"]}, "Other": {"members": ["Drakkor Zub"]}})
    assert teams(team_filter, "drakkor") == ["Other"]
    assert teams(team_filter, "drakkox") == ["Drakkon"]


def test_names_compare_lower_cased(demo_filter):
    assert fuzz.ratio("kommandoz", "KOMMANDOS") == 0
    assert teams(demo_filter, "KOMMANDOZ") == ["Kommandos"]


@pytest.mark.parametrize("query", ["safeguard an objective", "the rope is taut", "blackguards", "chaosium"])
def test_an_alias_stands_on_word_boundaries(demo_filter, query):
    assert teams(demo_filter, query) == []


def test_ere_we_go_is_read_as_two_words_and_the_trace_says_so(demo_filter):
    found = demo_filter.explain("ere we go")
    assert found.words == ("ere", "go")
    assert [m.reason for m in found.matches] == ["2 of 2 words (left out as stop words: we)"]


def test_space_marine_is_the_alias_in_singular_and_no_substring(demo_filter):
    match = demo_filter.explain("space marine").matches[0]
    assert (match.item, match.words, match.score) == ("space marines", ("space", "marine"), 100.0)


def test_a_synonym_leads_to_its_alias(demo_filter):
    match = demo_filter.explain("orcs").matches[0]
    assert (match.team, match.item, match.words) == ("Kommandos", "orks", ("orcs",))
    assert teams(demo_filter, "orcs") == ORKS


def test_initials_lead_to_their_team(demo_filter):
    assert teams(demo_filter, "DW ammunition") == ["Deathwatch"]
    assert teams(demo_filter, "A.o.D. turning point") == ["Angels Of Death"]


def test_every_match_says_its_strategy_words_score_reason_and_confidence(demo_filter):
    for match in demo_filter.explain("deathwach orks, Burna Boy and Ere We Go").matches:
        assert match.strategy in ("operative", "ability", "alias", "team_name")
        assert match.words
        assert match.reason
        assert 0 < match.confidence <= 1
        assert 0 < match.score <= 100


def test_one_word_of_three_is_less_sure_than_the_full_name(demo_filter):
    part, whole = (demo_filter.explain(query).matches[0] for query in ("assault", "assault intercessor warrior"))
    assert (part.confidence, whole.confidence) == (pytest.approx(1 / 3, abs=0.001), 1.0)
