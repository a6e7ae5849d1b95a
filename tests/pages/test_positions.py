"""The positions page: every part and control in both languages, odd links, other kinds of models, honest numbers."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.figures.charts import rows_of
from pages.figures.positions_order import order_chart
from pages.ui import models, positions_order
from pages.ui.asking import ask, forget_answers
from pages.ui.language import words
from pages.ui.models import open_bundle
from pages.ui.positions_order import FEWEST_TEXTS, texts_for
from tests.core.helpers import made
from tests.pages.running import run, told
from tests.pages.scripts import repeats
from transformer_core.analysis.positions.exponents import compare_exponents
from transformer_core.analysis.positions.order_worth import what_order_is_worth, what_order_is_worth_here
from transformer_core.analysis.positions.schemes import score_schemes
from transformer_core.analysis.positions.sinusoids import position_matrix, step_as_rotation
from transformer_core.analysis.positions.sums import adding_is_concatenating, token_and_position
from transformer_core.checkpoints import Bundle, save
from transformer_core.models import Bert, Classifier, Gpt, Translation
from transformer_core.text import Tokenizer
from transformer_core.training.corpora.reviews import reviews

TEXT = "The film was not good, but I loved the ending."
PARTS = ("matrix", "exponent", "schemes", "sum", "order")


def page(part: str = "matrix", **query: str) -> AppTest:
    """Open a part of the page and assert that nothing failed."""
    app = run("positions", **({"text": TEXT, "positions_part": part} | query))
    assert not app.exception
    assert not app.error
    return app


def numbers(app: AppTest) -> str:
    """Return all texts of the page with its metrics."""
    return "\n".join([told(app), *(str(metric.value) for metric in app.metric)])


@pytest.fixture
def others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put tiny untrained models of every kind in place of the shipped ones."""
    texts = [example.text for example in reviews("en", train=40, held_out=0)[0]]
    tokenizer = Tokenizer.train("wordpiece", texts, vocab_size=200, lowercase=True)
    kinds = {"classifier": Classifier, "gpt": Gpt, "bert": Bert, "translation": Translation}
    schemes = {"classifier": "rotary", "gpt": "alibi", "bert": "learned", "translation": "sinusoidal"}
    for name, kind in kinds.items():
        model = made(kind, vocab_size=tokenizer.vocab_size, max_len=48, positions=schemes[name])
        labels = ("negative", "positive") if kind is Classifier else ()
        save(Bundle(name, model, tokenizer, labels), tmp_path / name)
    monkeypatch.setattr(models, "CHECKPOINTS", tmp_path)
    monkeypatch.setattr(positions_order, "MOST_TEXTS", FEWEST_TEXTS)
    open_bundle.cache_clear()
    forget_answers()
    yield
    open_bundle.cache_clear()
    forget_answers()


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("part", PARTS)
def test_every_part_is_shown_in_both_languages(language: str, part: str) -> None:
    app = page(part, lang=language)
    assert app.session_state["positions_part@positions"] == part


@pytest.mark.parametrize(
    ("part", "length", "width"), [("", "2", "2"), ("", "512", "512"), ("x", "8", "2"), ("x", "512", "510")]
)
def test_any_size_of_the_matrix_is_drawn(part: str, length: str, width: str) -> None:
    names = {f"positions_{part}length": length, f"positions_{part}d": width}
    app = page("exponent" if part else "matrix", **names)
    assert app.slider(key=f"positions_{part}length@positions").value == int(length)


@pytest.mark.parametrize(
    "query",
    [
        {"positions_length": "0", "positions_d": "-4"},
        {"positions_length": "1e9", "positions_d": "nan"},
        {"positions_part": "[x](https://example.org)"},
        {"positions_dims": "1.2.900.x.-3.٣"},
        {"positions_pos": "inf", "positions_pair": "9999", "positions_shift": "🙂"},
        {"positions_measure": "x"},
    ],
)
def test_odd_links_are_answered_in_words(query: dict[str, str]) -> None:
    app = run("positions", **query)
    assert not app.exception
    assert "](http" not in told(app)


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("schemes", "🙂"),
        ("schemes", "[PAD]"),
        ("sum", "不错的电影"),
        ("sum", "[MASK] " * 130),
        ("order", "مرحبا [PAD]"),
    ],
)
def test_any_text_is_read(part: str, text: str) -> None:
    app = page(part, text=text)
    if part == "order":
        app.radio[0].set_value("some").run()
        assert not app.exception


def test_sliders_and_curves_move_the_matrix() -> None:
    app = page()
    app.slider(key="positions_length@positions").set_value(100).run()
    app.slider(key="positions_d@positions").set_value(32).run()
    app.multiselect(key="positions_dims@positions").set_value([0, 5, 31]).run()
    app.button_group(key="positions_measure@positions").set_value("dot").run()
    assert not app.exception
    assert f"{position_matrix(length=100, d_model=32).deviation:.1e}" in told(app)
    assert app.query_params["positions_dims"] == "0.5.31"
    assert app.slider(key="positions_pos@positions").value == 12
    assert app.slider(key="positions_pair@positions").value == 4


def test_the_step_has_the_rotations_numbers() -> None:
    app = page(positions_pos="7", positions_pair="2", positions_shift="9")
    step = step_as_rotation(length=64, d_model=128, pos=7, shift=9, pair=2)
    formulas = "".join(str(formula.value) for formula in app.latex)
    assert f"{step.after[0]:.4f}" in formulas
    assert f"{step.rotation[0, 1]:.4f}" in formulas
    assert f"{step.difference:.1e}" in told(app)


def test_half_the_width_is_computed_after_the_prediction() -> None:
    app = page(positions_try="true")
    narrow = f"{position_matrix(length=64, d_model=64).cosines[-1]:.4f}"
    assert narrow not in told(app)
    app.radio[0].set_value("more").run()
    assert narrow in told(app)


def test_what_the_slip_changes_follows_the_prediction() -> None:
    app = page("exponent", positions_xlength="40", positions_xd="64")
    found = compare_exponents(length=40, d_model=64)
    row = f"| {found.still[0]} / 64 | {found.still[1]} / 64 |"
    assert row not in told(app)
    app.radio[0].set_value("double").run()
    assert row in told(app)
    assert f"{found.longest[1]:,.0f}" in told(app)


@pytest.mark.parametrize("shown", ["scores", "terms", "weights"])
def test_schemes_are_shown_three_ways(shown: str) -> None:
    app = page("schemes", positions_shown=shown, head="3", positions_word="4", positions_rotary="1")
    assert "UNTRAINED" in told(app)
    app.slider(key="positions_places@positions").set_value(9).run()
    assert not app.exception


def test_the_rotary_peak_is_where_the_row_is_greatest() -> None:
    app = page("schemes", positions_try_schemes="true", head="1", positions_word="2")
    app.radio[0].set_value("here").run()
    bundle = open_bundle("sentiment")
    n_tokens = len(bundle.tokenizer.encode(TEXT))
    found = score_schemes(bundle=bundle, text=TEXT, n_tokens=n_tokens, place=2, head=1, length=32)
    row = found.terms[found.schemes.index("rotary"), 16]
    assert f"**{int(row.argmax())}** ({row.max():.4f})" in told(app)


def test_the_sum_is_measured_on_the_models_vectors() -> None:
    app = page("sum", positions_try_sum="true", positions_word="3")
    bundle = open_bundle("sentiment")
    n_tokens = len(bundle.tokenizer.encode(TEXT))
    sums = token_and_position(bundle=bundle, text=TEXT, n_tokens=n_tokens)
    assert f"{sums.token_norms.mean():.2f}" in numbers(app)
    both = adding_is_concatenating(bundle=bundle, text=TEXT, n_tokens=n_tokens, place=3)
    assert f"{both.free_share:.1%}" in told(app)
    assert f"{both.parameters[1]:,}" in told(app)
    app.radio[0].set_value("little").run()
    assert sums.probabilities is not None
    winner = int(sums.probabilities[1].argmax())
    moved = 100 * (sums.probabilities[0, winner] - sums.probabilities[1, winner])
    assert f"{moved:+.2f}" in told(app)


def test_order_is_measured_only_after_the_prediction() -> None:
    app = page("order")
    bundle = open_bundle("sentiment")
    found = what_order_is_worth(bundle=bundle, texts=texts_for(bundle))
    removed = f"{100 * found.accuracy[2].mean():.1f} |"
    assert removed not in told(app)
    app.radio[0].set_value("much").run()
    assert not app.exception
    assert removed in told(app)
    here = what_order_is_worth_here(bundle=bundle, text=TEXT, n_tokens=len(bundle.tokenizer.encode(TEXT)), seeds=20)
    assert here.probabilities is not None
    flips = (here.probabilities[1].argmax(-1) != here.probabilities[0, 0].argmax()).sum()
    assert f"**{flips}**" in told(app)


@pytest.mark.usefixtures("others")
def test_models_of_other_kinds_are_measured_and_lend_their_tables() -> None:
    app = page("schemes", model="classifier")
    assert "bert" in told(app)
    assert "UNTRAINED" not in told(app)
    assert page("sum", model="classifier").info  # it is rotary, and adds no vectors
    app = page("order", model="classifier")
    app.radio[0].set_value("nothing").run()
    assert not app.exception
    assert not app.error
    for name in ("gpt", "bert"):
        bundle = open_bundle(name)
        nats = what_order_is_worth(bundle=bundle, texts=texts_for(bundle)).nats
        assert f"{nats[2].mean():.3f} |" in told(app)
        here = what_order_is_worth_here(bundle=bundle, text=TEXT, n_tokens=48, seeds=5).nats
        assert f"**{here[2].mean():.3f}**" in told(app)
    app.toggle(key="positions_all@positions").set_value(False).run()
    assert not app.exception


def test_the_script_makes_the_numbers_again() -> None:
    bundle, text = open_bundle("sentiment"), "not a dull film"
    n_tokens = len(bundle.tokenizer.encode(text))
    answer = ask(what_order_is_worth_here, bundle=bundle, text=text, n_tokens=n_tokens, seeds=2)
    repeats(answer.script, answer.arrays)


def test_figures_hold_the_numbers_of_the_library() -> None:
    english = {key.removeprefix("positions."): word for key, word in words("en").items()}
    values = np.array([[0.5, 0.5], [0.4, 0.2], [0.1, 0.1], [0.3, 0.3]])
    treatments = ("kept", "positions_shuffled", "positions_removed", "tokens_shuffled")
    rows = rows_of(order_chart(values, treatments, english, axis="accuracy", whole=True))
    means = {row["treatment"]: row["mean"] for row in rows if "mean" in row}
    assert means[english["treatment_positions_shuffled"]] == pytest.approx(0.3)
    assert sum("value" in row for row in rows) >= 5
