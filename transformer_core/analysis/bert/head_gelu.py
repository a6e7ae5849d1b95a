"""The masked-word head with GELU itself and with the formula by tanh that many listings use in its place.

Devlin et al. 2019, their code; Hendrycks and Gimpel 2016, section 2, has both.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.bert.masked_words import bert_of, hidden_text, tensors
from transformer_core.layers.feed_forward import ACTIVATIONS
from transformer_core.models.bert import MlmHead
from transformer_core.prompt import Prompt

KINDS = ("gelu", "gelu_tanh")


@dataclass(frozen=True, eq=False)
class HeadGelu:
    """What a mask's guess becomes under both.

    Shapes:
        ids: (guess,), the likeliest words by GELU itself; probabilities: (kind, guess), in the order of KINDS
        inside: (d_model,), what goes into the function; apart: (d_model,), how far the two differ there

    Args:
        words: labels of ids.
        greatest: of apart, over every position of the text.
        scores_differ, probabilities_differ: the greatest difference of any word's score and probability, anywhere.
        same: at how many of the `places` positions both have the same first guess.
    """

    words: tuple[str, ...]
    ids: np.ndarray
    probabilities: np.ndarray
    inside: np.ndarray
    apart: np.ndarray
    greatest: float
    scores_differ: float
    probabilities_differ: float
    same: int
    places: int


def head_scores(head: MlmHead, x: Tensor, kind: str) -> Tensor:
    """Score words with a function in the place of the head's own.

    Shapes:
        x: (batch, pos, d_model); returns: (batch, pos, vocab)
    """
    return head.output(head.norm(ACTIVATIONS[kind](head.transform_proj(x))))


@torch.inference_mode()
def head_gelu(*, prompt: Prompt, hidden: tuple[int, ...], place: int, top: int) -> HeadGelu:
    """Read a text and ask its masked-word head twice.

    Args:
        prompt: to a bert.
        prompt, hidden: as of fill_in.
        place: of the mask whose guesses are named.
        top: how many.

    Raises:
        ValueError: the bundle is no bert, or there is no mask at the place.
    """
    model = bert_of(prompt.bundle)
    read = hidden_text(prompt, hidden, place=place)
    ids, segment_ids = tensors(prompt.bundle, [read.masked.ids], read.masked.segment_ids)
    x = model.encoder(ids, segment_ids=segment_ids)  # (1, pos, d_model)
    scores = torch.stack(
        [head_scores(model.mlm_head, x, kind)[0].float().cpu() for kind in KINDS]
    )  # (kind, pos, vocab)
    probabilities = scores.softmax(-1)
    inside = model.mlm_head.transform_proj(x)[0].float().cpu()  # (pos, d_model)
    exact, by_tanh = (ACTIVATIONS[kind](inside) for kind in KINDS)
    apart = (exact - by_tanh).abs()
    best = probabilities[0, place].topk(top).indices
    return HeadGelu(
        words=tuple(map(prompt.bundle.tokenizer.label_of, best.tolist())),
        ids=best.numpy(),
        probabilities=probabilities[:, place, best].numpy(),
        inside=inside[place].numpy(),
        apart=apart[place].numpy(),
        greatest=float(apart.max()),
        scores_differ=float((scores[0] - scores[1]).abs().max()),
        probabilities_differ=float((probabilities[0] - probabilities[1]).abs().max()),
        same=int((scores[0].argmax(-1) == scores[1].argmax(-1)).sum()),
        places=x.shape[1],
    )
