"""Why divide by sqrt(d_k)? On random vectors of any width, and on the queries and keys of the typed sentence."""

import math

import numpy as np
import streamlit as st

from pages.figures.charts import HUES as ROLES
from pages.figures.curves import GREY, Side, bars, curves, dots
from pages.kit.asking import Answer, ask, ask_once
from pages.kit.charts import Drawing
from pages.kit.controls import Choice, Values
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.number_format import significant
from pages.language import t
from pages.why.frame import SEED, Desk, Finding, drawing_of, question
from transformer_core.analysis.why.scaling import WIDTHS, OwnSpread, Spread, spread_by_width, spread_of_own_heads

ON = Choice("why_scaling_on", ("random", "sentence"), label="why.scaling.on", words="why.scaling.{}")
WIDTH = Choice("why_scaling_width", WIDTHS, label="why.scaling.width", default=4, kind=int, form="steps")
MEASURES = ("variance", "weights", "entropy", "gradient")
HUES = (ROLES["key"], ROLES["query"])
WAYS, HUES_OF_WAYS = ("undivided", "divided", "divided_wide"), (*HUES, ROLES["value"])


def _outcome(found: Spread) -> str:
    greatest = found.greatest[-1]
    return "winner" if greatest > 0.9 else "most" if greatest > 0.5 else "mixed"


def _picture(_: View, values: Values) -> Live:
    """Return what random vectors of the chosen width and below it measure.

    Raises:
        ValueError: the sentence's own vectors are shown, which follow the text with the page's run.
    """
    if values[ON] != "random":
        raise ValueError("the sentence's own vectors follow with the page's run")
    answer, width = ask_once(spread_by_width, seed=SEED), values[WIDTH]
    found, index = answer.value, WIDTHS.index(width)

    def pair(measure: str) -> dict:
        named = {"undivided": measure, "divided": f"{measure}_divided"}
        return {t(f"why.scaling.{name}"): getattr(found, field) for name, field in named.items()}

    def against_width(measure: str, up: Side, law: dict) -> Drawing:
        across, hues = Side(t("why.scaling.d_k"), log=True), (*HUES, GREY)
        guides = dict.fromkeys(law, 256.0)
        chart = curves(found.widths, pair(measure) | law, across=across, up=up, upto=width, hues=hues, guides=guides)
        return drawing_of("scaling", chart, answer, measure)

    weights = {name: values[index] for name, values in pair("weights").items()}
    up = Side(t("why.scaling.weight"), domain=(0.0, 1.0))
    each = bars([str(key) for key in range(found.n_keys)], weights, across=t("why.scaling.key"), up=up, hues=HUES)
    return Live(
        drawings=(
            against_width(
                "variance", Side(t("why.scaling.variance_axis"), log=True), {t("why.scaling.law"): found.widths}
            ),
            drawing_of("scaling", each, answer, "weights"),
            against_width("entropy", Side(t("why.scaling.entropy_axis"), domain=(0.0, 2.8)), {}),
            against_width("gradient", Side(t("why.scaling.gradient_axis"), domain=(0.0, 0.36)), {}),
        )
    )


def _random(desk: Desk, answer: Answer[Spread]) -> Finding:
    found = answer.value
    with desk.controls:
        width = WIDTH.show()
    index = WIDTHS.index(width)
    with desk.picture:
        places = [*st.columns(2), *st.columns(2)]
        for place, measure, drawing in zip(places, MEASURES, SCALING.live(desk.view).drawings, strict=True):
            with place:
                desk.drawing(drawing, measure)
        SCALING.follow(desk.view)
    numbers = {
        "slope": f"{found.slope:.2f}",
        "width": str(width),
        "variance": significant(found.variance[index], 3),
        "variance_divided": f"{found.variance_divided[index]:.2f}",
        "greatest": f"{found.greatest[index]:.0%}",
        "greatest_divided": f"{found.greatest_divided[index]:.0%}",
        "kept": f"{found.gradient[index] / found.gradient_divided[index]:.0%}",
        "widest": f"{found.greatest[-1]:.0%}",
        "n_queries": f"{found.n_queries:,}",
        "n_keys": str(found.n_keys),
    }
    return Finding(_outcome(found), numbers, "random")


def _sentence(desk: Desk, answer: Answer[OwnSpread], outcome: str) -> Finding:
    found = answer.value
    groups = [t("axis.layer", number=layer) for layer in found.layers]
    names = [f"{group}, {t('axis.head', number=head)}" for group, head in zip(groups, found.heads, strict=True)]

    def heads(values: tuple[np.ndarray, ...], up: Side, rules: dict[str, float], what: str) -> None:
        ways = [desk.word(way) for way in WAYS]
        chart = dots(
            groups * len(ways),
            np.concatenate(values).tolist(),
            [way for way in ways for _ in names],
            across="",
            up=up,
            details=names * len(ways),
            rules=rules,
            hues=HUES_OF_WAYS,
            height=330,
        )
        desk.chart(chart, answer, what)

    with desk.picture:
        unit = {desk.word("if_unit", d_head=found.d_head): float(found.d_head)}
        up = Side(desk.word("variance_axis"), log=True)
        heads((found.variance, found.variance_divided, found.variance_wide), up, unit, "own_variance")
        even = {desk.word("even", n=f"{found.largest_entropy:.2f}"): found.largest_entropy}
        up = Side(desk.word("entropy_axis"))
        heads((found.entropy_undivided, found.entropy, found.entropy_wide), up, even, "own_entropy")
    share = math.sqrt(found.d_head / found.d_model)
    wide = {"d_model": found.d_model, "share": f"{share:.0%}", "entropy": f"{found.entropy_wide.mean():.2f}"}
    numbers = {
        "low": significant(found.variance.min(), 3),
        "high": significant(found.variance.max(), 3),
        "d_head": str(found.d_head),
        "n_heads": str(len(names)),
        "above": str(int((found.variance > found.d_head).sum())),
        "entropy": f"{found.entropy.mean():.2f}",
        "undivided": f"{found.entropy_undivided.mean():.2f}",
        "largest": f"{found.largest_entropy:.2f}",
        "wide": desk.word("wide_same" if found.d_head == found.d_model else "wide", **wide),
    }
    return Finding(outcome, numbers, "sentence")


def _experiment(desk: Desk) -> Finding:
    with desk.controls:
        part = ON.show()
    law = ask_once(spread_by_width, seed=SEED)
    if part == "random":
        return _random(desk, law)
    return _sentence(desk, ask(spread_of_own_heads, prompt=desk.view.prompt), _outcome(law.value))


SCALING = question("scaling", ("mixed", "most", "winner"), _experiment, _picture, (ON, WIDTH), group="attention")
