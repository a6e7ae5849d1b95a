"""Layer norm knows nothing of the batch; batch norm moves a sentence when others join it."""

import pytest
import torch

from tests.helpers.browser import BUNDLE
from tests.helpers.engine import small_bundle
from transformer_core.analysis.stream.batch_norm import EPS, batch_norms, over_batch, over_dimensions


def test_both_are_those_of_torch() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 5, 8) * 2 + 1
    torch.testing.assert_close(over_dimensions(x), torch.nn.functional.layer_norm(x, (8,), eps=EPS))
    expected = torch.nn.functional.batch_norm(x.flatten(0, 1), None, None, training=True, eps=EPS).view_as(x)
    torch.testing.assert_close(over_batch(x, torch.ones(3, 5, dtype=torch.bool)), expected)


@pytest.mark.parametrize("others", [1, 5])
def test_a_sentence_moves_under_batch_norm_alone(others: int) -> None:
    found = batch_norms(bundle=BUNDLE, text="I loved it.", n_tokens=64, others=others)
    assert len(found.labels) == len(found.batch_moves) == len(BUNDLE.tokenizer.encode("I loved it."))
    assert found.layer_moves.max() < 1e-6
    assert found.batch_moves.min() > 0.05
    assert found.real_moves.min() > 0.05
    assert found.padding > 0


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match=r"others=0 must be at least 1$"):
        batch_norms(bundle=BUNDLE, text="a", n_tokens=8, others=0)
    with pytest.raises(ValueError, match=r"has no padding token$"):
        batch_norms(bundle=small_bundle(pad_id=None), text="a", n_tokens=8, others=1)
