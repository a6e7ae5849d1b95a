"""From ids to the residual stream: token, segment and position embeddings, summed.

Vaswani et al. 2017, section 3.4; segments and normalisation: Devlin et al. 2019; factorised: Lan et al. 2020.
Read next: transformer_core/layers/feed_forward.py
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_core.config import PADDED, ModelConfig
from transformer_core.layers.dropout import Dropout
from transformer_core.layers.normalization import norm_of
from transformer_core.layers.positions import LearnedPositions, make_positions
from transformer_core.packed_linear import Linear
from transformer_core.probe import SILENT, Probe


class Embedding(nn.Module):
    """A matrix of which ids pick rows, the same as a one-hot vector times the matrix."""

    def __init__(self, rows: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, d_model))

    def forward(self, ids: Tensor) -> Tensor:
        """Look up (batch, pos) ids: (batch, pos, d_model)."""
        return F.embedding(ids, self.weight)


def rows_of(ids: Tensor, pad_id: int | None) -> Tensor:
    """Return which row of the embedding each id picks: PADDED that of pad_id, or the first where there is none."""
    return ids.masked_fill(ids == PADDED, pad_id or 0)


class OneHot(nn.Module):
    """Ids as vectors of a 1 at the id's place and 0 elsewhere; it learns nothing."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.vocab_size = vocab_size

    def forward(self, ids: Tensor) -> Tensor:
        """Write ids (...) as vectors (..., vocab)."""
        return F.one_hot(ids, self.vocab_size).float()


def check_ids(name: str, ids: Tensor, rows: int, *, least: int = 0) -> None:
    """Raise ValueError unless ids is a non-empty (batch, pos) of whole numbers from `least` to rows - 1."""
    if ids.dim() != 2:
        raise ValueError(f"{name} has shape {tuple(ids.shape)}; it must be (batch, pos)")
    if ids.numel() == 0:
        raise ValueError(f"{name} is empty: shape {tuple(ids.shape)}; it needs a sentence of at least one token")
    if ids.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"{name} has dtype {ids.dtype}; it must hold whole numbers: torch.int64 or torch.int32")
    low, high = (int(bound) for bound in ids.aminmax())
    if low < least or high >= rows:
        outside = low if low < least else high
        raise ValueError(f"{name} holds {outside}, outside the vocabulary: ids run from 0 to {rows - 1}")


class InputEmbedding(nn.Module):
    """Sum of token, position and segment embeddings, where the config has them.

    Factorised: the sum, E numbers wide, becomes x W + b, d_model wide, so that V words take V E + E d_model parameters
    in place of V d_model (Lan et al. 2020, section 3.1; their code maps after the norm).

    Raises:
        ValueError: ids outside the vocabulary, an empty batch, more than max_len positions.
    """

    def __init__(self, config: ModelConfig, *, vocab_size: int | None = None) -> None:
        super().__init__()
        self.vocab_size = vocab_size or config.vocab_size
        width = config.d_embedding
        self.token = Embedding(self.vocab_size, width)
        self.position = make_positions(config.positions, config.max_len, width, halves=config.sinusoidal_halves)
        self.segment = Embedding(config.n_segments, width) if config.n_segments else None
        self.norm = norm_of(config, width) if config.embedding_norm else None
        self.stream_proj = None if config.embedding_width is None else Linear(width, config.d_model)
        self.dropout = Dropout(config.dropout_elsewhere)
        self.scale = math.sqrt(width) if config.scale_embeddings else None
        self.max_len = config.max_len
        self.padding_position = LearnedPositions(1, width) if config.positions_skip_padding else None
        self.pad_id = config.pad_id
        self.n_segments = config.n_segments
        self.least_id = min(0, config.padding)

    def forward(
        self, token_ids: Tensor, *, segment_ids: Tensor | None = None, start: int = 0, probe: Probe = SILENT
    ) -> Tensor:
        """Embed a batch.

        Shapes:
            token_ids, segment_ids: (batch, pos)
            returns: (batch, pos, d_model)

        Args:
            start: position of the first token; above 0 where a cache holds what came before.
        """
        token_ids = probe.tap("token_ids", token_ids)
        check_ids("token_ids", token_ids, self.vocab_size, least=self.least_id)
        end = start + token_ids.shape[1]
        if end > self.max_len:
            raise ValueError(f"token_ids has {end} positions; max_len={self.max_len} is the most")
        embedded = probe.tap("token_embedding", self.token(rows_of(token_ids, self.pad_id)))
        if self.scale is not None:
            embedded = probe.tap("scaled_embedding", embedded * self.scale)
        if self.segment is not None:
            embedded = embedded + self._segments(token_ids, segment_ids, probe)
        elif segment_ids is not None:
            raise ValueError("segment_ids were given, but n_segments=0: this model has no segment embeddings")
        if self.position is not None:
            embedded = embedded + probe.tap("position_embedding", self.positions_of(token_ids, start=start))
        embedded = probe.tap("residual", embedded)
        if self.norm is not None:
            embedded = self.norm(embedded, probe=probe.at("norm"))
        embedded = self.dropout(embedded)
        if self.stream_proj is None:
            return embedded
        return probe.tap("projected_embedding", self.stream_proj(embedded))  # (batch, pos, d_model)

    def positions_of(self, token_ids: Tensor, *, start: int = 0) -> Tensor:
        """Return the vectors that are added to tokens for their positions.

        With positions_skip_padding a text's positions count no padding token, typed or padded, and all of these have
        one position of their own (Liu et al. 2019, their code: create_position_ids_from_input_ids).

        Shapes:
            token_ids: (batch, pos)
            returns: (pos, d_model), or (batch, pos, d_model) where several texts with padding differ in them
        """
        assert self.position is not None
        vectors = self.position(token_ids.shape[1], token_ids.device, start)
        if self.padding_position is None:
            return vectors
        counts = (token_ids != PADDED) & (token_ids != self.pad_id)
        if bool(counts.all()):
            return vectors
        counted = F.embedding((counts.cumsum(-1) - 1).clamp(min=0), vectors)  # (batch, pos, d_model)
        counted = torch.where(counts[..., None], counted, self.padding_position.weight)
        return counted[0] if len(counted) == 1 else counted

    def _segments(self, token_ids: Tensor, segment_ids: Tensor | None, probe: Probe) -> Tensor:
        assert self.segment is not None
        if segment_ids is None:
            segment_ids = torch.zeros_like(token_ids)
        segment_ids = probe.tap("segment_ids", segment_ids)
        check_ids("segment_ids", segment_ids, self.n_segments)
        if segment_ids.shape != token_ids.shape:
            raise ValueError(
                f"segment_ids has shape {tuple(segment_ids.shape)}; it must be token_ids' {tuple(token_ids.shape)}"
            )
        return probe.tap("segment_embedding", self.segment(segment_ids))
