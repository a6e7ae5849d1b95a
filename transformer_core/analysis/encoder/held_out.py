"""The built-in reviews as a classifier of negative and positive reads them: every depth's sentence vectors, the logits.

Read next: calibration.py.
"""

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_core.analysis.encoder.layers import classifier_of, sentence_vectors, streams
from transformer_core.analysis.positions.order_cases import LABELS, best_language
from transformer_core.bundle import Bundle
from transformer_core.text import make_batch
from transformer_core.training.corpora.grammar import Language
from transformer_core.training.corpora.reviews import reviews

MOST_REVIEWS = 1_200
AT_ONCE = 50


@dataclass(frozen=True, eq=False)
class ReadReviews:
    """What a model makes of reviews.

    Shapes:
        vectors: (pooling, depth, review, d_model); logits: (review, class); labels: (review,)
    """

    language: Language
    vectors: Tensor
    logits: Tensor
    labels: Tensor


def require_reviews(bundle: Bundle, name: str, count: int) -> None:
    """Raise ValueError unless a bundle can be held against that many labelled reviews."""
    classifier_of(bundle)
    if bundle.labels != LABELS:
        raise ValueError(f"{bundle.name} tells {', '.join(bundle.labels)}; the reviews at hand are {', '.join(LABELS)}")
    if not 1 <= count <= MOST_REVIEWS:
        raise ValueError(f"{name}={count} must be from 1 to {MOST_REVIEWS}")


@functools.lru_cache(maxsize=4)
def read_reviews(bundle: Bundle, *, train: int, held_out: int) -> ReadReviews:
    """Read the first reviews for training, or held-out ones, of the language that the model knows best.

    Args:
        train, held_out: how many; one of them is 0.

    Raises:
        ValueError: the bundle tells other classes, or a number is outside its range.
    """
    require_reviews(bundle, "train" if train else "held_out", train or held_out)
    language = best_language(bundle.tokenizer)
    examples = reviews(language, train=train, held_out=held_out)[0 if train else 1]
    encodings = bundle.tokenizer.encode_batch([example.text for example in examples], max_len=bundle.config.max_len)
    device = next(bundle.model.parameters()).device
    vectors, logits = [], []
    for start in range(0, len(encodings), AT_ONCE):
        token_ids = make_batch(encodings[start : start + AT_ONCE], pad_id=bundle.config.pad_id or 0).token_ids
        stream, verdicts = streams(bundle, token_ids.to(device))
        vectors.append(sentence_vectors(bundle, stream, token_ids.to(device)).cpu())
        logits.append(verdicts.cpu())
    labels = torch.tensor([example.label for example in examples])
    return ReadReviews(language, torch.cat(vectors, dim=2), torch.cat(logits), labels)
