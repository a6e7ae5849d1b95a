"""Why residual connections? How much of a gradient is left at the first layer as a stack grows deeper.

He et al. 2016, section 3.1; Xiong et al. 2020, section 3. Read next: gates.py.
"""

from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.stream.depth import NORMS, gradients_by_depth

DEPTHS = (2, 4, 8, 12, 16, 24, 32)
WIDTH = 16


@dataclass(frozen=True, eq=False)
class Reach:
    """The gradient at the first layer's input over that at the last layer's, for untrained stacks.

    Shapes:
        depths: (depth,); with_residuals, without_residuals: (norm, depth)

    Args:
        norms: "pre", "post", "none" (every normalisation left out).
    """

    norms: tuple[str, ...]
    depths: np.ndarray
    with_residuals: np.ndarray
    without_residuals: np.ndarray


def reach_by_depth(*, seed: int) -> Reach:
    """Send a gradient down stacks of 2 to 32 layers of width 16, with residual connections and without.

    Args:
        seed: of weights, input and classes; nothing is trained.
    """
    reached = [
        {(p.norm, p.residual): p.first_over_last for p in found.profiles}
        for found in (gradients_by_depth(n_layers=depth, d_model=WIDTH, seed=seed) for depth in DEPTHS)
    ]
    ratios = [np.array([[one[norm, residual] for one in reached] for norm in NORMS]) for residual in (True, False)]
    return Reach(NORMS, np.array(DEPTHS), *ratios)
