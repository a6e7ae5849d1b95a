"""What the gates and states of a trained recurrent layer do with a sentence, and how much of it is left at its end.

Cho et al. 2014, eqs. 5 to 8; Hochreiter and Schmidhuber 1997, section 4.
"""

from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.outcome import one_text
from transformer_core.bundle import Bundle
from transformer_core.models.recurrent import RecurrentLm, Seq2Seq
from transformer_core.models.recurrent.layers import Recurrent
from transformer_core.probe import capture
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding
from transformer_core.trace import Trace

GATES = {"tanh": (), "gru": ("reset_gate", "update_gate"), "lstm": ("input_gate", "forget_gate", "output_gate")}
DIRECTIONS = ("forward", "backward")
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class SentenceGates:
    """One direction of a recurrent layer on one sentence; positions in the sentence's order, whatever the direction.

    Shapes:
        gates: (gate, pos, unit), in [0, 1]
        candidate, hidden, kept, surviving: (pos, unit)
        share: (pos,)

    Args:
        tokens: of the sentence, special ones included.
        names: of the gates, as in SITES.
        hidden: the state that each position passes on.
        kept: how much of the state before it a position keeps: the update gate of a GRU, the forget gate of an LSTM.
        surviving: how much of a position's candidate is in the last state: what was let in there, times all that was
            kept after it. Over all positions, surviving times candidate sums to the last hidden state of a GRU, and to
            the last cell of an LSTM.
        share: the mean of surviving over units, of all positions together 1.
        last: the position that the direction reads last.
    """

    tokens: tuple[str, ...]
    names: tuple[str, ...]
    gates: np.ndarray
    candidate: np.ndarray
    hidden: np.ndarray
    kept: np.ndarray
    surviving: np.ndarray
    share: np.ndarray
    last: int


@dataclass(frozen=True, eq=False)
class SentenceStates:
    """What one direction of a recurrent layer passes on at each position, in the sentence's order.

    Shapes:
        hidden: (pos, unit), in [-1, 1]
        cell: (pos, unit), of an LSTM; of another layer it has no position
        alike: (pos,), the cosine of the hidden state with the one read just before; not a number for the first
        moved: (unit,), how much a unit of the hidden state changes from one position to the next, in the mean

    Args:
        tokens: of the sentence, special ones included.
    """

    tokens: tuple[str, ...]
    hidden: np.ndarray
    cell: np.ndarray
    alike: np.ndarray
    moved: np.ndarray


def recurrent_model(bundle: Bundle) -> Seq2Seq | RecurrentLm:
    """Return the bundle's model; ValueError where it is not recurrent."""
    return bundle.model_as(Seq2Seq, RecurrentLm)


def gated_model(bundle: Bundle) -> Seq2Seq | RecurrentLm:
    """Return the bundle's model, whose encoder, or whose one layer, has gates.

    Raises:
        ValueError: the bundle is of another kind, or it is the plain recurrent network.
    """
    model = recurrent_model(bundle)
    if not GATES[model.config.unit]:
        raise ValueError(f"bundle={bundle.name!r} is of unit='tanh', without gates; it must have gru or lstm")
    return model


def directions_of(model: Seq2Seq | RecurrentLm) -> tuple[str, ...]:
    """Return the directions in which a model reads."""
    both = isinstance(model, Seq2Seq) and model.config.bidirectional
    return DIRECTIONS if both else DIRECTIONS[:1]


def require_direction(model: Seq2Seq | RecurrentLm, direction: str) -> None:
    """Check that a model reads in a direction.

    Raises:
        ValueError: it does not.
    """
    there = directions_of(model)
    if direction not in there:
        raise ValueError(f"direction={direction!r} must be one of {', '.join(there)}")


def layer_of(model: Seq2Seq | RecurrentLm, direction: str) -> Recurrent:
    """Return the layer that reads in a direction.

    Raises:
        ValueError: there is none.
    """
    require_direction(model, direction)
    layer = model.recurrent if isinstance(model, RecurrentLm) else model.encoder
    if isinstance(layer, Recurrent):
        return layer
    return layer.backward_layer if direction == "backward" else layer.forward_layer


def _read(prompt: Prompt, direction: str) -> tuple[Encoding, Trace, str]:
    """Read a sentence and return it, what was recorded of the direction, and the scope of its sites."""
    model = recurrent_model(prompt.bundle)
    require_direction(model, direction)
    encoding = prompt.fitting.encoding
    ids = one_text(prompt.bundle, encoding)
    if isinstance(model, RecurrentLm):
        scope, inputs = "recurrent.", (ids,)
    else:
        scope = f"encoder.{direction}." if model.config.bidirectional else "encoder."
        inputs = (ids, ids[:, :1])
    return encoding, capture(model, *inputs, sites=(f"{scope}*",))[1], scope


def states_of_sentence(*, prompt: Prompt, direction: str = "forward") -> SentenceStates:
    """Read a sentence with a trained recurrent layer and return the states that it passes on.

    Args:
        prompt, direction: as of gates_of_sentence; the layer may have no gates.

    Raises:
        ValueError: the bundle is of another kind, or there is no such direction.
    """
    encoding, trace, scope = _read(prompt, direction)
    hidden = _array(trace, f"{scope}hidden")
    in_order = hidden[::-1] if direction == "backward" else hidden
    norms = np.linalg.norm(in_order, axis=1)
    cosines = (in_order[1:] * in_order[:-1]).sum(1) / np.maximum(norms[1:] * norms[:-1], TINY)
    alike = np.concatenate([[np.nan], cosines])
    return SentenceStates(
        tokens=encoding.labels,
        hidden=hidden,
        cell=_array(trace, f"{scope}cell") if f"{scope}cell" in trace else np.zeros((0, hidden.shape[1])),
        alike=alike[::-1] if direction == "backward" else alike,
        moved=np.abs(np.diff(in_order, axis=0, prepend=0)).mean(0),
    )


def gates_of_sentence(*, prompt: Prompt, direction: str = "forward") -> SentenceGates:
    """Read a sentence with a trained recurrent layer and return its gates.

    Args:
        prompt: to a seq2seq, of which the encoder is read, or an lm.
        direction: "forward", or "backward" where an encoder reads both ways.

    Raises:
        ValueError: as gated_model, or there is no such direction.
    """
    model = gated_model(prompt.bundle)
    encoding, trace, scope = _read(prompt, direction)
    names = GATES[model.config.unit]
    gates = np.stack([_array(trace, scope + name) for name in names])  # (gate, pos, unit)
    backward = direction == "backward"
    if model.config.unit == "gru":
        kept = gates[1]
        let_in = 1 - kept
    else:
        let_in, kept = gates[0], gates[1]
    surviving = let_in * _kept_after(kept, backward=backward)
    share = surviving.mean(1)
    return SentenceGates(
        tokens=encoding.labels,
        names=names,
        gates=gates,
        candidate=_array(trace, f"{scope}candidate"),
        hidden=_array(trace, f"{scope}hidden"),
        kept=kept,
        surviving=surviving,
        share=share / share.sum(),
        last=0 if backward else len(encoding) - 1,
    )


def _array(trace: Trace, name: str) -> np.ndarray:
    return trace[name][0].cpu().double().numpy()


def _kept_after(kept: np.ndarray, *, backward: bool) -> np.ndarray:
    """Return the product of what all later positions keep, (pos, unit)."""
    in_order = kept[::-1] if backward else kept
    after = np.ones_like(in_order)
    after[:-1] = np.cumprod(in_order[:0:-1], axis=0)[::-1]
    return after[::-1] if backward else after
