"""A part of a score's sum opened: a head into tokens, a feed-forward layer into neurons, a mixture into experts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.stream.carried_back import Walk, towards_score, weight_of
from transformer_core.layers.attention import MultiHeadAttention
from transformer_core.layers.feed_forward import FeedForward, MixtureOfExperts
from transformer_core.probe import Probe
from transformer_core.wiring import SUBLAYERS


@dataclass(frozen=True, eq=False)
class Opening:
    """What a part's share is made of.

    Shapes:
        values: (inner,); factors: (2, inner), whose products the values are, not a number where there is no such pair

    Args:
        code: of the part.
        kind: "head" (source tokens: attention weight, and what the value writes towards the score), "token"
            (coordinates of the value), "feed_forward" (neurons: activation, output weight), "mixture" (experts:
            router's weight, output) or "neuron" (the positions that the answer is read from).
        names: codes of what is inside.
        labels: tokens, of a head.
        share: of the part, which the values add up to.
        numbers: of a neuron or a token, by name, at the position of the largest value.
    """

    code: str
    kind: str
    names: tuple[str, ...]
    labels: tuple[str, ...]
    values: np.ndarray
    factors: np.ndarray
    share: float
    numbers: Mapping[str, float]

    @property
    def difference(self) -> float:
        """The sum of the values minus the share."""
        return float(self.values.sum()) - self.share


def pieces_of(code: str) -> tuple[str, str, list[str]]:
    """Return the layer, the sublayer and what is inside it that a part's code names.

    Raises:
        ValueError: it names no layer and sublayer.
    """
    layer, _, rest = code.partition(".")
    sublayer, *inner = rest.split(".")
    if not layer.startswith("layer") or sublayer not in SUBLAYERS or len(inner) > 2:
        raise ValueError(f"part={code!r:.80} must be a head, a feed-forward layer or what is inside one")
    return layer, sublayer, inner


def opening_of(walk: Walk, code: str) -> Opening:
    """Open a head, a token that it read, a feed-forward layer, an expert or a neuron.

    Raises:
        ValueError: there is no such part, or nothing is inside it.
    """
    layer, sublayer, inner = pieces_of(code)
    name = f"{layer}.{sublayer}"
    if name not in walk.directions:
        raise ValueError(f"opened={code!r:.80} must be of a sublayer that the stack has")
    block = getattr(walk.model, walk.stack).stack.layers[int(layer.removeprefix("layer"))]
    part = getattr(block, sublayer)
    if isinstance(part, MultiHeadAttention):
        return _opened_head(walk, part, name, inner)
    if isinstance(part, MixtureOfExperts):
        return _opened_mixture(walk, part, name, inner)
    read = {leaf: walk.at(f"{walk.stack}.{name}.{leaf}") for leaf in _leaves(part)}
    written = walk.directions[name] @ weight_of(part.outer_proj.weight)  # (row, neuron)
    return _opened_layer(name, inner, read, written, walk.shares[name], walk.rows)


def _leaves(layer: FeedForward) -> tuple[str, ...]:
    return ("pre_activation", "activation") + (() if layer.gate_proj is None else ("gate", "up"))


def number_in(code: str, kind: str, most: int) -> int:
    said = code.removeprefix(kind)
    if not (code.startswith(kind) and said.isascii() and said.isdigit() and len(said) < 9 and int(said) < most):
        raise ValueError(f"part={code!r:.40} must be {kind}0 to {kind}{most - 1}")
    return int(said)


def _factors(left: Tensor, right: Tensor) -> np.ndarray:
    """Return both factors of each value where the answer is read from one position: (row, inner) each to (2, inner)."""
    if len(left) > 1:
        return np.full((2, left.shape[1]), np.nan)
    return torch.stack([left[0], right[0]]).numpy()


def _opened_layer(
    name: str, inner: list[str], read: Mapping[str, Tensor], written: Tensor, share: float, rows: list[int]
) -> Opening:
    """Open a feed-forward layer into its neurons, or one of these. # of read: (row, neuron), written: the same"""
    products = read["activation"] * written  # (row, neuron)
    if not inner:
        names = tuple(f"{name}.neuron{place}" for place in range(products.shape[1]))
        values, factors = products.sum(0).numpy(), _factors(read["activation"], written)
        return Opening(name, "feed_forward", names, (), values, factors, share, {})
    neuron = number_in(inner[0], "neuron", products.shape[1])
    mine = products[:, neuron]
    most = int(mine.abs().argmax())
    numbers = {leaf: float(of[most, neuron]) for leaf, of in read.items()} | {"written": float(written[most, neuron])}
    factors = torch.stack([read["activation"][:, neuron], written[:, neuron]]).numpy()
    names = tuple(f"position{row}" for row in rows)
    return Opening(f"{name}.{inner[0]}", "neuron", names, (), mine.numpy(), factors, float(mine.sum()), numbers)


def _opened_mixture(walk: Walk, mixture: MixtureOfExperts, name: str, inner: list[str]) -> Opening:
    """Open a mixture into its chosen experts, or one of these into its neurons."""
    direction, scope = walk.directions[name], f"{walk.stack}.{name}"
    weights = walk.at(f"{scope}.expert_weights")  # (row, expert)
    if not inner:
        chosen = (weights != 0).any(0).nonzero().flatten().tolist()
        outputs = torch.stack([_inside(walk, mixture.experts[one], scope)["output"] for one in chosen], dim=1)
        written = (outputs * direction[:, None]).sum(-1)  # (row, chosen)
        values, factors = (weights[:, chosen] * written).sum(0).numpy(), _factors(weights[:, chosen], written)
        names = tuple(f"{name}.expert{one}" for one in chosen)
        if mixture.shared is not None:
            shared = float((walk.at(f"{scope}.shared_output") * direction).sum())
            names, values = (*names, f"{name}.shared"), np.append(values, shared)
            factors = np.append(factors, [[np.nan], [np.nan]], axis=1)
        return Opening(name, "mixture", names, (), values, factors, walk.shares[name], {})
    if inner[0] == "shared" and mixture.shared is not None:
        expert, gate = mixture.shared, f"{scope}.shared_gate"
        weight = walk.at(gate) if gate in walk.trace else torch.ones(len(weights), 1, dtype=torch.float64)
    else:
        which = number_in(inner[0], "expert", len(mixture.experts))
        expert, weight = cast(FeedForward, mixture.experts[which]), weights[:, which, None]
    inside = _inside(walk, expert, scope)
    written = weight * (direction @ weight_of(expert.outer_proj.weight))  # (row, neuron)
    share = float((weight * inside["output"] * direction).sum())
    found = _opened_layer(f"{name}.{inner[0]}", inner[1:], inside, written, share, walk.rows)
    if len(inner) > 1 or expert.outer_proj.bias is None:
        return found
    bias = float((weight * direction * weight_of(expert.outer_proj.bias)).sum())
    names, values = (*found.names, f"{found.code}.output_bias"), np.append(found.values, bias)
    factors = np.append(found.factors, [[np.nan], [np.nan]], axis=1)
    return Opening(found.code, found.kind, names, (), values, factors, share, {})


def _inside(walk: Walk, expert: torch.nn.Module, scope: str) -> dict[str, Tensor]:
    """Return what an expert computes at the rows, in 64 bits, by leaf. # (row, neuron), output: (row, d_model)"""
    entering = walk.trace[walk.asked.place.wiring.into(scope)][0][walk.rows]
    probe = Probe()
    with torch.inference_mode():
        expert(entering[None], probe=probe)
    return {leaf: of[0].cpu().double() for leaf, of in probe.trace.items()}


def _opened_head(walk: Walk, attention: MultiHeadAttention, name: str, inner: list[str]) -> Opening:
    """Open a head into the tokens that it read, or one of these into the coordinates of its value."""
    head = number_in(inner[0], "head", attention.n_heads)
    scope, config = f"{walk.stack}.{name}", walk.asked.place.bundle.config
    kv, d_head = config.kv_head(head), attention.d_head
    weights = walk.trace[f"{scope}.weights"][0, head][walk.rows].cpu().double()  # (row, key_pos)
    values = walk.trace[f"{scope}.value"][0, kv].cpu().double()  # (key_pos, d_head)
    written = towards_score(walk, attention, name)[head]  # (row, d_head)
    proj = attention.value_proj or attention.key_proj or attention.query_proj
    biased = proj is not None and proj.bias is not None
    bias = weight_of(proj.bias)[kv * d_head : (kv + 1) * d_head] if biased else torch.zeros(d_head, dtype=torch.float64)  # type: ignore[union-attr, index]
    towards = (values - bias) @ written.T  # (key_pos, row)
    code, share = f"{name}.{inner[0]}", walk.shares[f"{name}.{inner[0]}"]
    products = weights.T * towards  # (key_pos, row)
    if len(inner) == 1:
        names = tuple(f"{code}.token{place}" for place in range(len(values)))
        factors, shares = _factors(weights, towards.T), products.sum(1).numpy()
        if biased:  # the weights of a row add up to 1: the bias is written whatever is looked at
            names = (*names, f"{code}.value_bias")
            shares = np.append(shares, float((weights.sum(1) * (written @ bias)).sum()))
            factors = np.append(factors, [[np.nan], [np.nan]], axis=1)
        labels = walk.asked.place.keys["cross_attention" if "cross_attention" in name else "self_attention"]
        return Opening(code, "head", names, labels, shares, factors, share, {})
    token = number_in(inner[1], "token", len(values))
    ways = (weights[:, token, None] * written).sum(0)  # (d_head,), weight times what the coordinate adds to the score
    value, code = values[token] - bias, f"{code}.{inner[1]}"
    names = tuple(f"coordinate{place}" for place in range(d_head))
    numbers = {"weight": float(weights[0, token]), "towards": float(towards[token, 0])} if len(weights) == 1 else {}
    factors = torch.stack([value, ways]).numpy()
    return Opening(code, "token", names, (), (value * ways).numpy(), factors, float(products[token].sum()), numbers)
