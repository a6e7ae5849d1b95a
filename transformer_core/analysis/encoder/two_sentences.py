"""Two sentences side by side: from which layer on the model distinguishes them, and how a changed word spreads."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.encoder.layers import (
    POOLINGS,
    class_logits,
    classifier_of,
    pooling_of,
    sentence_vectors,
    streams,
    winner_and_rival,
)
from transformer_core.analysis.lens import settled
from transformer_core.analysis.outcome import one_text
from transformer_core.prompt import Prompt

SHARE = 0.5


@dataclass(frozen=True, eq=False)
class SentencePair:
    """Two sentences through one model. Depth 0 is the embedding, depth l what layer l - 1 passes on.

    Shapes:
        margins: (sentence, depth), logit of the first sentence's class minus its rival's, by the class map at that
            depth, which was trained on the last one alone
        probabilities: (sentence, class), the model's own
        distances: (depth,), between the two sentence vectors, over the mean of their lengths
        spread: (depth, pair), the same between the streams of aligned tokens
        pairs: (pair, 2), positions in the first and in the second sentence

    Args:
        changed: one per pair, whether its two tokens differ.
        labels: one per pair, "word" or "word → other".
        winner, rival: the likeliest class of the first sentence, and its likeliest other one.
        separate_from: the first depth from which on the margins differ by at least half of their last difference,
            in the same direction.
        moved: the winner's probability in the second sentence minus that in the first.
        farthest: the pair of equal tokens whose last vectors are furthest apart; -1 where there is none.
    """

    margins: np.ndarray
    probabilities: np.ndarray
    distances: np.ndarray
    spread: np.ndarray
    pairs: np.ndarray
    changed: tuple[bool, ...]
    labels: tuple[str, ...]
    winner: int
    rival: int
    separate_from: int
    moved: float
    farthest: int


def aligned(first: tuple[int, ...], second: tuple[int, ...]) -> list[tuple[int, int]]:
    """Pair the positions of two rows of ids by the fewest inserted, deleted and replaced ids (Levenshtein's distance).

    A replaced id is paired with what takes its place; among alignments of one cost, the one that pairs further right.
    """
    fewest = [list(range(len(second) + 1))]
    for row, one in enumerate(first, 1):
        above, costs = fewest[-1], [row]
        for column, other in enumerate(second):
            costs.append(min(above[column] + (one != other), above[column + 1] + 1, costs[-1] + 1))
        fewest.append(costs)
    found, row, column = [], len(first), len(second)
    while row and column:
        if fewest[row][column] == fewest[row - 1][column - 1] + (first[row - 1] != second[column - 1]):
            row, column = row - 1, column - 1
            found.append((row, column))
        elif fewest[row][column] == fewest[row - 1][column] + 1:
            row -= 1
        else:
            column -= 1
    return found[::-1]


def pair_labels(first: Sequence[str], second: Sequence[str], pairs: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    """Return a label for each pair of positions of two texts: "word", or "word → other" where they differ."""
    names = [(first[one], second[other]) for one, other in pairs]
    return tuple(one if one == other else f"{one} → {other}" for one, other in names)


def apart(one: Tensor, other: Tensor) -> Tensor:
    """Return the distance of vectors over the mean of their lengths: (..., d) to (...)."""
    lengths = (one.norm(dim=-1) + other.norm(dim=-1)) / 2
    return (one - other).norm(dim=-1) / lengths.clamp(min=1e-12)


def sentence_pair(*, prompt: Prompt, other: Prompt) -> SentencePair:
    """Read two sentences and compare them at every depth.

    Args:
        prompt: to a classifier.
        other: the second sentence, to the same one.

    Raises:
        ValueError: the bundle is not a classifier of at least two classes.
    """
    bundle = prompt.bundle
    classifier_of(bundle)
    place = POOLINGS.index(pooling_of(bundle))
    flows, vectors, finals = [], [], []
    encodings = [one.encoding for one in (prompt, other)]
    for encoding in encodings:
        token_ids = one_text(bundle, encoding)
        stream, logits = streams(bundle, token_ids)
        flows.append(stream[:, 0].cpu().double())  # (depth, pos, d_model)
        vectors.append(sentence_vectors(bundle, stream, token_ids)[place, :, 0])  # (depth, d_model)
        finals.append(logits[0])
    winner, rival = winner_and_rival(finals[0])
    logits = class_logits(bundle, torch.stack(vectors))  # (sentence, depth, class)
    margins = (logits[..., winner] - logits[..., rival]).cpu().double().numpy()
    pairs = aligned(encodings[0].ids, encodings[1].ids)
    rows, cols = [row for row, _ in pairs], [col for _, col in pairs]
    spread = apart(flows[0][:, rows], flows[1][:, cols]).numpy()  # (depth, pair)
    changed = tuple(encodings[0].ids[row] != encodings[1].ids[col] for row, col in pairs)
    probabilities = torch.stack(finals).softmax(-1).cpu().double().numpy()
    same = np.flatnonzero(~np.array(changed, dtype=bool))
    return SentencePair(
        margins,
        probabilities,
        apart(vectors[0].cpu().double(), vectors[1].cpu().double()).numpy(),
        spread,
        np.array(pairs, dtype=np.int64).reshape(-1, 2),
        changed,
        pair_labels(encodings[0].labels, encodings[1].labels, pairs),
        winner,
        rival,
        depth_of_parting(margins[0] - margins[1]),
        float(probabilities[1, winner] - probabilities[0, winner]),
        int(same[spread[-1, same].argmax()]) if same.size else -1,
    )


def depth_of_parting(difference: np.ndarray) -> int:
    """Return the first depth from which on a difference keeps at least half of its last value; (depth,)."""
    enough = difference * np.sign(difference[-1]) >= SHARE * abs(difference[-1])
    return int(settled(torch.from_numpy(enough)))
