"""What a score loses without a part, measured, beside the part's share: of the open part, and of every part in turn."""

from typing import Any

import numpy as np
import streamlit as st

from pages.kit.asking import ask_once
from pages.kit.charts import show_chart
from pages.kit.controls import Choice
from pages.kit.experiment import ask_first, experiment, options_of, say
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.number_format import minus
from pages.kit.waiting import BRIEF, awaited_or_why
from pages.language import plain, section, strings, t
from pages.score.figures import share_and_effect
from pages.score.names import asked_name, kind_of, part_name
from transformer_core.analysis.attention.heads import Ablation
from transformer_core.analysis.rank_correlation import agreement_word
from transformer_core.analysis.stream.score_sum import ScoreSum
from transformer_core.analysis.stream.score_without import WithoutEach, compared, score_without, score_without_each

HOW = Choice[Ablation]("score_how", ("zero", "mean"), label="score.how", words="score.how_{}")
MOST_AT_ONCE = 12_000_000  # parameters: of a larger model, what takes a pass for each part is waited for


def _signed(number: float) -> str:
    return minus(f"{number:+.3f}")


def show_effect(view: View, found: ScoreSum, asking: dict[str, Any]) -> None:
    """Show the innermost open part's share, what the score loses without it, and how the two compare."""
    opening = found.openings[-1]
    how = HOW.show()
    if view.bundle.config.n_experts and len(found.openings) > 1 and ".feed_forward" in opening.code:
        st.caption(t("score.no_effect_inside"))
        return
    without = ask_once(score_without, **asking, part=opening.code, how=how).value
    share, effect = st.columns(2)
    share.metric(t("score.share"), _signed(opening.share), help=t("score.share_help"))
    effect.metric(t("score.effect"), _signed(without.effect), help=t("score.effect_help"))
    said = compared(opening.share, without.effect)
    st.markdown(t(f"score.compared_{said}", share=_signed(opening.share), effect=_signed(without.effect)))


@experiment("score_each_open", "score.try_each")
def try_each(view: View, found: ScoreSum, asking: dict[str, Any]) -> None:
    """Ask whether shares foretell what is lost, then switch every part off in turn and show both."""
    how = HOW.read()
    options = options_of("score.agree_{}", ("close", "loose", "none"))
    name = asked_name(view, found)
    cover = ask_first(section("score", "try_each"), options, name="score_each", about=f"{view.name} {name} {how}")
    brief = view.bundle.n_parameters <= MOST_AT_ONCE and len(view.encoding) <= BRIEF
    with cover.picture():
        answer = awaited_or_why(
            score_without_each, t("score.switching"), key="score_each", brief=brief, **asking, how=how
        )
        if answer is None:
            return
        each: WithoutEach = answer.value
        names, kinds = [part_name(view, code) for code in each.names], [kind_of(code) for code in each.names]
        words = strings("score_bars") | {"effect": t("score.effect")}
        chart = share_and_effect(names, each.shares, each.effects, kinds, words, apart=each.apart)
        label = t("score.each_label", name=name)
        show_chart(chart, answer, key="score_each", stem="share_and_effect", label=label)
        apart = compared(float(each.shares[each.apart]), float(each.effects[each.apart]))
        numbers = {"share": _signed(each.shares[each.apart]), "effect": _signed(each.effects[each.apart])}
        say(t("score.apart_measured", part=plain(names[each.apart])))
        say(t(f"score.compared_{apart}", **numbers))
        show_prose(section("score", "each_after"), small=True)
    if np.isfinite(each.order.rho):
        measured = t(
            "score.order_measured",
            rho=minus(f"{each.order.rho:.2f}"),
            count=each.order.count,
            how=t(f"score.how_{how}"),
        )
        cover.judge(agreement_word(each.order.rho), measured)
