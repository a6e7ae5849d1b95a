"""Every head switched off in turn: what the verdict does, beside how strongly each head looks."""

import math

import streamlit as st

from pages.attention.chosen_head import HEAD, LAYER, board_words, large_head, on_board, show_large, show_layer_and_head
from pages.attention.figures import effect_board
from pages.attention.flow import chance_of
from pages.kit.asking import ask, ask_once
from pages.kit.controls import Choice, Values
from pages.kit.experiment import Cover, ask_first, options_of, say, say_number
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.matrix import Picture, show_picture
from pages.kit.verdict import chart_word, concludes, outcome_word, show_outcome
from pages.language import strings, t
from pages.room import Part
from transformer_core.analysis.attention.head_ablation import (
    SMALL,
    STRONG,
    HeadEffects,
    head_effects,
    without_head,
)
from transformer_core.analysis.attention.heads import Ablation

HOW = Choice[Ablation](
    "attention_ablation", ("zero", "mean"), label="attention.ablation", words="attention.ablation_{}"
)
MOST_NAMED = 3


def _picture(view: View, values: Values) -> Live:
    """Return the greatest weights with the effects beside them, and the chosen head's weights."""
    layer, head, how = values[LAYER], values[HEAD], values[HOW]
    effects = ask_once(head_effects, prompt=view.prompt, how=how)
    found, words = effects.value, strings("attention_effect")
    change = t("attention.change", label=chart_word(view, found.winner))
    board = effect_board(
        found.strongest,
        100 * found.change,
        words | board_words() | {"change": change},
        chosen=(layer, head),
    )
    large = large_head("head_effect", view, values)
    version = f"{how}|{layer}.{head}|{view.encoding.text}"
    return Live((Picture("effects", board, effects, pins=False, version=version), large))


def _show(view: View) -> None:
    """Show the boards, the chosen head's heatmap, and the verdict without that head."""
    if not concludes(view):
        return
    board_place, head_place = st.columns(2, gap="large")
    with head_place:
        layer, head = show_layer_and_head(view)
    with board_place:
        how = HOW.show()
        board, large = EFFECT.live(view).matrices
        cover = show_boards(view, board)
    with head_place:
        with cover.picture("_without"):
            show_without(view, layer, head, how)
        show_large(large)
    EFFECT.follow(view)


def show_boards(view: View, board: Picture) -> Cover:
    """Ask for a prediction, then show the greatest weights with the effects beside them."""
    found: HeadEffects = board.answer.value
    top_layer, top_head = found.most_weight
    weight = f"{found.strongest[found.most_weight]:.3f}"
    options = options_of("attention.place_{}", ("first", "upper", "lower"))
    cover = ask_first(
        t("attention.place_ask", layer=top_layer, head=top_head, weight=weight),
        options,
        name="attention_effects",
        about=view.bundle.name,
    )
    outcome = "first" if found.place == 1 else "upper" if found.place <= found.change.size / 2 else "lower"
    cover.judge(outcome)
    with cover.picture():
        show_picture(board, on_cell=on_board, files=True)
        show_causes(found)
    return cover


def show_causes(found: HeadEffects) -> None:
    """Show the rank correlation of greatest weight and effect, and name heads of large weight and small effect."""
    layer, head = found.most_effect
    say(
        t(
            "attention.causes",
            place=found.place,
            count=found.change.size,
            layer=layer,
            head=head,
            weight=f"{found.strongest[layer, head]:.3f}",
            moved=f"{100 * found.change[layer, head]:+.2f}",
        )
    )
    if not math.isnan(found.agreement.rho):
        say_number(t("attention.rho_heads"), f"{found.agreement.rho:+.2f}", note=t("attention.rho_help"))
        say(chance_of(found.agreement), small=True)
    idle = t("attention.idle", count=len(found.idle), strong=f"{STRONG:.1f}", small=f"{100 * SMALL:.0f}")
    lines = [
        t(
            "attention.idle_head",
            layer=layer,
            head=head,
            weight=f"{found.strongest[layer, head]:.3f}",
            moved=f"{100 * found.change[layer, head]:+.3f}",
        )
        for layer, head in found.idle[:MOST_NAMED].tolist()
    ]
    say("\n".join([idle, "", *(f"- {line}" for line in lines)]))


def show_without(view: View, layer: int, head: int, how: Ablation) -> None:
    """Show the verdict with and without the chosen head, above its heatmap."""
    found = ask(without_head, prompt=view.prompt, layer=layer, head=head, how=how).value
    before, after = st.columns(2)
    with before:
        say(t("attention.with_head"), small=True)
        show_outcome(view, found.before, beside=found.before)
    with after:
        say(t("attention.without_head", layer=layer, head=head), small=True)
        show_outcome(view, found.after, beside=found.before)
    label = outcome_word(view, found.winner)
    say(t("try.measured", label=label, moved=f"{100 * found.moved:+.2f}", layer=layer, head=head))


EFFECT = Part("attention", "effect", _show, _picture, (LAYER, HEAD, HOW))
