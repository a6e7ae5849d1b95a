"""The translation page: every part, control and link, with numbers that the library computes."""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.kit.asking import ask
from pages.kit.models import MORE_MODELS, open_bundle, opener
from pages.kit.number_format import significant
from pages.language import words
from pages.translation.translated import sentences
from tests.helpers.engine import SOURCE, letters_bundle
from tests.helpers.pages import answered, asks, minus, repeats, run, show_all, told
from transformer_core.analysis.translation.beam_tree import beam_tree, best_by_width
from transformer_core.analysis.translation.greedy_steps import written_greedily
from transformer_core.analysis.translation.letter_search import letter_search
from transformer_core.analysis.translation.teacher_forcing import forced_target
from transformer_core.analysis.translation.toy_batch import convention_changes, toy_batch
from transformer_core.bundle import Bundle, save
from transformer_core.prompt import Prompt


@pytest.fixture(scope="module", autouse=True)
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bundle]:
    """Put a translator of letters among the models, and return it as the page opens it."""
    folder = tmp_path_factory.mktemp("models")
    save(letters_bundle(), folder / "letters")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MORE_MODELS, str(folder))
        opener.cache_clear()
        yield open_bundle("letters")
    opener.cache_clear()


def translation(**query: str) -> AppTest:
    """Open the page with the translator of letters."""
    return run("translation", **{"model": "letters", "text": SOURCE} | query)


def asked(bundle: Bundle) -> dict:
    """Return what the page asks the library with."""
    return {"prompt": Prompt(bundle, SOURCE, len(bundle.tokenizer.encode(SOURCE)))}


def test_the_first_step_shown_is_the_one_where_the_model_was_least_sure(bundle: Bundle) -> None:
    written = written_greedily(**asked(bundle))
    app = translation()
    unsure = int(written.probabilities.argmin())
    assert app.slider(key="translation_step@translation").value == unsure
    app.slider(key="translation_step@translation").set_value(1).run()
    assert f"{written.probabilities[1]:.2%}" in told(app)
    assert app.query_params["translation_step"] in (["1"], "1")


def test_words_that_a_model_writes_are_text(bundle: Bundle) -> None:
    written = written_greedily(**asked(bundle))
    hostile = replace(written, source=("<b>",), words=("<i>",) * len(written.words), text="<u>", prefixes=("<u>",) * 99)
    for step in (None, 0):
        assert not set(re.findall("<[a-z]+", sentences(hostile, step))) & {"<b", "<i", "<u"}


@pytest.mark.parametrize(("part", "over"), [("steps", "layer"), ("steps", "head"), ("cross", "head")])
def test_weights_of_a_layer_or_of_one_head_can_be_chosen(part: str, over: str) -> None:
    app = translation(translation_part=part, translation_over=over, head="1")
    assert not app.exception
    assert app.session_state["translation_over@translation"] == over


def test_the_probability_of_the_whole_is_shown_after_a_prediction(bundle: Bundle) -> None:
    whole = float(written_greedily(**asked(bundle)).probabilities.astype(float).prod())
    app = translation(translation_whole_open="true")
    assert f"{significant(100 * whole, 3)}%" not in told(app)
    assert f"**{significant(100 * whole, 3)}%**" in told(answered(app, "under"))


def test_a_step_or_depth_left_at_its_default_follows_the_sentence() -> None:
    for part, name in (("steps", "translation_step"), ("beam", "translation_depth")):
        app = translation(translation_part=part)
        short = app.slider(key=f"{name}@translation").value
        assert name not in app.query_params
        longer = translation(text="c", translation_part=part).slider(key=f"{name}@translation").value
        app.text_input(key="text@translation").set_value("c").run()
        assert app.slider(key=f"{name}@translation").value == longer != short
        assert name not in app.query_params


def test_the_page_says_whether_the_best_translation_was_ever_behind(bundle: Bundle) -> None:
    width = 4
    behind = beam_tree(**asked(bundle), width=width, length_penalty=0.6).behind
    app = translation(translation_part="beam", translation_width=str(width))
    start = words("en")["translation.behind" if behind else "translation.ahead"].split(":")[0]
    assert start in told(app)
    assert not beam_tree(**asked(bundle), width=1, length_penalty=0.6).behind


def test_where_a_word_looks_is_shown_after_a_prediction(bundle: Bundle) -> None:
    written = written_greedily(**asked(bundle))
    query = {"translation_cross_open": "true", "translation_word": "0", "translation_probe": SOURCE}
    app = translation(text="c a", translation_part="cross", **query)
    app = answered(app, _first(app))
    assert not app.exception
    assert f"{written.probabilities[0]:.1%}" in told(app)


def _first(app: AppTest) -> str:
    """Return the first choice's value: the place of a source word."""
    source = letters_bundle().tokenizer.encode(SOURCE)
    place = int(asks(app)[0].options[0].partition(" · ")[0])
    assert source.labels[place] in asks(app)[0].options[0]
    return str(place)


def test_the_ranking_is_that_of_the_search(bundle: Bundle) -> None:
    app = translation(translation_part="beam", translation_width="4", translation_penalty="1.2")
    tree = beam_tree(**asked(bundle), width=4, length_penalty=1.2)
    for score in tree.ranking.scores[:3]:
        assert minus(f"**{score:.3f}**") in told(app)
    assert f"{tree.n_weighed:,}" in told(app)
    app.slider(key="translation_depth@translation").set_value(1).run()
    assert not app.exception
    assert words("en")["translation.ranking"] not in told(app)


def test_every_width_is_tried_after_a_prediction(bundle: Bundle) -> None:
    app = answered(translation(translation_part="beam", translation_width_open="true"), "same")
    found = best_by_width(**asked(bundle), widest=5, length_penalty=0.6)
    gained = round(found.scores[-1], 3) - round(found.scores[0], 3)  # of what the table shows
    assert minus(f"**{gained:+.3f}**") in told(app)
    for score in found.scores:
        assert minus(f"{score:.3f}") in told(app)


def test_the_best_of_all_targets_and_greedys_gap_to_it_are_shown() -> None:
    app = translation(translation_part="search", translation_epochs="2", translation_letters="bca")
    found = letter_search(rule="copy", source="bca", epochs=2, seed=0, length_penalty=0.6)
    assert f"{found.n_targets:,}" in told(app)
    assert f"{round(found.best_scores[0], 3) - round(found.scores[0], 3):.3f}" in told(app)
    assert minus(f"{found.best_scores[0]:.3f}") in told(app)


@pytest.mark.nightly
@pytest.mark.parametrize("letters", ["", "abcabcabc", "<b>🙂"])
def test_other_letters_are_answered_in_words(letters: str) -> None:
    app = translation(translation_part="search", translation_letters=letters)
    assert not app.exception
    assert "a, b and c" in told(app)
    assert app.get("vega_lite_chart")


def test_a_target_of_ones_own_is_scored_after_a_prediction(bundle: Bundle) -> None:
    app = show_all(translation(translation_part="forced", translation_target="a a b"))
    found = forced_target(prompt=Prompt(bundle, SOURCE, 16), target="a a b")
    assert not app.exception
    assert [metric.value for metric in app.metric][:2] == [
        minus(f"{found.log_prob:.3f}"),
        minus(f"{found.per_word:.3f}"),
    ]
    assert f"{found.probabilities.min():.3%}" in told(app)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("source", "seed", "convention"),
    [("listing", 0, "listing"), ("ones", 3, "ours"), ("padded", 0, "pre_norm")],
)
def test_the_program_of_the_toy_batch_computes_what_is_shown(source: str, seed: int, convention: str) -> None:
    chosen = {"translation_toy_source": source, "translation_toy_convention": convention}
    app = translation(translation_part="toy", translation_seed=str(seed), **chosen)
    names: dict = {}
    exec(compile(app.code[0].value, "toy", "exec"), names)
    asked = {"source": source, "seed": seed, "convention": convention}
    found = toy_batch(**asked, sentence=3, layer=0, head=0)  # type: ignore[arg-type]
    assert names["source"].tolist() == found.source_ids.tolist()
    assert names["target"].tolist() == found.target_ids.tolist()
    assert np.allclose(names["logits"].detach(), found.logits, atol=1e-5)
    weights = names["trace"]["decoder.layer0.cross_attention.weights"][3, 0]
    assert np.allclose(weights.detach(), found.cross.weights, atol=1e-6)


@pytest.mark.nightly
def test_the_toy_batch_at_first_is_the_listings_and_says_what_conventions_change() -> None:
    app = translation(translation_part="toy")
    assert app.session_state["translation_toy_source@translation"] == "listing"
    assert app.session_state["translation_toy_convention@translation"] == "listing"
    assert "3,700,096" in told(app)
    assert not toy_batch(source="listing", seed=0, sentence=3, layer=0, head=0).decoder_self.mask.all()
    found = convention_changes(source="listing", seed=0)
    for parameters, moved in zip(found.parameters, found.logits_moved, strict=True):
        assert f"{parameters:,}" in told(app)
        assert significant(moved) in told(app)
    assert "3,699,968 (−128)" in told(app)


def test_the_toy_batch_shows_its_shapes_and_what_padding_gets() -> None:
    app = translation(translation_part="toy", translation_toy_source="padded", translation_shapes="true")
    found = toy_batch(source="padded", seed=0, sentence=3, layer=0, head=0)
    assert f"{found.parameters:,}" in told(app)
    assert all(f"`{name}`" in told(app) for name in found.names[:40])
    app = answered(translation(translation_part="toy", translation_toy_open="true"), "nan")
    assert words("en")["translation.row_zero"] in told(app)
    assert not app.exception


@pytest.mark.parametrize("target", ["", "🙂 مرحبا 你好", "a " * 400, "[EOS] <b>a</b>"])
def test_any_target_is_read_or_refused_in_words(target: str) -> None:
    app = translation(translation_part="forced", translation_target=target)
    assert not app.exception


@pytest.mark.parametrize(
    "query",
    [
        {"translation_part": "cross", "translation_word": "99", "translation_cross_open": "true"},
        {"text": "[BOS] [EOS]", "translation_part": "cross", "translation_cross_open": "true"},
        {"translation_part": "cross", "translation_cross_open": "true", "translation_probe": "[BOS] [EOS]"},
        {"translation_part": "cross", "translation_cross_open": "true", "translation_probe": "🙂" * 2_500},
    ],
    ids=str,
)
def test_a_link_with_impossible_values_still_opens_the_page(query: dict[str, str]) -> None:
    assert not translation(**query).exception


def test_a_tensor_of_both_sides_lies_under_the_glass() -> None:
    app = translation(glass_open="true", glass="decoder.layer0.cross_attention.weights")
    assert not app.exception
    assert "decoder.layer0.cross_attention.weights" in told(app)
    app = translation(glass_open="true", glass="encoder.layer0.self_attention.weights")
    assert not app.exception


@pytest.mark.nightly
def test_the_scripts_compute_the_same(bundle: Bundle) -> None:
    written = ask(written_greedily, **asked(bundle))
    for answer in (
        written,
        ask(beam_tree, **asked(bundle), width=2, length_penalty=0.6),
        ask(toy_batch, source="ones", seed=0, sentence=0, layer=0, head=0),
    ):
        repeats(answer.script, answer.arrays)
    assert np.isfinite(written.arrays["probabilities"]).all()
