"""The one table of how every recorded tensor is computed, and its check in float64."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from transformer_core.analysis.arithmetic import attention, blocks, embeddings, output, recurrent
from transformer_core.analysis.arithmetic.computation import Cell, Computation, Index, apart, entry, greatest, number
from transformer_core.analysis.arithmetic.forward_pass import Pass, read_through
from transformer_core.prompt import Prompt
from transformer_core.sites import site_of

ROUNDINGS = 1024  # how many roundings of the recorded type a sum may be away before it counts as another number


class Rule(NamedTuple):
    """The letter of a tensor's entries, and how it is computed in a scope."""

    letter: str
    step: Callable[[Pass, str], Computation]


def _residual(run: Pass, scope: str) -> Computation:
    if scope.endswith("embedding"):
        return embeddings.embedding_sum(run, scope)
    layer = scope.rpartition(".")[2].startswith("layer")
    return (blocks.layer_residual if layer else blocks.residual_sum)(run, scope)


def _output(run: Pass, scope: str) -> Computation:
    return (blocks.feed_forward_output if scope.endswith("feed_forward") else attention.joined_output)(run, scope)


def _scores(run: Pass, scope: str) -> Computation:
    return (recurrent.alignment_scores if scope.endswith("alignment") else attention.scores)(run, scope)


RULES: dict[str, Rule] = {
    "token_ids": Rule("t", embeddings.token_ids),
    "segment_ids": Rule("s", embeddings.segment_ids),
    "token_embedding": Rule("e", embeddings.token_embedding),
    "scaled_embedding": Rule("e'", embeddings.scaled_embedding),
    "one_hot": Rule("x", embeddings.one_hot),
    "segment_embedding": Rule("s", embeddings.segment_embedding),
    "position_embedding": Rule("p", embeddings.position_embedding),
    "projected_embedding": Rule("x", blocks.projected_embedding),
    "residual": Rule("x'", _residual),
    "mean": Rule(r"\mu", blocks.mean),
    "inverse_deviation": Rule("r", blocks.inverse_deviation),
    "inverse_root_mean_square": Rule("r", blocks.inverse_root_mean_square),
    "normalized": Rule("y", blocks.normalized),
    "query": Rule("q", attention.query),
    "key": Rule("k", attention.key),
    "value": Rule("v", attention.value),
    "normalized_query": Rule("q'", attention.normalized_query),
    "normalized_key": Rule("k'", attention.normalized_key),
    "rotated_query": Rule("q'", embeddings.rotated_query),
    "rotated_key": Rule("k'", embeddings.rotated_key),
    "position_bias": Rule("b", embeddings.position_bias),
    "uncapped_scores": Rule("s", attention.uncapped_scores),
    "scores": Rule("S", _scores),
    "masked_scores": Rule("S'", attention.masked_scores),
    "weights": Rule("A", attention.weights),
    "heads": Rule("z", attention.heads),
    "output": Rule("o", _output),
    "pre_activation": Rule("a", blocks.pre_activation),
    "gate": Rule("g", blocks.gate),
    "up": Rule("u", blocks.up),
    "activation": Rule("h", blocks.activation),
    "router_scores": Rule("r", blocks.router_scores),
    "router_probabilities": Rule("p", blocks.router_probabilities),
    "expert_weights": Rule("g", blocks.expert_weights),
    "expert_outputs": Rule("E", blocks.expert_outputs),
    "shared_gate": Rule(r"\gamma", blocks.shared_gate),
    "shared_output": Rule("s", blocks.shared_output),
    "memory": Rule("m", output.memory),
    "cls_embedding": Rule("s", output.cls_embedding),
    "mean_embedding": Rule("s", output.mean_embedding),
    "pooled": Rule("s", output.pooled),
    "transformed": Rule("u", output.transformed),
    "logits": Rule(r"\ell", output.logits),
    "class_logits": Rule("c", output.class_logits),
    "token_logits": Rule("c", output.each_token),
    "span_logits": Rule("s", output.each_token),
    "reset_gate": Rule("r", recurrent.gate("reset_gate")),
    "update_gate": Rule("z", recurrent.gate("update_gate")),
    "candidate": Rule("n", recurrent.candidate),
    "input_gate": Rule("i", recurrent.gate("input_gate")),
    "forget_gate": Rule("f", recurrent.gate("forget_gate")),
    "output_gate": Rule("o", recurrent.gate("output_gate")),
    "cell": Rule("c", recurrent.cell),
    "hidden": Rule("h", recurrent.hidden),
    "annotations": Rule("m", recurrent.annotations),
    "summary": Rule("u", recurrent.summary),
    "start": Rule("s", recurrent.start),
    "context": Rule("a", recurrent.context),
    "readout": Rule("t", recurrent.readout),
}


@dataclass(frozen=True, eq=False)
class Recomputed:
    """A recorded tensor beside the same one computed again in float64 from what went into it.

    Args:
        name: its full name; axes: their names.
        values: as the model computed it; recomputed: from the recorded inputs and the model's parameters.
        difference: the greatest of all cells.
        agrees: the difference is no more than rounding explains.
        edited: an edit replaced it.
    """

    name: str
    axes: tuple[str, ...]
    values: np.ndarray
    recomputed: np.ndarray
    difference: float
    agrees: bool
    edited: bool


@dataclass(frozen=True)
class CellArithmetic:
    """Where one cell's number comes from.

    Args:
        entry: the cell in LaTeX, such as q^{(2)}_{3,7}.
        cell: its formula in symbols and in numbers, and what these make.
        result: that in LaTeX.
        recorded: the value in the trace.
        sources: the recorded tensors that went in, by the letter that the formula gives them.
    """

    entry: str
    cell: Cell
    result: str
    recorded: float
    sources: Mapping[str, str]


def step_of(run: Pass, name: str) -> Computation:
    """Return how a recorded tensor is computed.

    Raises:
        KeyError: no such leaf, or it was not recorded.
    """
    scope, _, leaf = name.rpartition(".")
    site_of(name)
    return RULES[leaf].step(run, scope)


def axes_of(run: Pass, name: str) -> tuple[str, ...]:
    """Return the names of a tensor's axes, as they are in this model.

    Position vectors have one of the batch where its texts differ in them; a factorised embedding has its own width.
    """
    recorded, axes = run.trace[name], site_of(name).axes
    axes = ("batch",) * (recorded.dim() - len(axes)) + axes
    if axes[-1] == "d_model" and recorded.shape[-1] != run.config.d_model:
        return (*axes[:-1], "d_embedding")
    return axes


def values_of(run: Pass, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return a recorded tensor as the model computed it, and the names of its axes."""
    recorded = run.trace[name]
    values = recorded.float() if recorded.is_floating_point() else recorded
    return values.cpu().numpy(), axes_of(run, name)


@torch.inference_mode()
def recompute(run: Pass, name: str) -> Recomputed:
    """Compute a recorded tensor again, in float64, and compare all of it."""
    recorded = run.trace[name]
    whole = step_of(run, name).whole(tuple(recorded.shape))
    difference = apart(recorded, whole)
    rounding = torch.finfo(recorded.dtype).eps if recorded.is_floating_point() else 0.0
    agrees = difference <= ROUNDINGS * rounding * max(1.0, greatest(recorded))
    values, axes = values_of(run, name)
    return Recomputed(name, axes, values, whole.cpu().numpy(), difference, agrees, run.is_edited(name))


def checked(run: Pass, name: str, index: Index) -> Index:
    """Return the shape of a recorded tensor.

    Raises:
        ValueError: the index lies outside.
    """
    shape = tuple(run.trace[name].shape)
    if len(index) != len(shape) or not all(0 <= place < side for place, side in zip(index, shape, strict=True)):
        raise ValueError(f"index={index} must lie within {name} of shape {shape}")
    return shape


def places_of(run: Pass, name: str, index: Index) -> Index:
    """Return the places of an index that a formula writes: not that of the text, nor where there is only one."""
    return tuple(place for axis, place in zip(axes_of(run, name), index, strict=True) if axis not in ("batch", "one"))


@torch.inference_mode()
def explain_cell(run: Pass, name: str, index: Index) -> CellArithmetic:
    """Write the arithmetic of one cell.

    Args:
        index: one number an axis of the recorded tensor.

    Raises:
        ValueError: the index lies outside.
    """
    shape = checked(run, name, index)
    step = step_of(run, name)
    cell = step.cell(index, shape)
    above = entry(RULES[name.rpartition(".")[2]].letter, places_of(run, name, index))
    return CellArithmetic(above, cell, number(cell.value), float(run.trace[name][index]), step.sources)


def tensor_of(*, prompt: Prompt, name: str, target_ids: tuple[int, ...] | None = None) -> Recomputed:
    """Read a text and return one recorded tensor with its check.

    Args:
        name: such as ``encoder.layer0.self_attention.query``.
        target_ids: as in read_through.

    Raises:
        ValueError: as read_through, or there is no such tensor.
    """
    run = read_through(prompt.bundle, prompt.encoding, target_ids=target_ids)
    if name not in run.trace:
        raise ValueError(f"name={name!r} is not recorded; recorded: {', '.join(run.trace)}")
    return recompute(run, name)
