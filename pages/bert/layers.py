"""The page's part on layers: what the masked-word head makes of each layer's vectors."""

import streamlit as st

from pages.bert.figures.guesses import board_chart, follow_chart
from pages.bert.hidden_words import (
    HIDDEN,
    called,
    chosen_places,
    has_words,
    masked_view,
    prompt_of,
    sentence_of,
    show_chips,
    show_masks,
)
from pages.figures.lens import stage_names
from pages.kit.asking import Answer, ask
from pages.kit.charts import clickable, show_chart
from pages.kit.experiment import Cover, ask_first, experiment, options_of, say
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.lens import LENS, lenses, show_lens_measured
from pages.kit.number_format import markdown_table, percent
from pages.kit.waiting import BRIEF, awaited
from pages.language import plain, section, strings, t
from pages.room import Part
from transformer_core.analysis.bert.layers import ByLayer, EachByLayer, by_layer, each_by_layer
from transformer_core.analysis.bert.masked_words import Hidden
from transformer_core.analysis.lens import Through

TOP = 5
NAMED = 3
FEW, MOST = 1 / 3, 2 / 3


def _show(view: View) -> View:
    """Show one mask from stage to stage, then every word of the sentence; return the view under the glass."""
    read = show_chips(view)
    if read is None:
        return view
    sentence, which = st.columns([5, 2], vertical_alignment="center", gap="medium")
    with which:
        place = show_masks(view, read)
        for control in lenses(view):
            control.show(view)
    with sentence:
        st.html(sentence_of(read))
    through, hidden = LENS.read(view), chosen_places(read)
    answer = ask(by_layer, prompt=prompt_of(view), hidden=hidden, place=place, top=TOP, through=through)
    found, words = answer.value, strings("bert") | {"layer": t("axis.layer")}
    stages = stage_names(len(found.ranks), words)
    with _ask_lead(view, read, place, found, stages, through).picture():
        chart, table = st.columns([3, 2], gap="large")
        with chart:
            figure = follow_chart(
                found.words, found.probabilities, found.ranks, words, true_word=found.true_word, settled=found.settled
            )
            show_chart(figure, answer, key="bert_layers", stem="bert_layer_by_layer", label=t("bert.layers_label"))
        with table:
            say(_table(found, stages))
            trained = "tuned" if through == "tuned" else view.bundle.config.norm_order
            say(section("bert", f"lens_{trained}"), small=True)
    show_prose(section("bert", "layers"))
    show_lens_measured(view)
    _each(view, read, through)
    return masked_view(view, read)


def _ask_lead(view: View, read: Hidden, place: int, found: ByLayer, stages: list[str], through: Through) -> Cover:
    """Ask from which stage on the answer leads, and judge the prediction."""
    question = section("bert", "try_lead").format(
        mask=plain(called(read, place)), word=plain(found.words[0]), chance=percent(found.probabilities[-1, 0])
    )
    named = {str(stage): name for stage, name in enumerate(stages)}
    cover = ask_first(
        question, named, name="bert_lead", about=f"{view.bundle.name} {read.masked.ids} {place} {through}"
    )
    measured = t("bert.settled_measured", stage=stages[found.settled], rank=f"{int(found.ranks[0, 0]):,}")
    cover.judge(str(found.settled), measured)
    return cover


def _table(found: ByLayer, stages: list[str]) -> str:
    head = (t("bert.axis_stage"), *(t("bert.guess_number", number=number + 1) for number in range(NAMED)))
    rows = []
    for stage, labels, shares in zip(stages, found.best_labels, found.best_probabilities, strict=True):
        cells = [f"{plain(label)} {percent(share)}" for label, share in zip(labels, shares, strict=True)][:NAMED]
        rows.append((stage, *cells))
    return markdown_table(head, rows)


@experiment("bert_each_layer_open", "bert.try_each_layer")
def _each(view: View, read: Hidden, through: Through) -> None:
    if not has_words(read):
        return
    options = options_of("bert.settled_{}", ("few", "some", "most"))
    question = section("bert", "try_settled").format(layer=view.bundle.config.n_layers - 1)
    cover = ask_first(question, options, name="bert_settled", about=f"{view.name} {through}")
    brief = len(view.encoding) <= BRIEF
    with cover.picture():
        asked = {"prompt": prompt_of(view), "through": through}
        answer = awaited(each_by_layer, t("bert.hiding_each"), key="bert_board", brief=brief, **asked)
        if answer is None:
            return
        _board(view, answer)
    found = answer.value
    early = int((found.settled < len(found.probabilities) - 1).sum())
    share = early / len(found.places)
    outcome = "few" if share < FEW else "most" if share > MOST else "some"
    measured = t("bert.settled_counted", early=early, count=len(found.places))
    cover.judge(outcome, measured)


def _board(view: View, answer: Answer[EachByLayer]) -> None:
    found = answer.value
    places = found.places.tolist()
    figure = board_chart(
        found.firsts,
        found.first_probabilities,
        found.probabilities,
        found.ranks,
        places,
        found.labels,
        found.answers,
        strings("bert_board") | {"embedding": t("bert.embedding"), "layer": t("axis.layer")},
    )
    clickable(
        figure,
        answer,
        key="bert_board",
        stem="bert_every_word_by_layer",
        label=t("bert.board_label"),
        on_place=lambda place: HIDDEN.take((place,), view),
    )
    say(section("bert", "board_note"), small=True)


LAYERS = Part("bert", "layers", _show, sites=("*.residual",), group="gap")
