"""The decoder: a recurrent layer that is given a context at each position, and scores the word after it.

Cho et al. 2014, section 2.2 (one context for all positions); Bahdanau et al. 2015, appendix A.2 (one for each).
Read next: seq2seq.py.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from transformer_core.layers.dropout import Dropout
from transformer_core.models.recurrent.alignment import Alignment, Source
from transformer_core.models.recurrent.cells import CELLS, State, widened
from transformer_core.models.recurrent.config import RecurrentConfig
from transformer_core.models.recurrent.recording import Steps
from transformer_core.packed_linear import Linear
from transformer_core.probe import SILENT, Probe


@dataclass(frozen=True, eq=False)
class Place:
    """Where a decoder stands between two words: all that it knows of the source and of what it wrote.

    Shapes:
        state: n_states tensors of (batch, d_hidden)
        summary: (batch, d_memory), the ends of the encoder; the context of a decoder without attention

    Args:
        source: what the alignment reads; None without attention.
    """

    state: State
    summary: Tensor
    source: Source | None

    def rows(self, rows: Tensor) -> "Place":
        """Return the places of some rows of the batch, in their order, each as often as it is named."""
        source = None if self.source is None else self.source.rows(rows)
        return replace(self, state=tuple(part[rows] for part in self.state), summary=self.summary[rows], source=source)


class RecurrentDecoder(nn.Module):
    """A cell that reads the word before and a context, and a readout of state, context and word.

    context  c_i = the alignment's mixture, asked for by the state before; without attention, the summary
    hidden   s_i = cell(E y_(i-1) and c_i, s_(i-1)),  s_0 = tanh(W summary + b)
    readout  t_i = tanh(W [s_i; c_i; E y_(i-1)] + b)

    Departures from Bahdanau et al.: the summary holds the ends of both directions, not of the backward one alone, and
    the readout is a tanh, not a maxout.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.cell = CELLS[config.unit](config.d_model, config.d_hidden)
        self.context_proj = Linear(config.d_memory, self.cell.parts * config.d_hidden, bias=False)
        self.start_proj = Linear(config.d_memory, config.d_hidden)
        self.alignment = Alignment(config) if config.attention is not None else None
        self.readout_proj = Linear(config.d_hidden + config.d_memory + config.d_model, config.d_model)
        self.dropout = Dropout(config.dropout)

    def start(self, annotations: Tensor, summary: Tensor, real: Tensor | None, *, probe: Probe = SILENT) -> Place:
        """Return the place before the first target word.

        Shapes:
            annotations: (batch, source_pos, d_memory); summary: (batch, d_memory); real: (batch, source_pos)
        """
        start = probe.tap("start", torch.tanh(widened(self.start_proj(summary))))  # (batch, d_hidden)
        state = (start, *self.cell.beginning(summary)[1:])
        source = None if self.alignment is None else self.alignment.read(annotations, real)
        return Place(state, summary, source)

    def forward(self, embedded: Tensor, place: Place, *, probe: Probe = SILENT) -> tuple[Tensor, Place]:
        """Read target words on from a place.

        Shapes:
            embedded: (batch, target_pos, d_model)
            returns: the readout (batch, target_pos, d_model), and the place after the last word
        """
        inputs = widened(self.cell.input_proj(embedded)).unbind(1)  # target_pos times (batch, parts * d_hidden)
        steps, aligning = Steps(probe), Steps(probe.at("alignment"), axis=2)
        state, contexts, hidden = place.state, [], []
        for word in inputs:
            context = place.summary
            if self.alignment is not None and place.source is not None:
                context = self.alignment.step(state[0], place.source, aligning)
            context = steps.tap("context", context)  # (batch, d_memory)
            state = self.cell.step(word + self.context_proj(context), state, steps)
            state = (steps.tap("hidden", state[0]), *state[1:])
            contexts.append(context)
            hidden.append(state[0])
        aligning.close()
        steps.close()
        parts = (torch.stack(hidden, 1), torch.stack(contexts, 1), embedded)
        readout = torch.tanh(self.readout_proj(torch.cat(parts, -1)))
        return self.dropout(probe.tap("readout", readout)), replace(place, state=state)
