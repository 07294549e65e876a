"""The split: decided once for each question, by family, and moved by nothing."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rag_core.project.ledger import Look, look, looks
from rag_core.project.project import ProjectSource, SplitRule, init_project, open_project
from rag_core.project.split import DEV, HELD_OUT, decide, split_of
from rag_core.types import Query


def queries(count, **metadata):
    words = ("kettle", "grinder", "boiler", "valve", "gasket", "portafilter", "hopper", "nozzle", "pump", "basket")
    return [
        Query(f"q{at}", f"what of {words[at % 10]} number {at} {words[at // 10]}", metadata=metadata)
        for at in range(count)
    ]


def test_half_is_held_out_and_a_declared_side_stands(tmp_path):
    project = init_project(tmp_path, "mine", ProjectSource())
    split = split_of(project, queries(100))
    assert 35 <= len(split.held_out) <= 65
    assert len(split.dev) + len(split.held_out) == 100
    said = [
        Query("a", "one thing"),
        Query("b", "another matter", metadata={"split": "test"}),
        Query("c", "third", metadata={"split": "dev"}),
    ]
    split = split_of(init_project(tmp_path, "declared", ProjectSource()), said)
    assert "b" in split.held_out
    assert "c" in split.dev
    assert split.declared


@given(st.lists(st.integers(0, 99), min_size=1, unique=True), st.randoms())
def test_no_question_changes_its_side_whatever_comes_later(first, random):
    every = queries(100)
    known = {}
    seen = [every[at] for at in first]
    while True:
        sides, _ = decide(seen, known, SplitRule("salt"), set())
        assert all(sides[query] == side for query, side in known.items() if query in sides)
        known |= sides
        if len(seen) == len(every):
            break
        rest = [query for query in every if query not in seen]
        seen = seen + random.sample(rest, min(len(rest), 17))
        random.shuffle(seen)


@given(st.lists(st.integers(1, 6), min_size=2, max_size=12), st.integers(0, 1_000), st.sampled_from([0.3, 0.5, 0.7]))
def test_no_side_is_left_short_by_more_than_a_family(sizes, salt, share):
    every = [Query(f"q{at}-{member}", f"{at} {member}", metadata={"family": f"f{at}"})
             for at, size in enumerate(sizes) for member in range(size)]  # fmt: skip
    sides, _ = decide(every, {}, SplitRule(str(salt), share), set())
    held_out = list(sides.values()).count(HELD_OUT)
    assert abs(held_out - share * len(every)) <= max(sizes)
    if min(share, 1 - share) * len(every) > max(sizes):
        assert {*sides.values()} == {DEV, HELD_OUT}


def test_paraphrases_stand_on_one_side_and_a_family_on_both_is_left_out(tmp_path):
    project = init_project(tmp_path, "mine", ProjectSource())
    family = [
        Query(f"f{at}", text, metadata={"family": "dose"})
        for at, text in enumerate(("how much", "what dose", "grams?"))
    ]
    split = split_of(project, [*queries(20), *family])
    assert len({query.id in split.held_out for query in family}) == 1
    both = [replace(family[0], metadata={"family": "x"}), replace(family[1], metadata={"family": "y"})]
    side = DEV if family[0].id in split.dev else HELD_OUT
    merged, _ = decide(both, {"f0": side, "f1": HELD_OUT if side == DEV else DEV}, SplitRule("s"), set())
    assert set(merged.values()) == {DEV, HELD_OUT}
    straddled = [replace(query, metadata={"family": "joined"}) for query in (queries(20)[0], queries(20)[1])]
    assert {"q0", "q1"} & set(split_of(project, [*straddled]).straddling) or split.dev.count("q0") == split.dev.count(
        "q1"
    )


def test_examples_are_on_no_side(tmp_path):
    project = open_project("demo", tmp_path)
    split = split_of(project, [case.query for case in project.eval_set.cases])
    assert split.examples == ("combat-1", "combat-strength", "combat-2", "combat-3")
    assert not {*split.examples} & {*split.dev, *split.held_out}


def test_looking_again_at_the_same_is_no_new_look(tmp_path):
    project = open_project("demo", tmp_path)
    seen = Look("p1", "labels", "split", 41, name="tuned", by="me", place="bench")
    assert look(project.state, seen) == 1
    assert look(project.state, replace(seen, place="evaluate", by="you")) == 1
    assert look(project.state, replace(seen, labels="other")) == 2
    assert look(project.state, replace(seen, pipeline="p2", split="another")) == 1
    assert [one.pipeline for one in looks(project.state)] == ["p1", "p1", "p2"]
