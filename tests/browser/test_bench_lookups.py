"""What the Bench shows while a knob is dragged, in one Chromium page fed with the payloads of random projects.

Beside it stands Python: the plain pipeline at the same value, stage by stage, its figures written with Python's own
formatting. Compared are the figures of both lines, their changes against B, the counts, the kept rows and, at zoom All,
every question's F₁.
"""

import base64
import math
import random
import shutil
from dataclasses import replace

import pytest

from pages.bench import payload, sight
from pages.bench.component import ASSETS
from rag_core.errors import InputError
from rag_core.filters.cutoff import TopK
from rag_core.measure.experiment import kept_ids, run
from rag_core.measure.measures import SET_MEASURES
from rag_core.project.project import open_project
from rag_core.project.session import Session
from rag_core.records import dump_lists
from rag_core.retrieve.dense import Dense
from rag_core.retrieve.hybrid import Hybrid
from rag_core.retrieve.lexical import Lexical
from rag_core.spec import dump_stages
from rag_core.stage import Pipeline
from rag_core.tune.steps import with_setting
from tests.browser.test_bench_component import counted, line, written
from tests.tune.test_steps import random_case, random_pipeline

BARE = """<!doctype html><title>bench</title><div id="parent"><div class="bench"></div></div>
<script>
  window.requestAnimationFrame = (paint) => setTimeout(paint, 0); // a frame is a turn: thousands of them
</script>
<script type="module">
  import bench from "/bench.js";
  const parentElement = document.querySelector("#parent");
  window.show = (text) => bench({
    parentElement, data: Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)), setTriggerValue: () => {},
  });
</script>"""

DRAG = """async ([data, moves]) => {
  const turn = () => new Promise((done) => setTimeout(done, 0));
  const stop = show(data), bench = document.querySelector('.bench'), seen = [];
  await turn();
  const texts = (selector) => [...bench.querySelectorAll(selector)].map((node) => node.textContent);
  for (const [stage, setting, position] of moves) {
    const input = bench.querySelector(`[data-focus="knob:${stage}:${setting}"]`);
    input.dispatchEvent(new PointerEvent('pointerdown'));
    input.value = position;
    input.dispatchEvent(new Event('input', { bubbles: true }));
    await turn();
    await turn();
    seen.push({
      all: texts('.line.all .figure'), one: texts('.line.one .figure'), counts: texts('.tally:not([hidden])'),
      head: bench.querySelector('.side-head').textContent, against: texts('.line.all .delta'), value: input.getAttribute('aria-valuetext'),
      kept: Object.fromEntries([...bench.querySelectorAll('.row[data-id]:not([hidden])')].map(
        (row) => [row.dataset.id, row.firstChild.dataset.kept])),
      f: Object.fromEntries([...bench.querySelectorAll('.question[data-id]:not([hidden])')].map(
        (row) => [row.dataset.id, row.querySelector('.cell-f').textContent])),
    });
  }
  stop();
  bench.replaceChildren();
  return seen;
}"""


@pytest.fixture(scope="module")
def bare(window):
    """A page that holds the component's own files and nothing else."""
    page = window.new_page()

    def answer(route):
        name = route.request.url.rsplit("/", 1)[-1]
        if not name:
            return route.fulfill(content_type="text/html", body=BARE)
        return route.fulfill(content_type="text/javascript", body=(ASSETS / name).read_text(encoding="utf-8"))

    page.route("http://bench.test/*", answer)
    page.goto("http://bench.test/")
    page.wait_for_function("() => window.show")
    yield page
    page.close()


def random_project(dice, folder):
    """A project of a few recorded lists, all on dev."""
    cases = [random_case(dice, number, "plain") for number in range(dice.randint(2, 6))]
    folder.mkdir(parents=True)
    (folder / "meta.yaml").write_text(f"version: 1\nname: {folder.name}\ntitle: {folder.name}\n")
    (folder / "project.yaml").write_text("version: 1\nsource: {kind: lists}\nsplit: {held_out: 0.001}\n")
    (folder / "lists.jsonl").write_text("\n".join(dump_lists(cases)))
    return Session(open_project(folder.name, folder.parents[1]))


def moves_of(dice, session, pipeline, most):
    """The payload of the pipeline on this project, and random positions of each of its knobs; None: A cannot run."""
    b = Pipeline((*pipeline.stages[:1], TopK(dice.randint(1, 6))), label="fixed")
    case = dice.choice(session.dev)
    seen = sight.look(session, {"A": pipeline, "B": b}, case.query.id)
    if "A" not in seen.outcomes or "B" not in seen.outcomes:
        return None
    dear = [key for key, (knob, steps) in sight.steps_of(seen).items() if steps is None]
    grabbed = dice.choice(dear) if dear else None
    steps = sight.steps_of(seen, grabbed)
    zoom = dice.choice(["one", "one", "all"])
    packed = payload.pack(
        sight.payload_of(
            seen, sight.listed_stages(pipeline, ()), steps, version=1, zoom=zoom, lens="threshold", grabbed=grabbed
        )
    )
    moves = [
        (place, setting, at, float(knob.positions[at]), knob.digits)
        for (place, setting), (knob, function) in steps.items()
        if function is not None
        for at in dice.sample(range(len(knob.positions)), min(most, len(knob.positions)))
    ]
    return packed, moves, case, b, zoom


def plainly(session, cases, pipeline):
    """(means and kept, F₁ by question, kept ids by question, figures by question) of the plain pipeline."""
    outcomes = run(cases, session.ready(pipeline), session.min_grade, SET_MEASURES)
    values = [[outcome.scores.values[one.name] for one in SET_MEASURES] for outcome in outcomes.outcomes]
    kept = [outcome.scores.kept for outcome in outcomes.outcomes]
    means = [outcomes.summary.means[one.name] for one in SET_MEASURES]
    nan = [[math.nan if value is None else value for value in row] for row in [means, *values]]
    return (
        [*nan[0], sum(kept) / len(kept)],
        [row[2] for row in nan[1:]],
        [set(kept_ids(outcome.result)) for outcome in outcomes.outcomes],
        [[*row, count] for row, count in zip(nan[1:], kept, strict=True)],
    )


def change(a, b, writing):
    """A against B as the line writes it."""
    if math.isnan(a) or math.isnan(b):
        return ""
    text = writing(abs(a - b))
    return "=" if not set("123456789") & set(text) else f"{'▲' if a > b else '▼'}\u2009{text}"


def compare(page, dice, session, pipeline, most=3):
    """Compare; how many positions there were, and of which (stage, setting)."""
    drawn = moves_of(dice, session, pipeline, most)
    if drawn is None or not drawn[1]:
        return 0, set()
    packed, moves, case, b, zoom = drawn
    shown = page.evaluate(DRAG, [base64.b64encode(packed).decode(), [list(move[:3]) for move in moves]])
    captured = session.capture(pipeline, session.dev)
    sight_at = [one.query.id for one in captured].index(case.query.id)
    rival, rival_f, _, _ = plainly(session, session.capture(b, session.dev), b)
    for (place, setting, _, value, digits), seen in zip(moves, shown, strict=True):
        told = (dump_stages(pipeline), setting, value)
        assert seen["value"] == ("0" if value == 0 else f"{value:.{digits}f}".replace("0.", ".", value < 1)), told
        try:
            changed = with_setting(pipeline, place, setting, value)
            lists = session.capture(changed, session.dev) if session.live else captured  # another depth is searched
            means, f, kept, one = plainly(session, lists, changed)
        except InputError:  # the stage refuses the value on these lists
            assert seen["all"] == ["–"] * 4, told
            continue
        assert seen["all"] == line(means), told
        assert seen["one"] == line(one[sight_at]), told
        writings = [written] * 3 + [counted]
        assert seen["against"] == [change(*pair) for pair in zip(means, rival, writings, strict=True)], told
        differences = [x - y for x, y in zip(f, rival_f, strict=True) if not math.isnan(x - y)]
        better, worse = sum(x > 1e-9 for x in differences), sum(x < -1e-9 for x in differences)
        assert seen["counts"] == [
            f"▲ {better} better", f"▼ {worse} worse", f"= {len(differences) - better - worse} same"
        ], told  # fmt: skip
        if zoom == "all":
            every = {one.query.id: written(value) for one, value in zip(captured, f, strict=True)}
            assert seen["f"].items() <= every.items(), told
            assert len(seen["f"]) >= min(10, len(every)), told
        else:
            assert {id_ for id_, stays in seen["kept"].items() if stays == "true"} == kept[sight_at] & {
                *seen["kept"]
            }, told
            came = {hit.chunk.id for hit in captured[sight_at].candidates.hits}
            # only rows in sight are drawn; a chunk that a stage would bring is drawn when the knob is let go
            assert kept[sight_at] & came <= {*seen["kept"]} or len(seen["kept"]) > 12, told
            if seen["kept"]:
                assert f"{seen['head']} ".partition(" keeps ")[2].split()[0] == counted(one[sight_at][3]), told
    return len(moves), {(pipeline.stages[place].name, setting) for place, setting, *_ in moves}


@pytest.mark.parametrize(
    "projects", [30, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(1500)])], ids="{} projects".format
)
def test_a_dragged_knob_shows_what_the_plain_pipeline_gives(bare, tmp_path, projects):
    dice, positions, knobs = random.Random(projects), 0, set()
    for number in range(projects):
        folder = tmp_path / "eval_sets" / f"p{number}"
        session = random_project(dice, folder)
        count, moved = compare(bare, dice, session, random_pipeline(dice, "plain"))
        positions, knobs = positions + count, knobs | moved
        shutil.rmtree(folder)
    print(f"\n{projects} projects, {positions} positions of {len(knobs)} knobs: {sorted(knobs)}")
    assert positions > 3 * projects


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    session = Session(open_project("demo", tmp_path_factory.mktemp("workspace")))
    session.refresh()
    return session


@pytest.mark.parametrize("pipelines", [2, pytest.param(20, marks=pytest.mark.slow)], ids="{} pipelines".format)
def test_and_of_a_source_that_is_searched(bare, demo, pipelines):
    dice, knobs = random.Random(pipelines), set()
    for at in range(pipelines):
        source = (Hybrid(depth=60), Lexical(depth=50), Dense(depth=40))[at % 3]
        drawn = random_pipeline(dice, "plain")
        stages = [stage for stage in drawn.stages if stage.kind not in ("rewrite", "source")]
        _, moved = compare(bare, dice, demo, replace(drawn, stages=(source, *stages)), most=1)
        knobs |= moved
    print(f"\n{pipelines} pipelines over the demo: {sorted(knobs)}")
    assert "Hybrid" in {name for name, _ in knobs}
