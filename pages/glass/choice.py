"""The choice of a tensor: its part of the model, then the tensor, both from its one name in the URL."""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.kit.url import chosen as choice
from pages.kit.url import listed, remember, set_choice, widget_key
from pages.language import t

STACKS = ("encoder", "decoder")


def part_of(name: str) -> str:
    """Return the part of the model that a tensor belongs to; a normalisation belongs to its sublayer."""
    return name.rpartition(".")[0].removesuffix(".norm")


def part_word(part: str, *, with_stack: bool) -> str:
    """Return the words for a part, such as "Layer 0 · self-attention".

    Args:
        with_stack: say whether it is the encoder's or the decoder's.
    """
    if not part:
        return t("glass.part_end")
    steps = part.split(".")
    words = [t(f"glass.part_{steps[0]}")] if steps[0] not in STACKS or with_stack else []
    for step in steps[1:]:
        layer = step.removeprefix("layer")
        words.append(t("axis.layer", number=layer) if layer != step else t(f"glass.part_{step}"))
    if steps[-1].startswith("layer"):
        words.append(t("glass.part_out"))
    return " · ".join(words)


def default_of(names: Sequence[str]) -> str:
    """Return the tensor shown by default: the first query, or the first tensor where there is none."""
    return next((name for name in names if name.endswith(".query")), names[0])


def tensor_word(name: str, part: str) -> str:
    """Return a tensor's name within its part and its meaning."""
    within = name.removeprefix(f"{part}.") if part else name
    leaf = name.rpartition(".")[2]
    return f"{within} · {t(f'site.{leaf}')}"


def look_at(name: str) -> None:
    """Put another tensor under the glass; only in a callback."""
    set_choice("glass", name)
    remember("glass_cell", None)


def choose_tensor(names: Sequence[str], default: str, part_place: DeltaGenerator, tensor_place: DeltaGenerator) -> str:
    """Show the two lists, each in its place, and return the full name of the tensor.

    The choice is not kept for other pages: each has its own default.

    Args:
        names: of all tensors; a link to any other is refused with a message.
    """
    chosen = choice("glass", default, lambda asked: asked if asked in names else None, listed(names))
    remember("glass", None if chosen == default else chosen)
    several = all(any(name.startswith(f"{stack}.") for name in names) for stack in STACKS)
    part = part_of(chosen)
    parts = {part: part_word(part, with_stack=several) for part in map(part_of, names)}
    inside = {name: tensor_word(name, part) for name in names if part_of(name) == part}
    part_key, leaf_key = widget_key("glass_part"), widget_key("glass_leaf")
    st.session_state[part_key], st.session_state[leaf_key] = part, chosen

    def to_part() -> None:
        wanted = st.session_state[part_key]
        there = [name for name in names if part_of(name) == wanted]
        leaf = chosen.rpartition(".")[2]
        look_at(next((name for name in there if name.rpartition(".")[2] == leaf), default_of(there)))

    part_place.selectbox(t("glass.part"), list(parts), format_func=parts.__getitem__, key=part_key, on_change=to_part)
    tensor_place.selectbox(
        t("glass.tensor"),
        list(inside),
        format_func=inside.__getitem__,
        key=leaf_key,
        on_change=lambda: look_at(st.session_state[leaf_key]),
    )
    return chosen
