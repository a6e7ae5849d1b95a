"""The verdict as a sum: the class map's dot product, coordinate by coordinate.

Devlin et al. 2019, section 4.1: logit = w . s + b.
"""

from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.encoder.layers import classifier_of, pooling_of, winner_and_rival
from transformer_core.analysis.outcome import read
from transformer_core.prompt import Prompt


@dataclass(frozen=True, eq=False)
class LogitSum:
    """A logit, or the margin between two, as a bias and one product a coordinate.

    Shapes:
        vector, weight, products: (d_model,), what the class map reads, the row of the class map, and their products
        order: (d_model,), the coordinates by the size of their product, the greatest first
        running: (d_model + 1,), the bias, and the sum after each product in that order

    Args:
        target: a class, or None for the margin: winner minus rival, whose row and bias are differences.
        winner, rival: the likeliest class, and the likeliest other one.
        bias: of the class map.
        total: bias plus all products, in 64 bits.
        logit: what the model computed; difference: total - logit.
        needed: how many products, the greatest first, until the running sum has the total's sign for good.
        above, below: sums of the products above 0, and of the others.
    """

    vector: np.ndarray
    weight: np.ndarray
    products: np.ndarray
    order: np.ndarray
    running: np.ndarray
    target: int | None
    winner: int
    rival: int
    bias: float
    total: float
    logit: float
    difference: float
    needed: int
    above: float
    below: float


def logit_sum(*, prompt: Prompt, target: int | None = None) -> LogitSum:
    """Decompose a class's logit, or the margin of the verdict.

    Args:
        prompt: to a classifier.
        target: a class, or None for the winner's logit minus the rival's.

    Raises:
        ValueError: there is no such class, or the bundle is not a classifier of at least two.
    """
    bundle = prompt.bundle
    class_map = classifier_of(bundle).class_proj
    n_classes = bundle.config.n_classes
    if target is not None and not 0 <= target < n_classes:
        raise ValueError(f"target={target} must be from 0 to {n_classes - 1}, or None")
    site = f"{pooling_of(bundle)}_embedding" if bundle.config.pooler == "none" else "pooled"
    encoding = prompt.encoding
    trace = read(bundle, encoding, sites=(site, "class_logits")).trace
    logits = trace["class_logits"][0]
    winner, rival = winner_and_rival(logits)
    rows = class_map.weight.detach().cpu().double().numpy()  # (class, d_model)
    biases = np.zeros(n_classes) if class_map.bias is None else class_map.bias.detach().cpu().double().numpy()
    vector, seen = trace[site][0].cpu().double().numpy(), logits.cpu().double().numpy()
    if target is None:
        weight, bias, logit = rows[winner] - rows[rival], biases[winner] - biases[rival], seen[winner] - seen[rival]
    else:
        weight, bias, logit = rows[target], biases[target], seen[target]
    products = weight * vector
    order = np.argsort(-np.abs(products), kind="stable")
    running = np.concatenate([[bias], bias + np.cumsum(products[order])])
    total = float(running[-1])
    differing = np.flatnonzero(np.sign(running) != np.sign(total))
    return LogitSum(
        vector,
        weight,
        products,
        order,
        running,
        target,
        winner,
        rival,
        float(bias),
        total,
        float(logit),
        total - float(logit),
        int(differing[-1]) + 1 if differing.size else 0,
        float(products[products > 0].sum()),
        float(products[products <= 0].sum()),
    )
