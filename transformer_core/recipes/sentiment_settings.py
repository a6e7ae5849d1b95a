"""What the sentiment recipe fixes, in full size and in a size for trying it out.

Figures to choose by: DECISIONS.md. Read next: sentiment_card.py.
"""

from dataclasses import dataclass, replace

from transformer_core.config import ModelConfig
from transformer_core.recipes.pretraining import Pretraining
from transformer_core.recipes.reviews import Crops
from transformer_core.training.config import TrainConfig


@dataclass(frozen=True)
class Settings:
    """What the recipe fixes: sizes, how it guesses words and then classifies, how it cuts reviews, what it hides."""

    vocab_size: int
    model: ModelConfig
    set_aside_per_class: int
    pretraining: Pretraining
    training: TrainConfig
    crops: Crops
    hide: float


FULL = Settings(
    vocab_size=10_000,
    model=ModelConfig(
        vocab_size=10_000,
        d_model=128,
        n_heads=8,
        d_ff=512,
        n_layers=4,
        max_len=256,
        dropout=0.0,
        positions="sinusoidal",
        scale_embeddings=True,
    ),
    set_aside_per_class=1_250,
    pretraining=Pretraining(
        TrainConfig(learning_rate=2e-3, warm_up=0.05, weight_decay=0.01, batch_size=24, epochs=8), max_len=128, hide=0.2
    ),
    training=TrainConfig(
        learning_rate=5e-4, warm_up=0.06, weight_decay=0.1, label_smoothing=0.05, batch_size=32, epochs=2
    ),
    crops=Crops(opening=0.5, window=0.25),
    hide=0.1,
)
QUICK = replace(
    FULL,
    vocab_size=400,
    model=replace(FULL.model, d_model=32, n_heads=4, d_head=8, d_ff=64, n_layers=1, max_len=64),
    set_aside_per_class=10,
    pretraining=replace(
        FULL.pretraining, training=replace(FULL.pretraining.training, batch_size=16, epochs=1), max_len=32
    ),
    training=replace(FULL.training, learning_rate=3e-3, batch_size=16, epochs=5),
)


def describe(settings: Settings) -> str:
    """Return in words how a classifier is trained."""
    config, crops, before = settings.training, settings.crops, settings.pretraining
    return (
        f"first {before.training.epochs} epochs of guessing hidden words ({before.hide:.0%} of the tokens, "
        f"stretches of {before.max_len}, learning rate "
        f"{before.training.learning_rate:g}), no labels used; then classes, {config.epochs} epochs, "
        f"{config.batch_size} reviews a step; a review is cut to its opening ({crops.opening:.0%}), to any stretch "
        f"({crops.window:.0%}), or to 1 to {crops.longest} whole sentences; {settings.hide:.0%} of the tokens hidden; "
        f"{config.optimizer}, learning rate {config.learning_rate:g}, {config.schedule} schedule, weight decay "
        f"{config.weight_decay:g}, label smoothing {config.label_smoothing:g}"
    )
