"""Recurrent layers: a cell applied along a sentence, in one direction or in both; padding is skipped.

Both directions: Schuster and Paliwal 1997.
"""

import torch
from torch import Tensor, nn

from transformer_core.layers.embeddings import Embedding, OneHot
from transformer_core.layers.initialization import initialize
from transformer_core.models.recurrent.cells import (
    CELLS,
    Cell,
    GruCell,
    LstmCell,
    State,
    StepRecorder,
    TanhCell,
    initialize_cell,
    widened,
)
from transformer_core.probe import SILENT, Probe


class Recurrent(nn.Module):
    """One cell, the same at every position, each time with the state of the position before."""

    def __init__(self, cell: Cell) -> None:
        super().__init__()
        self.cell = cell

    def forward(
        self,
        x: Tensor,
        state: State | None = None,
        *,
        real: Tensor | None = None,
        backward: bool = False,
        probe: Probe = SILENT,
    ) -> tuple[Tensor, State]:
        """Read a batch from its first position to its last, or the other way round.

        Shapes:
            x: (batch, pos, d_input)
            state: n_states tensors of (batch, d_hidden); zeros where it is not given
            real: (batch, pos), booleans, False at padding, where the state stays and the output is 0
            returns: the hidden states (batch, pos, d_hidden), and the state after the last step

        Args:
            backward: read from the last position to the first.
        """
        inputs = widened(self.cell.input_proj(x)).unbind(1)  # pos times (batch, parts * d_hidden)
        state = self.cell.initial_state(x) if state is None else state
        steps, hidden = StepRecorder(probe), []
        for position in reversed(range(len(inputs))) if backward else range(len(inputs)):
            new = self.cell.step(inputs[position], state, steps)
            if real is not None:
                here = real[:, position, None]  # (batch, 1)
                new = tuple(torch.where(here, ours, before) for ours, before in zip(new, state, strict=True))
            state = (steps.tap("hidden", new[0]), *new[1:])
            hidden.append(state[0])
        steps.close(backward=backward)
        outputs = torch.stack(hidden[::-1] if backward else hidden, 1)  # (batch, pos, d_hidden)
        return (outputs if real is None else outputs * real[:, :, None]), state


class Rnn(Recurrent):
    """The plain recurrent network."""

    def __init__(self, d_input: int, d_hidden: int) -> None:
        super().__init__(TanhCell(d_input, d_hidden))


class Gru(Recurrent):
    """A GRU of one layer."""

    def __init__(self, d_input: int, d_hidden: int) -> None:
        super().__init__(GruCell(d_input, d_hidden))


class Lstm(Recurrent):
    """An LSTM of one layer."""

    def __init__(self, d_input: int, d_hidden: int) -> None:
        super().__init__(LstmCell(d_input, d_hidden))


class Bidirectional(nn.Module):
    """Two layers that share nothing: one reads forward, one backward, and their outputs are concatenated."""

    def __init__(self, unit: str, d_input: int, d_hidden: int) -> None:
        super().__init__()
        self.forward_layer = Recurrent(CELLS[unit](d_input, d_hidden))
        self.backward_layer = Recurrent(CELLS[unit](d_input, d_hidden))

    def forward(self, x: Tensor, *, real: Tensor | None = None, probe: Probe = SILENT) -> tuple[Tensor, State]:
        """Read a batch both ways.

        Shapes:
            x: (batch, pos, d_input); real: (batch, pos), as in Recurrent
            returns: (batch, pos, 2 * d_hidden), and the last states (batch, 2 * d_hidden), forward first
        """
        ahead, last = self.forward_layer(x, real=real, probe=probe.at("forward"))
        back, first = self.backward_layer(x, real=real, backward=True, probe=probe.at("backward"))
        ends = tuple(torch.cat(pair, -1) for pair in zip(last, first, strict=True))
        return torch.cat((ahead, back), -1), ends


def make_layer(unit: str, d_input: int, d_hidden: int, *, bidirectional: bool) -> Bidirectional | Recurrent:
    """Return a layer that reads one way or both ways."""
    return Bidirectional(unit, d_input, d_hidden) if bidirectional else Recurrent(CELLS[unit](d_input, d_hidden))


@torch.no_grad()
def initialize_recurrent(model: nn.Module, embedding: Embedding | OneHot, deviation: float | None) -> None:
    """Fill every parameter of a recurrent model with its starting value.

    Without a deviation, linear maps are Glorot's, cells as initialize_cell has them, and embeddings, which are
    multiplied by sqrt(d_model), start with deviation d_model^-0.5. With one, every matrix is drawn from
    N(0, deviation^2), and biases are 0.
    """
    initialize(model)
    if isinstance(embedding, Embedding):
        nn.init.normal_(embedding.weight, std=embedding.weight.shape[1] ** -0.5)
    for module in model.modules():
        if isinstance(module, Cell):
            initialize_cell(module)
    if deviation is not None:
        for parameter in model.parameters():
            parameter.zero_() if parameter.dim() == 1 else parameter.normal_(0.0, deviation)
