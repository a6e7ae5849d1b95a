"""The page's part that paints a mask: presets and strokes, the scores and weights under it, and the verdict with it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from pages.glass.box import under_the_glass
from pages.masks.figures import painter
from pages.ui.asking import ask
from pages.ui.boxes import ask_first, fragment, lazy_box
from pages.ui.exports import export_matrix
from pages.ui.glossary import tell
from pages.ui.header import View
from pages.ui.language import plain, section, strings, t
from pages.ui.live import Live, follow_finger
from pages.ui.matrix import Painted, Picture, show_picture
from pages.ui.number_format import markdown_table
from pages.ui.pickers import choose_head, choose_layer, chosen_number, numbers
from pages.ui.url import (
    choose,
    chosen,
    chosen_option,
    current,
    forget,
    keep,
    set_choice,
    slid,
    slide,
    whole_number,
)
from pages.ui.verdict import (
    Number,
    Verdict,
    chart_word,
    concludes,
    outcome_verdict,
    outcome_word,
    show_number,
    show_verdict,
)
from transformer_core.analysis.masks.codes import MOST_PAINTED, mask_from_code, painted_code, painted_mask
from transformer_core.analysis.masks.masked_head import (
    MaskedHead,
    masked_head,
    masked_row,
    padded_encoding,
    replace_mask,
)
from transformer_core.analysis.outcome import is_causal
from transformer_core.config import ModelConfig
from transformer_core.probe import Edit

PRESETS = ("everything", "causal", "padding", "window", "prefix", "painted")
DEFAULT, CAUSAL_DEFAULT = "causal", "everything"  # the mask that the model does not have by itself
SLIDERS = {"window": 2, "prefix": 4}  # presets with a number, and where it begins
MOST_PADS = 12
A_LITTLE = 1.0  # percentage points
MOST_NAMED = 6


@dataclass(frozen=True)
class Choices:
    """State of the painter's controls.

    Args:
        view: the model, and the encoding with its padding.
        n_tokens: of the text itself, without the padding.
        pads: number of [PAD] tokens appended to it.
        mask: a code as of transformer_core.analysis.masks.codes.
        layer, head: whose scores and weights are shown.
        everywhere: whether the mask holds in every layer or in this one alone.
    """

    view: View
    n_tokens: int
    pads: int
    mask: str
    layer: int
    head: int
    everywhere: bool

    @property
    def arguments(self) -> dict:
        """Return the arguments of masked_head."""
        names = ("n_tokens", "pads", "mask", "layer", "head", "everywhere")
        return {"bundle": self.view.bundle, "text": self.view.encoding.text} | {n: getattr(self, n) for n in names}

    @property
    def version(self) -> str:
        """Return a name of this state of the figure."""
        place = f"{self.layer}.{self.head}.{'all' if self.everywhere else 'one'}"
        return f"{self.mask}|{place}|{self.pads}|{self.view.encoding.text}"


def controls(view: View) -> Choices:
    """Show the painter's controls and return what they chose."""
    config = view.bundle.config
    presets_place, where_place, layer_place, head_place, pads_place = st.columns([4.4, 2.1, 0.9, 0.9, 1.6], gap="small")
    with presets_place:
        presets = {name: t(f"masks.preset_{name}") for name in PRESETS}
        preset = choose(t("masks.preset"), presets, name="masks_preset", default=_default_preset(view))
    with where_place:
        options = {"all": t("masks.all_layers"), "one": t("masks.one_layer")}
        everywhere = choose(t("masks.where"), options, name="masks_where", default="all") == "all"
    with layer_place:
        layer = choose_layer(t("masks.layer"), view, in_list=True)
    with head_place:
        head = choose_head(t("masks.head"), config.n_heads, in_list=True)
    with pads_place:
        most = _most_pads(view)
        pads = int(slide(t("masks.pads"), 0, most, name="masks_pads", default=0)) if most else 0
    n_tokens = _n_tokens(view, pads)
    with presets_place:
        _show_slider(preset)
        _show_trouble(preset, n_tokens + pads)
    if n_tokens < len(view.encoding):
        st.caption(t("masks.cut", count=len(view.encoding), most=n_tokens))
    choices = chosen_choices(view)
    lists = {
        "layer": (numbers(config.n_layers), str(layer)),
        "head": (numbers(config.n_heads), str(head)),
        "masks_preset": (PRESETS, preset),
        "masks_where": (tuple(options), "all" if everywhere else "one"),
        "masks_rows": ((), str(current("masks_rows") or "")),
    }
    sliders = {"masks_pads": pads} | {f"masks_{name}": _slid(name) for name in SLIDERS}
    follow_finger("masks", "paint", view, choices=lists, sliders=sliders)
    return choices


def chosen_choices(view: View) -> Choices:
    """Return what the painter's controls have chosen, without them."""
    preset = chosen_option("masks_preset", PRESETS, default=_default_preset(view))
    pads = chosen("masks_pads", 0, lambda asked: whole_number(asked, _most_pads(view)), f"0 … {_most_pads(view)}")
    n_tokens = _n_tokens(view, pads)
    encoding = padded_encoding(view.bundle, view.encoding.text, n_tokens=n_tokens, pads=pads)
    return Choices(
        replace(view, encoding=encoding),
        n_tokens,
        pads,
        _code(preset, len(encoding))[0],
        chosen_number("layer", view.bundle.config.n_layers),
        chosen_number("head", view.bundle.config.n_heads),
        chosen_option("masks_where", ("all", "one"), default="all") == "all",
    )


def _default_preset(view: View) -> str:
    return CAUSAL_DEFAULT if is_causal(view.bundle) else DEFAULT


def _most_pads(view: View) -> int:
    return MOST_PADS if view.bundle.tokenizer.pad_id is not None else 0


def _n_tokens(view: View, pads: int) -> int:
    return min(len(view.encoding), MOST_PAINTED - pads)


def _show_slider(preset: str) -> None:
    """Show the slider of the preset, if it has one."""
    if preset in SLIDERS:
        slide(t(f"masks.{preset}"), 0, MOST_PAINTED, name=f"masks_{preset}", default=SLIDERS[preset])


def _slid(preset: str) -> int:
    """Return what the slider of a preset holds, without it."""
    return int(slid(0, MOST_PAINTED, name=f"masks_{preset}", default=SLIDERS[preset]))


def _show_trouble(preset: str, size: int) -> None:
    """Say why a painted mask is not shown, or keep it in the URL."""
    _, trouble = _code(preset, size)
    if trouble:
        st.info(trouble, icon=":material/info:")
    elif preset == "painted" and current("masks_rows") and "masks_rows" not in st.query_params:
        keep("masks_rows", str(current("masks_rows")), "")


def _code(preset: str, size: int) -> tuple[str, str]:
    """Return the mask's code, and why it is not the painted one where that cannot be."""
    if preset in SLIDERS:
        return f"{preset}.{_slid(preset)}", ""
    if preset != "painted":
        return preset, ""
    rows = str(current("masks_rows") or "")
    if not rows:
        return "everything", ""
    try:
        painted = painted_mask(rows)
    except ValueError as error:
        return "everything", t("masks.broken", error=plain(str(error)))
    if len(painted) != size:
        return "everything", t("masks.other_size", painted=len(painted), size=size)
    return rows, ""


def on_paint(painted: Painted) -> None:
    """Keep the painted mask; the URL changes once the stroke has ended."""
    set_choice("masks_preset", "painted")
    set_choice("masks_rows", painted.mask)
    if painted.done:
        keep("masks_rows", painted.mask, "")


def invert_and_reset(mask: np.ndarray) -> None:
    """Show two buttons: one inverts every cell, the other goes back to the default mask."""
    turned = painted_code(~mask)
    with st.container(horizontal=True, gap="small"):
        invert = t("masks.invert")
        st.button(invert, icon=":material/invert_colors:", on_click=on_paint, args=(Painted(turned, done=True),))
        st.button(t("masks.reset"), icon=":material/restart_alt:", on_click=_reset)


def _reset() -> None:
    forget("masks_preset", "masks_rows", "masks_window", "masks_prefix", "masks_pads", "masks_where")


def mask_edits(choices: Choices) -> Mapping[str, Edit]:
    """Return the edits that put the chosen mask into the layers where it holds."""
    mask = mask_from_code(choices.mask, choices.view.encoding.ids, choices.view.bundle.config.padding)
    return replace_mask("*.self_attention" if choices.everywhere else f"*.layer{choices.layer}.self_attention", mask)


def _explains(config: ModelConfig) -> bool:
    """Return whether a head's scores are plain scaled dot products, which the browser can compute again."""
    return config.scoring == "dot_product" and config.scale_scores and config.positions != "alibi"


def _winner(probabilities: tuple[float, ...]) -> int:
    return max(range(len(probabilities)), key=probabilities.__getitem__)


def _verdicts(choices: Choices, found: MaskedHead) -> dict[str, Verdict | None]:
    """Return the verdicts without the mask and with it."""
    pairs = {"masks_before": found.before, "masks_after": found.after}
    return {name: outcome_verdict(choices.view, shares, beside=found.before) for name, shares in pairs.items()}


def _numbers(choices: Choices, found: MaskedHead) -> dict[str, Number]:
    """Return the change of the verdict, and how much of the text still reaches it."""
    if not found.before:
        return {}
    first = _winner(found.before)
    moved = t("masks.points", moved=f"{100 * (found.after[first] - found.before[first]):+.1f}")
    reached = t("masks.reached", count=int(found.reach.sum()), all=len(found.reach))
    return {
        "masks_change": Number(t("masks.change", label=chart_word(choices.view, first)), moved),
        "masks_reach": Number(t("masks.reach"), reached, t("masks.reach_help")),
    }


def show_change(choices: Choices, found: Live) -> None:
    """Show the verdict before and after, the change, and how much of the text still reaches it."""
    if not concludes(choices.view):
        return
    before_place, after_place, change_place, reach_place = st.columns([2, 2, 1.1, 1.1], gap="medium")
    for place, name in ((before_place, "before"), (after_place, "after")):
        verdict = found.verdicts[f"masks_{name}"]
        with place:
            st.caption(t(f"masks.{name}"))
            show_verdict(verdict, place=f"masks_{name}")
    for place, name in ((change_place, "masks_change"), (reach_place, "masks_reach")):
        with place:
            show_number(name, found.numbers[name])


def show_unreached(choices: Choices, found: MaskedHead) -> None:
    """Say so where no token but its own reaches the verdict."""
    if found.before and int(found.reach.sum()) == 1:
        token = found.labels[int(found.reach.argmax())]
        st.info(t("masks.deaf", token=plain(token)), icon=":material/hearing_disabled:")


def show_wholly_masked(choices: Choices, found: MaskedHead) -> None:
    """Say why a row without any key has weights of 0, and what three other conventions give for that row."""
    if not found.wholly_masked:
        return
    rows = found.wholly_masked
    row = rows[0]
    named = ", ".join(f"**{plain(found.labels[index])}** ({index})" for index in rows[:MOST_NAMED])
    more = t("masks.more_rows", count=len(rows) - MOST_NAMED) if len(rows) > MOST_NAMED else ""
    with st.container(border=True, key="masks_wholly_masked"):
        st.markdown(t("masks.wholly_masked", count=len(rows), rows=named + more))
        tell(section("masks", "wholly_masked"))
        one = ask(masked_row, **choices.arguments, row=row).value
        lines = [
            ("zeros", one.zeros, one.verdict_zeros),
            ("torch", one.torch_attention, one.verdict_zeros),
            ("softmax", one.softmax, one.verdict_softmax),
            ("large", one.large, one.verdict_large),
        ]
        head = [t("masks.convention"), t("masks.least"), t("masks.greatest"), t("masks.sum")]
        first = _winner(found.before) if found.before else None
        if first is not None:
            head.append(t("masks.verdict_then", label=outcome_word(choices.view, first)))
        table = []
        for name, weights, verdicts in lines:
            numbers = [f"{float(number):.4f}" for number in (weights.min(), weights.max(), weights.sum())]
            if first is not None:
                numbers.append(f"{verdicts[first]:.2%}" if np.isfinite(verdicts[first]) else "nan")
            table.append([t(f"masks.convention_{name}"), *numbers])
        st.markdown(markdown_table(head, table, right=len(head) - 1))
        st.caption(
            t("masks.computed_on", row=plain(found.labels[row]), index=row, layer=choices.layer, head=choices.head)
        )


def compare_layers(choices: Choices) -> None:
    """Ask which moves the verdict more, this mask in every layer or in the chosen one alone, and measure."""
    box = lazy_box(t("try.heading"), icon=":material/science:", key="masks_try")
    if box is None:
        return
    with box:
        if not concludes(choices.view, key="concludes_try"):
            return
        options = {name: t(f"masks.guess_{name}") for name in ("all", "one", "neither")}
        cover = ask_first(
            section("masks", "try_layers").format(layer=choices.layer),
            options,
            name="masks_layers",
            about=choices.version,
        )
        moved = {}
        for name in ("all", "one"):
            found = ask(masked_head, **replace(choices, everywhere=name == "all").arguments).value
            first = _winner(found.before)
            moved[name] = 100 * (found.after[first] - found.before[first])
        apart = abs(moved["all"]) - abs(moved["one"])
        outcome = "neither" if abs(apart) < A_LITTLE else "all" if apart > 0 else "one"
        measured = t(
            "masks.measured_layers", layer=choices.layer, all=f"{moved['all']:+.2f}", one=f"{moved['one']:+.2f}"
        )
        cover.judge(outcome, measured)


def live_paint(view: View) -> Live:
    """Return the painter with its scores and weights, the verdicts, and what the mask changes, by what is chosen."""
    return _painted(chosen_choices(view))


def _painted(choices: Choices) -> Live:
    answer = ask(masked_head, **choices.arguments)
    found = answer.value
    figure = painter(
        found.mask,
        vars(found.steps),
        found.steps.divisor if _explains(choices.view.bundle.config) else None,
        found.labels,
        strings("axis") | strings("masks_figure"),
        strings("matrix"),
        version=choices.version,
        note=section("masks", "paint_note"),
    )
    return Live((Picture("masks_painter", figure, answer),), _verdicts(choices, found), _numbers(choices, found))


@fragment
def paint_part(view: View) -> None:
    """Show the painter with its verdict; a stroke reruns nothing else on the page."""
    choices = controls(view)
    live = _painted(choices)
    (picture,) = live.pictures
    assert isinstance(picture, Picture)
    found: MaskedHead = picture.answer.value
    with st.container(key="stays_masks"):
        show_change(choices, live)
    show_picture(picture, on_paint=on_paint)
    with st.container(horizontal=True, gap="small"):
        invert_and_reset(found.mask)
        export_matrix(picture.figure, picture.answer, key="masks_paint")
    show_unreached(choices, found)
    show_wholly_masked(choices, found)
    compare_layers(choices)
    sites = (f"*.layer{choices.layer}.self_attention.masked_scores",)
    under_the_glass(choices.view, sites=sites, edits=mask_edits(choices))
