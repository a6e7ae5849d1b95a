"""Recurrent cells, three of them, and the recorder that shows the steps of a loop over positions to the probe.

Elman 1990 (the plain cell); Cho et al. 2014 (GRU); Hochreiter and Schmidhuber 1997 (LSTM), with the forget gate of Gers
et al. 2000.
"""

import torch
from torch import Tensor, nn

from transformer_core.layers.initialization import orthogonal_
from transformer_core.packed_linear import Linear
from transformer_core.probe import SILENT, Probe


class StepRecorder:
    """Hand each step's tensors to a probe, and record them side by side when the loop is done.

    An edit is called once per position, with a tensor that has one position, since later positions depend on it.

    Args:
        probe: in the scope of the loop.
        axis: which axis of the recorded tensors is that of positions.
    """

    def __init__(self, probe: Probe, axis: int = 1) -> None:
        self._probe, self._axis, self._silent = probe, axis, probe is SILENT
        self._kept: dict[str, list[Tensor]] = {}

    def tap(self, leaf: str, tensor: Tensor) -> Tensor:
        """Return a step's tensor, which lacks the axis of positions, edited where the caller asked for an edit."""
        if self._silent or not self._probe.wants(leaf):
            return tensor
        used = self._probe.edit(leaf, tensor.unsqueeze(self._axis))
        self._kept.setdefault(leaf, []).append(used)
        return used.squeeze(self._axis)

    def close(self, *, backward: bool = False) -> None:
        """Record what was tapped, in the order of positions; `backward` says that the loop began at the last."""
        for leaf, steps in self._kept.items():
            self._probe.record(leaf, *(steps[::-1] if backward else steps), axis=self._axis)


State = tuple[Tensor, ...]


def widened(x: Tensor) -> Tensor:
    """Return x in float32 at least: values carried from step to step stay exact where products are in 16 bits."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


class Cell(nn.Module):
    """The base of all cells: one map of the input and one of the hidden state, with a block of rows for each part.

    The input's part is computed for all positions at once; only the hidden state's has to wait for the step before.

    Args:
        d_input: width of an input.
        d_hidden: width of the hidden state.
        parts: how many vectors of d_hidden a step needs: its gates and its candidate.
        one_bias: without the hidden state's bias c, as textbooks have it; the input's bias b stays.
    """

    n_states = 1

    def __init__(self, d_input: int, d_hidden: int, parts: int, *, one_bias: bool = False) -> None:
        super().__init__()
        self.d_input, self.d_hidden, self.parts = d_input, d_hidden, parts
        self.input_proj = Linear(d_input, parts * d_hidden)
        self.hidden_proj = Linear(d_hidden, parts * d_hidden, bias=not one_bias)

    def initial_state(self, inputs: Tensor) -> State:
        """Return the state before the first position: zeros.

        Shapes:
            inputs: (batch, ...); returns: n_states tensors of (batch, d_hidden), the hidden state first
        """
        return (widened(inputs.new_zeros(inputs.shape[0], self.d_hidden)),) * self.n_states

    def step(self, inputs: Tensor, state: State, steps: StepRecorder) -> State:
        """Return the state after one position.

        Shapes:
            inputs: (batch, parts * d_hidden), an input after input_proj
            state, returns: n_states tensors of (batch, d_hidden), the hidden state first
        """
        raise NotImplementedError


class TanhCell(Cell):
    """h' = tanh(W x + b + U h + c): the plain recurrent network, without gates (Elman 1990)."""

    def __init__(self, d_input: int, d_hidden: int, *, one_bias: bool = False) -> None:
        super().__init__(d_input, d_hidden, 1, one_bias=one_bias)

    def step(self, inputs: Tensor, state: State, steps: StepRecorder) -> State:
        """Return the state after one position; Cell.step gives the shapes."""
        return (torch.tanh(inputs + self.hidden_proj(state[0])),)


class GruCell(Cell):
    """A hidden state of which a gate renews a share at each position (Cho et al. 2014, eqs. 5 to 8).

    reset      r = sigmoid(W_r x + b_r + U_r h + c_r)
    update     z = sigmoid(W_z x + b_z + U_z h + c_z)
    candidate  n = tanh(W_n x + b_n + r * (U_n h + c_n))
    hidden     h' = (1 - z) * n + z * h

    Departure, as in torch.nn.GRU: the reset gate acts after the matrix product, where the paper has U_n (r * h). Here
    and in the paper z near 1 keeps the old state; in others (Chung et al. 2014) it lets in the new.
    """

    def __init__(self, d_input: int, d_hidden: int, *, one_bias: bool = False) -> None:
        super().__init__(d_input, d_hidden, 3, one_bias=one_bias)

    def step(self, inputs: Tensor, state: State, steps: StepRecorder) -> State:
        """Return the state after one position; Cell.step gives the shapes."""
        (hidden,) = state
        from_hidden = self.hidden_proj(hidden)  # (batch, 3 * d_hidden)
        gates = torch.sigmoid(inputs[:, : 2 * self.d_hidden] + from_hidden[:, : 2 * self.d_hidden])
        reset, update = gates.chunk(2, -1)  # (batch, d_hidden) each
        reset, update = steps.tap("reset_gate", reset), steps.tap("update_gate", update)
        candidate = torch.tanh(inputs[:, 2 * self.d_hidden :] + reset * from_hidden[:, 2 * self.d_hidden :])
        candidate = steps.tap("candidate", candidate)
        return (torch.lerp(candidate, hidden, update),)


class LstmCell(Cell):
    """A cell state beside the hidden one, which gates add to and take from (Hochreiter and Schmidhuber 1997).

    input      i = sigmoid(W_i x + b_i + U_i h + c_i)
    forget     f = sigmoid(W_f x + b_f + U_f h + c_f)
    candidate  g = tanh(W_g x + b_g + U_g h + c_g)
    output     o = sigmoid(W_o x + b_o + U_o h + c_o)
    cell       c' = f * c + i * g
    hidden     h' = o * tanh(c')

    Departure, as in torch.nn.LSTM: the forget gate is of Gers et al. 2000, and there are no peepholes.
    """

    n_states = 2

    def __init__(self, d_input: int, d_hidden: int, *, one_bias: bool = False) -> None:
        super().__init__(d_input, d_hidden, 4, one_bias=one_bias)

    def step(self, inputs: Tensor, state: State, steps: StepRecorder) -> State:
        """Return the state after one position; Cell.step gives the shapes."""
        hidden, cell = state
        into, forget, candidate, out = (inputs + self.hidden_proj(hidden)).chunk(4, -1)  # (batch, d_hidden) each
        into = steps.tap("input_gate", torch.sigmoid(into))
        forget = steps.tap("forget_gate", torch.sigmoid(forget))
        candidate = steps.tap("candidate", torch.tanh(candidate))
        out = steps.tap("output_gate", torch.sigmoid(out))
        cell = steps.tap("cell", forget * cell + into * candidate)
        return out * torch.tanh(cell), cell


@torch.no_grad()
def initialize_cell(cell: Cell, generator: torch.Generator | None = None) -> None:
    """Fill a cell's matrices as Bahdanau et al. 2015, appendix B.1, the recurrent ones orthogonal; biases are 0.

    Departure: the input's matrices are Glorot's uniform, gate by gate, not normal.
    """
    for weight in cell.input_proj.weight.chunk(cell.parts):
        nn.init.xavier_uniform_(weight, generator=generator)
    for weight in cell.hidden_proj.weight.chunk(cell.parts):
        orthogonal_(weight, generator=generator)
    for bias in (cell.input_proj.bias, cell.hidden_proj.bias):
        if bias is not None:
            bias.zero_()


CELLS: dict[str, type[TanhCell] | type[GruCell] | type[LstmCell]] = {"tanh": TanhCell, "gru": GruCell, "lstm": LstmCell}
