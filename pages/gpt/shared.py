"""What the parts of the GPT page share: the place in the text, the strip of its tokens, and the rules of drawing."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.figures.token_strip import text_strip
from pages.ui.asking import Answer, ask_once
from pages.ui.charts import clickable
from pages.ui.header import View, header
from pages.ui.language import t
from pages.ui.number_format import significant
from pages.ui.url import forget, keep, slide
from transformer_core.analysis.gpt.next_token import Surprisals, surprisals

EXAMPLE = "Once upon a time, there was a little elephant who loved to"
USUAL = "gpt"
BACK = "gpt_back"  # the place, counted from the end, so that it stays behind a text that grows
TOP = 10
MOST_K = 50


@dataclass(frozen=True)
class Drawing:
    """The rules of drawing as a person set them; None where a rule is off."""

    temperature: float
    top_k: int | None
    top_p: float | None

    @property
    def asked(self) -> dict[str, Any]:
        """The rules by keyword, as functions of the library take them."""
        return {"temperature": self.temperature, "top_k": self.top_k, "top_p": self.top_p}


def header_of_gpt() -> View:
    """Show the header with the models that this page can read."""
    return header(kinds=("gpt",), default=USUAL, example=EXAMPLE)


def choose_place(view: View) -> int:
    """Show where in the text one looks, and return how many tokens have been read there."""
    size = len(view.encoding)
    if size == 1:
        return 1
    return size + int(slide(t("gpt.place"), 1 - size, 0, name=BACK, default=0))


def go_to(place: int, size: int) -> None:
    """Look at another place; only in a callback."""
    forget(BACK)
    keep(BACK, str(max(1, place) - size), "0")


def choose_drawing() -> Drawing:
    """Show the controls of temperature, top-k and top-p, side by side."""
    places = st.columns(3, gap="medium")
    with places[0]:
        temperature = slide(
            t("gpt.temperature"), 0.1, 3.0, name="gpt_temperature", default=0.7, step=0.05, format="%.2f"
        )
    with places[1]:
        top_k = int(slide(t("gpt.top_k"), 0, MOST_K, name="gpt_top_k", default=0))
    with places[2]:
        top_p = slide(t("gpt.top_p"), 0.05, 1.0, name="gpt_top_p", default=0.9, step=0.05, format="%.2f")
    return Drawing(round(float(temperature), 2), top_k or None, round(float(top_p), 2) if top_p < 1 else None)


def strip_words() -> dict[str, str]:
    """Return the words of a strip of tokens."""
    names = {"token": "token", "bits": "bits_axis", "bits_most": "bits_most", "unknown": "bits_unknown"}
    return {name: t(f"gpt.{key}") for name, key in names.items()}


def measured_text(view: View) -> Answer[Surprisals]:
    """Ask how well each token of the text was foreseen."""
    return ask_once(surprisals, **view.asked)


def show_text(view: View, answer: Answer[Surprisals], place: int, *, key: str) -> None:
    """Show the text as a strip of its tokens, coloured by surprisal; a click looks at a token's place."""
    found, size = answer.value, len(view.encoding)
    blank = [""]
    about = {
        t("gpt.bits"): [_number(bits, "{:.2f}") for bits in found.bits.tolist()] + blank,
        t("gpt.probability"): [_number(chance, "{:.2%}") for chance in found.probability.tolist()] + blank,
        t("gpt.rank"): [f"{rank:,}" if rank else "" for rank in found.rank.tolist()] + blank,
        t("gpt.likeliest"): list(found.likeliest),
    }
    strip = text_strip(
        (*found.labels, "?"),
        [*found.bits.tolist(), float("nan")],
        about,
        strip_words(),
        chosen=place,
    )
    label = t("gpt.strip_label")  # of no number: a chart with another label is begun anew
    clickable(strip, answer, key=key, stem="gpt_surprisal", label=label, on_place=lambda where: go_to(where, size))


def _number(value: float, form: str) -> str:
    return form.format(value) if value == value else "–"


def written(difference: float) -> str:
    """Write a difference; one of 0 is said to be exact."""
    return t("gpt.exactly_zero") if difference == 0 else significant(difference)
