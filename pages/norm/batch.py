"""The experiment of the page's part on one vector: layer norm beside batch norm, in a batch that is padded."""

import streamlit as st

from pages.figures.charts import HUES
from pages.figures.curves import Side, bars
from pages.kit.asking import ask_once
from pages.kit.charts import show_chart
from pages.kit.controls import Slider
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.header import View
from pages.kit.number_format import percent
from pages.language import joined, plain, section, t
from transformer_core.analysis.stream.batch_norm import batch_norms

OTHERS = Slider("norm_others", 1, 15, 3, label="norm.batch_others")
LEAST, HALF = 0.05, 0.5
JUST_SEEN = 0.0005  # of a vector's length, as it is written


def mended(padded: float, real: float) -> str:
    """Return what leaving padding out of mean and variance does for a sentence in a batch.

    Args:
        padded, real: how far its vectors move with padding counted and left out, as shares of their length.
    """
    if abs(padded - real) < JUST_SEEN:
        return "same"
    return "worse" if real > padded else "nearly" if real < LEAST else "part"


@experiment("norm_batch_open", "norm.try_batch")
def try_batch(view: View) -> None:
    """Ask how far batch norm moves the sentence when others join its batch, and show it beside layer norm."""
    if view.bundle.config.pad_id is None:
        st.info(t("norm.no_padding", name=plain(view.bundle.name)), icon=":material/info:")
        return
    options = options_of("norm.batch_{}", ("least", "some", "half"))
    cover = ask_first(section("norm", "try_batch"), options, name="norm_batch", about=view.name)
    others = OTHERS.show(view)
    answer = ask_once(batch_norms, prompt=view.prompt, others=others)
    found = answer.value
    mean, real = float(found.batch_moves.mean()), float(found.real_moves.mean())
    cover.judge("least" if mean < LEAST else "some" if mean < HALF else "half")
    with cover.picture():
        series = {
            t("norm.batch_layer"): found.layer_moves,
            t("norm.batch_all"): found.batch_moves,
            t("norm.batch_real"): found.real_moves,
        }
        chart = bars(
            tuple(f"{place} {label}" for place, label in enumerate(found.labels)),
            series,
            across=t("norm.token"),
            up=Side(t("norm.batch_axis"), format=".0%"),
            hues=(HUES["value"], HUES["key"], HUES["positions"]),
        )
        show_chart(chart, answer, key="norm_batch", label=t("norm.batch_label"))
        say(
            t(
                "norm.batch_measured",
                others=others,
                padding=percent(found.padding),
                layer=percent(float(found.layer_moves.max())),
                batch=percent(mean),
                real=percent(real),
            )
        )
        say(joined(section("norm", "batch_after"), t(f"norm.mended_{mended(mean, real)}")), small=True)
