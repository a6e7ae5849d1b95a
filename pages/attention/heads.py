"""All heads at a glance, one of them large, and the experiment of switching it off."""

import streamlit as st

from pages.attention.chosen_head import HEAD, LAYER, STEP, large_head, on_panel, show_large, show_layer_and_head
from pages.attention.dropout import try_dropout
from pages.attention.tendencies import THRESHOLD, short_names
from pages.figures.heads import heads_grid
from pages.kit.asking import ask
from pages.kit.controls import Switch, Values
from pages.kit.experiment import ask_first, experiment, options_of
from pages.kit.explanation import show_explanation
from pages.kit.header import View
from pages.kit.live import Live
from pages.kit.matrix import Picture, all_windows, show_picture
from pages.kit.verdict import concludes, outcome_verdict, outcome_word, show_outcome, show_verdict_of
from pages.language import joined, section, strings, t
from pages.room import Part
from transformer_core.analysis.attention.head_ablation import without_head
from transformer_core.analysis.attention.heads import Heads
from transformer_core.analysis.attention.tendencies import labelled, tendencies_of
from transformer_core.analysis.finding import moved

SAME_SCALE = Switch("same_scale", True, label="attention.same_scale")
NAMES = Switch("attention_names", True, label="attention.name_heads")


def _picture(view: View, values: Values) -> Live:
    """Return the grid, the chosen head and the verdict."""
    layer, head, step = values[LAYER], values[HEAD], values[STEP]
    large = large_head("head_large", view, values, step, pins=step == "mixture")
    answer, heads, config = large.answer, large.answer.value, view.bundle.config
    shares = config.kv_heads < config.n_heads
    grid = heads_grid(
        heads.weights,
        view.encoding.labels,
        strings("axis") | {"weight": t("quantity.weights")},
        layer=layer,
        head=head,
        same_scale=values[SAME_SCALE],
        note=joined(section("attention", "grid"), *_grid_notes(view)),
        tendencies=names_of_heads(view, heads, values[THRESHOLD]) if values[NAMES] else None,
        chooses=("layer", "head"),
        groups=[t("axis.shared", number=config.kv_head(one)) for one in range(config.n_heads)] if shares else (),
        windows=[view.bundle.reader.sees(one) for one in range(config.n_layers)],
    )
    picture = Picture("heads", grid, answer, version=f"{layer}.{head}|{view.encoding.text}")
    return Live((picture, large), {"heads": outcome_verdict(view, heads.probabilities)})


def _show(view: View) -> None:
    """Show the grid, the chosen head and its steps."""
    grid_place, head_place = st.columns(2, gap="large")
    with head_place:
        layer, head = show_layer_and_head(view)
        STEP.show()
    verdict_place = grid_place.container()
    with grid_place:
        scale_place, names_place = st.columns(2)
        with scale_place:
            SAME_SCALE.show()
        with names_place:
            NAMES.show()
        found = HEADS.live(view)
        grid, large = found.matrices
        show_picture(grid, on_select=on_panel, files=True)
        words_place = st.container()  # below the grid: it grows with the sentence
        head_off_experiment(view, layer, head)
    dropout_place = st.container()  # as wide as the page
    with verdict_place:
        show_verdict_of(view, found.verdicts["heads"], place="heads")
    with head_place:
        show_large(large)
    HEADS.follow(view)
    with dropout_place:
        try_dropout(view, layer, head)
    with words_place:  # last, because it is slow: each word is hidden in turn
        show_explanation(view)


def _grid_notes(view: View) -> list[str]:
    """Return what is to be said of brackets over the heads, and of lines at windows' edges."""
    config = view.bundle.config
    kind = "multi" if config.kv_heads == 1 else "grouped"
    shares = [t(f"attention.{kind}_query", heads=config.n_heads, shared=config.kv_heads)]
    return [*(shares if config.kv_heads < config.n_heads else []), all_windows(view)]


def names_of_heads(view: View, heads: Heads, least: float) -> list[list[str]]:
    """Return the short name of each head's tendency on this sentence, "" where its score is less than the least."""
    padding, causal = view.bundle.config.padding, view.bundle.reader.causal
    found = tendencies_of([heads.weights], [view.encoding], padding, causal=causal)
    names = short_names()
    return [[names[label] for label in layer] for layer in labelled(found.scores, least).tolist()]


@experiment("try_open")
def head_off_experiment(view: View, layer: int, head: int) -> None:
    """Ask for a prediction, then switch the head off and show what that changes."""
    if not concludes(view):
        return
    st.markdown(section("attention", "try").format(layer=layer, head=head))
    options = options_of("try.{}", ("little", "much", "flips"))
    cover = ask_first(t("try.guess"), options, name="attention_head_off", about=f"{view.name} {layer}.{head}")
    found = ask(without_head, prompt=view.prompt, layer=layer, head=head).value
    label, points = outcome_word(view, found.winner), f"{100 * found.moved:+.2f}"
    measured = t("try.measured", label=label, moved=points, layer=layer, head=head)
    cover.judge(moved(found.before, found.after).option, measured)
    with cover.picture():
        show_outcome(view, found.after, beside=found.before)


HEADS = Part("attention", "heads", _show, _picture, (LAYER, HEAD, STEP, SAME_SCALE, NAMES, THRESHOLD))
