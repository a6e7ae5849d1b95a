"""Padding moves the mean over all positions, and leaves the mean over real tokens where it was."""

import numpy as np
import pytest
import torch

from tests.helpers.browser import BUNDLE
from tests.helpers.engine import small_bundle
from transformer_core.analysis.encoder.padded_mean import padded_mean

TEXT = "The film was not good, but I loved the ending."


def test_one_mean_drifts_and_the_other_stays() -> None:
    found = padded_mean(bundle=BUNDLE, text=TEXT, n_tokens=64, pads=16)
    assert found.pads.tolist() == list(range(17))
    assert found.real_moves.max() < 1e-5
    assert np.ptp(found.real_shares) < 1e-5
    assert (np.diff(found.all_moves) > 0).all()
    assert found.all_moves[-1] > 0.1
    assert found.all_shares[0] == pytest.approx(found.real_shares[0], abs=1e-6)


def test_padding_that_is_typed_is_no_real_token() -> None:
    plain, typed = (padded_mean(bundle=BUNDLE, text=text, n_tokens=64, pads=2) for text in ("good", "good [PAD]"))
    assert typed.n_real == plain.n_real
    assert typed.real_moves.max() < 1e-5


def test_a_model_that_reads_its_mean_gives_the_same_verdict() -> None:
    bundle = small_bundle(pooling="mean")
    found = padded_mean(bundle=bundle, text="a glass box", n_tokens=8, pads=3)
    with torch.inference_mode():
        logits = bundle.model(torch.tensor([bundle.tokenizer.encode("a glass box").ids]))[0]
    assert found.winner == int(logits.argmax())
    assert found.real_shares[3] == pytest.approx(float(logits.softmax(-1).max()), abs=1e-5)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match=r"pads=0 must be from 1 to "):
        padded_mean(bundle=BUNDLE, text=TEXT, n_tokens=64, pads=0)
    with pytest.raises(ValueError, match=r"has no padding token$"):
        padded_mean(bundle=small_bundle(pad_id=None), text="a", n_tokens=8, pads=2)
