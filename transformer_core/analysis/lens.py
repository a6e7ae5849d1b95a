"""The lens: what a model's output says of the residual stream at every stage, though it learned to read the last alone.

A stage is the embedding, then one layer after the other (Reader.stages). The stream goes through the stack's last norm,
then to whatever the kind answers with: nostalgebraist 2020, "interpreting GPT: the logit lens".
"""

from typing import NamedTuple

from torch import Tensor

from transformer_core.analysis.parts import reading_part
from transformer_core.bundle import Bundle


def through_last_norm(bundle: Bundle, stream: Tensor) -> Tensor:
    """Return a stream as the output reads it; of a post-norm model it is normed already, and stays as it is.

    Shapes:
        stream, returns: (..., d_model)
    """
    norm = reading_part(bundle.model).stack.final_norm
    return stream if norm is None else norm(stream)


class Choices(NamedTuple):
    """What scores put first, and where they put an answer.

    Shapes:
        first: ids of the likeliest; first_probability; probability, rank from 1: of the answer; (...) each
    """

    first: Tensor
    first_probability: Tensor
    probability: Tensor
    rank: Tensor


def choices(logits: Tensor, answer: Tensor) -> Choices:
    """Return the first choice of each row of scores, and the place of an answer.

    Shapes:
        logits: (..., vocab); answer: (...), ids
    """
    first, probabilities = logits.argmax(-1), logits.softmax(-1)  # (...), (..., vocab)
    its, score = (of.gather(-1, answer[..., None]) for of in (probabilities, logits))  # (..., 1)
    best = probabilities.gather(-1, first[..., None])
    return Choices(first, best[..., 0], its[..., 0], (logits > score).sum(-1) + 1)


def settled(agrees: Tensor) -> Tensor:
    """Return the first stage from which on something holds to the end; the last one where it does not hold there.

    Shapes:
        agrees: (stage, ...), boolean; returns: (...)
    """
    n_stages = len(agrees)
    return (n_stages - agrees.flip(0).int().cumprod(0).sum(0)).clamp(max=n_stages - 1)
