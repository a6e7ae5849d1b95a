"""The optimizer that a config names, and its learning rate step by step.

Optimizers: Adam, AdamW (Loshchilov and Hutter 2019, algorithm 2), SGD, or Muon for inner matrices with AdamW for the
rest (Jordan et al. 2024; its steps are scaled to the size of AdamW's, Liu et al. 2025, section 2.2). Learning rate: a
linear warm-up, then constant, cosine (Loshchilov and Hutter 2017, eq. 5) or noam (Vaswani et al. 2017, eq. 3).
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from transformer_core.layers.embeddings import Embedding
from transformer_core.models.output import WordScores
from transformer_core.packed_linear import Linear
from transformer_core.training.config import TrainConfig
from transformer_core.training.precision import has_bfloat16

MOMENTUM = 0.9
MUON_MOMENTUM = 0.95
NEWTON_SCHULZ, NEWTON_SCHULZ_STEPS = (3.4445, -4.7750, 2.0315), 5
SMALL = 1e-7
ADAM_BETAS = (0.9, 0.98)


def learning_rate_at(step: int, total_steps: int, config: TrainConfig) -> float:
    """Return the learning rate of one step.

    With w warm-up steps, t = step + 1 and T = total_steps: the highest rate times t / w while t <= w, and then times
    1 (constant), (1 + cos(pi (t - w) / (T - w))) / 2 (cosine), or sqrt(w / t) (noam). Departure: the paper's noam is
    scaled by d_model^-0.5; here config.learning_rate is the highest value itself.

    In a range test from a to b it is a (b / a)^(step / (T - 1)). Departure: Smith 2017, section 3.3, lets it rise
    linearly; equal ratios show several powers of ten in one run.

    Args:
        step: from 0 to total_steps - 1.
        total_steps: steps of the whole run.
        config: the run's.

    Raises:
        ValueError: the step is not one of the run's.
    """
    if not 0 <= step < total_steps:
        raise ValueError(f"step={step} must be at least 0 and less than total_steps={total_steps}")
    if config.range_test:
        return config.range_from * (config.range_to / config.range_from) ** (step / max(1, total_steps - 1))
    warm_up_steps = math.ceil(config.warm_up * total_steps)
    place = step + 1
    if place <= warm_up_steps:
        return config.learning_rate * place / warm_up_steps
    if config.schedule == "cosine":
        done = (place - warm_up_steps) / (total_steps - warm_up_steps)
        return config.learning_rate * (1 + math.cos(math.pi * done)) / 2
    if config.schedule == "noam":
        return config.learning_rate * math.sqrt(max(warm_up_steps, 1) / place)
    return config.learning_rate


def orthogonalized(matrix: Tensor) -> Tensor:
    """Return nearly the orthogonal matrix nearest to one (row, column), by five steps of Newton and Schulz.

    Jordan et al. 2024, with their coefficients: each step maps every singular value s, which the Frobenius norm has
    brought below 1, to a s + b s^3 + c s^5. In bfloat16 where the device multiplies in it, as theirs; else in float32.
    """
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    wide = wide.bfloat16() if has_bfloat16(matrix.device) else wide.float()
    wide = wide / wide.norm().clamp(min=SMALL)
    a, b, c = NEWTON_SCHULZ
    for _ in range(NEWTON_SCHULZ_STEPS):
        gram = wide @ wide.T  # (row, row)
        wide = torch.addmm(wide, torch.addmm(gram, gram, gram, beta=b, alpha=c), wide, beta=a)
    return wide if matrix.shape[0] <= matrix.shape[1] else wide.T


def muon_scale(matrix: Tensor) -> float:
    """Return what Muon multiplies an orthogonal matrix (row, column) by, so that its steps are as large as AdamW's."""
    return 0.2 * math.sqrt(max(matrix.shape))


class Muon(torch.optim.Optimizer):
    """Steps of orthogonal matrices along the mean gradient (Jordan et al. 2024), of the size of AdamW's.

    With B the mean of gradients G, W <- (1 - r d) W - 0.2 r sqrt(max(rows, columns)) orthogonalized(G + m (B - G)).
    torch.optim.Muon does the same, but always in bfloat16, which takes seventeen times as long where it is emulated.
    """

    def __init__(self, matrices: list[Tensor], *, learning_rate: float, weight_decay: float) -> None:
        super().__init__(matrices, {"lr": learning_rate, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Take a step with the current gradients."""
        for group in self.param_groups:
            rate = group["lr"]
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                mean = self.state[matrix].setdefault("momentum_buffer", torch.zeros_like(matrix))
                mean.lerp_(matrix.grad, 1 - MUON_MOMENTUM)
                update = orthogonalized(matrix.grad.lerp(mean, MUON_MOMENTUM))
                matrix.mul_(1 - rate * group["weight_decay"])
                matrix.add_(update, alpha=-rate * muon_scale(matrix))


class MuonAndAdamW(torch.optim.Optimizer):
    """Muon for some matrices and AdamW for all other parameters, as one optimizer.

    Both use the same groups and the same state, so that one state_dict holds the state of both.

    Args:
        matrices: parameters of two dimensions, whose step is the orthogonal matrix nearest to the mean gradient.
        others: groups of AdamW.
        learning_rate: of both.
        weight_decay: of the matrices.
    """

    def __init__(
        self, matrices: list[Tensor], others: list[dict[str, Any]], *, learning_rate: float, weight_decay: float
    ) -> None:
        self._muon = Muon(matrices, learning_rate=learning_rate, weight_decay=weight_decay)
        self._adamw = torch.optim.AdamW(others, lr=learning_rate, betas=ADAM_BETAS, fused=True)
        super().__init__([*self._muon.param_groups, *self._adamw.param_groups], {})
        self._share()

    def _share(self) -> None:
        self._muon.param_groups, self._adamw.param_groups = self.param_groups[:1], self.param_groups[1:]
        self._muon.state = self._adamw.state = self.state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state that state_dict returned."""
        super().load_state_dict(state_dict)
        self._share()

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Take a step with the current gradients."""
        self._muon.step()
        self._adamw.step()


def _inner_matrices(model: nn.Module) -> list[Tensor]:
    """Return the weights of all linear layers but the embeddings and the output layer, which often share one matrix."""
    outer = {id(p) for m in model.modules() if isinstance(m, Embedding | WordScores) for p in m.parameters()}
    weights = [m.weight for m in model.modules() if isinstance(m, Linear)]
    return [weight for weight in weights if weight.requires_grad and id(weight) not in outer]


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Return the optimizer that a config names; only matrices have weight decay."""
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
