"""The positions page: every part, control and link, with numbers that the library computes."""

from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.kit.models import open_bundle
from pages.kit.number_format import significant
from pages.language import section, words
from pages.positions import beyond as part
from tests.helpers.pages import answered, asks, minus, run, told
from transformer_core.analysis.positions.beyond import SCHEMES
from transformer_core.analysis.positions.beyond_measured import beyond_shipped
from transformer_core.analysis.positions.counted import counted_positions
from transformer_core.analysis.positions.data_and_length import data_and_length
from transformer_core.analysis.positions.schemes import score_schemes
from transformer_core.analysis.positions.sinusoids import compare_exponents, position_matrix, step_as_rotation
from transformer_core.analysis.positions.sums import adding_is_concatenating, token_and_position
from transformer_core.bundle import Bundle
from transformer_core.prompt import Prompt

TEXT = "The film was not good, but I loved the ending."


def page(part: str = "matrix", **query: str) -> AppTest:
    """Open a part of the page and assert that nothing failed."""
    app = run("positions", **({"text": TEXT, "positions_part": part} | query))
    assert not app.exception
    assert not app.error
    return app


def numbers(app: AppTest) -> str:
    """Return all texts of the page with its metrics."""
    return "\n".join([told(app), *(str(metric.value) for metric in app.metric)])


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
        {"positions_part": "[x](https://example.org)"},
        {"positions_dims": "1.2.900.x.-3.٣"},
    ],
)
def test_odd_links_are_answered_in_words(query: dict[str, str]) -> None:
    app = run("positions", **query)
    assert not app.exception
    assert "](http" not in told(app)


def test_sliders_and_curves_move_the_matrix() -> None:
    app = page()
    app.slider(key="positions_length@positions").set_value(100).run()
    app.slider(key="positions_d@positions").set_value(32).run()
    app.multiselect(key="positions_dims@positions").set_value([0, 5, 31]).run()
    app.button_group(key="positions_measure@positions").set_value("dot").run()
    assert not app.exception
    assert significant(position_matrix(length=100, d_model=32).deviation) in told(app)
    assert app.query_params["positions_dims"] == "0.5.31"
    assert app.slider(key="positions_pos@positions").value == 12
    assert app.slider(key="positions_pair@positions").value == 4


def test_the_step_has_the_rotations_numbers() -> None:
    app = page(positions_pos="7", positions_pair="2", positions_shift="9")
    step = step_as_rotation(length=64, d_model=128, pos=7, shift=9, pair=2)
    formulas = "".join(str(formula.value) for formula in app.latex)
    assert f"{step.after[0]:.4f}" in formulas
    assert f"{step.rotation[0, 1]:.4f}" in formulas
    assert significant(step.difference) in told(app)


def test_half_the_width_is_shown_after_the_prediction() -> None:
    app = page(positions_try="true")
    narrow = f"{position_matrix(length=64, d_model=64).cosines[-1]:.4f}"
    assert narrow not in told(app)
    asks(app)[0].set_value("more").run()
    assert narrow in told(app)


def test_what_the_slip_changes_follows_the_prediction() -> None:
    app = page("exponent", positions_xlength="40", positions_xd="64")
    found = compare_exponents(length=40, d_model=64)
    row = f"| {found.still[0]} / 64 | {found.still[1]} / 64 |"
    assert row not in told(app)
    asks(app)[0].set_value("double").run()
    assert row in told(app)
    assert f"{found.longest[1]:,.0f}" in told(app)


@pytest.mark.parametrize("learned", [True, False])
def test_schemes_are_shown_three_ways(learned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not learned:  # as where no model of this width has learned its positions
        monkeypatch.setattr("pages.positions.schemes.model_with_learned_table", lambda _: None)
    app = page("schemes", positions_shown="scores", head="3", positions_word="4", positions_rotary="1")
    untrained = section("positions", "untrained")
    assert (untrained in told(app)) != learned
    for shown in ("scores", "terms", "weights"):
        app.button_group(key="positions_shown@positions").set_value(shown).run()
        assert (untrained in told(app)) != learned
        app.slider(key="positions_places@positions").set_value(9 if shown == "scores" else 8).run()
        assert not app.exception


def test_the_rotary_peak_is_where_the_row_is_greatest() -> None:
    app = page("schemes", positions_try_schemes="true", head="1", positions_word="2")
    asks(app)[0].set_value("here").run()
    bundle = open_bundle("sentiment")
    n_tokens = len(bundle.tokenizer.encode(TEXT))
    found = score_schemes(prompt=Prompt(bundle, TEXT, n_tokens), place=2, head=1, length=32)
    row = found.terms[found.schemes.index("rotary"), 16]
    assert f"**{int(row.argmax())}** ({row.max():.4f})" in told(app)


def test_the_sum_is_measured_on_the_models_vectors() -> None:
    app = page("sum", positions_try_sum="true", positions_word="3")
    bundle = open_bundle("sentiment")
    n_tokens = len(bundle.tokenizer.encode(TEXT))
    sums = token_and_position(prompt=Prompt(bundle, TEXT, n_tokens))
    assert f"{sums.token_norms.mean():.2f}" in numbers(app)
    both = adding_is_concatenating(prompt=Prompt(bundle, TEXT, n_tokens), place=3)
    assert f"{both.free_share:.1%}" in told(app)
    assert f"{both.parameters[1]:,}" in told(app)
    asks(app)[0].set_value("little").run()
    assert sums.probabilities is not None
    winner = int(sums.probabilities[1].argmax())
    moved = 100 * (sums.probabilities[0, winner] - sums.probabilities[1, winner])
    assert minus(f"{moved:+.2f}") in told(app)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_counted_places_are_shown_beside_the_sinusoids(language: str) -> None:
    query = {"lang": language, "text": "The film was not good.", "positions_part": "sum", "positions_counted": "128"}
    app = run("positions", **query, positions_counted_open="true")
    assert not app.exception
    next(pills for pills in asks(app) if "positions_counted" in str(pills.key)).set_value("counted").run()
    assert words(language)["try.right"] in told(app)
    found = counted_positions(prompt=Prompt(open_bundle("sentiment"), "The film was not good.", 64), length=128)
    assert f"{found.lengths[0, -1]:.1f}" in told(app)
    assert f"{found.steps[1, -1]:.4f}" in told(app)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_curves_beyond_the_length_are_those_that_were_measured(language: str) -> None:
    app = page("beyond", lang=language)
    found, cases = beyond_shipped(width=64), data_and_length()
    assert minus(f"**{found.lost('rotary'):+.2f}**") not in told(app)
    app = answered(app, "alibi")
    assert not app.exception
    said = told(app)
    assert words(language)["try.right"] in said
    for scheme in set(found.schemes):
        assert minus(f"**{found.lost(scheme):+.2f}**") in said
        row = (
            found.mean(scheme, found.within),
            found.mean(scheme, found.nats)[-1],
            found.mean(scheme, found.forgetful),
        )
        assert " | ".join(f"{value:.2f}" for value in row) in said
    assert found.spread == pytest.approx(0.27, abs=0.01)
    assert f"{found.spread:.2f}" in said
    asks(app)[1].set_value(str(int(cases.gaps.argmax()))).run()
    assert not app.exception
    for gap in cases.gaps:
        assert minus(f"**{gap:+.2f}**") in told(app)


@pytest.mark.parametrize(("gaps", "said"), [((0.5, 0.6), "all"), ((0.49, 0.5), "some"), ((0.49, 0.49), "none")])
def test_by_heart_is_said_of_losses_far_below_those_on_other_texts(gaps: tuple[float, ...], said: str) -> None:
    assert part.by_heart(np.zeros(2), np.array(gaps)) == said


def test_what_is_said_of_the_shipped_curves_is_in_them() -> None:
    found, cases = beyond_shipped(width=64), data_and_length()
    within = {scheme: found.mean(scheme, found.within) for scheme in set(found.schemes)}
    ends = {scheme: found.mean(scheme, found.nats)[-1] for scheme in within}
    assert min(within, key=within.__getitem__) == max(ends, key=ends.__getitem__) == "rotary"
    assert (cases.gaps > 0).all()
    assert cases.widths[cases.gaps.argmax()] == cases.widths.max()
    assert cases.stories[cases.gaps.argmax()] == cases.stories.max()


def test_all_five_are_trained_here_where_a_person_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict] = []
    monkeypatch.setattr(part, "awaited", lambda function, said, **given: asked.append(given))
    page("beyond")
    assert not asked
    page("beyond", positions_beyond_open="true", positions_beyond_width="32", text="电影很好看", lang="zh")
    assert [(given["width"], given["language"]) for given in asked] == [(32, "zh")]
    page("beyond", positions_beyond_open="true", positions_beyond_width="31")
    assert asked[-1]["width"] == 16


def test_what_is_said_of_the_five_schemes_is_in_what_was_measured() -> None:
    found = beyond_shipped(width=part.WIDTH)
    within = {scheme: found.mean(scheme, found.within) for scheme in SCHEMES}
    far = {scheme: found.mean(scheme, found.nats)[-1] for scheme in SCHEMES}
    assert min(within, key=within.__getitem__) == max(far, key=far.__getitem__) == "rotary"
    assert far["alibi"] == pytest.approx(within["alibi"], abs=0.05)  # it goes on
    assert 0.1 < found.lost("none") < 0.3  # rises slowly
    assert min(found.lost(scheme) for scheme in ("sinusoidal", "learned")) > 3 * found.lost("none")
    for scheme in SCHEMES:  # the simple remedy: forget all but the last windowful
        assert found.mean(scheme, found.forgetful) == pytest.approx(within[scheme], abs=0.1)


@pytest.mark.parametrize(("options", "language"), [("gemma3", "en"), ("llama3", "zh"), ("window", "en")])
def test_the_turns_of_rotary_pairs_are_said_and_counted_over_the_models_length(
    options: str, language: str, opened_odd: Callable[[str, str], Bundle]
) -> None:
    bundle, said = opened_odd("gpt", options), words(language)
    config, text = bundle.config, "Once upon a time"
    app = run("positions", lang=language, model=bundle.name, text=text, positions_part="schemes", positions_places="4")
    assert not app.exception
    found = score_schemes(prompt=Prompt(bundle, text, config.max_len), place=0, head=0, length=4)
    count = int((found.wavelengths > config.max_len).sum())
    numbers = {"count": count, "all": found.wavelengths.size, "most": config.max_len}
    assert said["positions.turns_slow"].format(**numbers) in told(app)
    own = config.positions == "rotary"
    base = f"{config.rotary_base:,g}" if own else "10,000"
    assert said[f"positions.turns_{'own' if own else 'paper'}"].format(base=base) in told(app)
    assert (said["positions.turns_in_window"].format(base="10") in told(app)) == (options == "gemma3")
    scaled = said["positions.turns_scaled"].format(name=config.rotary_scaling, factor=f"{config.rotary_factor:g}")
    assert (scaled in told(app)) == own
