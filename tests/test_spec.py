import json

import pytest

from rag_core.errors import InputError, SpecError
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import TopK
from rag_core.spec import (
    dump_stages,
    fingerprint,
    parse_pipeline,
    read_pipeline,
    saved_names,
    setting_fields,
    shipped_names,
    with_settings,
)


def test_a_bare_list_and_bare_names_are_accepted():
    assert parse_pipeline(["TopK", {"AdaptiveGap": None}]).stages == (TopK(), AdaptiveGap())


def test_dumped_settings_have_all_defaults_filled_in():
    (dumped,) = dump_stages(parse_pipeline(["AdaptiveGap"]))
    assert dumped["AdaptiveGap"] == {name: getattr(AdaptiveGap(), name) for name in setting_fields(AdaptiveGap)}
    assert {"gap_threshold": 0.1, "distance_offset": 0.4, "min_results": 2, "max_results": 15}.items() <= dumped[
        "AdaptiveGap"
    ].items()


def test_policy_relative_has_its_own_default_threshold():
    assert parse_pipeline([{"AdaptiveGap": {"gap_policy": "relative"}}]).stages[0].gap_threshold == 0.25


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (["Nope"], "unknown stage 'Nope', expected one of AdaptiveGap"),
        ([{"TopK": {"kk": 1}}], "unknown setting 'kk' of TopK, expected one of k"),
        ([{"TopK": 3}], "TopK has 3, expected a mapping of settings"),
        ([{"TopK": {}, "AdaptiveGap": {}}], "expected a stage name or a mapping of one name"),
        ({"stages": {}}, "stages is {}, expected a list"),
        ({"stages": [], "version": 2}, "version 2, expected 1"),
        ({"stages": [], "extra": 1}, "unknown key 'extra'"),
        ("text", "is str, expected a mapping with stages"),
        (None, "is empty, expected a mapping with stages"),
    ],
)
def test_a_wrong_spec_is_one_sentence(spec, message):
    with pytest.raises(SpecError, match=message):
        parse_pipeline(spec)


def test_reading_from_yaml_json_inline_and_shipped_name(tmp_path):
    (tmp_path / "a.yaml").write_text("name: a\nstages:\n  - TopK: {k: 3}\n")
    (tmp_path / "b.json").write_text(json.dumps({"stages": [{"TopK": {"k": 3}}]}))
    assert (
        read_pipeline(str(tmp_path / "a.yaml"))
        == read_pipeline(str(tmp_path / "b.json"))
        == read_pipeline('[{"TopK": {"k": 3}}]')
    )
    assert read_pipeline(str(tmp_path / "b.json")).label == "b"
    assert all(read_pipeline(name).label == name for name in shipped_names())


def test_a_missing_file_lists_the_shipped_pipelines():
    with pytest.raises(InputError, match="unfiltered"):
        read_pipeline("no-such-pipeline")


def test_yaml_bombs_and_duplicate_keys_are_refused(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("a: &x [1]\nstages: [*x]\n")
    with pytest.raises(InputError, match="alias"):
        read_pipeline(str(path))
    path.write_text("stages: []\nstages: []\n")
    with pytest.raises(InputError, match="not valid YAML"):
        read_pipeline(str(path))


def test_fingerprint_ignores_the_name_and_sees_the_settings():
    a, b = parse_pipeline({"name": "a", "stages": ["TopK"]}), parse_pipeline({"name": "b", "stages": ["TopK"]})
    assert fingerprint(a) == fingerprint(b) != fingerprint(with_settings(a, TopK, k=3))


def test_a_short_option_for_a_stage_the_spec_lacks_names_the_stage():
    with pytest.raises(SpecError, match="no stage AdaptiveGap, it has TopK"):
        with_settings(parse_pipeline(["TopK"]), AdaptiveGap, gap_threshold=0.2)


def test_a_filter_before_the_source_is_refused():
    with pytest.raises(SpecError, match="TopK stands before the source"):
        parse_pipeline(["TopK", "Dense"])


def test_a_pipeline_saved_in_the_workspace_is_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path))
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "mine.yaml").write_text("stages: [{TopK: {k: 3}}]")
    (tmp_path / "pipelines" / "fixed-15.yaml").write_text("stages: [{TopK: {k: 4}}]")
    assert read_pipeline("mine").stages[0].k == 3
    assert saved_names() == ["mine"]  # a shipped name keeps its meaning
    assert read_pipeline("fixed-15").stages[-1].k == 15
    with pytest.raises(InputError, match="mine"):
        read_pipeline("yours")


def test_a_file_of_the_same_name_does_not_hide_a_shipped_pipeline(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hybrid").write_text("stages: [{TopK: {k: 1}}]")
    assert [stage.name for stage in read_pipeline("hybrid").stages][-1] == "TopK"
    assert read_pipeline("hybrid").stages[-1].k == 15


def test_a_name_that_no_file_can_have_is_an_input_error():
    with pytest.raises(InputError, match="is no file"):
        read_pipeline("h" * 5000)


def test_a_number_that_no_float_holds_is_refused_and_not_written_out():
    with pytest.raises(SpecError, match=r"TopK\.k is a number of 3\d{3} bits, expected a whole number"):
        parse_pipeline([{"TopK": {"k": 10**1000}}])
