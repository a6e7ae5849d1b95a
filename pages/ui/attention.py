"""What the attention page asks of the model, and its words.

Read next: glass.py.
"""

import numpy as np
import streamlit as st

from pages.figures.attention import STEP_NAMES, Words
from pages.ui.header import View
from pages.ui.language import section, strings, t
from pages.ui.verdict import class_word, show_verdict
from transformer_core.analysis.heads import HeadSteps, all_weights, head_off, head_steps
from transformer_core.analysis.reading import Reading, read


def attention_scope(layer: int) -> str:
    """Return the full name of a layer's self-attention."""
    return f"encoder.layer{layer}.self_attention"


def read_heads(view: View, layer: int, head: int) -> tuple[Reading, list[np.ndarray], HeadSteps]:
    """Read the text once: the reading, every layer's weights, and one head's steps."""
    scope = attention_scope(layer)
    reading = read(view.bundle, view.encoding, sites=("*.self_attention.weights", f"encoder.layer{layer}.*", "class_*"))
    return reading, list(all_weights(reading.trace).values()), head_steps(reading.trace, scope, head)


def matrix_words() -> Words:
    """Return the words of the attention figures in the language chosen."""
    return Words(
        ui=strings("matrix"),
        query=t("axis.query"),
        key=t("axis.key"),
        dimension=t("axis.dimension"),
        layer=t("axis.layer"),
        head=t("axis.head"),
        steps={name: t(f"step.{name}") for name in STEP_NAMES},
        quantities={name: t(f"quantity.{name}") for name in STEP_NAMES},
    )


def head_off_experiment(view: View, layer: int, head: int, before: Reading) -> None:
    """Ask for a prediction, then switch the head off and show what that changes."""
    box = st.expander(t("try.heading"), icon=":material/science:", key="try_open", bind="query-params")
    if not box.open:
        return
    with box:
        st.markdown(section("attention", "try").format(layer=layer, head=head))
        guess = st.radio(
            t("try.guess"),
            ["little", "much", "flips"],
            format_func=lambda name: t(f"try.{name}"),
            index=None,
            horizontal=True,
            key=f"guess {view.bundle.name} {view.encoding.text} {layer}.{head}",
        )
        if guess is None:
            return
        after = read(view.bundle, view.encoding, sites=("class_logits",), edits=head_off(attention_scope(layer), head))
        show_verdict(view.bundle.labels, after.probabilities)
        winner = max(range(len(before.probabilities)), key=before.probabilities.__getitem__)
        moved = 100 * (after.probabilities[winner] - before.probabilities[winner])
        flipped = after.probabilities[winner] < max(after.probabilities)
        outcome = "flips" if flipped else "much" if abs(moved) >= 5 else "little"
        right = t("try.right") if outcome == guess else t("try.wrong", outcome=t(f"try.{outcome}"))
        label = class_word(view.bundle.labels[winner])
        st.markdown(f"{right} {t('try.measured', label=label, moved=f'{moved:+.2f}', layer=layer, head=head)}")
