"""How far back does a gradient reach? Through every step of a recurrent network, or straight to the word by attention.

Bengio et al. 1994 and Pascanu et al. 2013 (what the steps multiply together); Vaswani et al. 2017, section 4 and
table 1 (the length of the path).
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.before.gates import layer_of, recurrent_model
from transformer_core.analysis.outcome import one_text
from transformer_core.layers.attention import MultiHeadAttention
from transformer_core.layers.initialization import initialize
from transformer_core.models.recurrent.cells import CELLS, initialize_cell
from transformer_core.models.recurrent.layers import Recurrent
from transformer_core.prompt import Prompt

SYSTEMS = ("plain", "gru", "lstm", "attention")
LONGEST, WIDEST = 256, 64
SEQUENCES = 4


@dataclass(frozen=True, eq=False)
class GradientReach:
    """How much the last output depends on an input, by the number of positions between them.

    Shapes:
        distances: (distance,), from 0, the last position itself
        norms: (system, distance), Frobenius norm of d output_T / d input_(T - distance), the root of the mean of its
            square over sequences
        relative: the same, divided by that at distance 0

    Args:
        systems: "plain", "gru", "lstm" (the cells, the matrices between states orthogonal times `gain`) and
            "attention" (one layer of self-attention, four heads).
        half: the first distance at which a system has less than half of its norm at distance 0; -1 where none has.
    """

    systems: tuple[str, ...]
    distances: np.ndarray
    norms: np.ndarray
    relative: np.ndarray
    half: tuple[int, ...]


def gradient_reach(*, length: int, d_model: int, seed: int, gain: float = 1.0, keep_bias: float = 0.0) -> GradientReach:
    """Measure the gradient of four untrained layers on sequences of random vectors.

    Args:
        length: positions, 2 to 256.
        d_model: width of inputs and outputs, 4 to 64, a multiple of 4.
        seed: of weights and inputs, both random: inputs have mean 0 and deviation 1.
        gain: multiplies the orthogonal matrices between states.
        keep_bias: of the gates that keep, the GRU's update gate and the LSTM's forget gate; Jozefowicz et al. 2015
            advise 1 for the latter.

    Raises:
        ValueError: a size outside its range.
    """
    if not 2 <= length <= LONGEST:
        raise ValueError(f"length={length} must be from 2 to {LONGEST}")
    if not 4 <= d_model <= WIDEST or d_model % 4:
        raise ValueError(f"d_model={d_model} must be a multiple of 4 from 4 to {WIDEST}")
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(SEQUENCES, length, d_model, generator=generator)  # (batch, pos, d_model)
    norms = []
    for system in SYSTEMS:
        inputs = x.clone().requires_grad_(True)
        output = _last_output(system, inputs, gain, keep_bias, generator)
        norms.append(jacobian_norms(output, inputs).square().mean(0).sqrt().flip(0).numpy())
    return _reach(SYSTEMS, np.stack(norms))


def _last_output(system: str, x: Tensor, gain: float, keep_bias: float, generator: torch.Generator) -> Tensor:
    d_model = x.shape[-1]
    if system == "attention":
        attention = MultiHeadAttention(d_model, 4)
        initialize(attention, generator)
        return attention(x)[:, -1]
    layer = Recurrent(CELLS["tanh" if system == "plain" else system](d_model, d_model))
    initialize_cell(layer.cell, generator)
    with torch.no_grad():
        layer.cell.hidden_proj.weight.mul_(gain)
        if system != "plain":  # the gate that keeps is the second part of either
            layer.cell.input_proj.bias[d_model : 2 * d_model] = keep_bias
    return layer(x)[0][:, -1]


def jacobian_norms(output: Tensor, x: Tensor) -> Tensor:
    """Return the Frobenius norm of d output / d x_t, exactly, from one backward pass per unit of the output.

    Shapes:
        output: (batch, unit); x: (batch, pos, d_model); returns: (batch, pos)
    """
    units = torch.eye(output.shape[1])[:, None].expand(-1, output.shape[0], -1)  # (unit, batch, unit)
    (slopes,) = torch.autograd.grad(output, x, units, is_grads_batched=True)  # (unit, batch, pos, d_model)
    return slopes.square().sum((0, -1)).sqrt()


def _reach(systems: tuple[str, ...], norms: np.ndarray) -> GradientReach:
    relative = norms / norms[:, :1]
    half = tuple(int(row.argmax()) if row.any() else -1 for row in relative < 0.5)
    return GradientReach(systems, np.arange(norms.shape[1]), norms, relative, half)


@dataclass(frozen=True, eq=False)
class SentenceReach:
    """How much the last state of a trained layer depends on each token of a sentence.

    Shapes:
        norms: (pos,), Frobenius norm of d last state / d scaled embedding of the token, in the sentence's order

    Args:
        tokens: of the sentence, special ones included.
        last: the position that the direction reads last.
        half: how many positions before it the norm is first less than half of that at `last`; -1 where nowhere.
    """

    tokens: tuple[str, ...]
    norms: np.ndarray
    last: int
    half: int


def sentence_reach(*, prompt: Prompt, direction: str = "forward") -> SentenceReach:
    """Measure the gradient from the last state of a trained recurrent layer to each of its inputs.

    Args:
        prompt: to a seq2seq, of which the encoder is read, or an lm.
        direction: "forward", or "backward" where an encoder reads both ways.

    Raises:
        ValueError: the bundle is of another kind, or there is no such direction.
    """
    model = recurrent_model(prompt.bundle)
    layer = layer_of(model, direction)
    encoding = prompt.fitting.encoding
    backward = direction == "backward"
    with torch.inference_mode(False), torch.enable_grad():
        ids = one_text(prompt.bundle, encoding)
        embedded = (model.embedding(ids) * model.scale).detach().requires_grad_(True)  # (1, pos, d_model)
        _, state = layer(embedded, backward=backward)
        norms = jacobian_norms(state[0].cpu(), embedded)[0].cpu().numpy()
    half = _reach(("layer",), (norms if backward else norms[::-1])[None]).half[0]
    return SentenceReach(encoding.labels, norms, 0 if backward else len(encoding) - 1, half)
