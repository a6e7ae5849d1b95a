"""The neurons of a feed-forward layer: what excites each, in one sentence and over the built-in corpus, and its effect.

Feed-forward layers as memories: Geva et al. 2021, section 2.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.outcome import conclude, one_text, read, require_outcome
from transformer_core.analysis.positions.order_cases import best_language
from transformer_core.analysis.rank_correlation import RankCorrelation, rank_correlation
from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig, require_index, require_range
from transformer_core.probe import Edit, capture
from transformer_core.progress import counted
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding, make_batch
from transformer_core.training.corpora import reviews

TOKENS_AT_ONCE = 2_048
TYPICAL_SENTENCES, FEWEST_SENTENCES = 300, 20
MOST_KEPT = 300_000_000  # numbers of a corpus, before and after the activation


def sentences_for(config: ModelConfig) -> int:
    """Return how many sentences of a corpus are read for a model: fewer of one with many neurons."""
    of_a_sentence = 60 * 2 * config.n_layers * config.d_ff  # of 60 tokens at most, as nearly all have
    return max(FEWEST_SENTENCES, min(TYPICAL_SENTENCES, MOST_KEPT // of_a_sentence))


@dataclass(frozen=True, eq=False)
class Neurons:
    """The inside of one feed-forward layer for one sentence.

    Shapes:
        activation, pre_activation, gate, up: (pos, neuron); strongest: (pos, top); columns: (top); peaks: (neuron)

    Args:
        activation: of a gated layer, gate * up.
        pre_activation: from which the activation, or the gate, is computed.
        gate, up: of a gated layer, whose neurons are the stronger the further their activation is from 0.
        strongest: each token's strongest neurons, by the greatest activation, the first one first.
        columns: the neurons that are strongest anywhere in the sentence, the first one first.
        peaks: at which token each neuron is strongest.
    """

    activation: np.ndarray
    pre_activation: np.ndarray
    strongest: np.ndarray
    columns: np.ndarray
    peaks: np.ndarray
    gate: np.ndarray | None = None
    up: np.ndarray | None = None


def neurons(*, prompt: Prompt, layer: int, top: int) -> Neurons:
    """Return a layer's activations of a text and the strongest neurons.

    Args:
        prompt: to a model of a kind that reads one text.
        layer: from 0.
        top: how many neurons, at most d_ff.

    Raises:
        ValueError: there is no such layer, or not so many neurons, or the model is a mixture of experts.
    """
    bundle = prompt.bundle
    bundle.must_be_dense()
    require_index("layer", layer, bundle.config.n_layers)
    if not 1 <= top <= bundle.config.d_ff:
        raise ValueError(f"top={top} must be from 1 to d_ff={bundle.config.d_ff}")
    scope = bundle.reader.site(f"layer{layer}.feed_forward")
    trace = read(bundle, prompt.encoding, sites=(f"{scope}.*",)).trace

    def recorded(leaf: str) -> Tensor:  # (pos, neuron)
        return trace[f"{scope}.{leaf}"][0].float().cpu()

    activation = recorded("activation")
    strength = activation.abs() if bundle.config.gated else activation
    gated = {leaf: recorded(leaf).numpy() for leaf in ("gate", "up") if bundle.config.gated}
    return Neurons(
        activation.numpy(),
        recorded("pre_activation").numpy(),
        strength.topk(top, dim=-1).indices.numpy(),
        strength.amax(0).topk(top).indices.numpy(),
        strength.argmax(0).numpy(),
        **gated,
    )


def neuron_off(layer: int, neuron: int) -> Mapping[str, Edit]:
    """Return the edit that sets one neuron's activation to zero at every position."""

    def silence(activation: Tensor) -> Tensor:
        activation[..., neuron] = 0.0  # (batch, pos, d_ff)
        return activation

    return {f"*.layer{layer}.feed_forward.activation": silence}


@dataclass(frozen=True, eq=False)
class WithoutNeuron:
    """What the verdict does when one neuron is set to zero, and when any other of its layer is.

    Shapes:
        before, after: (outcome), see outcome.py; moves, peaks: (neuron)

    Args:
        winner: the likeliest outcome before.
        moved: of its probability, in percentage points.
        flipped: whether another outcome is likelier after.
        moves: the same as `moved`, for every neuron of the layer by itself.
        peaks: each neuron's greatest absolute activation in the sentence.
        agreement: of the order by peak with the order by the size of the move.
        rank: how many neurons of the layer move the verdict more than this one.
    """

    before: np.ndarray
    after: np.ndarray
    winner: int
    moved: float
    flipped: bool
    moves: np.ndarray
    peaks: np.ndarray
    agreement: RankCorrelation
    rank: int


def without_neuron(*, prompt: Prompt, layer: int, neuron: int) -> WithoutNeuron:
    """Set one neuron of a layer to zero, and each of the others in turn, and return how far the verdict moves.

    Raises:
        ValueError: there is no such layer or neuron, the model predicts nothing from the text, or is a mixture.
    """
    bundle = prompt.bundle
    bundle.must_be_dense()
    require_index("layer", layer, bundle.config.n_layers)
    require_index("neuron", neuron, bundle.config.d_ff)
    encoding = prompt.encoding
    require_outcome(bundle, encoding)
    site = bundle.reader.site(f"layer{layer}.feed_forward.activation")
    reading = read(bundle, encoding, sites=(site,))
    before, winner = np.array(reading.probabilities), int(np.argmax(reading.probabilities))
    after = np.array(read(bundle, encoding, sites=(), edits=neuron_off(layer, neuron)).probabilities)
    peaks = reading.trace[site][0].abs().amax(0).float().cpu().numpy()  # (neuron)
    moves = 100 * (each_off(bundle, encoding, site, bundle.config.d_ff, winner) - before[winner])  # (neuron)
    return WithoutNeuron(
        before=before,
        after=after,
        winner=winner,
        moved=100 * float(after[winner] - before[winner]),
        flipped=bool(after.argmax() != winner),
        moves=moves,
        peaks=peaks,
        agreement=rank_correlation(peaks, np.abs(moves)),
        rank=int((np.abs(moves) > np.abs(moves[neuron])).sum()),
    )


def each_off(bundle: Bundle, encoding: Encoding, site: str, count: int, winner: int) -> np.ndarray:
    """Return the winner's probability with each of so many units off in turn, many copies of the sentence at once.

    Shapes:
        returns: (unit,)

    Args:
        site: of their numbers, (batch, pos, unit).
    """
    outcome, ids, parts = require_outcome(bundle, encoding), one_text(bundle, encoding), []
    at_once = bundle.reader.at_once(len(encoding), max(1, TOKENS_AT_ONCE // len(encoding)))
    for places in counted(torch.arange(count).split(at_once)):

        def silence(activation: Tensor, places: Tensor = places) -> Tensor:
            activation[torch.arange(len(places)), :, places] = 0.0
            return activation

        probabilities, _ = conclude(bundle, ids.expand(len(places), -1), outcome, edits={site: silence})
        parts.append(probabilities[:, winner].float().cpu())
    return torch.cat(parts).numpy()


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
    """Read the first sentences of the built-in corpus and return which neurons are ever active.

    Args:
        bundle: of a kind that reads one text.
        sentences: at most 600.

    Raises:
        ValueError: sentences is outside its range, or the model is a mixture of experts.
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
        ValueError: there is no such layer or neuron, sentences is outside its range, or the model is a mixture.
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
    before: tuple[Tensor, ...]  # one per layer, (token, neuron)
    inside: tuple[Tensor, ...]


@functools.lru_cache(maxsize=2)
def _read_corpus(bundle: Bundle, sentences: int) -> _Sample:
    bundle.must_be_dense()
    require_range("sentences", sentences, 1, MOST_SENTENCES)
    language = best_language(bundle.tokenizer)
    texts = [example.text for example in reviews(language, train=sentences, held_out=0)[0]]
    encodings = tuple(bundle.tokenizer.encode_batch(texts, max_len=bundle.config.max_len))
    own = [[not special for special in encoding.special] for encoding in encodings]
    kept = {leaf: [[] for _ in range(bundle.config.n_layers)] for leaf in ("pre_activation", "activation")}
    last = bundle.reader.site(f"layer{bundle.config.n_layers - 1}.feed_forward.activation")
    sites = ("*.pre_activation", "*.activation", last)
    for start in counted(range(0, sentences, 50)):
        batch = make_batch(encodings[start : start + 50], padding=bundle.config.padding)
        real = torch.zeros_like(batch.mask)
        for row, flags in enumerate(own[start : start + 50]):
            real[row, : len(flags)] = torch.tensor(flags)
        device = bundle.device
        _, trace = capture(bundle.model, batch.token_ids.to(device), sites=sites, until=sites[-1])
        for leaf, layers in kept.items():
            for layer, parts in enumerate(layers):
                parts.append(trace[bundle.reader.site(f"layer{layer}.feed_forward.{leaf}")].float().cpu()[real])
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
