"""From the residual stream to a score for every word, with the embedding's own matrix or a free one.

Vaswani et al. 2017, section 3.4; Press and Wolf 2017. Read next: translation.py.
"""

from torch import Tensor, nn

from transformer_core.layers.embeddings import Embedding
from transformer_core.packed_linear import Linear
from transformer_core.probe import SILENT, Probe


class WordScores(nn.Module):
    """x W^T + b, where W is the token embedding (tied) or a matrix of its own (free)."""

    def __init__(self, embedding: Embedding, *, tied: bool, bias: bool) -> None:
        super().__init__()
        rows, d_model = embedding.weight.shape
        self.proj = Linear(d_model, rows, bias=bias)
        if tied:
            self.proj.weight = embedding.weight

    def forward(self, x: Tensor, *, probe: Probe = SILENT) -> Tensor:
        """Score (batch, pos, d_model): (batch, pos, vocab)."""
        return probe.tap("logits", self.proj(x))
