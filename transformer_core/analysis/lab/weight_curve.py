"""One edit of weights at ever greater strength: what the answers keep, and where they break."""

from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.lab.cases import one_case
from transformer_core.analysis.lab.changes import changes_of
from transformer_core.analysis.lab.intervention import changed_answers
from transformer_core.analysis.lab.text_sets import Among, measured_cases
from transformer_core.analysis.lab.weights import (
    Operation,
    WeightEdit,
    damaged,
    matrices_of,
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
KEPT = 0.9  # of the undamaged accuracy; below it the model has broken
EVERY_MATRIX = "*"


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
        parameter: the name of a matrix; EVERY_MATRIX for all of the model.
        operation: one that has strengths.
        answer: as of one_case.
        among: which texts, as of measured_cases.
        texts: how many.
        seed: of those, and of noise.

    Raises:
        ValueError: there is no such matrix, the operation has no strengths, or as one_case.
    """
    bundle = prompt.bundle
    if operation not in STRENGTHS:
        raise ValueError(f"operation={operation!r} must be one of {', '.join(STRENGTHS)}")
    names = matrices_of(bundle.model) if parameter == EVERY_MATRIX else (parameter,)
    weights = {name: require_parameter(bundle.model, name) for name in names}
    rank = max((min(weight.shape) for weight in weights.values() if weight.dim() == 2), default=1)
    strengths = [max(1, round(share * rank)) for share in STRENGTHS["rank"]] if operation == "rank" else None
    strengths = np.array(strengths or STRENGTHS[operation], dtype=np.float64)
    cases = measured_cases(bundle, texts, seed, among)
    ours = one_case(prompt=prompt, answer=answer)
    whole, before = changed_answers(cases, ()), changed_answers(ours, ())
    norm = float(np.sqrt(sum(float(weight.cpu().double().square().sum()) for weight in weights.values())))
    rows = []
    for strength in counted(strengths.tolist()):
        edits = tuple(
            WeightEdit(name, operation, _of(operation, strength, weights[name], rank), seed) for name in names
        )
        model = damaged(bundle.model, edits)
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


def _of(operation: Operation, strength: float, weight: object, rank: int) -> float:
    """Return the strength for one matrix: of a smaller one, ranks shrink in proportion."""
    if operation != "rank":
        return strength
    own = min(weight.shape)  # type: ignore[attr-defined]
    return max(1.0, round(strength / rank * own))


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
