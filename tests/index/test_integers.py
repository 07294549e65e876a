"""The integer product is that of plain arithmetic, up to the greatest numbers it takes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_core.index.scan import MOST_LEFT, MOST_RIGHT, product


@given(st.integers(1, 400), st.integers(1, 300), st.integers(0, 10**6))
def test_the_product_is_exact(length, columns, seed):
    rng = np.random.default_rng(seed)
    row = rng.integers(0, MOST_LEFT + 1, length).astype(np.uint8)
    matrix = rng.integers(-MOST_RIGHT, MOST_RIGHT + 1, (length, columns)).astype(np.int8)
    assert product(row, matrix).tolist() == (row.astype(int) @ matrix.astype(int)).tolist()


@pytest.mark.parametrize("sign", [-1, 1])
def test_no_sum_is_cut_off_at_the_greatest_numbers(sign):
    row, matrix = np.full(384, MOST_LEFT, np.uint8), np.full((384, 70), sign * MOST_RIGHT, np.int8)
    assert set(product(row, matrix).tolist()) == {sign * 384 * MOST_LEFT * MOST_RIGHT}
