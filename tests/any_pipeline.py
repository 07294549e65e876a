"""Any pipeline the spec allows, as a hypothesis strategy made from the stages' own settings: a new stage is in it."""

from hypothesis import assume
from hypothesis import strategies as st

from rag_core.errors import SpecError
from rag_core.filters.query_must import QueryMust
from rag_core.spec import STAGES, make_stage, parse_pipeline, setting_fields, stage_class
from rag_core.stage import Pipeline

WORDS = st.text(alphabet="abcdefghij XYZ-é", min_size=1, max_size=12).map(str.strip).filter(bool)
SPECIAL = {
    "where": st.none() | st.dictionaries(WORDS, WORDS | st.lists(WORDS, min_size=1, max_size=3), max_size=2),
    "file_filter": st.none() | WORDS,
    "weights": st.tuples(st.floats(0.1, 9).map(lambda x: round(x, 3)), st.floats(0, 9).map(lambda x: round(x, 3))),
    "rules": st.sampled_from(["token", "substring"]).map(lambda mode: QueryMust(mode=mode)),
}


def value_of(name, row):
    """A value of one setting, from its type, range and choices."""
    if name in SPECIAL:
        return SPECIAL[name]
    if row.choices:
        drawn = st.sampled_from(row.choices)
    elif row.kind == "bool":
        drawn = st.booleans()
    elif row.numeric:
        low = 0 if row.low is None else row.low
        high = low + 100 if row.high is None else row.high
        drawn = (
            st.integers(int(low), int(high)) if row.kind == "int" else st.floats(low, high).map(lambda x: round(x, 6))
        )
    else:
        return st.just(None) if row.optional else st.nothing()
    return st.none() | drawn if row.optional else drawn


@st.composite
def stage(draw, names=tuple(STAGES)):
    """Any stage with any settings it takes."""
    name = draw(st.sampled_from(names))
    settings = {}
    for key, row in setting_fields(stage_class(name)).items():
        if draw(st.booleans()):
            try:
                settings[key] = draw(value_of(key, row))
            except Exception as error:
                if "nothing" in str(error).lower():
                    continue
                raise
    try:
        return make_stage(name, settings)
    except SpecError:
        assume(False)


@st.composite
def pipelines(draw, most=6):
    """Any pipeline: rewrites and a source in front, then stages in any order."""
    kinds = {name: stage_class(name).kind for name in STAGES}
    rewrites = [name for name, kind in kinds.items() if kind == "rewrite"]
    sources = [name for name, kind in kinds.items() if kind == "source"]
    others = tuple(name for name, kind in kinds.items() if kind not in ("rewrite", "source"))
    front = []
    if draw(st.booleans()):
        front = [draw(stage((one,))) for one in rewrites if draw(st.booleans())]
        front.append(draw(stage(tuple(sources))))
    rest = draw(st.lists(stage(others), max_size=most))
    label = draw(st.sampled_from(["", "mine", "tuned 3"]))
    return parse_pipeline([*front, *rest], name=label) if label else Pipeline((*front, *rest))
