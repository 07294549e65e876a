import pytest

from rag_core.errors import InputError
from rag_core.measure.confidence import BandLimits, bands


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
