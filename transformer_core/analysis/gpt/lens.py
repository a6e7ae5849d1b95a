"""Logit lens: what the model would answer if it stopped after each layer.

The residual stream after every layer goes through the final normalisation and the output matrix (nostalgebraist 2020,
"interpreting GPT: the logit lens").
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.analysis.gpt.kept_logits import gpt_of, ids_on_device, labels_after
from transformer_core.models import Gpt
from transformer_core.probe import capture
from transformer_core.prompt import Prompt
from transformer_core.text import Tokenizer

MOST_PLACES = 32


@dataclass(frozen=True, eq=False)
class Lens:
    """What every layer would answer at some places of a text.

    Shapes:
        probability: (stage, place), of the stage's own first choice
        answer_probability, answer_rank: (stage, place), of what the whole model answers there
        mean_bits: (stage,), the mean surprisal of the tokens that the text has next; not a number where it has none
        settled: (place,), the first stage from which on the first choice is the answer

    A stage is the embedding, then one layer after the other.

    Args:
        places: how many tokens have been read at each.
        read: the label of the last token read at each place.
        answers: the label of what the whole model holds likeliest there.
        came: the label of the token that the text has next; empty after its end.
        choices: by stage and place, the label of the first choice.
        difference: the greatest distance between the last stage's scores and the model's own.
    """

    places: tuple[int, ...]
    read: tuple[str, ...]
    answers: tuple[str, ...]
    came: tuple[str, ...]
    choices: tuple[tuple[str, ...], ...]
    probability: np.ndarray
    answer_probability: np.ndarray
    answer_rank: np.ndarray
    mean_bits: np.ndarray
    settled: np.ndarray
    difference: float


def stage_sites(model: Gpt) -> tuple[str, ...]:
    """Name the residual stream as it enters the first layer, and as it leaves each."""
    embedded = "norm.normalized" if model.config.embedding_norm else "residual"
    layers = (f"decoder.layer{layer}.residual" for layer in range(model.config.n_layers))
    return f"decoder.embedding.{embedded}", *layers


@torch.inference_mode()
def logit_lens(*, prompt: Prompt, first: int, count: int) -> Lens:
    """Read a text and let every layer answer.

    Args:
        prompt: to a GPT; of a post-norm model the stream is normalised as it is, so only the output matrix is applied.
        first: the first place shown: how many tokens have been read there.
        count: how many places to show; fewer where the text ends before.

    Raises:
        ValueError: first or count is out of range, or the bundle is not a GPT.
    """
    model = gpt_of(prompt.bundle)
    encoding = prompt.encoding
    if not 1 <= first <= len(encoding):
        raise ValueError(f"first={first} must be from 1 to {len(encoding)}")
    if not 1 <= count <= MOST_PLACES:
        raise ValueError(f"count={count} must be from 1 to {MOST_PLACES}")
    places = range(first, min(first + count, len(encoding) + 1))
    shown = slice(places[0] - 1, places[-1])
    sites = stage_sites(model)
    scores, trace = capture(model, ids_on_device(model, encoding.ids), sites=sites)
    own = scores[0, shown]  # (place, vocab)
    answer = own.argmax(-1)  # (place,)
    came = torch.tensor([*encoding.ids[1:], -1], device=own.device)[shown]  # (place,)
    norm = model.decoder.stack.final_norm
    stages = []
    for site in sites:
        stream = trace[site][:, shown]  # (1, place, d_model)
        logits = model.output(stream if norm is None else norm(stream))[0]  # (place, vocab)
        stages.append(_stage(logits, answer, came))
    choice, probability, answer_probability, answer_rank, bits = map(torch.stack, zip(*stages, strict=True))
    agrees = (choice == answer).int()  # (stage, place)
    settled = len(sites) - agrees.flip(0).cumprod(0).sum(0)
    ids, tokenizer = encoding.ids, prompt.bundle.tokenizer
    named = [tuple(_labels(tokenizer, ids, places, row)) for row in (answer, *choice)]
    return Lens(
        places=tuple(places),
        read=tuple(encoding.labels[place - 1] for place in places),
        answers=named[0],
        came=tuple(encoding.labels[place] if place < len(ids) else "" for place in places),
        choices=tuple(named[1:]),
        probability=probability.float().cpu().numpy(),
        answer_probability=answer_probability.float().cpu().numpy(),
        answer_rank=answer_rank.cpu().numpy(),
        mean_bits=bits.cpu().double().nanmean(-1).numpy(),
        settled=settled.cpu().numpy(),
        difference=float((logits - own).abs().max()),
    )


def _stage(logits: torch.Tensor, answer: torch.Tensor, came: torch.Tensor) -> tuple[torch.Tensor, ...]:
    probabilities = logits.float().softmax(-1)  # (place, vocab)
    bits = -logits.float().log_softmax(-1).gather(1, came.clamp(min=0)[:, None])[:, 0] / math.log(2)  # (place,)
    best = probabilities.max(-1)
    own = logits.gather(1, answer[:, None])  # (place, 1)
    rank = (logits > own).sum(-1) + 1
    given = probabilities.gather(1, answer[:, None])[:, 0]  # (place,)
    return best.indices, best.values, given, rank, bits.masked_fill(came < 0, torch.nan)


def _labels(tokenizer: Tokenizer, ids: tuple[int, ...], places: range, row: torch.Tensor) -> list[str]:
    return [labels_after(tokenizer, ids[:place], [id_])[0] for place, id_ in zip(places, row.tolist(), strict=True)]
