"""One edit of weights at ever greater strength: what the answers keep, and where they break; matrix by matrix, too."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from transformer_core.analysis.lab.cases import one_case
from transformer_core.analysis.lab.changes import changes_of
from transformer_core.analysis.lab.intervention import changed_answers
from transformer_core.analysis.lab.text_sets import Among, measured_cases
from transformer_core.analysis.lab.weights import (
    MATRIX_KINDS,
    Operation,
    WeightEdit,
    damaged,
    edits_of_matrices,
    matrices_of,
    matrix_kinds,
    require_parameter,
    size_of,
)
from transformer_core.bundle import Bundle
from transformer_core.progress import counted
from transformer_core.prompt import Prompt

STRENGTHS: dict[Operation, tuple[float, ...]] = {
    "round": (8, 7, 6, 5, 4, 3, 2, 1),
    "round_rows": (8, 7, 6, 5, 4, 3, 2, 1),
    "prune": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
    "noise": (0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0),
    "scale": (1.0, 0.9, 0.75, 0.5, 0.25, 0.1, 0.0, -0.5, -1.0),
    "rank": (1.0, 0.75, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02),  # shares of the full rank
}
TABLE_STRENGTHS = 7  # the last so many are what a table has; milder ones hardly change anything
KEPT = 0.9  # of the undamaged accuracy; below it the model has broken


@dataclass(frozen=True, eq=False)
class WeightCurve:
    """What answers keep as one edit grows stronger.

    Shapes:
        strengths: (point,), as the operation has them; ranks are whole numbers
        accuracy, mean: (point,), of a set of texts: share of answers that are the likeliest, mean ln p in nats
        text: (point,), ln p of the answer to the text
        random: (point,), the accuracy under noise of the same norm in the same matrices
        sizes: (point,), norm of the change over the norm of the weights

    Args:
        whole: accuracy of the model without the edit; text_whole: ln p of the answer to the text there.
        breaks: the first point whose accuracy is below KEPT of whole, -1 where none is.
    """

    strengths: np.ndarray
    accuracy: np.ndarray
    mean: np.ndarray
    text: np.ndarray
    random: np.ndarray
    sizes: np.ndarray
    whole: float
    text_whole: float
    breaks: int


def weight_curve(
    *,
    prompt: Prompt,
    parameter: str,
    operation: Operation,
    answer: int | str | None = None,
    among: Among = None,
    texts: int = 48,
    seed: int = 0,
) -> WeightCurve:
    """Make one edit at every strength of STRENGTHS.

    Args:
        parameter: the name of a matrix, or a kind of MATRIX_KINDS for all of these at once.
        operation: one that has strengths.
        answer: as of one_case.
        among: which texts, as of measured_cases.
        texts: how many.
        seed: of those, and of noise.

    Raises:
        ValueError: there is no such matrix, the operation has no strengths, or as one_case.
    """
    bundle = prompt.bundle
    names = matrices_of(bundle.model, parameter) if parameter in MATRIX_KINDS else (parameter,)
    weights = {name: require_parameter(bundle.model, name) for name in names}
    strengths = _strengths(operation, weights.values())
    cases = measured_cases(bundle, texts, seed, among)
    ours = one_case(prompt=prompt, answer=answer)
    whole, before = changed_answers(cases, ()), changed_answers(ours, ())
    norm = float(np.sqrt(sum(float(weight.cpu().double().square().sum()) for weight in weights.values())))
    rows = []
    for strength in counted(strengths.tolist()):
        model = damaged(bundle.model, edits_of_matrices(bundle.model, parameter, operation, strength, seed))
        sizes = size_of(bundle.model, model)
        drawn = tuple(WeightEdit(name, "random", size, seed) for name, size in sizes.items())
        found = changed_answers(cases, (), model=model)
        rows.append(
            (
                found.accuracy,
                found.mean,
                float(changed_answers(ours, (), model=model).log_prob[0]),
                changed_answers(cases, drawn).accuracy,
                float(np.sqrt(sum(size**2 for size in sizes.values()))) / norm,
            )
        )
    accuracy, mean, log_prob, random, sizes = np.array(rows).T
    broken = np.flatnonzero(accuracy < KEPT * whole.accuracy)
    return WeightCurve(
        strengths,
        accuracy,
        mean,
        log_prob,
        random,
        sizes,
        whole.accuracy,
        float(before.log_prob[0]),
        int(broken[0]) if broken.size else -1,
    )


def _strengths(operation: Operation, weights: Iterable[Tensor]) -> np.ndarray:
    """Return the strengths of an operation; shares of the full rank become numbers of singular values."""
    if operation not in STRENGTHS:
        raise ValueError(f"operation={operation!r} must be one of {', '.join(STRENGTHS)}")
    rank = max((min(weight.shape) for weight in weights if weight.dim() == 2), default=1)
    shares = STRENGTHS[operation]
    return np.array([max(1, round(share * rank)) for share in shares] if operation == "rank" else shares, np.float64)


@dataclass(frozen=True, eq=False)
class WeightTable:
    """What each matrix alone, and those of a kind together, can bear of one operation.

    Shapes:
        strengths: (strength,), as the operation has them
        probability: (row, strength), of the answer to the text; of a target, of all its words
        kept: (row, strength), whether that answer, or each word of it, is the likeliest where it was, and not where not
        accuracy: (row, strength), share of right answers to a set of texts

    Args:
        rows: kinds of MATRIX_KINDS and names of matrices.
        whole: accuracy of the model as it is; whole_probability: of the answer there.
        texts: how many the set has.
    """

    rows: tuple[str, ...]
    strengths: np.ndarray
    probability: np.ndarray
    kept: np.ndarray
    accuracy: np.ndarray
    whole: float
    whole_probability: float
    texts: int

    @property
    def held(self) -> np.ndarray:
        """How many strengths, from the first on, leave the answer as it is. # (row,)"""
        return np.cumprod(self.kept, axis=1).sum(1).astype(int)


def weight_table(
    *,
    prompt: Prompt,
    operation: Operation,
    answer: int | str | None = None,
    among: Among = None,
    texts: int = 48,
    seed: int = 0,
) -> WeightTable:
    """Make one edit at the last strengths of STRENGTHS in each matrix, and in those of each kind together.

    Args:
        operation: one that has strengths.
        answer, among, texts, seed: as of weight_curve.

    Raises:
        ValueError: the operation has no strengths, or as one_case.
    """
    bundle = prompt.bundle
    kinds, names = tuple(matrix_kinds(bundle.model)), matrices_of(bundle.model)
    weights = {name: require_parameter(bundle.model, name) for name in names}
    largest = max(min(weight.shape) for weight in weights.values())
    strengths = _strengths(operation, weights.values())[-TABLE_STRENGTHS:]
    cases, ours = measured_cases(bundle, texts, seed, among), one_case(prompt=prompt, answer=answer)
    rows, whole = (*kinds, *names), changed_answers(ours, ())
    found = []
    for row in counted(rows):
        for strength in strengths.tolist():
            model = damaged(bundle.model, edits_of_matrices(bundle.model, row, operation, strength, seed, largest))
            text = changed_answers(ours, (), model=model)
            found.append(
                (text.chance, bool(text.right == whole.right), changed_answers(cases, (), model=model).accuracy)
            )
    probability, kept, accuracy = np.array(found, np.float64).reshape(len(rows), len(strengths), 3).transpose(2, 0, 1)
    return WeightTable(
        rows,
        strengths,
        probability,
        kept.astype(bool),
        accuracy,
        changed_answers(cases, ()).accuracy,
        whole.chance,
        len(cases),
    )


@dataclass(frozen=True, eq=False)
class Matrix:
    """A matrix before and after edits.

    Shapes:
        before, after: (row, col); of a vector (1, col)

    Args:
        rank: how many singular values of the changed one are above 1e-6 of its greatest; of the smaller side at most.
        zeros: the share of its numbers that are 0.
        distinct: how many different numbers it has.
    """

    before: np.ndarray
    after: np.ndarray
    rank: int
    zeros: float
    distinct: int


def edited_matrix(*, bundle: Bundle, parameter: str, changes: tuple[tuple, ...] = ()) -> Matrix:
    """Return a matrix as it is and as edits leave it.

    Args:
        parameter: its name.
        changes: as changes.code_of writes them; those of other matrices do nothing here.

    Raises:
        ValueError: there is no such matrix, or an edit does not fit.
    """
    weight = require_parameter(bundle.model, parameter).detach()
    after = weight
    for change in changes_of(changes):
        if isinstance(change, WeightEdit) and change.parameter == parameter:
            after = change.applied(after)
    before, table = (one.reshape(-1, one.shape[-1]).float().cpu().numpy() for one in (weight, after))
    sizes = np.linalg.svd(table.astype(np.float64), compute_uv=False)
    return Matrix(
        before,
        table,
        int((sizes > 1e-6 * max(float(sizes[0]), 1e-30)).sum()),
        float((table == 0).mean()),
        int(np.unique(table).size),
    )
