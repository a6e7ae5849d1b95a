"""The page's part on confidence: a reliability diagram on held-out built-in reviews, and a temperature to try."""

from typing import Any

import streamlit as st

from pages.encoder.figures import reliability
from pages.encoder.layers import HELD_OUT, knows_reviews
from pages.encoder.names import class_name
from pages.kit.asking import Answer, answered, ask_once
from pages.kit.charts import Drawing, show_drawing
from pages.kit.controls import Slider, Values
from pages.kit.experiment import ask_first, fragment, options_of, say, say_number
from pages.kit.explanation import show_explanation
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.verdict import show_verdict, verdict_of
from pages.kit.waiting import awaited
from pages.language import section, strings, t
from pages.room import Part
from transformer_core.analysis.encoder.calibration import Calibration, calibration
from transformer_core.analysis.encoder.layers import layer_verdicts, read_reviews

EVEN = 0.03
BINS = 10
TEMPERATURE = Slider(
    "encoder_temperature", 0.5, 4.0, 1.0, step=0.05, label="encoder.temperature", kind=float, format="%.2f"
)


@fragment
def _show(view: View) -> None:
    """Ask whether confidence and accuracy agree, then show the reliability diagram at the chosen temperature."""
    if not knows_reviews(view):
        return
    live = SURE.live(view)
    own = ask_once(layer_verdicts, prompt=view.prompt).value
    show_verdict(live.verdicts["encoder_sure"], place="encoder_sure")
    options = options_of("encoder.sure_{}", ("over", "even", "under"))
    question = section("encoder", "try_sure").format(count=HELD_OUT)
    cover = ask_first(question, options, name="encoder_sure", about=view.bundle.name)
    shown = st.container()
    temperature, reading = TEMPERATURE.show(), t("encoder.reading", count=HELD_OUT)
    SURE.follow(view)
    with shown, cover.picture():
        read = awaited(read_reviews, reading, key="encoder_sure", height=460, **_reviews(view))
        if read is not None:
            drawing = _drawn(view, read.value, temperature)
            _show_calibration(drawing)
    if read is not None:
        plain_one = _calibrated(view, read.value, 1.0).value
        gap = plain_one.mean_confidence - plain_one.overall
        cover.judge("even" if abs(gap) < EVEN else "over" if gap > 0 else "under")
    show_explanation(view)  # at the end, because it grows with the sentence
    st.caption(t("encoder.sure_of_yours", label=class_name(view, own.winner), sure=f"{max(own.final):.1%}"))
    with cover.picture("_after"):
        say(section("encoder", "sure_after"))


def _picture(view: View, values: Values) -> Live:
    """Return the verdict and, where the reviews have been read, the diagram at the chosen temperature.

    Raises:
        ValueError: the model is no classifier.
    """
    own = ask_once(layer_verdicts, prompt=view.prompt).value
    verdicts = {"encoder_sure": verdict_of(view.bundle.labels, own.final)}
    read = answered(read_reviews, **_reviews(view))
    drawings = () if read is None else (_drawn(view, read, values[TEMPERATURE]),)
    return Live(verdicts=verdicts, drawings=drawings)


def _reviews(view: View) -> dict[str, Any]:
    return {"bundle": view.bundle, "train": 0, "held_out": HELD_OUT}


def _calibrated(view: View, read: Any, temperature: float) -> Answer[Calibration]:
    asked = {"prompt": view.prompt, "reviews": HELD_OUT, "bins": BINS, "temperature": round(temperature, 2)}
    return ask_once(calibration, {"read": read}, **asked)


def _drawn(view: View, read: Any, temperature: float) -> Drawing:
    answer = _calibrated(view, read, temperature)
    words = strings("encoder") | {"here": t("encoder.here", sure=f"{answer.value.here:.1%}")}
    chart = reliability(answer.arrays, answer.value.here, words)
    return Drawing("encoder_reliability", chart, answer, "encoder_reliability", t("encoder.reliability_label"))


def _show_calibration(drawing: Drawing) -> None:
    chart_place, words_place = st.columns([3, 2], gap="large")
    with chart_place:
        show_drawing(drawing)
    with words_place:
        _show_numbers(drawing.answer.value)


def _show_numbers(found: Calibration) -> None:
    numbers = {
        "mean_confidence": f"{found.mean_confidence:.1%}",
        "overall": f"{found.overall:.1%}",
        "error": f"{found.error:.3f}",
        "loss": f"{found.loss:.3f}",
    }
    for place, (name, number) in zip([*st.columns(2), *st.columns(2)], numbers.items(), strict=True):
        say_number(t(f"encoder.number_{name}"), number, note=t(f"encoder.help_{name}"), at=place)
    count = int(found.counts[found.place])
    right = round(float(found.accuracy[found.place]) * count) if count else 0
    low, high = found.edges[found.place : found.place + 2]
    say(
        t("encoder.like_yours", low=f"{low:.0%}", high=f"{high:.0%}", count=count, right=right)
        if count
        else t("encoder.none_like_yours", low=f"{low:.0%}", high=f"{high:.0%}")
    )
    say(
        t(
            "encoder.best_temperature",
            best=f"{found.best:.2f}",
            before=f"{found.error_before:.3f}",
            after=f"{found.error_after:.3f}",
        )
    )
    say(t("encoder.sure_note", count=found.reviews, language=t(f"encoder.corpus_{found.language}")), small=True)


SURE = Part("encoder", "sure", _show, _picture, (TEMPERATURE,))
