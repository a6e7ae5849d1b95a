"""The page's part that trains with and without the causal mask: the losses, and what each model then writes."""

import html

import streamlit as st

from pages.kit.asking import Answer
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Kept, Slider
from pages.kit.device import show_processor
from pages.kit.experiment import ask_first, options_of, say_number
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.waiting import awaited
from pages.language import language, plain, section, t
from pages.masks.figures import SERIES, losses
from pages.room import Part
from transformer_core.analysis.masks.training_without_mask import Cheating, mask_cheating

CORPUS = Choice(
    "masks_corpus",
    ("en", "zh"),
    label="masks.corpus",
    words="masks.corpus_{}",
    default=lambda _: language(),
    always=True,
)
STEPS = Choice("masks_steps", (120, 240, 360), label="masks.steps", default=240, kind=int)
SEED = Slider("masks_seed", 0, 9, 0, label="masks.seed")
TRAINED = Kept[str]("masks_trained")  # for which choices somebody asked
ABOUT_EQUAL = 0.2  # nats


def _show_curves(answer: Answer[Cheating]) -> None:
    honest, cheater = answer.value.honest, answer.value.cheater
    numbers = {
        "honest": honest.held_out_masked[-1],
        "cheater": cheater.held_out[-1],
        "cheater_masked": cheater.held_out_masked[-1],
        "guessing": answer.value.guessing,
    }
    for (name, value), place in zip(numbers.items(), st.columns(len(numbers)), strict=True):
        say_number(t(f"masks.end_{name}"), t("masks.nats", value=f"{value:.2f}"), at=place)
    names = {name: t(f"masks.series_{name}") for name in SERIES}
    chart = losses(
        answer.arrays,
        names | {"step": t("masks.step"), "loss": t("masks.loss"), "guessing": t("masks.guessing_line")},
    )
    show_chart(chart, answer, key="masks_losses", stem="mask_cheating", label=t("masks.chart_label"))


def _show_written(found: Cheating) -> None:
    show_prose(section("masks", "written"))
    for name, learner in (("honest", found.honest), ("cheater", found.cheater)):
        with st.container(border=True):
            st.caption(t(f"masks.writes_{name}"))
            st.html(f"<b>{html.escape(found.prompt)}</b>{html.escape(learner.written)}")
    st.caption(t("masks.truth", prompt=plain(found.prompt), truth=plain(found.truth)))


def _outcome(found: Cheating) -> str:
    gap = float(found.cheater.held_out[-1] - found.honest.held_out[-1])
    return "equal" if abs(gap) < ABOUT_EQUAL else "lower" if gap < 0 else "higher"


def _show(_: View) -> None:
    """Ask for a prediction, train both models on a click, and show the results."""
    show_processor()
    controls, places = (CORPUS, STEPS, SEED), st.columns([1, 1.2, 1.2], gap="medium")
    for place, control in zip(places, controls, strict=True):
        with place:
            control.show()
    corpus, steps, seed = CORPUS.read(), STEPS.read(), SEED.read()
    options = options_of("masks.guess_{}", ("lower", "equal", "higher"))
    cover = ask_first(section("masks", "try_cheat"), options, name="masks_cheat")
    asked = f"{corpus}.{steps}.{seed}"
    if cover.open and not TRAINED.read():
        TRAINED.set(asked)
    if cover.open and TRAINED.read() != asked:
        st.button(
            t("masks.train"),
            type="primary",
            icon=":material/play_arrow:",
            on_click=TRAINED.set,
            args=(asked,),
            key="masks_train",
        )
        st.caption(t("masks.train_note", steps=steps))
        return
    trained, said = {"language": corpus, "steps": steps, "seed": seed}, t("masks.training", steps=steps)
    with cover.picture():
        answer = awaited(mask_cheating, said, key="masks_cheat", height=640, **trained)
        if answer is None:
            return
        _show_curves(answer)
    cover.judge(_outcome(answer.value))
    if cover.open:
        _show_written(answer.value)


CHEAT = Part("masks", "cheat", _show, sites=None)
