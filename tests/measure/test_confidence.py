import pytest
from scipy.stats import binomtest

from rag_core.errors import InputError
from rag_core.measure.confidence import BandLimits, bands, calibration, wilson
from tests import planted


def test_bands_by_hand():
    #   0.1 first; 0.19 gap 0.09: neither; 0.195; 0.2 is not under 0.2; 0.35 gap 0.15; 0.4; 0.41
    assert bands([0.1, 0.19, 0.195, 0.2, 0.35, 0.4, 0.41]) == [
        "high",
        "medium",
        "high",
        "medium",
        "low",
        "medium",
        "low",
    ]


def test_low_is_asked_before_high_and_float_error_does_not_decide():
    assert bands([0.05, 0.15]) == ["high", "low"]  # 0.15 − 0.05 is 0.09999999999999999 and counts as 0.1
    assert bands([0.45]) == ["low"]


def test_limits_are_settings_and_refused_where_high_begins_behind_low():
    assert bands([0.45], BandLimits(low_distance=0.5)) == ["medium"]
    with pytest.raises(InputError, match="high confidence ends"):
        BandLimits(high_distance=0.6)


def test_the_share_relevant_of_each_band_counts_judged_chunks_only():
    case = planted.case_of(1, [0.1, 0.12, 0.3, 0.5], [True, False, True, False])
    case.grades.pop("c1")
    high, medium, low = calibration([case.candidates], [case])
    assert (high.judged, high.share) == (1, 1)
    assert (medium.judged, medium.relevant) == (0, 0)
    assert medium.share is None
    assert (low.judged, low.relevant, low.share) == (2, 1, 0.5)
    # Wilson, n = 2, one of them: (0.5 ± 1.96 · √(0.25/2 + 1.96²/16) / …) is 0.095 to 0.905
    assert (low.low, low.high) == (pytest.approx(0.0945, abs=1e-3), pytest.approx(0.9055, abs=1e-3))


@pytest.mark.parametrize("judged", [1, 2, 7, 150])
def test_the_interval_of_a_share_is_scipys(judged):
    for relevant in range(judged + 1):
        theirs = binomtest(relevant, judged).proportion_ci(method="wilson")
        assert wilson(relevant, judged) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
