"""The peer of the Bench in Dash: a slider, two charts, updated while it is dragged. Usage: many_dash.py PORT"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import many_lists
from dash import Dash, Input, Output, dcc, html

app = Dash(__name__)
app.layout = html.Div(
    [
        dcc.Slider(0, 0.3, 0.005, value=0.1, id="gap", updatemode="drag", marks=None),
        dcc.Graph(id="charts", figure=many_lists.figure(0.1)),
        html.P(many_lists.words(0.1), id="words"),
    ]
)


@app.callback(Output("charts", "figure"), Output("words", "children"), Input("gap", "value"))
def redraw(gap):
    return many_lists.figure(gap), many_lists.words(gap)


if __name__ == "__main__":
    app.run(host="127.0.0.1", port=int(sys.argv[1]), debug=False)
