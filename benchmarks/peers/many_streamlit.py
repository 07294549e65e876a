"""The peer of the Bench: what a person writes with stock Streamlit and Plotly for the same figures and slider."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import many_lists
import streamlit as st

st.set_page_config(layout="wide")
threshold = st.sidebar.slider("gap threshold", 0.0, 0.3, 0.1, 0.005, format="%.3f")
st.plotly_chart(many_lists.figure(threshold), key="charts")
st.text(many_lists.words(threshold))
