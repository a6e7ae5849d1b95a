"""The lens: what a model's output says of the residual stream at every stage, though it learned to read the last alone.

A stage is the embedding, then one layer after the other (Reader.stages). The stream goes through the stack's last norm,
then to whatever the kind answers with: nostalgebraist 2020, "interpreting GPT: the logit lens". The tuned lens first
brings it to where the last layer leaves it, by one affine map a stage (Belrose et al. 2023, section 3).
"""

from typing import Literal, NamedTuple, get_args

import torch.nn.functional as F
from torch import Tensor

from transformer_core.analysis.parts import reading_part
from transformer_core.bundle import Bundle
from transformer_core.models import Bert, Gpt

Through = Literal["logit", "tuned"]
THROUGH = get_args(Through)


def through_last_norm(bundle: Bundle, stream: Tensor) -> Tensor:
    """Return a stream as the output reads it; of a post-norm model it is normed already, and stays as it is.

    Shapes:
        stream, returns: (..., d_model)
    """
    norm = reading_part(bundle.model).stack.final_norm
    return stream if norm is None else norm(stream)


def require_lens(bundle: Bundle, through: str) -> None:
    """Raise ValueError unless a model's stages can be read so: the logit lens reads any, a tuned one must be there."""
    if through not in THROUGH:
        raise ValueError(f"through={through!r} must be one of {', '.join(THROUGH)}")
    if through == "tuned" and bundle.lens is None:
        raise ValueError(f"bundle={bundle.name!r} has no tuned lens; through must be 'logit'")


def read_out(bundle: Bundle, stream: Tensor, stage: int, through: Through = "logit") -> Tensor:
    """Return the scores of all tokens that the output of a GPT, or the masked-word head of a BERT, reads at a stage.

    Shapes:
        stream: (..., d_model); returns: (..., vocab), in float32

    Args:
        stage: 0 for the embedding, then one a layer.
        through: "logit" reads the stream as it is, "tuned" after the map that was trained for the stage.

    Raises:
        ValueError: the bundle has no tuned lens, or is of another kind.
    """
    require_lens(bundle, through)
    model = bundle.model_as(Gpt, Bert)
    head = model.output if isinstance(model, Gpt) else model.mlm_head
    if through == "tuned" and bundle.lens is not None:
        stream = bundle.lens(stream, stage)
    return head(through_last_norm(bundle, stream)).float()


def divergence(own: Tensor, scores: Tensor) -> Tensor:
    """Return the KL divergence of a distribution from the one of other scores, in nats: sum p (log p - log q).

    Shapes:
        own: (..., vocab), log-probabilities p; scores: (..., vocab), of q; returns: (...)
    """
    return F.kl_div(scores.log_softmax(-1), own, reduction="none", log_target=True).sum(-1)


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
