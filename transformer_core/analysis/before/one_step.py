"""One step of a trained recurrent cell, term by term: what the word brings, what the state before it brings.

Elman 1990; Cho et al. 2014, eqs. 5 to 8; Hochreiter and Schmidhuber 1997, section 4.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.before.gates import layer_of, recurrent_model
from transformer_core.analysis.outcome import one_text
from transformer_core.models.recurrent.cells import State
from transformer_core.prompt import Prompt

PARTS = {
    "tanh": ("candidate",),
    "gru": ("reset_gate", "update_gate", "candidate"),
    "lstm": ("input_gate", "forget_gate", "candidate", "output_gate"),
}


@dataclass(frozen=True, eq=False)
class OneStep:
    """One step, in the order of the cell's parts.

    With x the scaled embedding of the token and h the state before it, each part begins as (W x + b) + (U h + c).
    A gate is the sigmoid of that, the candidate its tanh; the candidate of a GRU is tanh(W x + b + r * (U h + c)).

    Shapes:
        from_input: (part, unit), W x + b; from_state: (part, unit), U h + c
        values: (part, unit), after sigmoid or tanh
        before, after: (unit,), the hidden state; of the plain network after is the candidate
        cell_before, cell_after: (unit,), of an LSTM; of another unit they are empty

    Args:
        tokens: of the sentence, special ones included.
        unit: "tanh", "gru" or "lstm".
        parts: names of gates and candidate, as in SITES.
        read_before: the place that the direction read just before; -1 where there is none and the state is 0.
    """

    tokens: tuple[str, ...]
    unit: str
    parts: tuple[str, ...]
    from_input: np.ndarray
    from_state: np.ndarray
    values: np.ndarray
    before: np.ndarray
    after: np.ndarray
    cell_before: np.ndarray
    cell_after: np.ndarray
    read_before: int


@torch.inference_mode()
def one_step(*, prompt: Prompt, place: int, direction: str = "forward") -> OneStep:
    """Read a sentence with a trained recurrent layer up to a place, and take that step apart.

    Args:
        prompt: to a seq2seq, of which the encoder is read, or an lm.
        place: of the token whose step it is, counted from 0 in the sentence's order.
        direction: "forward", or "backward" where an encoder reads both ways.

    Raises:
        ValueError: the bundle is of another kind, there is no such direction, or no such place.
    """
    model = recurrent_model(prompt.bundle)
    layer = layer_of(model, direction)
    encoding = prompt.fitting.encoding
    if not 0 <= place < len(encoding):
        raise ValueError(f"place={place} must be from 0 to {len(encoding) - 1}, the tokens of the text")
    ids = one_text(prompt.bundle, encoding)
    x = model.embedding(ids) * model.scale  # (1, pos, d_model)
    backward = direction == "backward"
    earlier = x[:, place + 1 :] if backward else x[:, :place]
    state: State = layer(earlier, backward=backward)[1] if earlier.shape[1] else layer.cell.initial_state(x)
    here = x[:, place : place + 1]
    after = layer(here, state)[1]
    unit = model.config.unit
    from_input, from_state = layer.cell.input_proj(here[:, 0]), layer.cell.hidden_proj(state[0])
    inputs, states = (row.view(len(PARTS[unit]), -1) for row in (from_input, from_state))  # (part, unit)
    values = _values(unit, inputs, states)
    cells = (state[1], after[1]) if unit == "lstm" else (x.new_zeros(1, 0),) * 2
    read_before = place + 1 if backward else place - 1
    return OneStep(
        tokens=encoding.labels,
        unit=unit,
        parts=PARTS[unit],
        from_input=_array(inputs),
        from_state=_array(states),
        values=_array(values),
        before=_array(state[0][0]),
        after=_array(after[0][0]),
        cell_before=_array(cells[0][0]),
        cell_after=_array(cells[1][0]),
        read_before=-1 if read_before >= len(encoding) else read_before,
    )


def _values(unit: str, inputs: Tensor, states: Tensor) -> Tensor:
    """Return gates and candidate of one step: (part, unit) each."""
    if unit == "gru":
        gates = torch.sigmoid(inputs[:2] + states[:2])
        return torch.cat((gates, torch.tanh(inputs[2] + gates[0] * states[2])[None]))
    values = torch.sigmoid(inputs + states)
    candidate = PARTS[unit].index("candidate")
    values[candidate] = torch.tanh(inputs[candidate] + states[candidate])
    return values


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.cpu().double().numpy()
