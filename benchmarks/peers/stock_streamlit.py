"""The peer: what a person writes with stock Streamlit and Plotly for the same charts, table and slider."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import lists
import pandas as pd
import streamlit as st

st.set_page_config(layout="wide")
threshold = st.sidebar.slider("gap threshold", 0.0, 0.3, 0.1, 0.005, format="%.3f")
offset = st.sidebar.slider("offset", 0.0, 1.0, 0.4, 0.01)
st.plotly_chart(lists.figure(threshold, offset), key="charts")
st.dataframe(pd.DataFrame(lists.rows(threshold, offset)), hide_index=True)
