"""The gradient of every matrix of a model for one text, as pictures whose cells may stand for blocks of numbers."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_core.analysis.lab.cases import NONE
from transformer_core.analysis.lab.weights import matrices_of, require_parameter
from transformer_core.analysis.learning.steps import Rule, Walk, walk
from transformer_core.prompt import Prompt

SMALL_ROWS = SMALL_COLS = 24  # cells of a matrix among others
ROWS, COLS = 64, 96  # of one alone


def pooled(matrix: Tensor, most_rows: int, most_cols: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix of at most so many cells, each the number of largest size among those it stands for.

    Shapes:
        matrix: (row, col); returns: the numbers, and their places in the flat matrix, both (fewer rows, fewer cols)
    """
    block = [-(-side // most) for side, most in zip(matrix.shape, (most_rows, most_cols), strict=True)]
    sizes = matrix.detach().abs().float()[None, None]
    _, places = F.max_pool2d(sizes, block, ceil_mode=True, return_indices=True)  # type: ignore[misc]
    return matrix.detach().flatten()[places[0, 0]].float().cpu().numpy(), places[0, 0].cpu().numpy()


@dataclass(frozen=True, eq=False)
class MatrixGradient:
    """The gradient of one matrix.

    Shapes:
        values, places: (fewer rows, fewer cols)

    Args:
        name: of the parameter; rows, cols: its size.
        values: of each block the number of largest size; places: where it is, counted row after row.
        norm: Euclidean, of all numbers.
        largest: row and column of the number of largest size.
        zeros: the share of numbers that are exactly 0.
    """

    name: str
    rows: int
    cols: int
    values: np.ndarray
    places: np.ndarray
    norm: float
    largest: tuple[int, int]
    zeros: float

    @property
    def block(self) -> tuple[int, int]:
        """How many rows and columns a cell stands for."""
        return -(-self.rows // self.values.shape[0]), -(-self.cols // self.values.shape[1])


@dataclass(frozen=True, eq=False)
class LearningStep:
    """The loss of a text at the start and after each step taken, and the gradient of every matrix now.

    Shapes:
        losses: (step + 1)

    Args:
        wanted: the classes or tokens that the model should have said.
        losses: mean -ln p of these, in nats.
        norm: of the gradient of all weights, vectors too.
        parameters: how many weights there are.
    """

    wanted: tuple[str, ...]
    losses: np.ndarray
    norm: float
    parameters: int
    matrices: tuple[MatrixGradient, ...]


def learning_step(*, prompt: Prompt, answer: int | str | None, rule: Rule, taken: tuple[int, ...]) -> LearningStep:
    """Backpropagate the loss of a text and return the gradient of every matrix; arguments as of walk."""
    found = walk(prompt, answer, rule, taken)
    cases, reader = found.cases, prompt.bundle.reader
    wanted = cases.answers[0][cases.answers[0] != NONE].tolist()
    label = reader.label if reader.asks != "words" else prompt.bundle.of_target.label_of
    return LearningStep(
        wanted=tuple(label(one) for one in wanted),
        losses=np.array(found.losses),
        norm=float(torch.stack([slope.norm() for slope in found.gradients.values()]).norm()),
        parameters=sum(weight.numel() for weight in found.before.values()),
        matrices=tuple(_picture(found, name, SMALL_ROWS, SMALL_COLS) for name in matrices_of(prompt.bundle.model)),
    )


def _picture(found: Walk, name: str, rows: int, cols: int) -> MatrixGradient:
    slope = found.gradients[name]
    values, places = pooled(slope, rows, cols)
    largest = divmod(int(places.flat[np.abs(values).argmax()]), slope.shape[1])
    zeros = 1 - int(slope.count_nonzero()) / slope.numel()
    return MatrixGradient(name, slope.shape[0], slope.shape[1], values, places, float(slope.norm()), largest, zeros)


def matrix_gradient(
    *, prompt: Prompt, answer: int | str | None, rule: Rule, taken: tuple[int, ...], parameter: str
) -> MatrixGradient:
    """Return the gradient of one matrix in more cells.

    Args:
        parameter: its name; others as of walk.

    Raises:
        ValueError: there is no such matrix, or as walk.
    """
    if require_parameter(prompt.bundle.model, parameter).dim() != 2:
        raise ValueError(f"parameter={parameter!r} must be a matrix")
    return _picture(walk(prompt, answer, rule, taken), parameter, ROWS, COLS)
