"""One vector normalised, and the stream as a sum, for every order of the norms."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.helpers.engine import exactly, made
from transformer_core.analysis.stream.normalization import normed_vector, other_norm
from transformer_core.analysis.stream.residual_sum import stream_growth, stream_sum
from transformer_core.bundle import Bundle
from transformer_core.models import Classifier
from transformer_core.text import Tokenizer

TEXT = "a glass box a glass bell"
PLACES = [("pre", "self_attention"), ("pre", "feed_forward"), ("pre", "final"), ("post", "self_attention")]


def tiny_bundle(tokenizer: Tokenizer, **changes: object) -> Bundle:
    """Make a bundle of a tiny lively classifier."""
    return Bundle("tiny", made(Classifier, vocab_size=13, **changes), tokenizer, ("negative", "positive"))


@pytest.mark.parametrize("norm", ["layer_norm", "unbiased"])
@pytest.mark.parametrize(("order", "sublayer"), PLACES)
def test_a_vector_is_normalised_as_torch_does_it(
    word_tokenizer: Tokenizer, order: str, sublayer: str, norm: str
) -> None:
    bundle = tiny_bundle(word_tokenizer, norm_order=order, norm=norm)
    found = normed_vector(bundle=bundle, text=TEXT, n_tokens=12, layer=1, sublayer=sublayer, token=2, scale=4.0)
    x, gain, bias = (torch.tensor(values) for values in (found.x, found.gain, found.bias))
    d = len(x)
    torch.testing.assert_close(torch.tensor(found.after), F.layer_norm(x, (d,), gain, bias, found.eps))
    variant = gain * (x - x.mean()) / (x.std() + found.eps) + bias
    torch.testing.assert_close(torch.tensor(found.unbiased), variant)
    assert found.recomputed < 1e-5
    assert found.predicted == math.sqrt((d - 1) / d)
    assert found.factor == pytest.approx(found.predicted, rel=1e-3)
    assert found.difference == pytest.approx(float(np.abs(found.after - found.unbiased).max()))
    assert found.standard.mean() == pytest.approx(0, abs=1e-5)
    assert found.moved < 1e-3


def test_epsilon_wins_over_a_vector_that_is_too_small(word_tokenizer: Tokenizer) -> None:
    bundle = tiny_bundle(word_tokenizer)
    found = normed_vector(bundle=bundle, text=TEXT, n_tokens=12, layer=0, sublayer="feed_forward", token=1, scale=1e-6)
    np.testing.assert_allclose(found.scaled_after, found.bias, atol=1e-2)


def test_a_post_norm_model_has_no_final_norm(word_tokenizer: Tokenizer) -> None:
    bundle = tiny_bundle(word_tokenizer, norm_order="post")
    with pytest.raises(ValueError, match="sublayer='final' needs a pre-norm model"):
        normed_vector(bundle=bundle, text=TEXT, n_tokens=12, layer=0, sublayer="final", token=1, scale=1.0)
    with pytest.raises(ValueError, match=exactly("token=99 must be from 0 to 7")):
        normed_vector(bundle=bundle, text=TEXT, n_tokens=12, layer=0, sublayer="feed_forward", token=99, scale=1.0)


@pytest.mark.parametrize(("norm", "other"), [("layer_norm", "unbiased"), ("unbiased", "layer_norm")])
@pytest.mark.parametrize("order", ["pre", "post"])
def test_the_other_variant_is_what_a_model_with_that_variant_computes(
    word_tokenizer: Tokenizer, norm: str, other: str, order: str
) -> None:
    bundle = tiny_bundle(word_tokenizer, norm=norm, norm_order=order)
    twin = tiny_bundle(word_tokenizer, norm=other, norm_order=order)
    twin.model.load_state_dict(bundle.model.state_dict())
    found = other_norm(bundle=bundle, text=TEXT, n_tokens=12)
    ids = torch.tensor([bundle.tokenizer.encode(TEXT, max_len=12).ids])
    with torch.inference_mode():
        expected = twin.model(ids)[0].softmax(-1).numpy()
    np.testing.assert_allclose(found.after, expected, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        {"norm_order": "pre"},
        {"norm_order": "post"},
        {"norm_order": "pre", "residual": False},
        {"norm_order": "post", "residual": False},
        {"norm_order": "post", "embedding_norm": True, "norm": "unbiased"},
        {"norm_order": "pre", "scale_embeddings": True, "n_segments": 2, "positions": "learned"},
        {"norm_order": "post", "positions": "rotary", "pooling": "mean", "n_segments": 2},
    ],
    ids=str,
)
def test_contributions_add_up_to_the_stream(word_tokenizer: Tokenizer, changes: dict) -> None:
    bundle = tiny_bundle(word_tokenizer, **changes)
    for token in (0, 3):
        found = stream_sum(bundle=bundle, text=TEXT, n_tokens=12, token=token)
        assert found.difference < 1e-5
        assert found.inner_difference < 1e-5
        np.testing.assert_allclose(found.contributions.sum(0), found.total, atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(found.contributions, axis=-1), found.norms, atol=1e-9)
        if not bundle.config.residual:
            earlier = [place for place, part in enumerate(found.parts) if part not in ("1.feed_forward", "norm_shifts")]
            assert found.norms[earlier].max() == 0


@pytest.mark.parametrize("order", ["pre", "post"])
def test_the_streams_length_is_measured_after_every_sublayer(word_tokenizer: Tokenizer, order: str) -> None:
    bundle = tiny_bundle(word_tokenizer, norm_order=order)
    found = stream_growth(bundle=bundle, text=TEXT, n_tokens=12)
    assert found.stages == ("embedding", *found.sublayers)
    assert len(found.sublayers) == 2 * bundle.config.n_layers
    last = stream_sum(bundle=bundle, text=TEXT, n_tokens=12, token=2)
    assert found.lengths[-1, 2] == pytest.approx(float(np.linalg.norm(last.stream)), rel=1e-5)
    assert (np.abs(found.cosines) <= 1 + 1e-9).all()
    assert (found.written > 0).all()
