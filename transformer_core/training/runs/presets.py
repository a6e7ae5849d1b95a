"""Presets: whole specs to begin with, from a run of seconds to the source article's own.

What each of them reaches, and in what time, is measured by tests/benchmarks. Read next: store.py.
"""

from transformer_core.config import ModelConfig
from transformer_core.training.config import TrainConfig
from transformer_core.training.runs.spec import DataSpec, RunSpec

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
CHARACTERS = RunSpec(
    name="characters",
    data=DataSpec(source="characters", examples=16_000, tokenizer="character"),
    model=ModelConfig(
        vocab_size=16, d_model=64, n_heads=4, d_ff=256, n_layers=2, max_len=64, dropout=0.0, positions="rotary"
    ),
    training=TrainConfig(learning_rate=4e-3, batch_size=16, epochs=1),
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
    data=DataSpec(source="imdb", examples=1_200, held_out=400, vocab_size=8_000, tokenizer="wordpiece"),
    model=ModelConfig(
        vocab_size=16,
        d_model=256,
        n_heads=4,
        d_ff=512,
        n_layers=4,
        max_len=256,
        dropout=0.4,
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
PRESETS = {spec.name: spec for spec in (QUICK, REVERSE, CHARACTERS, MASKED_WORDS, IMDB, ARTICLE)}
