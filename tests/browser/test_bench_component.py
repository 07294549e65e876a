"""The upper Bench in Chromium: what it shows while a knob is dragged is what the plain pipeline gives at each position."""

import ast

import pytest

from pages.bench.payload import count_changes
from tests.browser import bench_app
from tests.browser.conftest import start_app
from tests.browser.hands import middle, settle, until

SET = "recorded-combat"
STEP = """async ([setting, position]) => {
  const bench = [...document.querySelectorAll('*')].map((node) => node.shadowRoot?.querySelector('.bench')).find(Boolean);
  const input = bench.querySelector(`input[data-setting=${setting}]`);
  input.dispatchEvent(new PointerEvent('pointerdown'));
  input.value = position;
  input.dispatchEvent(new Event('input', { bubbles: true }));
  await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  const texts = (selector) => [...bench.querySelectorAll(selector)].map((node) => node.textContent);
  return {
    all: texts('.line.all .figure'), one: texts('.line.one .figure'), counts: texts('.tally'),
    kept: Object.fromEntries([...bench.querySelectorAll('.row:not([hidden])')].map((row) => [row.dataset.id, row.firstChild.dataset.kept])),
    value: bench.querySelector(`.knob:has(input[data-setting=${setting}]) .knob-value`).textContent,
  };
}"""


@pytest.fixture(scope="module")
def bench_url(browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    with open(folder / "app.log", "wb") as log:
        process, url = start_app(folder, log, "tests/browser/bench_app.py")
        yield url
        process.terminate()
        process.wait(timeout=60)


@pytest.fixture
def bench(page, bench_url):
    page.goto(bench_url)
    page.locator(".bench .row").first.wait_for()
    settle(page)
    return page


def log_of(page):
    return ast.literal_eval(page.locator("#log").inner_text())


def written(value):
    return "–" if value != value else f"{value:.3f}".removeprefix("0") if value < 1 else f"{value:.3f}"


def counted(value):
    return str(int(value)) if value == int(value) else f"{value:.1f}"


def line(values):
    return [*map(written, values[:3]), counted(values[3])]


@pytest.mark.parametrize("place", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_figures_and_rows_while_dragging_are_those_of_the_plain_pipeline(bench, place):
    if place:
        bench.keyboard.press("Escape")
        bench.locator(".line.one button[title^=Next]").click()
        bench.locator(".line-note", has_text=f"{place + 1} of 3").wait_for()
        settle(bench)
    state = {**bench_app.start(), "question": place}
    cases = bench_app.cases(SET)
    stages = [stage for stage, _ in state["stages"]]
    baseline = bench_app.np.array([bench_app.measured(bench_app.TopK(15), case, state)[0][2] for case in cases])
    ids = [hit.chunk.id for hit in cases[place].candidates.hits]
    for (owner, setting), (_, digits, values) in bench_app.KNOBS.items():
        if owner != "AdaptiveGap":
            continue
        positions = bench_app.np.unique(bench_app.np.append(values, float(getattr(stages[1], setting))))
        steps = bench_app.steps_of(stages, 1, setting, positions, cases, place, baseline, state)
        for position, value in enumerate(positions):
            shown = bench.evaluate(STEP, [setting, position])
            assert shown["all"] == line(steps.means[:, position])
            assert shown["one"] == line(steps.one[:, position])
            better, worse, same = count_changes(steps.per_question[:, position], baseline)
            assert shown["counts"] == [f"▲ {better} better", f"▼ {worse} worse", f"= {same} same"]
            kept = {id_: "true" if steps.kept[row, position] else "false" for row, id_ in enumerate(ids)}
            assert shown["kept"].items() <= kept.items()
            assert len(shown["kept"]) > 6
            assert shown["value"] == (f"{value:.{digits}f}".removeprefix("0") if value else "0")
        bench.evaluate(STEP, [setting, int(positions.searchsorted(float(getattr(stages[1], setting))))])
    assert [entry for entry in log_of(bench) if entry[0] == "set"] == []  # nothing was let go


def test_a_drag_by_hand_is_told_once_and_stays_where_it_was_left(bench):
    slider = bench.locator("input[data-setting=gap_threshold]")
    x, y = middle(slider)
    width = slider.bounding_box()["width"]
    bench.mouse.move(x - width / 6, y)
    bench.mouse.down()
    for part in range(20):
        bench.mouse.move(x - width / 6 + part * width / 40, y)
    assert log_of(bench) == []
    before = bench.locator(".knob:has(input[data-setting=gap_threshold]) .knob-value").inner_text()
    line_before = bench.locator(".line.all .figure").all_inner_texts()
    bench.mouse.up()
    until(bench, lambda: len(log_of(bench)) == 1)
    settle(bench)
    ((kind, said),) = log_of(bench)
    assert (kind, said["stage"], said["setting"]) == ("set", 1, "gap_threshold")
    assert f"{said['value']:.4f}".removeprefix("0") == before
    assert bench.locator(".knob:has(input[data-setting=gap_threshold]) .knob-value").inner_text() == before
    assert bench.locator(".line.all .figure").all_inner_texts() == line_before
    assert bench.locator(".bench.waiting").count() == 0


def test_the_dashed_line_is_the_same_knob(bench):
    x, y = middle(bench.locator("[data-line=gap_threshold] .grip"))
    bench.mouse.move(x, y)
    bench.mouse.down()
    bench.mouse.move(x, y - 40, steps=5)
    bench.mouse.up()
    until(bench, lambda: log_of(bench))
    assert log_of(bench)[0][1]["setting"] == "gap_threshold"
    assert log_of(bench)[0][1]["value"] > 0.02


def test_a_value_between_the_positions_can_be_typed(bench):
    knob = bench.locator(".knob:has(input[data-setting=gap_threshold])")
    knob.locator(".knob-value").click()
    bench.keyboard.type("0.0213")
    bench.keyboard.press("Enter")
    until(bench, lambda: log_of(bench))
    settle(bench)
    assert log_of(bench) == [["set", {"stage": 1, "setting": "gap_threshold", "value": 0.0213}]]
    assert knob.locator(".knob-value").inner_text() == ".0213"
    knob.locator(".knob-value").click()
    bench.keyboard.type("3")
    bench.keyboard.press("Escape")
    assert len(log_of(bench)) == 1


def test_arrow_keys_move_a_knob_and_are_told_when_they_rest(bench):
    bench.locator("input[data-setting=max_results]").focus()
    for _ in range(3):
        bench.keyboard.press("ArrowLeft")
    until(bench, lambda: log_of(bench))
    assert log_of(bench) == [["set", {"stage": 1, "setting": "max_results", "value": 12}]]
    settle(bench)
    assert (
        bench.evaluate(
            "() => [...document.querySelectorAll('*')].map((n) => n.shadowRoot?.activeElement?.dataset.setting).find(Boolean)"
        )
        == "max_results"
    )


def test_single_keys_walk_label_turn_and_swap(bench):
    bench.locator(".row").first.focus()
    bench.keyboard.press("j")
    bench.keyboard.press("ArrowDown")
    bench.keyboard.press("2")
    bench.keyboard.press("k")
    bench.keyboard.press("0")
    until(bench, lambda: len(log_of(bench)) == 2)
    labels = log_of(bench)
    assert [(kind, said["id"], said["grade"]) for kind, said in labels] == [
        ("label", "combat-1-03", 2),
        ("label", "combat-1-02", 0),
    ]
    assert all(said["pressed_at"] > 1.6e12 for _, said in labels)
    assert bench.locator(".row[data-id=combat-1-03] .grade[aria-pressed=true]").inner_text() == "2"
    bench.keyboard.press("x")
    bench.keyboard.press("]")
    until(bench, lambda: len(log_of(bench)) == 4)
    assert [kind for kind, _ in log_of(bench)[2:]] == ["swap", "question"]
    bench.locator(".line-note", has_text="2 of 3").wait_for()
    bench.locator("button.keys").click()
    bench.locator(".row").first.focus()
    bench.keyboard.press("[")
    bench.keyboard.press("3")
    settle(bench)
    assert len(log_of(bench)) == 4


def test_labels_pressed_faster_than_python_answers_are_all_there(bench):
    bench.locator(".row").first.focus()
    for grade in "0123012301":
        bench.keyboard.press(grade)
        bench.keyboard.press("j")
    until(bench, lambda: len(log_of(bench)) == 10)
    assert [said["grade"] for _, said in log_of(bench)] == [int(grade) for grade in "0123012301"]
    assert [said["id"] for _, said in log_of(bench)] == [f"combat-1-{number:02}" for number in range(1, 11)]


def test_stages_are_switched_moved_removed_and_added(bench):
    bench.get_by_role("switch", name="Adaptive cut on").click()
    until(bench, lambda: bench.locator("input[type=range]").count() == 0)
    first = bench.locator(".stage").first
    first.hover()
    first.get_by_role("button", name="Move down Rules").click()
    until(bench, lambda: bench.locator(".stage-title").first.inner_text() == "Adaptive cut")
    bench.locator(".stage").first.get_by_role("button", name="Settings of Adaptive cut").click()
    bench.locator(".stage").first.hover()
    bench.get_by_role("button", name="Remove Adaptive cut").click()
    until(bench, lambda: bench.locator(".stage").count() == 1)
    bench.get_by_role("button", name="stage", exact=True).click()
    until(bench, lambda: bench.locator(".stage").count() == 2)
    assert [kind for kind, _ in log_of(bench)] == ["toggle", "move", "drawer", "remove", "add"]


def test_a_dear_knob_asks_when_it_is_grabbed_and_then_has_figures(page, bench_url):
    page.goto(f"{bench_url}/?dear=max_results")
    page.locator(".bench .row").first.wait_for()
    settle(page)
    page.evaluate(STEP, ["max_results", 1])
    until(page, lambda: log_of(page))
    assert log_of(page) == [["grab", {"stage": 1, "setting": "max_results"}]]
    settle(page)
    assert page.evaluate(STEP, ["max_results", 2])["value"] == "4"
    assert page.locator(".bench.unknown").count() == 0
    assert len(log_of(page)) == 1


def test_all_questions_stand_worst_first_and_are_filtered_by_their_counts(bench):
    bench.get_by_role("button", name="All", exact=True).click()
    bench.locator(".question").first.wait_for()
    settle(bench)
    deltas = bench.locator(".question:not([hidden]) .change .delta").all_inner_texts()
    signed = [float(text[2:]) * (1 if text[0] == "▲" else -1) for text in deltas]
    assert len(signed) == 3
    assert signed == sorted(signed)
    bench.locator(".tally.worse").click()
    until(bench, lambda: bench.locator(".question:not([hidden])").count() == 2)
    bench.locator(".question").first.focus()
    bench.keyboard.press("Enter")
    bench.locator(".bench .row:visible").first.wait_for()
    assert [kind for kind, _ in log_of(bench)] == ["zoom", "filter", "question"]


def test_script_and_style_are_files_and_a_change_is_small(page, bench_url):
    sizes, files = [], []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: sizes.append(len(frame))))
    page.on("response", lambda answer: files.append((answer.url.split("/")[-1], answer.status)))
    page.goto(bench_url)
    page.locator(".bench .row").first.wait_for()
    settle(page)
    assert {("bench.js", 200), ("bench.css", 200), ("read.js", 200)} <= set(files)
    sizes.clear()
    page.evaluate(STEP, ["gap_threshold", 3])
    page.locator("input[data-setting=gap_threshold]").blur()
    page.evaluate(
        "() => [...document.querySelectorAll('*')].map((n) => n.shadowRoot?.querySelector('input[data-setting=gap_threshold]')).find(Boolean).dispatchEvent(new FocusEvent('blur'))"
    )
    until(page, lambda: log_of(page))
    settle(page)
    assert sum(sizes) < 60_000


@pytest.mark.slow  # two of its lenses on every run: test_accessible.py
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(page, bench_url, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page.emulate_media(color_scheme=scheme)
    page.goto(bench_url)
    page.locator(".bench .row").first.wait_for()
    for press in ("Differences", "Losses", "All", "Threshold"):
        settle(page)
        problems = (
            Axe().run(page, context={"include": [["[data-testid=stBidiComponentIsolated]"]]}).response["violations"]
        )
        assert [
            (problem["id"], node["target"], node["failureSummary"]) for problem in problems for node in problem["nodes"]
        ] == []
        page.get_by_role("button", name=press, exact=True).click()
