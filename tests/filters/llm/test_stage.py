"""What the stage does with a judge's answers: keep, expand, cap, fall back, and say so."""

import dataclasses
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import Said, ScriptedJudge, a_list, by_id, ids, reason_of

from rag_core.errors import EndpointError, SpecError
from rag_core.filters.llm.decisions import ACTIONS
from rag_core.filters.llm.stage import NO_JUDGE, LLMFilter
from rag_core.spec import make_stage
from rag_core.types import Chunk, Metric, Order

FEW = ("a", "b", "c", "d")


def run(candidates, script, **settings):
    stage = dataclasses.replace(LLMFilter(**settings), judge=ScriptedJudge(script))
    after = stage(candidates)
    return after, after.steps[-1].facts


def conserved(before, after):
    entered = [hit.key for hit in before.hits]
    out = [hit.key for hit in after.hits] + [drop.hit.key for drop in after.drops]
    assert sorted(key for key in out if not key[1].startswith("expanded")) == sorted(entered)
    assert len({hit.chunk.id for hit in after.hits}) == len(after.hits)


def test_kept_stay_in_order_and_discarded_go_with_the_reason():
    before = a_list(*FEW)
    after, facts = run(
        before,
        lambda p: '[{"id":1,"action":"KEEP"},{"id":2,"action":"DISCARD","reason":"other"},{"id":4,"action":"KEEP"}]',
    )
    assert ids(after) == ["a", "d"]
    assert reason_of(after, "b") == "DISCARD: other"
    assert reason_of(after, "c") == "not mentioned in the model's answer"
    assert (facts["not_mentioned"], facts["decided"], facts["fallback_used"]) == (1, 3, False)
    conserved(before, after)


def test_stats_have_the_names_of_the_design():
    _, facts = run(a_list(*FEW), by_id({"a": "KEEP"}))
    assert (facts["original_count"], facts["processed_count"], facts["filtered_count"]) == (4, 4, 1)
    assert facts["reduction_ratio"] == 0.75
    assert facts["decisions"] == {"a": "KEEP", "b": "DISCARD", "c": "DISCARD", "d": "DISCARD"}
    for name in ("processing_time_ms", "search_time_ms", "total_found", "files_searched", "error"):
        assert name in facts
    assert facts["llm_intelligence_enabled"] is True
    assert facts["cost"] is None  # no price known: not 0


def test_only_the_oversample_is_judged():
    before = a_list(*(f"c{at}" for at in range(60)))
    after, facts = run(before, by_id({}, "KEEP"), max_chunks=25)
    assert facts["processed_count"] == 40
    assert reason_of(after, "c40") == "beyond the oversample"
    assert reason_of(after, "c25").startswith("over max_chunks 25")
    assert len(after.hits) == 25
    conserved(before, after)


@pytest.mark.parametrize(
    ("count", "multiplier", "judged"), [(25, 1.6, 40), (25, 1.2, 30), (25, 2.0, 50), (10, 1.1, 11), (3, 1.5, 4)]
)
def test_the_oversample_is_the_product_rounded_down(count, multiplier, judged):
    assert LLMFilter(max_chunks=count, oversample_multiplier=multiplier).oversample == judged


def test_the_floor_is_a_cosine_similarity_and_comes_before_the_model():
    judge = ScriptedJudge(by_id({}, "KEEP"))
    before = a_list(*FEW, distances=[0.1, 0.69, 0.7, 0.71], metric=Metric.COSINE)
    after = dataclasses.replace(LLMFilter(), judge=judge)(before)
    assert ids(after) == ["a", "b", "c"]
    assert reason_of(after, "d") == "cosine similarity 0.2900 < 0.3000: not judged"
    assert [chunk.id for chunk in judge.asked[0][0].chunks] == ["a", "b", "c"]


def test_without_a_similarity_the_floor_is_skipped_and_that_is_said():
    after, _ = run(a_list(*FEW, distances=[0.1, 0.8, 0.9, 1.2]), by_id({}, "KEEP"))
    assert len(after.hits) == 4
    assert "similarity floor skipped for 4 of 4" in after.notices[0].text


def test_a_floor_none_reaches_asks_nobody_and_is_no_fallback():
    judge = ScriptedJudge(by_id({}))
    after = dataclasses.replace(LLMFilter(), judge=judge)(a_list(*FEW, distances=[0.9] * 4, metric=Metric.COSINE))
    assert not after.hits
    assert not after.fallbacks
    assert "no candidate reaches the floor" in after.notices[0].text
    assert not any(judge.asked)


def test_everything_discarded_is_an_empty_list_that_says_why_and_no_fallback():
    after, facts = run(a_list(*FEW), by_id({}))
    assert not after.hits
    assert not after.fallbacks
    assert facts["fallback_used"] is False
    assert any("the model kept none of 4 candidates" in notice.text for notice in after.notices)


def test_the_cap_is_in_distance_order_though_the_list_is_fused():
    before = dataclasses.replace(a_list(*FEW, distances=[0.4, 0.1, 0.3, 0.2]), order=Order.FUSED)
    after, _ = run(before, by_id({}, "KEEP"), max_chunks=2, oversample_multiplier=2)
    assert ids(after) == ["b", "d"]


UNUSABLE = {
    "error": Said(error="endpoint local cannot be reached"),
    "empty": "",
    "prose": "I cannot decide.",
    "unknown ids": "97 -> KEEP\n98 -> KEEP",
    "exception": ValueError("secret words of a chunk"),
    "endpoint error": EndpointError("endpoint local did not accept the key"),
}


@pytest.mark.parametrize("fault", UNUSABLE)
def test_an_unusable_answer_keeps_the_nearest_unexpanded_and_is_marked(fault):
    before = a_list(*(f"c{at}" for at in range(40)))
    after, facts = run(before, lambda prompt: UNUSABLE[fault], max_chunks=25)
    assert ids(after) == [f"c{at}" for at in range(25)]
    assert facts["fallback_used"] is True
    assert facts["kept_by_fallback"] == 25
    assert len(after.fallbacks) == 1
    assert facts["error"]
    assert "secret words" not in str(after)
    assert all(hit.notes["LLMFilter"].startswith("kept by fallback: ") for hit in after.hits)
    conserved(before, after)


def test_the_fallback_says_the_reason():
    after, _ = run(a_list(*FEW), lambda prompt: UNUSABLE["error"])
    assert after.fallbacks[0].reason.startswith("endpoint local cannot be reached: 4 of 4 candidates undecided")
    after, _ = run(a_list(*FEW), lambda prompt: UNUSABLE["unknown ids"])
    assert "decides on no candidate (21 characters, 2 unknown ids)" in after.fallbacks[0].reason


def test_without_a_judge_the_fallback_says_what_to_set():
    after = LLMFilter()(a_list(*FEW))
    assert ids(after) == list(FEW)
    assert NO_JUDGE in after.fallbacks[0].reason
    assert "OPENAI_API_KEY" in NO_JUDGE


def test_a_judge_that_answers_too_few_prompts_leaves_the_rest_to_the_fallback():
    class Short(ScriptedJudge):
        def ask(self, prompts, **options):
            return super().ask(prompts, **options)[:1]

    before = a_list(*(Chunk(f"c{at}", text="word " * 300) for at in range(20)))
    after = dataclasses.replace(LLMFilter(), judge=Short(by_id({}, "DISCARD")))(before)
    assert "no answer came" in after.fallbacks[0].reason
    conserved(before, after)


def batches(count=24):
    return a_list(*(Chunk(f"c{at}", text="word " * 300) for at in range(count)))


@pytest.mark.parametrize("broken", ["first", "middle", "last"])
def test_where_one_prompt_fails_the_decided_stand_and_the_undecided_fill_up(broken):
    before = batches()
    prompts = LLMFilter(max_chunks=24).prompts(before)
    at = {"first": 0, "middle": len(prompts) // 2, "last": len(prompts) - 1}[broken]
    failing = {chunk.id for chunk in prompts[at].chunks}

    def script(prompt):
        if prompt.chunks[0].id in failing:
            return Said(error="endpoint local broke off")
        return by_id({"c0": "DISCARD", "c23": "DISCARD"}, "KEEP")(prompt)

    after, facts = run(before, script, max_chunks=24)
    undecided = {hit.chunk.id for hit in after.hits if hit.notes["LLMFilter"].startswith("kept by fallback")}
    assert undecided == failing
    assert set(ids(after)) == {hit.chunk.id for hit in before.hits} - ({"c0", "c23"} - failing)
    assert facts["undecided"] == len(failing)
    conserved(before, after)


def test_the_undecided_fill_up_to_max_chunks_in_all_and_no_further():
    before = batches(16)
    settings = {"max_chunks": 8, "oversample_multiplier": 2}
    last = LLMFilter(**settings).prompts(before)[-1]

    def script(prompt):
        if prompt.positions == last.positions:
            return by_id({chunk.id: "KEEP" for chunk in list(prompt.chunks)[:1]})(prompt)
        return Said(error="no")

    after, facts = run(before, script, **settings)
    assert ids(after) == [*(f"c{at}" for at in range(7)), last.chunks[0].id]
    assert facts["kept_by_fallback"] == 7
    assert "undecided and over max_chunks 8" in reason_of(after, "c7")
    conserved(before, after)


def test_an_answer_cut_at_the_length_limit_leaves_the_unmentioned_to_the_fallback():
    after, facts = run(
        a_list(*FEW), lambda prompt: Said('{"decisions":[{"id":1,"action":"DISCARD"},{"i', finish_reason="length")
    )
    assert ids(after) == ["b", "c", "d"]
    assert "length limit" in after.fallbacks[0].reason
    assert facts["not_mentioned"] == 0


def test_an_answer_under_the_least_coverage_is_a_failure():
    after, _ = run(a_list(*FEW), lambda prompt: "1 -> DISCARD", min_coverage=0.5)
    assert ids(after) == list(FEW)
    assert "mentions 25% of its candidates, expected 50%" in after.fallbacks[0].reason


def linked():
    return {
        "op": Chunk("op", "Operation", "t", ref_ids=("s1", "s2")),
        "s1": Chunk("s1", "Schema 1", "t", ref_ids=("s3",)),
        "s2": Chunk("s2", "Schema 2", "t", ref_ids=("op", "gone")),
        "s3": Chunk("s3", "Schema 3", "t", ref_ids=("s4",)),
        "s4": Chunk("s4", "Schema 4", "t"),
    }


def expanded(actions, listed=("op",), **settings):
    chunks = linked()
    before = a_list(*(chunks[name] for name in listed))
    stage = dataclasses.replace(LLMFilter(**settings), judge=ScriptedJudge(by_id(actions)), chunks=chunks)
    after = stage(before)
    conserved(before, after)
    return after


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("KEEP", ["op"]),
        ("EXPAND_1", ["op", "s1", "s2"]),
        ("EXPAND_2", ["op", "s1", "s2"]),
        ("EXPAND_3", ["op", "s1", "s2", "s3", "s4"]),
    ],
)
def test_an_expansion_brings_what_is_referred_to(action, expected):
    assert ids(expanded({"op": action})) == expected


def test_an_added_chunk_knows_whence_and_how_far_it_came():
    after = expanded({"op": "EXPAND_3"})
    assert [hit.origin for hit in after.hits] == [
        "",
        "expanded from op, 1 step",
        "expanded from op, 1 step",
        "expanded from op, 2 steps",
        "expanded from op, 3 steps",
    ]
    assert after.hits[1].notes["LLMFilter"] == "expanded from op, 1 step (EXPAND_3)"
    facts = after.steps[-1].facts
    assert (facts["expanded"], facts["added"], facts["references_missing"]) == (1, 4, 1)


def test_a_discarded_chunk_that_another_expansion_reaches_is_in_with_both_facts():
    after = expanded({"op": "EXPAND_1"}, listed=("op", "s1"))
    assert ids(after) == ["op", "s1", "s2"]
    note = after.hits[1].notes["LLMFilter"]
    assert "expanded from op, 1 step" in note
    assert "by itself DISCARD" in note
    assert reason_of(after, "s1") == "DISCARD; in again, expanded from op, 1 step"
    assert after.hits[1].rank == 2


def test_two_expansions_bring_a_chunk_once():
    after = expanded({"op": "EXPAND_3", "s1": "EXPAND_3"}, listed=("op", "s1"))
    assert ids(after) == ["op", "s1", "s2", "s3", "s4"]


def test_the_cap_on_added_chunks_holds():
    assert ids(expanded({"op": "EXPAND_5"}, max_total_chunks=2)) == ["op", "s1", "s2"]
    assert ids(expanded({"op": "EXPAND_5"}, max_total_chunks=0)) == ["op"]


def test_without_a_look_up_the_list_itself_is_one():
    chunks = linked()
    before = a_list(chunks["op"], chunks["s1"], chunks["s3"])
    after, facts = run(before, by_id({"op": "EXPAND_3"}))
    assert ids(after) == ["op", "s1", "s3"]
    assert facts["references_missing"] == 2


def test_isolated_mode_asks_about_one_at_a_time():
    judge = ScriptedJudge(by_id({"b": "KEEP"}))
    after = dataclasses.replace(LLMFilter(mode="isolated"), judge=judge)(a_list(*FEW))
    assert [len(prompt.chunks) for prompt in judge.asked[0]] == [1, 1, 1, 1]
    assert ids(after) == ["b"]


def test_switched_off_the_list_passes_and_nobody_is_asked():
    judge = ScriptedJudge(by_id({}))
    before = a_list(*FEW)
    after = dataclasses.replace(LLMFilter(enabled=False), judge=judge)(before)
    assert after.hits == before.hits
    assert after.steps[-1].facts["llm_intelligence_enabled"] is False
    assert not judge.asked


def test_another_order_that_decides_otherwise_is_flagged():
    def first_is_best(prompt):
        return "\n".join(f"{n} -> {'KEEP' if n == 1 else 'DISCARD'}" for n in range(1, len(prompt.chunks) + 1))

    after, facts = run(a_list(*FEW), first_is_best, check_order=True)
    assert ids(after) == ["a"]
    assert facts["order_flips"] == 2
    assert {notice.chunk_id for notice in after.notices if "depends on the order" in notice.text} == {"a", "d"}
    assert "decision depends on the order" in reason_of(after, "d")


def test_a_failed_second_look_is_counted_and_changes_nothing():
    def script(prompt):
        return Said(error="gone") if prompt.second else by_id({"a": "KEEP"})(prompt)

    after, facts = run(a_list(*FEW), script, check_order=True)
    assert ids(after) == ["a"]
    assert (facts["order_flips"], facts["unchecked_prompts"], facts["fallback_used"]) == (0, 1, False)


def test_another_floor_is_decided_on_the_stored_verdicts_without_asking():
    judge = ScriptedJudge(by_id({}, "KEEP"))
    before = a_list(*FEW, distances=[0.1, 0.3, 0.5, 0.69], metric=Metric.COSINE)
    stage = dataclasses.replace(LLMFilter(min_relevance_threshold=0.4), judge=judge)
    asked = stage.ask(before)
    higher, facts = dataclasses.replace(stage, min_relevance_threshold=0.6).decide(before, asked)
    assert ids(higher) == ["a", "b"]
    assert facts["stored_decisions"] is True
    lower, _ = dataclasses.replace(stage, min_relevance_threshold=0.2).decide(before, asked)
    assert ids(lower) == ["a", "b", "c"]
    assert "under other settings" in reason_of(lower, "d")
    assert len(judge.asked) == 1


def test_a_report_of_what_would_have_kept_a_chunk_asks_nobody():
    from rag_core.stage import Pipeline, counterfactuals

    judge = ScriptedJudge(by_id({}, "KEEP"))
    pipeline = Pipeline((dataclasses.replace(LLMFilter(max_chunks=2, oversample_multiplier=1.5), judge=judge),))
    before = a_list(*FEW)
    pipeline(before)
    found = counterfactuals(pipeline, before)
    assert len(judge.asked) == 1
    assert found["c", ""][0].value == 3
    assert found["c", ""][0].parameter == "max_chunks"
    assert found["d", ""][0].parameter == "oversample_multiplier"


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("oversample_multiplier", 0.9),
        ("timeout_ms", 0),
        ("max_chunks", 0),
        ("mode", "batch"),
        ("variant", "nope"),
        ("min_coverage", 2),
    ],
)
def test_a_setting_out_of_range_is_named_with_its_value(setting, value):
    with pytest.raises(SpecError, match=f"LLMFilter.{setting} is {value!r}"):
        make_stage("LLMFilter", {setting: value})


@given(
    actions=st.lists(st.sampled_from([*ACTIONS, "MAYBE", None]), min_size=1, max_size=30),
    max_chunks=st.integers(1, 10),
    broken=st.floats(0, 1),
    seed=st.integers(0, 1000),
)
def test_every_candidate_is_kept_or_dropped_exactly_once(actions, max_chunks, broken, seed):
    dice = random.Random(seed)
    names = [f"c{at}" for at in range(len(actions))]
    chunks = [Chunk(name, text="word " * 250, ref_ids=tuple(dice.choices([*names, "x"], k=2))) for name in names]

    def script(prompt):
        if dice.random() < broken / 2:
            return Said(error="broken")
        lines = [f"{at} -> {said[chunk.id]}" for at, chunk in enumerate(prompt.chunks, 1) if said[chunk.id]]
        return "\n".join(lines)

    said = dict(zip(names, actions, strict=True))
    before = a_list(*chunks)
    after, facts = run(before, script, max_chunks=max_chunks, oversample_multiplier=2)
    conserved(before, after)
    base = [hit for hit in after.hits if not hit.origin]
    assert len(base) <= max_chunks
    assert facts["filtered_count"] == len(base)
    assert facts["fallback_used"] == bool(after.fallbacks)
    if after.fallbacks:
        assert after.hits


def test_verdicts_that_are_handed_in_are_decided_on_without_a_judge():
    before = a_list(*FEW, distances=[0.1, 0.2, 0.3, 0.6], metric=Metric.COSINE)
    judge = ScriptedJudge(by_id({"a": "KEEP", "d": "KEEP"}))
    asked = dataclasses.replace(LLMFilter(), judge=judge).ask(before)
    known = dataclasses.replace(LLMFilter(min_relevance_threshold=0.5), asked=asked)(before)
    assert ids(known) == ["a"]
    assert reason_of(known, "d") == "cosine similarity 0.4000 < 0.5000: not judged"
    assert len(judge.asked) == 1


def test_a_hit_that_handed_in_verdicts_do_not_know_goes_as_not_judged():
    asked = dataclasses.replace(LLMFilter(), judge=ScriptedJudge(by_id({}, "KEEP"))).ask(a_list("a", "b"))
    after = dataclasses.replace(LLMFilter(), asked=asked)(a_list("a", "b", "c"))
    assert ids(after) == ["a", "b"]
    assert reason_of(after, "c") == "not judged: the model was asked under other settings"
