"""A tuned lens: one affine map a layer, which brings the residual stream there to where the last layer leaves it.

Belrose et al. 2023, "Eliciting latent predictions from transformers with the tuned lens", section 3.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_core.config import ModelConfig


class TunedLens(nn.Module):
    """x + A x + b for each stage but the last, which the model's output reads as it is; A and b begin at 0.

    A stage is the embedding, then one layer after the other. Only what a map adds is stored, so that weight decay
    draws each map towards the logit lens, which changes nothing.

    Args:
        config: of the model; it has as many maps as that has layers.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        n_layers, d_model = config.n_layers, config.d_model
        self.maps = nn.Parameter(torch.zeros(n_layers, d_model, d_model))
        self.biases = nn.Parameter(torch.zeros(n_layers, d_model))

    def forward(self, x: Tensor, stage: int) -> Tensor:
        """Map the stream of a stage, of any shape that ends in d_model, to the same shape."""
        if stage == len(self.maps):
            return x
        return x + F.linear(x, self.maps[stage], self.biases[stage])
