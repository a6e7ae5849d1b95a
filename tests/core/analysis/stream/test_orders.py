"""A post-norm model's stream beside a pre-norm one's, and one token's way through a sublayer of either."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch

from tests.helpers.engine import exactly, made
from transformer_core.analysis.stream.orders import (
    STEPS,
    SublayerSteps,
    encoded_for,
    matching_token,
    sublayer_steps,
    two_orders,
)
from transformer_core.bundle import Bundle
from transformer_core.models import Classifier, Gpt, Translation
from transformer_core.probe import capture
from transformer_core.text import Tokenizer

TEXT = "a glass box a glass bell"
D_MODEL = 16


def tiny(tokenizer: Tokenizer, order: str, kind: type = Classifier, **changes: Any) -> Bundle:
    """Make a bundle of a tiny lively model."""
    sizes: dict[str, Any] = {"vocab_size": 13, "d_model": D_MODEL, "norm_order": order, "pad_id": tokenizer.pad_id}
    return Bundle(f"tiny-{order}", made(kind, **sizes | changes), tokenizer, ("negative", "positive"))


def ids_of(bundle: Bundle) -> torch.Tensor:
    """Return the text's ids as a batch of one."""
    return torch.tensor([bundle.tokenizer.encode(TEXT, max_len=12).ids])


def steps_of(bundle: Bundle, layer: int, sublayer: str, token: int = 2) -> SublayerSteps:
    """Follow one token through a sublayer."""
    return sublayer_steps(bundle=bundle, text=TEXT, n_tokens=12, layer=layer, sublayer=sublayer, token=token)


def test_the_lengths_are_those_that_the_probe_records(word_tokenizer: Tokenizer) -> None:
    post, pre = tiny(word_tokenizer, "post"), tiny(word_tokenizer, "pre")
    found = two_orders(post=post, pre=pre, text=TEXT, n_tokens=12)
    for stream, bundle in ((found.post, post), (found.pre, pre)):
        trace = capture(bundle.model, ids_of(bundle))[1]

        def lengths(site: str, trace=trace) -> np.ndarray:
            return trace[f"encoder.{site}"][0].double().norm(dim=-1).numpy()

        assert stream.growth.stages[0] == "embedding"
        np.testing.assert_allclose(stream.growth.lengths[0], lengths("embedding.residual"), rtol=1e-6)
        for row, name in enumerate(stream.growth.sublayers):
            site = f"layer{name}"
            after = f"{site}.norm.normalized" if bundle is post else f"{site}.residual"
            np.testing.assert_allclose(stream.growth.lengths[row + 1], lengths(after), rtol=1e-6)
            np.testing.assert_allclose(stream.sums[row], lengths(f"{site}.residual"), rtol=1e-6)
            written = stream.growth.written[row] * stream.growth.lengths[row]
            np.testing.assert_allclose(written, lengths(f"{site}.output"), rtol=1e-6)
        last = "layer1.residual" if bundle is post else "final_norm.normalized"
        np.testing.assert_allclose(stream.handed_on, lengths(last), rtol=1e-6)
    np.testing.assert_allclose(found.pre.sums, found.pre.growth.lengths[1:], rtol=1e-12)


@pytest.mark.parametrize(("norm", "inside"), [("layer_norm", D_MODEL), ("unbiased", D_MODEL - 1)])
def test_every_norm_sets_every_vector_to_one_length_before_gain_and_bias(
    word_tokenizer: Tokenizer, norm: str, inside: int
) -> None:
    found = two_orders(
        post=tiny(word_tokenizer, "post", norm=norm), pre=tiny(word_tokenizer, "pre", norm=norm), text=TEXT, n_tokens=12
    )
    for stream in (found.post, found.pre):
        assert stream.inside == inside
        assert stream.level == math.sqrt(inside)
        np.testing.assert_allclose(stream.standard, stream.level, rtol=1e-3)
        assert stream.off == np.abs(stream.standard - stream.level).max()


@pytest.mark.parametrize("norm", ["layer_norm", "unbiased"])
@pytest.mark.parametrize("sublayer", ["self_attention", "feed_forward"])
@pytest.mark.parametrize("order", ["pre", "post"])
def test_every_step_follows_from_those_before_it(
    word_tokenizer: Tokenizer, order: str, sublayer: str, norm: str
) -> None:
    bundle = tiny(word_tokenizer, order, norm=norm)
    found = steps_of(bundle, 1, sublayer)
    row = dict(zip(found.steps, found.vectors, strict=True))
    assert found.steps == STEPS[order]
    np.testing.assert_allclose(row["input"] + row["written"], row["sum"], atol=1e-5)
    assert found.added < 1e-5
    np.testing.assert_allclose(row["standard"].mean(), 0, atol=1e-9)
    into = row["sum"] if order == "post" else row["input"]
    np.testing.assert_allclose((into - found.normed_mean) / found.normed_deviation, row["standard"], atol=1e-9)
    np.testing.assert_allclose(row["standard"] * found.gain + found.bias, row["normed"], atol=1e-5)
    assert found.recomputed < 1e-5
    np.testing.assert_allclose(found.lengths, np.linalg.norm(found.vectors, axis=-1))
    np.testing.assert_allclose(found.deviations, found.vectors.std(-1))
    weight = bundle.model.get_parameter(f"encoder.stack.layers.1.{sublayer}_norm.norm.weight")
    np.testing.assert_allclose(found.gain, weight.detach().double())


@pytest.mark.parametrize(("order", "last"), [("post", "normed"), ("pre", "sum")])
def test_what_one_sublayer_gives_is_what_the_next_one_takes(word_tokenizer: Tokenizer, order: str, last: str) -> None:
    bundle = tiny(word_tokenizer, order)
    places = [(layer, sublayer) for layer in (0, 1) for sublayer in ("self_attention", "feed_forward")]
    ways = [steps_of(bundle, *place) for place in places]
    for before, after in itertools.pairwise(ways):
        np.testing.assert_array_equal(before.vectors[before.steps.index(last)], after.vectors[0])


@pytest.mark.parametrize("kind", [Translation, Gpt])
def test_other_kinds_give_the_stream_of_the_stack_that_reads(word_tokenizer: Tokenizer, kind: type) -> None:
    post, pre = (tiny(word_tokenizer, order, kind) for order in ("post", "pre"))
    found = two_orders(post=post, pre=pre, text=TEXT, n_tokens=12)
    given = (ids_of(post), ids_of(post)) if kind is Translation else (ids_of(post),)
    scope = "encoder" if kind is Translation else "decoder"
    recorded = capture(post.model, *given)[1][f"{scope}.layer1.residual"][0].double().norm(dim=-1)
    np.testing.assert_allclose(found.post.growth.lengths[-1], recorded.numpy(), rtol=1e-6)


def test_the_outcome_is_where_the_mean_length_grows(word_tokenizer: Tokenizer) -> None:
    found = two_orders(post=tiny(word_tokenizer, "post"), pre=tiny(word_tokenizer, "pre"), text=TEXT, n_tokens=12)
    for stream in (found.post, found.pre):
        assert stream.grown == stream.growth.lengths[-1].mean() / stream.growth.lengths[0].mean()
    grown = [name for name, stream in (("post", found.post), ("pre", found.pre)) if stream.grown >= 1.1]
    assert found.outcome == {0: "neither", 2: "both"}.get(len(grown), grown[0] if grown else "")


def test_a_model_without_residual_connections_passes_on_what_was_written(word_tokenizer: Tokenizer) -> None:
    found = steps_of(tiny(word_tokenizer, "pre", residual=False), 0, "self_attention")
    row = dict(zip(found.steps, found.vectors, strict=True))
    np.testing.assert_allclose(row["sum"], row["written"], atol=1e-6)
    assert found.added < 1e-6
    assert not found.residual


def test_the_other_order_is_refused(word_tokenizer: Tokenizer) -> None:
    post, pre = tiny(word_tokenizer, "post"), tiny(word_tokenizer, "pre")
    with pytest.raises(ValueError, match=exactly("post='tiny-pre' has norm_order='pre'; it must be 'post'")):
        two_orders(post=pre, pre=post, text=TEXT, n_tokens=12)
    with pytest.raises(ValueError, match=exactly("token=99 must be from 0 to 7")):
        steps_of(post, 0, "self_attention", token=99)
    with pytest.raises(ValueError, match="layer=2 must be from 0 to 1"):
        steps_of(post, 2, "self_attention")


def test_tokens_of_two_tokenizers_match_by_their_characters(word_tokenizer: Tokenizer) -> None:
    letter_tokenizer = Tokenizer.train("character", [TEXT] * 3, vocab_size=40)
    words, letters = word_tokenizer.encode(TEXT), letter_tokenizer.encode(TEXT)
    for place, (start, end) in enumerate(words.offsets):
        if end:
            there = matching_token(words, place, letters)
            assert start <= letters.offsets[there][0] < end
            assert matching_token(letters, there, words) == place
    cut = letter_tokenizer.encode(TEXT, max_len=4)
    last_word = max(range(len(words)), key=words.offsets.__getitem__)
    assert cut.offsets[matching_token(words, last_word, cut)] == max(cut.offsets)
    with pytest.raises(ValueError, match="place=99 must be from 0 to 7"):
        matching_token(words, 99, letters)


def test_a_text_without_a_known_token_is_refused(word_tokenizer: Tokenizer) -> None:
    bare = Tokenizer.train("word", [TEXT] * 3, vocab_size=13, template="none")
    with pytest.raises(ValueError, match=exactly("text='' has no token that 'tiny-post' knows")):
        encoded_for(tiny(bare, "post"), "", 12)
    assert len(encoded_for(tiny(word_tokenizer, "post"), TEXT * 9, 99)) == 12  # as many as the model has positions
