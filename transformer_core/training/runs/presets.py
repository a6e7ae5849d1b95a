"""Presets: whole specs to start from, from a run of seconds to the source article's own.

The article's departs from its code in two things: the tokenizer, of which a WordPiece is the nearest, and batches,
which hold reviews of similar length.

tests/benchmarks/runs.py measures what they reach and in what time.
"""

import dataclasses
import math

from transformer_core.config import ModelConfig
from transformer_core.examples import most_held_out, rows_needed
from transformer_core.training.config import TrainConfig
from transformer_core.training.runs.settings import change, settings
from transformer_core.training.spec import (
    BOUNDS,
    KIND_OF_SOURCE,
    LABELS_OF_REVIEWS,
    RECURRENT_KINDS,
    DataSpec,
    NetworkSpec,
    RunSpec,
    Source,
)

QUICK = RunSpec(
    name="quick",
    data=DataSpec(source="reviews", examples=8_000, held_out=600, vocab_size=2_000, tokenizer="word"),
    model=ModelConfig(
        vocab_size=16,
        d_model=64,
        n_heads=4,
        d_ff=128,
        n_layers=2,
        max_len=48,
        dropout=0.0,
        positions="rotary",
        norm_order="post",
    ),
    training=TrainConfig(learning_rate=3e-3, batch_size=32, epochs=8),
    frames=24,
    points=400,
    threads=1,
)
REVERSE = RunSpec(
    name="reverse",
    data=DataSpec(source="reverse", examples=8_000, held_out=400, symbols=12, length=10),
    model=ModelConfig(
        vocab_size=16, d_model=64, n_heads=4, d_ff=128, n_layers=2, max_len=32, dropout=0.0, scale_embeddings=True
    ),
    training=TrainConfig(learning_rate=3e-3, batch_size=64, epochs=6),
    frames=24,
)
PAIRS = dataclasses.replace(
    REVERSE,
    name="pairs",
    data=DataSpec(source="pairs", examples=8_000, held_out=400, tokenizer="word"),
    training=TrainConfig(learning_rate=3e-3, batch_size=64, epochs=3),
)
CHARACTERS = RunSpec(
    name="characters",
    data=DataSpec(source="characters", examples=16_000, tokenizer="character"),
    model=ModelConfig(
        vocab_size=16, d_model=64, n_heads=4, d_ff=256, n_layers=2, max_len=64, dropout=0.0, positions="rotary"
    ),
    training=TrainConfig(learning_rate=4e-3, batch_size=16, epochs=1),
    frames=24,
)
RECURRENT_LM = RunSpec(
    name="recurrent_lm",
    data=DataSpec(source="characters", examples=16_000, tokenizer="character"),
    network=NetworkSpec(network="gru", one_hot=True, initial="normal"),
    model=ModelConfig(vocab_size=16, d_model=256, max_len=36, dropout=0.0),
    training=TrainConfig(learning_rate=4e-3, batch_size=32, epochs=1),
    frames=24,
)
MASKED_WORDS = RunSpec(
    name="masked_words",
    data=DataSpec(source="masked_words", vocab_size=2_000, tokenizer="word"),
    model=ModelConfig(vocab_size=16, d_model=64, n_heads=4, d_ff=128, n_layers=2, max_len=48, positions="rotary"),
    training=TrainConfig(learning_rate=3e-3, batch_size=16, epochs=60),
    frames=24,
)
IMDB = RunSpec(
    name="imdb",
    data=DataSpec(source="imdb", examples=8_000, held_out=2_000, vocab_size=8_000, tokenizer="wordpiece"),
    model=ModelConfig(
        vocab_size=16,
        d_model=64,
        n_heads=4,
        d_ff=128,
        n_layers=2,
        max_len=192,
        dropout=0.2,
        positions="learned",
        pooling="mean",
    ),
    training=TrainConfig(
        learning_rate=2e-3, warm_up=0.1, weight_decay=0.05, label_smoothing=0.05, batch_size=32, epochs=2
    ),
    frames=12,
    points=300,
)
ARTICLE = RunSpec(
    name="article",
    data=DataSpec(source="imdb", examples=1_200, held_out=200, vocab_size=8_000, tokenizer="wordpiece"),
    network=NetworkSpec(initial="unit"),
    model=ModelConfig(
        vocab_size=16,
        d_model=256,
        n_heads=4,
        d_ff=512,
        n_layers=4,
        max_len=256,
        dropout=0.4,
        dropout_at="sublayers",
        padding_mask="mixed_heads",
        norm_order="post",
        activation="relu",
    ),
    training=TrainConfig(
        optimizer="adam",
        learning_rate=1e-4,
        warm_up=0.0,
        schedule="constant",
        weight_decay=0.0,
        clip_norm=None,
        batch_size=32,
        epochs=20,
    ),
    softmax_before_loss=True,
    frames=21,
    points=600,
)
PRESETS = {spec.name: spec for spec in (QUICK, REVERSE, PAIRS, CHARACTERS, RECURRENT_LM, MASKED_WORDS, IMDB, ARTICLE)}
OF_KIND = {spec.data.kind: spec for spec in (QUICK, REVERSE, CHARACTERS, MASKED_WORDS)}
SET_BY_KIND = ("tokenizer", "vocab_size", "examples", "held_out", "max_len", "batch_size", "epochs")
LEAST_STEPS = 200


def fitted(spec: RunSpec, source: Source, *, there: int | None = None) -> RunSpec:
    """Return a spec that learns from another source, with sizes that suit it; its file is None.

    Where the source needs another kind of model, tokenizer and length of training come from that kind's preset; what no
    recurrent network can learn gets a Transformer. Few examples get more epochs, or the run would end before it has
    learned anything.

    Args:
        spec: to start from.
        source: of the data.
        there: number of different examples; None where there is no limit.
    """
    kind = KIND_OF_SOURCE[source]
    own = settings(OF_KIND[kind])
    sizes = {} if kind == spec.data.kind else {name: own[name] for name in SET_BY_KIND}
    network = spec.network.network if kind in RECURRENT_KINDS else "transformer"
    spec = change(spec, source=source, labels=LABELS_OF_REVIEWS, given=None, network=network, **sizes)
    spec = dataclasses.replace(spec, data=dataclasses.replace(spec.data, file=None))
    if there is None or there >= rows_needed(spec.data.examples, spec.data.held_out):
        return spec
    held_out = max(BOUNDS["held_out"][0], min(spec.data.held_out, most_held_out(there)))
    examples = max(BOUNDS["examples"][0], min(spec.data.examples, there - held_out))
    steps = math.ceil(examples / spec.training.batch_size)
    epochs = min(BOUNDS["epochs"][1], max(spec.training.epochs, math.ceil(LEAST_STEPS / steps)))
    return change(spec, held_out=held_out, examples=examples, epochs=epochs)
