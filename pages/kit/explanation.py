"""Why did it say that? Under a verdict: words tinted by what hiding each is worth, and a sentence from the numbers."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from html import escape

import streamlit as st

from pages.figures.tinted_words import FEWEST_POINTS, Tinted, tinted_words
from pages.kit.asking import ask_once
from pages.kit.examples import outside
from pages.kit.header import View
from pages.kit.url import set_choice
from pages.kit.verdict import HUES, chart_word
from pages.kit.waiting import BRIEF, awaited
from pages.language import corpus_word, pieces_of, plain, t
from transformer_core.analysis.attention.occlusion import WordImportance, word_importance
from transformer_core.analysis.counter_examples import CounterExample, counter_examples
from transformer_core.evaluation.weak_sides import features_of, unit_of
from transformer_core.measured import Slice
from transformer_core.prompt import Prompt
from transformer_core.text.characters import visible

MOST_AROUND = 26  # characters on each side of a changed word
HEIGHT = 140  # of a long text
SECOND = 0.25  # a second word is named where it is worth at least this part of the first


def show_counter_examples(view: View) -> None:
    """Show the closest texts of which the model concludes something else; a click on one puts it into the box."""
    if view.outcome is None or all(view.encoding.special):
        return
    found = ask_once(counter_examples, prompt=_first_text(view)).value
    label = chart_word(view, found.winner)
    if not found.found:
        return
    key = "because.turned" if found.turns else "because.none_turns"
    named = pieces_of(view.encoding.text)
    st.markdown(t(key, tried=found.tried, turns=found.turns, **named), help=t("because.tried_help", **named))
    for number, each in enumerate(found.found):
        st.button(
            _with_change(each),
            on_click=set_choice,
            args=("text", each.text),
            key=f"because_{number}",
            help=t("because.try_it"),
            width="stretch",
        )
        winner = chart_word(view, each.winner)
        changed = t("because.exchanged" if each.new else "because.left_out", old=_shown(each.old), new=_shown(each.new))
        said = changed + t("because.then_winner", label=winner, probability=f"{each.probability:.1%}")
        if each.winner != found.winner:
            said += t("because.left", label=label, left=f"{each.left:.1%}")
        hue = hues_of(view, each.winner)[0] if view.bundle.kind == "classifier" else HUES[number]
        st.html(
            '<p style="margin:2px 0 10px;font-size:0.9rem">'
            f'<span aria-hidden="true" style="color:{hue}">■</span> {escape(said)}</p>'
        )


def show_weak_sides(view: View) -> None:
    """Show how often the model is right on texts like this one; nothing where nobody measured it, or it is outside."""
    facts = [
        t(
            "because.right",
            share=f"{row.accuracy:.0%}",
            low=f"{100 * row.interval[0]:.0f}",
            high=f"{100 * row.interval[1]:.0f}",
            sort=_sort(row),
            data=corpus_word(row.data),
            count=f"{row.texts:,}",
        )
        for row in view.bundle.measured.fitting(features_of(view.encoding), unit_of(view.encoding))
    ]
    if facts and outside(view.bundle, view.encoding) is None:
        st.caption(t("because.known", facts=t("because.and").join(facts)), help=t("because.known_help"))


def _sort(row: Slice) -> str:
    """Return what kind of texts a share is of: short sentences with a negation."""
    unit = t(f"unit.{row.unit}")
    if not row.features:
        return t("because.all_of", unit=unit)
    short = "short" in row.features
    rest = [name for name in row.features if name != "short"]
    said = t("because.short", unit=unit) if short else unit
    return t(f"because.with_{rest[0]}", unit=said) if rest else said


def _with_change(example: CounterExample) -> str:
    """Return a changed text for a button, in Markdown: what went is struck out, what came is bold."""
    text, start, end = example.text, example.start, example.end
    before, after = text[:start], text[end:]
    if len(before) > MOST_AROUND:
        before = f"…{re.sub(r'^[^ ]* (?=.)', '', before[-MOST_AROUND:])}"
    if len(after) > MOST_AROUND:
        after = f"{re.sub(r'(?<=.) [^ ]*$', '', after[:MOST_AROUND])}…"
    gone = f"~~{plain(_shown(example.old))}~~"
    came = f" **{plain(text[start:end])}**" if example.new else ""
    gap = " " if not example.new and before and not before.endswith(" ") and text[:start].isascii() else ""
    space = " " if not example.new and not before and after[:1].isascii() and after[:1].isalnum() else ""
    return f"{plain(before)}{gap}{gone}{came}{space}{plain(after)}"


def _first_text(view: View) -> Prompt:
    """Return what the library is asked about: of a pair, its first text."""
    return replace(view.prompt, pair=None)


def show_explanation(view: View) -> None:
    """Show what each word did for the verdict; nothing where the model concludes nothing."""
    if view.outcome is None:
        return
    if all(view.encoding.special):
        st.caption(t("because.nothing_to_hide", **pieces_of(view.encoding.text)))
        return
    prompt, brief = _first_text(view), len(view.encoding) <= BRIEF
    said = t("because.hiding", **pieces_of(view.encoding.text))
    answer = awaited(word_importance, said, key="because", height=HEIGHT, brief=brief, stays=True, prompt=prompt)
    if answer is None:
        return
    found, view = answer.value, view.of(answer)
    label = chart_word(view, found.winner)
    names, named = _names(view, found), pieces_of(view.encoding.text)
    st.html(
        f'<p style="margin:0 0 0.3rem">{_sentence(names, found, label, named)}</p>'
        + tinted_words(_tinted(view, found, names, label), hues_of(view, found.winner), _legend(label, named))
    )


def hues_of(view: View, winner: int) -> tuple[str, str]:
    """Return the hue of what pushes towards the verdict, which is the verdict's own, and of what pushes against it."""
    own = winner % len(HUES) if view.bundle.kind == "classifier" else 0
    return HUES[own], HUES[1 if own == 0 else 0]


def _legend(label: str, named: Mapping[str, str]) -> dict[str, str]:
    names = ("label", "towards", "against", "unit")
    return {name: t(f"because.legend_{name}", label=label, **named) for name in names}


def _names(view: View, found: WordImportance) -> list[str]:
    """Return each word; a repeated word carries the number of its occurrence."""
    text = view.encoding.text
    own = [_shown(text[start:end]) for start, end in found.spans.tolist()]
    folded = [word.casefold() for word in own]
    names = []
    for place, word in enumerate(own):
        count, nth = folded.count(folded[place]), folded[: place + 1].count(folded[place])
        names.append(word if count == 1 else t("because.nth", word=word, nth=nth, count=count))
    return names


def _shown(word: str) -> str:
    return word if word.isprintable() else visible(word)


def _tinted(view: View, found: WordImportance, names: list[str], label: str) -> list[Tinted]:
    text, last, shown = view.encoding.text, 0, []
    rows = zip(found.spans.tolist(), found.worth.tolist(), found.unknown.tolist(), names, strict=True)
    for (start, end), worth, unknown, name in rows:
        hidden = not math.isnan(worth)
        said = (
            t("because.said", word=name, points=f"{100 * worth:+.1f}", label=label)
            if hidden
            else t("because.said_not_hidden", word=name, **pieces_of(text))
        )
        said += t("because.said_unknown") if unknown else ""
        between = " " if text[last:start].isspace() else text[last:start]
        shown.append(Tinted(_shown(text[start:end]), between, worth if hidden else None, said, unknown))
        last = end
    return shown


def _sentence(names: list[str], found: WordImportance, label: str, named: Mapping[str, str]) -> str:
    """Return in one sentence, as HTML, which words pushed the verdict most, and which against it.

    Args:
        named: what the pieces of the text are called, as pieces_of has it.
    """
    order = [place for place, worth in enumerate(found.worth.tolist()) if not math.isnan(worth)]
    order.sort(key=lambda place: -found.worth[place])
    whole = {place: round(100 * float(found.worth[place])) for place in order}
    name = {place: f"<b>{escape(names[place])}</b>" for place in order}
    said = {"label": escape(label), "before": f"{found.before:.1%}", **named}
    towards = [place for place in order if whole[place] >= FEWEST_POINTS]
    against = [place for place in reversed(order) if whole[place] <= -FEWEST_POINTS]
    if not order:
        return t("because.nothing_to_hide", **said)
    if not towards and not against:
        return t("because.none", **said)
    parts = []
    if towards:
        first, *others = towards
        said |= {"word": name[first], "points": _points(whole[first])}
        if others and whole[others[0]] >= SECOND * whole[first]:
            said |= {"other": name[others[0]], "other_points": _points(whole[others[0]])}
            tie = whole[first] == whole[others[0]]
            parts.append(t("because.two_alike" if tie else "because.two", **said))
        else:
            parts.append(t("because.one", **said))
    if against:
        said |= {"rival": name[against[0]], "rival_points": _points(-whole[against[0]])}
        parts.append(t("because.against" if towards else "because.only_against", **said))
    return t("because.then").join(parts) + t("because.end")


def _points(count: int) -> str:
    return t("because.points", count=count)
