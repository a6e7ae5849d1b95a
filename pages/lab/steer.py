"""Steer: a direction added to the stream with a slider's strength, and a random one of the same length."""

from collections.abc import Mapping

import streamlit as st

from pages.figures.curves import Side, dots
from pages.kit.charts import show_chart
from pages.kit.controls import Choice, Slider, Text, Values, token_control
from pages.kit.experiment import experiment, say
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.models import open_bundle
from pages.kit.text_set import show_set
from pages.kit.verdict import class_word
from pages.kit.waiting import awaited
from pages.lab.outcome import (
    ANSWERS,
    MOST_AT_ONCE,
    answer_word,
    ask_effect,
    can_answer,
    live_outcome,
    measured,
    show_answer,
    show_effect,
    show_on_set,
    show_words,
)
from pages.language import joined, plain, t
from pages.room import Part
from transformer_core.analysis.lab.changes import Code, streams
from transformer_core.analysis.lab.directions import SOURCES, has_output_rows, lines_of, stream_norm
from transformer_core.analysis.lab.intervention import JudgedTexts, judged_continuations, written_with

CONTINUATIONS = 20
FIRST_LIST = {"en": "I loved every minute of it.", "zh": "我非常喜欢，特别好。"}
SECOND_LIST = {"en": "I hated every minute of it.", "zh": "我非常讨厌，特别差。"}


def _sources(view: View) -> dict[str, str]:
    """Return what a direction can lead from and to, with its label."""
    there = {source: t(f"lab.source_{source}") for source in SOURCES if source != "random"}
    if view.bundle.reader.asks == "class" and view.bundle.read_held_out is not None:
        first, second = map(class_word, view.bundle.labels[:2])
        there["classes"] = t("lab.source_own_classes", first=first, second=second)
    if view.bundle.kind in ("lm", "seq2seq") or view.bundle.config.n_experts:
        del there["neuron"]
    if not has_output_rows(view.bundle):
        del there["lens"]
    return there


def _layers(view: View) -> tuple[str, ...]:
    """Return the sites of the chosen stack, layer by layer."""
    return streams(view.bundle)[STACK.read(view)]


def _list(name: str, texts: Mapping[str, str], label: str) -> Text[str]:
    return Text(
        name, lambda view: texts["zh" if view.bundle.reads == "zh" else "en"], label=label, most=20_000, height=96
    )


def _last(view: View, source: str) -> int:
    """Return the last neuron, class or token; 0 where the model has no such direction."""
    config = view.bundle.config
    if source not in _sources(view):
        return 0
    if source == "neuron":
        return config.d_ff - 1
    return view.bundle.reader.n_outcomes - 1


def _index(source: str) -> Slider[int]:
    def last(view: View) -> int:
        return _last(view, source)

    return Slider(f"lab_{source}", 0, last, lambda view: min(1, last(view)), label=f"lab.index_{source}")


SOURCE = Choice("lab_source", _sources, label="lab.source", default="classes")
STACK = Choice("lab_stack", lambda view: list(streams(view.bundle)), label="lab.stack", words="lab.stack_{}")
LAYER = Choice(
    "lab_layer",
    lambda view: range(len(_layers(view))),
    label="lab.layer",
    kind=int,
    default=lambda view: min(1, len(_layers(view)) - 1),
)
WHERE = Choice("lab_where", ("all", "one"), label="lab.where", words="lab.where_{}")
TOKEN = token_control("lab_token", "lab.token")
TEXTS = (_list("lab_first", FIRST_LIST, "lab.first"), _list("lab_second", SECOND_LIST, "lab.second"))
INDEX = {source: _index(source) for source in ("neuron", "lens")}
STRENGTH = Slider("lab_strength", -3.0, 3.0, 1.0, step=0.05, kind=float, label="lab.strength")
SEED = Slider("lab_seed", 0, 99, 0, label="lab.seed")
CONTROLS = (SOURCE, STACK, LAYER, WHERE, TOKEN, *TEXTS, *INDEX.values(), STRENGTH, *ANSWERS)


def _texts(view: View, values: Values) -> list[str]:
    return [values[text] or text.default_of(view) for text in TEXTS]


def _site(view: View, values: Values) -> str:
    return streams(view.bundle)[values[STACK]][values[LAYER]]


def _steering(view: View, values: Values) -> Code:
    """Return what is steered, as a change."""
    source = values[SOURCE]
    first, second = _texts(view, values) if source == "texts" else ("", "")
    index = values[INDEX[source]] if source in INDEX else 0
    place = values[TOKEN] if values[WHERE] == "one" else -1
    return ("steer", _site(view, values), values[STRENGTH], (source, first, second, index, -1), place)


def _picture(view: View, values: Values) -> Live:
    """Return the outcome."""
    return live_outcome(view, ask_effect(view, (_steering(view, values),), measured(view, values)).value)


def _show(view: View) -> None:
    """Show the controls of the direction and its strength, the outcome, and what is written with and without it."""
    if not can_answer(view):
        return
    source_place, layer_place, where_place, answer_place = st.columns([4.9, 1.8, 1.9, 1.9], vertical_alignment="bottom")
    with source_place:
        source = SOURCE.show(view)
    with layer_place:
        for control in (STACK, LAYER):
            if len(control.options_of(view)) > 1:
                control.show(view)
    with where_place:
        if WHERE.show() == "one":
            TOKEN.show(view)
    with answer_place:
        show_answer(view)
    _show_ends(view, source)
    STRENGTH.show()
    values = STEER.values(view)
    site, strength, change = _site(view, values), values[STRENGTH], _steering(view, values)
    try:
        effect = ask_effect(view, (change,), measured(view, values))
    except ValueError as error:
        st.info(plain(str(error)), icon=":material/info:")
        return
    what = t("lab.what_steer", source=_sources(view)[source], site=site, strength=f"{strength:+.2f}")
    show_effect(view, effect, what=what, part="steer")
    norm = stream_norm(view.bundle, site)
    say(t("lab.norm", norm=f"{norm:.2f}", site=plain(site), added=f"{abs(strength) * norm:.2f}"), small=True)
    STEER.follow(view)
    show_words(view, effect)
    if view.bundle.reader.asks in ("next", "words"):
        _show_writing(view, change)
    if view.bundle.reader.asks == "next":
        _show_judged(view, change)
    show_on_set(view, (change,), show_set(view), key="steer")


def _show_ends(view: View, source: str) -> None:
    """Show what the direction leads from and to."""
    if source == "texts":
        for place, text in zip(st.columns(2), TEXTS, strict=True):
            with place:
                text.show(view)
        counts = [len(lines_of(text)) for text in _texts(view, STEER.values(view))]
        say(t("lab.lists_said", first=counts[0], second=counts[1]), small=True)
    elif source in INDEX:
        index = INDEX[source].show(view)
        if source == "lens":
            say(t("lab.lens_to", name=plain(answer_word(view, index))), small=True)


@experiment("lab_writing", "lab.writing", icon=":material/edit_note:", opened=True)
def _show_writing(view: View, change: Code) -> None:
    seed = SEED.show() if view.bundle.reader.asks == "next" else 0
    asked = {"prompt": view.prompt, "changes": (change,), "seed": seed}
    brief = view.bundle.n_parameters <= MOST_AT_ONCE
    answer = awaited(written_with, t("lab.writing_now"), key="lab_writing", height=120, brief=brief, **asked)
    if answer is None:
        return
    texts = answer.value
    for place, name in zip(st.columns(3), ("before", "after", "random"), strict=True):
        with place:
            st.caption(t(f"lab.written_{name}"))
            st.code(getattr(texts, name), language=None, wrap_lines=True)


def moved_in_words(found: JudgedTexts) -> str:
    """Return whether the change moves the judge's mean: "moves", or "not" where its interval has 0 in it."""
    return "moves" if found.moved.low > 0 or found.moved.high < 0 else "not"


@experiment("lab_judged", "lab.judged", icon=":material/gavel:")
def _show_judged(view: View, change: Code) -> None:
    """Show how a classifier judges many continuations as it is, steered, and under a random direction."""
    judge = open_bundle("sentiment-zh" if view.bundle.reads == "zh" else "sentiment")
    label = len(judge.labels) - 1
    asked = {"prompt": view.prompt, "changes": (change,), "judge": judge, "label": label, "count": CONTINUATIONS}
    answer = awaited(judged_continuations, t("lab.judging", count=3 * CONTINUATIONS), key="lab_judged", **asked)
    if answer is None:
        return
    found = answer.value
    ways = [t(f"lab.{way}") for way in ("written_before", "written_after", "judged_way")[: len(found.scores)]]
    groups = [way for way in ways for _ in range(CONTINUATIONS)]
    texts, score = [text for way in found.texts for text in way], class_word(judge.labels[label])
    up = Side(t("lab.judged_up", label=score), format=".0%")
    chart = dots(groups, found.scores.ravel(), groups, across="", up=up, details=texts)
    points = [
        {"moved": f"{100 * one.moved:+.1f}", "low": f"{100 * one.low:+.1f}", "high": f"{100 * one.high:+.1f}"}
        for one in (found.moved, found.random)
        if one is not None
    ]
    means = {"before": f"{found.scores[0].mean():.0%}", "after": f"{found.scores[1].mean():.0%}"}
    said = t("lab.judged_said", count=CONTINUATIONS, judge=judge.name, label=score, **means)
    beside = t("lab.judged_random", **points[1]) if len(points) > 1 else ""
    say(joined(said, t(f"lab.judged_{moved_in_words(found)}", **points[0]), beside))
    show_chart(chart, answer, key="lab_judged_dots", stem="lab_judged", label=t("lab.judged"))
    say(t("lab.judged_note"), small=True)


STEER = Part("lab", "steer", _show, _picture, CONTROLS, sites=None)
