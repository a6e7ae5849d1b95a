"""How few heads are enough: heads switched off one after the other, in three orders, and what the answer loses.

Michel et al. 2019, section 4 (pruning by measured worth); Voita et al. 2019 (few heads do most of the work).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.attention.heads import without
from transformer_core.analysis.lab.cases import (
    Answers,
    Cases,
    at_once,
    batches,
    by_position,
    joined,
    one_case,
    per_model,
    run,
)
from transformer_core.analysis.lab.directions import stack_at
from transformer_core.analysis.lab.text_sets import Among, measured_cases
from transformer_core.analysis.rank_correlation import RankCorrelation, pearson, rank_correlation
from transformer_core.bundle import Bundle
from transformer_core.config import require_choice, require_index, require_range
from transformer_core.probe import Edit
from transformer_core.progress import counted
from transformer_core.prompt import Prompt
from transformer_core.shares import paired

LabAblation = Literal["zero", "mean", "resample"]  # the mean over built-in texts, or one of those texts
RECURRENT = ("lm", "seq2seq")
FEW = 24  # texts, for a mean mixture, and to draw from
On = Literal["text", "set"]
ORDERS = ("worth", "weight", "random")
RANDOM_ORDERS = {"text": 5, "set": 3}
MOST_POINTS = {"text": 33, "set": 17}
ENOUGH = 0.95  # of what the model with all heads has


@dataclass(frozen=True, eq=False)
class Boards:
    """Every head of a model, alone switched off.

    Shapes:
        change: by kind of attention (layer, head): ln p of the answer without that head, minus with it, in nats
        strongest: by kind (layer, head): its largest weight anywhere in the text

    Args:
        before: ln p of the answer with all heads.
        passes: texts that were read.
    """

    change: Mapping[str, np.ndarray]
    strongest: Mapping[str, np.ndarray]
    before: float
    passes: int


@dataclass(frozen=True, eq=False)
class TwoAblations:
    """Each head switched off alone in two ways: to zero, and to its mean or to what it writes for other texts.

    Shapes:
        zero, other: (head,), ln p of the answer without that head, minus with it, in nats; resampled the mean of draws
        bounds: (2, head), of 95 % of resampled draws; of the mean, which is no estimate, the change itself

    Args:
        heads: kind, layer and head of each.
        most: the place of the head whose absence, to zero, changes the answer most.
        r: Pearson's correlation of both; r_without: of all heads but that one; nan where one of the two is flat.
        order: how far both put the same heads first.
        draws: other texts that each head was resampled from; 1 for the mean.
        passes: texts that were read.
    """

    zero: np.ndarray
    other: np.ndarray
    bounds: np.ndarray
    heads: tuple[tuple[str, int, int], ...]
    most: int
    r: float
    r_without: float
    order: RankCorrelation
    draws: int
    passes: int


@dataclass(frozen=True, eq=False)
class FewHeads:
    """What is left of the answer with ever fewer heads.

    Shapes:
        off: (point,), how many heads are off
        kept: (order, point), the probability of the answer (a mean over a target's words), or the accuracy on the
            set; of the random order the mean over several
        random: (random order, point)
        areas: (order,), the mean height of each curve over the share of heads that are off (trapezoids)
        enough: (order,), the fewest heads left with at least ENOUGH of what all have, and so with all more
        orders: (order, head, 3), kind's index, layer and head, the first to go first; of the random one the first

    Args:
        kinds: of attention, as in `attentions`.
        passes: texts that were read.
    """

    off: np.ndarray
    kept: np.ndarray
    random: np.ndarray
    areas: np.ndarray
    enough: np.ndarray
    orders: np.ndarray
    kinds: tuple[str, ...]
    passes: int


def attentions(bundle: Bundle) -> dict[str, tuple[str, ...]]:
    """Return the scopes of a model's attention, first layer first, by kind: "encoder", "decoder", "cross".

    A recurrent model has no heads to switch off, so there are none.
    """
    if bundle.kind in RECURRENT:
        return {}
    layers = range(bundle.config.n_layers)
    reader = bundle.reader
    found = {reader.stack: tuple(reader.site(f"layer{layer}.self_attention") for layer in layers)}
    if bundle.kind == "translation":
        found["decoder"] = tuple(f"decoder.layer{layer}.self_attention" for layer in layers)
        found["cross"] = tuple(f"decoder.layer{layer}.cross_attention" for layer in layers)
    return found


def scopes_of(bundle: Bundle) -> tuple[str, ...]:
    """Return the scopes of all attention of a model, kind by kind and layer by layer."""
    return tuple(scope for scopes in attentions(bundle).values() for scope in scopes)


@per_model
def mean_heads(bundle: Bundle, seed: int = 0) -> dict[str, Tensor]:
    """Return the mean mixture of every head over the positions of built-in texts, by scope. # (head, d_head)"""
    scopes = scopes_of(bundle)
    sums: dict[str, Tensor] = {}
    counts = dict.fromkeys(scopes, 0)
    for part in batches(measured_cases(bundle, FEW, seed)):
        trace = run(part, sites=tuple(f"{scope}.heads" for scope in scopes))[1]
        for scope in scopes:
            heads = trace[f"{scope}.heads"].cpu().double()  # (text, head, pos, d_head)
            real = part.real(stack_at(scope), heads.shape[2]).cpu()  # (text, pos)
            sums[scope] = sums.get(scope, 0) + (heads * real[:, None, :, None]).sum((0, 2))
            counts[scope] += int(real.sum())
    return {scope: (sums[scope] / counts[scope]).float() for scope in scopes}


@per_model
def drawn_texts(bundle: Bundle) -> tuple[str, ...]:
    """Return the built-in texts that resampling draws from, the shortest first; of a translation the sources."""
    cases = measured_cases(bundle, FEW, 0)
    lengths = cases.lengths[next(iter(cases.lengths))]
    rows = zip(cases.inputs[0].tolist(), lengths, strict=True)
    return tuple(bundle.tokenizer.decode(ids[:length]) for ids, length in rows)


@per_model
def drawn_heads(bundle: Bundle, scope: str, draw: int) -> Tensor:
    """Return the mixtures of one attention's heads for one of drawn_texts. # (head, pos, d_head)"""
    cases, site = measured_cases(bundle, FEW, 0), f"{scope}.heads"
    require_index("draw", draw, len(cases))
    return run(cases.rows(draw, draw + 1), sites=(site,))[1][site][0]


def heads_off(bundle: Bundle, scope: str, off: Tensor, how: LabAblation, draw: int = 0) -> Edit:
    """Return the edit that switches off heads of one attention: to zero, to their mean over built-in texts, or to what
    they write at the same position of one of those, which begins anew where it is shorter.

    Shapes:
        off: (head,), boolean; or (copy, head), other ones in each copy of a text

    Args:
        draw: which of drawn_texts, to resample from.

    Raises:
        ValueError: how is none of these, or there is no such text.
    """
    require_choice("how", how, get_args(LabAblation))
    if how == "resample":
        drawn = drawn_heads(bundle, scope, draw)

        def resample(heads: Tensor, here: range) -> None:
            heads.copy_(without(heads, off, drawn[:, [place % drawn.shape[1] for place in here]]))

        return by_position(resample)
    instead = 0.0 if how == "zero" else mean_heads(bundle)[scope][:, None]  # (head, one, d_head)
    return lambda heads: without(heads, off, instead)


def all_heads(bundle: Bundle) -> list[tuple[str, int]]:
    """Return scope and number of every head, kind by kind and layer by layer.

    Raises:
        ValueError: the model has no heads.
    """
    found = [(scope, head) for scope in scopes_of(bundle) for head in range(bundle.config.n_heads)]
    if not found:
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}, which has no heads to switch off")
    return found


def mask_edits(bundle: Bundle, left: Tensor, how: LabAblation, draw: int = 0) -> dict[str, Edit]:
    """Return the edits of one pass that leave some heads and switch all others off, other ones in each copy of a text.

    Shapes:
        left: (copy, head) over all_heads, or (1, head) for all texts of a batch: True for a head that stays
    """
    by_scope = zip(scopes_of(bundle), left.split(bundle.config.n_heads, dim=1), strict=True)  # each (copy, head)
    return {
        f"{scope}.heads": heads_off(bundle, scope, ~stays, how, draw) for scope, stays in by_scope if not stays.all()
    }


def _each_off(cases: Cases, left: Tensor, how: LabAblation, draw: int = 0) -> Tensor:
    """Return ln p of the answer to one text under each mask of heads. # (mask,)"""
    parts = []
    for part in left.split(at_once(cases)):
        edits = mask_edits(cases.bundle, part, how, draw)
        parts.append(run(cases.repeated(len(part)), edits=edits)[0].log_prob)
    return torch.cat(parts).cpu().double()


def head_boards(*, prompt: Prompt, answer: int | str | None = None, how: LabAblation = "zero", draw: int = 0) -> Boards:
    """Switch every head off alone.

    Args:
        answer: as of one_case.
        how, draw: as of heads_off.

    Raises:
        ValueError: the model has no heads, or as one_case or heads_off.
    """
    heads = all_heads(prompt.bundle)
    cases = one_case(prompt=prompt, answer=answer)
    left = ~torch.eye(len(heads), dtype=torch.bool)
    answers, strongest = _strongest(cases)
    before = float(answers.log_prob[0])
    change = (_each_off(cases, left, how, draw) - before).numpy()
    kinds = attentions(prompt.bundle)
    shape = (len(kinds), -1, prompt.bundle.config.n_heads)
    return Boards(
        dict(zip(kinds, change.reshape(shape), strict=True)),
        dict(zip(kinds, strongest.reshape(shape), strict=True)),
        before,
        1 + len(heads),
    )


def compare_ablations(
    *, prompt: Prompt, answer: int | str | None = None, how: Literal["mean", "resample"] = "mean", draws: int = 8
) -> TwoAblations:
    """Switch every head off alone in two ways.

    To zero asks what the layer lacks where the head writes nothing (Michel et al. 2019, section 2.3), which no text
    brings about; to its mean, what the answer owes to what the head writes here and not everywhere (Wang et al. 2023,
    section 2.2); resampled, what it owes to this text and to no other, with nothing that no text brings about (Chan et
    al. 2022, section 2).

    Args:
        answer: as of one_case.
        how: what zero is compared with.
        draws: other texts that each head is resampled from.

    Raises:
        ValueError: as head_boards; draws is out of its range.
    """
    bundle, heads = prompt.bundle, all_heads(prompt.bundle)
    require_range("draws", draws, 2, FEW)
    cases = one_case(prompt=prompt, answer=answer)
    before = run(cases)[0].log_prob.cpu().double()
    left = ~torch.eye(len(heads), dtype=torch.bool)
    taken = range(min(draws, len(drawn_texts(bundle)))) if how == "resample" else range(1)
    zero = (_each_off(cases, left, "zero") - before).numpy()
    drawn = np.stack([(_each_off(cases, left, how, draw) - before).numpy() for draw in taken])  # (draw, head)
    resampled = [paired(np.zeros(len(taken)), one, np.ones(len(taken))) for one in drawn.T]
    other = drawn.mean(0)
    most = int(np.abs(zero).argmax())
    others = np.arange(len(zero)) != most
    kinds, per_layer = attentions(bundle), bundle.config.n_heads
    return TwoAblations(
        zero,
        other,
        np.array([[one.low for one in resampled], [one.high for one in resampled]]),
        tuple((kind, layer, head) for kind in kinds for layer, head in np.ndindex(len(kinds[kind]), per_layer)),
        most,
        pearson(zero, other),
        pearson(zero[others], other[others]),
        rank_correlation(zero, other),
        len(taken),
        1 + (1 + len(taken)) * len(heads),
    )


def _strongest(cases: Cases) -> tuple[Answers, np.ndarray]:
    scopes = scopes_of(cases.bundle)
    found = [np.zeros(cases.bundle.config.n_heads) for _ in scopes]
    answers = []
    for part in batches(cases):
        answered, trace = run(part, sites=tuple(f"{scope}.weights" for scope in scopes))
        answers.append(answered)
        for place, scope in enumerate(scopes):
            weights = trace[f"{scope}.weights"]  # (text, head, query_pos, key_pos)
            real = part.real(stack_at(scope), weights.shape[2])[:, None, :, None]
            found[place] = np.maximum(found[place], (weights * real).amax((0, 2, 3)).float().cpu().numpy())
    return joined(answers), np.concatenate(found)


def few_heads(
    *,
    prompt: Prompt,
    on: On = "text",
    answer: int | str | None = None,
    how: LabAblation = "zero",
    draw: int = 0,
    among: Among = None,
    texts: int = 24,
    seed: int = 0,
) -> FewHeads:
    """Switch heads off one after the other until none is left, in the order of worth, of weight, and at random.

    By worth the first to go is the head without which, alone, the answers lose least; by weight the one whose largest
    weight is smallest.

    Args:
        on: "text", or "set" for a set of texts.
        answer: as of one_case; of the text alone.
        how, draw: as of heads_off.
        among: which texts the set has, as of measured_cases.
        texts: how many of them.
        seed: of the random orders and of the texts.

    Raises:
        ValueError: the model has no heads, or as one_case.
    """
    bundle = prompt.bundle
    require_choice("on", on, ("text", "set"))
    heads = all_heads(bundle)
    cases = one_case(prompt=prompt, answer=answer) if on == "text" else measured_cases(bundle, texts, seed, among)
    generator = torch.Generator().manual_seed(seed)
    singles = ~torch.eye(len(heads), dtype=torch.bool)
    points = np.unique(np.linspace(0, len(heads), min(MOST_POINTS[on], len(heads) + 1)).round().astype(int))
    measured = counted(range(len(heads) + (2 + RANDOM_ORDERS[on]) * len(points))) if on == "set" else iter(())
    worth = _heights(cases, singles, (how, draw), measured, log=True)
    order_by = [np.argsort(-worth, kind="stable"), np.argsort(_strongest(cases)[1], kind="stable")]
    drawn = [torch.randperm(len(heads), generator=generator).numpy() for _ in range(RANDOM_ORDERS[on])]
    curves = [_heights(cases, _left(order, points), (how, draw), measured) for order in (*order_by, *drawn)]
    random = np.stack(curves[2:])
    kept = np.stack([*curves[:2], random.mean(0)])
    areas = np.trapezoid(kept, points / len(heads), axis=-1)
    return FewHeads(
        points,
        kept,
        random,
        areas,
        np.array([_enough(curve, points, len(heads)) for curve in kept]),
        np.stack([_named(order, bundle) for order in (*order_by, drawn[0])]),
        tuple(attentions(bundle)),
        (len(heads) + len(curves) * len(points)) * len(cases),
    )


def _left(order: np.ndarray, points: np.ndarray) -> Tensor:
    """Return which heads stay where the first so many of an order are off. # (point, head)"""
    left = torch.ones(len(points), len(order), dtype=torch.bool)
    for row, count in enumerate(points):
        left[row, order[:count]] = False
    return left


def _heights(
    cases: Cases, left: Tensor, how: tuple[LabAblation, int], measured: object, *, log: bool = False
) -> np.ndarray:
    """Return what the answers keep under each mask of heads: mean ln p, or probability, or accuracy. # (mask,)"""
    if len(cases) == 1:
        found = _each_off(cases, left, *how).numpy() / float(cases.asked[0])
        return found if log else np.exp(found)
    heights = []
    for row in left:
        next(measured)  # type: ignore[call-overload]
        parts = [run(part, edits=mask_edits(cases.bundle, row[None], *how))[0] for part in batches(cases)]
        answers = joined(parts)
        heights.append(answers.mean if log else answers.accuracy)
    return np.array(heights)


def _named(order: Sequence[int] | np.ndarray, bundle: Bundle) -> np.ndarray:
    n_heads, per_kind = bundle.config.n_heads, bundle.config.n_layers * bundle.config.n_heads
    return np.array([(place // per_kind, place % per_kind // n_heads, place % n_heads) for place in order])


def _enough(curve: np.ndarray, points: np.ndarray, n_heads: int) -> int:
    """Return the fewest heads left up to which the curve has never fallen below ENOUGH of its start."""
    fallen = np.flatnonzero(curve < ENOUGH * curve[0])
    last = points[-1] if not fallen.size else points[max(int(fallen[0]) - 1, 0)]
    return int(n_heads - last)
