"""The rules of each strategy on names made for them."""

import pytest

from rag_core.entities import EntityMatch, EntitySettings, TeamFilter
from rag_core.entities.strategies import one_letter_off
from rag_core.errors import InputError


@pytest.fixture
def members(small):
    def found(member, query):
        return small({"Team": {"members": [member]}}).extract_relevant_teams(query) == ["Team"]

    return found


@pytest.fixture
def abilities(small):
    def found(ability, query):
        return small({"Xyzzt": {"members": ["Qwrtp"], "abilities": [ability]}}).extract_relevant_teams(query) != []

    return found


def test_a_short_name_with_a_role_word_needs_its_words_side_by_side_in_order(members):
    assert members("Scout Gunner", "a scout gunner here")
    assert not members("Scout Gunner", "gunner scout")
    assert not members("Plasma Gunner", "plasma for the gunner")


def test_a_single_role_word_is_no_name(members):
    assert not members("Gunner", "gunner")


def test_a_long_name_with_a_role_word_needs_a_distinctive_word(members):
    assert members("Assault Intercessor Warrior", "intercessor")
    assert not members("Old Grey Warrior", "old grey")
    assert not members("Assault Intercessor Warrior", "warrior")


def test_a_long_role_word_is_not_distinctive(members):
    assert not members("Old Iron Specialist", "specialist")


def test_the_full_name_counts_though_no_word_is_distinctive(members):
    assert members("Chaos Cult Gunner", "one chaos cult gunner please")
    assert not members("Chaos Cult Gunner", "cult chaos gunner")


def test_a_short_name_without_a_role_word_needs_one_word(members):
    assert members("Burna Boy", "the burna is hot")
    assert members("Burna Boy", "boy")


def test_a_long_name_without_a_role_word_needs_a_distinctive_word_or_two_words(members):
    assert members("Iron Tide Sorcerer", "sorcerer")
    assert members("Iron Tide Sage", "tide of iron")
    assert not members("Iron Tide Sage", "iron")


def test_a_name_under_four_characters_is_skipped(members, abilities):
    assert not members("Nob", "nob")
    assert not abilities("Zap", "zap")


def test_a_name_of_stop_words_is_skipped(members, abilities):
    assert not members("The Other", "the other")
    assert not abilities("Once More", "once more")


def test_an_ability_of_one_word_needs_it(abilities):
    assert abilities("Overclock", "when to overclock")


def test_an_ability_of_two_words_needs_both_in_any_order(abilities):
    assert abilities("Combat Doctrine", "a doctrine of combat")
    assert not abilities("Combat Doctrine", "combat")


def test_an_ability_of_three_words_needs_two(abilities):
    assert abilities("Solemn Iron Rite", "the iron rite")
    assert not abilities("Solemn Iron Rite", "rite")


def test_plural_and_singular_are_the_same_word(members, abilities):
    assert members("Scout Gunner", "two scout gunners")
    assert abilities("Stikkbombs", "one stikkbomb")
    assert members("Legionary", "legionaries")


def test_an_item_of_several_teams_finds_them_all(small):
    team_filter = small({"Aaa": {"members": ["Zorgon"]}, "Bbb": {"members": ["zorgon"]}})
    assert team_filter.extract_relevant_teams("zorgon") == ["Aaa", "Bbb"]


def test_a_misspelt_word_inside_a_name_of_several_words_is_found(small):
    team_filter = small({"Nemesis Claw": {"members": ["Qwrtp"]}})
    assert team_filter.extract_relevant_teams("nemisis claw") == ["Nemesis Claw"]


def test_an_ordinary_word_is_not_taken_for_a_part_of_a_longer_alias(small):
    team_filter = small({"Team": {"members": ["Qwrtp"]}}, aliases={"space marines": ["Team"]})
    assert team_filter.extract_relevant_teams("space machines") == []
    assert team_filter.extract_relevant_teams("space mariness") == ["Team"]


def test_two_words_written_as_one_are_close_enough(small):
    team_filter = small({"Nemesis Claw": {"members": ["Qwrtp"]}})
    assert team_filter.extract_relevant_teams("nemesisclaw") == ["Nemesis Claw"]


def test_initials_are_made_only_from_long_names_and_never_guessed(small):
    entities = {"Angels Of Dawn": {"members": ["Qwrtp"]}, "Zinc Quay": {"members": ["Zxcvb"]}}
    team_filter = small(entities)
    assert team_filter.extract_relevant_teams("aod") == ["Angels Of Dawn"]
    assert team_filter.extract_relevant_teams("zq") == []
    assert team_filter.extract_relevant_teams("aodd") == []


def test_initials_that_two_names_share_are_not_made(small):
    team_filter = small({"Red Iron Tide": {"members": ["Qwrtp"]}, "Raw Ice Team": {"members": ["Zxcvb"]}})
    assert team_filter.extract_relevant_teams("rit") == []


def test_the_threshold_decides_what_is_misspelt(demo_filter):
    assert demo_filter.at(96).extract_relevant_teams("deathwach") == []
    assert demo_filter.at(94).extract_relevant_teams("deathwach") == ["Deathwatch"]
    assert demo_filter.at(80) is demo_filter


@pytest.mark.parametrize("threshold", [-1, 101, float("nan"), "80", True])
def test_a_threshold_outside_0_to_100_is_refused(threshold):
    with pytest.raises(InputError, match=r"threshold is .* expected a number from 0 to 100"):
        EntitySettings(threshold=threshold)


def test_a_new_strategy_is_one_object_with_match(demo):
    class Shout:
        name = "shout"

        def match(self, query_lower, query_words):
            return [EntityMatch("Kasrkin", "shout", "!", tuple(query_words), 100.0, "it is asked for", 1.0)]

    assert TeamFilter(demo, strategies=[Shout()]).extract_relevant_teams("anything") == ["Kasrkin"]


def test_a_strategy_can_be_asked_alone(demo_filter):
    ability = next(strategy for strategy in demo_filter.strategies if strategy.name == "ability")
    assert [m.team for m in ability.match("ere we go", ("ere", "go"))] == ["Kommandos"]


def test_an_ordinary_word_is_no_misspelling_though_its_singular_is_no_word(small):
    team_filter = small({"Alwayz": {"members": ["Qwrtp"]}})
    assert team_filter.extract_relevant_teams("always ready") == []
    assert team_filter.extract_relevant_teams("alwayzz ready") == ["Alwayz"]


@pytest.mark.parametrize(
    ("word", "name", "off"),
    [
        ("orkz", "orks", True),
        ("taxu", "tauu", True),
        ("arks", "orks", False),
        ("orks", "orks", False),
        ("okrs", "orks", False),
        ("orkss", "orks", False),
        ("tax", "tau", False),
        ("orkkzz", "orkkss", False),
    ],
)
def test_one_letter_off_means_one_letter_but_the_first_of_four_or_five(word, name, off):
    assert one_letter_off(word, name) is off


def test_a_short_word_inside_a_longer_name_follows_the_rule_of_short_words(small):
    team_filter = small({"Old Orks": {"members": ["Qwrtp"]}})
    assert team_filter.extract_relevant_teams("old orkz") == ["Old Orks"]
    assert team_filter.extract_relevant_teams("old zrks") == []
