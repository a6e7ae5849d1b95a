"""Linear probes: what a linear map of its own could read from each layer's sentence vector, [CLS] or mean.

Alain and Bengio 2017; that a probe may learn the task itself: Hewitt and Liang 2019.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_core.analysis.encoder.layers import class_logits, pooling_of, read_reviews
from transformer_core.bundle import Bundle

PENALTY = 1.0
MOST_STEPS = 60


@dataclass(frozen=True, eq=False)
class LinearProbes:
    """Accuracies on held-out reviews of the built-in corpus, by depth.

    Depth 0 is the embedding, depth l what layer l - 1 passes on.

    Shapes:
        probes: (pooling, depth), of logistic regressions trained at that depth; trained: the same on what they saw
        own_map: (pooling, depth), of the model's class map, which was trained on the last depth of its own pooling

    Args:
        pooling: the model's own.
        language: of the reviews.
        train, held_out: how many reviews.
        error: the standard error of an accuracy of one half on so many held-out reviews.
    """

    probes: np.ndarray
    trained: np.ndarray
    own_map: np.ndarray
    pooling: str
    language: str
    train: int
    held_out: int
    error: float


def fit_logistic(x: Tensor, labels: Tensor, *, penalty: float = PENALTY) -> Tensor:
    """Return the weights and the bias of a logistic regression, by L-BFGS from 0; always the same.

    Least is sum of -log p(label) + penalty / 2 * |weights|^2, with the bias free.

    Shapes:
        x: (example, d), labels: (example,), 0 or 1; returns: (d + 1,), the bias last
    """
    design = torch.cat([x.double(), torch.ones(len(x), 1, dtype=torch.float64)], dim=1)  # (example, d + 1)
    target = labels.double()
    with torch.inference_mode(False), torch.enable_grad():
        design, target = design.clone(), target.clone()
        fitted = torch.zeros(design.shape[1], dtype=torch.float64, requires_grad=True)
        search = torch.optim.LBFGS([fitted], max_iter=MOST_STEPS, line_search_fn="strong_wolfe")

        def loss() -> Tensor:
            search.zero_grad()
            value = F.binary_cross_entropy_with_logits(design @ fitted, target, reduction="sum")
            value = value + penalty / 2 * fitted[:-1].square().sum()
            value.backward()
            return value

        search.step(loss)  # pyright: ignore[reportArgumentType]
    return fitted.detach()


def _probe(train: Tensor, train_labels: Tensor, test: Tensor, test_labels: Tensor) -> tuple[float, float]:
    mean, deviation = train.mean(0), train.std(0).clamp(min=1e-6)
    scaled, scaled_test = (train - mean) / deviation, (test - mean) / deviation
    fitted = fit_logistic(scaled, train_labels)

    def accuracy(x: Tensor, labels: Tensor) -> float:
        return float(((x.double() @ fitted[:-1] + fitted[-1] > 0) == (labels > 0)).double().mean())

    return accuracy(scaled, train_labels), accuracy(scaled_test, test_labels)


def linear_probes(*, bundle: Bundle, train: int, held_out: int) -> LinearProbes:
    """Train a linear map at every depth for both poolings on built-in reviews, and judge held-out ones by each.

    Args:
        bundle: a classifier of negative and positive.
        train, held_out: how many reviews.

    Raises:
        ValueError: the bundle has other classes, or a number is outside its range.
    """
    seen, new = read_reviews(bundle, train=train, held_out=0), read_reviews(bundle, train=0, held_out=held_out)
    n_poolings, n_depths = seen.vectors.shape[:2]
    found = [
        _probe(seen.vectors[place][depth], seen.labels, new.vectors[place][depth], new.labels)
        for place in range(n_poolings)
        for depth in range(n_depths)
    ]
    accuracies = np.array(found).reshape(n_poolings, n_depths, 2)
    device = bundle.device
    verdicts = class_logits(bundle, new.vectors.to(device)).argmax(-1).cpu()  # (pooling, depth, review)
    return LinearProbes(
        accuracies[..., 1],
        accuracies[..., 0],
        (verdicts == new.labels).double().mean(-1).numpy(),
        pooling_of(bundle),
        new.language,
        train,
        held_out,
        0.5 / held_out**0.5,
    )
