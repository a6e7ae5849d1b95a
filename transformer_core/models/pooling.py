"""Pooling: a sentence's vector is that of its first token, [CLS], or the mean of its real tokens.

Devlin et al. 2019, section 4.1; mean: Reimers and Gurevych 2019, section 3. Read next: classifier.py.
"""

from torch import Tensor

from transformer_core.config import ModelConfig
from transformer_core.probe import Probe


def mean_over_real_tokens(x: Tensor, token_ids: Tensor, pad_id: int | None) -> Tensor:
    """Average over positions that are not padding; a sentence of padding alone gives 0.

    Shapes:
        x: (batch, pos, d_model); token_ids: (batch, pos); returns: (batch, d_model)
    """
    if pad_id is None:
        return x.mean(1)
    real = (token_ids != pad_id).to(x.dtype)[..., None]  # (batch, pos, 1)
    return (x * real).sum(1) / real.sum(1).clamp(min=1.0)


def sentence_vector(config: ModelConfig, x: Tensor, token_ids: Tensor, probe: Probe) -> Tensor:
    """Pool what an encoder returned as config.pooling says.

    Shapes:
        x: (batch, pos, d_model); token_ids: (batch, pos); returns: (batch, d_model)
    """
    if config.pooling == "cls":
        return probe.tap("cls_embedding", x[:, 0])
    return probe.tap("mean_embedding", mean_over_real_tokens(x, token_ids, config.pad_id))
