"""A notebook, run by nbclient: the demo project, evaluate, compare, to_frame, plot; the figures are the session's."""

import json
import re

import pytest

from rag_core import Session, open_project

nbformat = pytest.importorskip("nbformat")
NotebookClient = pytest.importorskip("nbclient").NotebookClient

CELLS = [
    "from rag_core import Session, open_project\nsession = Session(open_project('.'))",
    "a, b = session.measure([session.pipeline('query-must'), session.pipeline('fixed-15')])\na",
    "a.plot()",
    "frame = a.to_frame().join(b.to_frame(), rsuffix='_b')\n(frame['SetF'] - frame['SetF_b']).mean()",
    "import json\njson.dumps({'a': a.summary.means['SetF'], 'b': b.summary.means['SetF']})",
]


def test_a_notebook_says_what_the_session_says(tmp_path, monkeypatch):
    from rag_core.eval_sets.reading import SHIPPED

    monkeypatch.setenv("WINNOW_WORKSPACE", str(tmp_path / "ws"))
    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    cells[0]["source"] = cells[0]["source"].replace("'.'", repr(f"{SHIPPED / 'recorded-combat'}/"))
    done = NotebookClient(nbformat.v4.new_notebook(cells=cells), kernel_name="python3", timeout=120).execute()
    table, figure, delta, means = (
        next(one["data"] for one in done.cells[at].outputs if "data" in one) for at in range(1, 5)
    )
    session = Session(open_project("recorded-combat", tmp_path))
    a, b = session.measure([session.pipeline("query-must"), session.pipeline("fixed-15")])
    said = json.loads(means["text/plain"].strip("'"))
    assert said == {"a": a.summary.means["SetF"], "b": b.summary.means["SetF"]}
    assert float(re.search(r"-?[0-9.]+", delta["text/plain"].split("(")[-1])[0]) > 0
    assert "<table" in table["text/html"]
    assert "application/vnd.plotly.v1+json" in figure
