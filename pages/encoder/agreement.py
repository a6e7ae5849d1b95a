"""The page's part on agreement: all pairs of measures, on one sentence and many, and with shuffled weights."""

import math

import numpy as np
import streamlit as st

from pages.encoder.faithfulness import show_deletion_on_reviews
from pages.encoder.figures import agreement_figure, maps_figure, measures_figure, stage_lines
from pages.encoder.names import figure_words, measure_names
from pages.encoder.tokens import BASELINE, DEFAULT_STEPS, MEASURE, has_words, measured, show_signs
from pages.kit.asking import Answer
from pages.kit.charts import show_chart
from pages.kit.experiment import Cover, ask_first, experiment, fragment, options_of, say, say_number
from pages.kit.exports import export_matrix
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.matrix import show_matrix
from pages.kit.waiting import awaited
from pages.language import section, t
from pages.room import Part
from transformer_core.analysis.encoder.faithfulness import SanityCheck, sanity_check
from transformer_core.analysis.encoder.measures import MEASURES, Measures, agreement_on_reviews
from transformer_core.analysis.rank_correlation import agreement_word

REVIEWS = 24
SHUFFLES = 3
HEIGHT = 700  # of a board with its words


@fragment
def _show(view: View) -> None:
    """Ask whether the measures agree and show their rank correlations, here, over reviews and in a sanity check."""
    if not has_words(view):
        return
    baseline = BASELINE.show(view)
    answer = measured(view, steps=DEFAULT_STEPS, baseline=baseline)
    if answer is None:
        return
    view = view.of(answer)
    figure = measures_figure(answer.value.values, measure_names(), view.encoding.labels, figure_words())
    show_matrix(figure, answer, key="encoder_agree_measures", version=f"agree|{baseline}|{view.encoding.text}")
    show_signs(view, answer.value)
    options = options_of("encoder.agree_{}", ("close", "loose", "none"))
    cover = ask_first(section("encoder", "try_agree"), options, name="encoder_agree", about=view.name)
    _show_board(view, answer, cover)
    if cover.open:
        _over_reviews(view)
    _try_shuffling(view)


def _signed(rho: float) -> str:
    """Return a rank correlation in two decimals, or a dash where there is none."""
    return "–" if math.isnan(rho) else f"{rho:+.2f}"


def _show_board(view: View, answer: Answer[Measures], cover: Cover) -> None:
    found = answer.value
    if math.isnan(found.mean_rho):
        st.info(t("encoder.no_rho", count=found.count), icon=":material/info:")
        return
    cover.judge(agreement_word(found.mean_rho))
    with cover.picture():
        board_place, words_place = st.columns([3, 2], gap="large")
        with board_place:
            figure = agreement_figure({"rho": found.rho}, measure_names(short=True), figure_words())
            show_matrix(figure, answer, key="encoder_rho", files=True, version=f"rho|{view.encoding.text}")
        with words_place:
            say_number(t("encoder.mean_rho"), _signed(found.mean_rho), note=t("encoder.rho_help"))
            say(_extremes(found))
            say(section("encoder", "agree_after"))


def _extremes(found: Measures) -> str:
    """Return which two measures agree most and which least, and how often chance does as well."""
    names = measure_names()
    pairs = [(row, col) for row in range(len(names)) for col in range(row) if np.isfinite(found.rho[row, col])]
    pairs.sort(key=lambda pair: found.rho[pair])
    lines = [
        t(
            f"encoder.{kind}_agreed",
            one=names[col],
            other=names[row],
            rho=_signed(float(found.rho[row, col])),
            chance=f"{found.chance[row, col]:.1%}",
        )
        for kind, (row, col) in (("most", pairs[-1]), ("least", pairs[0]))
    ]
    return "\n".join(f"- {line}" for line in [*lines, t("encoder.ranked", count=found.count)])


def _reviews_heading(view: View) -> str:
    return t("encoder.over_reviews", count=REVIEWS)


@experiment("encoder_many_open", _reviews_heading, icon=":material/library_books:")
def _over_reviews(view: View) -> None:
    reading, asked = t("encoder.reading", count=REVIEWS), {"bundle": view.bundle, "count": REVIEWS}
    answer = awaited(agreement_on_reviews, reading, key="encoder_many", height=HEIGHT, **asked)
    if answer is None:
        return
    found = answer.value
    st.markdown(t("encoder.many_measured", rho=_signed(found.mean_rho), count=found.reviews))
    shown = {"rho": found.rho, "same_first": found.same_first}
    figure = agreement_figure(shown, measure_names(short=True), figure_words())
    show_matrix(figure, answer, key="encoder_many", version="rho of reviews")
    language = t(f"encoder.corpus_{found.language}")
    st.caption(t("encoder.many_note", count=found.reviews, language=language))
    export_matrix(figure, answer, key="encoder_many")
    show_deletion_on_reviews(view, REVIEWS)


@experiment("encoder_shuffle_open", "encoder.try_shuffle", icon=":material/shuffle:")
def _try_shuffling(view: View) -> None:
    options = options_of("encoder.shuffle_{}", ("nothing", "attention", "gradients"))
    cover = ask_first(section("encoder", "try_shuffle"), options, name="encoder_shuffle", about=view.name)
    shuffling, asked = t("encoder.shuffling", count=SHUFFLES), {"prompt": view.prompt, "shuffles": SHUFFLES, "seed": 0}
    with cover.picture():
        answer = awaited(sanity_check, shuffling, key="encoder_shuffle", height=HEIGHT, **asked)
        if answer is None:
            return
        if np.isfinite(answer.value.mean_rho[1:]).any():
            _show_shuffled(view, answer)
    if not np.isfinite(answer.value.mean_rho[1:]).any():
        st.info(t("encoder.no_rho", count=int(answer.value.words.sum())), icon=":material/info:")
        return
    cover.judge(_most_like(answer.value))


def _most_like(found: SanityCheck) -> str:
    """Return which kind of map changes least when only the class map is shuffled."""
    left = dict(zip(MEASURES, np.nan_to_num(found.mean_rho[1]).tolist(), strict=True))
    attention = max(left["rollout"], left["last"])
    gradients = max(value for name, value in left.items() if name not in ("rollout", "last"))
    return "nothing" if max(attention, gradients) < 0.5 else "attention" if attention >= gradients else "gradients"


def _show_shuffled(view: View, answer: Answer[SanityCheck]) -> None:
    found = answer.value
    layer = t("encoder.stage_layer")
    stages = [
        layer.format(layer=stage[5:]) if stage[:5] == "layer" else t(f"encoder.stage_{stage}") for stage in found.stages
    ]
    words = {"stage": t("encoder.axis_stage"), "value": t("encoder.axis_rho")}
    series = {name: found.mean_rho[:, place] for place, name in enumerate(measure_names())}
    spread = {name: found.spread[:, place] for place, name in enumerate(measure_names())}
    chart = stage_lines(stages, series, words, domain=(-1.0, 1.0), level=0.0, spread=spread, height=330)
    show_chart(chart, answer, key="encoder_sanity", label=t("encoder.sanity_label"))
    last = found.seed + found.shuffles - 1
    say(t("encoder.sanity_note", count=found.shuffles, seed=found.seed, last=last), small=True)
    name = MEASURE.show()
    maps = found.maps[:, MEASURES.index(name)]
    figure = maps_figure(maps, stages, view.encoding.labels, figure_words())
    show_matrix(figure, answer, key="encoder_maps", files=True, version=f"{name}|{view.encoding.text}")
    show_prose(section("encoder", "shuffle_after"))


AGREE = Part("encoder", "agree", _show)
