"""The exponent of the sinusoidal positions: the paper's beside the often printed one, and what the slip changes.

Vaswani et al. 2017, section 3.5. Read next: schemes.py.
"""

from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.positions.sinusoids import similarities, wavelengths
from transformer_core.layers.positions import sinusoidal_table

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
        shift: positions between the two places that a fixed matrix shall connect, at least 1.

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
