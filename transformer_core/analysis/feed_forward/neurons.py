"""The neurons of a feed-forward layer: which a sentence excites, and what the verdict loses with one of them.

Feed-forward layers as memories: Geva et al. 2021, section 2. Read next: neuron_corpus.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.attention.ranking import RankCorrelation, rank_correlation
from transformer_core.analysis.feed_forward.activations import require_index
from transformer_core.analysis.outcome import conclude, copies_at_once, one_text, require_outcome
from transformer_core.analysis.reading import read, scope_of
from transformer_core.bundle import Bundle
from transformer_core.probe import Edit
from transformer_core.text import Encoding

TOKENS_AT_ONCE = 2_048


@dataclass(frozen=True, eq=False)
class Neurons:
    """The inside of one feed-forward layer for one sentence.

    Shapes:
        activation: (pos, neuron); strongest: (pos, top); columns: (top)

    Args:
        strongest: each token's neurons with the greatest activation, the first one first.
        columns: the neurons with the greatest activation anywhere in the sentence, the first one first.
    """

    activation: np.ndarray
    strongest: np.ndarray
    columns: np.ndarray


def neurons(*, bundle: Bundle, text: str, n_tokens: int, layer: int, top: int) -> Neurons:
    """Return a layer's activations of a text and the strongest neurons.

    Args:
        bundle: of a kind that reads one text.
        n_tokens: at most so many tokens are read.
        layer: from 0.
        top: how many neurons, at most d_ff.

    Raises:
        ValueError: there is no such layer, or not so many neurons.
    """
    require_index("layer", layer, bundle.config.n_layers)
    if not 1 <= top <= bundle.config.d_ff:
        raise ValueError(f"top={top} must be from 1 to d_ff={bundle.config.d_ff}")
    site = scope_of(bundle, f"layer{layer}.feed_forward.activation")
    encoding = bundle.tokenizer.encode(text, max_len=n_tokens)
    activation = read(bundle, encoding, sites=(site,)).trace[site][0].float().cpu()  # (pos, neuron)
    return Neurons(
        activation.numpy(),
        activation.topk(top, dim=-1).indices.numpy(),
        activation.amax(0).topk(top).indices.numpy(),
    )


def neuron_off(layer: int, neuron: int) -> Mapping[str, Edit]:
    """Return the edit that sets one neuron's activation to zero at every position."""

    def silence(activation: Tensor) -> Tensor:
        activation[..., neuron] = 0.0  # (batch, pos, d_ff)
        return activation

    return {f"*.layer{layer}.feed_forward.activation": silence}


@dataclass(frozen=True, eq=False)
class WithoutNeuron:
    """What the verdict does when one neuron is set to zero, and when any other of its layer is.

    Shapes:
        before, after: (outcome), see outcome.py; moves, peaks: (neuron)

    Args:
        winner: the likeliest outcome before.
        moved: of its probability, in percentage points.
        flipped: whether another outcome is likelier after.
        moves: the same as `moved`, for every neuron of the layer by itself.
        peaks: each neuron's greatest absolute activation in the sentence.
        agreement: of the order by peak with the order by the size of the move.
        rank: how many neurons of the layer move the verdict more than this one.
    """

    before: np.ndarray
    after: np.ndarray
    winner: int
    moved: float
    flipped: bool
    moves: np.ndarray
    peaks: np.ndarray
    agreement: RankCorrelation
    rank: int


def without_neuron(*, bundle: Bundle, text: str, n_tokens: int, layer: int, neuron: int) -> WithoutNeuron:
    """Set one neuron of a layer to zero, and each of the others in turn, and return how far the verdict moves.

    Raises:
        ValueError: there is no such layer or neuron, or the model concludes nothing from the text.
    """
    require_index("layer", layer, bundle.config.n_layers)
    require_index("neuron", neuron, bundle.config.d_ff)
    encoding = bundle.tokenizer.encode(text, max_len=n_tokens)
    require_outcome(bundle, encoding)
    site = scope_of(bundle, f"layer{layer}.feed_forward.activation")
    reading = read(bundle, encoding, sites=(site,))
    before, winner = np.array(reading.probabilities), int(np.argmax(reading.probabilities))
    after = np.array(read(bundle, encoding, sites=(), edits=neuron_off(layer, neuron)).probabilities)
    peaks = reading.trace[site][0].abs().amax(0).float().cpu().numpy()  # (neuron)
    moves = 100 * (_each_off(bundle, encoding, site, winner) - before[winner])  # (neuron)
    return WithoutNeuron(
        before=before,
        after=after,
        winner=winner,
        moved=100 * float(after[winner] - before[winner]),
        flipped=bool(after.argmax() != winner),
        moves=moves,
        peaks=peaks,
        agreement=rank_correlation(peaks, np.abs(moves)),
        rank=int((np.abs(moves) > np.abs(moves[neuron])).sum()),
    )


def _each_off(bundle: Bundle, encoding: Encoding, site: str, winner: int) -> np.ndarray:
    """Return the winner's probability with each neuron off in turn, many copies of the sentence at once.

    Shapes:
        returns: (neuron)
    """
    outcome, ids, parts = require_outcome(bundle, encoding), one_text(bundle, encoding), []
    at_once = copies_at_once(bundle, len(encoding), max(1, TOKENS_AT_ONCE // len(encoding)))
    for places in torch.arange(bundle.config.d_ff).split(at_once):

        def silence(activation: Tensor, places: Tensor = places) -> Tensor:
            activation[torch.arange(len(places)), :, places] = 0.0
            return activation

        probabilities, _ = conclude(bundle, ids.expand(len(places), -1), outcome, edits={site: silence})
        parts.append(probabilities[:, winner].float().cpu())
    return torch.cat(parts).numpy()
