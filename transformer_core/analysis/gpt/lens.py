"""Logit lens: what the model would answer if it stopped after each layer.

The residual stream after every layer goes through the final normalisation and the output matrix (nostalgebraist 2020,
"interpreting GPT: the logit lens"), or first through the map of a tuned lens (Belrose et al. 2023).
"""

from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.analysis.gpt.kept_logits import gpt_of, ids_on_device, labels_at, surprisal_bits
from transformer_core.analysis.lens import Through, choices, read_out, require_lens, settled
from transformer_core.config import require_range
from transformer_core.probe import capture
from transformer_core.prompt import Prompt

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


@torch.inference_mode()
def logit_lens(*, prompt: Prompt, first: int, count: int, through: Through = "logit") -> Lens:
    """Read a text and let every layer answer.

    Args:
        prompt: to a GPT; of a post-norm model the stream is normalised as it is, so only the output matrix is applied.
        first: the first place shown: how many tokens have been read there.
        count: how many places to show; fewer where the text ends before.
        through: as of read_out; the last stage is the model's own answer through either lens.

    Raises:
        ValueError: first or count is out of range, the bundle is not a GPT, or it has no tuned lens.
    """
    model = gpt_of(prompt.bundle)
    require_lens(prompt.bundle, through)
    encoding = prompt.encoding
    require_range("first", first, 1, len(encoding))
    require_range("count", count, 1, MOST_PLACES)
    places = range(first, min(first + count, len(encoding) + 1))
    shown = slice(places[0] - 1, places[-1])
    sites = prompt.bundle.reader.stages
    scores, trace = capture(model, ids_on_device(model, encoding.ids), sites=sites)
    own = scores[0, shown]  # (place, vocab)
    answer = own.argmax(-1)  # (place,)
    came = torch.tensor([*encoding.ids[1:], -1], device=own.device)[shown]  # (place,)
    stages = []
    for stage, site in enumerate(sites):
        logits = read_out(prompt.bundle, trace[site][:, shown], stage, through)[0]  # (place, vocab)
        bits = surprisal_bits(logits, came.clamp(min=0)).masked_fill(came < 0, torch.nan)
        stages.append((*choices(logits, answer), bits))
    choice, probability, answer_probability, answer_rank, bits = map(torch.stack, zip(*stages, strict=True))
    ids, tokenizer = encoding.ids, prompt.bundle.tokenizer
    named = [labels_at(tokenizer, ids, row.tolist(), first=first) for row in (answer, *choice)]
    return Lens(
        places=tuple(places),
        read=tuple(encoding.labels[place - 1] for place in places),
        answers=named[0],
        came=tuple(encoding.labels[place] if place < len(ids) else "" for place in places),
        choices=tuple(named[1:]),
        probability=probability.cpu().numpy(),
        answer_probability=answer_probability.cpu().numpy(),
        answer_rank=answer_rank.cpu().numpy(),
        mean_bits=bits.cpu().double().nanmean(-1).numpy(),
        settled=settled(choice == answer).cpu().numpy(),
        difference=float((logits - own).abs().max()),
    )
