"""Sentence vectors of every layer, of one text or of all built-in reviews, and what the class map says of each.

Reading an early layer by the last one's map: nostalgebraist 2020 ("logit lens"), with classes for words; the map was
trained on the last layer alone.
"""

import functools
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.lens import settled, through_last_norm
from transformer_core.analysis.outcome import one_text
from transformer_core.analysis.positions.order_cases import best_language, require_opinions
from transformer_core.bundle import Bundle
from transformer_core.config import require_range
from transformer_core.models.classifier import Classifier
from transformer_core.models.output import mean_over_real_tokens
from transformer_core.probe import capture
from transformer_core.progress import counted
from transformer_core.prompt import Prompt
from transformer_core.text import make_batch
from transformer_core.training.corpora.grammar import Language
from transformer_core.training.corpora.reviews import reviews

Pooling = Literal["cls", "mean"]
POOLINGS = get_args(Pooling)


@dataclass(frozen=True, eq=False)
class LayerVerdicts:
    """What the class map says of the sentence at each depth, and how the tokens' vectors change from depth to depth.

    Depth 0 is the embedding, depth l what layer l - 1 passes on.

    Shapes:
        probabilities: (pooling, depth, class), the poolings in the order of POOLINGS
        margins: (pooling, depth), the winner's logit minus the best other one's
        moves: (layer, pos), the length of what a layer adds over the length of the vector before
        angles: (layer, pos), between the vector before and after, in degrees

    Args:
        pooling: the model's own, the one that its class map was trained on.
        winner: the model's verdict; rival: the likeliest other class, to which all margins are taken.
        final: the model's own probabilities.
        settled: the first depth from which on the model's own pooling gives the winner.
        farthest: layer and token of the greatest of moves.
    """

    pooling: Pooling
    probabilities: np.ndarray
    margins: np.ndarray
    moves: np.ndarray
    angles: np.ndarray
    winner: int
    rival: int
    final: tuple[float, ...]
    settled: int
    farthest: tuple[int, int]


def classifier_of(bundle: Bundle) -> Classifier:
    """Return the model of a bundle.

    Raises:
        ValueError: it is not a classifier of at least two classes.
    """
    model = bundle.model_as(Classifier)
    if bundle.config.n_classes < 2:
        raise ValueError(f"bundle={bundle.name!r} knows {bundle.config.n_classes} class; a verdict needs 2")
    return model


def pooling_of(bundle: Bundle) -> Pooling:
    """Return how a classifier makes one vector of a sentence's."""
    return "cls" if bundle.config.pooling == "cls" else "mean"


@torch.inference_mode()
def streams(bundle: Bundle, token_ids: Tensor) -> tuple[Tensor, Tensor]:
    """Return the residual stream at every depth, and the model's logits.

    Shapes:
        token_ids: (batch, pos); returns: (depth, batch, pos, d_model) and (batch, class)
    """
    sites = bundle.reader.stages
    logits, trace = capture(bundle.model, token_ids, sites=sites)
    return torch.stack([trace[site] for site in sites]), logits


@torch.inference_mode()
def sentence_vectors(bundle: Bundle, stream: Tensor, token_ids: Tensor) -> Tensor:
    """Pool every depth of the stream both ways, after the stack's final norm where it has one.

    Shapes:
        stream: (depth, batch, pos, d_model); returns: (pooling, depth, batch, d_model)
    """
    normed = through_last_norm(bundle, stream)
    means = [mean_over_real_tokens(layer, token_ids, bundle.config.padding) for layer in normed]
    return torch.stack([normed[:, :, 0], torch.stack(means)])


@torch.inference_mode()
def class_logits(bundle: Bundle, vectors: Tensor) -> Tensor:
    """Apply what the model makes of its sentence vector: the pooler if it has one, then the class map.

    Shapes:
        vectors: (..., d_model); returns: (..., class)
    """
    model = classifier_of(bundle)
    return model.class_proj(model.pool(vectors))


def winner_and_rival(logits: Tensor) -> tuple[int, int]:
    """Return the likeliest class and the likeliest other one; logits: (class,)."""
    best = logits.topk(2).indices.tolist()
    return best[0], best[1]


def layer_verdicts(*, prompt: Prompt) -> LayerVerdicts:
    """Read a text and ask the class map at every depth.

    Args:
        prompt: to a classifier.

    Raises:
        ValueError: the bundle is not a classifier of at least two classes.
    """
    bundle = prompt.bundle
    classifier_of(bundle)
    token_ids = one_text(bundle, prompt.encoding)
    stream, final = streams(bundle, token_ids)
    logits = class_logits(bundle, sentence_vectors(bundle, stream, token_ids))[:, :, 0]  # (pooling, depth, class)
    winner, rival = winner_and_rival(final[0])
    vectors = stream[:, 0].cpu().double()  # (depth, pos, d_model)
    moves = (vectors[1:] - vectors[:-1]).norm(dim=-1) / vectors[:-1].norm(dim=-1).clamp(min=1e-12)
    angles = torch.cosine_similarity(vectors[1:], vectors[:-1], dim=-1).clamp(-1, 1).arccos().rad2deg()
    pooling = pooling_of(bundle)
    same = logits[POOLINGS.index(pooling)].argmax(-1) == winner  # (depth,)
    layer, token = divmod(int(moves.argmax()), moves.shape[1])
    return LayerVerdicts(
        pooling,
        logits.cpu().double().softmax(-1).numpy(),
        (logits[..., winner] - logits[..., rival]).cpu().double().numpy(),
        moves.numpy(),
        angles.numpy(),
        winner,
        rival,
        tuple(final[0].softmax(-1).tolist()),
        int(settled(same)),
        (layer, token),
    )


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
    """Raise ValueError unless a bundle can be measured on that many labelled reviews."""
    classifier_of(bundle)
    require_opinions(bundle)
    require_range(name, count, 1, MOST_REVIEWS)


@functools.lru_cache(maxsize=4)
def read_reviews(bundle: Bundle, *, train: int, held_out: int) -> ReadReviews:
    """Read the first reviews for training, or held-out ones, of the language that the model knows best.

    Args:
        train, held_out: how many; one of them is 0.

    Raises:
        ValueError: the bundle has other classes, or a number is outside its range.
    """
    require_reviews(bundle, "train" if train else "held_out", train or held_out)
    language = best_language(bundle.tokenizer)
    examples = reviews(language, train=train, held_out=held_out)[0 if train else 1]
    encodings = bundle.tokenizer.encode_batch([example.text for example in examples], max_len=bundle.config.max_len)
    device = bundle.device
    vectors, logits = [], []
    for start in counted(range(0, len(encodings), AT_ONCE)):
        token_ids = make_batch(encodings[start : start + AT_ONCE], padding=bundle.config.padding).token_ids
        stream, verdicts = streams(bundle, token_ids.to(device))
        vectors.append(sentence_vectors(bundle, stream, token_ids.to(device)).cpu())
        logits.append(verdicts.cpu())
    labels = torch.tensor([example.label for example in examples])
    return ReadReviews(language, torch.cat(vectors, dim=2), torch.cat(logits), labels)
