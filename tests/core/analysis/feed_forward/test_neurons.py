"""Neurons, dead units and exchanged activations: what is reported is what the model computes."""

import numpy as np
import pytest
import torch

from tests.helpers import ROOT
from tests.helpers.engine import exactly
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
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.layers.feed_forward import ACTIVATIONS
from transformer_core.training.corpora import reviews

TEXT = "The story was dull."


@pytest.fixture(scope="module")
def sentiment() -> Bundle:
    """Return the shipped classifier."""
    return load(ROOT / "assets" / "checkpoints" / "sentiment", device="cpu")


def test_the_strongest_neurons_are_the_strongest(sentiment: Bundle) -> None:
    found = neurons(bundle=sentiment, text=TEXT, n_tokens=20, layer=2, top=5)
    peaks = found.activation.max(0)
    assert set(found.columns) == set(np.argsort(peaks)[-5:])
    rows = np.arange(len(found.activation))
    np.testing.assert_array_equal(found.strongest[:, 0], found.activation.argmax(1))
    assert (found.activation[rows, found.strongest[:, 0]] >= found.activation[rows, found.strongest[:, 4]]).all()
    size = sentiment.config.d_ff
    with pytest.raises(ValueError, match=exactly(f"top={size + 1} must be from 1 to d_ff={size}")):
        neurons(bundle=sentiment, text=TEXT, n_tokens=20, layer=2, top=size + 1)


def test_a_neuron_switched_off_in_a_batch_is_the_neuron_switched_off_alone(sentiment: Bundle) -> None:
    found = without_neuron(bundle=sentiment, text=TEXT, n_tokens=20, layer=3, neuron=467)
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
    with pytest.raises(ValueError, match=exactly("sentences=601 must be from 1 to 600")):
        corpus_neurons(bundle=sentiment, sentences=601)


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
    trace = read(sentiment, encoding, sites=("*.feed_forward.*",), edits=other_activation("relu", "1")).trace
    for layer in range(4):
        scope = f"encoder.layer{layer}.feed_forward"
        expected = ACTIVATIONS["relu" if layer == 1 else "gelu"](trace[f"{scope}.pre_activation"])
        torch.testing.assert_close(trace[f"{scope}.activation"], expected)


def test_the_models_own_activation_moves_nothing(sentiment: Bundle) -> None:
    found = swapped_activation(bundle=sentiment, text=TEXT, n_tokens=20)
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
