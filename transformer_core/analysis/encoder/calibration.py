"""Calibration: when a model says 80 %, is it right in 80 of 100 cases?

Expected calibration error and temperature scaling: Guo et al. 2017, eqs. 3 and 9; intervals: Wilson 1927.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_core.analysis.encoder.layers import ReadReviews, read_reviews, require_reviews
from transformer_core.analysis.outcome import one_text
from transformer_core.config import require_range
from transformer_core.prompt import Prompt
from transformer_core.shares import wilson

MOST_BINS = 20
TEMPERATURES = np.geomspace(0.25, 8.0, 141)


@dataclass(frozen=True, eq=False)
class Calibration:
    """How sure a model is of its verdicts on held-out built-in reviews, and how often it is right.

    Shapes:
        edges: (bin + 1,), of confidence, the likeliest class's probability; a bin holds its upper edge
        counts: (bin,); confidence, accuracy: (bin,), means, not a number where a bin is empty
        low, high: (bin,), the ends of Wilson's 95 % interval of the accuracy

    Args:
        language: of the reviews; reviews: how many.
        temperature: what all logits were divided by.
        error: expected calibration error, the mean of |accuracy - confidence| over bins, weighted by their counts.
        overall: accuracy over all; mean_confidence: over all; loss: cross entropy, in nats.
        best: the temperature with the least loss on every second review, the first among them.
        error_before, error_after: calibration error on the other half, as it is and at the best temperature.
        here: the confidence on the text, after the temperature; place: its bin.
    """

    edges: np.ndarray
    counts: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray
    low: np.ndarray
    high: np.ndarray
    language: str
    reviews: int
    temperature: float
    error: float
    overall: float
    mean_confidence: float
    loss: float
    best: float
    error_before: float
    error_after: float
    here: float
    place: int


def bins_of(confidence: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the bin of each confidence; what equals the lowest edge belongs to the first."""
    return np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, len(edges) - 2)


def calibration_error(confidence: np.ndarray, right: np.ndarray, edges: np.ndarray) -> float:
    """Return the expected calibration error, Guo et al. 2017, eq. 3; confidence, right: (review,)."""
    places = bins_of(confidence, edges)
    parts = [(confidence[places == place].sum(), right[places == place].sum()) for place in range(len(edges) - 1)]
    return float(sum(abs(sure - hits) for sure, hits in parts) / len(confidence))


def best_temperature(logits: Tensor, labels: Tensor) -> float:
    """Return the temperature, out of 141 from 0.25 to 8, at which the cross entropy is least.

    Shapes:
        logits: (review, class); labels: (review,)
    """
    losses = [float(F.cross_entropy(logits / temperature, labels)) for temperature in TEMPERATURES]
    return float(TEMPERATURES[int(np.argmin(losses))])


def _sure(logits: Tensor, labels: Tensor) -> tuple[np.ndarray, np.ndarray]:
    confidence, classes = logits.double().softmax(-1).max(-1)
    return confidence.numpy(), (classes == labels).double().numpy()


def calibration(
    *, prompt: Prompt, reviews: int, bins: int = 10, temperature: float = 1.0, read: ReadReviews | None = None
) -> Calibration:
    """Compare a model's confidence on held-out built-in reviews with how often it is right.

    The reviews are read once; another temperature costs no forward pass.

    Args:
        prompt: to a classifier of negative and positive, whose confidence on it is placed among the bins.
        reviews: how many.
        bins: from 2 to 20, between one half and 1.
        temperature: above 0; 1 leaves the probabilities as they are.
        read: what read_reviews returns for these reviews, where somebody has it.

    Raises:
        ValueError: the bundle has other classes, or a number is outside its range.
    """
    bundle = prompt.bundle
    require_reviews(bundle, "reviews", reviews)
    require_range("bins", bins, 2, MOST_BINS)
    if not (temperature > 0 and math.isfinite(temperature)):
        raise ValueError(f"temperature={temperature} must be above 0 and finite")
    if read is None:
        read = read_reviews(bundle, train=0, held_out=reviews)
    logits, labels = read.logits.double(), read.labels
    edges = np.linspace(1 / bundle.config.n_classes, 1.0, bins + 1)
    confidence, right = _sure(logits / temperature, labels)
    places = bins_of(confidence, edges)
    counts = np.bincount(places, minlength=bins)
    hits = np.bincount(places, weights=right, minlength=bins)
    n = np.where(counts > 0, counts, np.nan)
    low, high = wilson(hits, counts)
    best = best_temperature(logits[::2], labels[::2])
    with torch.no_grad():
        own = bundle.model(one_text(bundle, prompt.encoding))[0].cpu().double() / temperature
    here = float(own.softmax(-1).max())
    return Calibration(
        edges,
        counts,
        np.bincount(places, weights=confidence, minlength=bins) / n,
        hits / n,
        low,
        high,
        read.language,
        reviews,
        temperature,
        calibration_error(confidence, right, edges),
        float(right.mean()),
        float(confidence.mean()),
        float(F.cross_entropy(logits / temperature, labels)),
        best,
        calibration_error(*_sure(logits[1::2], labels[1::2]), edges),
        calibration_error(*_sure(logits[1::2] / best, labels[1::2]), edges),
        here,
        int(bins_of(np.array([here]), edges)[0]),
    )
