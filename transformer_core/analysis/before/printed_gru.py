"""The GRU as it is often printed, U (r * h) + c, beside what its code computes, r * (U h + c), with the same weights.

Cho et al. 2014, eq. 8, has the first (without biases); torch.nn.GRU, and most code, the second, which needs one matrix
product a step.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.before.gates import layer_of, recurrent_model
from transformer_core.analysis.outcome import one_text
from transformer_core.models.recurrent.cells import GruCell, State, StepRecorder
from transformer_core.models.recurrent.layers import Recurrent
from transformer_core.prompt import Prompt


class PrintedGruCell(GruCell):
    """A GRU whose reset gate acts before the product, on the state alone: n = tanh(W_n x + U_n (r * h) + b_n + c_n).

    Textbooks print one bias, which no gate touches; here it is the sum of GruCell's two.
    """

    def step(self, inputs: Tensor, state: State, steps: StepRecorder) -> State:
        """Return the state after one position; Cell.step gives the shapes."""
        (hidden,) = state
        size = 2 * self.d_hidden
        weight = self.hidden_proj.weight
        if self.hidden_proj.bias is not None:
            inputs = inputs + self.hidden_proj.bias
        gates = torch.sigmoid(inputs[:, :size] + hidden @ weight[:size].T)
        reset, update = gates.chunk(2, -1)  # (batch, d_hidden) each
        candidate = torch.tanh(inputs[:, size:] + (reset * hidden) @ weight[size:].T)
        return (torch.lerp(candidate, hidden, update),)


@dataclass(frozen=True, eq=False)
class PrintedGru:
    """Both states after each position, in the sentence's order.

    Shapes:
        computed, printed: (pos, unit), in [-1, 1]
        greatest, mean: (pos,), of the differences of all units

    Args:
        tokens: of the sentence, special ones included.
        last: the position that the direction reads last.
    """

    tokens: tuple[str, ...]
    computed: np.ndarray
    printed: np.ndarray
    greatest: np.ndarray
    mean: np.ndarray
    last: int


@torch.inference_mode()
def printed_gru(*, prompt: Prompt, direction: str = "forward") -> PrintedGru:
    """Read a sentence with a trained GRU, and again with the same weights as the printed formula has them.

    Departure: the printed version was not trained; a model that was would have other weights.

    Args:
        prompt: to a seq2seq, of which the encoder is read, or an lm; its unit is gru.
        direction: "forward", or "backward" where an encoder reads both ways.

    Raises:
        ValueError: the bundle is of another kind or unit, or there is no such direction.
    """
    model = recurrent_model(prompt.bundle)
    layer = layer_of(model, direction)
    if not isinstance(layer.cell, GruCell):
        raise ValueError(f"bundle={prompt.bundle.name!r} is of unit={model.config.unit!r}; it must be gru")
    encoding = prompt.fitting.encoding
    ids = one_text(prompt.bundle, encoding)
    twin = PrintedGruCell(layer.cell.d_input, layer.cell.d_hidden)
    twin.input_proj, twin.hidden_proj = layer.cell.input_proj, layer.cell.hidden_proj
    backward = direction == "backward"
    embedded = model.embedding(ids) * model.scale
    computed, printed = (
        one(embedded, backward=backward)[0][0].cpu().double().numpy() for one in (layer, Recurrent(twin))
    )
    apart = np.abs(computed - printed)
    last = 0 if backward else len(encoding) - 1
    return PrintedGru(encoding.labels, computed, printed, apart.max(1), apart.mean(1), last)
