"""The position-wise feed-forward layer and its activations, and a mixture of such layers.

Vaswani et al. 2017, eq. 2; GELU: Hendrycks and Gimpel 2016; gated: Shazeer 2020; mixtures: Shazeer et al. 2017.
Read next: transformer_core/layers/masks.py
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_core.config import Activation, ModelConfig, require_choice
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


class MixtureOfExperts(nn.Module):
    """sum_i g_i(x) E_i(x) over the chosen experts E_i, each a feed-forward layer (Shazeer et al. 2017, eq. 1).

    A router gives each expert the probability softmax(x W_r)_i; the largest n_active_experts are chosen, and g is their
    probability (Fedus et al. 2022, eq. 2; Muennighoff et al. 2024), or, where the config says so, that over their sum
    (Jiang et al. 2024, section 2.1). A shared expert reads every token and is added (Dai et al. 2024, section 3.2),
    through a gate of its own where the config says so. Departures: no noise, and no bound on an expert's tokens.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.router = Linear(config.d_model, config.n_experts, bias=False)
        self.experts = nn.ModuleList(_layer_from(config, config.d_ff) for _ in range(config.n_experts))
        self.shared = _layer_from(config, config.shared_d_ff) if config.shared_d_ff else None
        self.shared_gate = Linear(config.d_model, 1, bias=False) if config.shared_gate else None
        self.n_active, self.sums_to_one = config.n_active_experts, config.expert_weights_sum_to_one

    def forward(self, x: Tensor, *, probe: Probe = SILENT) -> Tensor:
        """Map (batch, pos, d_model) to (batch, pos, d_model)."""
        scores = probe.tap("router_scores", self.router(x))  # (batch, pos, expert)
        probabilities = probe.tap("router_probabilities", scores.softmax(-1))  # (batch, pos, expert)
        weights = probe.tap("expert_weights", self._chosen(probabilities))  # (batch, pos, expert)
        mixed = self._mixed(x, weights, probe)
        if self.shared is not None:
            shared = self.shared(x)
            if self.shared_gate is not None:
                shared = probe.tap("shared_gate", torch.sigmoid(self.shared_gate(x))) * shared
            mixed = mixed + probe.tap("shared_output", shared)
        return probe.tap("output", mixed)

    def _chosen(self, probabilities: Tensor) -> Tensor:
        """Return each expert's weight: 0 but for the chosen ones."""
        top = probabilities.topk(self.n_active, dim=-1)
        kept = top.values / top.values.sum(-1, keepdim=True) if self.sums_to_one else top.values
        return torch.zeros_like(probabilities).scatter(-1, top.indices, kept)

    def _mixed(self, x: Tensor, weights: Tensor, probe: Probe) -> Tensor:
        """Return the sum of the experts' outputs by their weights; an expert computes its own tokens alone."""
        tokens, by_token = x.flatten(0, 1), weights.flatten(0, 1)  # (token, d_model), (token, expert)
        chosen = by_token != 0
        apart = x.new_zeros(len(self.experts), *tokens.shape) if probe.wants("expert_outputs") else None
        mixed = torch.zeros_like(tokens)
        for expert in chosen.any(0).nonzero().flatten().tolist():
            rows = chosen[:, expert].nonzero().flatten()
            output = self.experts[expert](tokens[rows])  # (row, d_model)
            if apart is None:
                mixed = mixed.index_add(0, rows, (by_token[rows, expert, None] * output).to(mixed.dtype))
            else:
                apart[expert, rows] = output.to(apart.dtype)
        if apart is None:
            return mixed.view_as(x)
        outputs = probe.tap("expert_outputs", apart.unflatten(1, x.shape[:2]).transpose(0, 1))
        return torch.einsum("bpe,bepd->bpd", weights, outputs)


def _layer_from(config: ModelConfig, d_ff: int) -> FeedForward:
    return FeedForward(
        config.d_model,
        d_ff,
        activation=config.activation,
        gated=config.gated,
        dropout=config.dropout_elsewhere,
        bias=config.bias,
    )


def feed_forward_from(config: ModelConfig) -> FeedForward | MixtureOfExperts:
    """Make the feed-forward layer that a config describes."""
    return MixtureOfExperts(config) if config.n_experts else _layer_from(config, config.d_ff)
