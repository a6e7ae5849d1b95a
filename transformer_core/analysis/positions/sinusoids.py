"""The sinusoidal positions: waves, similarity by distance, shifting as a rotation, and the often misprinted exponent.

Vaswani et al. 2017, section 3.5.
"""

import math
from dataclasses import dataclass

import numpy as np

from transformer_core.config import require_index
from transformer_core.layers.positions import sinusoidal_table

BASE = 10_000.0


@dataclass(frozen=True, eq=False)
class PositionMatrix:
    """The matrix, and how alike its rows are.

    Shapes:
        table: (pos, d_model); wavelengths: (d_model,), in positions; dots, cosines: (distance,)
    """

    table: np.ndarray
    wavelengths: np.ndarray
    dots: np.ndarray
    cosines: np.ndarray
    deviation: float
    pairs: int


@dataclass(frozen=True, eq=False)
class ShiftRotation:
    """One pair of dimensions at a position, turned so that it is the pair some positions further on.

    Shapes:
        before, turned, after: (2,), sine and cosine; rotation: (2, 2)

    Args:
        frequency: radians per position.
        angle: shift times frequency, in radians.
        rotation: what turns any position's pair by the shift: it does not depend on the position.
        before, after: the table's own entries at pos and at pos + shift.
        turned: rotation times before.
        difference: greatest |turned - after| over all pairs of dimensions and all positions of the table.
    """

    frequency: float
    angle: float
    rotation: np.ndarray
    before: np.ndarray
    turned: np.ndarray
    after: np.ndarray
    difference: float


def wavelengths(d_model: int, *, doubled: bool = False) -> np.ndarray:
    """Return after how many positions each dimension repeats: 2 pi base^exponent, the exponents of sinusoidal_table.

    Shapes:
        returns: (d_model,)
    """
    even = 2 * (np.arange(d_model) // 2)
    exponent = 2 * (even + np.arange(d_model) % 2) if doubled else even
    return 2 * math.pi * BASE ** (exponent / d_model)


def similarities(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Compare row 0 with each row, and say how far other rows at the same distance are from that.

    Shapes:
        table: (pos, d_model)
        returns: dot products and cosines with row 0, (distance,), and the greatest difference over all pairs (i, j)
            between row i . row j and row 0 . row |i - j|
    """
    rows = table.astype(np.float64)
    products = rows @ rows.T  # (pos, pos)
    place = np.arange(len(rows))
    deviation = np.abs(products - products[0][np.abs(place[:, None] - place)]).max()
    lengths = np.sqrt(np.diagonal(products))
    return products[0], products[0] / (lengths * lengths[0]), float(deviation)


def position_matrix(*, length: int, d_model: int, doubled: bool = False) -> PositionMatrix:
    """Return the matrix of a length and width, its wavelengths and its similarity by distance.

    Args:
        length: positions, at least 1.
        d_model: even.
        doubled: the variant whose loop index is multiplied by two once more.

    Raises:
        ValueError: d_model is odd, or length less than 1.
    """
    if length < 1:
        raise ValueError(f"length={length} must be at least 1")
    table = sinusoidal_table(length, d_model, doubled=doubled).numpy()
    dots, cosines, deviation = similarities(table)
    return PositionMatrix(
        table, wavelengths(d_model, doubled=doubled), dots, cosines, deviation, length * (length + 1) // 2
    )


def step_as_rotation(*, length: int, d_model: int, pos: int, shift: int, pair: int) -> ShiftRotation:
    """Turn a pair (sin, cos) of dimensions 2 pair and 2 pair + 1 at pos to where it is at pos + shift.

    sin(a + b) = cos b sin a + sin b cos a and cos(a + b) = cos b cos a - sin b sin a, with b = shift * frequency.

    Args:
        length: positions of the table, over which the difference is taken.
        d_model: even.
        pos: in [0, length).
        shift: may be negative; places before 0 are not compared.
        pair: in [0, d_model / 2).

    Raises:
        ValueError: pos, pair or pos + shift lies outside.
    """
    require_index("pos", pos, length)
    require_index("pair", pair, d_model // 2)
    if pos + shift < 0:
        raise ValueError(f"pos={pos} and shift={shift} end before position 0")
    table = sinusoidal_table(length + max(shift, 0), d_model).numpy().astype(np.float64)
    pairs = table.reshape(len(table), -1, 2)  # (pos, pair, 2)
    angles = shift * BASE ** (-2 * np.arange(d_model // 2) / d_model)  # (pair,)
    rotations = np.array([[np.cos(angles), np.sin(angles)], [-np.sin(angles), np.cos(angles)]])  # (2, 2, pair)
    first, last = max(0, -shift), len(table) - max(shift, 0)
    turned = np.einsum("abp,npb->npa", rotations, pairs[first:last])
    rotation = rotations[:, :, pair]
    return ShiftRotation(
        frequency=float(BASE ** (-2 * pair / d_model)),
        angle=float(angles[pair]),
        rotation=rotation,
        before=pairs[pos, pair],
        turned=rotation @ pairs[pos, pair],
        after=pairs[pos + shift, pair],
        difference=float(np.abs(turned - pairs[first + shift : last + shift]).max()),
    )


VARIANTS = ("paper", "doubled")
STILL = 0.01


@dataclass(frozen=True, eq=False)
class Exponents:
    """Both variants, and the measures in which they differ; the first entry is the paper's, the second the doubled one.

    Shapes:
        tables: (variant, pos, d_model); wavelengths: (variant, d_model); cosines: (variant, distance);
        all others: (variant,)

    Args:
        wavelengths: in positions.
        cosines: between PE(0) and PE(k).
        longest: the longest wavelength, in positions.
        still: how many dimensions change by less than 0.01 over the whole sentence.
        fast: how many dimensions go through at least one whole wave within the sentence.
        farthest: cosine between the first and the last position.
        deviation: greatest difference between PE(i) . PE(j) and PE(0) . PE(|i - j|).
        ratio: wavelength of the cosine over that of the sine beside it, the greatest over pairs.
        rotation_error: what is left where each pair at pos + shift is to be a fixed 2x2 matrix times the pair at pos,
            the matrix the best there is for all positions: root mean square over the pair that fares worst.
    """

    tables: np.ndarray
    wavelengths: np.ndarray
    cosines: np.ndarray
    longest: np.ndarray
    still: np.ndarray
    fast: np.ndarray
    farthest: np.ndarray
    deviation: np.ndarray
    ratio: np.ndarray
    rotation_error: np.ndarray


def worst_fit(table: np.ndarray, shift: int) -> float:
    """Return how badly one fixed 2x2 matrix a pair carries every position to the one `shift` further on.

    Shapes:
        table: (pos, d_model)
        returns: the root mean square error of the least-squares matrix, of the pair where it is greatest
    """
    pairs = table.astype(np.float64).reshape(len(table), -1, 2).transpose(1, 0, 2)  # (pair, pos, 2)
    before, after = pairs[:, :-shift], pairs[:, shift:]
    matrix = np.linalg.pinv(before) @ after  # (pair, 2, 2)
    return float(np.sqrt(((before @ matrix - after) ** 2).mean((1, 2))).max())


def compare_exponents(*, length: int, d_model: int, shift: int = 1) -> Exponents:
    """Compare the paper's exponent 2i/d with the one whose index is doubled again, 4i/d and 2(2i+1)/d.

    Args:
        length: positions, at least shift + 2.
        d_model: even.
        shift: positions between the two places that a fixed matrix is to connect, at least 1.

    Raises:
        ValueError: a number outside these bounds.
    """
    if shift < 1 or length < shift + 2:
        raise ValueError(f"length={length} must be at least shift + 2, with shift={shift} at least 1")
    tables = [sinusoidal_table(length, d_model, doubled=doubled).numpy() for doubled in (False, True)]
    waves = np.stack([wavelengths(d_model, doubled=doubled) for doubled in (False, True)])
    alike = [similarities(table) for table in tables]
    cosines = np.stack([cosine for _, cosine, _ in alike])
    return Exponents(
        tables=np.stack(tables),
        wavelengths=waves,
        cosines=cosines,
        longest=waves.max(1),
        still=np.array([int((np.ptp(table, 0) < STILL).sum()) for table in tables]),
        fast=(waves <= length).sum(1),
        farthest=cosines[:, -1],
        deviation=np.array([deviation for *_, deviation in alike]),
        ratio=(waves[:, 1::2] / waves[:, 0::2]).max(1),
        rotation_error=np.array([worst_fit(table, shift) for table in tables]),
    )
