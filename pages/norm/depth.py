"""The page's part on depth: gradients in untrained stacks, and a deep stack trained with and without residuals."""

from typing import Any

import streamlit as st

from pages.kit.asking import Answer
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Kept, Slider, show_in_columns
from pages.kit.device import show_processor
from pages.kit.experiment import ask_first, fragment, options_of, say
from pages.kit.header import View
from pages.kit.number_format import markdown_table, significant
from pages.kit.waiting import awaited
from pages.language import section, strings, t
from pages.norm.figures import MEASURES, depth_chart, training_chart
from pages.room import Part
from transformer_core.analysis.stream.depth import (
    MOST_LAYERS,
    MOST_TRAINED_LAYERS,
    GradientsByDepth,
    deep_training,
    gradients_by_depth,
)

LAYERS = Slider("norm_depth", 2, MOST_LAYERS, 24, label="norm.depth")
WIDTH = Choice("norm_width", (32, 48, 64), label="norm.width", kind=int)
SEED = Slider("norm_seed", 0, 20, 0, label="norm.seed")
MEASURE = Choice("norm_measure", MEASURES, label="norm.measure", words="norm.measure_{}", default="input_gradients")
ORDER = Choice("norm_order", ("pre", "post"), label="norm.order", words="norm.stack_{}")
TRAINED = Kept[str]("norm_trained")  # for which choices somebody asked
SAME = 100.0


@fragment
def _show(view: View) -> None:
    """Ask what happens to the gradient, measure it, and train on request."""
    n_layers, d_model, seed = show_in_columns(view, LAYERS, WIDTH, SEED, widths=(2, 1, 1), gap="large")
    show_processor()
    _gradients(n_layers, d_model, seed)
    _train(n_layers, seed)


def _gradients(n_layers: int, d_model: int, seed: int) -> None:
    options = options_of("norm.gradient_{}", ("vanishes", "stays", "explodes"))
    cover = ask_first(section("norm", "try_depth").format(layers=n_layers), options, name="norm_depth")
    asked: dict[str, Any] = {"n_layers": n_layers, "d_model": d_model, "seed": seed}
    with cover.picture():
        answer = awaited(gradients_by_depth, t("norm.measuring"), key="norm_depth", height=1_050, **asked)
        if answer is None:
            return
        measure = MEASURE.show()
        figure, _, numbers = st.columns([30, 2, 18])
        with figure:
            show_chart(
                depth_chart([vars(profile) for profile in answer.value.profiles], strings("norm"), measure=measure),
                answer,
                key="norm_depth_chart",
                stem=f"norm_depth_{measure}",
                label=t("norm.depth_label", measure=t(f"norm.measure_{measure}"), layers=n_layers),
            )
        with numbers:
            say(_table(answer))
            say(t("norm.depth_note", layers=n_layers, width=d_model, seed=seed), small=True)
            say(section("norm", "depth_after"))
    ratios = {(profile.norm, profile.residual): profile.first_over_last for profile in answer.value.profiles}
    plain = ratios["pre", False]
    cover.judge("vanishes" if plain < 1 / SAME else "explodes" if plain > SAME else "stays")


def _table(answer: Answer[GradientsByDepth]) -> str:
    head = [t("norm.stack"), t("norm.first_over_last"), t("norm.last_apart")]
    rows = []
    for profile in answer.value.profiles:
        kind = t("norm.with_residuals") if profile.residual else t("norm.without_residuals")
        name = f"{t(f'norm.stack_{profile.norm}')}, {kind}"
        rows.append((name, significant(profile.first_over_last, 3), significant(profile.apart[-1])))
    return markdown_table(head, rows, right=2)


def _train(n_layers: int, seed: int) -> None:
    st.subheader(t("norm.train"), anchor=False)
    layers = min(n_layers, MOST_TRAINED_LAYERS)
    st.markdown(section("norm", "train").format(layers=layers))
    order = ORDER.show()
    asked = f"{layers}.{order}.{seed}"
    start = t("norm.train_start")
    st.button(start, icon=":material/play_arrow:", key="norm_train", on_click=TRAINED.take, args=(asked,))
    if TRAINED.read() != asked:
        return
    training, settings = t("norm.training", layers=layers), {"n_layers": layers, "norm_order": order, "seed": seed}
    answer = awaited(deep_training, training, key="norm_training", height=360, **settings)
    if answer is None:
        return
    found = answer.value
    show_chart(
        training_chart(answer.arrays, strings("norm")),
        answer,
        key="norm_training",
        label=t("norm.training_label", layers=layers),
    )
    st.markdown(
        t(
            "norm.trained",
            layers=layers,
            steps=max(len(found.with_residuals), len(found.without_residuals)),
            right_with=f"{found.right_with:.1%}",
            right_without=f"{found.right_without:.1%}",
            loss_with=f"{found.with_residuals[-1]:.3f}",
            loss_without=f"{found.without_residuals[-1]:.3f}",
            guessing=f"{found.guessing:.3f}",
            parameters=f"{found.parameters:,}",
        )
    )


DEPTH = Part("norm", "depth", _show)
