"""The same trained weights with another activation function: how far the verdict moves."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.outcome import read, require_outcome
from transformer_core.analysis.positions.order_cases import LABELS, best_language
from transformer_core.bundle import Bundle
from transformer_core.config import require_range
from transformer_core.layers.feed_forward import ACTIVATIONS
from transformer_core.models import Classifier
from transformer_core.probe import Edit, capture
from transformer_core.progress import counted
from transformer_core.prompt import Prompt
from transformer_core.text import make_batch
from transformer_core.training.corpora import reviews

NAMES = tuple(ACTIVATIONS)
MOST_SENTENCES = 600
AT_ONCE = 50


@dataclass(frozen=True, eq=False)
class Swapped:
    """Verdicts of one trained model with its activation exchanged at inference.

    Shapes:
        probabilities: (activation, outcome), see outcome.py; by_layer: (layer, activation)

    Args:
        names: of the activations, in the order of the arrays.
        used: the one that the model was trained with.
        winner: the likeliest outcome with that one.
        moves: of the winner's probability, in percentage points, one an activation, exchanged in every layer.
        by_layer: the same, exchanged in one layer alone.
    """

    names: tuple[str, ...]
    used: str
    winner: int
    probabilities: np.ndarray
    moves: np.ndarray
    by_layer: np.ndarray


@dataclass(frozen=True, eq=False)
class SwappedOnCorpus:
    """How the verdicts on the built-in reviews change with another activation.

    Shapes:
        flips, mean_move, accuracy: (activation)

    Args:
        names: of the activations.
        used: the one that the model was trained with.
        accuracy: share of verdicts that are right, in [0, 1]; None for a model of other classes.
        flips: verdicts that differ from those with the model's own activation.
        mean_move: mean distance of the first class's probability from that, in percentage points.
        sentences: how many.
        language: of the reviews.
    """

    names: tuple[str, ...]
    used: str
    accuracy: np.ndarray | None
    flips: np.ndarray
    mean_move: np.ndarray
    sentences: int
    language: str


def other_activation(name: str, layers: str = "*", *, gated: bool) -> Mapping[str, Edit]:
    """Return the edits that compute the activation of these layers (a pattern) with another function.

    Where the layers are gated, it is the gate's: the product with the other half follows.

    The edits carry each layer's pre-activation over to its activation, so they serve one forward pass at a time.
    """
    latest: list[Tensor] = []

    def remember(pre_activation: Tensor) -> Tensor:
        latest[:] = [pre_activation]
        return pre_activation

    def exchange(_: Tensor) -> Tensor:
        return ACTIVATIONS[name](latest[0])

    scope = f"*.layer{layers}.feed_forward"
    return {f"{scope}.pre_activation": remember, f"{scope}.{'gate' if gated else 'activation'}": exchange}


def swapped_activation(*, prompt: Prompt) -> Swapped:
    """Return what a model predicts from a text with each activation, in all layers and in each layer alone.

    Raises:
        ValueError: it predicts nothing, or is a mixture of experts.
    """
    bundle, encoding = prompt.bundle, prompt.encoding
    bundle.must_be_dense()
    require_outcome(bundle, encoding)
    used = bundle.config.activation

    def verdict(name: str, layers: str = "*") -> np.ndarray:
        edits = {} if name == used else other_activation(name, layers, gated=bundle.config.gated)
        return read(bundle, encoding, sites=(), edits=edits).probabilities

    probabilities = np.array([verdict(name) for name in NAMES])  # (activation, class)
    own = probabilities[NAMES.index(used)]
    winner = int(own.argmax())
    alone = [[verdict(name, str(layer))[winner] for name in NAMES] for layer in range(bundle.config.n_layers)]
    return Swapped(
        names=NAMES,
        used=used,
        winner=winner,
        probabilities=probabilities,
        moves=100 * (probabilities[:, winner] - own[winner]),
        by_layer=100 * (np.array(alone) - own[winner]),
    )


def swapped_on_corpus(*, bundle: Bundle, sentences: int) -> SwappedOnCorpus:
    """Judge held-out reviews of the built-in corpus with each activation.

    Raises:
        ValueError: sentences is outside its range, or the bundle is not a classifier, or a mixture of experts.
    """
    bundle.must_be_dense()
    bundle.model_as(Classifier)
    require_range("sentences", sentences, 1, MOST_SENTENCES)
    language, used = best_language(bundle.tokenizer), bundle.config.activation
    examples = reviews(language, train=0, held_out=sentences)[1]
    encodings = bundle.tokenizer.encode_batch([example.text for example in examples], max_len=bundle.config.max_len)
    batches = [
        make_batch(encodings[start : start + AT_ONCE], padding=bundle.config.padding).token_ids
        for start in range(0, sentences, AT_ONCE)
    ]
    device = bundle.device

    def verdicts(name: str) -> np.ndarray:
        edits = {} if name == used else other_activation(name, gated=bundle.config.gated)
        logits = [capture(bundle.model, ids.to(device), sites=("class_logits",), edits=edits)[0] for ids in batches]
        return torch.cat(logits).softmax(-1).cpu().numpy()

    probabilities = np.stack([verdicts(name) for name in counted(NAMES)])  # (activation, sentence, class)
    own, classes = probabilities[NAMES.index(used)], probabilities.argmax(-1)
    right = classes == np.array([example.label for example in examples])  # (activation, sentence)
    return SwappedOnCorpus(
        names=NAMES,
        used=used,
        accuracy=right.mean(-1) if bundle.labels == LABELS else None,
        flips=(classes != own.argmax(-1)).sum(-1),
        mean_move=100 * np.abs(probabilities[:, :, 0] - own[:, 0]).mean(-1),
        sentences=sentences,
        language=language,
    )
