"""The masked-word head with both formulas of GELU: its own gives the model's scores, the other nearly the same."""

import pytest
import torch

from tests.helpers import ROOT
from tests.helpers.engine import small_bundle
from transformer_core.analysis.bert.head_gelu import head_gelu, head_scores
from transformer_core.checkpoints import load

BUNDLE = load(ROOT / "assets" / "checkpoints" / "bert", device="cpu")
TEXT = "A man in a [MASK] shirt is riding a horse."


def test_gelu_itself_gives_the_models_own_scores() -> None:
    ids = torch.tensor([BUNDLE.tokenizer.encode(TEXT).ids])
    with torch.inference_mode():
        own = head_scores(BUNDLE.model.mlm_head, BUNDLE.model.encoder(ids), "gelu")
        torch.testing.assert_close(own, BUNDLE.model(ids).mlm_logits)


def test_the_tanh_formula_moves_little() -> None:
    found = head_gelu(bundle=BUNDLE, text=TEXT, n_tokens=64, hidden=(), place=5, top=5)
    assert 1e-4 < found.greatest < 5e-4
    assert found.apart.max() <= found.greatest
    assert 0 < found.chances_apart < 1e-3
    assert found.scores_apart > found.chances_apart
    assert found.same >= found.places - 1
    assert found.chances.shape == (2, 5)
    assert (found.chances[0, :-1] >= found.chances[0, 1:]).all()


def test_what_has_no_such_head_or_mask_is_named() -> None:
    with pytest.raises(ValueError, match=r"place=1 must be one of the masks' places, \(5,\)"):
        head_gelu(bundle=BUNDLE, text=TEXT, n_tokens=64, hidden=(), place=1, top=5)
    with pytest.raises(ValueError, match="must be a bert"):
        head_gelu(bundle=small_bundle(), text="a", n_tokens=8, hidden=(), place=1, top=5)
