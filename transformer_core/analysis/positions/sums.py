"""Token plus position: how long the two vectors are, what sqrt(d_model) changes, and why adding is concatenating, tied.

Vaswani et al. 2017, sections 3.4 and 3.5.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_core.analysis.outcome import conclude, one_text
from transformer_core.analysis.parts import first_attention, input_embedding
from transformer_core.config import require_index
from transformer_core.layers.positions import sinusoidal_table
from transformer_core.probe import Edit
from transformer_core.prompt import Prompt


@dataclass(frozen=True, eq=False)
class Sums:
    """Token and position vectors of one text, with the embeddings as they lie in the matrix and times sqrt(d_model).

    Shapes:
        token_norms, position_norms: (pos,)
        cosine_token, cosine_position: (2, pos), of the sum to either summand; row 0 unscaled, row 1 scaled
        probabilities: (2, outcome), see outcome.py, what the model predicts with the embeddings unscaled, and scaled

    Args:
        factor: sqrt(d_model).
        scaled_in_model: whether this model multiplies.
        added_in_model: whether this model adds position vectors; else the paper's stand in for them.
        token_norms: of the rows of the embedding matrix, before the factor.
        vocabulary_norm: mean norm over the whole matrix, before the factor.
        probabilities: None where the model predicts nothing from the text.
    """

    factor: float
    scaled_in_model: bool
    added_in_model: bool
    token_norms: np.ndarray
    position_norms: np.ndarray
    vocabulary_norm: float
    cosine_token: np.ndarray
    cosine_position: np.ndarray
    probabilities: np.ndarray | None


@dataclass(frozen=True, eq=False)
class Concatenated:
    """W[e; p] = W1 e + W2 p, with real e, p and W1; all vectors are (d_query,).

    Args:
        token, position: what e and p are of.
        of_token, of_position: W1 e and W1 p.
        added: W1 (e + p).
        tied: [W1 W1] [e; p].
        free: [W1 W2] [e; p].
        difference: greatest |added - tied|.
        free_share: length of free - added as a share of the length of added.
        confused: how far apart two different inputs with one sum come out, by [W1 W1] and by [W1 W2]: the position
            next to p, with what it lacks put into e.
        parameters: numbers in W1 and in [W1 W2].
    """

    token: str
    position: int
    of_token: np.ndarray
    of_position: np.ndarray
    added: np.ndarray
    tied: np.ndarray
    free: np.ndarray
    difference: float
    free_share: float
    confused: tuple[float, float]
    parameters: tuple[int, int]


def _vectors(prompt: Prompt) -> tuple[tuple[str, ...], Tensor, Tensor]:
    """Return labels, rows of the embedding matrix and position vectors, both (pos, d_model)."""
    encoding = prompt.encoding
    part = input_embedding(prompt.bundle.model)
    token = part.token.weight.detach()[list(encoding.ids)].float().cpu()
    if part.position is None:
        return encoding.labels, token, sinusoidal_table(len(encoding), prompt.bundle.config.d_embedding)
    return encoding.labels, token, part.positions_of(one_text(prompt.bundle, encoding)).detach().float().cpu()


@torch.inference_mode()
def token_and_position(*, prompt: Prompt) -> Sums:
    """Compare token and position vectors of a text, with and without the factor sqrt(d_model).

    Args:
        prompt: to any model.

    Raises:
        ValueError: an odd d_model where the model adds no positions.
    """
    bundle = prompt.bundle
    _, token, position = _vectors(prompt)
    factor = math.sqrt(bundle.config.d_embedding)
    both = torch.stack([token, token * factor])  # (2, pos, d_model)
    total = both + position
    return Sums(
        factor=factor,
        scaled_in_model=bundle.config.scale_embeddings,
        added_in_model=input_embedding(bundle.model).position is not None,
        token_norms=token.norm(dim=-1).numpy(),
        position_norms=position.norm(dim=-1).numpy(),
        vocabulary_norm=float(input_embedding(bundle.model).token.weight.float().norm(dim=-1).mean()),
        cosine_token=F.cosine_similarity(total, both, dim=-1).numpy(),
        cosine_position=F.cosine_similarity(total, position.expand_as(total), dim=-1).numpy(),
        probabilities=_verdicts(prompt, factor),
    )


def _verdicts(prompt: Prompt, factor: float) -> np.ndarray | None:
    bundle, encoding = prompt.bundle, prompt.encoding
    outcome = bundle.reader.outcome(encoding)
    if outcome is None:
        return None
    ids = one_text(bundle, encoding)
    changed: Mapping[str, Edit] = (
        {"*embedding.scaled_embedding": lambda x: x / factor}
        if bundle.config.scale_embeddings
        else {"*embedding.token_embedding": lambda x: x * factor}
    )
    usual, other = (conclude(bundle, ids, outcome, edits=edits)[0][0].cpu().numpy() for edits in ({}, changed))
    return np.stack([other, usual] if bundle.config.scale_embeddings else [usual, other])


@torch.inference_mode()
def adding_is_concatenating(*, prompt: Prompt, place: int) -> Concatenated:
    """Multiply a token's and its position's vector by a model's own projection: added, and one behind the other.

    W1 is the query projection of the first layer, without its bias. Where [W1 W2] is free, W2 stands for any other
    matrix; here it is the key projection of the same layer. Of a factorised embedding both are taken with the map to
    the stream's width, without its bias. Departure: a norm that the model may put before the projection is left out,
    for it is not linear.

    Args:
        prompt: to any model with projections.
        place: of the token.

    Raises:
        ValueError: there is no such place, or the model has no query and key projections.
    """
    bundle = prompt.bundle
    labels, rows, positions = _vectors(prompt)
    require_index("place", place, len(labels))
    attention = first_attention(bundle)
    if attention.query_proj is None or attention.key_proj is None:
        raise ValueError(f"{bundle.name} has no query and key projections of its own; adding is compared through them")
    first, second = (proj.weight.detach().float().cpu() for proj in (attention.query_proj, attention.key_proj))
    share, d_head = attention.n_heads // attention.n_kv_heads, attention.d_head
    second = second.unflatten(0, (-1, d_head)).repeat_interleave(share, 0).flatten(0, 1)  # for each head that reads it
    if (widened := input_embedding(bundle.model).stream_proj) is not None:
        first, second = (matrix @ widened.weight.detach().float().cpu() for matrix in (first, second))
    token = rows[place] * (math.sqrt(bundle.config.d_embedding) if bundle.config.scale_embeddings else 1.0)
    position = positions[place]
    tied, free = torch.cat([first, first], 1), torch.cat([first, second], 1)  # (d_query, 2 d_embedding)
    together = torch.cat([token, position])
    neighbour = positions[place - 1 if place else min(1, len(labels) - 1)]
    moved = torch.cat([token + position - neighbour, neighbour])
    added = first @ (token + position)
    return Concatenated(
        token=labels[place],
        position=place,
        of_token=(first @ token).numpy(),
        of_position=(first @ position).numpy(),
        added=added.numpy(),
        tied=(tied @ together).numpy(),
        free=(free @ together).numpy(),
        difference=float((tied @ together - added).abs().max()),
        free_share=float((free @ together - added).norm() / added.norm()),
        confused=(float((tied @ (together - moved)).norm()), float((free @ (together - moved)).norm())),
        parameters=(first.numel(), free.numel()),
    )
