"""Two simpler ways to number places, 1 ... n and pos / length, beside the sinusoids: what each leaves of a token.

Both add one number to every coordinate. Vaswani et al. 2017, section 3.5, has the sinusoids.
"""

from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.analysis.parts import input_embedding
from transformer_core.config import require_range
from transformer_core.layers.positions import sinusoidal_table
from transformer_core.prompt import Prompt

SCHEMES = ("counted", "share", "sinusoidal")
LENGTHS = (8, 16, 32, 64, 128, 256, 512)
LONGEST = LENGTHS[-1]


@dataclass(frozen=True, eq=False)
class CountedPositions:
    """What three schemes add to a text of some length, and what is left of the token in the sum.

    Shapes:
        lengths: (scheme, pos), of the vector that is added, over the mean length of a token's
        cosines: (scheme, pos), of the sum with the token, in the mean over the text's tokens
        sizes: (size,), lengths of texts
        steps: (scheme, size), how far apart the vectors of two neighbours are in such a text, over a token's length

    Args:
        schemes: SCHEMES, in their order.
    """

    schemes: tuple[str, ...]
    lengths: np.ndarray
    cosines: np.ndarray
    sizes: np.ndarray
    steps: np.ndarray


def positions_by(scheme: str, length: int, d_model: int) -> torch.Tensor:
    """Return a scheme's vectors for a text of this length.

    Shapes:
        returns: (pos, d_model), float64

    Raises:
        ValueError: the scheme is unknown, or d_model is odd where sines and cosines come in pairs.
    """
    place = torch.arange(length, dtype=torch.float64)[:, None]
    if scheme == "counted":
        return (place + 1).expand(length, d_model)
    if scheme == "share":
        return (place / length).expand(length, d_model)
    if scheme != "sinusoidal":
        raise ValueError(f"scheme={scheme!r} must be one of {', '.join(SCHEMES)}")
    return sinusoidal_table(length, d_model).double()


@torch.inference_mode()
def counted_positions(*, prompt: Prompt, length: int) -> CountedPositions:
    """Add three schemes' vectors to the tokens of a text, each token at every place of a text of some length.

    Args:
        prompt: to any model that reads text; its tokens are scaled as it scales them, and its own positions left out.
        length: of the text that the places are of, from 2 to LONGEST; the tokens may be fewer.

    Raises:
        ValueError: length is out of range, or d_model is odd.
    """
    require_range("length", length, 2, LONGEST)
    part, width = input_embedding(prompt.bundle.model), prompt.bundle.config.d_embedding
    ids = list(prompt.encoding.ids)
    tokens = part.token.weight[ids].cpu().double() * (part.scale or 1.0)  # (token, width)
    usual = float(tokens.norm(dim=-1).mean().clamp(min=1e-12))
    added = torch.stack([positions_by(scheme, length, width) for scheme in SCHEMES])  # (scheme, pos, width)
    sums = tokens + added[:, :, None]  # (scheme, pos, token, width)
    cosines = torch.cosine_similarity(sums, tokens, dim=-1).mean(-1)  # (scheme, pos)
    steps = [
        [float((rows[1] - rows[0]).norm()) for rows in (positions_by(one, n, width) for n in LENGTHS)]
        for one in SCHEMES
    ]
    return CountedPositions(
        SCHEMES,
        (added.norm(dim=-1) / usual).numpy(),
        cosines.numpy(),
        np.array(LENGTHS),
        np.array(steps) / usual,
    )
