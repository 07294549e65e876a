from math import inf

import pytest
from scipy import special

from rag_core.evaluate.quantiles import normal_below, normal_quantile, t_quantile

SHARES = [0.0005, 0.025, 0.2, 0.5, 0.8, 0.975, 0.9995]


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 8, 29, 84, 85, 499, 500, 4999])
def test_a_quantile_of_t_is_scipys(freedom):
    for share in SHARES:
        assert t_quantile(share, freedom) == pytest.approx(special.stdtrit(freedom, share), rel=1e-10, abs=1e-12)


def test_a_quantile_of_t_by_the_table():
    assert t_quantile(0.975, 10) == pytest.approx(2.228, abs=5e-4)
    assert t_quantile(0.8, 1) == pytest.approx(1.376, abs=5e-4)


def test_normal_quantiles_and_shares_are_scipys():
    for share in SHARES:
        assert normal_quantile(share) == pytest.approx(special.ndtri(share), rel=1e-12, abs=1e-15)
        assert normal_below(normal_quantile(share)) == pytest.approx(share, abs=1e-14)
    for value in (-inf, -9.0, -0.3, 0.0, 2.5, inf):
        assert normal_below(value) == pytest.approx(special.ndtr(value), abs=1e-15)


def test_no_share_and_the_whole_share_are_infinitely_far():
    assert (normal_quantile(0.0), normal_quantile(1.0)) == (-inf, inf)
