"""All heads at a glance, one of them large, and the experiment of switching it off."""

import streamlit as st

from pages.attention.chosen_head import (
    choose_layer_and_head,
    large_head,
    on_cell,
    on_panel,
    read_heads,
)
from pages.attention.dropout import try_dropout
from pages.attention.tendencies import short_names, threshold
from pages.figures.heads import STEP_NAMES, heads_grid
from pages.ui.asking import ask
from pages.ui.because import show_because
from pages.ui.experiment import ask_first, lazy_box
from pages.ui.header import View
from pages.ui.language import section, strings, t
from pages.ui.live import Live, follow_finger
from pages.ui.matrix import Picture, export_picture, show_picture
from pages.ui.pickers import chosen_layer_and_head, head_choices
from pages.ui.url import choose, chosen_option, chosen_switch, switch
from pages.ui.verdict import concludes, outcome_verdict, outcome_word, show_outcome, show_verdict_of
from transformer_core.analysis.attention.head_ablation import without_head
from transformer_core.analysis.attention.heads import Heads
from transformer_core.analysis.attention.tendencies import labelled, tendencies_of
from transformer_core.analysis.outcome import is_causal
from transformer_core.analysis.questions import moved


def live_heads(view: View) -> Live:
    """Return the grid, the chosen head and the verdict, by what is chosen."""
    layer, head = chosen_layer_and_head(view)
    step = chosen_option("step", STEP_NAMES, default="weights")
    answer = read_heads(view, layer, head)
    named = chosen_switch("attention_names", default=True)
    grid = heads_grid(
        answer.value.weights,
        view.encoding.labels,
        strings("axis") | {"weight": t("quantity.weights")},
        strings("matrix"),
        layer=layer,
        head=head,
        same_scale=chosen_switch("same_scale", default=True),
        version=f"{layer}.{head}|{view.encoding.text}",
        note=section("attention", "grid"),
        tendencies=names_of_heads(view, answer.value) if named else None,
        chooses=("layer", "head"),
    )
    large = large_head(view, answer.value, layer, head, step)
    return Live(
        (Picture("heads", grid, answer), Picture("head_large", large, answer, pins=step == "mixture")),
        {"heads": outcome_verdict(view, answer.value.probabilities)},
    )


def show_heads(view: View) -> None:
    """Show the grid, the chosen head and its steps."""
    grid_place, head_place = st.columns(2, gap="large")
    with head_place:
        layer, head = choose_layer_and_head(view)
        steps = {name: t(f"step.{name}") for name in STEP_NAMES}
        step = choose(t("attention.step"), steps, name="step", default="weights")
    verdict_place = grid_place.container()
    with grid_place:
        scale_place, names_place = st.columns(2)
        with scale_place:
            switch(t("attention.same_scale"), name="same_scale", default=True)
        with names_place:
            switch(t("attention.name_heads"), name="attention_names", default=True)
        found = live_heads(view)
        grid, large = (one for one in found.pictures if isinstance(one, Picture))
        show_picture(grid, on_select=on_panel)
        export_picture(grid)
        words_place = st.container()  # below the grid: it grows with the sentence
        head_off_experiment(view, layer, head)
    dropout_place = st.container()  # as wide as the page
    with verdict_place:
        show_verdict_of(view, found.verdicts["heads"], place="heads")
    with head_place:
        show_picture(large, on_cell=None if large.pins else on_cell)
        export_picture(large)
    follow_finger("attention", "heads", view, choices=head_choices(view) | {"step": (STEP_NAMES, step)})
    with dropout_place:
        try_dropout(view, layer, head)
    with words_place:  # last, because it is slow: each word is hidden in turn
        show_because(view)


def names_of_heads(view: View, heads: Heads) -> list[list[str]]:
    """Return the short name of each head's tendency on this sentence, "" where it has none."""
    padding, causal = view.bundle.config.padding, is_causal(view.bundle)
    found = tendencies_of([heads.weights], [view.encoding], padding, causal=causal)
    names = short_names()
    return [[names[label] for label in layer] for layer in labelled(found.scores, threshold()).tolist()]


def head_off_experiment(view: View, layer: int, head: int) -> None:
    """Ask for a prediction, then switch the head off and show what that changes."""
    box = lazy_box(t("try.heading"), icon=":material/science:", key="try_open")
    if box is None:
        return
    with box:
        if not concludes(view):
            return
        st.markdown(section("attention", "try").format(layer=layer, head=head))
        options = {name: t(f"try.{name}") for name in ("little", "much", "flips")}
        about = f"{view.bundle.name} {view.encoding.text} {layer}.{head}"
        cover = ask_first(t("try.guess"), options, name="attention_head_off", about=about)
        found = ask(without_head, **view.asked, layer=layer, head=head).value
        measured = t(
            "try.measured",
            label=outcome_word(view, found.winner),
            moved=f"{100 * found.moved:+.2f}",
            layer=layer,
            head=head,
        )
        cover.judge(moved(found.before, found.after).option, measured)
        with cover.picture():
            show_outcome(view, found.after, beside=found.before)
