"""One weight on its way through the optimizer: each number of the equation, and every rule beside the others.

AdamW: Kingma and Ba 2015, algorithm 1, with the decay of Loshchilov and Hutter 2019, algorithm 2. Momentum: Sutskever
et al. 2013, eq. 1. Muon: Jordan et al. 2024, with the scale of Liu et al. 2025, section 2.2.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from transformer_core.analysis.lab.weights import require_parameter
from transformer_core.analysis.learning.rules import RULES, Rule
from transformer_core.analysis.learning.steps import after_step, rate_of, walk
from transformer_core.config import require_index
from transformer_core.progress import counted
from transformer_core.prompt import Prompt
from transformer_core.training.optimizers import MUON_MOMENTUM, muon_scale, orthogonalized


def require_weight(prompt: Prompt, parameter: str, row: int, col: int) -> None:
    """Raise ValueError unless a matrix of the model has this row and column."""
    weight = require_parameter(prompt.bundle.model, parameter)
    if weight.dim() != 2:
        raise ValueError(f"parameter={parameter!r} must be a matrix")
    require_index("row", row, weight.shape[0])
    require_index("col", col, weight.shape[1])


@dataclass(frozen=True, kw_only=True)
class Followed:
    """One weight before and after a step, with every number that the step was computed from.

    Args:
        rule: that moved it: under Muon, AdamW moves embeddings and the output matrix.
        step: the number of this step, from 1; rate: learning rate; decay: of weights.
        weight, gradient: before the step.
        after: of the whole step; computed: by the equation, in float64, from the numbers below.
        mean_before, mean: of gradients: AdamW's first moment, SGD's momentum, Muon's mean; None without any.
        square_before, square: AdamW's second moment.
        mean_decay, square_decay: AdamW's betas, or the momentum.
        small: AdamW's epsilon.
        mixed, orthogonal, scale: of Muon: the gradient's mixture with the mean, the nearly orthogonal matrix's entry at
            this place, and 0.2 times the root of the matrix's longer side.
    """

    rule: Rule
    step: int
    rate: float
    decay: float
    weight: float
    gradient: float
    after: float
    computed: float
    mean_before: float | None = None
    mean: float | None = None
    square_before: float | None = None
    square: float | None = None
    mean_decay: float = 0.0
    square_decay: float = 0.0
    small: float = 0.0
    mixed: float | None = None
    orthogonal: float | None = None
    scale: float | None = None

    @property
    def unbiased_mean(self) -> float:
        """AdamW's first moment, divided by 1 - beta^t."""
        return (self.mean or 0.0) / (1 - self.mean_decay**self.step)

    @property
    def unbiased_square(self) -> float:
        """AdamW's second moment, divided by 1 - beta^t."""
        return (self.square or 0.0) / (1 - self.square_decay**self.step)


def followed_weight(
    *,
    prompt: Prompt,
    answer: int | str | None,
    rule: Rule,
    taken: tuple[int, ...],
    exponent: int,
    parameter: str,
    row: int,
    col: int,
) -> Followed:
    """Return one weight on its way through the next step.

    Args:
        parameter: name of a matrix; row, col: of its weight; others as of after_step.

    Raises:
        ValueError: there is no such weight, or as after_step.
    """
    require_weight(prompt, parameter, row, col)
    found, rate = walk(prompt, answer, rule, taken), rate_of(exponent)
    settings, slope = found.settings[parameter], found.gradients[parameter]
    earlier = found.moments.get(parameter, {})
    move, later = found.step_of(parameter, slice(row, row + 1))

    def at(tensor: Tensor | None, row: int = row) -> float:
        return 0.0 if tensor is None else float(tensor[row, col])

    weight, gradient, decay = at(found.before[parameter]), at(slope), settings["weight_decay"]
    kept = weight - rate * decay * weight
    numbers: dict[str, Any] = {}
    if "exp_avg" in later:
        numbers = {"mean_before": at(earlier.get("exp_avg")), "mean": at(later["exp_avg"], 0), "small": settings["eps"]}
        numbers |= {"square_before": at(earlier.get("exp_avg_sq")), "square": at(later["exp_avg_sq"], 0)}
        numbers |= dict(zip(("mean_decay", "square_decay"), settings["betas"], strict=True))
        unbiased = [numbers[part] / (1 - numbers[f"{part}_decay"] ** (len(taken) + 1)) for part in ("mean", "square")]
        computed = kept - rate * unbiased[0] / (math.sqrt(unbiased[1]) + numbers["small"])
        rule = "adamw"
    elif rule == "muon":
        mean = found.step_of(parameter)[1]["momentum_buffer"]
        mixed, scale = slope.lerp(mean, MUON_MOMENTUM), muon_scale(mean)
        numbers = {"mean_before": at(earlier.get("momentum_buffer")), "mean": at(mean), "mean_decay": MUON_MOMENTUM}
        numbers |= {"mixed": at(mixed), "orthogonal": at(orthogonalized(mixed)), "scale": scale}
        computed = kept - rate * scale * numbers["orthogonal"]
    else:
        moved, momentum = gradient + decay * weight, settings["momentum"]
        if momentum:
            before = at(earlier.get("momentum_buffer"))
            moved += momentum * before
            numbers = {"mean_before": before, "mean": at(later["momentum_buffer"], 0), "mean_decay": momentum}
        computed = weight - rate * moved
    after = weight + rate * at(move, 0)
    about = dict[str, Any](step=len(taken) + 1, rate=rate, decay=decay, weight=weight, gradient=gradient)
    return Followed(rule=rule, after=after, computed=computed, **about, **numbers)


@dataclass(frozen=True, eq=False)
class RulesCompared:
    """One step by each rule with the same gradient: the step of one weight, of all together, and the loss afterwards.

    Shapes:
        steps, norms, losses: (rule)
    """

    rules: tuple[str, ...]
    steps: np.ndarray
    norms: np.ndarray
    losses: np.ndarray


def compared_rules(
    *, prompt: Prompt, answer: int | str | None, exponent: int, parameter: str, row: int, col: int
) -> RulesCompared:
    """Take the first step by every rule at one rate, each from the model's own weights.

    Args:
        parameter: name of a matrix; row, col: of its weight.
    """
    require_weight(prompt, parameter, row, col)
    steps, norms, losses = [], [], []
    for rule in counted(RULES):
        found = walk(prompt, answer, rule, ())
        done = after_step(prompt=prompt, answer=answer, rule=rule, taken=(), exponent=exponent)
        steps.append(done.rate * float(found.step_of(parameter, slice(row, row + 1))[0][0, col]))
        norms.append(done.norm)
        losses.append(done.after)
    return RulesCompared(RULES, np.array(steps), np.array(norms), np.array(losses))
