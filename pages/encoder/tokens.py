"""The page's part on tokens: six measures of what the verdict rests on, with integrated gradients checked."""

import numpy as np
import streamlit as st

from pages.encoder.faithfulness import show_deletion
from pages.encoder.figures import measures_figure, token_bars
from pages.encoder.names import class_name, figure_words, measure_names, token_name
from pages.kit.asking import Answer
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Slider, show_in_columns
from pages.kit.experiment import Cover, as_old, ask_first, fragment, say, say_number
from pages.kit.exports import export_matrix
from pages.kit.header import View, some_places
from pages.kit.matrix import show_matrix
from pages.kit.number_format import significant
from pages.kit.waiting import awaited
from pages.language import plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.encoder.measures import MEASURES, Measures, measures
from transformer_core.analysis.encoder.saliency import Baseline, baselines

INTEGRATED = MEASURES.index("integrated")
DEFAULT_STEPS = 16
BASELINE = Choice[Baseline](  # of integrated gradients
    "encoder_baseline",
    lambda view: baselines(view.bundle),
    label="encoder.baseline",
    words="encoder.baseline_{}",
)
STEPS = Slider("encoder_steps", 2, 128, DEFAULT_STEPS, step=2, label="encoder.steps")
MEASURE = Choice("encoder_measure", MEASURES, label="encoder.measure", words="encoder.measure_{}", default="integrated")
MOST_BRIEF = 800  # tokens times steps that take a moment
FORMULAS = {
    "gradient": r"\left\lVert\frac{\partial m}{\partial e_i}\right\rVert_2",
    "product": r"\frac{\partial m}{\partial e_i}\cdot e_i",
    "integrated": r"(e_i-e'_i)\cdot\int_0^1\frac{\partial m\,(e'+\alpha(e-e'))}{\partial e_i}\,d\alpha",
    "occlusion": r"m(x)-m(x\ \text{without}\ x_i)",
    "rollout": r"\big(\tilde A_L\cdots\tilde A_1\big)_{\text{verdict},\,i}",
    "last": r"\big(\bar A_L\big)_{\text{verdict},\,i}",
}


def has_words(view: View) -> bool:
    """Return whether the text has a token that is not special; say so on the page where it has none."""
    if not all(view.encoding.special):
        return True
    st.info(t("encoder.no_words"), icon=":material/info:")
    return False


@fragment
def _show(view: View) -> None:
    """Ask which word counts most, then show all six measures, and one of them as bars with its formula."""
    if not has_words(view):
        return
    shown = st.container()
    baseline, steps = show_in_columns(view, BASELINE, STEPS, widths=[2, 3], gap="large")
    with shown:
        answer = measured(view, steps=steps, baseline=baseline)
    if answer is None:
        return
    found, view = answer.value, view.of(answer)
    with shown:
        cover = _guess_token(view, found)
        _judge(view, found, cover)
    with shown, cover.picture():
        figure = measures_figure(found.values, measure_names(), view.encoding.labels, figure_words())
        show_matrix(figure, answer, key="encoder_measures", version=f"{baseline}.{steps}|{view.encoding.text}")
        show_signs(view, found)
        export_matrix(figure, answer, key="encoder_measures")
    with as_old(answer, key="encoder_measures"), cover.picture("_one"):
        _show_one(view, answer)
    if cover.open and not answer.old:
        show_deletion(view, steps=steps, baseline=baseline)


def measured(view: View, *, steps: int, baseline: Baseline) -> Answer[Measures] | None:
    """Return all six measures of the text; None while they are computed, with a box in their place."""
    brief = len(view.encoding) * steps <= MOST_BRIEF
    asked = {"prompt": view.prompt, "steps": steps, "baseline": baseline}
    return awaited(
        measures, t("encoder.measuring"), key="encoder_measures", height=420, brief=brief, stays=True, **asked
    )


def show_signs(view: View, found: Measures) -> None:
    """Say what the two colours mean: for and against the verdict, whichever class that is."""
    say(t("encoder.signs", label=class_name(view, found.saliency.winner)), small=True)


def _guess_token(view: View, found: Measures) -> Cover:
    labels = view.encoding.labels

    def called(place: int) -> str:
        return plain(labels[place] if labels.count(labels[place]) == 1 else f"{labels[place]} {place}")

    own = np.where(view.encoding.special, np.nan, found.values[INTEGRATED])
    options = {str(place): called(place) for place in some_places(own)}
    return ask_first(section("encoder", "try_tokens"), options, name="encoder_tokens", about=view.name)


def _judge(view: View, found: Measures, cover: Cover) -> None:
    first = int(found.first[INTEGRATED])
    same = int((found.first == first).sum())
    names = [
        f"{name}: {token_name(view, place) if place >= 0 else '–'}"
        for name, place in zip(measure_names(), found.first.tolist(), strict=True)
    ]
    measured = t("encoder.firsts", same=same, count=len(MEASURES), token=token_name(view, first))
    outcome = str(first) if str(first) in cover.options else token_name(view, first)
    cover.judge(outcome, f"{measured}\n\n:small[{' · '.join(names)}]")


def _show_one(view: View, answer: Answer[Measures]) -> None:
    found, checked = answer.value, answer.value.saliency
    name = MEASURE.show()
    chart_place, words_place = st.columns([3, 2], gap="large")
    winner, rival = class_name(view, checked.winner), class_name(view, checked.rival)
    with chart_place:
        words = strings("encoder") | {
            "value": t(f"encoder.unit_{name}"),
            "above": t("encoder.supports", label=winner),
            "below": t("encoder.opposes", label=winner),
        }
        chart = token_bars(found.values[MEASURES.index(name)], view.encoding.labels, words)
        label = f"{t(f'encoder.measure_{name}')}: {words['value']}"
        show_chart(chart, answer, key="encoder_one", stem=f"encoder_{name}", label=label)
    with words_place:
        st.latex(FORMULAS[name])
        say(section("encoder", f"measure_{name}"))
        say(t("encoder.margin_is", winner=winner, rival=rival, margin=f"{checked.margin:+.3f}"), small=True)
    if name == "integrated":
        _show_check(found)


def _show_check(found: Measures) -> None:
    """Compare the sum of integrated gradients with the difference of the margins."""
    checked = found.saliency
    numbers = {
        "here": f"{checked.margin:+.4f}",
        "empty": f"{checked.margin_baseline:+.4f}",
        "apart": f"{checked.margin - checked.margin_baseline:+.4f}",
        "summed": f"{checked.summed:+.4f}",
        "gap": significant(checked.gap, sign=True),
    }
    for place, (name, number) in zip(st.columns(len(numbers)), numbers.items(), strict=True):
        say_number(t(f"encoder.check_{name}"), number, at=place)
    say(t("encoder.check_note", steps=checked.steps), small=True)


TOKENS = Part("encoder", "tokens", _show)
