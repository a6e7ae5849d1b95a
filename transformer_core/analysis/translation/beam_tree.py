"""Beam search as a tree: every continuation that was scored, what became of it, the ranking, and what each width finds.

Sutskever et al. 2014, section 3.2; length penalty: Wu et al. 2016, eq. 14; wide beams: Stahlberg and Byrne 2019.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from transformer_core.analysis.translation.greedy_steps import Source, source_of
from transformer_core.bundle import Bundle
from transformer_core.generation import BeamStep, Hypothesis, beam_search, best_of, ranked
from transformer_core.generation.beam import penalty
from transformer_core.prompt import Prompt

Fate = Literal["kept", "finished", "dropped"]


@dataclass(frozen=True, eq=False)
class Ranking:
    """The hypotheses that a search ends with, best score first.

    Shapes:
        log_probs, lengths, penalties, scores: (hypothesis,)

    Args:
        texts: the translations; finished: whether each ends with the end token.
    """

    texts: tuple[str, ...]
    finished: tuple[bool, ...]
    log_probs: np.ndarray
    lengths: np.ndarray
    penalties: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True, eq=False)
class BeamTree:
    """All that a beam search scored, node by node; score is log_prob / penalty.

    Shapes:
        depths, parents, ranks, log_probs, steps, scores: (node,)

    Args:
        depths: words from the start, 1 for first words; parents: the node it goes on from, -1 for the start.
        ranks: place among what its depth scored, 0 the likeliest.
        words: what each node adds; texts: all of it from the start.
        log_probs: of the whole, in nats; steps: of the node's own word given those before.
        fates: what became of it; on_best: it lies on the path to the best translation.
        ranking: what the search ends with.
        n_weighed: continuations scored in all, a whole vocabulary for each hypothesis alive.
    """

    source: tuple[str, ...]
    depths: np.ndarray
    parents: np.ndarray
    ranks: np.ndarray
    words: tuple[str, ...]
    texts: tuple[str, ...]
    log_probs: np.ndarray
    steps: np.ndarray
    scores: np.ndarray
    fates: tuple[Fate, ...]
    on_best: np.ndarray
    ranking: Ranking
    n_weighed: int

    @property
    def behind(self) -> tuple[int, ...]:
        """The depths at which something else was likelier than the beginning of the best translation."""
        return tuple(self.depths[self.on_best & (self.ranks > 0)].tolist())


def beam_tree(*, prompt: Prompt, width: int, length_penalty: float, most: int = 64) -> BeamTree:
    """Search for a translation and keep all that was scored on the way.

    Args:
        prompt: to a translation.
        width: hypotheses that go on side by side.
        length_penalty: alpha; 0 compares sums of log-probabilities.
        most: words at most.

    Raises:
        ValueError: as source_of and beam_search.
    """
    source = source_of(prompt, "translation")
    steps = list(steps_of(source, width=width, length_penalty=length_penalty, most=most))
    return tree_of(prompt.bundle, source.encoding.labels, steps, source.eos_id, length_penalty)


def steps_of(source: Source, *, width: int, length_penalty: float, most: int) -> Iterator[BeamStep]:
    """Search for a translation of what was read; arguments as in beam_tree."""
    return beam_search(
        source.model,
        source.ids,
        width=width,
        bos_id=source.bos_id,
        eos_id=source.eos_id,
        most=min(most, source.most),
        length_penalty=length_penalty,
    )


def tree_of(
    bundle: Bundle, source: tuple[str, ...], steps: Sequence[BeamStep], eos_id: int, length_penalty: float
) -> BeamTree:
    """Return a search's steps as one tree; arguments as in beam_tree and beam_search."""
    tokenizer = bundle.tokenizer
    nodes = [(depth, rank, one) for depth, step in enumerate(steps, 1) for rank, one in enumerate(step.considered)]
    place = {one.token_ids: index for index, (_, _, one) in enumerate(nodes)}
    ended = {one.token_ids for one in steps[-1].finished}
    parents = np.array([place.get(one.token_ids[:-1], -1) for _, _, one in nodes])
    log_probs = np.array([one.log_prob for _, _, one in nodes])
    before = np.where(parents >= 0, log_probs[parents], 0.0)
    best = ranked(steps[-1])
    ways = [best[0].token_ids[:length] for length in range(1, len(best[0].token_ids) + 1)]
    alive = sum(len(step.kept) for step in steps[:-1]) + 1
    return BeamTree(
        source=source,
        depths=np.array([depth for depth, _, _ in nodes]),
        parents=parents,
        ranks=np.array([rank for _, rank, _ in nodes]),
        words=tuple(tokenizer.label_of(one.token_ids[-1]) for _, _, one in nodes),
        texts=tuple(tokenizer.decode(one.token_ids) for _, _, one in nodes),
        log_probs=log_probs,
        steps=log_probs - before,
        scores=np.array([one.score for _, _, one in nodes]),
        fates=tuple(_fate(one, ended) for _, _, one in nodes),
        on_best=np.isin(np.arange(len(nodes)), [place[ids] for ids in ways]),
        ranking=ranking_of(bundle, best, length_penalty),
        n_weighed=alive * (bundle.config.target_vocab_size or bundle.config.vocab_size),
    )


def _fate(hypothesis: Hypothesis, ended: set[tuple[int, ...]]) -> Fate:
    if hypothesis.token_ids in ended:
        return "finished"
    return "kept" if hypothesis.alive else "dropped"


def ranking_of(bundle: Bundle, hypotheses: Sequence[Hypothesis], length_penalty: float) -> Ranking:
    """Return hypotheses, best first, with what their scores are made of."""
    lengths = np.array([len(one.token_ids) for one in hypotheses])
    return Ranking(
        texts=tuple(bundle.tokenizer.decode(one.token_ids) for one in hypotheses),
        finished=tuple(one.finished for one in hypotheses),
        log_probs=np.array([one.log_prob for one in hypotheses]),
        lengths=lengths,
        penalties=np.array([penalty(length, length_penalty) for length in lengths.tolist()]),
        scores=np.array([one.score for one in hypotheses]),
    )


@dataclass(frozen=True, eq=False)
class Widths:
    """The best translation by width, from 1 on.

    Shapes:
        widths, log_probs, lengths, scores: (width,)
    """

    widths: np.ndarray
    texts: tuple[str, ...]
    log_probs: np.ndarray
    lengths: np.ndarray
    scores: np.ndarray

    @property
    def changed(self) -> bool:
        """Whether any width finds another translation than width 1."""
        return len(set(self.texts)) > 1


def best_by_width(*, prompt: Prompt, widest: int, length_penalty: float, most: int = 64) -> Widths:
    """Search with every width from 1 to `widest`; arguments as in beam_tree.

    Raises:
        ValueError: as beam_tree.
    """
    source = source_of(prompt, "translation")
    best = [
        best_of(steps_of(source, width=width, length_penalty=length_penalty, most=most))
        for width in range(1, widest + 1)
    ]
    found = ranking_of(prompt.bundle, best, length_penalty)
    return Widths(np.arange(1, widest + 1), found.texts, found.log_probs, found.lengths, found.scores)
