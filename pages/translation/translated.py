"""The greedy translation that the parts share, shown word by word, and the choice of whose weights to show."""

import threading
from collections.abc import Sequence
from contextvars import ContextVar
from html import escape

import numpy as np
import streamlit as st
from cachetools import LRUCache

from pages.kit.asking import Answer, Question, answered, ask_once, question_of
from pages.kit.controls import Choice, Values, head_control, layer_control
from pages.kit.header import View, shown_word
from pages.language import t
from pages.link import Link, linked
from transformer_core.analysis.translation.greedy_steps import Writing, Written, written_greedily

OVER = Choice("translation_over", ("all", "layer", "head"), label="translation.over", words="translation.over_{}")
LAYER, HEAD = layer_control("translation.layer"), head_control("translation.head")
MOST_MODELS, MOST_DRAFTS, MOST_BEGUN = 64, 16, 64  # one begun a visitor: where it goes, it is begun again
MOMENT = 0.005  # s
_drafts: LRUCache[str, tuple[tuple[int, ...], ...]] = LRUCache(MOST_MODELS)  # by model, the last translation first
_begun: LRUCache[Question, Writing] = LRUCache(MOST_BEGUN)
_lock = threading.Lock()
_of_link: ContextVar[tuple[Link, Answer[Written]] | None] = ContextVar("of_link", default=None)
STYLE = """<style>
.tr-line { display: flex; flex-wrap: wrap; gap: 6px 5px; align-items: flex-start; margin: 2px 0; }
@media (min-width: 641px) { /* room for a second line, so that nothing below moves while a person types */
  .tr-line:nth-child(1) { min-height: 4.2rem; }
  .tr-line:nth-child(2) { min-height: 6.4rem; }
}
.tr-side { flex: 0 0 5.2em; font-size: 0.85rem; opacity: 0.75; padding-top: 5px; }
.tr-word { border: 1px solid color-mix(in srgb, currentColor 24%, transparent); border-radius: 7px; padding: 2px 7px; }
.tr-word { font-size: 1.02rem; text-align: center; line-height: 1.35; }
.tr-word small { display: block; font-size: 0.72rem; font-variant-numeric: tabular-nums; opacity: 0.8; }
.tr-text { font-size: 1.15rem; font-weight: 600; min-height: 1.6em; }
.tr-source { border-color: color-mix(in srgb, #d6453f 45%, transparent); }
.tr-later { border-style: dashed; color: color-mix(in srgb, currentColor 72%, transparent); }
.tr-later small { opacity: 1; }
.tr-now { border: 2px solid #3b76d4; font-weight: 650; }
</style>"""


def translated(view: View) -> Answer[Written]:
    """Translate the text greedily; the model's last translations are drafts, which save the steps that stay the same.

    They may be other visitors', which costs their time and changes nothing else.
    """
    known = answered(written_greedily, prompt=view.prompt) is not None
    answer = ask_once(written_greedily, {} if known else {"begun": _writing(view)}, prompt=view.prompt)
    draft, name = answer.value.token_ids[1:], view.bundle.name
    with _lock:
        _begun.pop(question_of(written_greedily, {"prompt": view.prompt}), None)
        others = [other for other in _drafts.get(name, ()) if other != draft]
        _drafts[name] = (draft, *others[: MOST_DRAFTS - 1])
    return answer


def translated_so_far(view: View) -> Answer[Written]:
    """Translate the text greedily; what follows a hand gets the words of a moment, and more when it asks again.

    All that is asked of one link, as the end of a slider and then the picture, is of the same words.
    """
    link, known = linked(), _of_link.get()
    if link is None:
        return translated(view)
    if known is None or known[0] is not link:
        known = link, _written_in_a_moment(view)
        _of_link.set(known)
    return known[1]


def _written_in_a_moment(view: View) -> Answer[Written]:
    if answered(written_greedily, prompt=view.prompt) is None and not (writing := _writing(view)).go_on(MOMENT):
        return Answer(writing.so_far(), written_greedily, {"prompt": view.prompt})
    return translated(view)


def _writing(view: View) -> Writing:
    """Return the writing that was begun for this text, or begin one."""
    question = question_of(written_greedily, {"prompt": view.prompt})
    with _lock:
        begun, drafts = _begun.get(question), _drafts.get(view.bundle.name, ())
    if begun is not None:
        return begun
    made = Writing(prompt=view.prompt, drafts=drafts)
    with _lock:
        return _begun.setdefault(question, made)


def choose_written_word(label: str, words: Sequence[str], *, name: str) -> int:
    """Show the list of written words, the longest first, and return the place of the one chosen.

    Args:
        name: the choice's name in the URL.
    """
    names = {str(place): f"{place} · {shown_word(word)}" for place, word in enumerate(words)}
    longest = str(max(range(len(words)), key=lambda place: len(words[place])))
    return Choice(name, {longest: names[longest]} | names, label=lambda _: label, kind=int, form="list").show()


def choose_weights(view: View) -> tuple[str, int, int]:
    """Show the choice of weights: all heads, a layer or one head; return it with the layer and the head."""
    over, layer, head = OVER.show(), 0, 0
    layer_place, head_place = st.columns([1, 2]) if over == "head" else (st.container(), None)
    if over != "all":
        with layer_place:
            layer = LAYER.show(view)
    if head_place is not None:
        with head_place:
            head = HEAD.show(view)
    return over, layer, head


def chosen_weights(values: Values) -> tuple[str, int, int]:
    """Return what choose_weights does, of what its controls hold."""
    over = values[OVER]
    return over, values[LAYER] if over != "all" else 0, values[HEAD] if over == "head" else 0


def weights_over(weights: np.ndarray, over: str, layer: int, head: int) -> np.ndarray:
    """Return one matrix of weights: the mean of all heads, of a layer's, or one head's.

    Shapes:
        weights: (layer, head, step, key_pos); returns: (step, key_pos)
    """
    if over == "all":
        return weights.mean((0, 1))
    return weights[layer].mean(0) if over == "layer" else weights[layer, head]


def over_word(over: str, layer: int, head: int) -> str:
    """Return in words whose weights they are."""
    return t(f"translation.of_{over}", layer=layer, head=head)


def sentences(written: Written, step: int | None = None) -> str:
    """Return both sentences word by word, each target word with its probability; words after `step` are pale."""
    rows = []
    source = "".join(f'<span class="tr-word tr-source">{escape(shown_word(label))}</span>' for label in written.source)
    rows.append(f'<div class="tr-line"><span class="tr-side">{escape(t("translation.source"))}</span>{source}</div>')
    chips = []
    for place, (label, probability) in enumerate(zip(written.words, written.probabilities, strict=True)):
        kind = "" if step is None or place < step else " tr-now" if place == step else " tr-later"
        written_yet = 0 if kind == " tr-later" else 30 * probability
        tint = f"background: color-mix(in srgb, #3b76d4 {written_yet:.0f}%, transparent)"
        small = f"<small>{probability:.0%}</small>"
        chips.append(f'<span class="tr-word{kind}" style="{tint}">{escape(shown_word(label))}{small}</span>')
    if not written.whole:
        chips.append('<span class="tr-word tr-later">…<small>&nbsp;</small></span>')
    side = escape(t("translation.target"))
    rows.append(f'<div class="tr-line"><span class="tr-side">{side}</span>{"".join(chips)}</div>')
    text = written.text if step is None else written.prefixes[step]
    rows.append(f'<div class="tr-line"><span class="tr-side"></span><span class="tr-text">{escape(text)}</span></div>')
    return "".join(rows)


def shown_gap(after: float, before: float) -> float:
    """Return the difference of two numbers as they stand on the page, with three decimals."""
    return round(round(after, 3) - round(before, 3), 3) + 0.0  # never -0
