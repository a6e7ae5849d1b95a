"""The configuration of the model that learns a task: what the run's spec chooses and its data determine."""

from dataclasses import replace

from transformer_core.bundle import make_config
from transformer_core.config import ModelConfig
from transformer_core.layers.initialization import NORMAL_DEVIATION
from transformer_core.text import PAD_ID
from transformer_core.training.spec import RunSpec

UNITS = {"rnn": "tanh", "gru": "gru", "lstm": "lstm"}


def model_config(spec: RunSpec, *, vocab_size: int, n_classes: int | None = None) -> ModelConfig:
    """Return the configuration of a run's model; a recurrent one's is one of models/recurrent/config.py.

    Args:
        spec: the run's.
        vocab_size: entries of the vocabulary that the data gave.
        n_classes: of a classifier.
    """
    chosen, sizes = spec.network, spec.model
    classes = {} if n_classes is None else {"n_classes": n_classes}
    if chosen.network == "transformer":
        return replace(sizes, vocab_size=vocab_size, target_vocab_size=None, pad_id=PAD_ID, **classes)
    values = {
        "vocab_size": vocab_size,
        "d_model": sizes.d_model,
        "d_hidden": sizes.d_model,
        "unit": UNITS[chosen.network],
        "max_len": sizes.max_len,
        "dropout": sizes.dropout,
        "pad_id": PAD_ID,
        "initial_deviation": NORMAL_DEVIATION if chosen.initial == "normal" else None,
        **classes,
    }
    if spec.kind == "recurrent_classifier":
        values |= {"pooling": chosen.summary, "bidirectional": chosen.bidirectional}
    if spec.kind == "lm":
        values |= {"one_hot": chosen.one_hot}
    if spec.kind == "seq2seq":
        attention = None if chosen.alignment == "none" else chosen.alignment
        values |= {"attention": attention, "bidirectional": chosen.bidirectional}
    return make_config(spec.kind, values)
