"""The page on recurrent models: every part, control and link, with numbers that the library computes."""

from collections.abc import Iterator

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.before.reach import much_lost
from pages.kit.asking import ask, forget_answers
from pages.kit.models import MORE_MODELS, open_bundle, opener
from pages.kit.number_format import significant
from pages.language import words
from tests.helpers import nightly_but
from tests.helpers.engine import SENTENCE, made
from tests.helpers.pages import answered, asks, minus, repeats, run, told
from transformer_core.analysis.before import step_times as timing
from transformer_core.analysis.before.alignments import both_alignments, compared, one_vector, word_alignment
from transformer_core.analysis.before.forced_and_free import forced_and_free
from transformer_core.analysis.before.gate_ranges import gate_ranges
from transformer_core.analysis.before.gates import gates_of_sentence
from transformer_core.analysis.before.one_step import one_step
from transformer_core.analysis.before.printed_gru import printed_gru
from transformer_core.analysis.before.reach import gradient_reach, sentence_reach
from transformer_core.bundle import Bundle, save
from transformer_core.models import Translation
from transformer_core.models.recurrent import RecurrentLm, Seq2Seq
from transformer_core.prompt import Prompt
from transformer_core.text import Tokenizer

PARTS = ("gates", "step", "next", "vector", "look", "length", "reach", "time")


@pytest.fixture(scope="module", autouse=True)
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bundle]:
    """Make tiny models: two that share a tokenizer, one with another, and one without gates and attention."""
    folder = tmp_path_factory.mktemp("models")
    tokenizer, other = (
        Tokenizer.train("word", [SENTENCE, text], min_frequency=1, template="bos_eos")
        for text in ("le chat dort", "un chien court vite")
    )
    letters = Tokenizer.train("character", [SENTENCE], min_frequency=1, template="none")
    for name, kind, text, changes in (
        ("old", Seq2Seq, tokenizer, {}),
        ("bare", Seq2Seq, tokenizer, {"unit": "tanh", "attention": None, "bidirectional": False}),
        ("new", Translation, tokenizer, {}),
        ("strange", Translation, other, {}),
        ("lm", RecurrentLm, letters, {"unit": "lstm", "max_len": 32}),
        ("lm-plain", RecurrentLm, letters, {"unit": "tanh", "max_len": 32}),
        ("lm-one-hot", RecurrentLm, letters, {"one_hot": True, "max_len": 32}),
    ):
        model = made(kind, vocab_size=text.vocab_size, **changes)
        save(Bundle(name, model.requires_grad_(False), text), folder / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(MORE_MODELS, str(folder))
        patch.setattr(timing, "LENGTHS", (4, 8, 16, 32))
        opener.cache_clear()
        forget_answers()
        yield open_bundle("old")
    opener.cache_clear()
    forget_answers()


def before(**query: str) -> AppTest:
    """Open the page with the tiny recurrent model."""
    return run("before", **{"model": "old", "text": SENTENCE, "before_other": "new"} | query)


def asked(bundle: Bundle) -> dict:
    """Return what the page asks the library with."""
    return {"prompt": Prompt(bundle, SENTENCE, len(bundle.tokenizer.encode(SENTENCE)))}


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_the_word_with_the_largest_share_is_shown_after_a_prediction(bundle: Bundle, direction: str) -> None:
    found = gates_of_sentence(**asked(bundle), direction=direction)
    app = before(before_direction=direction, before_gates_open="true", before_sort="off")
    most = int(found.share.argmax())
    assert f"**{found.share[most]:.1%}**" not in told(app)
    app = answered(app, str(most))
    assert words("en")["try.right"] in told(app)
    assert f"**{found.share[most]:.1%}**" in told(app)
    kept = found.kept.mean(1)[1:-1]
    assert "Among the words" in told(app)
    assert f"**{kept.min():.0%}**" in told(app)


def test_the_translation_without_attention_is_compared_with_the_models_own(bundle: Bundle) -> None:
    found = one_vector(**asked(bundle))
    app = before(before_part="vector", before_vector_open="true")
    values = [metric.value for metric in app.metric]
    assert values == [str(len(found.source)), str(found.n_summary), str(found.n_annotations)]
    app = answered(app, "most")
    assert f"**{found.kept:.0%}**" in told(app)


def test_the_agreement_of_two_models_is_that_of_the_library(bundle: Bundle) -> None:
    other = open_bundle("new")
    both = both_alignments(other=other, **asked(bundle))
    apart, agree = compared(both.bundle.weights[0], both.other.by_head.mean((0, 1)))
    app = before(before_part="look")
    assert f"**{float(agree):.0%}** of the {len(both.bundle.target)}" in told(app)
    assert f"**{float(apart.mean()):.0%}**" in told(app)
    apart, _ = compared(both.bundle.weights[0], both.other.by_head[1, 1])
    app = before(before_part="look", translation_over="head", layer="1", head="1")
    assert f"**{float(apart.mean()):.0%}**" in told(app)


def test_models_of_other_tokens_each_keep_their_own_words(bundle: Bundle) -> None:
    app = before(before_part="look", before_other="strange")
    assert not app.exception
    assert "cuts the sentence into other tokens" in told(app)
    app = before(before_part="look", before_words="own")
    assert not app.exception
    assert word_alignment(**asked(bundle)).translation in told(app)


def test_the_alignment_of_a_typed_sentence_is_shown_after_a_prediction(bundle: Bundle) -> None:
    text = "the mat sat on a cat"
    found = word_alignment(prompt=Prompt(bundle, text, 12))
    app = before(before_part="look", before_look_open="true", before_probe=text, before_word="0")
    app = answered(app, str(int(found.weights[0, 0].argmax())))
    assert words("en")["try.right"] in told(app)
    assert f"**{found.weights[0, 0].max():.2f}**" in told(app)
    for odd in ("", "x" * 3_000):
        app = before(before_part="look", before_look_open="true", before_probe=odd)
        assert not app.exception
        assert words("en")["text.instead"].partition("{text}")[0].partition("}")[2] in told(app)


def test_the_table_has_the_gradients_of_the_library() -> None:
    found = gradient_reach(length=16, d_model=16, seed=3, gain=1.0, keep_bias=1.0)
    query = {"before_length": "16", "before_width": "16", "before_seed": "3", "before_keep": "1.0"}
    app = before(before_part="reach", **query)
    assert significant(found.relative[2, -1]) in told(app)
    app.slider(key="before_seed@before").set_value(4).run()
    other = gradient_reach(length=16, d_model=16, seed=4, gain=1.0, keep_bias=1.0)
    assert significant(other.relative[0, -1]) in told(app)
    assert app.query_params["before_seed"] in (["4"], "4")


def test_open_gates_are_compared_with_half_open_ones() -> None:
    query = {"before_part": "reach", "before_length": "16", "before_width": "16"}
    half = gradient_reach(length=16, d_model=16, seed=0)
    told_of = f"With the bias at 0 and all else the same it is {significant(half.relative[1, 8])}"
    assert told_of in told(before(**query))
    assert told_of not in told(before(**query, before_keep="0.0"))


@pytest.mark.parametrize(("gru", "lstm", "said"), [(0.5, 0.5, True), (0.51, 0.5, False), (0.5, 0.51, False)])
def test_gates_must_be_open_is_said_where_both_lose_half(gru: float, lstm: float, said: bool) -> None:
    assert much_lost({"gru": 1.0, "lstm": 1.0}, {"gru": gru, "lstm": lstm}) is said


def test_the_trained_encoders_gradients_are_shown_after_a_prediction(bundle: Bundle) -> None:
    found = sentence_reach(**asked(bundle), direction="backward")
    app = before(before_part="reach", before_length="16", before_reach_open="true", before_direction="backward")
    app = answered(app, "one")
    assert f"**{found.norms[-1] / found.norms[0]:.2%}**" in told(app)


@pytest.mark.nightly
def test_times_are_measured_again_on_request_and_shown_after_a_prediction() -> None:
    app = before(before_part="time", before_time_width="32", before_time_open="true")
    first = told(app)
    app = app.button(key="before_again").click().run()
    mine = app.session_state["before_measurement"]
    assert told(app) != first
    other = before(before_part="time", before_time_width="32").button(key="before_again").click().run()
    assert other.session_state["before_measurement"] != mine
    app = answered(app, "attention")
    assert not app.exception
    assert "the exponents are" in told(app)


def test_a_model_without_gates_and_attention_gets_a_message() -> None:
    for part in ("gates", "vector", "look"):
        app = before(model="bare", before_part=part, before_vector_open="true")
        assert not app.exception
        assert any("bare" in info.value for info in app.info)
    app = before(model="bare", before_part="reach", before_length="16", before_reach_open="true")
    assert not app.exception


def test_the_script_computes_the_same(bundle: Bundle) -> None:
    both = ask(both_alignments, other=open_bundle("new"), **asked(bundle))
    repeats(both.script, both.arrays)
    assert np.isfinite(both.arrays["difference"]).all()


@pytest.mark.parametrize(("language", "model"), [("en", "lm-gru"), ("zh", "seq2seq-en-fr")])
def test_the_printed_gru_is_shown_beside_the_computed_one(language: str, model: str) -> None:
    app = run("before", lang=language, model=model, text="A man rides.", before_printed_open="true")
    assert not app.exception
    assert len(app.latex) == 2
    found = printed_gru(prompt=Prompt(open_bundle(model), "A man rides.", 64))
    place = str(int(found.greatest.argmax()))
    next(pills for pills in asks(app) if "before_printed" in str(pills.key)).set_value(place).run()
    assert words(language)["try.right"] in told(app)
    assert significant(float(found.greatest.max()), 3) in told(app)
    assert not run("before", model="lm-lstm", before_printed_open="true").exception


@pytest.mark.parametrize(
    ("language", "model", "letters"),
    [
        ("en", "old", "rzn"),
        ("zh", "lm-lstm", "ifgo"),
        ("en", "lm-rnn", ""),
        ("en", "bare", ""),
        ("zh", "lm-one-hot", "rzn"),
    ],
)
def test_one_step_is_written_out_with_the_numbers_of_one_unit(language: str, model: str, letters: str) -> None:
    app = before(lang=language, model=model, before_part="step", before_step_at="3", before_unit="5")
    assert not app.exception
    found = one_step(prompt=Prompt(open_bundle(model), SENTENCE, 64), place=3)
    shown = app.latex[0].value
    assert all(f"{letter}&=" in shown for letter in letters)
    assert rf"\mathbf{{{found.after[5]:.3f}}}" in shown
    for part in range(len(found.parts)):
        assert f"{found.from_input[part, 5]:.3f}" in shown
        assert f"{found.from_state[part, 5]:.3f}" in shown
    assert f"{np.abs(found.after - found.before)[5]:.3f}" in told(app)


def test_right_words_before_are_held_against_the_models_own_after_a_prediction(bundle: Bundle) -> None:
    target = "le chat dort sat"
    found = forced_and_free(**asked(bundle), target=target)
    app = before(before_part="vector", before_forced_open="true", before_target=target)
    assert not app.exception
    gap = found.right - found.free_right
    app = answered(app, "more" if gap > 0 else "fewer" if gap < 0 else "alike")
    assert words("en")["try.right"] in told(app)
    assert f"**{found.right}** of the {len(found.words)}" in told(app)
    assert not before(before_part="vector", before_forced_open="true", before_target="🙂 " * 400).exception


RANGED = [("en", "old"), ("zh", "lm"), ("en", "seq2seq-en-fr"), ("zh", "lm-lstm")]


@pytest.mark.parametrize(("language", "model"), nightly_but(RANGED, RANGED[:2]))
def test_gates_are_held_against_ranges_after_a_prediction(language: str, model: str) -> None:
    app = before(lang=language, model=model, before_part="reach", before_ranges_open="true")
    assert not app.exception
    found = gate_ranges(bundle=open_bundle(model))
    best = max(zip(found.correlations, found.names, strict=True), key=lambda pair: abs(pair[0].rho))
    next(pills for pills in asks(app) if "before_ranges" in str(pills.key)).set_value(best[1]).run()
    assert words(language)["try.right"] in told(app)
    assert minus(f"**{best[0].rho:+.2f}**") in told(app)
    assert "before_ranges" not in told(before(model="lm-plain", before_part="reach", before_ranges_open="true"))


@pytest.mark.parametrize("language", nightly_but(["en", "zh"], ["zh"]))
def test_table_1_is_counted_and_timed_after_a_prediction(language: str) -> None:
    query = {"before_time_width": "32", "before_layers_open": "true", "before_kernel": "5"}
    app = before(before_part="time", lang=language, before_layers_length="64", **query)
    assert not app.exception
    answered(app, "convolution")
    assert not app.exception
    table = next(block.value for block in app.markdown if "O(k·n·d²)" in block.value).splitlines()
    assert f"{2 * 64**2 * 32:,} · O(n²·d) | 1 · O(1) | 1 · O(1)" in table[2]
    assert f"{2 * 64 * 32**2:,} · O(n·d²) | 64 · O(n) | 63 · O(n)" in table[3]
    assert f"{5 * 64 * 32**2:,} · O(k·n·d²) | 1 · O(1) | {-(-63 // 4)} · O(n/k)" in table[4]
    assert words(language)["before.layers_overtaken"].format(width=32, first=33) in told(app)
