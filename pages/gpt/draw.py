"""The page's part on sampling: temperature, top-k and top-p over cached logits, and a thousand draws."""

from dataclasses import dataclass
from typing import Any

import streamlit as st

from pages.figures.likeliest import redrawn_bars
from pages.gpt.figures import draws_bars
from pages.gpt.text import TOP, choose_place
from pages.ui.asking import ask
from pages.ui.boxes import ask_first, lazy_box, say
from pages.ui.charts import show_chart
from pages.ui.glossary import tell
from pages.ui.header import View
from pages.ui.language import plain, section, t
from pages.ui.url import next_seed, slide
from transformer_core.analysis.gpt.next_token import Redrawn, drawn, redrawn

DRAWS = 1_000
COLD = 0.3
SEED, MOST_SEED = "gpt_seed", 999
MOST_K = 50


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
        temperature = slide(
            t("gpt.temperature"), 0.1, 3.0, name="gpt_temperature", default=0.7, step=0.05, format="%.2f"
        )
    with places[1]:
        top_k = int(slide(t("gpt.top_k"), 0, MOST_K, name="gpt_top_k", default=0))
    with places[2]:
        top_p = slide(t("gpt.top_p"), 0.05, 1.0, name="gpt_top_p", default=0.9, step=0.05, format="%.2f")
    return SamplingRules(round(float(temperature), 2), top_k or None, round(float(top_p), 2) if top_p < 1 else None)


def choose_seed() -> int:
    """Show the slider of the seed."""
    return int(slide(t("gpt.seed"), 0, MOST_SEED, name=SEED, default=0))


def next_draw() -> None:
    """Take the seed after this one; only in a callback."""
    next_seed(SEED, most=MOST_SEED)


def draw_part(view: View) -> None:
    """Show the probabilities before and after the rules, and the counts of many draws beside them."""
    place = choose_place(view)
    rules = choose_rules()
    answer = ask(redrawn, **view.asked, place=place, **rules.asked, top=TOP)
    found = answer.value
    bars, many = st.columns(2, gap="large")
    with bars:
        st.markdown(t("gpt.rules_heading", place=place, token=plain(view.encoding.labels[place - 1])))
        chart = redrawn_bars(
            found.labels, found.before, found.after, found.kept, (found.rest_before, found.rest_after), _words(found)
        )
        show_chart(chart, answer, key="gpt_redrawn", stem="gpt_redrawn", label=t("gpt.redrawn_label"))
        _numbers(found)
        tell(section("gpt", "kept"), small=True)
    with many:
        _many(view, place, rules)
    _cold(view, place)


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


def _many(view: View, place: int, rules: SamplingRules) -> None:
    title, again = st.columns([3, 2], vertical_alignment="bottom")
    title.markdown(t("gpt.draws_heading", draws=f"{DRAWS:,}"))
    again.button(t("gpt.draw_again"), icon=":material/casino:", key="gpt_draw_again", on_click=next_draw)
    seed = choose_seed()
    answer = ask(drawn, **view.asked, place=place, **rules.asked, top=TOP, seed=seed, draws=DRAWS)
    found = answer.value
    st.markdown(t("gpt.first_draw", seed=seed, token=plain(found.first)))
    words = {name: t(f"gpt.draws_{name}") for name in ("count", "counted", "due", "rest")}
    chart = draws_bars(found.labels, found.chances, found.counts, found.spread, words)
    label = t("gpt.draws_label", draws=f"{DRAWS:,}")
    show_chart(chart, answer, key="gpt_draws", stem=f"gpt_draws_seed{seed}", label=label)
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
