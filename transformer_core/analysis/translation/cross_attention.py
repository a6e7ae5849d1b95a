"""Where each target word looks in the source: one head of cross-attention step by step, and what the heads agree on.

Vaswani et al. 2017, section 3.2.3; alignment read from attention: Bahdanau et al. 2015, section 5.2.1.
"""

from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.analysis.attention.heads import HeadSteps, head_steps
from transformer_core.analysis.translation.greedy_steps import source_of, stacked
from transformer_core.config import require_index
from transformer_core.probe import capture
from transformer_core.prompt import Prompt


def cross_scope(layer: int) -> str:
    """Return the full name of a decoder layer's cross-attention."""
    return f"decoder.layer{layer}.cross_attention"


def cross_head(*, prompt: Prompt, target_ids: tuple[int, ...], layer: int, head: int) -> HeadSteps:
    """Return the steps of one head of cross-attention: queries of the target, keys and values of the source.

    Args:
        prompt: to a translation.
        target_ids: what the decoder reads, the start first.
        layer, head: from 0.

    Raises:
        ValueError: there is no such layer or head, or as source_of.
    """
    require_index("layer", layer, prompt.bundle.config.n_layers)
    source = source_of(prompt, "translation")
    target = torch.tensor([target_ids], device=source.ids.device)  # (1, target_pos)
    scope = cross_scope(layer)
    _, trace = capture(source.model, source.ids, target, sites=(f"{scope}.*",))
    return head_steps(trace, scope, head, prompt.bundle.config)


@dataclass(frozen=True, eq=False)
class Agreement:
    """What the heads make of one target word.

    Shapes:
        mean: (source_pos,), over all heads of all layers; votes: (source_pos,), how many heads look there most
        heads: (layer, head), the position at which each looks most

    Args:
        place: the source position of the greatest mean weight.
        special: the share of the mean weight that lies on special tokens.
    """

    mean: np.ndarray
    votes: np.ndarray
    heads: np.ndarray
    place: int
    special: float


def agreement(cross_weights: np.ndarray, step: int, special: tuple[bool, ...]) -> Agreement:
    """Return where all heads together look at one step, and how many of them look there most.

    Shapes:
        cross_weights: (layer, head, step, source_pos)

    Args:
        special: whether each source position is a special token, which is no word to look at; it is left out of
            `place`, not of the weights.

    Raises:
        ValueError: the source has nothing but special tokens.
    """
    if all(special):
        raise ValueError("special says that every source position is a special token; one must be a word")
    rows = cross_weights[:, :, step]  # (layer, head, source_pos)
    mean, heads, away = rows.mean((0, 1)), rows.argmax(-1), np.array(special)
    votes = np.bincount(heads.ravel(), minlength=rows.shape[-1])
    return Agreement(mean, votes, heads, int(np.where(away, -1.0, mean).argmax()), float(mean[away].sum()))


@dataclass(frozen=True, eq=False)
class Hidden:
    """What one written word loses when the decoder may not look at one source position, each in turn.

    Shapes:
        weights, probabilities, change: (source_pos,)

    Args:
        probability: of the word with nothing hidden.
        weights: the mean over all heads, with nothing hidden.
        change: probabilities minus probability.
    """

    probability: float
    weights: np.ndarray
    probabilities: np.ndarray
    change: np.ndarray

    @property
    def most(self) -> int:
        """The position whose loss changes most."""
        return int(np.abs(self.change).argmax())


def without_source(*, prompt: Prompt, target_ids: tuple[int, ...], step: int) -> Hidden:
    """Hide each source position from all cross-attention in turn, and read the probability of the word written.

    The encoder still saw the word, so that its neighbours carry some of it.

    Args:
        target_ids: the start, then all that was written.
        step: which of the written words, from 0.

    Raises:
        ValueError: there is no such step, or as source_of.
    """
    require_index("step", step, len(target_ids) - 1)
    source = source_of(prompt, "translation")
    device, size = source.ids.device, source.ids.shape[1]
    read = torch.tensor([target_ids[: step + 1]], device=device)  # (1, target_pos)
    in_sight = torch.ones(size + 1, size, dtype=torch.bool, device=device)
    in_sight[1:].fill_diagonal_(False)  # the first row hides nothing
    with torch.inference_mode():
        memory, _ = source.model.encode(source.ids)
        logits = source.model.decode(
            read.expand(size + 1, -1),
            memory.expand(size + 1, -1, -1),
            memory_mask=in_sight[:, None, None, :],
        )[:, -1]  # (source_pos + 1, vocab)
        probabilities = logits.cpu().double().softmax(-1)[:, target_ids[step + 1]]
    _, trace = capture(source.model, source.ids, read, sites=("decoder.*.cross_attention.weights",))
    weights = stacked(trace, "cross_attention")[:, :, step].mean((0, 1))
    before, after = float(probabilities[0]), probabilities[1:].numpy()
    return Hidden(before, weights, after, after - before)
