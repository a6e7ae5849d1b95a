"""Neurons over the built-in corpus: the tokens that excite each one most, and those that never wake.

Read next: swapping.py.
"""

import functools
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.feed_forward.activations import require_index
from transformer_core.analysis.positions.order_cases import best_language
from transformer_core.analysis.reading import scope_of
from transformer_core.bundle import Bundle
from transformer_core.probe import capture
from transformer_core.text import Encoding, make_batch
from transformer_core.training.corpora import reviews

MOST_SENTENCES = 600
TOKENS_EACH = 12
BAND = 0.05
BANDS = np.geomspace(1e-2, 10.0, 31)


@dataclass(frozen=True, eq=False)
class CorpusNeurons:
    """What a sample of the built-in corpus shows of every neuron of every layer; [CLS] and the like are left out.

    Shapes:
        highest, lowest: (layer, neuron); never_above_zero: (layer); within: (layer, band); bands: (band)

    Args:
        language: of the corpus: the one of which the model knows more words.
        sentences: how many were read; tokens: their tokens in all.
        highest, lowest: greatest and least pre-activation.
        never_above_zero: how many neurons have no pre-activation above 0: with ReLU they would give 0 throughout.
        bands: distances from 0.
        within: how many neurons have no activation further from 0 than the band, as the model's own activation is.
        band, in_band: a distance that is as good as 0, and how many neurons stay within it. # in_band: (layer)
        neurons: of a layer.
    """

    language: str
    sentences: int
    tokens: int
    highest: np.ndarray
    lowest: np.ndarray
    never_above_zero: np.ndarray
    bands: np.ndarray
    within: np.ndarray
    band: float
    in_band: np.ndarray
    neurons: int


@dataclass(frozen=True, eq=False)
class ExcitingTokens:
    """The tokens of the sample with one neuron's greatest pre-activations, the strongest first.

    GELU dips below 0 before it rises, so that the order is the pre-activation's and not the activation's.

    Shapes:
        pre_activation, activation: (place)

    Args:
        tokens: as the tokenizer labels them.
        before, after: the sentence around each.
        share_above_zero: of all tokens of the sample, in [0, 1].
    """

    pre_activation: np.ndarray
    activation: np.ndarray
    tokens: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    share_above_zero: float


def corpus_neurons(*, bundle: Bundle, sentences: int) -> CorpusNeurons:
    """Read the first sentences of the built-in corpus and return which neurons wake.

    Args:
        bundle: of a kind that reads one text.
        sentences: at most 600.

    Raises:
        ValueError: sentences is outside its range.
    """
    sample = _read_corpus(bundle, sentences)
    highest = torch.stack([values.amax(0) for values in sample.before])  # (layer, neuron)
    lowest = torch.stack([values.amin(0) for values in sample.before])
    peaks = torch.stack([values.abs().amax(0) for values in sample.inside]).numpy()
    return CorpusNeurons(
        language=sample.language,
        sentences=sentences,
        tokens=len(sample.places),
        highest=highest.numpy(),
        lowest=lowest.numpy(),
        never_above_zero=(highest <= 0).sum(-1).numpy(),
        bands=BANDS,
        within=(peaks[:, :, None] <= BANDS).sum(1),
        band=BAND,
        in_band=(peaks <= BAND).sum(-1),
        neurons=bundle.config.d_ff,
    )


def exciting_tokens(*, bundle: Bundle, sentences: int, layer: int, neuron: int) -> ExcitingTokens:
    """Return the tokens of the built-in corpus that excite a neuron most.

    Raises:
        ValueError: there is no such layer or neuron, or sentences is outside its range.
    """
    require_index("layer", layer, bundle.config.n_layers)
    require_index("neuron", neuron, bundle.config.d_ff)
    sample = _read_corpus(bundle, sentences)
    values = sample.before[layer][:, neuron]  # (token)
    strongest = values.topk(min(TOKENS_EACH, len(values)))
    found = [sample.places[place] for place in strongest.indices.tolist()]
    parts = [_around(sample.encodings[sentence], position) for sentence, position in found]
    return ExcitingTokens(
        pre_activation=strongest.values.numpy(),
        activation=sample.inside[layer][strongest.indices, neuron].numpy(),
        tokens=tuple(sample.encodings[sentence].labels[position] for sentence, position in found),
        before=tuple(before for before, _ in parts),
        after=tuple(after for _, after in parts),
        share_above_zero=float((sample.before[layer][:, neuron] > 0).float().mean()),
    )


@dataclass(frozen=True, eq=False)
class _Sample:
    language: str
    encodings: tuple[Encoding, ...]
    places: tuple[tuple[int, int], ...]  # of each token: sentence, position
    before: tuple[Tensor, ...]  # one a layer, (token, neuron)
    inside: tuple[Tensor, ...]


@functools.lru_cache(maxsize=2)
def _read_corpus(bundle: Bundle, sentences: int) -> _Sample:
    if not 1 <= sentences <= MOST_SENTENCES:
        raise ValueError(f"sentences={sentences} must be from 1 to {MOST_SENTENCES}")
    language = best_language(bundle.tokenizer)
    texts = [example.text for example in reviews(language, train=sentences, held_out=0)[0]]
    encodings = tuple(bundle.tokenizer.encode_batch(texts, max_len=bundle.config.max_len))
    own = [[not special for special in encoding.special] for encoding in encodings]
    kept = {leaf: [[] for _ in range(bundle.config.n_layers)] for leaf in ("pre_activation", "activation")}
    for start in range(0, sentences, 50):
        batch = make_batch(encodings[start : start + 50], pad_id=bundle.config.pad_id or 0)
        real = torch.zeros_like(batch.mask)
        for row, flags in enumerate(own[start : start + 50]):
            real[row, : len(flags)] = torch.tensor(flags)
        device = next(bundle.model.parameters()).device
        _, trace = capture(bundle.model, batch.token_ids.to(device), sites=("*.pre_activation", "*.activation"))
        for leaf, layers in kept.items():
            for layer, parts in enumerate(layers):
                parts.append(trace[scope_of(bundle, f"layer{layer}.feed_forward.{leaf}")].float().cpu()[real])
    return _Sample(
        language=language,
        encodings=encodings,
        places=tuple((row, col) for row, flags in enumerate(own) for col, flag in enumerate(flags) if flag),
        before=tuple(torch.cat(parts) for parts in kept["pre_activation"]),
        inside=tuple(torch.cat(parts) for parts in kept["activation"]),
    )


def _around(encoding: Encoding, position: int) -> tuple[str, str]:
    start, end = encoding.offsets[position]
    return encoding.text[:start], encoding.text[end:]
