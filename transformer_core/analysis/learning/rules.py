"""The rules of the optimizers of training as functions: what a step at the rate 1 adds to a weight, beside the weight.

AdamW: Kingma and Ba 2015, algorithm 1, with the decay of Loshchilov and Hutter 2019, algorithm 2; SGD with momentum:
Sutskever et al. 2013, eq. 1; Muon: Jordan et al. 2024. The optimizers themselves change weights in place, with copies
of everything.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from transformer_core.training.config import Optimizer, TrainConfig
from transformer_core.training.optimizers import MUON_MOMENTUM, make_optimizer, muon_scale, orthogonalized

Rule = Literal["adamw", "sgd", "momentum", "muon"]
RULES: tuple[Rule, ...] = get_args(Rule)
State = Mapping[str, Tensor]
AS_TRAINED: dict[Rule, Optimizer] = {"adamw": "adamw", "sgd": "sgd", "momentum": "sgd", "muon": "muon"}
WEIGHT_DECAY = TrainConfig().weight_decay


def state_then(weight: Tensor, slope: Tensor, state: State, group: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return an optimizer's state of a weight after a step; arguments as of move_at_one."""
    if "betas" in group:  # AdamW
        first, second = group["betas"]
        mean, square = slope * (1 - first), slope.square() * (1 - second)
        if "exp_avg" in state:
            mean.add_(state["exp_avg"], alpha=first)
            square.add_(state["exp_avg_sq"], alpha=second)
        return {"step": state.get("step", torch.zeros(())) + 1, "exp_avg": mean, "exp_avg_sq": square}
    if "momentum" in group:  # SGD
        mean, kept = slope.add(weight, alpha=group["weight_decay"]), group["momentum"]
        if not kept:
            return {}
    else:
        mean, kept = slope * (1 - MUON_MOMENTUM), MUON_MOMENTUM
    return {"momentum_buffer": mean.add_(state["momentum_buffer"], alpha=kept) if state else mean}


def move_at_one(weight: Tensor, slope: Tensor, state: State, group: Mapping[str, Any]) -> Tensor:
    """Return what an optimizer of training adds to a weight at the rate 1.

    Shapes:
        weight, slope, returns: the same

    Args:
        slope: the loss's gradient.
        state: before the step; empty before the first.
        group: the optimizer's settings of the weight.
    """
    decay = group["weight_decay"]
    if "betas" in group and not state:  # both moments without their bias are those of this gradient alone
        return (weight * -decay).addcdiv_(slope, slope.abs().add_(group["eps"]), value=-1)
    then = state_then(weight, slope, state, group)
    if "betas" in group:
        first, second = (1 - beta ** float(then["step"]) for beta in group["betas"])
        root = (then["exp_avg_sq"] / second).sqrt_().add_(group["eps"])
        return (weight * -decay).addcdiv_(then["exp_avg"], root, value=-1 / first)
    if "momentum" in group:
        return -then.get("momentum_buffer", slope.add(weight, alpha=decay))
    update = orthogonalized(slope.lerp(then["momentum_buffer"], MUON_MOMENTUM)).to(weight.dtype)
    return (weight * -decay).add_(update, alpha=-muon_scale(weight))


def optimizer_of(model: nn.Module, rule: Rule) -> torch.optim.Optimizer:
    """Return training's own optimizer at the rate 1; plain SGD is its SGD without momentum."""
    config = TrainConfig(optimizer=AS_TRAINED[rule], learning_rate=1.0, weight_decay=WEIGHT_DECAY)
    optimizer = make_optimizer(model, config)
    if rule == "sgd":
        for group in optimizer.param_groups:
            group["momentum"] = 0.0
    return optimizer
