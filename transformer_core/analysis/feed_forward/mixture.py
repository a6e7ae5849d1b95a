"""A mixture of experts on one text: where its router sends each token, each expert's load, and the answer without one.

Shazeer et al. 2017, section 2; load: Fedus et al. 2022, section 2.2.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from transformer_core.analysis.feed_forward.neurons import each_off
from transformer_core.analysis.outcome import read, require_outcome
from transformer_core.bundle import Bundle
from transformer_core.config import require_index
from transformer_core.probe import Edit
from transformer_core.prompt import Prompt


@dataclass(frozen=True, eq=False)
class Routing:
    """Where the router of one layer sends the tokens of a text, special ones among them.

    Shapes:
        probabilities, weights: (pos, expert); load: (expert,)

    Args:
        weights: what each chosen expert's output is multiplied by; 0 of all others.
        load: how many tokens each expert reads.
        even: the load of each if all had the same.
    """

    probabilities: np.ndarray
    weights: np.ndarray
    load: np.ndarray
    even: float


def _require(bundle: Bundle, layer: int, expert: int = 0) -> str:
    """Return the scope of a layer's mixture.

    Raises:
        ValueError: the model is no mixture, or there is no such layer or expert.
    """
    n_experts = getattr(bundle.config, "n_experts", 0)
    if not n_experts:
        raise ValueError(f"bundle={bundle.name!r} has n_experts=0; it must be a mixture of at least 2")
    require_index("layer", layer, bundle.config.n_layers)
    require_index("expert", expert, n_experts)
    return bundle.reader.site(f"layer{layer}.feed_forward")


def expert_off(scope: str, expert: int) -> Mapping[str, Edit]:
    """Return the edit that takes an expert away: its tokens choose the next, and no other token's weights change."""

    def away(probabilities: Tensor) -> Tensor:
        probabilities[..., expert] = 0.0  # (batch, pos, expert)
        return probabilities

    return {f"{scope}.router_probabilities": away}


def routing(*, prompt: Prompt, layer: int, without: int | None = None) -> Routing:
    """Read a text and return how a layer's router spreads its tokens.

    Args:
        prompt: to a mixture of experts that reads one text.
        layer: from 0.
        without: the expert that is taken away from this layer, if any.

    Raises:
        ValueError: the model is no mixture, or there is no such layer or expert.
    """
    scope = _require(prompt.bundle, layer, without or 0)
    sites = (f"{scope}.router_probabilities", f"{scope}.expert_weights")
    edits = {} if without is None else expert_off(scope, without)
    trace = read(prompt.bundle, prompt.encoding, sites=sites, edits=edits).trace
    probabilities, weights = (trace[site][0].float().cpu().numpy() for site in sites)
    config = prompt.bundle.config
    return Routing(
        probabilities=probabilities,
        weights=weights,
        load=(weights != 0).sum(0),
        even=len(weights) * config.n_active_experts / config.n_experts,
    )


@dataclass(frozen=True, eq=False)
class WithoutExpert:
    """What the verdict does when one expert of a layer is taken away, and when any other one is.

    Shapes:
        before, after: (outcome), see outcome.py; moves, load, taken: (expert,)

    Args:
        winner: the likeliest outcome before.
        moved: of its probability, in percentage points.
        flipped: whether another outcome is likelier after.
        moves: the same as `moved`, for each expert of the layer by itself.
        load: tokens that each expert reads.
        taken: how many tokens more each other expert reads without the one.
        alike: the other expert whose load is nearest, and that moves the verdict most of those.
    """

    before: np.ndarray
    after: np.ndarray
    winner: int
    moved: float
    flipped: bool
    moves: np.ndarray
    load: np.ndarray
    taken: np.ndarray
    alike: int


def without_expert(*, prompt: Prompt, layer: int, expert: int) -> WithoutExpert:
    """Take one expert of a layer away, and each of the others in turn, and return how far the verdict moves.

    Raises:
        ValueError: as routing, or the model predicts nothing from the text.
    """
    bundle, encoding = prompt.bundle, prompt.encoding
    scope = _require(bundle, layer, expert)
    require_outcome(bundle, encoding)
    before = np.array(read(bundle, encoding, sites=()).probabilities)
    after = np.array(read(bundle, encoding, sites=(), edits=expert_off(scope, expert)).probabilities)
    winner = int(np.argmax(before))
    own, rest = (routing(prompt=prompt, layer=layer, without=one).load for one in (None, expert))
    site, count = f"{scope}.router_probabilities", bundle.config.n_experts
    moves = 100 * (each_off(bundle, encoding, site, count, winner) - before[winner])  # (expert,)
    distance = np.abs(own - own[expert]).astype(float)
    distance[expert] = np.inf
    near = np.flatnonzero(distance == distance.min())
    return WithoutExpert(
        before=before,
        after=after,
        winner=winner,
        moved=100 * float(after[winner] - before[winner]),
        flipped=bool(after.argmax() != winner),
        moves=moves,
        load=own,
        taken=np.where(np.arange(len(own)) == expert, 0, rest - own),
        alike=int(near[np.abs(moves[near]).argmax()]),
    )
