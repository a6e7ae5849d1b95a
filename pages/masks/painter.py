"""The painter of the masks page: presets, what was painted, and the words for it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from pages.ui.header import View
from pages.ui.language import plain, strings, t
from pages.ui.matrix import Painted
from pages.ui.pickers import choose_head, choose_layer
from pages.ui.url import choose, current, forget, keep, set_choice, slide
from transformer_core.analysis.masks.codes import MOST_PAINTED, mask_from_code, painted_code, painted_mask
from transformer_core.analysis.masks.masked_head import padded_encoding, replace_mask
from transformer_core.analysis.outcome import is_causal
from transformer_core.config import ModelConfig
from transformer_core.probe import Edit

PRESETS = ("everything", "causal", "padding", "window", "prefix", "painted")
DEFAULT, CAUSAL_DEFAULT = "causal", "everything"  # what the model does not do by itself
MOST_PADS = 12


@dataclass(frozen=True)
class Choices:
    """What the controls of the painter chose.

    Args:
        view: the model, and the encoding with its padding.
        n_tokens: of the text itself, without the padding.
        pads: how many follow it.
        mask: a code of mask_codes.
        layer, head: whose scores and weights are shown.
        everywhere: the mask holds in every layer.
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
        """What masked_head is asked."""
        names = ("n_tokens", "pads", "mask", "layer", "head", "everywhere")
        return {"bundle": self.view.bundle, "text": self.view.encoding.text} | {n: getattr(self, n) for n in names}

    @property
    def version(self) -> str:
        """Names the state of the figure."""
        place = f"{self.layer}.{self.head}.{'all' if self.everywhere else 'one'}"
        return f"{self.mask}|{place}|{self.pads}|{self.view.encoding.text}"


def controls(view: View) -> Choices:
    """Show the painter's controls and return what they chose."""
    config = view.bundle.config
    presets_place, where_place, layer_place, head_place, pads_place = st.columns([4.4, 2.1, 0.9, 0.9, 1.6], gap="small")
    with presets_place:
        presets = {name: t(f"masks.preset_{name}") for name in PRESETS}
        default = CAUSAL_DEFAULT if is_causal(view.bundle) else DEFAULT
        preset = choose(t("masks.preset"), presets, name="masks_preset", default=default)
    with where_place:
        options = {"all": t("masks.all_layers"), "one": t("masks.one_layer")}
        everywhere = choose(t("masks.where"), options, name="masks_where", default="all") == "all"
    with layer_place:
        layer = choose_layer(t("masks.layer"), view, in_list=True)
    with head_place:
        head = choose_head(t("masks.head"), config.n_heads, in_list=True)
    with pads_place:
        most = MOST_PADS if view.bundle.tokenizer.pad_id is not None else 0
        pads = int(slide(t("masks.pads"), 0, most, name="masks_pads", default=0)) if most else 0
    n_tokens = min(len(view.encoding), MOST_PAINTED - pads)
    encoding = padded_encoding(view.bundle, view.encoding.text, n_tokens=n_tokens, pads=pads)
    with presets_place:
        mask = _code(preset, len(encoding))
    if n_tokens < len(view.encoding):
        st.caption(t("masks.cut", count=len(view.encoding), most=n_tokens))
    return Choices(replace(view, encoding=encoding), n_tokens, pads, mask, layer, head, everywhere)


def _code(preset: str, size: int) -> str:
    """Return the mask's code, with the slider that its preset has."""
    if preset == "window":
        width = slide(t("masks.window"), 0, MOST_PAINTED, name="masks_window", default=2)
        return f"window.{width}"
    if preset == "prefix":
        length = slide(t("masks.prefix"), 0, MOST_PAINTED, name="masks_prefix", default=4)
        return f"prefix.{length}"
    if preset != "painted":
        return preset
    rows = current("masks_rows")
    if not rows:
        return "everything"
    try:
        painted = painted_mask(str(rows))
    except ValueError as error:
        st.warning(t("masks.broken", error=plain(str(error))), icon=":material/link_off:")
        return "everything"
    if len(painted) != size:
        st.info(t("masks.other_size", painted=len(painted), size=size), icon=":material/info:")
        return "everything"
    if "masks_rows" not in st.query_params:
        keep("masks_rows", str(rows), "")
    return str(rows)


def on_paint(painted: Painted) -> None:
    """Take over what is being painted; the link changes once the stroke has ended."""
    set_choice("masks_preset", "painted")
    set_choice("masks_rows", painted.mask)
    if painted.done:
        keep("masks_rows", painted.mask, "")


def invert_and_reset(mask: np.ndarray) -> None:
    """Show the two buttons: every cell turned over, and back to the start."""
    turned = painted_code(~mask)
    with st.container(horizontal=True, gap="small"):
        invert = t("masks.invert")
        st.button(invert, icon=":material/invert_colors:", on_click=on_paint, args=(Painted(turned, done=True),))
        st.button(t("masks.reset"), icon=":material/restart_alt:", on_click=_reset)


def _reset() -> None:
    forget("masks_preset", "masks_rows", "masks_window", "masks_prefix", "masks_pads", "masks_where")


def mask_edits(choices: Choices) -> Mapping[str, Edit]:
    """Return the edits that put the chosen mask where it shall hold, for whoever reads the text again."""
    mask = mask_from_code(choices.mask, choices.view.encoding.ids, choices.view.bundle.config.pad_id)
    return replace_mask("*.self_attention" if choices.everywhere else f"*.layer{choices.layer}.self_attention", mask)


def explains(config: ModelConfig) -> bool:
    """Tell whether a head's scores are plain scaled dot products, which the browser can compute again."""
    return config.scoring == "dot_product" and config.scale_scores and config.positions != "alibi"


def figure_words() -> dict[str, str]:
    """Return the words of the figures in the language chosen."""
    return strings("axis") | strings("masks_figure")
