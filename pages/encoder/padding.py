"""The experiment of the page's part on the sum: a mean that counts padding beside the mean over real tokens."""

import numpy as np
import streamlit as st

from pages.encoder.names import class_name
from pages.figures.charts import HUES
from pages.figures.curves import Side, curves
from pages.kit.asking import ask_once
from pages.kit.charts import Drawing, show_drawing
from pages.kit.controls import Kept, Slider
from pages.kit.experiment import experiment, say
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.number_format import percent
from pages.kit.url import read_switch
from pages.language import plain, section, t
from transformer_core.analysis.encoder.padded_mean import PaddedMean, padded_mean

MOST, DEFAULT, LEAST_SHARE = 32, 8, 4
HUES_OF_MEANS = (HUES["value"], HUES["key"])


def _most(view: View) -> int:
    return min(MOST, max(1, view.bundle.config.max_len // LEAST_SHARE))  # the text keeps the rest


PADS = Slider("encoder_pads", 0, _most, lambda view: min(DEFAULT, _most(view)), label="encoder.pads")
OPEN = Kept("encoder_padding_open", parse=lambda _, text: bool(read_switch(text)))  # by the box


def drawn_means(view: View, pads: int) -> Drawing:
    """Return how far both means move, with a number of pads marked."""
    answer = ask_once(padded_mean, prompt=view.prompt, pads=_most(view))
    found = answer.value
    chart = curves(
        found.pads,
        {t("encoder.mean_real"): found.real_moves, t("encoder.mean_all"): found.all_moves},
        across=Side(t("encoder.axis_pads")),
        up=Side(t("encoder.axis_moved"), format=".0%", domain=(0.0, float(max(found.all_moves.max(), 1e-3)))),
        at=pads,
        hues=HUES_OF_MEANS,
        points=False,
    )
    return Drawing("encoder_padding", chart, answer, "encoder_padding", t("encoder.padding_label"))


@experiment(OPEN.name, "encoder.try_padding")
def try_padding(view: View) -> None:
    """Show how far both means move as padding is appended, and what the class map makes of each."""
    config = view.bundle.config
    if config.pad_id is None:
        st.info(t("encoder.no_padding", name=plain(view.bundle.name)), icon=":material/info:")
        return
    show_prose(section("encoder", "padding"))
    pads = PADS.show(view)
    drawing = drawn_means(view, pads)
    found: PaddedMean = drawing.answer.value
    st.code(
        f"x.sum(1) / n_positions             # {t('encoder.mean_all')}\n"
        f"(x * real).sum(1) / real.sum(1)    # {t('encoder.mean_real')}",
        language="python",
    )
    show_drawing(drawing)
    say(
        t(
            "encoder.padding_measured",
            pads=pads,
            tokens=found.n_real,
            real=percent(float(np.round(found.real_moves[pads], 5))),
            all=percent(float(found.all_moves[pads])),
            label=class_name(view, found.winner),
            before=percent(float(found.all_shares[0])),
            after=percent(float(found.all_shares[pads])),
            real_after=percent(float(found.real_shares[pads])),
        )
    )
    if config.pooling == "cls":
        say(t("encoder.padding_of_cls"), small=True)
