"""The page's part on dying gradients: how large they are by layer and by token, of models that differ in one thing."""

import numpy as np
import streamlit as st

from pages.figures.curves import Side, curves
from pages.kit.asking import Answer
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Slider, show_in_columns
from pages.kit.experiment import fragment, say
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.matrix import Picture, export_picture, show_picture
from pages.kit.number_format import markdown_table, percent, significant
from pages.kit.waiting import awaited_or_why
from pages.language import joined, plain, section, strings, t
from pages.one_step.asked import asked, can_step, show_target
from pages.one_step.figures import about_powers, token_map
from pages.room import Part
from transformer_core.analysis.learning.dying import (
    CAUSES,
    MOST_LAYERS,
    ORDERS,
    SHIFTS,
    SITES,
    TIMES,
    DyingGradients,
    GradientProfile,
    dying_gradients,
)
from transformer_core.config import ModelConfig

VARIANTS = {"orders": ORDERS, "softmax": tuple(map(str, TIMES)), "relu": tuple(map(str, SHIFTS))}
SITE_OF_CAUSE = {"orders": "residual", "softmax": "scores", "relu": "pre_activation"}

CAUSE = Choice("one_step_cause", CAUSES, label="one_step.cause", words="one_step.cause_{}")
SITE = Choice(
    "one_step_site",
    tuple(SITES),
    default=lambda view: SITE_OF_CAUSE[CAUSE.read(view)],
    label="one_step.site",
    words="one_step.site_{}",
)
LAYERS = Slider("one_step_layers", 2, MOST_LAYERS, 12, label="one_step.layers")
SEED = Slider("one_step_seed", 0, 20, 0, label="one_step.seed")


def _variants(view: View) -> dict[str, str]:
    cause = CAUSE.read(view)
    return {name: _called(cause, name) for name in VARIANTS[cause]}


def _called(cause: str, name: str) -> str:
    return t(f"one_step.variant_{name}") if cause == "orders" else t(f"one_step.variant_{cause}", amount=name)


VARIANT = Choice(
    "one_step_variant", _variants, default=lambda view: list(_variants(view))[-1], label="one_step.variant"
)


@fragment
def _show(view: View) -> None:
    """Show gradients by layer for each variant, a table of what decides it, and a map over the tokens of one."""
    if not can_step(view):
        return
    if not isinstance(view.bundle.config, ModelConfig):
        st.info(t("one_step.needs_transformer", name=plain(view.bundle.name)), icon=":material/info:")
        return
    cause_place, target_place = st.columns([3, 2], vertical_alignment="bottom", gap="medium")
    with cause_place:
        cause = CAUSE.show(view)
    with target_place:
        show_target(view)
    n_layers, seed = 2, 0
    if cause == "orders":
        n_layers, seed = show_in_columns(view, LAYERS, SEED, widths=(2, 1), gap="large")
    about = {name: value for name, value in asked(view).items() if name in ("prompt", "answer")}
    about |= {"cause": cause, "n_layers": n_layers, "seed": seed}
    answer = awaited_or_why(dying_gradients, t("one_step.measuring"), key="one_step_dying", height=900, **about)
    if answer is None:
        return
    site = SITE.show(view)
    figure_place, _, table_place = st.columns([30, 2, 20])
    with figure_place:
        _show_layers(answer, cause, site)
    with table_place:
        say(_table(answer.value, cause, site))
        say(joined(*(_judged(cause, one, site) for one in answer.value.profiles)))
        say(t("one_step.trained" if answer.value.trained else "one_step.untrained", seed=seed), small=True)
        show_prose(section("one_step", f"cause_{cause}"), small=True)
    _show_tokens(view, answer, site)


def _show_layers(answer: Answer[DyingGradients], cause: str, site: str) -> None:
    profiles = answer.value.profiles
    series = {_called(cause, one.name): one.by_layer(site) for one in profiles}
    layers = np.arange(len(profiles[0].residual))
    chart = curves(
        layers,
        series,
        across=Side(t("one_step.axis_layer")),
        up=Side(t("one_step.axis_gradient", site=t(f"one_step.site_{site}")), log=True),
        height=360,
    )
    label = t("one_step.layers_label", site=t(f"one_step.site_{site}"))
    show_chart(chart, answer, key="one_step_by_layer", stem=f"one_step_{cause}_{site}", label=label)


def _table(found: DyingGradients, cause: str, site: str) -> str:
    measure = {"orders": "", "softmax": "saturated", "relu": "dead"}[cause]
    head = [t("one_step.variant"), t("one_step.loss"), *([t(f"one_step.{measure}")] if measure else [])]
    head.append(t("one_step.least_share"))
    rows = []
    for one in found.profiles:
        own = [percent(getattr(one, measure))] if measure else []
        rows.append([_called(cause, one.name), f"{one.loss:.3f}", *own, significant(one.smallest(site)[1])])
    return markdown_table(head, rows, right=len(head) - 1)


def _judged(cause: str, one: GradientProfile, site: str) -> str:
    layer, share = one.smallest(site)
    said = {"variant": _called(cause, one.name), "layer": layer, "share": significant(share)}
    return t(f"one_step.gradient_{one.outcome(site)}", **said)


def _show_tokens(view: View, answer: Answer[DyingGradients], site: str) -> None:
    st.subheader(t("one_step.by_token"), anchor=False)
    name = VARIANT.show(view)
    profiles = {one.name: one for one in answer.value.profiles}
    bounds = about_powers([getattr(one, site) for one in answer.value.profiles])
    figure = token_map(
        getattr(profiles[name], site),
        answer.value.tokens,
        strings("one_step_map"),
        bounds=bounds,
    )
    state = f"{answer.arguments['cause']}|{name}|{site}|{view.encoding.text}"
    picture = Picture("one_step_tokens", figure, answer, of={"variant": name, "site": site}, version=state)
    show_picture(picture)
    say(t("one_step.map_note", least=f"{bounds[0]:g}"), small=True)
    export_picture(picture)


DYING = Part("one_step", "dying", _show)
