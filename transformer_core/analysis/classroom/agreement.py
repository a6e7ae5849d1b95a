"""Agreement of people who label the same things, beyond what chance would give: Cohen's and Fleiss' kappa.

Cohen 1960, eq. 1; Fleiss 1971, eqs. 1 to 8, with the pairs of each thing where not all were labelled by as many.
"""

from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.outcome import read
from transformer_core.bundle import Bundle


def cohen_kappa(one: np.ndarray, other: np.ndarray) -> float:
    """Return Cohen's kappa of two who labelled the same things; nan where both always said the same one label.

    Shapes:
        one, other: (thing,), labels from 0; -1 where somebody said none, and the thing is left out

    Raises:
        ValueError: the two differ in length.
    """
    if one.shape != other.shape:
        raise ValueError(f"one and other have {len(one)} and {len(other)} labels; both must have as many")
    both = (one >= 0) & (other >= 0)
    if not both.any():
        return float("nan")
    one, other = one[both], other[both]
    agreed = float((one == other).mean())
    labels = 1 + int(max(one.max(), other.max()))
    chance = float((np.bincount(one, minlength=labels) / len(one)) @ (np.bincount(other, minlength=labels) / len(one)))
    return (agreed - chance) / (1 - chance) if chance < 1 else float("nan")


def fleiss_kappa(counts: np.ndarray) -> float:
    """Return Fleiss' kappa; nan where nothing was labelled twice, or all said the same one label.

    Shapes:
        counts: (thing, label), how many people gave each label
    """
    counts = counts[counts.sum(1) >= 2].astype(np.float64)
    if not len(counts):
        return float("nan")
    n = counts.sum(1)
    agreed = float((((counts**2).sum(1) - n) / (n * (n - 1))).mean())
    chance = float(((counts.sum(0) / counts.sum()) ** 2).sum())
    return (agreed - chance) / (1 - chance) if chance < 1 else float("nan")


def ceiling(counts: np.ndarray) -> float:
    """Return the greatest share of all labels given that one label for each thing can agree with; nan where none is.

    Nobody, and no model, can be right more often when it is measured by what a person of this class says.

    Shapes:
        counts: (thing, label)
    """
    total = counts.sum()
    return float(counts.max(1).sum() / total) if total else float("nan")


@dataclass(frozen=True, eq=False)
class Judged:
    """What a classifier says of some texts.

    Shapes:
        probabilities: (text, label)

    Args:
        labels: names of the classes; texts: as they were given.
    """

    labels: tuple[str, ...]
    texts: tuple[str, ...]
    probabilities: np.ndarray


def judged(*, bundle: Bundle, texts: tuple[str, ...]) -> Judged:
    """Let a classifier label texts, one pass each.

    Raises:
        ValueError: the model is no classifier.
    """
    if bundle.reader.asks != "class":
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}; it must be a classifier")
    encodings = [bundle.tokenizer.encode(text, max_len=bundle.config.max_len) for text in texts]
    found = np.stack([read(bundle, encoding, sites=()).probabilities for encoding in encodings])
    labels = tuple(bundle.reader.label(place) for place in range(found.shape[1]))
    return Judged(labels, texts, found)


def mean_cohen(labels: np.ndarray) -> float:
    """Return the mean of Cohen's kappa over all pairs of people that have one; nan where none has.

    Shapes:
        labels: (person, thing), from 0; -1 where somebody said none
    """
    people = len(labels)
    pairs = np.array([cohen_kappa(labels[a], labels[b]) for a in range(people) for b in range(a)])
    known = pairs[~np.isnan(pairs)]
    return float(known.mean()) if len(known) else float("nan")
