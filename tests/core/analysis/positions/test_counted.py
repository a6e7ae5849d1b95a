"""Counting places drowns the token and has no bound; a share of the length has no fixed step; sinusoids have both."""

import numpy as np
import pytest

from tests.helpers.browser import BUNDLE
from tests.helpers.engine import small_bundle
from transformer_core.analysis.positions.counted import LENGTHS, SCHEMES, counted_positions, positions_by

TEXT = "The film was not good at all."


def test_schemes_are_what_they_are_called() -> None:
    assert positions_by("counted", 4, 2).tolist() == [[1, 1], [2, 2], [3, 3], [4, 4]]
    assert positions_by("share", 4, 2)[:, 0].tolist() == [0, 0.25, 0.5, 0.75]
    with pytest.raises(ValueError, match="scheme='random' must be one of counted, share, sinusoidal"):
        positions_by("random", 4, 2)


def test_what_goes_wrong_is_measured_on_the_models_own_tokens() -> None:
    found = counted_positions(bundle=BUNDLE, text=TEXT, n_tokens=64, length=64)
    counted, share, sines = (SCHEMES.index(name) for name in ("counted", "share", "sinusoidal"))
    np.testing.assert_allclose(found.lengths[counted], found.lengths[counted, 0] * np.arange(1, 65))
    assert np.ptp(found.lengths[sines]) < 1e-6
    assert found.cosines[counted, -1] < found.cosines[share, -1] < 1
    assert found.cosines[counted, -1] < found.cosines[sines, -1]
    np.testing.assert_allclose(found.steps[share] * np.array(LENGTHS), found.steps[share, 0] * LENGTHS[0])
    for scheme in (counted, sines):
        assert np.ptp(found.steps[scheme]) < 1e-6


@pytest.mark.parametrize("length", [1, 513])
def test_a_length_out_of_range_is_named(length: int) -> None:
    with pytest.raises(ValueError, match=f"length={length} must be from 2 to 512"):
        counted_positions(bundle=small_bundle(), text="a", n_tokens=8, length=length)
