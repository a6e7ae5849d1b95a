"""The page's part on sampling: temperature, top-k and top-p over cached logits, and a thousand draws."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.figures.likeliest import redrawn_bars
from pages.gpt.figures import draws_bars
from pages.gpt.text import BACK, TOP, choose_place, chosen_place
from pages.ui.asking import Answer, ask
from pages.ui.charts import Drawing, show_drawing
from pages.ui.experiment import ask_first, lazy_box, say
from pages.ui.glossary import tell
from pages.ui.header import View
from pages.ui.language import plain, section, t
from pages.ui.live import Live, follow_finger
from pages.ui.pickers import chosen_seed, next_seed
from pages.ui.url import slid, slide
from transformer_core.analysis.gpt.next_token import Draws, Redrawn, drawn, redrawn

DRAWS = 1_000
COLD = 0.3
SEED, MOST_SEED = "gpt_seed", 999
MOST_K = 50
TEMPERATURE: dict[str, Any] = {"name": "gpt_temperature", "low": 0.1, "high": 3.0, "default": 0.7, "step": 0.05}
TOP_K: dict[str, Any] = {"name": "gpt_top_k", "low": 0, "high": MOST_K, "default": 0}
TOP_P: dict[str, Any] = {"name": "gpt_top_p", "low": 0.05, "high": 1.0, "default": 0.9, "step": 0.05}
RULES = (TEMPERATURE, TOP_K, TOP_P)


@dataclass(frozen=True)
class SamplingRules:
    """Temperature, top-k and top-p as a person set them; None where a rule is off."""

    temperature: float
    top_k: int | None
    top_p: float | None

    @property
    def asked(self) -> dict[str, Any]:
        """The rules as keyword arguments of the library's functions."""
        return {"temperature": self.temperature, "top_k": self.top_k, "top_p": self.top_p}


def choose_rules() -> SamplingRules:
    """Show the sliders of temperature, top-k and top-p side by side."""
    places = st.columns(3, gap="medium")
    with places[0]:
        slide(t("gpt.temperature"), **TEMPERATURE, format="%.2f")
    with places[1]:
        slide(t("gpt.top_k"), **TOP_K)
    with places[2]:
        slide(t("gpt.top_p"), **TOP_P, format="%.2f")
    return chosen_rules()


def chosen_rules() -> SamplingRules:
    """Return what the sliders of temperature, top-k and top-p hold, without them."""
    temperature, top_k, top_p = (slid(**ends) for ends in RULES)
    return SamplingRules(
        round(float(temperature), 2), int(top_k) or None, round(float(top_p), 2) if top_p < 1 else None
    )


def choose_seed() -> int:
    """Show the slider of the seed."""
    return int(slide(t("gpt.seed"), 0, MOST_SEED, name=SEED, default=0))


def chosen_seed_of_draws() -> int:
    """Return the seed, without its slider."""
    return chosen_seed(SEED, most=MOST_SEED)


def next_draw() -> None:
    """Take the seed after this one; only in a callback."""
    next_seed(SEED, most=MOST_SEED)


def live_draw(view: View) -> Live:
    """Return the probabilities before and after the rules, and the counts of many draws, at the chosen place."""
    asked = view.asked | {"place": chosen_place(view)} | chosen_rules().asked | {"top": TOP}
    seed = chosen_seed_of_draws()
    return Live(drawings=(_redrawn(ask(redrawn, **asked)), _draws(ask(drawn, **asked, seed=seed, draws=DRAWS), seed)))


def draw_part(view: View) -> None:
    """Show the probabilities before and after the rules, and the counts of many draws beside them."""
    place = choose_place(view)
    choose_rules()
    bars, many = st.columns(2, gap="large")
    with many:
        title, again = st.columns([3, 2], vertical_alignment="bottom")
        title.markdown(t("gpt.draws_heading", draws=f"{DRAWS:,}"))
        again.button(t("gpt.draw_again"), icon=":material/casino:", key="gpt_draw_again", on_click=next_draw)
        seed = choose_seed()
    chances, draws = live_draw(view).drawings
    with bars:
        st.markdown(t("gpt.rules_heading", place=place, token=plain(view.encoding.labels[place - 1])))
        show_drawing(chances)
        _numbers(chances.answer.value)
        tell(section("gpt", "kept"), small=True)
    with many:
        _many(draws, seed)
    sliders = {BACK: place - len(view.encoding), SEED: seed}
    sliders |= {ends["name"]: slid(**ends) for ends in RULES}
    follow_finger("gpt", "draw", view, sliders=sliders)
    _cold(view, place)


def _redrawn(answer: Answer[Redrawn]) -> Drawing:
    found = answer.value
    rest = (found.rest_before, found.rest_after)
    chart = redrawn_bars(found.labels, found.before, found.after, found.kept, rest, _words(found))
    return Drawing("gpt_redrawn", chart, answer, "gpt_redrawn", t("gpt.redrawn_label"))


def _draws(answer: Answer[Draws], seed: int) -> Drawing:
    found = answer.value
    words = {name: t(f"gpt.draws_{name}") for name in ("count", "counted", "due", "rest")}
    chart = draws_bars(found.labels, found.chances, found.counts, found.spread, words)
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


def _cold(view: View, place: int) -> None:
    box = lazy_box(t("gpt.try_cold"), icon=":material/science:", key="gpt_cold_open")
    if box is None:
        return
    with box:
        options = {name: t(f"gpt.cold_{name}") for name in ("rises", "little", "half", "most")}
        question = section("gpt", "try_cold").format(place=place)
        cover = ask_first(question, options, name="gpt_cold", about=f"{view.bundle.name} {place} {view.encoding.text}")
        rules = SamplingRules(COLD, None, None)
        found = ask(redrawn, **view.asked, place=place, **rules.asked, top=TOP).value
        left = found.entropy_after / found.entropy_before if found.entropy_before else 1.0
        outcome = "rises" if left > 1 else "little" if left > 2 / 3 else "half" if left > 1 / 3 else "most"
        cover.judge(
            outcome,
            t(
                "gpt.cold_measured",
                before=f"{found.entropy_before:.2f}",
                after=f"{found.entropy_after:.2f}",
                share=f"{left:.0%}",
                token=plain(found.labels[0]),
                was=f"{found.before[0]:.1%}",
                now=f"{found.after[0]:.1%}",
            ),
        )
        with cover.picture():
            say(section("gpt", "cold_after"))
