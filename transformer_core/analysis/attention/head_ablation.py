"""Head ablation: every head switched off in turn, and the effect compared with its largest weight.

Michel et al. 2019, section 3; that strong weights need not matter: Jain and Wallace 2019.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.attention.heads import (
    Ablation,
    attention_scope,
    head_off,
    read_attention,
    sentence_ablation,
    stacked_weights,
    without,
)
from transformer_core.analysis.outcome import conclude, conclude_from, one_text, read, require_outcome
from transformer_core.analysis.parts import reading_part
from transformer_core.analysis.rank_correlation import RankCorrelation, rank_correlation
from transformer_core.bundle import Bundle
from transformer_core.device import cores
from transformer_core.layers.blocks import EncoderBlock, Stream
from transformer_core.prompt import Prompt
from transformer_core.reader import Outcome
from transformer_core.trace import Trace

STRONG = 0.5
SMALL = 0.01
_threads = ThreadPoolExecutor(cores(), "head_effects")  # passes one beside the other


@dataclass(frozen=True, eq=False)
class HeadEffects:
    """How the prediction changes without each head.

    Shapes:
        change: (layer, head), the winner's probability without the head, minus before
        flips: (layer, head), whether another outcome wins
        strongest: (layer, head), the head's largest weight anywhere
        idle: (found, 2), layer and head of each whose strongest is at least STRONG and whose change is below SMALL,
            those with the greatest weight first

    Args:
        winner: the likeliest outcome (see outcome.py) of the whole model.
        before: its probability.
        most_weight, most_effect: layer and head of the greatest weight, and of the greatest size of change.
        place: which place the head of the greatest weight takes by the size of its change, from 1.
        agreement: of the order by strongest with the order by the size of change.
    """

    winner: int
    before: float
    change: np.ndarray
    flips: np.ndarray
    strongest: np.ndarray
    idle: np.ndarray
    most_weight: tuple[int, int]
    most_effect: tuple[int, int]
    place: int
    agreement: RankCorrelation


@dataclass(frozen=True, eq=False)
class WithoutHead:
    """The prediction with all heads and without one.

    Args:
        before, after: the probability of each outcome.
        winner: the likeliest before.
        moved: the winner's probability after, minus before.
        flips: whether another outcome wins after.
    """

    before: np.ndarray
    after: np.ndarray
    winner: int
    moved: float
    flips: bool


def without_head(*, prompt: Prompt, layer: int, head: int, how: Ablation = "zero") -> WithoutHead:
    """Read a text with and without one head.

    Args:
        prompt: to a model of a kind that predicts something from this text.
        layer, head: from 0.
        how: see heads.sentence_ablation.

    Raises:
        ValueError: it predicts nothing, or as read.
    """
    bundle, encoding = prompt.bundle, prompt.encoding
    require_outcome(bundle, encoding)
    off = head_off(attention_scope(bundle, layer), head, how)
    before = read(bundle, encoding, sites=()).probabilities
    after = read(bundle, encoding, sites=(), edits=off).probabilities
    winner = int(np.argmax(before))
    return WithoutHead(before, after, winner, float(after[winner] - before[winner]), bool(after[winner] < after.max()))


def head_effects(*, prompt: Prompt, how: Ablation = "zero") -> HeadEffects:
    """Switch every head off in turn: from each layer on, one pass with a copy of the text for each of its heads.

    Below a head nothing changes without it, so that each pass goes on from what the whole pass has there, where what
    attention adds is plainly the sum of its heads' shares, and the feed-forward layer reads that sum. The passes are
    made on all cores at once.

    Args:
        prompt: to a model of a kind that predicts something from this text.
        how: see heads.sentence_ablation.

    Raises:
        ValueError: it predicts nothing, or as read.
    """
    bundle, encoding = prompt.bundle, prompt.encoding
    outcome = require_outcome(bundle, encoding)
    sites = tuple(f"*.self_attention.{leaf}" for leaf in ("weights", "heads", "residual"))
    whole = read_attention(bundle, encoding, sites=sites)
    weights = stacked_weights(whole.trace)  # (layer, head, query_pos, key_pos)
    n_layers, n_heads = weights.shape[:2]
    winner = int(np.argmax(whole.probabilities))
    before = float(whole.probabilities[winner])
    ids, at_once = one_text(bundle, encoding), bundle.reader.at_once(1, n_heads)

    plainly = not (bundle.config.parallel or bundle.config.norms_output)

    def without_each(layer: int) -> Tensor:
        if not plainly:
            return _from_the_text(bundle, ids, outcome, layer, how, winner)
        parts = _without_each_head(bundle, whole.trace, layer, how).split(at_once)
        streams = [Stream(layer, part, attended=True) for part in parts]
        found = [conclude_from(bundle, ids.expand(len(one.residual), -1), outcome, one) for one in streams]
        return _winners(torch.cat(found), winner)

    after = torch.stack([*_threads.map(without_each, range(n_layers))]).numpy()  # (layer, head, 2)
    change, strongest = after[..., 0] - before, weights.max((-2, -1))
    by_weight, by_effect = _in_order(strongest), _in_order(np.abs(change))
    idle = [pair for pair in by_weight if strongest[pair] >= STRONG and abs(change[pair]) < SMALL]
    return HeadEffects(
        winner,
        before,
        change,
        after[..., 1] != winner,
        strongest,
        np.array(idle, dtype=np.int64).reshape(-1, 2),
        by_weight[0],
        by_effect[0],
        by_effect.index(by_weight[0]) + 1,
        rank_correlation(strongest.ravel(), np.abs(change).ravel()),
    )


def _winners(after: Tensor, winner: int) -> Tensor:
    """Return the winner's probability and the likeliest outcome of each copy: (head, outcome) to (head, 2)."""
    return torch.stack((after[:, winner], after.argmax(-1)), dim=-1).cpu().double()


def _from_the_text(bundle: Bundle, ids: Tensor, outcome: Outcome, layer: int, how: Ablation, winner: int) -> Tensor:
    """Read copies of a text, each without another head of a layer: (head, 2), see _winners."""
    n_heads, found = bundle.config.n_heads, []
    for part in torch.arange(n_heads).split(bundle.reader.at_once(ids.shape[1], n_heads)):
        off = torch.arange(n_heads) == part[:, None]  # (copy, head)

        def edit(heads: Tensor, off: Tensor = off) -> Tensor:
            return without(heads, off, sentence_ablation(heads, how))

        edits = {f"{attention_scope(bundle, layer)}.heads": edit}
        found.append(conclude(bundle, ids.expand(len(part), -1), outcome, edits=edits)[0])
    return _winners(torch.cat(found), winner)


def _in_order(values: np.ndarray) -> list[tuple[int, int]]:
    """Return the places (layer, head) of all values, greatest first."""
    order = np.argsort(-values, axis=None, kind="stable")
    return [(int(layer), int(head)) for layer, head in zip(*np.unravel_index(order, values.shape), strict=True)]


@torch.inference_mode()
def _without_each_head(bundle: Bundle, trace: Trace, layer: int, how: Ablation) -> Tensor:
    """Return the residual stream after a layer's self-attention, without each of its heads: (head, pos, d_model).

    The output projection is linear: what a head adds to the stream is its mixture times its own rows of that matrix.
    """
    scope = attention_scope(bundle, layer)
    attention = cast(EncoderBlock, reading_part(bundle.model).stack.layers[layer]).self_attention
    heads, residual = trace[f"{scope}.heads"][0], trace[f"{scope}.residual"]  # (head, pos, d_head), (one, pos, d_model)
    other = sentence_ablation(heads, how) - heads  # (head, pos, d_head)
    width = heads.shape[0] * heads.shape[2]
    rows = torch.eye(width).to(heads) if attention.output_proj is None else attention.output_proj.weight.T
    return residual + other @ rows.view(heads.shape[0], heads.shape[2], -1)
