"""The parameters of a page's address: taken when a link was opened or edited, written so that a copied link restores.

What the parameters mean is each page's own.
"""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st


def opened(key: str) -> dict[str, str]:
    """The address's parameters where they are not what the page under `key` wrote or took last; else none."""
    address = st.query_params.to_dict()
    if address == st.session_state.get(key):
        return {}
    st.session_state[key] = address
    return address


def write(key: str, parameters: Mapping[str, str]) -> None:
    """Make these the address's parameters."""
    if st.query_params.to_dict() != parameters:
        st.query_params.from_dict(parameters)
    st.session_state[key] = dict(parameters)
