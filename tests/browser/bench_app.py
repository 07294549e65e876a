"""The Bench's component on recorded lists, with step functions by brute force: the plain pipeline at every position.

`streamlit run tests/browser/bench_app.py -- SET` with SET recorded-combat (three questions) or rulebook (its dev half).
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import streamlit as st

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from pages.bench import component, payload
from rag_core.eval_sets.reading import load_set
from rag_core.filters.adaptive import AdaptiveGap
from rag_core.filters.cutoff import TopK
from rag_core.filters.query_must import QueryMust
from rag_core.measure.scores import score
from rag_core.stage import Pipeline
from rag_core.types import Candidates, Hit, Metric

KNOBS = {
    ("AdaptiveGap", "gap_threshold"): ("gap", 4, np.round(np.linspace(0, 0.06, 25), 4)),
    ("AdaptiveGap", "distance_offset"): ("offset", 4, np.round(np.linspace(0, 0.4, 21), 4)),
    ("AdaptiveGap", "max_results"): ("at most", 0, np.arange(2.0, 16.0)),
    ("TopK", "k"): ("keep", 0, np.arange(1.0, 16.0)),
}
TITLES = {"QueryMust": "Rules", "AdaptiveGap": "Adaptive cut", "TopK": "Fixed k"}
DEPTH = 30


@st.cache_resource
def cases(name):
    chosen = load_set(name)
    if chosen.recorded:
        return list(chosen.cases)
    return [replace(case, candidates=searched(chosen, case)) for case in chosen.cases if case.grades][:42]


@st.cache_resource
def vectors(corpus):
    from rag_core.corpus.load import load
    from rag_core.index.embed import BundledEmbedder
    from rag_core.index.shipped import ShippedVectors
    from rag_core.index.store import embedded_text

    embedder = ShippedVectors(BundledEmbedder(), Path(corpus).with_name("vectors.npz"))
    chunks = load([Path(corpus)]).chunks
    return chunks, embedder, embedder.embed([embedded_text(chunk) for chunk in chunks])


def searched(chosen, case):
    chunks, embedder, matrix = vectors(str(chosen.corpus))
    distances = 1 - matrix @ embedder.embed([case.query.text])[0]
    nearest = np.argsort(distances, kind="stable")[:DEPTH]
    hits = tuple(Hit(chunks[i], rank, {"distance": round(float(distances[i]), 6)}) for rank, i in enumerate(nearest, 1))
    return Candidates(case.query, hits, metric=Metric.COSINE, recorded=True)


def start():
    return {
        "stages": [[QueryMust(), True], [AdaptiveGap(gap_threshold=0.02, distance_offset=0.3), True]],
        "question": 0, "zoom": "one", "lens": "threshold", "filter": "", "selected": "", "labels": {},
        "dear_setting": st.query_params.get("dear", ""), "version": 1, "acks": {}, "log": [], "dear": set(), "notice": "",
    }  # fmt: skip


def judged(case, state):
    return {**case.grades, **{id_: grade for (q, id_), grade in state["labels"].items() if q == case.query.id}}


def measured(pipeline, case, state):
    kept = [hit.chunk.id for hit in pipeline(case.candidates).hits]
    scores = score(kept, judged(case, state), case.relevant_total)
    numbers = [scores.values[name] for name in ("SetP", "SetR", "SetF")]
    return [np.nan if value is None else value for value in numbers] + [float(len(kept))], kept


def figures(values):
    return payload.BenchFigures(*(None if np.isnan(value) else float(value) for value in values))


def means(table):
    scored = table[:, ~np.isnan(table[2])] if table.ndim == 2 else table
    return np.array([*scored[:3].mean(axis=1), table[3].mean()])


def steps_of(stages, place, name, positions, all_cases, question, baseline, state):
    """What the plain pipeline gives at every position."""
    one, over, f, kept = [], [], [], []
    case = all_cases[question]
    for position in positions:
        whole = isinstance(getattr(stages[place], name), int)
        moved = replace(stages[place], **{name: int(position) if whole else float(position)})
        pipeline = Pipeline((*stages[:place], moved, *stages[place + 1 :]))
        table = np.array([measured(pipeline, each, state)[0] for each in all_cases]).T
        over.append(means(table))
        f.append(table[2])
        values, ids = measured(pipeline, case, state)
        one.append(values)
        kept.append([hit.chunk.id in ids for hit in case.candidates.hits])
    per_question = np.array(f).T
    return payload.Steps(
        np.array(over).T,
        np.array(one).T,
        np.array(kept).T,
        payload.count_changes(per_question, baseline),
        per_question,
    )


def side(place, hit, result):
    reason = next((drop for drop in result.drops if drop.hit.chunk.id == hit.chunk.id), None)
    verdict = f"dropped by {TITLES[reason.stage]}" if reason else "kept"
    return payload.BenchSide(
        place, hit.rank, hit.distance, reason is None, verdict, reason.reason.text if reason else ""
    )


def losses(stages, case, state):
    grades, at, made = judged(case, state), case.candidates, []
    for index, stage in enumerate(stages):
        after = stage(at)
        gone = [drop.hit.chunk.id for drop in after.drops[len(at.drops) :]]
        lost = sum(grades.get(id_, 0) > 0 for id_ in gone)
        entered = sum(grades.get(hit.chunk.id, 0) > 0 for hit in at.hits)
        made.append(payload.Loss(TITLES[stage.name], entered, lost, len(gone) - lost, index))
        at = after
    return tuple(made)


def filled(state, name):
    all_cases = cases(name)
    running = [stage for stage, on in state["stages"] if on]
    a, b = Pipeline(tuple(running)), Pipeline((TopK(15),))
    case = all_cases[state["question"]]
    tables = [np.array([measured(pipe, each, state)[0] for each in all_cases]).T for pipe in (a, b)]
    result, other = a(case.candidates), b(case.candidates)
    trace, entered = {}, case.candidates
    for stage in running:
        entered = stage(entered)
        trace[stage.name] = (entered.steps[-1], [hit.chunk.id for hit in entered.hits])
    shown = []
    for index, (stage, on) in enumerate(state["stages"]):
        knobs = []
        for (owner, setting), (title, digits, values) in KNOBS.items():
            if owner != stage.name or not on:
                continue
            now = float(getattr(stage, setting))
            positions = np.unique(np.append(values, now))
            dear = setting == state["dear_setting"] and (index, setting) not in state["dear"]
            steps = (
                None
                if dear
                else steps_of(
                    running, running.index(stage), setting, positions, all_cases, state["question"], tables[1][2], state
                )
            )
            knobs.append(payload.BenchKnob(setting, title, now, positions, "", digits, steps))
        step = trace.get(stage.name, (None, []))[0]
        did = f"−{step.entered - step.left}" if step else ""
        shown.append(
            payload.BenchStage(
                stage.name,
                TITLES[stage.name],
                type(stage).__doc__.split("\n")[0],
                did,
                "",
                on,
                up=index > 0,
                down=index + 1 < len(state["stages"]),
                knobs=tuple(knobs),
            )
        )
    hits = case.candidates.hits
    grades = judged(case, state)
    rows = tuple(
        payload.BenchRow(hit.chunk.id, head, rest, grades.get(hit.chunk.id), None if hit.chunk.id not in grades else grades[hit.chunk.id] > 0,
                    row, side(row, hit, result), side(row, hit, other))
        for row, (hit, (head, rest)) in enumerate(zip(hits, payload.split_titles([hit.chunk.title for hit in hits]), strict=True))
    )  # fmt: skip
    curve = curve_of(state, running, hits, trace, case)
    changes = payload.count_changes(tables[0][2], tables[1][2])
    lines = payload.BenchLine(
        f"All {len(all_cases)} dev questions",
        len(all_cases),
        len(all_cases),
        figures(means(tables[0])),
        figures(means(tables[1])),
        tuple(int(one) for one in changes),
    )
    one = payload.BenchLine(
        "This one", 1, 1, figures(tables[0][:, state["question"]]), figures(tables[1][:, state["question"]])
    )
    ids = [each.query.id for each in all_cases]
    at = state["question"]
    insight = payload.InSight(
        ids[at], case.query.text, at + 1, len(ids), ids[at - 1] if at else "", ids[at + 1] if at + 1 < len(ids) else ""
    )
    pipes = (payload.Pipe("A", "rules, then cut", f"{len(result.hits)} of {len(hits)}", tables[0][2], tables[0][0], tables[0][1], tables[0][3]),
             payload.Pipe("B", "fixed k 15", f"{len(other.hits)} of {len(hits)}", tables[1][2], tables[1][0], tables[1][1], tables[1][3]))  # fmt: skip
    questions = tuple(payload.BenchQuestion(each.query.id, each.query.text, each.query.tags) for each in all_cases)
    return payload.Payload(state["version"], pipes, tuple(shown), lines, one, insight, state["zoom"], state["lens"], rows, curve, questions,
                           losses(running, case, state), state["filter"], state["selected"], state["notice"], 72, state["acks"])  # fmt: skip


def curve_of(state, running, hits, trace, case):
    cut = next((stage for stage in running if stage.name == "AdaptiveGap"), None)
    if cut is None:
        return payload.Curve("distance", tuple(range(len(hits))))
    place = [stage for stage, _ in state["stages"]].index(cut)
    before = [stage for stage, on in state["stages"][:place] if on]
    ids = [hit.chunk.id for hit in hits]
    reaching = [hit for hit in Pipeline(tuple(before))(case.candidates).hits]
    step, left = trace["AdaptiveGap"]
    made = step.facts["cut"]
    word = f"gap {made.gap:.4f} ≥ {made.gap_threshold:.4f}" if made.gap is not None else "offset"
    lines = (
        payload.CutLine(place, "gap_threshold", "gap", "gap", decides=made.gap is not None),
        payload.CutLine(place, "distance_offset", "score", "offset", base=reaching[0].distance if reaching else 0.0, decides=made.gap is None),
    )  # fmt: skip
    after = ids.index(left[-1]) if left and len(left) < len(reaching) else None
    return payload.Curve(
        "distance", tuple(ids.index(hit.chunk.id) for hit in reaching), lines, place, after, word, True
    )


def take(state, event, name):
    stages, say, of = state["stages"], event.fields, event.fields.get("stage")
    ids = [each.query.id for each in cases(name)]
    if event.kind == "set":
        stage = stages[of][0]
        whole = isinstance(getattr(stage, say["setting"]), int)
        stages[of][0] = replace(stage, **{say["setting"]: int(say["value"]) if whole else float(say["value"])})
    elif event.kind == "toggle":
        stages[of][1] = not stages[of][1]
    elif event.kind == "move":
        stages.insert(of + say["by"], stages.pop(of))
    elif event.kind == "remove":
        stages.pop(of)
    elif event.kind == "add":
        stages.append([TopK(10), True])
    elif event.kind == "grab":
        state["dear"].add((of, say["setting"]))
    elif event.kind == "question":
        state["question"], state["zoom"] = ids.index(say["id"]), say["zoom"] or state["zoom"]
    elif event.kind == "label":
        state["labels"][ids[state["question"]], say["id"]] = say["grade"]
    elif event.kind in ("zoom", "lens", "filter"):
        state[event.kind] = say["to"]
    elif event.kind == "select":
        state["selected"] = say["id"]


@st.fragment
def bench(name):
    state = st.session_state.setdefault("bench_state", start())

    def came():
        for event in component.read_events("bench", state["acks"]):
            take(state, event, name)
            state["acks"] = {**state["acks"], event.session: event.sequence}
            state["log"].append([event.kind, dict(event.fields)])
        state["version"] += 1

    packed = filled(state, name)
    component.show(packed, "bench", came)
    st.session_state["size"] = len(payload.pack(packed))
    st.html(f"<pre id=log>{state['log']!r}</pre><p id=size>{st.session_state['size']} bytes</p>")


if __name__ == "__main__":
    st.set_page_config(layout="wide")
    bench(sys.argv[1] if len(sys.argv) > 1 else "recorded-combat")
