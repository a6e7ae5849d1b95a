"""The attention of the recurrent decoder beside the cross-attention of a Transformer that reads the same text."""

from dataclasses import replace

import streamlit as st

from pages.before.figures import Looks, looks_figure, word_bars
from pages.before.recurrent import STATES, has_attention, recurrent_config, word_options
from pages.kit.asking import Answer, ask_once
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Text
from pages.kit.experiment import ask_first, experiment
from pages.kit.header import View, encoded, shown_word
from pages.kit.matrix import show_matrix
from pages.kit.models import model_names, open_or_say
from pages.language import plain, section, t
from pages.room import Part
from pages.translation.translated import choose_weights, choose_written_word, over_word, weights_over
from transformer_core.analysis.before.alignments import (
    BothAlignments,
    WordAlignment,
    both_alignments,
    compared,
    word_alignment,
)
from transformer_core.bundle import Bundle
from transformer_core.prompt import Prompt

FIRST_OTHER = "translation-en-fr"
MOST_TOKENS = 64
Chosen = tuple[str, int, int]  # see choose_weights: all, layer or head; the layer; the head


def _others(_: View | None) -> dict[str, str]:
    names = model_names(None, ("translation",))
    return {FIRST_OTHER: names[FIRST_OTHER]} | names if FIRST_OTHER in names else names


OTHER = Choice("before_other", _others, label="before.other", form="list")
WORDS = Choice("before_words", ("same", "own"), label="before.words", words="before.words_{}")


def _show_words(view: View, other: Bundle) -> str:
    if other.tokenizer.to_json() != view.bundle.tokenizer.to_json():
        st.caption(t("before.other_tokens", name=plain(other.name)))
        return "own"
    return WORDS.show()


def _show_other() -> Bundle | None:
    if not _others(None):
        st.info(t("before.no_other"), icon=":material/info:")
        return None
    return open_or_say(OTHER.show())


def _show_translations(view: View, own: str, other: Bundle | None = None, others: str = "") -> None:
    lines = [(view.bundle.name, own)] + ([(other.name, others)] if other is not None else [])
    st.markdown("  \n".join(f"{plain(name)}: **{plain(text) or '…'}**" for name, text in lines))


def _title(bundle: Bundle, detail: str) -> str:
    return f"{bundle.name} · {detail}"


def _show_looks(looks: list[Looks], answer: Answer, version: str) -> None:
    said = {"target": t("before.target"), "source": t("before.source"), "weight": t("quantity.weights")}
    figure = looks_figure(looks, said, note=section("before", "look_note"))
    show_matrix(figure, answer, key="before_looks", version=version, files=True)


def _recurrent(view: View, found: WordAlignment) -> Looks:
    return Looks("seq2seq", _title(view.bundle, t("before.one_head")), found.weights[0], found.target, found.source)


def _alone(view: View) -> None:
    answer = ask_once(word_alignment, prompt=view.prompt)
    _show_looks([_recurrent(view, answer.value)], answer, version=f"alone|{view.encoding.text}")
    _show_translations(view, answer.value.translation)


def _same_words(view: View, other: Bundle, chosen: Chosen) -> None:
    answer: Answer[BothAlignments] = ask_once(both_alignments, other=other, prompt=view.prompt)
    found = answer.value
    over, layer, head = chosen
    weights = weights_over(found.other.by_head, over, layer, head)
    right = Looks("translation", _title(other, over_word(*chosen)), weights, found.other.target, found.other.source)
    _show_looks([_recurrent(view, found.bundle), right], answer, f"same|{over}{layer}.{head}|{view.encoding.text}")
    _show_translations(view, found.own, other, found.others)
    apart, agree = compared(found.bundle.weights[0], weights)
    by_layer = " · ".join(f"{layer}: {share:.0%}" for layer, share in enumerate(found.agree))
    numbers = {"agree": f"{float(agree):.0%}", "apart": f"{float(apart.mean()):.0%}", "layers": by_layer}
    st.markdown(t("before.agree_measured", count=len(found.bundle.target), **numbers))


def _own_words(view: View, other: Bundle, chosen: Chosen) -> None:
    own = ask_once(word_alignment, prompt=view.prompt)
    found = ask_once(word_alignment, prompt=replace(view.prompt, bundle=other)).value
    over, layer, head = chosen
    weights = weights_over(found.by_head, over, layer, head)
    right = Looks("translation", _title(other, over_word(*chosen)), weights, found.target, found.source)
    _show_looks([_recurrent(view, own.value), right], own, version=f"own|{over}{layer}.{head}|{view.encoding.text}")
    _show_translations(view, own.value.translation, other, found.translation)


def _aligned(view: View, text: str) -> Answer[WordAlignment]:
    encoded(view.bundle, text, max_len=MOST_TOKENS)  # raises in words for the page
    return ask_once(word_alignment, prompt=Prompt(view.bundle, text, MOST_TOKENS))


PROBE = Text("before_probe", "Two young women are playing in the blue water.", label="before.probe", parse=_aligned)


@experiment("before_look_open", "before.try_look")
def _word_experiment(view: View) -> None:
    PROBE.show_box(view)
    answer = PROBE.note(view)
    if answer is None:
        return
    text = answer.arguments["prompt"].text
    found = answer.value
    st.markdown(f"{t('before.translation')} **{plain(found.translation) or '…'}**")
    step = choose_written_word(t("before.target"), found.target, name="before_word")
    row = found.weights[0, step]
    options = word_options(found.source, row)
    word = plain(shown_word(found.target[step]))
    question = section("before", "try_look").format(word=word)
    cover = ask_first(question, options, name="before_look", about=f"{view.bundle.name} {text} {step}")
    most = int(row.argmax())
    measured = t(
        "before.looked",
        word=word,
        source=plain(shown_word(found.source[most])),
        weight=f"{row[most]:.2f}",
        chance=f"{found.probabilities[step]:.1%}",
    )
    cover.judge(str(most), measured)
    with cover.picture():
        said = {"word": t("before.source"), "up": t("quantity.weights")}
        chart = word_bars(found.source, {word: row}, said, height=220)
        show_chart(chart, answer, key="before_row", label=t("before.try_look"))


def _show(view: View) -> None:
    """Show both translations, both matrices with their difference, and the experiment."""
    if not has_attention(view):
        return
    other_place, words_place, weights_place = st.columns([3, 5, 5])
    with other_place:
        other = _show_other()
    if other is None:
        _alone(view)
    else:
        with words_place:
            shared = _show_words(view, other) == "same"
        with weights_place:
            chosen = choose_weights(View(other, view.encoding))
        (_same_words if shared else _own_words)(view, other, chosen)
    st.caption(t(f"before.score_{recurrent_config(view).attention}"))
    _word_experiment(view)


SITES = ("decoder.alignment.weights", "decoder.context", *STATES)
LOOK = Part("before", "look", _show, sites=SITES, group="attention")
