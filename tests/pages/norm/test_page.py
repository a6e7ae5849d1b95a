"""The page on norm and residual: every part and control in both languages, with numbers that the library computes."""

import pytest

from pages.kit.asking import ask, ask_once
from pages.kit.models import open_bundle
from pages.kit.number_format import significant
from pages.language import words
from pages.norm.batch import mended
from tests.helpers.pages import asks, minus, repeats, run, told
from transformer_core.analysis.stream.batch_norm import batch_norms
from transformer_core.analysis.stream.depth import deep_training, gradients_by_depth
from transformer_core.analysis.stream.normalization import normed_vector, other_norm
from transformer_core.analysis.stream.orders import matching_token, sublayer_steps, two_orders
from transformer_core.analysis.stream.residual_sum import stream_sum
from transformer_core.prompt import Prompt

TEXT = "The film was not good, but I loved the ending."


def n_tokens() -> int:
    """Return how many tokens the text has."""
    return len(open_bundle("sentiment").tokenizer.encode(TEXT))


@pytest.mark.parametrize("sublayer", ["self_attention", "feed_forward", "final"])
def test_the_formula_has_the_vectors_numbers(sublayer: str) -> None:
    app = run("norm", text=TEXT, layer="2", norm_sublayer=sublayer, norm_token="4")
    bundle = open_bundle("sentiment")
    found = normed_vector(prompt=Prompt(bundle, TEXT, n_tokens()), layer=2, sublayer=sublayer, token=4, scale=1.0)
    formulas = "\n".join(str(element.value) for element in app.latex)
    assert minus(f"{found.mean:.4f}") in formulas
    assert f"{found.variance:.4f}" in formulas
    assert minus(f"{found.after[0]:.4f}") in formulas
    assert f"**{found.factor:.7f}**" in told(app)
    assert minus(f"**{other_norm(prompt=Prompt(bundle, TEXT, n_tokens()), other='unbiased').moved:+.3f}**") in told(app)


@pytest.mark.parametrize("power", [-6, 0, 6])
def test_the_scaled_vector_is_measured_after_a_prediction(power: int) -> None:
    app = run("norm", text=TEXT, norm_token="2", norm_power=str(power))
    asks(app)[0].set_value("grows").run()
    assert not app.exception
    found = normed_vector(
        prompt=Prompt(open_bundle("sentiment"), TEXT, n_tokens()),
        layer=0,
        sublayer="feed_forward",
        token=2,
        scale=10.0**power,
    )
    assert f"**{significant(found.moved, 3)}**" in told(app)
    assert words("en")["norm.scaled_stays"] in told(app)


def test_the_stream_is_the_sum_that_is_shown() -> None:
    app = run("norm", text=TEXT, norm_part="residual", norm_token="3")
    asks(app)[0].set_value("embedding").run()
    assert not app.exception
    found = stream_sum(prompt=Prompt(open_bundle("sentiment"), TEXT, n_tokens()), token=3)
    assert f"**{significant(found.difference)}**" in told(app)
    assert f"{found.norms.max():.3f}" in told(app)


@pytest.mark.parametrize(
    ("measure", "language"),
    [("input_gradients", "en"), ("parameter_gradients", "zh"), ("activations", "en"), ("apart", "zh")],
)
def test_gradients_are_measured_after_a_prediction(measure: str, language: str) -> None:
    app = run("norm", lang=language, norm_part="depth", norm_depth="6", norm_measure=measure, norm_seed="2")
    asks(app)[0].set_value("vanishes").run()
    assert not app.exception
    found = ask_once(gradients_by_depth, n_layers=6, d_model=32, seed=2).value
    for profile in found.profiles:
        assert f"| {significant(profile.first_over_last, 3)} |" in told(app)


@pytest.mark.nightly
def test_both_stacks_are_trained_on_request_and_a_link_trains_them_again() -> None:
    app = run("norm", norm_part="depth", norm_depth="2", norm_width="48")
    asks(app)[0].set_value("stays").run()
    app.button(key="norm_train").click().run()
    assert not app.exception
    found = ask_once(deep_training, n_layers=2, norm_order="pre", seed=0).value
    assert f"**{found.right_with:.1%}**" in told(app)
    assert "2.pre.0" in app.query_params["norm_trained"]


def orders(pre: str = "translation-en-fr"):
    """Return the arguments that the part on two orders asks with."""
    return {"post": open_bundle("translation-en-de"), "pre": open_bundle(pre), "text": TEXT, "n_tokens": 128}


@pytest.mark.parametrize("guess", ["pre", "post"])
def test_both_streams_are_measured_after_a_prediction(guess: str) -> None:
    app = run("norm", text=TEXT, norm_part="orders")
    found = two_orders(**orders())
    assert f"**{found.pre.grown:.2f} times**" not in told(app)
    asks(app)[0].set_value(guess).run()
    assert not app.exception
    assert f"**{found.post.grown:.2f} times**" in told(app)
    assert f"**{found.pre.grown:.2f} times**" in told(app)
    assert f"**{significant(found.post.off)}**" in told(app)
    assert (words("en")["try.right"] in told(app)) == (guess == found.outcome)
    assert f"**{found.post.added:.2f}**" in told(app)


@pytest.mark.parametrize("pre", ["translation-en-fr", "sentiment", "gpt-char"])
def test_one_tokens_numbers_stand_under_both_formulas(pre: str) -> None:
    query = {"norm_orders_pre": pre, "norm_orders_token": "5", "norm_orders_sublayer": "1.feed_forward"}
    app = run("norm", text=TEXT, norm_part="orders", **query)
    assert not app.exception
    own, other = orders(pre)["post"], orders(pre)["pre"]
    place = matching_token(own.tokenizer.encode(TEXT), 5, other.tokenizer.encode(TEXT))
    for bundle, token in ((own, 5), (other, place)):
        found = sublayer_steps(prompt=Prompt(bundle, TEXT, 128), layer=1, sublayer="feed_forward", token=token)
        entries = [f"{value:.4f}" for value in found.vectors[:, 0]]
        formulas = "\n".join(str(element.value) for element in app.latex)
        for step, entry in zip(found.steps, entries, strict=True):
            assert step == "standard" or entry in formulas, step
            assert f" {entry}".replace("-", "−") in told(app).replace("**", " "), step


def test_each_list_has_the_models_of_its_order_and_the_headers() -> None:
    app = run("norm", text=TEXT, norm_part="orders", model="gpt")
    lists = {str(box.key).partition("@")[0]: box for box in app.selectbox}
    assert lists["norm_orders_post"].options == ["translation-en-de"]
    assert lists["norm_orders_pre"].options[0] == "translation-en-fr"
    assert {"sentiment", "gpt", "bert"} < set(lists["norm_orders_pre"].options)
    assert not {"lm-gru", "seq2seq-en-fr", "translation-en-de"} & set(lists["norm_orders_pre"].options)
    lists["norm_orders_pre"].set_value("bert").run()
    assert "bert" in app.query_params["norm_orders_pre"]
    assert "**bert**" in told(app)


def test_another_language_than_the_models_is_said_and_read_all_the_same() -> None:
    app = run("norm", text="电影很好看", norm_part="orders")
    assert "Trained on another language" in told(app)
    assert "Trained on another language" not in told(run("norm", text=TEXT, norm_part="orders"))


@pytest.mark.parametrize("model", ["post", "pre"])
def test_the_glass_shows_the_chosen_model(model: str) -> None:
    app = run("norm", text=TEXT, norm_part="orders", norm_orders_glass=model, glass_open="on")
    assert not app.exception
    assert not app.error


@pytest.mark.nightly
def test_the_scripts_compute_the_same() -> None:
    bundle = open_bundle("sentiment")
    given = {"prompt": Prompt(bundle, TEXT, 14)}
    for answer in (ask(stream_sum, **given, token=3), ask(gradients_by_depth, n_layers=3, d_model=16, seed=1)):
        repeats(answer.script, answer.arrays)


@pytest.mark.nightly
def test_the_scripts_of_two_orders_compute_the_same() -> None:
    given = orders()
    way = {"prompt": Prompt(given["post"], TEXT, 128), "layer": 1, "sublayer": "feed_forward", "token": 3}
    for answer in (ask(two_orders, **given), ask(sublayer_steps, **way)):
        repeats(answer.script, answer.arrays)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_layer_norm_stands_beside_batch_norm_on_a_padded_batch(language: str) -> None:
    app = run("norm", lang=language, text="I loved it.", norm_batch_open="true", norm_others="5")
    assert not app.exception
    next(pills for pills in asks(app) if "norm_batch" in str(pills.key)).set_value("some").run()
    found = batch_norms(prompt=Prompt(open_bundle("sentiment"), "I loved it.", 64), others=5)
    for share in (found.batch_moves.mean(), found.real_moves.mean(), found.padding):
        assert f"{share:.1%}" in told(app)
    assert words(language)[f"norm.mended_{mended(found.batch_moves.mean(), found.real_moves.mean())}"] in told(app)
    other = run("norm", lang=language, model="gpt", norm_batch_open="true")
    assert words(language)["norm.no_padding"].format(name="gpt") in told(other)


@pytest.mark.parametrize(
    ("padded", "real", "said"),
    [
        (0.556, 0.639, "worse"),
        (0.2, 0.2006, "worse"),
        (0.2, 0.2004, "same"),
        (0.2, 0.1996, "same"),
        (0.2, 0.1994, "part"),
        (0.2, 0.05, "part"),
        (0.2, 0.0499, "nearly"),
        (0.0, 0.0, "same"),
    ],
)
def test_what_leaving_padding_out_mends_is_said_by_what_was_measured(padded: float, real: float, said: str) -> None:
    assert mended(padded, real) == said
