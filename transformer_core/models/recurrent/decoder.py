"""The recurrent decoder and its alignment, the first attention: which source position each target word is read from.

Alignment: Bahdanau et al. 2015, section 3.1 and appendix A.1.2. Decoder: Cho et al. 2014, section 2.2 (one context for
all positions); Bahdanau et al. 2015, appendix A.2 (one for each).
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from transformer_core.layers.attention import AdditiveScores, dot_product_scores, masked_softmax
from transformer_core.layers.dropout import Dropout
from transformer_core.layers.masks import additive_mask
from transformer_core.models.recurrent.cells import CELLS, State, StepRecorder, widened
from transformer_core.models.recurrent.config import RecurrentConfig
from transformer_core.packed_linear import Linear
from transformer_core.probe import SILENT, Probe


@dataclass(frozen=True, eq=False)
class Source:
    """What an alignment reads of the source, the same at every target position.

    Shapes:
        keys: (batch, 1, source_pos, d_hidden); values: (batch, source_pos, d_memory)
        mask: (batch, 1, 1, source_pos), to be added to scores, or None where there is no padding
    """

    keys: Tensor
    values: Tensor
    mask: Tensor | None

    def rows(self, rows: Tensor) -> "Source":
        """Return the sources at some places of the batch, in their order, each as often as it is named."""
        mask = None if self.mask is None else self.mask[rows]
        return replace(self, keys=self.keys[rows], values=self.values[rows], mask=mask)


class Alignment(nn.Module):
    """softmax_j(score(s, h_j)), and the mixture of the h_j that it gives.

    additive     v . tanh(W s + U h_j), the paper's
    dot_product  (W s) . (U h_j) / sqrt(d_hidden)

    Departure: the dot product of Luong et al. 2015 has the decoder's new state as query; here both scorings have
    the state before, so that they differ in the score alone.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.query_proj = Linear(config.d_hidden, config.d_hidden)
        self.key_proj = Linear(config.d_memory, config.d_hidden, bias=False)
        self.additive_scores = AdditiveScores(1, config.d_hidden) if config.attention == "additive" else None

    def read(self, annotations: Tensor, real: Tensor | None) -> Source:
        """Return what step needs of the source.

        Shapes:
            annotations: (batch, source_pos, d_memory); real: (batch, source_pos)
        """
        mask = None if real is None else additive_mask(real[:, None, None], annotations.dtype)
        return Source(widened(self.key_proj(annotations))[:, None], annotations, mask)

    def step(self, hidden: Tensor, source: Source, steps: StepRecorder) -> Tensor:
        """Return the context of one target position.

        Shapes:
            hidden: (batch, d_hidden), the decoder's state before it
            returns: (batch, d_memory)
        """
        query = widened(self.query_proj(hidden))[:, None, None]  # (batch, 1, 1, d_hidden)
        score = dot_product_scores if self.additive_scores is None else self.additive_scores
        scores = steps.tap("scores", widened(score(query, source.keys))[:, :, 0])  # (batch, 1, source_pos)
        masked_scores = scores if source.mask is None else scores + source.mask[:, :, 0]
        masked_scores = steps.tap("masked_scores", masked_scores)
        weights = steps.tap("weights", masked_softmax(masked_scores, some_hidden=False))  # (batch, 1, source_pos)
        return torch.bmm(weights, source.values)[:, 0]


@dataclass(frozen=True, eq=False)
class Place:
    """The decoder's state between two words: all that it knows of the source and of what it wrote.

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

    context  c_i = the alignment's mixture, queried by the state before; without attention, the summary
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
        state = (start, *self.cell.initial_state(summary)[1:])
        source = None if self.alignment is None else self.alignment.read(annotations, real)
        return Place(state, summary, source)

    def forward(self, embedded: Tensor, place: Place, *, probe: Probe = SILENT) -> tuple[Tensor, Place]:
        """Read target words on from a place.

        Shapes:
            embedded: (batch, target_pos, d_model)
            returns: the readout (batch, target_pos, d_model), and the place after the last word
        """
        inputs = widened(self.cell.input_proj(embedded)).unbind(1)  # target_pos times (batch, parts * d_hidden)
        steps, aligning = StepRecorder(probe), StepRecorder(probe.at("alignment"), axis=2)
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
