"""Two convolutions of width 1 give the feed-forward layer's numbers, whatever its shape and activation."""

import pytest

from tests.helpers.browser import BUNDLE
from tests.helpers.engine import small_bundle
from transformer_core.analysis.feed_forward.convolution import as_convolution


@pytest.mark.parametrize("layer", range(BUNDLE.config.n_layers))
def test_the_trained_layer_is_a_convolution(layer: int) -> None:
    found = as_convolution(bundle=BUNDLE, text="Not a dull scene in two hours.", n_tokens=64, layer=layer)
    assert found.greatest > 1
    assert found.difference < 1e-5 * found.greatest
    assert found.reordered < 1e-5 * found.greatest
    assert found.apart.max() == pytest.approx(found.difference)
    config = BUNDLE.config
    assert found.kernels == ((config.d_ff, config.d_model, 1), (config.d_model, config.d_ff, 1))


@pytest.mark.parametrize("shape", [{"norm_order": "post"}, {"activation": "relu", "bias": False}], ids=str)
def test_so_is_one_of_another_shape(shape: dict) -> None:
    found = as_convolution(bundle=small_bundle(**shape), text="a glass box a bell", n_tokens=8, layer=1)
    assert found.difference < 1e-5
    assert found.as_layer.any()


def test_a_layer_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="layer=9"):
        as_convolution(bundle=BUNDLE, text="a", n_tokens=8, layer=9)
