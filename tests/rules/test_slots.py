"""Rules from slots: families of near-duplicate titles, what each member's rule asks for, and the laws they keep."""

import json
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.eval_sets.reading import SHIPPED, load_set
from rag_core.rules.match import decide, forms
from rag_core.rules.rule import NumberIn, parse_rule, read_rule
from rag_core.rules.slots import (
    check,
    counted_forms,
    phrase_forms,
    propose,
    read_title,
    repeated_titles,
    rules_to_store,
    settled,
    spellings,
)
from rag_core.types import Case, Chunk, Query


def chunks_of(titles, text="The same text about {} for every one of them."):
    return [Chunk(f"c{at:03}", title, text.format(title)) for at, title in enumerate(titles)]


def rules_by_title(chunks, families=None):
    titles = {chunk.id: chunk.title for chunk in chunks}
    families = propose(chunks) if families is None else families
    return {titles[identity]: rule for family in families for identity, rule in family.rules.items()}


def kept(rules, question):
    return {title for title, rule in rules.items() if decide(rule, question).satisfied}


# ---------------------------------------------------------------- a manual of thirty sections

MODELS = [f"E {number}" for number in range(10, 70, 10)]
MACHINES = ["Piccolo", "Barista", "Lungo", "Grande", "Office Duo", "Roma"]
OTHERS = [
    *("Before first use", "Water hardness", "Descaling", "Grind size", "Milk foam", "Warranty", "Error codes"),
    *("Spare parts", "Energy saving", "Where to put the machine", "Storing beans", "Cup warmer", "Steam wand"),
    *("Drip tray", "Disposal", "Contact", "Recipes", "Safety"),
]
MANUAL = chunks_of(
    [
        *(f"Coffee dose of the model {model}" for model in MODELS),
        *(f"Cleaning the {name} machine" for name in MACHINES),
        *OTHERS,
    ]
)


def test_two_families_of_a_manual_of_thirty_sections_get_rules_and_nothing_else_does():
    rules = rules_by_title(MANUAL)
    assert len(MANUAL) == 30
    assert set(rules) == {chunk.title for chunk in MANUAL[:12]}
    assert rules["Coffee dose of the model E 10"].as_mapping() == {"contain_one_of": [["e 10"]]}
    assert all(not rules[f"Cleaning the {name} machine"].contain_one_of for name in MACHINES)


@pytest.mark.parametrize(
    ("question", "stay"),
    [
        ("How many grams for a double espresso in the E 30?", {"E 30"}),
        ("E20 dose", {"E 20"}),
        ("Coffee doses for the models E 20 and 40", {"E 20", "E 40"}),
        ("How do I clean it?", set()),
    ],
)
def test_a_number_is_asked_for_always(question, stay):
    rules = {title: rule for title, rule in rules_by_title(MANUAL).items() if title.startswith("Coffee")}
    assert kept(rules, question) == {f"Coffee dose of the model {model}" for model in stay}


@pytest.mark.parametrize(
    ("question", "stay"),
    [
        ("How long must the group of the Piccolo machine dry?", {"Piccolo"}),
        ("Cleaning the Office Duo", {"Office Duo"}),
        ("Are the Roma machines cleaned like the Lungo?", {"Lungo", "Roma"}),
        ("How is the brewing group cleaned?", set(MACHINES)),
    ],
)
def test_a_word_is_asked_for_where_one_of_its_kind_is_named(question, stay):
    rules = {title: rule for title, rule in rules_by_title(MANUAL).items() if title.startswith("Cleaning")}
    assert kept(rules, question) == {f"Cleaning the {name} machine" for name in stay}


# ---------------------------------------------------------------- the demo


@pytest.fixture(scope="module")
def rulebook():
    lines = (SHIPPED / "rulebook" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    chunks = [Chunk(one["id"], one["title"], one["text"]) for one in entries]
    shipped = {one["id"]: read_rule(one["query_must"]) for one in entries if one.get("query_must")}
    return chunks, shipped, load_set("rulebook"), propose(chunks)


def test_no_proposed_rule_of_the_demo_drops_a_relevant_chunk_and_every_shipped_one_is_proposed_too(rulebook):
    _, shipped, found, families = rulebook
    assert shipped.keys() <= {identity for family in families for identity in family.rules}
    assert [check(family, found.cases, min_grade=found.min_grade).wrong for family in families] == [()] * len(families)


def test_with_words_made_strict_where_labels_vouch_for_it_all_verdicts_of_the_shipped_rules_are_the_same(rulebook):
    _, shipped, found, families = rulebook
    families = [settled(family, found.cases, found.min_grade) for family in families]
    rules = {identity: rule for family in families for identity, rule in family.rules.items()}
    for case in found.cases:
        for identity, rule in shipped.items():
            ours = decide(rules[identity], case.query.text).satisfied
            assert ours == decide(rule, case.query.text).satisfied, (case.query.text, identity)
    assert [check(family, found.cases, min_grade=found.min_grade).wrong for family in families] == [()] * len(families)


# ---------------------------------------------------------------- slots

MATRICES = [
    f"{mark} ATTACK MATRIX FOR {who} - Opponent Armor Class {number}"
    for mark, who in (("I.A.", "CLERICS, DRUIDS AND MONKS"), ("I.B.", "THIEVES AND ASSASSINS"))
    for number in range(-3, 6)
]


def test_families_of_numbers_are_joined_across_a_list_that_differs():
    (family,) = propose(chunks_of(MATRICES, "To hit an opponent of armor class. {}"))
    assert [(slot.kind, slot.policy) for slot in family.slots] == [("list", "strict"), ("number", "strict")]
    rules = rules_by_title(chunks_of(MATRICES), [family])
    assert kept(rules, "What does a thief need against AC -2?") == {MATRICES[10]}
    assert kept(rules, "druids and assassins, armour classes 2 and 3") == {MATRICES[at] for at in (5, 6, 14, 15)}


def test_no_rule_asks_for_what_all_titles_share():
    for rule in rules_by_title(chunks_of(MATRICES)).values():
        assert not any("attack" in term or "matrix" in term for group in rule.contain_one_of for term in group)


def test_words_that_cross_are_two_slots_and_each_is_named_by_itself():
    colours = ("black", "blue", "gold", "red", "white")
    titles = [f"{age} {colour} Dragon" for age in ("Adult", "Ancient", "Young") for colour in colours]
    rules = rules_by_title(chunks_of(titles))
    assert kept(rules, "How old is a young red dragon?") == {"Young red Dragon"}
    assert kept(rules, "Where do blue dragons live?") == {f"{age} blue Dragon" for age in ("Adult", "Ancient", "Young")}
    assert kept(rules, "Which dragons breathe cold?") == set(titles)


def test_a_slot_before_or_behind_a_comma_is_found_and_a_parent_gets_no_rule():
    chunks = chunks_of(["Dragon", "Dragon, Black", "Dragon, Blue", "Dragon, Green", "Wharf", "Ship", "Rope"])
    (family,) = propose(chunks)
    rules = rules_by_title(chunks, [family])
    assert kept(rules, "How strong are black dragons?") == {"Dragon, Black"}
    assert "Dragon" not in rules


def test_what_stands_in_brackets_is_never_required_and_names_the_chunk_as_well():
    titles = ["Dragon, Ice (White Dragon)", "Dragon, Sea (Gray Dragon)", "Dragon, Cloud", "Dragon, Plains"]
    rules = rules_by_title(chunks_of(titles))
    assert kept(rules, "Are sea dragons and white dragons alike?") == set(titles[:2])
    scrolls = [f"Spell Scroll ({kind})" for kind in ("Cantrip", "1st", "2nd", "3rd")]
    rules = rules_by_title(chunks_of(scrolls))
    assert kept(rules, "What is a spell scroll?") == set(scrolls)
    assert kept(rules, "Save of a 2nd level spell scroll") == {"Spell Scroll (2nd)"}


def test_a_range_is_written_out_and_an_open_one_is_a_number_condition():
    titles = [f"Saving throws, level {value}" for value in ("1", "2-3", "4-5", "6-7", "8+")]
    rules = rules_by_title(chunks_of(titles))
    ways = (
        "a fifth level thief",
        "a thief of the 5th level",
        "thief, lvl 5",
        "at levels 2 and 5",
        "the 5th and 9th level",
    )
    for question in (*ways, "the fifth and the ninth level"):
        assert titles[2] in kept(rules, question)
    (number,) = rules[titles[4]].number_in
    assert isinstance(number, NumberIn)
    assert (number.minimum, number.maximum) == (8.0, None)
    assert kept(rules, "a level 11 thief") == {titles[4]}


def test_a_number_may_stand_right_behind_the_word_before_its_label():
    titles = [f"{who}, level {number}" for who in ("Bard", "Cleric", "Monk") for number in range(1, 6)]
    assert kept(rules_by_title(chunks_of(titles)), "cleric 4: which spells?") == {"Cleric, level 4"}


def test_a_code_is_asked_for_with_its_label_or_as_a_letter_that_is_no_word():
    titles = [f"Treasure Type {letter}" for letter in "ABCDEH"]
    rules = rules_by_title(chunks_of(titles))
    assert kept(rules, "What is in treasure types B and H?") == {"Treasure Type B", "Treasure Type H"}
    assert kept(rules, "Is a treasure of type A a good one?") == {"Treasure Type A"}


def test_numbers_that_count_a_texts_places_are_not_required():
    (family,) = propose(chunks_of([f"Chapter {number}" for number in range(1, 7)]))
    assert family.policy == "named"
    rules = rules_by_title(chunks_of([f"Chapter {number}" for number in range(1, 7)]), [family])
    assert len(kept(rules, "Who is the gardener?")) == 6
    assert kept(rules, "What happens in chapter 3?") == {"Chapter 3"}


def test_labels_come_from_the_texts_where_they_differ_from_the_titles():
    titles = [f"Attack table, armor class {number}" for number in range(2, 9)]
    texts = ["To hit protection {} you roll.", "Protection {} is hit by"]
    chunks = [Chunk(title[-1], title, texts[at % 2].format(title[-1])) for at, title in enumerate(titles)]
    rules = rules_by_title(chunks)
    assert kept(rules, "protection 4") == {titles[2]}
    assert kept(rules, "AC 4") == kept(rules, "armour class of 4") == {titles[2]}


def test_titles_that_several_chunks_share_are_reported_and_their_first_lines_are_never_required():
    chunks = [Chunk(f"m{at}", "Manual > Doses", f"Model E {at}0\nUse {at} grams.") for at in range(1, 6)]
    assert repeated_titles(chunks) == {"Manual > Doses": ("m1", "m2", "m3", "m4", "m5")}
    (family,) = propose(chunks)
    assert family.policy == "named"
    assert {one for one, rule in family.rules.items() if decide(rule, "model E 30").satisfied} == {"m3"}
    assert all(decide(rule, "Which dose is best?").satisfied for rule in family.rules.values())


def test_an_acronym_before_a_number_is_read_as_what_some_title_spells_out():
    titles = [f"Matrix, AC {number}" for number in range(2, 9)]
    rules = rules_by_title(chunks_of([*titles, "Armor Class", "Opponent Armor Class"]))
    assert kept(rules, "armour class of 4") == kept(rules, "AC 4") == {titles[2]}


def test_a_number_that_begins_a_title_takes_the_words_behind_it():
    titles = [f"{number} ml bottle" for number in (250, 500, 750)]
    rules = rules_by_title(chunks_of(titles))
    assert kept(rules, "How heavy is the 500 ml one?") == {titles[1]}
    years = [f"{year} Annual report" for year in (2021, 2022, 2023)]
    assert kept(rules_by_title(chunks_of(years)), "What was earned in 2022?") == {years[1]}


def test_numbers_of_things_whose_texts_differ_are_not_required():
    prose = [" ".join(chr(97 + at) * length for length in range(3, 12)) for at in range(26)]
    others = [Chunk(f"o{at}", f"{prose[at][:3]} {prose[at][4:8]}", prose[at]) for at in range(12)]
    things = [Chunk(f"a{at}", f"Apollo {at}", prose[20 + at]) for at in range(6)]
    tables = [Chunk(f"t{at}", f"Toll of class {at}", f"A cart of class {at} pays {at} shillings.") for at in range(6)]
    policies = {family.name: family.policy for family in propose([*others, *things, *tables])}
    assert policies["apollo {number}"] == "named"
    assert policies["toll of class {number}"] == "strict"


def test_a_number_in_brackets_is_named_with_its_label():
    titles = [f"Matrix for thieves (Armor Class {number})" for number in range(-3, 4)]
    rules = rules_by_title(chunks_of(titles))
    assert kept(rules, "armor class 3 and a +1 dagger") == {titles[-1]}
    assert kept(rules, "Which matrix is for thieves?") == set(titles)


def test_synonyms_count_as_the_value():
    chunks = chunks_of([f"Encounters: {place}" for place in ("Plain", "Forest", "Swamp", "Hills")])
    families = propose(chunks, {"plain": ["prairie"]})
    rules = rules_by_title(chunks, families)
    assert kept(rules, "prairie and swamp") == {"Encounters: Plain", "Encounters: Swamp"}


def test_a_family_asks_as_its_policy_says():
    (family,) = propose(chunks_of([f"Dose of the model E {number}" for number in (10, 20, 30)]))
    strict, named = family.rules["c000"], family.with_policy("named").rules["c000"]
    assert [decide(strict, text).satisfied for text in ("E 10", "E 20", "dose")] == [True, False, False]
    assert [decide(named, text).satisfied for text in ("E 10", "E 20", "dose")] == [True, False, True]


# ---------------------------------------------------------------- what they would do


def test_the_check_counts_wrong_drops_apart_from_right_ones():
    chunks = chunks_of([f"Dose of the model E {number}" for number in (10, 20, 30)])
    (family,) = propose(chunks)
    cases = [
        Case(Query("one", "dose of the E 10"), grades={"c000": 2, "c001": 0, "c002": 0}),
        Case(Query("most", "Which model takes most?"), grades={"c002": 1}),
    ]
    found = check(family, cases)
    assert (found.relevant, found.irrelevant, found.right) == (2, 2, 2)
    assert [(drop.query_id, drop.chunk_id) for drop in found.wrong] == [("most", "c002")]
    assert found.to_json()["wrong_drops"] == 1


def test_words_become_strict_only_where_enough_labels_vouch_for_it():
    chunks = chunks_of([f"Encounters: {place}" for place in ("Plain", "Forest", "Swamp", "Hills", "Coast")])
    (family,) = propose(chunks)
    cases = [Case(Query(f"q{at}", chunk.title), grades={chunk.id: 1}) for at, chunk in enumerate(chunks)]
    assert settled(family, cases).policy == "strict"
    assert settled(family, cases[:4]).policy == "named"
    assert settled(family, [*cases, Case(Query("x", "Where are wolves?"), grades={"c001": 1})]).policy == "named"


def test_chunks_that_carry_a_rule_keep_it_unless_all_are_to_be_replaced():
    chunks = chunks_of([f"Dose of the model E {number}" for number in (10, 20, 30)])
    chunks[0] = Chunk("c000", chunks[0].title, chunks[0].text, query_must={"contain": "mine"})
    families = propose(chunks)
    assert families[0].with_rule == 1
    assert set(rules_to_store(families, chunks)) == {"c001", "c002"}
    assert set(rules_to_store(families, chunks, replacing=True)) == {"c000", "c001", "c002"}


# ---------------------------------------------------------------- laws


def plural(phrase):
    """What matching takes as the phrase's regular plural, or the irregular one that proposals write out."""
    irregular = phrase_forms(phrase.split())[1:]
    return irregular[0] if irregular else re.sub(r"[a-z]+$", lambda last: forms(last[0])[-1], phrase)


NOUNS = st.sampled_from(["pump", "valve", "engine", "battery", "sensor", "filter", "housefly", "gearbox"])
LABELS = st.sampled_from(["model", "armor class", "level", "size", "strength grade", "type"])
VALUES = st.lists(st.integers(0, 99), min_size=3, max_size=8, unique=True)
KINDS = st.lists(
    st.sampled_from(
        ["black", "cold water", "wolf", "city", "forged steel", "box", "thief", "marsh", "Sea-going", "old"]
    ),
    min_size=3,
    max_size=8,
    unique=True,
)
FORMS = st.sampled_from(["{noun} of {label} {value}", "{noun}, {label} {value}", "The {noun} - {label} {value}"])
WORDED = st.sampled_from(["{noun}, {value}", "{value} {noun}", "Care of the {value} {noun}", "Notes: {noun}: {value}"])


@st.composite
def collections(draw):
    """Chunks with one or two families among other titles, in any order."""
    titles = []
    form, noun, label = draw(FORMS), draw(NOUNS), draw(LABELS)
    titles += [form.format(noun=noun, label=label, value=value) for value in draw(VALUES)]
    worded, other = draw(WORDED), draw(NOUNS)
    titles += [worded.format(noun=other, value=value) for value in draw(KINDS)]
    titles += draw(st.lists(st.text(max_size=25), max_size=5))
    chunks = chunks_of(titles)
    draw(st.randoms(use_true_random=False)).shuffle(chunks)
    return chunks


@given(collections())
def test_a_chunks_own_title_asked_as_a_question_satisfies_its_rule(chunks):
    for policy in ("as it is", "strict", "named"):
        for family in propose(chunks):
            family = family if policy == "as it is" else family.with_policy(policy)
            for member in family.members:
                if member.chunk_id in family.rules:
                    assert decide(family.rules[member.chunk_id], member.title).satisfied


@given(collections(), st.integers(0, 2**32))
def test_families_are_the_same_in_whatever_order_the_chunks_come_and_can_be_stored(chunks, seed):
    shuffled = list(chunks)
    random.Random(seed).shuffle(shuffled)
    families = propose(chunks)
    assert [family.to_json() for family in propose(shuffled)] == [family.to_json() for family in families]
    for family in families:
        for rule in family.rules.values():
            assert parse_rule(rule.as_mapping(), "c") == rule


@given(NOUNS, LABELS, VALUES, st.data())
def test_a_rule_never_drops_when_its_number_is_named_with_other_fillers_or_in_a_list(noun, label, values, data):
    chunks = chunks_of([f"The {noun}, {label} {value}" for value in values])
    (family,) = propose(chunks)
    at = data.draw(st.integers(0, len(values) - 1))
    value, other = values[at], values[at - 1]
    ways = ["{label} of {value}", "Is the {label}: {value}?", "{label} = {value}", "{labels} {other} and {value}"]
    ways += ["{labels} {value}/{other}", "a {label} at {value}, please"]
    question = data.draw(st.sampled_from(ways)).format(label=label, labels=plural(label), value=value, other=other)
    assert decide(family.rules[f"c{at:03}"], question).satisfied


@given(NOUNS, KINDS, WORDED, st.data())
def test_a_rule_never_drops_when_its_words_are_named_in_singular_or_plural(noun, values, worded, data):
    chunks = chunks_of([worded.format(noun=noun, value=value) for value in values])
    rules = {identity: rule for family in propose(chunks) for identity, rule in family.rules.items()}
    at = data.draw(st.integers(0, len(values) - 1))
    own, other = values[at], values[at - 1]
    named = data.draw(st.sampled_from([own, own.casefold(), plural(own.casefold())]))
    question = data.draw(st.sampled_from(["{named} and {other} {noun}", "a {other} {noun} or the {named} {noun}s?"]))
    rule = rules.get(f"c{at:03}")
    assert rule is None or decide(rule, question.format(named=named, other=other, noun=noun)).satisfied


@given(st.lists(st.text(max_size=40), max_size=12))
def test_no_title_breaks_it(titles):
    chunks = chunks_of(titles)
    assert {name for family in propose(chunks) for name in family.rules} <= {chunk.id for chunk in chunks}
    for title in titles:
        assert read_title(title) is not None


# ---------------------------------------------------------------- forms


def test_forms_of_words_and_numbers():
    assert [plural(word) for word in ("box", "city", "wolf", "lizardman", "human", "key")] == [
        *("boxes", "cities", "wolves", "lizardmen", "humans", "keys")
    ]
    assert phrase_forms(["guild", "thieves"]) == ("guild thieves", "guild thief")
    assert phrase_forms(["classes"]) == ("classes",)
    assert phrase_forms(["ac"]) == ("ac",)
    assert "armour class" in spellings("armor class")
    assert "color" in spellings("colour")
    assert {"3rd", "third level", "level three"} <= set(counted_forms("level", 3))
    assert counted_forms("armor class", 3) == ()


def test_a_title_is_read_without_its_section_number_and_its_brackets():
    title = read_title("II.B. Tables for Magic-Users (optional) - Level 6-10")
    assert [unit.text for unit in title.units] == ["tables", "for", "magic users", "level", "6-10"]
    assert [unit.gap for unit in title.units] == ["", "", "", "-", ""]
    assert (title.units[-1].low, title.units[-1].high) == (6.0, 10.0)
    assert [[unit.text for unit in bracket] for bracket in title.brackets] == [["optional"]]
