"""Normalisation: layer norm as torch has it and as tutorials often print it, and by the root mean square.

Ba et al. 2016, eq. 4, to which torch adds the epsilon that keeps it from dividing by 0; Zhang and Sennrich 2019;
without a bias: Warner et al. 2024.
Read next: transformer_core/layers/embeddings.py
"""

import torch
from torch import Tensor, nn

from transformer_core.config import ModelConfig, Norm, require_choice
from transformer_core.probe import SILENT, Probe


class LayerNorm(nn.Module):
    """g * (x - mean) / sqrt(variance + eps) + b over the last axis, with the biased variance; b may be left out."""

    multiplies = "inverse_deviation"  # the site of what it multiplies by

    def __init__(self, d_model: int, *, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model)) if bias else None
        self.eps = eps

    def forward(self, x: Tensor, *, probe: Probe = SILENT) -> Tensor:
        """Normalise (batch, pos, d_model) to the same shape."""
        weight, bias = self.weight, self.bias
        normalized, mean, inverse_deviation = torch.native_layer_norm(x, weight.shape, weight, bias, self.eps)
        if probe.differentiates:  # torch gives neither of the two a gradient of its own
            mean = x.mean(-1, keepdim=True)
            inverse_deviation = (x.var(-1, correction=0, keepdim=True) + self.eps).rsqrt()
        used_mean = probe.tap("mean", mean)  # (batch, pos, one)
        used_inverse = probe.tap("inverse_deviation", inverse_deviation)  # (batch, pos, one)
        if used_mean is not mean or used_inverse is not inverse_deviation:
            normalized = (x - used_mean) * used_inverse * weight + (0.0 if bias is None else bias)
        return probe.tap("normalized", normalized)


class UnbiasedNorm(nn.Module):
    """alpha * (x - mean) / (deviation + eps) + bias: unbiased deviation (d - 1), eps outside the root.

    This departs from Ba et al. 2016, eq. 4; it is the common variant that a page shows beside it.
    """

    multiplies = "inverse_deviation"

    def __init__(self, d_model: int, *, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x: Tensor, *, probe: Probe = SILENT) -> Tensor:
        """Normalise (batch, pos, d_model) to the same shape."""
        mean = probe.tap("mean", x.mean(-1, keepdim=True))  # (batch, pos, one)
        inverse_deviation = probe.tap("inverse_deviation", 1 / (x.std(-1, keepdim=True) + self.eps))
        return probe.tap("normalized", self.weight * (x - mean) * inverse_deviation + self.bias)


class RmsNorm(nn.Module):
    """g * x / sqrt(mean(x^2) + eps): no mean is taken away, and there is no bias (Zhang and Sennrich 2019, eq. 4)."""

    multiplies = "inverse_root_mean_square"

    def __init__(self, d_model: int, *, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = None
        self.eps = eps

    def forward(self, x: Tensor, *, probe: Probe = SILENT) -> Tensor:
        """Normalise (batch, pos, d_model), or (batch, head, pos, d_head), to the same shape."""
        inverse = probe.tap(self.multiplies, (x.square().mean(-1, keepdim=True) + self.eps).rsqrt())
        return probe.tap("normalized", x * inverse * self.weight)


AnyNorm = LayerNorm | UnbiasedNorm | RmsNorm
NORMS: dict[str, type[AnyNorm]] = {"layer_norm": LayerNorm, "unbiased": UnbiasedNorm, "rms_norm": RmsNorm}


def make_norm(norm: Norm, d_model: int, *, eps: float) -> AnyNorm:
    """Return the normalisation that a config names.

    Raises:
        ValueError: the norm is unknown.
    """
    require_choice("norm", norm, tuple(NORMS))
    return NORMS[norm](d_model, eps=eps)


def norm_of(config: ModelConfig, width: int | None = None) -> AnyNorm:
    """Return the normalisation of a config, of vectors of d_model numbers or of another width."""
    width = width or config.d_model
    if not config.norm_bias:
        return LayerNorm(width, eps=config.norm_eps, bias=False)
    return make_norm(config.norm, width, eps=config.norm_eps)


def gain_and_bias(norm: AnyNorm) -> tuple[Tensor, Tensor]:
    """Return what a normalisation multiplies by and what it adds, which is 0 where it has no bias: (d_model,) each."""
    gain = norm.weight.detach().cpu()
    return gain, torch.zeros_like(gain) if norm.bias is None else norm.bias.detach().cpu()
