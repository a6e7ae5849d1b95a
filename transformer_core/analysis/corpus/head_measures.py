"""Every head of a model by what it does over many texts: where it looks, how widely, and what the answers owe to it.

Places and entropy after Clark et al. 2019, section 3; induction: Olsson et al. 2022; copying: Elhage et al. 2021; the
effect of a head that is switched off: Michel et al. 2019, section 2.3.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.analysis.attention.heads import real_positions
from transformer_core.analysis.attention.tendencies import PLACES, Tally, is_mark, places_of, seen_by, tally
from transformer_core.analysis.corpus.copying import copying_scores
from transformer_core.analysis.corpus.induction import Induction, induction_scores
from transformer_core.analysis.lab.cases import batches, joined, run, with_targets
from transformer_core.analysis.lab.heads_off import all_heads, attentions, mask_edits
from transformer_core.analysis.lab.text_sets import Among, measured_cases, texts_read
from transformer_core.analysis.outcome import read
from transformer_core.bundle import Bundle
from transformer_core.config import require_range
from transformer_core.progress import counted
from transformer_core.shares import ratio_bounds
from transformer_core.text import Encoding, Tokenizer

MEASURES = ("induction", *PLACES, "copying", "entropy", "distance", "effect")
OF_CROSS = ("first", "marks")  # places that mean something where the keys are another text's
MOST_TEXTS = 200
ROWS = 8  # a head's strongest, one a text
READ_WORK, OFF_WORK = 6e11, 3e12  # parameters times tokens, and times heads: about a minute and four of one core
TOKENS_A_TEXT = 64
OFF_TEXTS, FEWEST_OFF = 24, 4
SEQUENCES, FEWEST_SEQUENCES = 32, 8
TOKENS_A_SEQUENCE = 50
Found = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # value, bounds, chance and count of each head


@dataclass(frozen=True, eq=False)
class CorpusHeads:
    """All heads of a model by all measures.

    Shapes:
        values: (measure, head), in the order of MEASURES: mean weights on places; copying from -1 to 1; entropy as a
            share of its maximum; distance in tokens; effect: ln p of an answer without the head, minus with it, in
            nats. Not a number where the measure says nothing of a head, or was left out
        bounds: (2, measure, head), of 95 % of resampled texts or sequences; copying is no estimate and has none
        chance: (measure, head), of a head that looks at everything it may see alike
        counts: (measure, head), over how many queries, words or answers
        induces: (head,), as of Induction
        row_text, row_query, row_key: (head, row), the strongest rows of weights, one a text, -1 where there are fewer
        row_weight: (head, row), the greatest weight in that row; row_weights: (head, row, key), all of it

    Args:
        heads: kind, layer and head of each.
        texts: that were read; tokens: the labels of each; targets: of a translation, of what the model writes.
        cut: how many texts were longer than what was read of them; left_out: how many texts took more time than is
            given to reading.
        sequences: of random tokens that repeat, 0 where the model can read none; shortest, longest: their periods.
        off_texts: on which heads were switched off; 0 where that was left out.
        words, all_words: of the vocabulary that copying was summed over, and how many there are.
    """

    values: np.ndarray
    bounds: np.ndarray
    chance: np.ndarray
    counts: np.ndarray
    induces: np.ndarray
    row_text: np.ndarray
    row_query: np.ndarray
    row_key: np.ndarray
    row_weight: np.ndarray
    row_weights: np.ndarray
    heads: tuple[tuple[str, int, int], ...]
    texts: tuple[str, ...]
    tokens: tuple[tuple[str, ...], ...]
    targets: tuple[tuple[str, ...], ...]
    cut: int
    left_out: int
    sequences: int
    shortest: int
    longest: int
    off_texts: int
    words: int
    all_words: int

    def place(self, kind: str, layer: int, head: int) -> int:
        """Return the place of a head among all; ValueError where there is none."""
        return self.heads.index((kind, layer, head))

    def says(self, measure: str, place: int) -> bool:
        """Tell whether a measure has a number of a head."""
        return bool(np.isfinite(self.values[MEASURES.index(measure), place]))

    def row_tokens(self, place: int, row: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the labels of the queries and of the keys of a head's row."""
        kind, text = self.heads[place][0], int(self.row_text[place, row])
        sides = self.tokens[text], self.targets[text] if self.targets else self.tokens[text]
        return sides[0 if kind == "encoder" else 1], sides[1 if kind == "decoder" else 0]


@dataclass(frozen=True, eq=False)
class _Read:
    """One text's weights by kind of attention, with the tokens of both sides.

    Shapes:
        weights: by kind (layer, head, query_pos, key_pos)
    """

    weights: Mapping[str, np.ndarray]
    source: Encoding
    target: Encoding | None

    def sides(self, kind: str) -> tuple[Encoding, Encoding]:
        """Return what looks and what is looked at."""
        target = self.target or self.source
        return (self.source if kind == "encoder" else target), (target if kind == "decoder" else self.source)


def heads_over_corpus(*, bundle: Bundle, among: Among = None, texts: int = 48, seed: int = 0) -> CorpusHeads:
    """Measure every head of a model on a set of texts.

    Texts are left out beyond READ_WORK, and the effect of switching off beyond OFF_WORK, where fewer than FEWEST_OFF
    texts would be read.

    Args:
        among: which texts, as of measured_cases.
        texts: how many at most.
        seed: of the draw.

    Raises:
        ValueError: the model has no heads, texts is out of its range, or as texts_read.
    """
    require_range("texts", texts, 2, MOST_TEXTS)
    flat, phases = all_heads(bundle), counted(range(3))
    by_kind, n_heads = attentions(bundle), bundle.config.n_heads
    heads = tuple((kind, layer, head) for kind in by_kind for layer, head in np.ndindex(len(by_kind[kind]), n_heads))
    none = np.full(len(flat), np.nan)
    next(phases)
    encodings, cut, left_out = _within(bundle, *texts_read(bundle, texts, seed, among))
    readings = [_read(bundle, one) for one in counted(encodings)]
    found = dict.fromkeys(MEASURES, _nothing(len(flat))) | _looked_at(bundle, readings)
    copied = copying_scores(bundle=bundle)
    found["copying"] = copied.score, np.stack((none, none)), none, np.full(len(flat), copied.rows)
    next(phases)
    induced = _induction(bundle, seed)
    if induced is not None:
        found["induction"] = induced.score, induced.bounds, induced.chance, np.full(len(flat), induced.queries)
    next(phases)
    off_texts = _texts_off(bundle, len(flat), len(encodings))
    if off_texts:
        change, bounds, answers, off_texts = _effects(bundle, off_texts, seed, among)
        found["effect"] = change, bounds, none, np.full(len(flat), answers)
    list(phases)
    parts = [np.stack(part) for part in zip(*(found[name] for name in MEASURES), strict=True)]
    return CorpusHeads(
        values=parts[0],
        bounds=parts[1].transpose(1, 0, 2),
        chance=parts[2],
        counts=parts[3],
        induces=np.zeros(len(flat), dtype=bool) if induced is None else induced.induces,
        **_strongest(bundle, readings, heads),
        heads=heads,
        texts=tuple(one.text for one in encodings),
        tokens=tuple(one.labels for one in encodings),
        targets=tuple(one.target.labels for one in readings if one.target is not None),
        cut=cut,
        left_out=left_out,
        sequences=0 if induced is None else induced.sequences,
        shortest=0 if induced is None else induced.shortest,
        longest=0 if induced is None else induced.longest,
        off_texts=off_texts,
        words=copied.rows,
        all_words=copied.there,
    )


def _within(bundle: Bundle, encodings: Sequence[Encoding], cut: Sequence[bool]) -> tuple[list[Encoding], int, int]:
    """Return the texts that fit in the time for reading, two at least, how many are cut, and how many do not fit."""
    ends = np.cumsum([len(one) for one in encodings])
    fit = max(2, int((ends * bundle.n_parameters <= READ_WORK).sum()))
    return list(encodings[:fit]), sum(cut[:fit]), max(0, len(encodings) - fit)


def _read(bundle: Bundle, source: Encoding) -> _Read:
    """Read one text; a translation reads on with what it writes itself, greedily."""
    by_kind = attentions(bundle)
    if bundle.kind == "translation":
        cases = with_targets(bundle, [source], [None])
        trace = run(cases, sites=tuple(f"{scope}.weights" for scopes in by_kind.values() for scope in scopes))[1]
        target = _of_ids(bundle.of_target, cases.inputs[1][0].tolist())
    else:
        trace, target = read(bundle, source, sites=("*.self_attention.weights",)).trace, None
    weights = {
        kind: np.stack([trace[f"{scope}.weights"][0].float().cpu().numpy() for scope in scopes])
        for kind, scopes in by_kind.items()
    }
    return _Read(weights, source, target)


def _of_ids(tokenizer: Tokenizer, ids: Sequence[int]) -> Encoding:
    """Return written tokens as places_of reads them."""
    labels, special = tokenizer.labels_of(ids), tuple(map(tokenizer.is_special, ids))
    none = (0,) * len(ids)
    return Encoding(tuple(ids), labels, labels, tuple(zip(none, none, strict=True)), none, special, special, "")


def _seen_and_places(bundle: Bundle, one: _Read, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return which keys the queries see, (query_pos, key_pos), and which of these are which place, (place, ...)."""
    queries, keys = one.sides(kind)
    padding = bundle.config.padding
    if kind != "cross":
        causal = kind == "decoder" and (bundle.kind == "translation" or bundle.reader.causal)
        return seen_by(queries, padding, causal), places_of(queries, real_positions(queries, padding))
    seen = np.outer(np.ones(len(queries), dtype=bool), real_positions(keys, padding))
    places = np.zeros((len(PLACES), *seen.shape), dtype=bool)
    places[PLACES.index("first"), :, 0] = True
    places[PLACES.index("marks")] = is_mark(keys)[None, :]
    return seen, places & seen


def _looked_at(bundle: Bundle, readings: Sequence[_Read]) -> dict[str, Found]:
    """Return value, bounds, chance and count of the measures of weights, each of all heads."""
    parts: dict[str, list[Found]] = {name: [] for name in (*PLACES, "entropy", "distance")}
    for kind in readings[0].weights:
        n_heads = readings[0].weights[kind][..., 0, 0].size
        tallies: list[Tally] = []
        distances = []
        for one in readings:
            weights, (seen, places) = one.weights[kind], _seen_and_places(bundle, one, kind)
            tallies.append(tally(weights, places, seen))
            distances.append(_distance(weights, seen))
        for place, name in enumerate(PLACES):
            counts = np.array([one.queries[place] for one in tallies])
            uniform = np.array([one.uniform[place] for one in tallies])
            sums = np.stack([one.weights[..., place].ravel() for one in tallies])
            if kind == "cross" and name not in OF_CROSS:
                counts = np.zeros_like(counts)
            parts[name].append(_ratio(sums, counts, uniform))
        rows = np.array([float(one.rows) for one in tallies])
        parts["entropy"].append(_ratio(np.stack([one.entropy.ravel() for one in tallies]), rows, rows))
        sums, uniform = (np.stack(found) for found in zip(*distances, strict=True))
        asked = np.zeros_like(rows) if kind == "cross" else rows
        parts["distance"].append(_ratio(sums, asked, uniform))
        assert all(len(found[-1][0]) == n_heads for found in parts.values())
    joined_parts = {}
    for name, found in parts.items():
        value, bounds, chance, count = zip(*found, strict=True)
        joined_parts[name] = (
            np.concatenate(value),
            np.concatenate(bounds, axis=1),
            np.concatenate(chance),
            np.concatenate(count),
        )
    return joined_parts


def _distance(weights: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the sum of each head's mean distance over queries that see several keys, and that of a uniform head."""
    apart = np.abs(np.subtract.outer(np.arange(seen.shape[0]), np.arange(seen.shape[1])))  # (query_pos, key_pos)
    keys = seen.sum(-1)
    several = keys > 1
    far = (weights * apart).sum(-1, dtype=np.float64)[..., several].sum(-1).ravel()  # (head,)
    return far, float(((apart * seen).sum(-1)[several] / keys[several]).sum())


def _nothing(n_heads: int) -> Found:
    none = np.full(n_heads, np.nan)
    return none, np.stack((none, none)), none, np.zeros(n_heads, dtype=int)


def _ratio(sums: np.ndarray, counts: np.ndarray, uniform: np.ndarray) -> Found:
    """Return sum over sum with its bounds, that of a uniform head, and the count; nan where nothing counts.

    Shapes:
        sums: (text, head); counts, uniform: (text,)
    """
    total, n_heads = float(counts.sum()), sums.shape[1]
    if not total:
        return _nothing(n_heads)
    chance = np.full(n_heads, uniform.sum() / total)
    return sums.sum(0) / total, ratio_bounds(sums, counts), chance, np.full(n_heads, int(total))


def _induction(bundle: Bundle, seed: int) -> Induction | None:
    """Return induction on as many sequences as fit in the time for reading; None where the model can read none."""
    most = int(READ_WORK / (2 * TOKENS_A_SEQUENCE * bundle.n_parameters))
    try:
        return induction_scores(bundle=bundle, sequences=min(SEQUENCES, max(FEWEST_SEQUENCES, most)), seed=seed)
    except ValueError:
        return None


def _texts_off(bundle: Bundle, n_heads: int, there: int) -> int:
    """Return on how many texts heads are switched off one by one; 0 where that takes too long, or nothing answers."""
    fit = int(OFF_WORK / (bundle.n_parameters * n_heads * TOKENS_A_TEXT))
    return 0 if bundle.reader.asks is None or fit < FEWEST_OFF else min(OFF_TEXTS, fit, there)


def _effects(bundle: Bundle, texts: int, seed: int, among: Among) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Switch every head off alone, to zero: change of ln p an answer, bounds, answers, and texts that were read."""
    cases = measured_cases(bundle, texts, seed, among)

    def log_prob(left: torch.Tensor) -> np.ndarray:
        parts = [run(part, edits=mask_edits(bundle, left, "zero"))[0] for part in batches(cases)]
        return joined(parts).log_prob.cpu().double().numpy()

    stays = torch.ones(1, len(all_heads(bundle)), dtype=torch.bool)
    before, asked = log_prob(stays), cases.asked.cpu().double().numpy()
    changes = []
    for head in counted(range(stays.shape[1])):
        left = stays.clone()
        left[0, head] = False
        changes.append(log_prob(left) - before)
    sums = np.stack(changes, axis=1)  # (text, head)
    return sums.sum(0) / asked.sum(), ratio_bounds(sums, asked), int(asked.sum()), len(cases)


def _strongest(
    bundle: Bundle, readings: Sequence[_Read], heads: Sequence[tuple[str, int, int]]
) -> dict[str, np.ndarray]:
    """Return each head's strongest rows, of each text at most one, as CorpusHeads has them."""
    width = max(max(len(one.source), len(one.target or ())) for one in readings)
    greatest = np.full((len(heads), len(readings)), -1.0)
    queries, keys = np.full((2, *greatest.shape), -1)
    for text, one in enumerate(readings):
        first = 0
        for kind, weights in one.weights.items():
            looks, _ = one.sides(kind)
            seen, _ = _seen_and_places(bundle, one, kind)
            asks = ~np.array(looks.special) & (seen.sum(-1) > 1)
            flat = weights.reshape(-1, *weights.shape[2:])
            part = slice(first, first + len(flat))
            first += len(flat)
            if not asks.any():
                continue
            tops = np.where(asks, flat.max(-1), -1.0)  # (head, query_pos)
            best = tops.argmax(-1)
            greatest[part, text], queries[part, text] = tops.max(-1), best
            keys[part, text] = flat[np.arange(len(flat)), best].argmax(-1)
    order = np.argsort(-greatest, axis=1, kind="stable")[:, :ROWS]
    weight, query, key = (np.take_along_axis(one, order, axis=1) for one in (greatest, queries, keys))
    order = np.where(weight < 0, -1, order)
    rows = np.full((*order.shape, width), np.nan, dtype=np.float32)
    for place, (kind, layer, head) in enumerate(heads):
        for row, text in enumerate(order[place].tolist()):
            if text >= 0:
                found = readings[text].weights[kind][layer, head, query[place, row]]
                rows[place, row, : len(found)] = found
    names = ("row_text", "row_query", "row_key", "row_weight", "row_weights")
    return dict(zip(names, (order, query, key, weight, rows), strict=True))
