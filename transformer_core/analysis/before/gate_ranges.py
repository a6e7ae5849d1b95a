"""Does a unit's gate tell how far back the unit listens? Gates and reach, measured unit by unit on a trained layer.

Cho et al. 2014, section 2.3, expect that units that hold on to something for long have update gates that are mostly
active, and that those of a short memory have reset gates that are often active.
"""

from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.analysis.before.gates import GATES, gated_model, layer_of
from transformer_core.analysis.rank_correlation import RankCorrelation, rank_correlation
from transformer_core.bundle import Bundle
from transformer_core.models.recurrent import RecurrentLm
from transformer_core.probe import Probe
from transformer_core.training.corpora.reviews import reviews

WINDOW, WINDOW_OF_CHARACTERS = 12, 24
TEXTS, MOST_UNITS = 16, 192
TRIED = 200  # built-in reviews among which texts of at least a window are looked for


@dataclass(frozen=True, eq=False)
class GateRanges:
    """What each unit's gates are on average, and from how far back its state at a window's end comes.

    Of more than 192 units, 192 that are evenly spread are measured.

    The influence of distance k on a unit is the length of d h_T / d x_(T-k), the mean over windows. The unit's range
    is the mean of k, weighted by influence.

    Shapes:
        ranges: (unit,), in positions
        gates: (gate, unit), the mean over all positions of all windows, in [0, 1]
        influence: (unit, distance)

    Args:
        names: of the gates, as in SITES.
        correlations: of each gate with the ranges, unit by unit.
        units: numbers of the units.
        n_texts: windows that were read.
        window: tokens of each.
    """

    names: tuple[str, ...]
    ranges: np.ndarray
    gates: np.ndarray
    influence: np.ndarray
    correlations: tuple[RankCorrelation, ...]
    units: tuple[int, ...]
    n_texts: int
    window: int


def _windows(bundle: Bundle, window: int) -> torch.Tensor:
    """Return the beginnings of built-in reviews that have at least a window, (text, pos)."""
    examples = reviews("en", train=0, held_out=TRIED, seed=0)[1]
    rows = [bundle.tokenizer.encode(example.text).ids[:window] for example in examples]
    rows = [row for row in rows if len(row) == window][:TEXTS]
    if len(rows) < 2:
        raise ValueError(f"bundle={bundle.name!r} cuts the built-in reviews into fewer than {window} tokens each")
    return torch.tensor(rows, device=bundle.device)


def gate_ranges(*, bundle: Bundle, direction: str = "forward") -> GateRanges:
    """Measure gates and ranges of all units on built-in reviews.

    Args:
        bundle: a seq2seq, of which the encoder is read, or an lm; it has gates.
        direction: "forward", or "backward" where an encoder reads both ways.

    Raises:
        ValueError: the bundle is of another kind, has no gates, or there is no such direction.
    """
    model = gated_model(bundle)
    layer = layer_of(model, direction)
    window = min(WINDOW_OF_CHARACTERS if isinstance(model, RecurrentLm) else WINDOW, model.config.max_len)
    ids, backward = _windows(bundle, window), direction == "backward"
    names = GATES[model.config.unit]
    with torch.inference_mode(False), torch.enable_grad():
        x = (model.embedding(ids) * model.scale).detach().requires_grad_(True)  # (text, pos, d_model)
        probe = Probe(names)
        state = layer(x, backward=backward, probe=probe)[1]
        size = state[0].shape[1]
        chosen = torch.linspace(0, size - 1, min(size, MOST_UNITS), device=x.device).long()
        units = torch.eye(size, device=x.device)[chosen, None].expand(-1, len(ids), -1)
        (slopes,) = torch.autograd.grad(state[0], x, units, is_grads_batched=True)  # (unit, text, pos, d_model)
    influence = slopes.norm(dim=-1).mean(1).cpu().double().numpy()  # (unit, pos)
    influence = influence if backward else influence[:, ::-1]  # (unit, distance)
    gates = np.stack([probe.trace[name].detach()[..., chosen].cpu().double().mean((0, 1)).numpy() for name in names])
    ranges = (influence * np.arange(window)).sum(1) / influence.sum(1)
    return GateRanges(
        names=names,
        ranges=ranges,
        gates=gates,
        influence=influence,
        correlations=tuple(rank_correlation(gate, ranges) for gate in gates),
        units=tuple(chosen.tolist()),
        n_texts=len(ids),
        window=window,
    )
