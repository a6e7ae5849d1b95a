"""The position-wise feed-forward layer and its activations.

Vaswani et al. 2017, eq. 2; GELU: Hendrycks and Gimpel 2016; gated: Shazeer 2020.
Read next: transformer_core/layers/masks.py
"""

import torch.nn.functional as F
from torch import Tensor, nn

from transformer_core.config import Activation, require_choice
from transformer_core.layers.dropout import Dropout
from transformer_core.packed_linear import Linear
from transformer_core.probe import SILENT, Probe


def relu(x: Tensor) -> Tensor:
    """max(0, x)."""
    return F.relu(x)


def gelu(x: Tensor) -> Tensor:
    """x Phi(x), with the exact normal distribution function."""
    return F.gelu(x)


def gelu_tanh(x: Tensor) -> Tensor:
    """0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), the approximation that GPT-2 uses."""
    return F.gelu(x, approximate="tanh")


def silu(x: Tensor) -> Tensor:
    """x / (1 + exp(-x)), also called swish (Ramachandran et al. 2017)."""
    return F.silu(x)


ACTIVATIONS = {"relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu}


class FeedForward(nn.Module):
    """phi(x W_1 + b_1) W_2 + b_2, the same at every position (Vaswani et al. 2017, eq. 2).

    Gated: (phi(x W_g) * x W_1) W_2, where each number of the inside is a product (Shazeer 2020, eq. 5 and 6: GEGLU with
    GELU as phi, SwiGLU with SiLU).
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: Activation = "relu",
        gated: bool = False,
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        require_choice("activation", activation, tuple(ACTIVATIONS))
        self.gate_proj = Linear(d_model, d_ff, bias=bias) if gated else None
        self.inner_proj = Linear(d_model, d_ff, bias=bias)
        self.outer_proj = Linear(d_ff, d_model, bias=bias)
        self.dropout = Dropout(dropout)
        self.activation = activation

    def forward(self, x: Tensor, *, probe: Probe = SILENT) -> Tensor:
        """Map (batch, pos, d_model) to (batch, pos, d_model)."""
        phi = ACTIVATIONS[self.activation]
        if self.gate_proj is None:
            pre_activation = probe.tap("pre_activation", self.inner_proj(x))  # (batch, pos, d_ff)
            inside = phi(pre_activation)
        else:
            pre_activation = probe.tap("pre_activation", self.gate_proj(x))  # (batch, pos, d_ff)
            gate = probe.tap("gate", phi(pre_activation))  # (batch, pos, d_ff)
            inside = gate * probe.tap("up", self.inner_proj(x))
        activation = probe.tap("activation", inside)  # (batch, pos, d_ff)
        dropped = self.dropout(activation) if self.training else activation
        return probe.tap("output", self.outer_proj(dropped))
