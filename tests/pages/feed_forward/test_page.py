"""The feed-forward page: every part and control in both languages, with numbers that the library computes."""

from collections.abc import Callable

import numpy as np
import pytest

from pages.feed_forward.neurons import many_dead
from pages.kit.asking import ask, ask_once
from pages.kit.models import open_bundle
from pages.kit.number_format import significant
from pages.language import words
from tests.helpers.pages import asks, matrices, metrics, minus, repeats, run, told
from transformer_core.analysis.feed_forward.activations import own_activations
from transformer_core.analysis.feed_forward.bernoulli import coin_tosses
from transformer_core.analysis.feed_forward.convolution import as_convolution
from transformer_core.analysis.feed_forward.mixture import routing, without_expert
from transformer_core.analysis.feed_forward.neurons import corpus_neurons, neurons, without_neuron
from transformer_core.analysis.feed_forward.other_activation import swapped_activation
from transformer_core.bundle import Bundle
from transformer_core.prompt import Prompt

TEXT = "The film was not good, but I loved the ending."


def test_the_curves_say_what_the_model_computes_for_the_chosen_token() -> None:
    app = run("feed_forward", text=TEXT, layer="1", feed_forward_token="4")
    app.selectbox(key="feed_forward_token@feed_forward").set_value("6").run()
    bundle = open_bundle("sentiment")
    n_tokens = len(bundle.tokenizer.encode(TEXT))
    found = own_activations(prompt=Prompt(bundle, TEXT, n_tokens), layer=1, token=6)
    shown = metrics(app)
    assert shown[words("en")["feed_forward.below_zero"].format(layer=1)] == f"{found.below_zero:.1%}"
    assert shown[words("en")["feed_forward.token_below_zero"]] == f"{found.token_below_zero:.1%}"
    assert shown[words("en")["feed_forward.own_difference"]] == significant(found.own_difference, 3)


def test_where_the_two_gelus_differ_most_is_shown_after_a_prediction() -> None:
    app = run("feed_forward", text=TEXT, feed_forward_try_open="true")
    asks(app)[0].set_value("near").run()
    assert not app.exception
    assert words("en")["feed_forward.apart_middle"] in told(app)


def test_the_coin_is_tossed_again_with_the_next_seed() -> None:
    app = run("feed_forward", feed_forward_part="bernoulli", feed_forward_x="-0.5", feed_forward_draws="1000")
    label = words("en")["feed_forward.coin_mean"]
    first = coin_tosses(x=-0.5, draws=1_000, seed=0)
    assert metrics(app)[label] == minus(f"{first.mean:+.5f}")
    app.button(key="toss_again").click().run()
    assert metrics(app)[label] == minus(f"{coin_tosses(x=-0.5, draws=1_000, seed=1).mean:+.5f}")
    asks(app)[0].set_value("hundred").run()
    assert not app.exception
    assert words("en")["feed_forward.falls_ten"] in told(app)
    assert minus(f"{coin_tosses(x=-0.5, draws=1_000, seed=1).slope:.3f}") in told(app)


def test_a_coin_without_error_is_explained() -> None:
    app = run("feed_forward", feed_forward_part="bernoulli", feed_forward_x="0")
    asks(app)[0].set_value("ten").run()
    assert not app.exception
    assert any("x = 0" in info.value for info in app.info)


def test_a_neuron_is_taken_out_after_a_prediction() -> None:
    app = run("feed_forward", feed_forward_part="neurons", text=TEXT, layer="3", feed_forward_neuron="467")
    asks(app)[0].set_value("flips").run()
    assert not app.exception
    bundle = open_bundle("sentiment")
    n_tokens = len(bundle.tokenizer.encode(TEXT))
    found = ask_once(without_neuron, prompt=Prompt(bundle, TEXT, n_tokens), layer=3, neuron=467).value
    assert minus(f"{found.moved:+.3f}") in told(app)
    assert minus(f"{found.agreement.rho:+.2f}") in told(app)


def test_dead_units_are_counted_after_a_prediction() -> None:
    app = run("feed_forward", lang="zh", feed_forward_part="dead", text=TEXT)
    asks(app)[0].set_value("many").run()
    assert not app.exception
    found = ask_once(corpus_neurons, bundle=open_bundle("sentiment"), sentences=300).value
    for count in found.never_above_zero:
        assert f"{count} / {found.neurons} ({count / found.neurons:.1%})" in told(app)
    assert f"{found.tokens:,}" in told(app)


def test_another_activation_is_measured_after_a_prediction() -> None:
    app = run("feed_forward", lang="zh", feed_forward_part="swap", text=TEXT)
    asks(app)[0].set_value("flips").run()
    assert not app.exception
    bundle = open_bundle("sentiment")
    found = swapped_activation(prompt=Prompt(bundle, TEXT, len(bundle.tokenizer.encode(TEXT))))
    for name in ("gelu", "relu"):
        assert f"{found.probabilities[found.names.index(name)][found.winner]:.2%}" in told(app)


def test_the_scripts_compute_the_same() -> None:
    bundle = open_bundle("sentiment")
    for answer in (
        ask(own_activations, prompt=Prompt(bundle, TEXT, 14), layer=2, token=3),
        ask(coin_tosses, x=0.7, draws=50, seed=2),
    ):
        repeats(answer.script, answer.arrays)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_layer_is_shown_as_a_convolution_with_the_same_numbers(language: str) -> None:
    query = {"lang": language, "text": "Not a dull scene.", "feed_forward_part": "neurons", "layer": "1"}
    app = run("feed_forward", **query, feed_forward_convolution_open="true")
    assert not app.exception
    bundle = open_bundle("sentiment")
    found = as_convolution(prompt=Prompt(bundle, "Not a dull scene.", 64), layer=1)
    next(pills for pills in asks(app) if "feed_forward_convolution" in str(pills.key)).set_value("same").run()
    assert words(language)["try.right"] in told(app)
    assert significant(found.greatest, 3) in told(app)


@pytest.mark.parametrize(("options", "language"), [("llama", "zh"), ("neox", "en")])
def test_gate_up_and_product_stand_together_with_the_arithmetic_of_a_neuron(
    options: str, language: str, opened_odd: Callable[[str, str], Bundle]
) -> None:
    bundle, text = opened_odd("gpt", options), "Once upon a time"
    found = neurons(prompt=Prompt(bundle, text, bundle.config.max_len), layer=1, top=24)
    neuron = int(found.columns[2])
    query = {"model": bundle.name, "text": text, "layer": "1", "feed_forward_neuron": str(neuron)}
    app = run("feed_forward", lang=language, feed_forward_part="neurons", **query)
    assert not app.exception
    header, arrays = matrices(app)[0]
    halves = (found.gate, found.up, found.activation) if bundle.config.gated else (found.activation,)
    assert len(header["panels"]) == len(halves)
    for shown, half in zip(arrays.values(), halves, strict=True):
        np.testing.assert_allclose(shown, half[:, found.columns], atol=1e-6)
    place = found.peaks[neuron]
    for part in (found.pre_activation, *halves):
        assert significant(float(part[place, neuron]), 4) in header["note"]
    assert bundle.tokenizer.encode(text).labels[place] in header["note"]


def test_a_mixture_says_which_experts_read_the_chosen_token_and_what_is_without_one(opened_odd: Callable) -> None:
    bundle = opened_odd("gpt", "mixture")
    query = {"model": bundle.name, "feed_forward_part": "mixture", "layer": "1", "feed_forward_token": "3"}
    app = run("feed_forward", text=TEXT, **query)
    prompt = Prompt(bundle, TEXT, len(bundle.tokenizer.encode(TEXT)))
    found = routing(prompt=prompt, layer=1)
    expert = int(found.load.argmax())
    (_, arrays), *_ = matrices(app)
    weights = arrays["expert_weight"]
    np.testing.assert_allclose(arrays["router_probability"], found.probabilities, atol=1e-6)
    np.testing.assert_array_equal(np.isnan(weights), found.weights == 0)
    said = told(app)
    assert all(f"{one} ({found.weights[3, one]:.3f})" in said for one in found.weights[3].nonzero()[0])
    asks(app)[0].set_value("nothing").run()
    lost = without_expert(prompt=prompt, layer=1, expert=expert)
    assert minus(f"**{lost.moved:+.3f}**") in told(app)
    assert minus(f"**{lost.moves[lost.alike]:+.3f}**") in told(app)


@pytest.mark.parametrize(("share", "word"), [(0.0, "none"), (0.049, "few"), (0.05, "many"), (1.0, "many")])
def test_how_many_neurons_are_dead_is_said_by_their_share(share: float, word: str) -> None:
    assert many_dead(share) == word
