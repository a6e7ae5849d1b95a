"""The page's part on sampling: temperature, top-k and top-p over cached logits, and a thousand draws."""

from typing import Any

import streamlit as st

from pages.figures.likeliest import redrawn_bars
from pages.gpt.figures import draws_bars
from pages.gpt.text import BACK, TOP
from pages.kit.asking import Answer, ask
from pages.kit.charts import Drawing, show_drawing
from pages.kit.controls import Slider, Values, show_in_columns
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.live import Live
from pages.language import plain, section, t
from pages.room import Part
from transformer_core.analysis.gpt.next_token import Draws, Redrawn, drawn, redrawn

DRAWS = 1_000
COLD = 0.3
MOST_SEED = 999
MOST_K = 50
SEED = Slider("gpt_seed", 0, MOST_SEED, 0, label="gpt.seed")
TEMPERATURE = Slider("gpt_temperature", 0.1, 3.0, 0.7, step=0.05, kind=float, label="gpt.temperature", format="%.2f")
TOP_K = Slider("gpt_top_k", 0, MOST_K, 0, label="gpt.top_k")
TOP_P = Slider("gpt_top_p", 0.05, 1.0, 0.9, step=0.05, kind=float, label="gpt.top_p", format="%.2f")
RULES = (TEMPERATURE, TOP_K, TOP_P)


def rules_in(values: Values) -> dict[str, Any]:
    """Return temperature, top-k and top-p as functions of the library take them, None where a rule is off."""
    top_p = round(values[TOP_P], 2) if values[TOP_P] < 1 else None
    return {"temperature": round(values[TEMPERATURE], 2), "top_k": values[TOP_K] or None, "top_p": top_p}


def next_draw() -> None:
    """Take the seed after this one; only in a callback."""
    SEED.take((SEED.read() + 1) % (MOST_SEED + 1))


def _picture(view: View, values: Values) -> Live:
    """Return the probabilities before and after the rules, and the counts of many draws, at the chosen place."""
    asked = {"prompt": view.prompt, "place": len(view.encoding) + values[BACK]} | rules_in(values) | {"top": TOP}
    seed = values[SEED]
    return Live(drawings=(_redrawn(ask(redrawn, **asked)), _draws(ask(drawn, **asked, seed=seed, draws=DRAWS), seed)))


def _show(view: View) -> None:
    """Show the probabilities before and after the rules, and the counts of many draws beside them."""
    place = len(view.encoding) + BACK.show(view)
    show_in_columns(view, *RULES, gap="medium")
    bars, many = st.columns(2, gap="large")
    with many:
        title, again = st.columns([3, 2], vertical_alignment="bottom")
        title.markdown(t("gpt.draws_heading", draws=f"{DRAWS:,}"))
        again.button(t("gpt.draw_again"), icon=":material/casino:", key="gpt_draw_again", on_click=next_draw)
        seed = SEED.show()
    probabilities, draws = DRAW.live(view).drawings
    with bars:
        st.markdown(t("gpt.rules_heading", place=place, token=plain(view.encoding.labels[place - 1])))
        show_drawing(probabilities)
        _numbers(probabilities.answer.value)
        show_prose(section("gpt", "kept"), small=True)
    with many:
        _many(draws, seed)
    DRAW.follow(view)
    _cold(view, place)


def _redrawn(answer: Answer[Redrawn]) -> Drawing:
    found = answer.value
    rest = (found.rest_before, found.rest_after)
    chart = redrawn_bars(found.labels, found.before, found.after, found.kept, rest, _words(found))
    return Drawing("gpt_redrawn", chart, answer, "gpt_redrawn", t("gpt.redrawn_label"))


def _draws(answer: Answer[Draws], seed: int) -> Drawing:
    found = answer.value
    words = {name: t(f"gpt.draws_{name}") for name in ("count", "counted", "due", "rest")}
    chart = draws_bars(found.labels, found.probabilities, found.counts, found.spread, words)
    return Drawing("gpt_draws", chart, answer, f"gpt_draws_seed{seed}", t("gpt.draws_label", draws=f"{DRAWS:,}"))


def _words(found: Redrawn) -> dict[str, str]:
    words = {name: t(f"gpt.bar_{name}") for name in ("before", "after", "cut")}
    rest = t("gpt.rest", count=f"{found.n_tokens - len(found.ids):,}")
    return words | {"probability": t("gpt.probability"), "rest": rest}


def _numbers(found: Redrawn) -> None:
    before, after, kept = st.columns(3)
    before.metric(t("gpt.entropy_before"), t("gpt.in_bits", bits=f"{found.entropy_before:.2f}"))
    after.metric(
        t("gpt.entropy_after"),
        t("gpt.in_bits", bits=f"{found.entropy_after:.2f}"),
        delta=f"{found.entropy_after - found.entropy_before:+.2f}",
        delta_color="off",
    )
    kept.metric(t("gpt.kept"), f"{found.n_kept:,} / {found.n_tokens:,}", help=t("gpt.kept_help"))
    st.caption(t("gpt.cut_measured", cut=f"{found.cut:.2%}"))


def _many(draws: Drawing, seed: int) -> None:
    found: Draws = draws.answer.value
    st.markdown(t("gpt.first_draw", seed=seed, token=plain(found.first)))
    show_drawing(draws)
    st.caption(
        t("gpt.draws_measured", within=found.within, count=found.possible, distance=f"{found.distance:.2%}"),
    )


@experiment("gpt_cold_open", "gpt.try_cold")
def _cold(view: View, place: int) -> None:
    options = options_of("gpt.cold_{}", ("rises", "little", "half", "most"))
    question = section("gpt", "try_cold").format(place=place)
    cover = ask_first(question, options, name="gpt_cold", about=f"{view.bundle.name} {place} {view.encoding.text}")
    rules = {"temperature": COLD, "top_k": None, "top_p": None}
    found = ask(redrawn, prompt=view.prompt, place=place, **rules, top=TOP).value
    left = found.entropy_after / found.entropy_before if found.entropy_before else 1.0
    outcome = "rises" if left > 1 else "little" if left > 2 / 3 else "half" if left > 1 / 3 else "most"
    measured = t(
        "gpt.cold_measured",
        before=f"{found.entropy_before:.2f}",
        after=f"{found.entropy_after:.2f}",
        share=f"{left:.0%}",
        token=plain(found.labels[0]),
        was=f"{found.before[0]:.1%}",
        now=f"{found.after[0]:.1%}",
    )
    cover.judge(outcome, measured)
    with cover.picture():
        say(section("gpt", "cold_after"))


DRAW = Part("gpt", "draw", _show, _picture, (BACK, SEED, *RULES))
