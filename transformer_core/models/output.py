"""What is read off the residual stream: a score for every word, or one vector for the whole sentence.

Tied output matrix: Vaswani et al. 2017, section 3.4; Press and Wolf 2017. [CLS]: Devlin et al. 2019, section 4.1;
mean pooling: Reimers and Gurevych 2019, section 3.
Read next: transformer_core/models/encoder.py
"""

from torch import Tensor, nn

from transformer_core.config import ModelConfig
from transformer_core.layers.attention import capped
from transformer_core.layers.embeddings import Embedding
from transformer_core.packed_linear import Linear
from transformer_core.probe import SILENT, Probe


class WordScores(nn.Module):
    """x W^T + b, where W is the token embedding (tied) or a matrix of its own (free).

    With a cap each score s becomes cap * tanh(s / cap) (Bello et al. 2017, section 3; Gemma 2).

    Args:
        width: of x.
        scaled: x is divided by sqrt(width) first (Raffel et al. 2020, their code).

    Raises:
        ValueError: tied rows of another width.
    """

    def __init__(
        self,
        embedding: Embedding,
        width: int,
        *,
        tied: bool,
        bias: bool,
        cap: float | None = None,
        scaled: bool = False,
    ) -> None:
        super().__init__()
        self.cap, self.scale = cap, width**-0.5 if scaled else None
        rows, d_embedding = embedding.weight.shape
        if tied and d_embedding != width:
            raise ValueError(
                f"embedding_width={d_embedding} must be {width} with tied_output=True: the same rows score the stream"
            )
        self.proj = Linear(width, rows, bias=bias)
        if tied:
            self.proj.weight = embedding.weight

    def forward(self, x: Tensor, *, probe: Probe = SILENT) -> Tensor:
        """Score (batch, pos, d_model): (batch, pos, vocab)."""
        return probe.tap("logits", capped(self.proj(x if self.scale is None else x * self.scale), self.cap))


def mean_over_real_tokens(x: Tensor, token_ids: Tensor, padding: int) -> Tensor:
    """Average over positions that are not padding; a sentence of padding alone gives 0.

    Shapes:
        x: (batch, pos, d_model); token_ids: (batch, pos); returns: (batch, d_model)
    """
    real = (token_ids != padding).to(x.dtype)[..., None]  # (batch, pos, 1)
    return (x * real).sum(1) / real.sum(1).clamp(min=1.0)


def sentence_vector(config: ModelConfig, x: Tensor, token_ids: Tensor, probe: Probe) -> Tensor:
    """Pool what an encoder returned as config.pooling says.

    Shapes:
        x: (batch, pos, d_model); token_ids: (batch, pos); returns: (batch, d_model)
    """
    if config.pooling == "cls":
        return probe.tap("cls_embedding", x[:, 0])
    return probe.tap("mean_embedding", mean_over_real_tokens(x, token_ids, config.padding))


SENTENCE_SITES = {"cls": "cls_embedding", "mean": "mean_embedding", "last": "summary"}


def sentence_site(model: nn.Module) -> str:
    """Return the site of the sentence vector that a classifier, recurrent or not, makes its verdict from."""
    return SENTENCE_SITES[model.config.pooling]  # type: ignore[union-attr]
