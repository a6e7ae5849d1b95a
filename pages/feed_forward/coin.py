"""The page's part on the coin: GELU as the mean of coin tosses that keep x or give 0."""

import math

import streamlit as st

from pages.feed_forward.figures.activations import error_chart, tosses_chart
from pages.kit.asking import Answer, ask_once
from pages.kit.charts import Drawing, show_chart, show_drawing
from pages.kit.controls import Seed, Slider, Values
from pages.kit.experiment import ask_first, fragment, options_of, say, say_number
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.live import Live
from pages.language import section, strings, t
from pages.room import Part
from transformer_core.analysis.feed_forward.bernoulli import FIRST_DRAWS, MOST_DRAWS, CoinTosses, coin_tosses

X = Slider("feed_forward_x", -3.0, 3.0, 1.0, step=0.1, label="feed_forward.coin_x", kind=float, format="%.1f")
DRAWS = Slider("feed_forward_draws", FIRST_DRAWS, MOST_DRAWS, 500, step=10, label="feed_forward.coin_draws")
SEED = Seed("feed_forward_seed")
TIMES = 100
FACTORS = {"none": 1, "ten": 10, "hundred": 100}


def _picture(_: View, values: Values) -> Live:
    """Return the tosses and their mean."""
    draws = values[DRAWS]
    answer = ask_once(coin_tosses, x=round(values[X], 1), draws=draws, seed=values[SEED])
    chart = tosses_chart(answer.arrays, strings("feed_forward"))
    label = t("feed_forward.tosses_label", x=f"{answer.value.x:g}", draws=draws)
    return Live(drawings=(Drawing("feed_forward_tosses", chart, answer, "feed_forward_tosses", label),))


@fragment
def _show(view: View) -> None:
    """Show the tosses and their mean, and, after a prediction, how fast the error of the mean falls."""
    value_place, draws_place, again_place = st.columns([2, 2, 1], vertical_alignment="bottom", gap="large")
    with value_place:
        X.show(view)
    with draws_place:
        draws = DRAWS.show(view)
    with again_place:
        st.button(t("feed_forward.coin_again"), icon=":material/casino:", on_click=SEED.next, key="toss_again")
    (drawing,) = BERNOULLI.live(view).drawings
    answer: Answer[CoinTosses] = drawing.answer
    found = answer.value
    numbers = {
        "probability": f"{found.probability:.4f}",
        "kept_share": f"{found.kept.mean():.4f}",
        "mean": f"{found.mean:+.5f}",
        "expected": f"{found.expected:+.5f}",
        "error": f"{found.error:.5f}",
    }
    for (name, number), place in zip(numbers.items(), st.columns(len(numbers)), strict=True):
        say_number(t(f"feed_forward.coin_{name}", x=f"{found.x:g}"), number, at=place)
    tosses, errors = st.columns(2, gap="large")
    with tosses:
        show_drawing(drawing)
        st.caption(t("feed_forward.coin_note", seed=SEED.read(), draws=f"{draws:,}"))
    with errors:
        _errors(answer)
    BERNOULLI.follow(view)
    show_prose(section("feed_forward", "coin_after"))


def _errors(answer: Answer[CoinTosses]) -> None:
    options = options_of("feed_forward.falls_{}", FACTORS)
    cover = ask_first(section("feed_forward", "try_coin").format(times=TIMES), options, name="feed_forward_coin_error")
    found = answer.value
    if math.isnan(found.slope):
        st.info(t("feed_forward.coin_certain", x=f"{found.x:g}", probability=f"{found.probability:.6f}"))
        return
    factor = TIMES**-found.slope
    outcome = min(FACTORS, key=lambda name: abs(math.log(FACTORS[name] / factor)))
    cover.judge(outcome)
    with cover.picture():
        say(
            t(
                "feed_forward.coin_measured",
                slope=f"{found.slope:.3f}",
                repeats=found.repeats,
                times=TIMES,
                factor=f"{factor:.1f}",
            )
        )
        show_chart(
            error_chart(answer.arrays, strings("feed_forward")),
            answer,
            key="feed_forward_error",
            stem="feed_forward_coin_error",
            label=t("feed_forward.error_label", slope=f"{found.slope:.3f}"),
        )


BERNOULLI = Part("feed_forward", "bernoulli", _show, _picture, (X, DRAWS, SEED))
