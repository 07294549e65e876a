"""A result in a notebook: a frame, a table and a figure with the very figures of the session; texts are no HTML."""

from dataclasses import replace

import pytest

from rag_core import Session, open_project


def tallies(tmp_path):
    session = Session(open_project("recorded-combat", tmp_path))
    return session, session.measure([session.pipeline("query-must"), session.pipeline("fixed-15")])


def test_frame_table_and_figure_hold_what_the_session_measured(tmp_path):
    session, (ours, fixed) = tallies(tmp_path)
    frame = ours.to_frame()
    assert list(frame.index) == [case.query.id for case in session.cases]
    assert list(frame["SetF"]) == ours.values("SetF")
    assert frame["SetF"].mean() == pytest.approx(ours.summary.means["SetF"], abs=1e-12)
    assert (frame["kept"] <= fixed.to_frame()["kept"]).all()
    (bars,) = ours.plot().data
    assert sorted(bars.y, reverse=True) == list(bars.y) == sorted(ours.values("SetF"), reverse=True)


def test_the_table_escapes_what_a_question_says(tmp_path):
    _, (ours, _) = tallies(tmp_path)
    hostile = replace(ours, queries=(replace(ours.queries[0], query="<script>alert(1)</script>"),))
    assert "<script>" not in hostile._repr_html_()


def test_a_pipeline_without_a_question_has_an_empty_frame(tmp_path):
    _, (ours, _) = tallies(tmp_path)
    assert replace(ours, queries=()).to_frame().empty
