"""The optimiser that a config names: Adam, AdamW, SGD, or Muon for inner matrices with AdamW for the rest.

AdamW: Loshchilov and Hutter 2019, algorithm 2; Muon: Jordan et al. 2024, whose steps are as large as AdamW's here
(Liu et al. 2025, section 2.2). Read next: loop.py.
"""

from typing import Any

import torch
from torch import Tensor, nn

from transformer_core.layers.embeddings import Embedding
from transformer_core.models.output import WordScores
from transformer_core.packed_linear import Linear
from transformer_core.training.config import TrainConfig

MOMENTUM = 0.9
ADAM_BETAS = (0.9, 0.98)


class MuonAndAdamW(torch.optim.Optimizer):
    """Muon for some matrices and AdamW for all other parameters, as one optimiser.

    Both see the same groups and the same state, so that what is saved of one is what the two need.

    Args:
        matrices: parameters of two dimensions, whose step is the orthogonal matrix nearest to the mean gradient.
        others: groups of AdamW.
        learning_rate: of both.
        weight_decay: of the matrices.
    """

    def __init__(
        self, matrices: list[Tensor], others: list[dict[str, Any]], *, learning_rate: float, weight_decay: float
    ) -> None:
        self._muon = torch.optim.Muon(
            matrices, lr=learning_rate, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw"
        )
        self._adamw = torch.optim.AdamW(others, lr=learning_rate, betas=ADAM_BETAS, fused=True)
        super().__init__([*self._muon.param_groups, *self._adamw.param_groups], {})
        self._share()

    def _share(self) -> None:
        self._muon.param_groups, self._adamw.param_groups = self.param_groups[:1], self.param_groups[1:]
        self._muon.state = self._adamw.state = self.state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up a state that state_dict gave."""
        super().load_state_dict(state_dict)
        self._share()

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Take a step with the gradients that are there."""
        self._muon.step()
        self._adamw.step()


def _inner_matrices(model: nn.Module) -> list[Tensor]:
    """Return the weights of linear layers between the embeddings and the words' scores, which are often one matrix."""
    outer = {id(p) for m in model.modules() if isinstance(m, Embedding | WordScores) for p in m.parameters()}
    weights = [m.weight for m in model.modules() if isinstance(m, Linear)]
    return [weight for weight in weights if weight.requires_grad and id(weight) not in outer]


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Return the optimiser that a config names; only matrices decay."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    matrices = _inner_matrices(model) if config.optimizer == "muon" else []
    own = set(map(id, matrices))
    groups = [
        {"params": [p for p in parameters if p.dim() > 1 and id(p) not in own], "weight_decay": config.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    if matrices:
        return MuonAndAdamW(matrices, groups, learning_rate=config.learning_rate, weight_decay=config.weight_decay)
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=config.learning_rate, momentum=MOMENTUM, fused=True)
    kind = torch.optim.Adam if config.optimizer == "adam" else torch.optim.AdamW
    return kind(groups, lr=config.learning_rate, betas=ADAM_BETAS, fused=True)
