"""The peer: the least that Streamlit can serve, one line of text."""

import streamlit as st

st.write("bare")
