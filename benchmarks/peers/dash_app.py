"""The peer: the same charts, table and slider in Dash, updated while the slider is dragged. Usage: dash_app.py PORT"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import lists
from dash import Dash, Input, Output, dash_table, dcc, html

app = Dash(__name__)
app.layout = html.Div(
    [
        dcc.Slider(0, 0.3, 0.005, value=0.1, id="gap", updatemode="drag", marks=None),
        dcc.Slider(0, 1.0, 0.01, value=0.4, id="offset", updatemode="drag", marks=None),
        dcc.Graph(id="charts", figure=lists.figure(0.1, 0.4)),
        dash_table.DataTable(lists.rows(0.1, 0.4), id="table"),
    ]
)


@app.callback(Output("charts", "figure"), Output("table", "data"), Input("gap", "value"), Input("offset", "value"))
def redraw(gap, offset):
    return lists.figure(gap, offset), lists.rows(gap, offset)


if __name__ == "__main__":
    app.run(host="127.0.0.1", port=int(sys.argv[1]), debug=False)
