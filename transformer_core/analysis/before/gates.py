"""What the gates of a trained encoder do with a sentence, and how much of each word is left at its end.

Cho et al. 2014, eqs. 5 to 8; Hochreiter and Schmidhuber 1997, section 4.
"""

from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.bundle import Bundle
from transformer_core.models.recurrent import Seq2Seq
from transformer_core.probe import capture
from transformer_core.trace import Trace

GATES = {"tanh": (), "gru": ("reset_gate", "update_gate"), "lstm": ("input_gate", "forget_gate", "output_gate")}
DIRECTIONS = ("forward", "backward")


@dataclass(frozen=True, eq=False)
class SentenceGates:
    """One direction of a recurrent encoder on one sentence; positions in the sentence's order, whatever the direction.

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


def gated_encoder(bundle: Bundle) -> Seq2Seq:
    """Return the bundle's model, of which the encoder has gates.

    Raises:
        ValueError: the bundle is of another kind, or its encoder is the plain recurrent network.
    """
    if not isinstance(bundle.model, Seq2Seq):
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}; it must be a seq2seq")
    if not GATES[bundle.model.config.unit]:
        raise ValueError(
            f"bundle={bundle.name!r} has an encoder of unit='tanh', without gates; it must have gru or lstm"
        )
    return bundle.model


def gates_of_sentence(*, bundle: Bundle, text: str, n_tokens: int, direction: str = "forward") -> SentenceGates:
    """Read a sentence with a trained recurrent encoder and return its gates.

    Args:
        bundle: a seq2seq.
        n_tokens: most tokens of the text to read.
        direction: "forward", or "backward" where the encoder reads both ways.

    Raises:
        ValueError: as gated_encoder, or there is no such direction.
    """
    model = gated_encoder(bundle)
    there = DIRECTIONS if model.config.bidirectional else DIRECTIONS[:1]
    if direction not in there:
        raise ValueError(f"direction={direction!r} must be one of {', '.join(there)}")
    encoding = bundle.tokenizer.encode(text, max_len=min(n_tokens, model.config.max_len))
    ids = torch.tensor([encoding.ids], device=next(model.parameters()).device)
    scope = f"encoder.{direction}." if model.config.bidirectional else "encoder."
    _, trace = capture(model, ids, ids[:, :1], sites=(f"{scope}*",))
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
    return trace[name][0].double().cpu().numpy()


def _kept_after(kept: np.ndarray, *, backward: bool) -> np.ndarray:
    """Return the product of what all later positions keep, (pos, unit)."""
    in_order = kept[::-1] if backward else kept
    after = np.ones_like(in_order)
    after[:-1] = np.cumprod(in_order[:0:-1], axis=0)[::-1]
    return after[::-1] if backward else after
