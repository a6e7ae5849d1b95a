"""Activations, neurons and convolutions: what is reported is what the model and the formulas compute."""

import copy
import math
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.helpers import refusals
from tests.helpers.engine import MIXTURES, TODAY, shipped, small_bundle
from transformer_core.analysis.feed_forward.activations import MOST_BINS, own_activations, value_and_slope
from transformer_core.analysis.feed_forward.bernoulli import coin_tosses
from transformer_core.analysis.feed_forward.convolution import as_convolution
from transformer_core.analysis.feed_forward.mixture import expert_off, routing, without_expert
from transformer_core.analysis.feed_forward.neurons import (
    corpus_neurons,
    exciting_tokens,
    neuron_off,
    neurons,
    without_neuron,
)
from transformer_core.analysis.feed_forward.other_activation import (
    other_activation,
    swapped_activation,
    swapped_on_corpus,
)
from transformer_core.analysis.outcome import read
from transformer_core.analysis.timing import log_log_slope
from transformer_core.bundle import Bundle
from transformer_core.layers.feed_forward import ACTIVATIONS
from transformer_core.models import Classifier
from transformer_core.prompt import Prompt
from transformer_core.training.corpora import reviews

BUNDLE = shipped("sentiment")
X = torch.linspace(-5, 5, 401, dtype=torch.float64)
C = math.sqrt(2 / math.pi)


def phi(x: torch.Tensor) -> torch.Tensor:
    """Return the density of N(0, 1)."""
    return torch.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def cdf(x: torch.Tensor) -> torch.Tensor:
    """Return Phi, by the error function."""
    return (1 + torch.erf(x / math.sqrt(2))) / 2


def by_hand(name: str, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return value and derivative of an activation, from its formula."""
    if name == "relu":
        return x.clamp(min=0), (x > 0).double()
    if name == "gelu":
        return x * cdf(x), cdf(x) + x * phi(x)
    if name == "silu":
        chance = 1 / (1 + torch.exp(-x))
        return x * chance, chance * (1 + x * (1 - chance))
    inner = torch.tanh(C * (x + 0.044715 * x**3))
    slope = 0.5 * (1 + inner) + 0.5 * x * (1 - inner**2) * C * (1 + 3 * 0.044715 * x**2)
    return 0.5 * x * (1 + inner), slope


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_values_and_derivatives_are_those_of_the_formulas(name: str) -> None:
    value, slope = value_and_slope(ACTIVATIONS[name], X)
    expected_value, expected_slope = by_hand(name, X)
    torch.testing.assert_close(value, expected_value, atol=1e-12, rtol=0)
    torch.testing.assert_close(slope, expected_slope, atol=1e-12, rtol=0)


def test_a_sentence_lies_on_the_axis_that_is_drawn(sentiment: Bundle) -> None:
    found = own_activations(prompt=Prompt(sentiment, "a dull film", 9), layer=1, token=2)
    assert found.counts.sum() == found.neurons == 5 * sentiment.config.d_ff
    assert found.token_counts.sum() == len(found.token_values) == sentiment.config.d_ff
    assert np.all(found.token_counts <= found.counts)
    assert found.below_zero == pytest.approx(found.counts[found.edges[1:] <= 1e-9].sum() / found.neurons, abs=1e-3)
    assert found.own_difference <= found.axis_difference * 1.01
    difference = F.gelu(X) - F.gelu(X, approximate="tanh")
    assert found.axis_difference == pytest.approx(float(difference.abs().max()), rel=1e-3)
    assert found.names[found.names.index(found.used)] == "gelu"


def test_a_weight_does_not_decide_how_many_bins_there_are() -> None:
    bundle = replace(BUNDLE, model=copy.deepcopy(BUNDLE.model))
    name = next(name for name, _ in bundle.model.named_parameters() if "1.feed_forward" in name and "bias" in name)
    with torch.no_grad():
        bundle.model.get_parameter(name)[0] = 1e6
    found = own_activations(prompt=Prompt(bundle, "a dull film", 9), layer=1, token=2)
    assert len(found.counts) == len(found.token_counts) == MOST_BINS
    assert found.edges[-1] >= 1e6
    assert found.counts.sum() == found.neurons


@pytest.mark.parametrize("x", [-1.5, 0.3, 1.0, 2.0])
def test_the_mean_of_the_coin_approaches_gelu_as_one_over_the_root(x: float) -> None:
    found = coin_tosses(x=x, draws=10_000, seed=3)
    assert found.expected == pytest.approx(float(F.gelu(torch.tensor(x, dtype=torch.float64))), abs=1e-12)
    assert found.mean == pytest.approx(found.kept.mean() * x)
    deviation = abs(x) * math.sqrt(found.probability * (1 - found.probability))
    assert found.error < 4.5 * deviation / 100
    np.testing.assert_allclose(found.root_mean_square, deviation / np.sqrt(found.sizes), rtol=0.25)
    assert found.slope == pytest.approx(-0.5, abs=0.05)


def test_the_same_seed_tosses_the_same_and_another_differently() -> None:
    first, again, other = (coin_tosses(x=1.0, draws=200, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.kept, again.kept)
    assert (first.kept != other.kept).any()


def test_a_coin_that_cannot_err_has_no_slope() -> None:
    assert math.isnan(coin_tosses(x=0.0, draws=100, seed=0).slope)
    assert math.isnan(log_log_slope(np.array([1.0, 2.0]), np.array([0.0, 1.0])))
    assert log_log_slope(np.array([1.0, 10.0, 100.0]), np.array([3.0, 0.3, 0.03])) == pytest.approx(-1)


TEXT = "The story was dull."


def test_the_strongest_neurons_are_the_strongest(sentiment: Bundle) -> None:
    found = neurons(prompt=Prompt(sentiment, TEXT, 20), layer=2, top=5)
    peaks = found.activation.max(0)
    assert set(found.columns) == set(np.argsort(peaks)[-5:])
    rows = np.arange(len(found.activation))
    np.testing.assert_array_equal(found.strongest[:, 0], found.activation.argmax(1))
    assert (found.activation[rows, found.strongest[:, 0]] >= found.activation[rows, found.strongest[:, 4]]).all()


@pytest.mark.parametrize("shape", ["llama", "neox"])
def test_a_gated_neuron_is_gate_times_up_and_strong_on_both_sides_of_0(shape: str) -> None:
    bundle = small_bundle(**TODAY[shape])
    found = neurons(prompt=Prompt(bundle, "a glass box a bell", 8), layer=1, top=5)
    phi, gated = ACTIVATIONS[bundle.config.activation], bundle.config.gated
    gate = phi(torch.from_numpy(found.pre_activation)).numpy()
    product = gate if found.up is None else gate * found.up
    np.testing.assert_allclose(found.activation, product, atol=1e-6)
    assert (found.up is not None) == (found.gate is not None) == gated
    strength = np.abs(found.activation) if gated else found.activation
    assert found.columns.tolist() == np.argsort(-strength.max(0), kind="stable")[:5].tolist()
    np.testing.assert_array_equal(found.peaks, strength.argmax(0))
    np.testing.assert_array_equal(found.strongest[:, 0], strength.argmax(1))


def test_a_neuron_switched_off_in_a_batch_is_the_neuron_switched_off_alone(sentiment: Bundle) -> None:
    found = without_neuron(prompt=Prompt(sentiment, TEXT, 20), layer=3, neuron=467)
    assert found.moves[467] == pytest.approx(found.moved, abs=2e-4)
    encoding = sentiment.tokenizer.encode(TEXT)
    off = read(sentiment, encoding, sites=("*.activation",), edits=neuron_off(3, 467))
    np.testing.assert_allclose(off.probabilities, found.after, atol=1e-6)
    assert off.trace["encoder.layer3.feed_forward.activation"][..., 467].abs().max() == 0
    assert found.rank == (np.abs(found.moves) > abs(found.moves[467])).sum()
    assert np.isfinite(found.agreement.rho)


def test_the_last_layers_neurons_matter_only_at_cls(sentiment: Bundle) -> None:
    encoding = sentiment.tokenizer.encode(TEXT)

    def silence_all_but_cls(activation: torch.Tensor) -> torch.Tensor:
        activation[:, 1:] = 0.0
        return activation

    edits = {"encoder.layer3.feed_forward.activation": silence_all_but_cls}
    after = read(sentiment, encoding, sites=("class_logits",), edits=edits).probabilities
    np.testing.assert_allclose(after, read(sentiment, encoding, sites=("class_logits",)).probabilities, atol=1e-6)


def test_dead_units_are_counted_by_the_stated_rule(sentiment: Bundle) -> None:
    found = corpus_neurons(bundle=sentiment, sentences=40)
    texts = [example.text for example in reviews("en", train=40, held_out=0)[0]]
    highest = np.full((4, sentiment.config.d_ff), -np.inf)
    tokens = 0
    for text in texts:
        encoding = sentiment.tokenizer.encode(text)
        own = [place for place, special in enumerate(encoding.special) if not special]
        before = read(sentiment, encoding, sites=("*.pre_activation",)).trace.stack("*.pre_activation")[:, 0]
        highest = np.maximum(highest, before[:, own].amax(1).numpy())
        tokens += len(own)
    assert found.tokens == tokens
    assert found.language == "en"
    np.testing.assert_allclose(found.highest, highest, atol=1e-4)
    np.testing.assert_array_equal(found.never_above_zero, (found.highest <= 0).sum(-1))
    assert (np.diff(found.within, axis=1) >= 0).all()
    assert (found.in_band <= found.neurons).all()


def test_exciting_tokens_are_in_order_and_where_they_are_said_to_be(sentiment: Bundle) -> None:
    found = exciting_tokens(bundle=sentiment, sentences=40, layer=1, neuron=9)
    assert (np.diff(found.pre_activation) <= 0).all()
    texts = {example.text for example in reviews("en", train=40, held_out=0)[0]}
    for token, before, after in zip(found.tokens, found.before, found.after, strict=True):
        matching = [text for text in texts if text.startswith(before) and text.endswith(after)]
        middles = [text[len(before) : len(text) - len(after)].lower() for text in matching]
        assert token.lstrip("·") in middles
    everything = corpus_neurons(bundle=sentiment, sentences=40)
    assert found.pre_activation[0] == pytest.approx(everything.highest[1, 9])
    expected = ACTIVATIONS["gelu"](torch.tensor(found.pre_activation)).numpy()
    np.testing.assert_allclose(found.activation, expected, atol=1e-6)


def test_an_exchanged_activation_is_computed_from_the_pre_activation(sentiment: Bundle) -> None:
    encoding = sentiment.tokenizer.encode(TEXT)
    trace = read(
        sentiment, encoding, sites=("*.feed_forward.*",), edits=other_activation("relu", "1", gated=False)
    ).trace
    for layer in range(4):
        scope = f"encoder.layer{layer}.feed_forward"
        expected = ACTIVATIONS["relu" if layer == 1 else "gelu"](trace[f"{scope}.pre_activation"])
        torch.testing.assert_close(trace[f"{scope}.activation"], expected)


def test_the_models_own_activation_moves_nothing(sentiment: Bundle) -> None:
    found = swapped_activation(prompt=Prompt(sentiment, TEXT, 20))
    own = found.names.index(found.used)
    assert found.moves[own] == 0
    assert (found.by_layer[:, own] == 0).all()
    assert abs(found.moves[found.names.index("gelu_tanh")]) < abs(found.moves[found.names.index("relu")])


def test_verdicts_on_the_corpus_are_counted(sentiment: Bundle) -> None:
    found = swapped_on_corpus(bundle=sentiment, sentences=30)
    own = found.names.index(found.used)
    assert found.flips[own] == 0
    assert found.mean_move[own] == 0
    examples = reviews("en", train=0, held_out=30)[1]
    encodings = [sentiment.tokenizer.encode(example.text) for example in examples]
    verdicts = [read(sentiment, encoding, sites=("class_logits",)).probabilities for encoding in encodings]
    right = [(p[1] > p[0]) == bool(example.label) for p, example in zip(verdicts, examples, strict=True)]
    assert found.accuracy is not None
    assert found.accuracy[own] == pytest.approx(np.mean(right))


@pytest.mark.parametrize("layer", [0, 3])
def test_the_trained_layer_is_a_convolution(layer: int) -> None:
    found = as_convolution(prompt=Prompt(BUNDLE, "Not a dull scene in two hours.", 64), layer=layer)
    assert found.greatest > 1
    assert found.difference < 1e-5 * found.greatest
    assert found.reordered < 1e-5 * found.greatest
    assert found.apart.max() == pytest.approx(found.difference)
    config = BUNDLE.config
    assert found.kernels == ((config.d_ff, config.d_model, 1), (config.d_model, config.d_ff, 1))


SHAPES = {"post": {"norm_order": "post"}, "no bias": {"activation": "relu", "bias": False}}
SHAPES |= {name: changes for name, changes in TODAY.items() if name not in MIXTURES}


@pytest.mark.parametrize("shape", SHAPES)
def test_so_is_one_of_another_shape(shape: str) -> None:
    bundle = small_bundle(**SHAPES[shape])
    found = as_convolution(prompt=Prompt(bundle, "a glass box a bell", 8), layer=1)
    assert found.difference < 1e-5
    assert found.as_layer.any()
    assert len(found.kernels) == (3 if bundle.config.gated else 2)


@pytest.mark.parametrize("shape", ["llama", "gemma2"])
def test_a_gates_activation_put_in_its_own_place_changes_nothing_and_another_is_a_gates(shape: str) -> None:
    bundle = small_bundle(**TODAY[shape])
    prompt, used = Prompt(bundle, "a glass box a bell", 8), bundle.config.activation
    own = read(bundle, prompt.encoding, sites=(), edits=other_activation(used, gated=True)).probabilities
    np.testing.assert_allclose(own, read(bundle, prompt.encoding, sites=()).probabilities, atol=1e-6)
    other = replace(bundle.config, activation="gelu_tanh")
    model = Classifier(other)
    model.load_state_dict(bundle.model.state_dict())
    found = swapped_activation(prompt=prompt)
    expected = read(replace(bundle, model=model.eval()), prompt.encoding, sites=()).probabilities
    np.testing.assert_allclose(found.probabilities[found.names.index("gelu_tanh")], expected, atol=1e-5)


ASKED = {"prompt": Prompt(BUNDLE, "a dull film", 9)}
REFUSED = [
    (lambda: own_activations(**ASKED, layer=4, token=0), "layer=4 must be from 0 to 3"),
    (lambda: own_activations(**ASKED, layer=0, token=5), "token=5 must be from 0 to 4"),
    (lambda: coin_tosses(x=1.0, draws=20_000, seed=0), "draws=20000 must be from 10 to 10000"),
    (lambda: neurons(**ASKED, layer=2, top=BUNDLE.config.d_ff + 1), "must be from 1 to d_ff="),
    (lambda: corpus_neurons(bundle=BUNDLE, sentences=601), "sentences=601 must be from 1 to 600"),
    (lambda: as_convolution(**ASKED, layer=9), "layer=9"),
]
test_what_cannot_be_asked_is_told = refusals(REFUSED)


def mixture_prompt(shape: str) -> Prompt:
    return Prompt(small_bundle(**TODAY[shape]), "a glass box a glass bell", 12)


@pytest.mark.parametrize("shape", MIXTURES)
def test_a_load_counts_the_tokens_that_chose_an_expert(shape: str) -> None:
    prompt = mixture_prompt(shape)
    config = prompt.bundle.config
    found = routing(prompt=prompt, layer=1)
    assert found.load.sum() == len(prompt.encoding) * config.n_active_experts == found.even * config.n_experts
    assert ((found.weights > 0).sum(-1) == config.n_active_experts).all()
    np.testing.assert_allclose(found.probabilities.sum(-1), 1, atol=1e-6)
    expected = 1.0 if config.expert_weights_sum_to_one else found.probabilities.max(-1)
    np.testing.assert_allclose(found.weights.sum(-1), expected, atol=1e-6)


@pytest.mark.parametrize("shape", MIXTURES)
def test_without_an_expert_its_tokens_go_to_others_and_each_other_one_is_its_control(shape: str) -> None:
    prompt = mixture_prompt(shape)
    config, before = prompt.bundle.config, routing(prompt=prompt, layer=0)
    expert = int(before.load.argmax())
    found = without_expert(prompt=prompt, layer=0, expert=expert)
    away = routing(prompt=prompt, layer=0, without=expert)
    assert away.load[expert] == 0
    assert found.taken.sum() == before.load[expert] == found.load[expert]
    assert (found.taken >= 0).all()
    for other in range(config.n_experts):
        edits = expert_off("encoder.layer0.feed_forward", other)
        alone = read(prompt.bundle, prompt.encoding, sites=(), edits=edits).probabilities
        moved = 100 * (alone[found.winner] - found.before[found.winner])
        assert found.moves[other] == pytest.approx(moved, abs=1e-3)
    assert found.moved == pytest.approx(found.moves[expert], abs=1e-3)
    assert found.moves[found.load == 0] == pytest.approx(0, abs=1e-4)
    assert found.alike != expert
    distances = np.delete(abs(found.load - found.load[expert]), expert)
    assert abs(found.load[found.alike] - found.load[expert]) == distances.min()


ONE_INSIDE: dict[str, Callable[[Prompt], object]] = {
    "neurons": lambda prompt: neurons(prompt=prompt, layer=0, top=3),
    "without_neuron": lambda prompt: without_neuron(prompt=prompt, layer=0, neuron=0),
    "corpus_neurons": lambda prompt: corpus_neurons(bundle=prompt.bundle, sentences=2),
    "own_activations": lambda prompt: own_activations(prompt=prompt, layer=0, token=0),
    "as_convolution": lambda prompt: as_convolution(prompt=prompt, layer=0),
    "swapped_activation": lambda prompt: swapped_activation(prompt=prompt),
    "swapped_on_corpus": lambda prompt: swapped_on_corpus(bundle=prompt.bundle, sentences=2),
}


@pytest.mark.parametrize("measure", ONE_INSIDE.values(), ids=ONE_INSIDE)
def test_what_reads_one_inside_refuses_a_mixture_by_name(measure: Callable[[Prompt], object]) -> None:
    message = "bundle='glass' has n_experts=5; it must have 0: one inside for all tokens"
    with pytest.raises(ValueError, match=re.escape(message)):
        measure(mixture_prompt("mixture"))


def test_what_is_no_mixture_or_has_no_such_expert_is_refused() -> None:
    with pytest.raises(ValueError, match=r"bundle='glass' has n_experts=0; it must be a mixture of at least 2"):
        routing(prompt=Prompt(small_bundle(), "a box", 12), layer=0)
    for asked in ({"layer": 2}, {"layer": 0, "without": 5}):
        with pytest.raises(ValueError, match=r"(layer=2|expert=5) must be from 0 to "):
            routing(prompt=mixture_prompt("mixture"), **asked)
