"""The encoder page shows the numbers that the library computes, in both languages, for any text and any link."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.encoder.faithfulness import beats_chance
from pages.encoder.layers import generalises
from pages.kit.asking import ask, ask_once
from pages.kit.models import MORE_MODELS, open_bundle
from pages.kit.number_format import significant
from pages.language import LANGUAGES, prose, words
from tests.helpers.pages import asks, metrics, minus, repeats, run, told
from transformer_core.analysis.counter_examples import counter_examples
from transformer_core.analysis.encoder.calibration import calibration
from transformer_core.analysis.encoder.faithfulness import deletion, sanity_check
from transformer_core.analysis.encoder.layers import layer_verdicts
from transformer_core.analysis.encoder.measures import MEASURES, measures
from transformer_core.analysis.encoder.padded_mean import padded_mean
from transformer_core.analysis.encoder.two_sentences import sentence_pair
from transformer_core.analysis.stream.asked_score import ALONE, RUNNER_UP
from transformer_core.analysis.stream.score_sum import score_sum
from transformer_core.bundle import Bundle, save
from transformer_core.config import ModelConfig
from transformer_core.models import Classifier
from transformer_core.prompt import Prompt
from transformer_core.text import Tokenizer

TEXT = "The film was not good, but I loved the ending."
PARTS = ("layers", "sum", "tokens", "agree", "edit", "sure")


def arguments(text: str = TEXT) -> dict[str, Any]:
    """Return what the page asks of the library for a text."""
    bundle = open_bundle("sentiment")
    return {"prompt": Prompt(bundle, text, len(bundle.tokenizer.encode(text)))}


def part(name: str, **query: str) -> AppTest:
    """Open a part of the page."""
    return run("encoder", **({"text": TEXT, "encoder_part": name} | query))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lay small untrained classifiers where the app looks for more models: cheap to read, and of other shapes."""
    folder = tmp_path_factory.mktemp("models")
    tokenizer = Tokenizer.train("word", ["a glass box", "a glass bell", "a box"] * 3, vocab_size=13)
    shapes = {
        "tiny": ({}, ("negative", "positive")),
        "post": ({"norm_order": "post", "pooling": "mean"}, ("no", "yes")),
    }
    for name, (shape, labels) in shapes.items():
        torch.manual_seed(0)
        config = ModelConfig(vocab_size=13, d_model=16, n_heads=2, d_ff=24, n_layers=2, max_len=32, **shape)
        save(Bundle(name, Classifier(config).eval(), tokenizer, labels), folder / name)
    return folder


def test_the_curve_and_its_numbers_are_the_librarys() -> None:
    app, found = part("layers"), layer_verdicts(**arguments())
    label = words("en")["class.positive" if found.winner else "class.negative"]
    shown = metrics(app)
    settled = "embedding" if found.settled == 0 else f"layer {found.settled - 1}"
    assert shown[words("en")["encoder.settled"].format(label=label)] == settled
    assert f"{found.probabilities[1, -1, found.winner]:.1%}" in shown.values()
    assert f"{found.moves[found.farthest]:.2f}" in told(app)


@pytest.mark.parametrize("of", ["runner", "alone"])
@pytest.mark.parametrize("word", ["0", "1"])
def test_the_sum_adds_up_on_the_screen(of: str, word: str) -> None:
    app = part("sum", score_word=word, score_against=of, score_open="layer1.self_attention.head2.token3")
    against = RUNNER_UP if of == "runner" else ALONE
    found = score_sum(**arguments(), answer=int(word), against=against, opened="layer1.self_attention.head2.token3")
    of_head, of_token, whole = (latex.value for latex in app.latex)  # the whole stands below both columns
    for number in (found.total, found.score):
        assert f"{number:+.4f}" in whole
    for line, opening in zip((of_head, of_token), found.openings, strict=True):
        assert f"{opening.share:+.4f}" in line
    assert f"{of_token.count('cdot')}" == "2"
    app.button(key="score_to0").click().run()
    assert "score_open" not in app.query_params
    asks(app)[0].set_value("0").run()
    assert not app.exception
    assert f"{found.total:+.4f}".replace("-", "−") in told(app).replace("-", "−")


def test_the_word_is_predicted_and_integrated_gradients_checked() -> None:
    app = part("tokens", lang="zh", encoder_steps="8")
    found = ask_once(measures, **arguments(), steps=8, baseline="mask").value
    first = int(found.first[2])
    asks(app)[0].set_value(str(first)).run()
    assert not app.exception
    assert words("zh")["try.right"] in told(app)
    label = words("zh")["class.positive" if found.saliency.winner else "class.negative"]
    assert words("zh")["encoder.signs"].format(label=label) in told(app)
    fall = ask_once(deletion, **arguments(), steps=8, baseline="mask").value
    for share in (fall.area[fall.best], fall.area[-1]):
        assert f"{share:.0%}" in told(app)
    assert words("zh")[f"encoder.measure_{MEASURES[fall.best]}"] in told(app)
    shown = metrics(app)
    assert shown[words("zh")["encoder.check_summed"]] == f"{found.saliency.summed:+.4f}"
    assert shown[words("zh")["encoder.check_gap"]] == significant(found.saliency.gap, sign=True)


@pytest.mark.parametrize("name", ["gradient", "product", "occlusion", "rollout", "last"])
def test_every_measure_is_shown_with_its_formula(name: str) -> None:
    app = part("tokens", encoder_measure=name)
    app.button(key="show_encoder_tokens").click().run()
    assert not app.exception
    assert prose("en", "encoder")[f"measure_{name}"] in told(app)
    assert len(app.latex) == 1
    assert words("en")["encoder.check_gap"] not in metrics(app)


def test_agreement_is_judged_by_the_mean_over_pairs() -> None:
    app = part("agree", encoder_baseline="zero")
    asks(app)[0].set_value("close").run()
    found = ask_once(measures, **arguments(), steps=16, baseline="zero").value
    assert metrics(app)[words("en")["encoder.mean_rho"]] == f"{found.mean_rho:+.2f}"
    outcome = "close" if found.mean_rho >= 0.7 else "loose" if found.mean_rho >= 0.3 else "none"
    said = words("en")["try.right"] if outcome == "close" else words("en")[f"encoder.agree_{outcome}"]
    assert said in told(app)


def test_weights_are_shuffled_after_a_prediction(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MORE_MODELS, str(small))
    text = "a glass box a bell a box"
    app = run("encoder", lang="zh", model="tiny", text=text, encoder_part="agree", encoder_shuffle_open="true")
    asks(app)[-1].set_value("attention").run()
    assert not app.exception
    assert prose("zh", "encoder")["shuffle_after"] in told(app)


@pytest.mark.nightly
def test_many_reviews_are_averaged(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MORE_MODELS, str(small))
    app = run("encoder", model="tiny", text="a glass box a bell", encoder_part="agree", encoder_many_open="true")
    app.button(key="show_encoder_agree").click().run()
    assert not app.exception
    assert words("en")["encoder.many_note"].format(count=24, language="English") in told(app)
    assert words("en")["encoder.believe_reviews"].partition("{")[0] in told(app)


def test_the_second_sentence_is_suggested_until_it_is_written() -> None:
    app = part("edit")
    suggested = counter_examples(**arguments()).found[0].text
    box = app.text_input(key="encoder_other@encoder")
    assert box.value == suggested
    assert "encoder_other" not in app.query_params
    prompt = Prompt(open_bundle("sentiment"), TEXT, 64)
    pair = sentence_pair(prompt=prompt, other=prompt.with_text(suggested))
    differ = int((pair.spread[0] > 0).sum())
    assert words("en")["encoder.spread_start"].format(differ=differ, count=len(pair.labels)) in told(app)
    other = "The film was not bad, but I loved the ending."
    app.text_input(key="encoder_other@encoder").set_value(other).run()
    found = sentence_pair(prompt=prompt, other=prompt.with_text(other))
    asks(app)[0].set_value(str(found.separate_from)).run()
    assert words("en")["try.right"] in told(app)
    assert minus(f"{100 * found.moved:+.1f}") in told(app)
    app.button(key="encoder_suggest").click().run()
    assert app.text_input(key="encoder_other@encoder").value == suggested


def test_calibration_is_shown_after_a_prediction(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MORE_MODELS, str(small))
    app = run("encoder", lang="en", model="tiny", text="a glass box", encoder_part="sure")
    assert set(metrics(app).values()) <= {"–"}
    asks(app)[0].set_value("over").run()
    app.slider(key="encoder_temperature@encoder").set_value(2.0).run()
    assert not app.exception
    bundle = open_bundle("tiny")
    n_tokens = len(bundle.tokenizer.encode("a glass box"))
    found = calibration(prompt=Prompt(bundle, "a glass box", n_tokens), reviews=600, temperature=2.0)
    assert metrics(app)[words("en")["encoder.number_error"]] == f"{found.error:.3f}"
    assert metrics(app)[words("en")["encoder.number_overall"]] == f"{found.overall:.1%}"


def test_probes_are_shown_after_a_prediction(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MORE_MODELS, str(small))
    app = run("encoder", model="tiny", text="a glass box", encoder_probes_open="true")
    asks(app)[0].set_value("coin").run()
    assert not app.exception
    assert words("en")["encoder.probes_measured"].split("{")[0] in told(app)


@pytest.mark.parametrize("name", PARTS)
def test_models_of_other_labels_and_shapes_are_read(name: str, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MORE_MODELS, str(small))
    query = {"model": "post", "text": "a glass box a bell", "encoder_probes_open": "true"}
    app = run("encoder", encoder_part=name, **query)
    assert not app.exception
    assert not app.error
    if name in ("layers", "sure"):
        assert words("en")["encoder.other_labels"].format(labels="no, yes") in told(app)


@pytest.mark.parametrize("name", ["sum", "agree"])
def test_another_sentence_asks_for_another_prediction(name: str) -> None:
    app = part(name)
    asks(app)[0].set_value({"sum": "0", "agree": "close"}[name]).run()
    assert asks(app)[0].value is not None
    app.text_input(key="text@encoder").set_value("A dull film, but I loved the ending.").run()
    assert asks(app)[0].value is None


@pytest.mark.nightly
def test_the_scripts_compute_the_same() -> None:
    here = arguments()
    for answer in (
        ask(measures, **here, steps=4, baseline="mask"),
        ask(sentence_pair, **here, other=here["prompt"].with_text("The film was bad.")),
        ask(sanity_check, **here, shuffles=1, seed=0),
    ):
        repeats(answer.script, answer.arrays)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_mean_that_counts_padding_is_shown_beside_one_that_does_not(language: str) -> None:
    app = part("sum", lang=language, encoder_padding_open="true", encoder_pads="12")
    assert not app.exception
    found = padded_mean(**arguments(), pads=32)
    assert f"{found.all_moves[12]:.1%}" in told(app)
    assert "**0%**" in told(app)
    app.slider(key="encoder_pads@encoder").set_value(20).run()
    assert f"{found.all_moves[20]:.1%}" in told(app)


@pytest.mark.parametrize(("trained", "held_out", "holds"), [(0.9, 0.87, True), (0.9, 0.86, False), (0.8, 0.9, True)])
def test_what_was_learned_holds_where_the_gap_is_within_an_error(trained: float, held_out: float, holds: bool) -> None:
    both: dict[str, Any] = {"trained": np.array([[trained]]), "probes": np.array([[held_out]])}
    found: Any = SimpleNamespace(pooling="cls", error=0.035, **both)
    assert generalises(found) == holds


@pytest.mark.parametrize(("best", "said"), [(0.44, True), (0.46, False), (0.6, False)])
def test_a_measure_is_believed_where_it_beats_chance_by_more_than_its_error(best: float, said: bool) -> None:
    found: Any = SimpleNamespace(best=0, area=np.array([best, 0.5]), error=np.array([0.05, 0.0]))
    assert beats_chance(found) == said
