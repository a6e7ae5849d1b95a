"""Add positions, or concatenate them? A short training of both and of neither, on a task where order is everything.

Vaswani et al. 2017, section 3.5 (adding). W [e; p] = W_e e + W_p p, so that adding is concatenating with two maps
that are one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from transformer_core.analysis.short_training import Lesson, Trial, backwards_loss, backwards_right, train_each
from transformer_core.config import ModelConfig
from transformer_core.layers.blocks import EncoderBlock, Stack
from transformer_core.layers.embeddings import InputEmbedding
from transformer_core.layers.initialization import shapes_alone
from transformer_core.layers.positions import SinusoidalPositions
from transformer_core.packed_linear import Linear
from transformer_core.training.config import TrainConfig

SYMBOLS, LENGTH = 10, 8
STEPS, BATCH, HELD_OUT = 240, 64, 512
CONFIG = ModelConfig(
    vocab_size=SYMBOLS,
    d_model=32,
    n_heads=4,
    d_ff=64,
    n_layers=1,
    max_len=LENGTH,
    dropout=0.0,
    pad_id=None,
    scale_embeddings=True,
)
TRAINING = TrainConfig(learning_rate=5e-3, batch_size=BATCH)


class ConcatenatedEmbedding(nn.Module):
    """W [e; p]: token and position laid end to end and projected back to d_model."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.words = InputEmbedding(replace(config, positions="none"))
        self.position = SinusoidalPositions(config.max_len, config.d_model)
        self.proj = Linear(2 * config.d_model, config.d_model, bias=False)

    def forward(self, token_ids: Tensor) -> Tensor:
        """Embed (batch, pos): (batch, pos, d_model)."""
        words = self.words(token_ids)
        positions = self.position(token_ids.shape[1], token_ids.device).expand_as(words)
        return self.proj(torch.cat((words, positions), dim=-1))


class Reverser(nn.Module):
    """One encoder layer that names, at every position, a symbol."""

    def __init__(self, embedding: nn.Module, config: ModelConfig) -> None:
        super().__init__()
        self.embedding = embedding
        self.stack = Stack(config, EncoderBlock)
        self.symbol_proj = Linear(config.d_model, config.vocab_size)

    def forward(self, token_ids: Tensor) -> Tensor:
        """Score (batch, pos): (batch, pos, symbol)."""
        return self.symbol_proj(self.stack(self.embedding(token_ids)))


@dataclass(frozen=True, eq=False)
class Sizes:
    """Parameters of the three models."""

    added: int
    concatenated: int
    none: int


def _models() -> dict[str, nn.Module]:
    embeddings = {
        "added": InputEmbedding(CONFIG),
        "concatenated": ConcatenatedEmbedding(CONFIG),
        "none": InputEmbedding(replace(CONFIG, positions="none")),
    }
    return {name: Reverser(embedding, CONFIG) for name, embedding in embeddings.items()}


def joined_sizes() -> Sizes:
    """Count the parameters of the models that train_joined_positions trains."""
    with shapes_alone():
        return Sizes(**{name: sum(p.numel() for p in model.parameters()) for name, model in _models().items()})


def _rows(number: int, seed: int) -> Tensor:
    return torch.randint(SYMBOLS, (number, LENGTH), generator=torch.Generator().manual_seed(seed))


@torch.inference_mode()
def _measure(model: nn.Module, rows: Tensor) -> tuple[float, float]:
    return backwards_right(model, rows), float(backwards_loss(model, rows))


def train_joined_positions(*, seeds: tuple[int, ...]) -> Trial:
    """Train a one-layer encoder to reverse 8 random symbols, with positions added, concatenated, and absent.

    Args:
        seeds: of the symbols and the starting weights; accuracy counts single symbols.
    """
    lessons = []
    for seed in seeds:

        def batches(epoch: int, seed: int = seed) -> Iterator[Tensor]:
            for place in range(STEPS):
                yield _rows(BATCH, 1 + place + STEPS * (2 * seed + 1))

        held_out = _rows(HELD_OUT, STEPS * 2 * seed)
        training, measure = replace(TRAINING, seed=seed), partial(_measure, rows=held_out)
        lesson = Lesson(backwards_loss, batches, STEPS, training, measure)
        lessons.append((seed, lesson, _models()))
    return train_each(lessons, chance=1 / SYMBOLS)
