"""The residual stream: norms, sums, both orders, depth."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.helpers import refusals
from tests.helpers.engine import TODAY, exactly, made, shipped, small_bundle, small_tokenizer
from transformer_core.analysis.stream.batch_norm import EPS, batch_norms, over_batch, over_dimensions
from transformer_core.analysis.stream.depth import (
    NORMS,
    DepthProfile,
    deep_training,
    gradients_by_depth,
    untrained_stack,
)
from transformer_core.analysis.stream.normalization import normed_vector, other_norm
from transformer_core.analysis.stream.orders import (
    STEPS,
    SublayerSteps,
    encoded_for,
    matching_token,
    sublayer_steps,
    two_orders,
)
from transformer_core.analysis.stream.residual_sum import stream_growth, stream_sum
from transformer_core.bundle import Bundle
from transformer_core.layers.normalization import LayerNorm, UnbiasedNorm
from transformer_core.models import Classifier, Gpt, Translation
from transformer_core.probe import capture
from transformer_core.prompt import Prompt
from transformer_core.text import Tokenizer

BUNDLE, TOKENIZER = shipped("sentiment"), small_tokenizer()
TEXT = "a glass box a glass bell"
PLACES = [("pre", "self_attention"), ("pre", "feed_forward"), ("pre", "final"), ("post", "self_attention")]


def tiny_bundle(**changes: Any) -> Bundle:
    """Make a bundle of a tiny lively classifier."""
    return tiny(changes.pop("norm_order", "pre"), **changes)


@pytest.mark.parametrize("norm", ["layer_norm", "unbiased"])
@pytest.mark.parametrize(("order", "sublayer"), PLACES)
def test_a_vector_is_normalised_as_torch_does_it(order: str, sublayer: str, norm: str) -> None:
    bundle = tiny_bundle(norm_order=order, norm=norm)
    found = normed_vector(prompt=Prompt(bundle, TEXT, 12), layer=1, sublayer=sublayer, token=2, scale=4.0)
    x, gain, bias = (torch.tensor(values) for values in (found.x, found.gain, found.bias))
    d = len(x)
    torch.testing.assert_close(torch.tensor(found.after), F.layer_norm(x, (d,), gain, bias, found.eps))
    variant = gain * (x - x.mean()) / (x.std() + found.eps) + bias
    torch.testing.assert_close(torch.tensor(found.others["unbiased"]), variant)
    squares = gain * x / (x.square().mean() + found.eps).sqrt() + bias
    torch.testing.assert_close(torch.tensor(found.others["rms_norm"]), squares)
    assert found.recomputed < 1e-5
    assert found.predicted == math.sqrt((d - 1) / d)
    assert found.factor == pytest.approx(found.predicted, rel=1e-3)
    assert found.difference("unbiased") == pytest.approx(float(np.abs(found.after - found.others["unbiased"]).max()))
    assert found.mean_square == pytest.approx(float(x.square().mean()), rel=1e-5)
    assert found.standard.mean() == pytest.approx(0, abs=1e-5)
    assert found.moved < 1e-3


def test_epsilon_wins_over_a_vector_that_is_too_small() -> None:
    bundle = tiny_bundle()
    found = normed_vector(prompt=Prompt(bundle, TEXT, 12), layer=0, sublayer="feed_forward", token=1, scale=1e-6)
    np.testing.assert_allclose(found.scaled_after, found.bias, atol=1e-2)


@pytest.mark.parametrize(("norm", "other"), [("layer_norm", "unbiased"), ("unbiased", "layer_norm")])
@pytest.mark.parametrize("order", ["pre", "post"])
def test_the_other_variant_is_what_a_model_with_that_variant_computes(norm: str, other: str, order: str) -> None:
    bundle = tiny_bundle(norm=norm, norm_order=order)
    twin = tiny_bundle(norm=other, norm_order=order)
    twin.model.load_state_dict(bundle.model.state_dict())
    found = other_norm(prompt=Prompt(bundle, TEXT, 12), other=other)
    assert found is not None
    ids = torch.tensor([bundle.tokenizer.encode(TEXT, max_len=12).ids])
    with torch.inference_mode():
        expected = twin.model(ids)[0].softmax(-1).numpy()
    np.testing.assert_allclose(found.after, expected, atol=1e-5)


@pytest.mark.parametrize("norm", ["layer_norm", "unbiased"])
def test_rms_norm_in_every_place_takes_no_mean_away(norm: str) -> None:
    bundle = tiny_bundle(norm=norm)
    found = other_norm(prompt=Prompt(bundle, TEXT, 12), other="rms_norm")
    assert found is not None
    for module in list(bundle.model.modules()):
        for name, child in module.named_children():
            if isinstance(child, LayerNorm | UnbiasedNorm):
                setattr(module, name, _SquaresWithBias(child))
    ids = torch.tensor([bundle.tokenizer.encode(TEXT, max_len=12).ids])
    with torch.inference_mode():
        expected = bundle.model(ids)[0].softmax(-1).numpy()
    np.testing.assert_allclose(found.after, expected, atol=1e-5)


class _SquaresWithBias(torch.nn.Module):
    def __init__(self, norm) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x, *, probe):
        norm = self.norm
        return norm.weight * x / (x.square().mean(-1, keepdim=True) + norm.eps).sqrt() + norm.bias


@pytest.mark.parametrize("options", ["llama", "gemma3", "olmo2"])
@pytest.mark.parametrize("sublayer", ["self_attention", "feed_forward", "final"])
def test_a_vector_is_divided_by_its_root_mean_square_as_torch_does_it(options: str, sublayer: str) -> None:
    bundle = Bundle("today", made(Gpt, **TODAY[options]), small_tokenizer())
    prompt = Prompt(bundle, TEXT, 12)
    found = normed_vector(prompt=prompt, layer=1, sublayer=sublayer, token=2, scale=4.0)
    x, gain = torch.tensor(found.x), torch.tensor(found.gain)
    torch.testing.assert_close(torch.tensor(found.after), F.rms_norm(x, (len(x),), gain, found.eps))
    torch.testing.assert_close(
        torch.tensor(found.others["layer_norm"]), F.layer_norm(x, (len(x),), gain, None, found.eps)
    )
    assert found.recomputed < 1e-5
    assert (found.standard**2).mean() == pytest.approx(1, rel=1e-4)
    assert not found.bias.any()
    assert other_norm(prompt=prompt, other="layer_norm") is None


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
def test_contributions_add_up_to_the_stream(changes: dict) -> None:
    bundle = tiny_bundle(**changes)
    for token in (0, 3):
        found = stream_sum(prompt=Prompt(bundle, TEXT, 12), token=token)
        assert found.difference < 1e-5
        assert found.inner_difference < 1e-5
        np.testing.assert_allclose(found.contributions.sum(0), found.total, atol=1e-12)
        np.testing.assert_allclose(np.linalg.norm(found.contributions, axis=-1), found.norms, atol=1e-9)
        if not bundle.config.residual:
            earlier = [place for place, part in enumerate(found.parts) if part not in ("1.feed_forward", "norm_shifts")]
            assert found.norms[earlier].max() == 0


@pytest.mark.parametrize("order", ["pre", "post"])
def test_the_streams_length_is_measured_after_every_sublayer(order: str) -> None:
    bundle = tiny_bundle(norm_order=order)
    found = stream_growth(prompt=Prompt(bundle, TEXT, 12))
    assert found.stages == ("embedding", *found.sublayers)
    assert len(found.sublayers) == 2 * bundle.config.n_layers
    last = stream_sum(prompt=Prompt(bundle, TEXT, 12), token=2)
    assert found.lengths[-1, 2] == pytest.approx(float(np.linalg.norm(last.stream)), rel=1e-5)
    assert (np.abs(found.cosines) <= 1 + 1e-9).all()
    assert (found.written > 0).all()


D_MODEL = 16


def tiny(order: str, kind: type = Classifier, tokenizer: Tokenizer = TOKENIZER, **changes: Any) -> Bundle:
    """Make a bundle of a tiny lively model."""
    sizes: dict[str, Any] = {"d_model": D_MODEL, "norm_order": order, "pad_id": tokenizer.pad_id}
    return Bundle(f"tiny-{order}", made(kind, **sizes | changes), tokenizer, ("negative", "positive"))


def ids_of(bundle: Bundle) -> torch.Tensor:
    """Return the text's ids as a batch of one."""
    return torch.tensor([bundle.tokenizer.encode(TEXT, max_len=12).ids])


def steps_of(bundle: Bundle, layer: int, sublayer: str, token: int = 2) -> SublayerSteps:
    """Follow one token through a sublayer."""
    return sublayer_steps(prompt=Prompt(bundle, TEXT, 12), layer=layer, sublayer=sublayer, token=token)


def test_the_lengths_are_those_that_the_probe_records() -> None:
    post, pre = tiny("post"), tiny("pre")
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
def test_every_norm_sets_every_vector_to_one_length_before_gain_and_bias(norm: str, inside: int) -> None:
    found = two_orders(post=tiny("post", norm=norm), pre=tiny("pre", norm=norm), text=TEXT, n_tokens=12)
    for stream in (found.post, found.pre):
        assert stream.inside == inside
        assert stream.level == math.sqrt(inside)
        np.testing.assert_allclose(stream.standard, stream.level, rtol=1e-3)
        assert stream.off == np.abs(stream.standard - stream.level).max()


@pytest.mark.parametrize("norm", ["layer_norm", "unbiased"])
@pytest.mark.parametrize("sublayer", ["self_attention", "feed_forward"])
@pytest.mark.parametrize("order", ["pre", "post"])
def test_every_step_follows_from_those_before_it(order: str, sublayer: str, norm: str) -> None:
    bundle = tiny(order, norm=norm)
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
def test_what_one_sublayer_gives_is_what_the_next_one_takes(order: str, last: str) -> None:
    bundle = tiny(order)
    places = [(layer, sublayer) for layer in (0, 1) for sublayer in ("self_attention", "feed_forward")]
    ways = [steps_of(bundle, *place) for place in places]
    for before, after in itertools.pairwise(ways):
        np.testing.assert_array_equal(before.vectors[before.steps.index(last)], after.vectors[0])


@pytest.mark.parametrize("kind", [Translation, Gpt])
def test_other_kinds_give_the_stream_of_the_stack_that_reads(kind: type) -> None:
    post, pre = (tiny(order, kind) for order in ("post", "pre"))
    found = two_orders(post=post, pre=pre, text=TEXT, n_tokens=12)
    given = (ids_of(post), ids_of(post)) if kind is Translation else (ids_of(post),)
    scope = "encoder" if kind is Translation else "decoder"
    recorded = capture(post.model, *given)[1][f"{scope}.layer1.residual"][0].double().norm(dim=-1)
    np.testing.assert_allclose(found.post.growth.lengths[-1], recorded.numpy(), rtol=1e-6)


def test_the_outcome_is_where_the_mean_length_grows() -> None:
    found = two_orders(post=tiny("post"), pre=tiny("pre"), text=TEXT, n_tokens=12)
    for stream in (found.post, found.pre):
        assert stream.grown == stream.growth.lengths[-1].mean() / stream.growth.lengths[0].mean()
    grown = [name for name, stream in (("post", found.post), ("pre", found.pre)) if stream.grown >= 1.1]
    assert found.outcome == {0: "neither", 2: "both"}.get(len(grown), grown[0] if grown else "")


def test_a_model_without_residual_connections_passes_on_what_was_written() -> None:
    found = steps_of(tiny("pre", residual=False), 0, "self_attention")
    row = dict(zip(found.steps, found.vectors, strict=True))
    np.testing.assert_allclose(row["sum"], row["written"], atol=1e-6)
    assert found.added < 1e-6
    assert not found.residual


def test_tokens_of_two_tokenizers_match_by_their_characters() -> None:
    letter_tokenizer = Tokenizer.train("character", [TEXT] * 3, vocab_size=40)
    words, letters = TOKENIZER.encode(TEXT), letter_tokenizer.encode(TEXT)
    for place, (start, end) in enumerate(words.offsets):
        if end:
            there = matching_token(words, place, letters)
            assert start <= letters.offsets[there][0] < end
            assert matching_token(letters, there, words) == place
    cut = letter_tokenizer.encode(TEXT, max_len=4)
    last_word = max(range(len(words)), key=words.offsets.__getitem__)
    assert cut.offsets[matching_token(words, last_word, cut)] == max(cut.offsets)


def test_a_text_without_a_known_token_is_refused() -> None:
    bare = Tokenizer.train("word", [TEXT] * 3, vocab_size=13, template="none")
    with pytest.raises(ValueError, match=exactly("text='' has no token that 'tiny-post' knows")):
        encoded_for(Prompt(tiny("post", tokenizer=bare), "", 12))
    assert len(encoded_for(Prompt(tiny("post"), TEXT * 9, 99))) == 12  # as many as the model has positions


def by_kind(n_layers: int, seed: int = 0) -> dict[tuple[str, bool], DepthProfile]:
    """Return the six profiles by norm and residual."""
    found = gradients_by_depth(n_layers=n_layers, d_model=16, seed=seed)
    return {(profile.norm, profile.residual): profile for profile in found.profiles}


def test_there_are_six_stacks_with_one_value_a_layer() -> None:
    found = by_kind(5)
    assert set(found) == {(norm, residual) for norm in NORMS for residual in (True, False)}
    for profile in found.values():
        assert len(profile.input_gradients) == len(profile.activations) == len(profile.apart) == 6
        assert len(profile.parameter_gradients) == 5
        assert np.isfinite(profile.input_gradients).all()
        assert profile.activations[0] == next(iter(found.values())).activations[0]


def test_the_same_seed_starts_every_stack_with_the_same_weights() -> None:
    stacks = [untrained_stack(3, 16, 7, order, residual) for order in ("pre", "post") for residual in (True, False)]
    first = dict(stacks[0].named_parameters())
    for stack in stacks[1:]:
        for name, parameter in stack.named_parameters():
            torch.testing.assert_close(parameter, first[name])


@pytest.mark.parametrize(("norm", "residual"), [("pre", True), ("post", True), ("pre", False)])
def test_the_gradient_is_the_one_that_the_whole_stack_gives(norm: str, residual: bool) -> None:
    stack = untrained_stack(4, 16, 3, "post" if norm == "post" else "pre", residual).double()
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(4, 12, 16, generator=generator).double().requires_grad_(True)
    readout = torch.randn(16, 4, generator=generator).double() / 4
    classes = torch.randint(0, 4, (4,), generator=generator)
    loss = F.cross_entropy(stack(x)[:, 0] @ readout, classes)
    loss.backward()
    profile = by_kind(4, seed=3)[norm, residual]
    assert x.grad is not None
    assert profile.loss == pytest.approx(float(loss.detach()))
    assert profile.input_gradients[0] == pytest.approx(float(x.grad.norm()))
    last = torch.cat([parameter.grad.flatten() for parameter in stack.layers[3].parameters()])
    assert profile.parameter_gradients[3] == pytest.approx(float(last.norm()))


def test_without_norms_the_gradient_vanishes_or_explodes_with_depth() -> None:
    shallow, deep = by_kind(4), by_kind(24)
    assert deep["none", False].first_over_last < 1e-3 * shallow["none", False].first_over_last
    assert deep["none", True].first_over_last > 1e3


def test_without_residuals_the_positions_become_one() -> None:
    found = by_kind(16)
    for norm in NORMS:
        assert found[norm, False].apart[-1] < 1e-12
    assert found["pre", True].apart[-1] > 1e-2


@pytest.mark.nightly
def test_residuals_learn_what_the_same_stack_without_them_does_not() -> None:
    found = deep_training(n_layers=4, norm_order="pre", seed=0)
    assert found.guessing == pytest.approx(math.log(8))
    assert found.right_with > 0.95
    assert found.right_with > found.right_without + 0.3
    assert found.with_residuals[-1] < found.without_residuals[-1]


def test_both_are_those_of_torch() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 5, 8) * 2 + 1
    torch.testing.assert_close(over_dimensions(x), torch.nn.functional.layer_norm(x, (8,), eps=EPS))
    expected = torch.nn.functional.batch_norm(x.flatten(0, 1), None, None, training=True, eps=EPS).view_as(x)
    torch.testing.assert_close(over_batch(x, torch.ones(3, 5, dtype=torch.bool)), expected)


@pytest.mark.parametrize("others", [1, 5])
def test_a_sentence_moves_under_batch_norm_alone(others: int) -> None:
    found = batch_norms(prompt=Prompt(BUNDLE, "I loved it.", 64), others=others)
    assert len(found.labels) == len(found.batch_moves) == len(BUNDLE.tokenizer.encode("I loved it."))
    assert found.layer_moves.max() < 1e-6
    assert found.batch_moves.min() > 0.05
    assert found.real_moves.min() > 0.05
    assert found.padding > 0


POST, PRE = tiny("post"), tiny("pre")
NORMED = {"prompt": Prompt(POST, TEXT, 12), "layer": 0, "token": 1, "scale": 1.0}
REFUSED = [
    (lambda: normed_vector(**NORMED, sublayer="final"), "sublayer='final' needs a pre-norm model"),
    (lambda: normed_vector(**NORMED | {"token": 99}, sublayer="feed_forward"), "token=99 must be from 0 to 7"),
    (
        lambda: two_orders(post=PRE, pre=POST, text=TEXT, n_tokens=12),
        "post='tiny-pre' has norm_order='pre'; it must be",
    ),
    (lambda: steps_of(POST, 0, "self_attention", token=99), "token=99 must be from 0 to 7"),
    (lambda: steps_of(POST, 2, "self_attention"), "layer=2 must be from 0 to 1"),
    (lambda: matching_token(TOKENIZER.encode(TEXT), 99, TOKENIZER.encode(TEXT)), "place=99 must be from 0 to 7"),
    (lambda: gradients_by_depth(n_layers=49, d_model=32, seed=0), "n_layers=49 must be from 2 to 48"),
    (lambda: gradients_by_depth(n_layers=4, d_model=36, seed=0), "d_model=36 must be a multiple of 8 from 16 to 64"),
    (lambda: deep_training(n_layers=25, norm_order="pre", seed=0), "n_layers=25 must be from 2 to 24"),
    (lambda: batch_norms(prompt=Prompt(BUNDLE, "a", 8), others=0), "others=0 must be at least 1"),
    (lambda: batch_norms(prompt=Prompt(small_bundle(pad_id=None), "a", 8), others=1), "has no padding token"),
]
test_what_cannot_be_asked_is_told = refusals(REFUSED)
