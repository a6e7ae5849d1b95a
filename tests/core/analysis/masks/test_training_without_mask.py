"""Two runs that differ in the mask alone: repeatable, alike at the start, and only one of them peeks."""

import numpy as np
import pytest

from transformer_core.analysis.arrays import arrays_of
from transformer_core.analysis.masks.training_without_mask import mask_cheating


def test_the_cheater_peeks_and_pays_for_it_under_the_mask() -> None:
    found = mask_cheating(language="en", steps=60, seed=1)
    assert found.honest.loss[0] == pytest.approx(found.cheater.loss[0], rel=0.01)
    np.testing.assert_allclose(found.honest.held_out, found.honest.held_out_masked, atol=1e-5)
    assert found.cheater.held_out[-1] < found.honest.held_out[-1]
    assert found.cheater.held_out_masked[-1] > found.honest.held_out[-1]
    assert found.prompt
    assert found.honest.written != found.cheater.written


def test_the_same_seed_gives_the_same_runs() -> None:
    first, second = (arrays_of(mask_cheating(language="en", steps=12, seed=3)) for _ in range(2))
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)


@pytest.mark.parametrize("steps", [0, 11, 401])
def test_steps_out_of_range_are_refused(steps: int) -> None:
    with pytest.raises(ValueError, match=f"steps={steps} must be from 12 to 400"):
        mask_cheating(language="en", steps=steps, seed=0)
