"""The gradient of every matrix of a model for one text, as pictures whose cells may stand for blocks of numbers."""

import math
from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.lab.cases import NONE
from transformer_core.analysis.lab.weights import require_parameter
from transformer_core.analysis.learning.rules import Rule
from transformer_core.analysis.learning.steps import Walk, walk
from transformer_core.prompt import Prompt

SMALL_ROWS = SMALL_COLS = 24  # cells of a matrix among others
ROWS, COLS = 64, 96  # of one alone


def pooled(matrix: np.ndarray, most_rows: int, most_cols: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix of at most so many cells, each the number of largest size among those it stands for.

    Shapes:
        matrix: (row, col); returns: the numbers, and their places in the flat matrix, both (fewer rows, fewer cols)
    """
    (rows, cols), most = matrix.shape, (most_rows, most_cols)
    down, across = (-(-side // fewer) for side, fewer in zip(matrix.shape, most, strict=True))
    high, wide = -(-rows // down), -(-cols // across)  # of the picture
    sizes = np.full((high * down, wide * across), -1.0, dtype=matrix.dtype)
    np.abs(matrix, out=sizes[:rows, :cols])
    blocks = sizes.reshape(high, down, wide, across).transpose(0, 2, 1, 3).reshape(high, wide, -1)
    inside_row, inside_col = np.divmod(blocks.argmax(-1), across)
    row, col = np.arange(high)[:, None] * down + inside_row, np.arange(wide) * across + inside_col
    return matrix[row, col], row * cols + col


def pooled_rows(matrix: np.ndarray, rows: np.ndarray, most_rows: int, most_cols: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the same of a matrix that is 0 but for some rows.

    Shapes:
        rows: (touched,), in order
    """
    cols, down = matrix.shape[1], -(-len(matrix) // most_rows)
    values, places = pooled(matrix[rows], len(rows), most_cols)  # (touched, fewer cols)
    across = np.arange(values.shape[1])
    first = np.arange(-(-len(matrix) // down))[:, None] * down
    found, where = np.zeros((len(first), len(across)), matrix.dtype), first * cols + places[0] % cols
    for block in np.unique(rows // down):
        mine = np.flatnonzero(rows // down == block)
        best = mine[np.abs(values[mine]).argmax(0)]
        found[block], where[block] = values[best, across], rows[best] * cols + places[best, across] % cols
    return found, where


@dataclass(frozen=True, eq=False)
class MatrixGradient:
    """The gradient of one matrix.

    Shapes:
        values, places: (fewer rows, fewer cols)

    Args:
        name: of the parameter; rows, cols: its size.
        values: of each block the number of largest size; places: where it is, counted row after row.
        norm: Euclidean, of all numbers.
    """

    name: str
    rows: int
    cols: int
    values: np.ndarray
    places: np.ndarray
    norm: float

    @property
    def largest(self) -> tuple[int, int]:
        """Row and column of the number of largest size."""
        row, col = divmod(int(self.places.flat[np.abs(self.values).argmax()]), self.cols)
        return row, col

    @property
    def block(self) -> tuple[int, int]:
        """How many rows and columns a cell stands for."""
        return -(-self.rows // self.values.shape[0]), -(-self.cols // self.values.shape[1])


@dataclass(frozen=True, eq=False)
class OneGradient(MatrixGradient):
    """The gradient of a matrix that is looked at alone.

    Args:
        zeros: the share of numbers that are exactly 0.
    """

    zeros: float


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
    names = [name for name, slope in found.gradients.items() if slope.dim() == 2]
    cases, reader = found.cases, prompt.bundle.reader
    wanted = cases.answers[0][cases.answers[0] != NONE].tolist()
    label = reader.label if reader.asks != "words" else prompt.bundle.of_target.label_of
    return LearningStep(
        wanted=tuple(label(one) for one in wanted),
        losses=np.array(found.losses),
        norm=math.hypot(*found.norms.values()),
        parameters=sum(weight.numel() for weight in found.before.values()),
        matrices=tuple(_picture(found, name, SMALL_ROWS, SMALL_COLS) for name in names),
    )


def _picture(found: Walk, name: str, rows: int, cols: int) -> MatrixGradient:
    slope, touched = found.gradients[name].float().cpu().numpy(), found.touched.get(name)
    if touched is None:
        values, places = pooled(slope, rows, cols)
    else:
        values, places = pooled_rows(slope, touched.cpu().numpy(), rows, cols)
    return MatrixGradient(name, slope.shape[0], slope.shape[1], values, places, found.norms[name])


def matrix_gradient(
    *, prompt: Prompt, answer: int | str | None, rule: Rule, taken: tuple[int, ...], parameter: str
) -> OneGradient:
    """Return the gradient of one matrix in more cells.

    Args:
        parameter: its name; others as of walk.

    Raises:
        ValueError: there is no such matrix, or as walk.
    """
    if require_parameter(prompt.bundle.model, parameter).dim() != 2:
        raise ValueError(f"parameter={parameter!r} must be a matrix")
    found = walk(prompt, answer, rule, taken)
    one, slope = _picture(found, parameter, ROWS, COLS), found.gradients[parameter]
    own = slope[found.touched.get(parameter, slice(None))]
    return OneGradient(**vars(one), zeros=1 - int(own.count_nonzero()) / slope.numel())
