"""Cross-attention: all heads as small maps, one large with its arithmetic, and the effect of hiding source words."""

from dataclasses import replace

import numpy as np
import streamlit as st

from pages.attention.chosen_head import STEP, on_panel, step_words
from pages.figures.heads import heads_grid, one_head
from pages.kit.asking import Answer, ask, ask_once
from pages.kit.charts import show_chart
from pages.kit.controls import Text, Values
from pages.kit.experiment import ask_first, experiment, say
from pages.kit.header import View, encoded, shown_word, some_places
from pages.kit.live import Live, show_lines
from pages.kit.matrix import Picture, show_picture
from pages.kit.url import set_choice
from pages.language import plain, section, strings, t
from pages.room import Part
from pages.translation.figures.charts import hiding_chart
from pages.translation.figures.matrices import mean_matrix
from pages.translation.translated import (
    HEAD,
    LAYER,
    OVER,
    STYLE,
    choose_weights,
    choose_written_word,
    chosen_weights,
    over_word,
    sentences,
    translated,
    translated_so_far,
    weights_over,
)
from transformer_core.analysis.translation.cross_attention import Agreement, agreement, cross_head, without_source
from transformer_core.analysis.translation.greedy_steps import Written

MOST_TOKENS = 64


def _with_words(view: View, text: str) -> View:
    """Return the view of a text that has words the model knows.

    Raises:
        ValueError: the text cannot be read, or has no word that the model knows; the message is meant for the page.
    """
    encoding = encoded(view.bundle, text, max_len=min(MOST_TOKENS, view.bundle.config.max_len))
    if all(encoding.special):
        raise ValueError(t("translation.no_words"))
    return View(view.bundle, encoding)


EXAMPLE = "A young boy kicks a ball in the green park."
PROBE = Text("translation_probe", EXAMPLE, label="translation.probe", parse=_with_words)


def _on_head(panel: str) -> None:
    """Show the head that was clicked in the grid, alone and large."""
    on_panel(panel)
    set_choice(OVER.name, "head")


def _large(view: View, written: Written, layer: int, head: int, step: str) -> Picture:
    answer = ask(cross_head, prompt=view.prompt, target_ids=written.token_ids[:-1], layer=layer, head=head)
    figure = one_head(
        vars(answer.value),
        written.words,
        step_words(step),
        title=t("translation.title_head", layer=layer, head=head),
        step=step,
        cell=None,
        note=section("translation", "row_note"),
        keys=written.source,
    )
    return Picture("translation_large", figure, answer, version=f"{step}|{layer}.{head}|{view.encoding.text}")


def _mean(view: View, answer: Answer[Written], over: str, layer: int) -> Picture:
    written = answer.value
    figure = mean_matrix(
        weights_over(written.cross_weights, over, layer, 0),
        written.words,
        written.source,
        {"query": t("axis.query"), "key": t("axis.key"), "weight": t("quantity.weights")},
        title=over_word(over, layer, 0),
        note=section("translation", "row_note"),
    )
    return Picture("translation_mean", figure, answer, version=f"{over}|{layer}|{view.encoding.text}")


def _looked(written: Written, step: int, found: Agreement) -> str:
    return t(
        "translation.looked",
        word=plain(shown_word(written.words[step])),
        source=plain(shown_word(written.source[found.place])),
        mean=f"{found.mean[found.place]:.2f}",
        votes=int(found.votes[found.place]),
        heads=int(found.votes.sum()),
        special=f"{found.special:.0%}",
    )


def _hide_each(view: View) -> None:
    written = translated(view).value
    st.markdown(f"{t('translation.probe_written')} **{plain(written.text) or '∅'}**")
    step = choose_written_word(t("translation.word"), written.words, name="translation_word")
    word = plain(shown_word(written.words[step]))
    found = agreement(written.cross_weights, step, view.encoding.special)
    change = np.where(view.encoding.special, np.nan, found.mean)
    places = sorted({*some_places(change), found.place})
    options = {str(place): f"{place} · {plain(shown_word(written.source[place]))}" for place in places}
    question = section("translation", "try_cross").format(word=word)
    cover = ask_first(question, options, name="translation_cross", about=f"{view.name} {step}")
    answer = ask_once(without_source, prompt=view.prompt, target_ids=written.token_ids, step=step)
    hidden = answer.value
    cover.judge(str(found.place), _looked(written, step, found))
    with cover.picture():
        chart = hiding_chart(hidden.weights, hidden.change, written.source, strings("translation_hiding"))
        show_chart(chart, answer, key="translation_hiding", stem="translation_hidden", label=t("translation.try_cross"))
        most = plain(shown_word(written.source[hidden.most]))
        moved, chance = f"{100 * hidden.change[hidden.most]:+.1f}", f"{hidden.probability:.1%}"
        say(t("translation.hidden_measured", word=word, chance=chance, most=most, points=moved))


@experiment("translation_cross_open", "translation.try_cross")
def _hiding_experiment(view: View) -> None:
    """Ask where a word of a further sentence looks, then show that, and the effect of hiding each source word."""
    PROBE.show_box(view)
    read = PROBE.note(view)
    if read is not None:
        _hide_each(read)


def _picture(view: View, values: Values) -> Live:
    """Return both sentences, the chosen weights large, and the grid of heads."""
    answer = translated_so_far(view)
    written = answer.value
    over, layer, head = chosen_weights(values)
    grid = heads_grid(
        written.cross_weights,
        written.words,
        strings("axis") | {"weight": t("quantity.weights")},
        layer=layer,
        head=head,
        note=section("translation", "grid"),
        keys=written.source,
        filename="translation_heads",
    )
    if over != "head":
        grid = replace(grid, selected=None)
        large = _mean(view, answer, over, layer)
    else:
        large = _large(view, written, layer, head, values[STEP])
    heads = Picture("translation_heads", grid, answer, version=f"{over} {layer}.{head}|{view.encoding.text}")
    return Live((large, heads), lines={"translation": sentences(written)}, more=not written.whole)


def _show(view: View) -> None:
    """Show the grid of heads, the chosen weights large, and the experiment."""
    sentences_place = st.container()
    large_place, grid_place = st.columns(2, gap="medium")
    with large_place:
        over, _, _ = choose_weights(view)
        if over == "head":
            STEP.show()
    live = CROSS.live(view)
    large, grid = live.matrices
    with sentences_place:
        show_lines("translation", live.lines["translation"], style=STYLE)
    with large_place:
        show_picture(large, files=True)
    with grid_place:
        show_picture(grid, on_select=_on_head, files=True)
    CROSS.follow(view)
    _hiding_experiment(view)


CROSS = Part("translation", "cross", _show, _picture, (OVER, LAYER, HEAD, STEP))
