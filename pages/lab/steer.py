"""Steer: a direction added to the stream with a slider's strength, and a random one of the same length."""

import streamlit as st

from pages.lab.outcome import (
    answer_word,
    ask_effect,
    can_answer,
    choose_answer,
    live_outcome,
    show_effect,
    show_on_set,
    show_words,
)
from pages.ui.asking import ask_once
from pages.ui.experiment import lazy_box, say
from pages.ui.header import View
from pages.ui.language import plain, t
from pages.ui.live import Live, follow_finger
from pages.ui.pickers import choose_token, numbers
from pages.ui.url import choose, chosen_option, current, slid, slide, text_area
from pages.ui.waiting import awaited
from transformer_core.analysis.lab.changes import Code, streams
from transformer_core.analysis.lab.directions import SOURCES, lines_of, stream_norm
from transformer_core.analysis.lab.intervention import written_with

MOST_STRENGTH, STEP = 3.0, 0.05
FIRST, SECOND = "I loved every minute of it.", "I hated every minute of it."
FIRST_ZH, SECOND_ZH = "我非常喜欢，特别好。", "我非常讨厌，特别差。"
LIST_HEIGHT, MOST_LETTERS = 96, 20_000
WHERE = ("all", "one")
STRENGTH = {"low": -MOST_STRENGTH, "high": MOST_STRENGTH, "name": "lab_strength", "default": 1.0, "step": STEP}


def _sources(view: View) -> tuple[str, ...]:
    there = [source for source in SOURCES if source != "random"]
    if view.bundle.kind in ("lm", "seq2seq"):
        there.remove("neuron")
    if view.bundle.kind == "seq2seq":
        there.remove("lens")
    return tuple(there)


def _site(view: View) -> tuple[str, str]:
    """Return the stack and the site that are chosen."""
    stacks = streams(view.bundle)
    stack = chosen_option("lab_stack", tuple(stacks), default=next(iter(stacks)))
    layers = stacks[stack]
    layer = int(chosen_option("lab_layer", numbers(len(layers)), default=str(min(1, len(layers) - 1))))
    return stack, layers[layer]


def _texts(view: View) -> tuple[str, str]:
    ours = (FIRST_ZH, SECOND_ZH) if view.bundle.reads == "zh" else (FIRST, SECOND)
    return str(current("lab_first") or ours[0]), str(current("lab_second") or ours[1])


def _index(view: View, source: str) -> int:
    """Return the neuron, class or token that is chosen."""
    most = _most_index(view, source)
    return int(slid(0, most, name=f"lab_{source}", default=min(1, most))) if most else 0


def _most_index(view: View, source: str) -> int:
    config = view.bundle.config
    if source == "neuron":
        return config.d_ff - 1
    return (config.n_classes if view.bundle.kind == "classifier" else config.vocab_size) - 1


def steering(view: View) -> Code:
    """Return what is steered, as a change."""
    _, site = _site(view)
    source = chosen_option("lab_source", _sources(view), default="classes")
    first, second = _texts(view) if source == "texts" else ("", "")
    index = _index(view, source) if source in ("neuron", "lens") else 0
    place = -1
    if chosen_option("lab_where", WHERE, default="all") == "one":
        place = int(chosen_option("lab_token", numbers(len(view.encoding)), default="0"))
    return ("steer", site, float(slid(**STRENGTH)), (source, first, second, index, -1), place)


def live_steer(view: View) -> Live:
    """Return the outcome as it follows the slider."""
    return live_outcome(view, ask_effect(view, (steering(view),)).value)


def show_steer(view: View) -> None:
    """Show the controls of the direction and its strength, the outcome, and what is written with and without it."""
    if not can_answer(view):
        return
    source_place, layer_place, where_place, answer_place = st.columns([4.9, 1.8, 1.9, 1.9], vertical_alignment="bottom")
    with source_place:
        names = {source: t(f"lab.source_{source}") for source in _sources(view)}
        source = choose(t("lab.source"), names, name="lab_source", default="classes")
    stacks = streams(view.bundle)
    with layer_place:
        if len(stacks) > 1:
            choose(
                t("lab.stack"),
                {one: t(f"lab.stack_{one}") for one in stacks},
                name="lab_stack",
                default=next(iter(stacks)),
            )
        count = len(stacks[_site(view)[0]])
        if count > 1:
            options = {number: number for number in numbers(count)}
            choose(t("lab.layer"), options, name="lab_layer", default=str(min(1, count - 1)))
    with where_place:
        where = choose(t("lab.where"), {one: t(f"lab.where_{one}") for one in WHERE}, name="lab_where", default="all")
        if where == "one":
            choose_token(t("lab.token"), view, name="lab_token")
    with answer_place:
        choose_answer(view)
    _choose_ends(view, source)
    slide(t("lab.strength"), **STRENGTH)
    change = steering(view)
    try:
        effect = ask_effect(view, (change,))
    except ValueError as error:
        st.info(plain(str(error)), icon=":material/info:")
        return
    _, site = _site(view)
    what = t("lab.what_steer", source=t(f"lab.source_{source}"), site=site, strength=f"{change[2]:+.2f}")
    show_effect(view, effect, what=what, part="steer")
    norm = stream_norm(view.bundle, site)
    say(t("lab.norm", norm=f"{norm:.2f}", site=plain(site), added=f"{abs(float(change[2])) * norm:.2f}"), small=True)  # type: ignore[arg-type]
    follow_finger(
        "lab",
        "steer",
        view,
        sliders={"lab_strength": slid(**STRENGTH)},
        choices={name: ((), str(current(name) or "")) for name in _followed(view)},
    )
    show_words(view, effect)
    _show_writing(view, change)
    show_on_set(view, (change,), key="steer")


def _followed(view: View) -> list[str]:
    names = ["lab_source", "lab_stack", "lab_layer", "lab_where", "lab_token", "lab_answer", "lab_target", "lab_first"]
    names += ["lab_second", "lab_neuron", "lab_lens"]
    return [name for name in names if current(name) not in (None, "")]


def _choose_ends(view: View, source: str) -> None:
    """Show what the direction leads from and to."""
    if source == "texts":
        ours = (FIRST_ZH, SECOND_ZH) if view.bundle.reads == "zh" else (FIRST, SECOND)
        first, second = st.columns(2)
        with first:
            text_area(t("lab.first"), name="lab_first", default=ours[0], height=LIST_HEIGHT, most=MOST_LETTERS)
        with second:
            text_area(t("lab.second"), name="lab_second", default=ours[1], height=LIST_HEIGHT, most=MOST_LETTERS)
        counts = [len(lines_of(text)) for text in _texts(view)]
        say(t("lab.lists_said", first=counts[0], second=counts[1]), small=True)
    elif source in ("neuron", "lens"):
        most = _most_index(view, source)
        said = t(f"lab.index_{source}")
        slide(said, 0, most, name=f"lab_{source}", default=min(1, most))
        if source == "lens":
            say(t("lab.lens_to", name=plain(answer_word(view, _index(view, source)))), small=True)


def _show_writing(view: View, change: Code) -> None:
    if view.bundle.kind not in ("gpt", "lm", "translation", "seq2seq"):
        return
    box = lazy_box(t("lab.writing"), icon=":material/edit_note:", key="lab_writing", opened=True)
    if box is None:
        return
    with box:
        seed = int(slide(t("lab.seed"), 0, 99, name="lab_seed", default=0)) if view.bundle.kind in ("gpt", "lm") else 0
        brief = view.bundle.n_parameters <= 12_000_000
        asked = {**view.asked, "changes": (change,), "seed": seed}
        answer = (
            ask_once(written_with, **asked)
            if brief
            else awaited(written_with, t("lab.writing_now"), key="lab_writing", height=120, **asked)
        )
        if answer is None:
            return
        texts = answer.value
        for place, name in zip(st.columns(3), ("before", "after", "random"), strict=True):
            with place:
                st.caption(t(f"lab.written_{name}"))
                st.code(getattr(texts, name), language=None, wrap_lines=True)
