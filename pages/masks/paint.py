"""The page's part that paints a mask: presets and strokes, the scores and weights under it, and the verdict with it."""

from dataclasses import dataclass, replace

import numpy as np
import streamlit as st
import torch

from pages.glass.box import under_the_glass
from pages.kit.asking import ask
from pages.kit.controls import Choice, Kept, Slider, Values, head_control, layer_control
from pages.kit.experiment import ask_first, experiment, fragment, options_of
from pages.kit.exports import export_matrix
from pages.kit.glossary import show_prose
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.matrix import Painted, Picture, all_windows, show_picture, window_note
from pages.kit.number_format import markdown_table
from pages.kit.url import set_choice
from pages.kit.verdict import (
    Number,
    Verdict,
    chart_word,
    concludes,
    outcome_verdict,
    outcome_word,
    show_number,
    show_verdict,
)
from pages.language import joined, plain, section, strings, t
from pages.masks.figures import painter
from pages.room import Part
from transformer_core.analysis.masks.codes import MOST_PAINTED, painted_code, painted_mask
from transformer_core.analysis.masks.masked_head import (
    MaskedHead,
    mask_edits,
    masked_head,
    masked_row,
    padded_encoding,
)
from transformer_core.prompt import Prompt

CAUSAL_DEFAULT = "everything"  # the mask that a causal model does not have by itself
MOST_PADS = 12
A_LITTLE = 1.0  # percentage points
MOST_NAMED = 6


def _most_pads(view: View) -> int:
    return MOST_PADS if view.bundle.tokenizer.pad_id is not None else 0


PRESET = Choice(
    "masks_preset",
    ("everything", "causal", "padding", "window", "prefix", "painted"),
    label="masks.preset",
    words="masks.preset_{}",
    default=lambda view: CAUSAL_DEFAULT if view.bundle.reader.causal else "causal",
)
WHERE = Choice("masks_where", ("all", "one"), label="masks.where", words="masks.where_{}")
LAYER, HEAD = layer_control("masks.layer", in_list=True), head_control("masks.head", in_list=True)
PADS = Slider("masks_pads", 0, _most_pads, 0, label="masks.pads")
SIZES = {  # of the presets that have a number
    "window": Slider("masks_window", 0, MOST_PAINTED, 2, label="masks.window"),
    "prefix": Slider("masks_prefix", 0, MOST_PAINTED, 4, label="masks.prefix"),
}
ROWS = Kept[str]("masks_rows")
CONTROLS = (PRESET, WHERE, LAYER, HEAD, PADS, *SIZES.values(), ROWS)


@dataclass(frozen=True)
class Masked:
    """The text with its padding, and the mask that is put on it.

    Args:
        view: the model, and the encoding with its padding.
        prompt: the text itself, without the padding.
        pads: number of [PAD] tokens appended to it.
        mask: a code as of transformer_core.analysis.masks.codes.
        trouble: why it is not the painted one, where that cannot be.
        layer, head: whose scores and weights are shown.
        everywhere: whether the mask holds in every layer or in this one alone.
    """

    view: View
    prompt: Prompt
    pads: int
    mask: str
    trouble: str
    layer: int
    head: int
    everywhere: bool

    @property
    def arguments(self) -> dict:
        """Return the arguments of masked_head."""
        return {name: getattr(self, name) for name in ("prompt", "pads", "mask", "layer", "head", "everywhere")}

    @property
    def version(self) -> str:
        """Return a name of this state of the figure."""
        place = f"{self.layer}.{self.head}.{'all' if self.everywhere else 'one'}"
        return f"{self.mask}|{place}|{self.pads}|{self.view.encoding.text}"


def _masked(view: View, values: Values) -> Masked:
    pads = values[PADS]
    prompt = replace(view.prompt, n_tokens=min(len(view.encoding), MOST_PAINTED - pads))
    encoding = padded_encoding(prompt, pads=pads)
    mask, trouble = _code(values, len(encoding))
    return Masked(
        replace(view, encoding=encoding),
        prompt,
        pads,
        mask,
        trouble,
        values[LAYER],
        values[HEAD],
        values[WHERE] == "all",
    )


def _code(values: Values, size: int) -> tuple[str, str]:
    """Return the mask's code, and why it is not the painted one where that cannot be."""
    preset, rows = values[PRESET], values[ROWS]
    if preset in SIZES:
        return f"{preset}.{values[SIZES[preset]]}", ""
    if preset != "painted":
        return preset, ""
    if not rows:
        return "everything", ""
    try:
        painted = painted_mask(rows)
    except ValueError as error:
        return "everything", t("masks.broken", error=plain(str(error)))
    if len(painted) != size:
        return "everything", t("masks.other_size", painted=len(painted), size=size)
    return rows, ""


def show_controls(view: View) -> Masked:
    """Show the painter's controls and return what they chose."""
    preset_place, *places, pads_place = st.columns([4.4, 2.1, 0.9, 0.9, 1.6], gap="small")
    with preset_place:
        preset = PRESET.show(view)
    for place, control in zip(places, (WHERE, LAYER, HEAD), strict=True):
        with place:
            control.show(view)
    with pads_place:
        PADS.show(view)
    with preset_place:
        if preset in SIZES:
            SIZES[preset].show(view)
        chosen = _masked(view, PAINT.values(view))
        if chosen.trouble:
            st.info(chosen.trouble, icon=":material/info:")
        elif preset == "painted" and ROWS.read():
            ROWS.set(ROWS.read())  # in the link again, where another preset stood meanwhile
    if chosen.prompt.n_tokens < len(view.encoding):
        st.caption(t("masks.cut", count=len(view.encoding), most=chosen.prompt.n_tokens))
    PAINT.follow(view)
    return chosen


def on_paint(painted: Painted) -> None:
    """Keep the painted mask; the URL changes once the stroke has ended."""
    set_choice(PRESET.name, "painted")
    ROWS.set(painted.mask, link=painted.done)


def invert_and_reset(mask: np.ndarray) -> None:
    """Show two buttons: one inverts every cell, the other goes back to the default mask."""
    turned = painted_code(~mask)
    with st.container(horizontal=True, gap="small"):
        invert = t("masks.invert")
        st.button(invert, icon=":material/invert_colors:", on_click=on_paint, args=(Painted(turned, done=True),))
        st.button(t("masks.reset"), icon=":material/restart_alt:", on_click=_reset)


def _reset() -> None:
    for control in (PRESET, WHERE, PADS, *SIZES.values(), ROWS):
        control.forget()


def _winner(probabilities: np.ndarray) -> int:
    return int(np.argmax(probabilities))


def _verdicts(chosen: Masked, found: MaskedHead) -> dict[str, Verdict | None]:
    """Return the verdicts without the mask and with it."""
    pairs = {"masks_before": found.before, "masks_after": found.after}
    return {name: outcome_verdict(chosen.view, shares, beside=found.before) for name, shares in pairs.items()}


def _numbers(chosen: Masked, found: MaskedHead) -> dict[str, Number]:
    """Return the change of the verdict, and how much of the text still reaches it."""
    if not len(found.before):
        return {}
    first = _winner(found.before)
    moved = t("masks.points", moved=f"{100 * (found.after[first] - found.before[first]):+.1f}")
    reached = t("masks.reached", count=int(found.reach.sum()), all=len(found.reach))
    return {
        "masks_change": Number(t("masks.change", label=chart_word(chosen.view, first)), moved),
        "masks_reach": Number(t("masks.reach"), reached, t("masks.reach_help")),
    }


def show_change(chosen: Masked, found: Live) -> None:
    """Show the verdict before and after, the change, and how much of the text still reaches it."""
    if not concludes(chosen.view):
        return
    before_place, after_place, change_place, reach_place = st.columns([1.9, 1.9, 1.4, 1], gap="medium")
    own = "before_causal" if chosen.view.bundle.reader.causal else "before"
    for place, name, called in ((before_place, "before", own), (after_place, "after", "after")):
        verdict = found.verdicts[f"masks_{name}"]
        with place:
            st.caption(t(f"masks.{called}"))
            show_verdict(verdict, place=f"masks_{name}")
    for place, name in ((change_place, "masks_change"), (reach_place, "masks_reach")):
        with place:
            show_number(name, found.numbers[name])


def show_unreached(chosen: Masked, found: MaskedHead) -> None:
    """Say so where no token but its own reaches the verdict."""
    if len(found.before) and int(found.reach.sum()) == 1:
        token = found.labels[int(found.reach.argmax())]
        st.info(t("masks.deaf", token=plain(token)), icon=":material/hearing_disabled:")


def show_wholly_masked(chosen: Masked, found: MaskedHead) -> None:
    """Say why a row without any key has weights of 0, and what three other conventions give for that row."""
    if not found.wholly_masked:
        return
    rows = found.wholly_masked
    row = rows[0]
    named = ", ".join(f"**{plain(found.labels[index])}** ({index})" for index in rows[:MOST_NAMED])
    more = t("masks.more_rows", count=len(rows) - MOST_NAMED) if len(rows) > MOST_NAMED else ""
    with st.container(border=True, key="masks_wholly_masked"):
        st.markdown(t("masks.wholly_masked", count=len(rows), rows=named + more))
        show_prose(section("masks", "wholly_masked"))
        one = ask(masked_row, **chosen.arguments, row=row).value
        lines = [
            ("zeros", one.zeros, one.verdict_zeros),
            ("torch", one.torch_attention, one.verdict_zeros),
            ("softmax", one.softmax, one.verdict_softmax),
            ("large", one.large, one.verdict_large),
        ]
        head = [t("masks.convention"), t("masks.least"), t("masks.greatest"), t("masks.sum")]
        first = _winner(found.before) if len(found.before) else None
        if first is not None:
            head.append(t("masks.verdict_then", label=outcome_word(chosen.view, first)))
        table = []
        for name, weights, verdicts in lines:
            numbers = [f"{float(number):.4f}" for number in (weights.min(), weights.max(), weights.sum())]
            if first is not None:
                numbers.append(f"{verdicts[first]:.2%}" if np.isfinite(verdicts[first]) else "nan")
            table.append([t(f"masks.convention_{name}"), *numbers])
        st.markdown(markdown_table(head, table, right=len(head) - 1))
        st.caption(
            t("masks.computed_on", row=plain(found.labels[row]), index=row, layer=chosen.layer, head=chosen.head)
        )


@experiment("masks_try")
def compare_layers(chosen: Masked) -> None:
    """Ask which moves the verdict more, this mask in every layer or in the chosen one alone, and measure."""
    if not concludes(chosen.view, key="concludes_try"):
        return
    options = options_of("masks.guess_{}", ("all", "one", "neither"))
    question = section("masks", "try_layers").format(layer=chosen.layer)
    cover = ask_first(question, options, name="masks_layers", about=chosen.version)
    moved = {}
    for name in ("all", "one"):
        found = ask(masked_head, **replace(chosen, everywhere=name == "all").arguments).value
        first = _winner(found.before)
        moved[name] = 100 * (found.after[first] - found.before[first])
    apart = abs(moved["all"]) - abs(moved["one"])
    outcome = "neither" if abs(apart) < A_LITTLE else "all" if apart > 0 else "one"
    words = {name: f"{points:+.2f}" for name, points in moved.items()}
    cover.judge(outcome, t("masks.measured_layers", layer=chosen.layer, **words))


def _picture(view: View, values: Values) -> Live:
    """Return the painter with its scores and weights, the verdicts, and what the mask changes."""
    return _painted(_masked(view, values))


def _painted(chosen: Masked) -> Live:
    answer = ask(masked_head, **chosen.arguments)
    found, window = answer.value, chosen.view.bundle.config.window(chosen.layer)
    figure = painter(
        found.mask,
        vars(found.steps),
        found.labels,
        strings("axis") | strings("masks_figure"),
        note=joined(
            section("masks", "paint_note"),
            window_note(chosen.view, chosen.layer, both=True),
            all_windows(chosen.view),
        ),
        window=None if window is None else (window, window),  # also where the mask shows a GPT what comes later
    )
    picture = Picture("masks_painter", figure, answer, version=chosen.version)
    return Live((picture,), _verdicts(chosen, found), _numbers(chosen, found))


@fragment
def _show(view: View) -> None:
    """Show the painter with its verdict; a stroke reruns nothing else on the page."""
    chosen = show_controls(view)
    live = _painted(chosen)
    (picture,) = live.matrices
    found: MaskedHead = picture.answer.value
    with st.container(key="stays_masks"):
        show_change(chosen, live)
    show_picture(picture, on_paint=on_paint)
    with st.container(horizontal=True, gap="small"):
        invert_and_reset(found.mask)
        export_matrix(picture.figure, picture.answer, key="masks_paint")
    show_unreached(chosen, found)
    show_wholly_masked(chosen, found)
    compare_layers(chosen)
    sites = (f"*.layer{chosen.layer}.self_attention.masked_scores",)
    mask, layer = torch.from_numpy(found.mask), None if chosen.everywhere else chosen.layer
    under_the_glass(chosen.view, sites=sites, edits=mask_edits(chosen.view.bundle, mask, layer))


PAINT = Part("masks", "paint", _show, _picture, CONTROLS, sites=None)
