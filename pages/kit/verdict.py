"""What the model concludes, in words and as one bar: the classes, or the likeliest tokens next or behind [MASK]."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import accumulate

import numpy as np
import streamlit as st

from pages.kit.examples import outside
from pages.kit.experiment import covered, hidden
from pages.kit.header import View, word_start
from pages.kit.models import READERS, first_model, offer_model
from pages.kit.url import set_choice
from pages.language import language, pieces_of, plain, t, words
from transformer_core.evaluation.weak_sides import word_count

HUES = ("#b5702a", "#1f8f9c", "#8a55d0", "#c23b75", "#5a7d2a", "#3b76d4")  # the two ends of the signed scale first
MOST_SHOWN = 5
FIGURE_SPACE = "\u2007"  # as wide as a figure
STROKE = "0.5px"  # of the name that stands out; also in assets/components/live/live.js
PALE, LOUD = "opacity:0.75;font-weight:400", "opacity:1;font-weight:600"  # also in assets/components/live/live.js
MOST_COUNTED = 1_000  # words; from here on a range of lengths has no end


def class_word(label: str) -> str:
    """Return a class's name in the language chosen, or as the bundle has it."""
    return words(language()).get(f"class.{label}", plain(label))


def outcome_word(view: View, index: int) -> str:
    """Return what people call one possible outcome, for Markdown: a class, a token next, or a token at [MASK]."""
    outcome = view.outcome
    if outcome is None:
        return ""
    label = outcome.reader.label(index)
    return class_word(label) if outcome.asks == "class" else t(f"outcome.{outcome.asks}", token=plain(label))


def chart_word(view: View, index: int) -> str:
    """Return the same for a chart, which knows no Markdown."""
    return outcome_word(view, index).replace("\\", "")


@dataclass(frozen=True)
class Verdict:
    """A verdict as a bar with its names.

    Args:
        names: of the parts, each with its number.
        shares: of the parts; together 1.
        winner: which stands out.
        note: the line under the bar, whose place is kept where it is empty; there is none where it is None.
        loud: the note says that the verdict means little.
    """

    names: tuple[str, ...]
    shares: tuple[float, ...]
    winner: int
    note: str | None = None
    loud: bool = False

    def html(self, place: str) -> str:
        """Return the bar.

        Args:
            place: its name, by which assets/components/live/live.js finds it.
        """
        names, parts = [], []
        ends = accumulate(self.shares)  # all parts begin at the left, one behind the other, so that none ever moves
        for index, (name, end) in enumerate(zip(self.names, ends, strict=True)):
            hue = HUES[index % len(HUES)]
            stroke = STROKE if index == self.winner else "0"  # a bold word would be wider
            mark = f'<span aria-hidden="true" style="color:{hue}">■</span>'
            names.append(
                f'<span style="-webkit-text-stroke:{stroke}">{mark} <span data-name="">{escape(name)}</span></span>'
            )
            behind = f"grid-area:1/1;z-index:{len(self.names) - index}"
            parts.append(f'<div data-part="" style="{behind};width:{100 * end:.3f}%;background:{hue}"></div>')
        line = "&nbsp;" if not self.note else escape(self.note)
        style = f"font-size:0.875rem;{LOUD if self.loud else PALE}"
        note = "" if self.note is None else f'<div data-note="" style="{style}">{line}</div>'
        return (
            f'<div data-verdict="{escape(place)}">'
            '<div style="display:flex;flex-wrap:wrap;gap:0 1em;font-size:0.95rem;font-variant-numeric:tabular-nums">'
            f"{''.join(names)}</div>"
            '<div aria-hidden="true" style="display:grid;isolation:isolate;height:10px;border-radius:5px;'
            f'overflow:hidden;margin:6px 0 4px">{"".join(parts)}</div>{note}</div>'
        )


@dataclass(frozen=True)
class Number:
    """A number that stands large beside a verdict.

    Args:
        label: what it is.
        value: as it is written.
        help: what it means, for who points at it.
    """

    label: str
    value: str
    help: str = ""


def show_number(place: str, number: Number) -> None:
    """Show a number that follows the hand.

    Args:
        place: its name, by which assets/components/live/live.js finds it.
    """
    st.html(
        f'<div data-number="{escape(place)}" title="{escape(number.help)}">'
        f'<div data-label="" style="font-size:0.875rem">{escape(hidden(number.label))}</div>'
        f'<div data-value="" style="font-size:1.75rem;line-height:1.25">{escape(hidden(number.value))}</div></div>'
    )


Probabilities = Sequence[float] | np.ndarray  # one an outcome


def greatest_places(values: Probabilities, count: int) -> list[int]:
    """Return the places of the greatest values, the greatest first, of equal ones the first first; fast for many."""
    numbers = np.asarray(values)
    count = min(count, len(numbers))
    least = np.partition(numbers, -count)[-count]
    enough = np.flatnonzero(numbers >= least)
    return enough[np.argsort(-numbers[enough], kind="stable")][:count].tolist()


def outcome_verdict(view: View, probabilities: Probabilities, *, beside: Probabilities | None = None) -> Verdict | None:
    """Return what the model concludes: every class, or the likeliest tokens and all others as one part.

    Args:
        probabilities: one an outcome; there is no verdict where there is none.
        beside: those that these are compared with: the same tokens are shown, each in the same hue.
    """
    outcome = view.outcome
    if outcome is None or not len(probabilities):
        return None
    if outcome.asks == "class":
        note = sureness(view, probabilities) if beside is None else None
        is_outside = note is not None and outside(view.bundle, view.encoding) is not None
        note = t("outside.verdict") if is_outside else note
        return replace(verdict_of(view.bundle.labels, probabilities, note=note), loud=is_outside)
    likeliest = greatest_places(probabilities if beside is None else beside, MOST_SHOWN)
    winner = int(np.argmax(probabilities))
    shown = likeliest if winner in likeliest else [*likeliest[:-1], winner]
    parts = [float(probabilities[index]) for index in shown]
    labels = [outcome.reader.label(index) for index in shown]
    return verdict_of([*labels, t("outcome.others")], [*parts, max(0.0, 1 - sum(parts))], winner=shown.index(winner))


def show_outcome(view: View, probabilities: Probabilities, *, beside: Probabilities) -> None:
    """Show what the model concludes beside what that is compared with, as outcome_verdict has it."""
    show_verdict(outcome_verdict(view, probabilities, beside=beside))


def show_verdict_of(view: View, verdict: Verdict | None, *, place: str = "") -> None:
    """Show a verdict under the question that the model answers, which goes without saying for a classifier.

    Args:
        place: its name, where it follows the hand.
    """
    outcome = view.outcome
    if verdict is None or outcome is None:
        return
    if outcome.asks != "class":
        st.caption(t(f"outcome.asks_{outcome.asks}"))
    show_verdict(verdict, place=place)


def sureness(view: View, probabilities: Probabilities) -> str | None:
    """Return in words how often a classifier is right where it is as sure as here.

    It is empty where too few texts like this one were judged, and None where nobody measured this model.
    """
    if not view.bundle.measured.sureness:
        return None
    found = view.bundle.measured.sure(word_count(view.encoding), max(probabilities))
    if found is None:
        return ""
    low, high = found.probability
    low = max(low, 1 / len(probabilities))  # no class is chosen with less
    bounds = {"low": f"{low:.0%}", "high": f"{high:.0%}", "fewest": found.words[0], "most": found.words[1]}
    bounds |= pieces_of(view.encoding.text)
    key = "verdict.sure_long" if found.words[1] >= MOST_COUNTED else "verdict.sure"
    return t(key, share=f"{found.right / found.texts:.0%}", count=f"{found.texts:,}", **bounds)


def _in_place(probability: float) -> str:
    """Return a percentage that is as wide below 10 % as above."""
    return f"{probability:5.1%}".replace(" ", FIGURE_SPACE)


def verdict_of(
    labels: Sequence[str], probabilities: Probabilities, *, winner: int | None = None, note: str | None = None
) -> Verdict:
    """Return every class with its probability; a class keeps its side and hue.

    Under a cover all parts are alike, without numbers.

    Args:
        winner: the one that stands out, by default the likeliest.
        note: as of Verdict.
    """
    said = words(language())
    if covered():
        probabilities, winner = [1 / len(labels)] * len(labels), 0
    if winner is None:
        winner = max(range(len(probabilities)), key=probabilities.__getitem__)
    pairs = zip(labels, probabilities, strict=True)
    names = (hidden(f"{said.get(f'class.{label}', label)} {_in_place(probability)}") for label, probability in pairs)
    return Verdict(tuple(names), tuple(map(float, probabilities)), winner, None if note is None else hidden(note))


def show_verdict(verdict: Verdict | None, *, place: str = "") -> None:
    """Show every class with its probability, and as a part of one bar; nothing where there is no verdict.

    Args:
        place: its name, where it follows the hand.
    """
    if verdict is not None:
        st.html(verdict.html(place))


def concludes(view: View, *, key: str = "concludes") -> bool:
    """Tell whether the model concludes anything from the text; where not, say so with the way to one that does.

    Args:
        key: names the button; a page that says it twice needs two.
    """
    if view.outcome is not None:
        return True
    tokenizer = view.bundle.tokenizer
    if view.bundle.kind != "bert" or tokenizer.mask_id is None:
        offer_model(t("outcome.needs_head", name=plain(view.bundle.name)), ("classifier",), key=key)
        return False
    st.info(t("outcome.needs_mask"), icon=":material/info:")
    masked = _with_mask(view, tokenizer.token_of(tokenizer.mask_id))
    said, icon = t("outcome.put_mask"), ":material/ink_eraser:"
    if st.button(said, icon=icon, on_click=set_choice, args=("text", masked), key=key):
        st.rerun(scope="app")
    return False


def classifies(view: View) -> bool:
    """Tell whether the model is a classifier; where not, say so in a line with the way to one."""
    kind = view.bundle.kind
    if kind != "classifier":
        said = t("outcome.needs_class", name=plain(view.bundle.name), kind=t(f"kind.{kind}"))
        offer_model(said, ("classifier",))
    return kind == "classifier"


def is_dense(view: View) -> bool:
    """Tell whether each feed-forward layer has one inside; of a mixture of experts, say so with the way to one."""
    experts = getattr(view.bundle.config, "n_experts", 0)
    if experts:
        kinds = (view.bundle.kind, *READERS)
        said, name = t("outcome.needs_dense", name=plain(view.bundle.name)), first_model(language(), kinds)
        offer_model(said, kinds, name=name, key="dense")
    return not experts


def _with_mask(view: View, mask: str) -> str:
    encoding, text = view.encoding, view.encoding.text
    own = [(start, end) for start, end in encoding.offsets if end]
    start, end = next((place for place in reversed(own) if text[slice(*place)].strip().isalnum()), own[-1])
    return f"{text[: word_start(text, start)]}{mask}{text[end:]}"
