"""The settings of a run that a person may change, section by section, with their bounds.

The bounds are the server's own: whatever a browser sends is read against them again.
"""

from collections.abc import Mapping
from typing import Any, get_args

import streamlit as st

from pages.train.controls import Control, Flag, Number, Pick, ask, value_of
from transformer_core.config import Activation, NormOrder, Pooling, Positions
from transformer_core.text import KINDS as TOKENIZERS
from transformer_core.training.config import Optimizer, Precision, Schedule
from transformer_core.training.runs.settings import VOCABULARY
from transformer_core.training.spec import BOUNDS, KIND_OF_SOURCE, Language, Source

COLUMNS = 4
LARGEST_SEED = 2**31 - 1
LARGEST_PASSAGE = 2_000_000
TEXTS = ("classifier", "bert")
BROUGHT = ("table", "imdb")


def _bounded(name: str, step: int, *kinds: str) -> Number:
    return Number(name, *BOUNDS[name], step, kinds) if kinds else Number(name, *BOUNDS[name], step)


SOURCE = Pick("source", get_args(Source))
LANGUAGE = Pick("language", get_args(Language), ("classifier", "gpt", "bert"))
LEARN: tuple[Control, ...] = (
    _bounded("symbols", 1, "translation"),
    _bounded("length", 1, "translation"),
    _bounded("examples", 100),
    _bounded("held_out", 100, "classifier", "translation"),
    Pick("tokenizer", tuple(TOKENIZERS), TEXTS),
    _bounded("vocab_size", 100, *TEXTS),
    _bounded("max_len", 8),
)
MODEL: tuple[Control, ...] = (
    _bounded("n_layers", 1),
    _bounded("d_model", 8),
    _bounded("n_heads", 1),
    _bounded("d_ff", 8),
    Number("dropout", 0.0, 0.9, 0.05),
    Pick("positions", get_args(Positions)),
    Pick("norm_order", get_args(NormOrder)),
    Pick("activation", get_args(Activation)),
    Pick("pooling", get_args(Pooling), ("classifier",)),
    Flag("residual"),
    Flag("scale_scores"),
    Flag("scale_embeddings"),
    Flag("causal", ("gpt", "translation")),
)
OPTIMISER: tuple[Control, ...] = (
    Pick("optimizer", get_args(Optimizer)),
    Number("learning_rate", 1e-6, 10.0, 1e-4),
    Pick("schedule", get_args(Schedule)),
    Number("warm_up", 0.0, 0.95, 0.05),
    Number("weight_decay", 0.0, 1.0, 0.01),
    Number("clip_norm", 0.0, 1_000.0, 0.5, off=0.0),
    Number("label_smoothing", 0.0, 0.9, 0.05, ("classifier", "translation", "gpt")),
    Flag("softmax_before_loss", ("classifier",)),
)
RUN: tuple[Control, ...] = (
    _bounded("epochs", 1),
    _bounded("batch_size", 4),
    Number("seed", 0, LARGEST_SEED, 1),
    _bounded("frames", 1),
    _bounded("points", 20, "classifier"),
    _bounded("threads", 1),
    Pick("precision", get_args(Precision)),
)
SECTIONS = {"learn": LEARN, "model": MODEL, "optimiser": OPTIMISER, "run": RUN}
ALL: tuple[Control, ...] = (SOURCE, LANGUAGE, *LEARN, *MODEL, *OPTIMISER, *RUN)


def apply(controls: tuple[Control, ...], source: str) -> list[Control]:
    """Return the settings that a source's kind of model has; the language is that of texts that come with the app."""
    kind = KIND_OF_SOURCE[source]
    return [one for one in controls if kind in one.kinds and not (one is LANGUAGE and source in BROUGHT)]


def read_settings(source: str, usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return every setting without showing a widget."""
    return {one.name: value_of(one, usual[one.name]) for one in apply(ALL[1:], source)}


def show_settings(section: str, source: str, usual: Mapping[str, Any], *, frozen: bool) -> dict[str, Any]:
    """Show one section's widgets and return their values.

    Args:
        usual: what each setting is where nothing else was chosen.
        frozen: what the vocabulary follows from cannot be changed, since the weights are taken over.
    """
    values = {}
    controls = apply(SECTIONS[section], source)
    for start in range(0, len(controls), COLUMNS):
        for place, one in zip(st.columns(COLUMNS, vertical_alignment="bottom"), controls[start:], strict=False):
            with place:
                values[one.name] = ask(one, usual[one.name], disabled=frozen and one.name in VOCABULARY)
    return values
