"""Alignment: how well each source position fits the word to be written, the first attention.

Bahdanau et al. 2015, section 3.1 and appendix A.1.2. Read next: seq2seq.py.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from transformer_core.layers.masks import additive_mask
from transformer_core.layers.scoring import AdditiveScores, dot_product_scores, masked_softmax
from transformer_core.models.recurrent.cells import widened
from transformer_core.models.recurrent.config import RecurrentConfig
from transformer_core.models.recurrent.recording import Steps
from transformer_core.packed_linear import Linear


@dataclass(frozen=True, eq=False)
class Source:
    """What an alignment reads of the source, the same at every target position.

    Shapes:
        keys: (batch, 1, source_pos, d_hidden); values: (batch, source_pos, d_memory)
        mask: (batch, 1, 1, source_pos), to be added to scores, or None where there is no padding
    """

    keys: Tensor
    values: Tensor
    mask: Tensor | None

    def rows(self, rows: Tensor) -> "Source":
        """Return the sources at some places of the batch, in their order, each as often as it is named."""
        mask = None if self.mask is None else self.mask[rows]
        return replace(self, keys=self.keys[rows], values=self.values[rows], mask=mask)


class Alignment(nn.Module):
    """softmax_j(score(s, h_j)), and the mixture of the h_j that it gives.

    additive     v . tanh(W s + U h_j), the paper's
    dot_product  (W s) . (U h_j) / sqrt(d_hidden)

    Departure: the dot product of Luong et al. 2015 asks with the decoder's new state; here both scorings ask with the
    state before, so that they differ in the score alone.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.query_proj = Linear(config.d_hidden, config.d_hidden)
        self.key_proj = Linear(config.d_memory, config.d_hidden, bias=False)
        self.additive_scores = AdditiveScores(1, config.d_hidden) if config.attention == "additive" else None

    def read(self, annotations: Tensor, real: Tensor | None) -> Source:
        """Return what step needs of the source.

        Shapes:
            annotations: (batch, source_pos, d_memory); real: (batch, source_pos)
        """
        mask = None if real is None else additive_mask(real[:, None, None], annotations.dtype)
        return Source(widened(self.key_proj(annotations))[:, None], annotations, mask)

    def step(self, hidden: Tensor, source: Source, steps: Steps) -> Tensor:
        """Return the context of one target position.

        Shapes:
            hidden: (batch, d_hidden), the decoder's state before it
            returns: (batch, d_memory)
        """
        query = widened(self.query_proj(hidden))[:, None, None]  # (batch, 1, 1, d_hidden)
        score = dot_product_scores if self.additive_scores is None else self.additive_scores
        scores = steps.tap("scores", widened(score(query, source.keys))[:, :, 0])  # (batch, 1, source_pos)
        masked_scores = scores if source.mask is None else scores + source.mask[:, :, 0]
        masked_scores = steps.tap("masked_scores", masked_scores)
        weights = steps.tap("weights", masked_softmax(masked_scores, some_hidden=False))  # (batch, 1, source_pos)
        return torch.bmm(weights, source.values)[:, 0]
