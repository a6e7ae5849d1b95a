"""What a score loses without a part, beside the part's share in the score's sum.

A share is what a part writes towards the score itself, with everything above it held. Switched off, a part is missed by
all that reads it as well, and every norm divides by another number: later parts may pass on what it wrote, or make up
for it (McGrath et al. 2023, "The Hydra effect"). Ablation to zero: Michel et al. 2019, section 2.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.attention.heads import Ablation, sentence_ablation, without
from transformer_core.analysis.lab.cases import MOST_TOKENS_AT_ONCE
from transformer_core.analysis.rank_correlation import RankCorrelation, rank_correlation
from transformer_core.analysis.stream.asked_score import RUNNER_UP, AskedScore, asked_score, place_of, scores_under
from transformer_core.analysis.stream.opened_part import number_in, pieces_of
from transformer_core.analysis.stream.score_sum import score_sum
from transformer_core.probe import Edit
from transformer_core.progress import counted
from transformer_core.prompt import Prompt

SMALL, ALIKE = 0.05, 0.25


def compared(share: float, effect: float) -> str:
    """Return how the measured effect of a part stands to its share in the sum.

    Returns:
        "small" where both are below SMALL in size; "alike" where they differ by at most ALIKE of the larger; "against"
        where they have different signs; else "less" or "more", as the effect is the smaller or the larger in size.
    """
    larger = max(abs(share), abs(effect))
    if larger < SMALL:
        return "small"
    if abs(effect - share) <= ALIKE * larger:
        return "alike"
    if share * effect < 0:
        return "against"
    return "less" if abs(effect) < abs(share) else "more"


@dataclass(frozen=True, eq=False)
class WithoutPart:
    """A score with and without a part, before a cap.

    Args:
        before, after: with the part, and without it.
    """

    before: float
    after: float

    @property
    def effect(self) -> float:
        """What the part brings: before - after."""
        return self.before - self.after


@dataclass(frozen=True, eq=False)
class WithoutEach:
    """A score without each head and each feed-forward layer in turn, beside their shares.

    Shapes:
        shares, effects: (part,), effects being the score with all parts minus the score without this one

    Args:
        names: codes of the parts, as of score_sum.
        apart: the place of the part whose effect and share differ most.
        order: how far both put the same parts first.
        passes: texts that were read.
    """

    names: tuple[str, ...]
    shares: np.ndarray
    effects: np.ndarray
    apart: int
    order: RankCorrelation
    passes: int


def score_without(
    *,
    prompt: Prompt,
    part: str,
    answer: int | None = None,
    against: int = RUNNER_UP,
    place: int | None = None,
    hidden: tuple[int, ...] = (),
    target_ids: tuple[int, ...] = (),
    how: Ablation = "zero",
) -> WithoutPart:
    """Switch one part off everywhere in the text, and read the score once more.

    Args:
        prompt, answer, against, place, hidden, target_ids: as of score_sum.
        part: the code of a head, a token that a head reads (its weight becomes 0 for every position), a feed-forward
            layer (what its biases write stays) or a neuron.
        how: to zero or to its mean over the text's positions; a token's weight always to 0.

    Raises:
        ValueError: as score_sum, or the part cannot be switched off.
    """
    asked = asked_score(place_of(prompt, place, hidden, target_ids), answer=answer, against=against)
    after = _without(asked, [part], how)
    return WithoutPart(float(asked.of(asked.scored.scores[None])[0]), float(after[0]))


def score_without_each(
    *,
    prompt: Prompt,
    answer: int | None = None,
    against: int = RUNNER_UP,
    place: int | None = None,
    hidden: tuple[int, ...] = (),
    target_ids: tuple[int, ...] = (),
    how: Ablation = "zero",
) -> WithoutEach:
    """Switch every head and every feed-forward layer off in turn.

    Args:
        prompt, answer, against, place, hidden, target_ids, how: as of score_without.

    Raises:
        ValueError: as score_sum.
    """
    asking = {"answer": answer, "against": against, "place": place, "hidden": hidden, "target_ids": target_ids}
    found = score_sum(prompt=prompt, **asking)  # type: ignore[arg-type]
    at = place_of(prompt, place, hidden, target_ids)
    asked = asked_score(at, answer=found.answer, against=against)
    switched = [name for name in found.names if name.startswith("layer") and "bias" not in name]
    most = MOST_TOKENS_AT_ONCE // max(ids.shape[1] for ids in at.inputs)
    at_once = max(1, at.bundle.reader.at_once(at.inputs[-1].shape[1], most))
    after = [
        _without(asked, switched[start : start + at_once], how) for start in counted(range(0, len(switched), at_once))
    ]
    effects = (found.score - torch.cat(after)).numpy()
    shares = found.values[[found.names.index(name) for name in switched]]
    return WithoutEach(
        tuple(switched),
        shares,
        effects,
        int(np.abs(effects - shares).argmax()),
        rank_correlation(shares, effects),
        1 + len(switched),
    )


def _without(asked: AskedScore, parts: Sequence[str], how: Ablation) -> Tensor:
    """Return the score of a copy of the text without each part. # (part,)"""
    stack, config = asked.place.stack, asked.place.bundle.config
    by_site: dict[str, list[tuple[int, list[str]]]] = {}
    for copy, code in enumerate(parts):
        layer, sublayer, inner = pieces_of(code)
        number_in(layer, "layer", config.n_layers)
        mixed = sublayer == "feed_forward" and bool(config.n_experts)
        if mixed and inner:
            raise ValueError(f"part={code!r:.80} lies in a mixture, whose layers are switched off whole")
        leaf = "output" if mixed else "activation" if sublayer == "feed_forward" else "heads"
        leaf = "weights" if len(inner) == 2 else leaf
        by_site.setdefault(f"{stack}.{layer}.{sublayer}.{leaf}", []).append((copy, inner))
    edits = {site: _edit(which, how) for site, which in by_site.items()}
    return scores_under(asked, edits, len(parts))


def _edit(which: Sequence[tuple[int, list[str]]], how: Ablation) -> Edit:
    """Return the edit that switches off, in some copies of a text, a part of (copy, ..., pos, width)."""

    def edit(tensor: Tensor) -> Tensor:
        for copy, inner in which:
            mine = tensor[copy]
            if len(inner) == 2:  # (head, query_pos, key_pos)
                mine[number_in(inner[0], "head", len(mine)), :, number_in(inner[1], "token", mine.shape[-1])] = 0.0
            elif tensor.dim() == 4:  # (head, pos, d_head)
                off = torch.arange(len(mine)) == number_in(inner[0], "head", len(mine))
                tensor[copy] = without(mine, off, sentence_ablation(mine, how))
            else:  # (pos, neuron), or what a mixture adds
                mean = mine.mean(0) if how == "mean" else torch.zeros_like(mine[0])
                chosen = slice(None) if not inner else number_in(inner[0], "neuron", mine.shape[-1])
                mine[:, chosen] = mean[chosen]
        return tensor

    return edit
