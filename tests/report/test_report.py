import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rag_core.cli import main
from rag_core.compare.run_file import read_run
from rag_core.compare.snapshot import About, Recorder
from rag_core.eval_sets.reading import SHIPPED
from rag_core.filters.cutoff import TopK
from rag_core.filters.query_must import QueryMust
from rag_core.measure.experiment import stream
from rag_core.report import report_html
from rag_core.report.page import contrasts, fall, label_words, losses, scale, strip
from rag_core.stage import Pipeline
from tests import random_pipelines as made

COMBAT = str(SHIPPED / "recorded-combat" / "lists.jsonl")
HOSTILE = '</summary><script>fetch("//evil.example/")</script><img src=x onerror=alert(1)>{{ 1234567 * 3 }}'
PIPELINES = [Pipeline((TopK(9),), label="nine"), Pipeline((QueryMust(), TopK(4)), label="rules")]


def run_over(cases, pipelines=PIPELINES, about=About("a run", "random")):  # noqa: B008  a frozen value
    recorder = Recorder(pipelines, 1, about)
    for outcomes in stream(cases, pipelines):
        recorder.add(outcomes)
    return recorder.run()


RUN = run_over(made.random_cases(1, 12))


class Seen(HTMLParser):
    """Tags, addresses and visible text of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.addresses, self.text, self.handlers = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href", "data", "action", "srcset")]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]

    def handle_data(self, data):
        self.text.append(data)


def seen(html):
    found = Seen()
    found.feed(html)
    return found


def test_the_page_holds_no_script_and_no_address():
    found = seen(report_html(RUN))
    assert not {"script", "link", "iframe", "img", "object", "embed", "form"} & set(found.tags)
    assert (found.addresses, found.handlers) == ([], [])
    assert "url(" not in report_html(RUN)
    assert "@import" not in report_html(RUN)


def hostile_run():
    case = made.random_cases(1, 1)[0]
    hits = tuple(
        replace(hit, chunk=replace(hit.chunk, id=f"{HOSTILE}{hit.rank}", title=HOSTILE)) for hit in case.candidates.hits
    )
    query = replace(case.query, text=HOSTILE)
    start = replace(case.candidates, hits=hits, query=query)
    grades = {hit.chunk.id: 1 for hit in hits}
    pipelines = [replace(one, label=HOSTILE) for one in PIPELINES]
    hostile = replace(case, query=query, candidates=start, grades=grades)
    return run_over([hostile], pipelines, About(HOSTILE, HOSTILE))


def test_hostile_text_is_shown_as_text():
    run = hostile_run()
    found = seen(report_html(run, [("2026", HOSTILE, HOSTILE)]))
    assert not {"script", "img"} & set(found.tags)
    assert found.handlers == []
    assert "".join(found.text).count(HOSTILE) > 8
    assert "3703701" not in report_html(run)


def test_the_table_holds_the_means_and_the_difference():
    html = report_html(RUN)
    text = " ".join(" ".join(seen(html).text).split())
    for one in RUN.pipelines:
        assert f"{one.means['SetF']:.3f}" in text
    assert "baseline" in text
    assert "corrected (Holm)" in text


def test_queries_are_told_by_how_much_the_pipelines_differ():
    spreads = [told.spread for told in contrasts(RUN)]
    assert spreads == sorted(spreads, reverse=True)
    assert len(spreads) == 12


def test_reasons_stand_beside_what_is_not_kept():
    lost = [one for told in contrasts(RUN) for side in told.sides for one in side.lost]
    assert any(reason.startswith("QueryMust: no word of") for *_, reason in lost)
    assert lost[0][3].split(":")[0] in report_html(RUN)


def test_long_runs_are_cut_and_say_so():
    html = report_html(run_over(made.random_cases(2, 55)))
    assert html.count('<div class="sides">') == 40
    assert "15 more are in the run file" in html


def test_a_waterfall_adds_up():
    for one in RUN.pipelines:
        (_, relevant), *lost, (_, kept) = losses(one)
        assert relevant - sum(count for _, count in lost) == kept


def test_bars_by_hand():
    first, lost, kept = fall([("relevant", 4), ("lost at TopK", 1), ("kept", 3)])
    assert (first.x, first.width) == (scale(0), scale(1) - scale(0))
    assert (lost.x, lost.width) == (scale(0.75), pytest.approx(scale(0.25) - scale(0)))
    assert (kept.x, kept.width) == (scale(0), pytest.approx(scale(0.75) - scale(0)))


def test_a_strip_keeps_its_ends_and_is_bounded():
    bars = strip([at / 5000 - 0.5 for at in range(5000)])
    assert len(bars) == 400
    assert (bars[0].good, bars[-1].good) == (False, True)


def test_labels_are_words_not_colours():
    assert [label_words(grade, 2) for grade in (None, 0, 1, 2)] == [
        "? unjudged",
        "○ irrelevant",
        "○ irrelevant",
        "● relevant",
    ]


def test_a_changed_run_says_so():
    document = json.loads(json.dumps(RUN.document))
    document["name"] = "another"
    assert "this run was changed after it was made" in report_html(read_run(document, "x"))
    assert "was changed" not in report_html(RUN)


def test_a_run_of_one_pipeline_without_labels_has_a_page():
    cases = [replace(case, grades={}) for case in made.random_cases(3, 2)]
    assert "<h2>Means</h2>" in report_html(run_over(cases, PIPELINES[:1]))


def test_the_command_writes_the_page_of_a_file_and_of_a_stored_run(tmp_path, capsysbinary, monkeypatch):
    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path / "ws"))
    run, out = tmp_path / "run.json", tmp_path / "report.html"
    assert main(["replay", COMBAT, "--pipeline", "query-must", "--save-run", "--run-out", str(run)]) == 0
    capsysbinary.readouterr()
    assert main(["report", str(run), "--out", str(out), "--json"]) == 0
    found = json.loads(capsysbinary.readouterr().out)
    assert found["bytes"] == out.stat().st_size
    assert main(["runs", "note", found["run"], "worth sending", "--author", "ann"]) == 0
    assert main(["report", found["run"], "--out", str(out)]) == 0
    assert "worth sending" in out.read_text(encoding="utf-8")


def test_every_attribute_of_the_template_is_quoted():
    template = (Path(__file__).parents[2] / "rag_core" / "report" / "page.html").read_text(encoding="utf-8")
    assert not re.search(r"=\{\{", template)
