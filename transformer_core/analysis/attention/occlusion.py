"""Occlusion: what the model's prediction loses when one token, or a whole word, is hidden.

Zeiler and Fergus 2014, section 4.2, with tokens for pixels; cutting a token off: Geva et al. 2023, section 5; that
attention need not agree: Jain and Wallace 2019.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.attention.rollout import attention_flow
from transformer_core.analysis.outcome import one_text, own_mask, require_outcome
from transformer_core.analysis.rank_correlation import RankCorrelation, rank_correlation
from transformer_core.bundle import Bundle
from transformer_core.probe import capture
from transformer_core.progress import counted
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding
from transformer_core.text.encoding import words_of

Substitute = Literal["mask", "unk", "cut"]
MOST_AT_ONCE = 32


@dataclass(frozen=True, eq=False)
class Occlusion:
    """How much each token contributes to the prediction.

    Shapes:
        change: (pos,), not a number at special tokens and where the token was the substitute already

    Args:
        winner: the likeliest outcome (see outcome.py) of the whole text.
        before: its probability there.
        change: its probability without the token, minus before.
    """

    winner: int
    before: float
    change: np.ndarray


@dataclass(frozen=True, eq=False)
class Evidence:
    """Rollout, last-layer attention and occlusion of one text, and how well their rankings of tokens agree.

    Shapes:
        rollout, last: (pos,); effect: (pos,), the size of occlusion's change
    """

    rollout: np.ndarray
    last: np.ndarray
    effect: np.ndarray
    occlusion: Occlusion
    rollout_agrees: RankCorrelation
    last_agrees: RankCorrelation


def substitutes(bundle: Bundle) -> tuple[Substitute, ...]:
    """Return the ways to hide a token from this model, the best first; a GPT never saw [MASK] in training."""
    can = {"mask": bundle.tokenizer.mask_id is not None, "unk": bundle.tokenizer.unk_id is not None, "cut": True}
    kinds: tuple[Substitute, ...] = ("cut",) if bundle.kind == "gpt" else ("mask", "unk", "cut")
    return tuple(kind for kind in kinds if can[kind])


@torch.inference_mode()
def hidden_logits(
    bundle: Bundle,
    encoding: Encoding,
    substitute: Substitute,
    groups: Sequence[tuple[int, ...]] | None = None,
) -> tuple[list[int], Tensor]:
    """Read a text once for each group of its tokens, with these hidden; special tokens stay where they are.

    Args:
        groups: places that are hidden together; each token by itself where None.

    Shapes:
        returns: which of the groups were hidden, in order, and the logits (copy, outcome), those of the whole text
            first

    Raises:
        ValueError: the model predicts nothing from the text, or its vocabulary has no such token.
    """
    outcome = require_outcome(bundle, encoding)
    groups = [(place,) for place in range(len(encoding))] if groups is None else list(groups)
    cut = substitute == "cut"
    token_id = {"mask": bundle.tokenizer.mask_id, "unk": bundle.tokenizer.unk_id}.get(substitute)
    if token_id is None and not cut:
        raise ValueError(f"substitute={substitute!r} must be mask or unk, a token of the model's vocabulary, or cut")

    def can_be_hidden(places: tuple[int, ...]) -> bool:
        if any(encoding.special[place] for place in places):
            return False
        return outcome.place not in places if cut else any(encoding.ids[place] != token_id for place in places)

    hidden = [number for number, places in enumerate(groups) if can_be_hidden(places)]
    chosen = [groups[number] for number in hidden]
    token_ids = one_text(bundle, encoding).repeat(len(hidden) + 1, 1)  # (copy, pos)
    masks = _cut_off(own_mask(bundle, encoding).to(token_ids.device), chosen) if cut else None
    if token_id is not None:
        for copy, places in enumerate(chosen, 1):
            token_ids[copy, list(places)] = token_id
    step = bundle.reader.at_once(len(encoding), MOST_AT_ONCE)
    logits = []
    for start in counted(range(0, len(token_ids), step)):
        part = slice(start, start + step)
        mask = None if masks is None else masks[part]
        logits.append(outcome.logits(capture(bundle.model, token_ids[part], mask=mask, sites=())[0]))
    return hidden, torch.cat(logits)


def _cut_off(mask: Tensor, groups: Sequence[tuple[int, ...]]) -> Tensor:
    """Return a text's mask, then for each group one that hides its tokens from all others.

    Shapes:
        mask: (query_pos, key_pos); returns: (copy, 1, query_pos, key_pos)
    """
    masks = mask.repeat(len(groups) + 1, 1, 1, 1)
    for copy, places in enumerate(groups, 1):
        own = torch.tensor(places, device=mask.device)
        masks[copy, 0, :, own] = False
        masks[copy, 0, own[:, None], own] = mask[own[:, None], own]
    return masks


def occlusion(*, prompt: Prompt, substitute: Substitute = "mask") -> Occlusion:
    """Measure how much the winner's probability falls when each token is hidden.

    Args:
        prompt: to a model of a kind that predicts something from this text.
        substitute: the token that takes its place, [MASK] or the unknown one; or "cut": it stays, but no other token
            may attend to it, which needs no token that the model never saw. The position whose output is read cannot be
            cut off from itself.

    Raises:
        ValueError: as hidden_logits.
    """
    encoding = prompt.encoding
    places, logits = hidden_logits(prompt.bundle, encoding, substitute)
    probabilities = logits.softmax(-1).cpu().double().numpy()  # (copy, class)
    winner = int(probabilities[0].argmax())
    change = np.full(len(encoding), np.nan)
    change[places] = probabilities[1:, winner] - probabilities[0, winner]
    return Occlusion(winner, float(probabilities[0, winner]), change)


def verdict_evidence(*, prompt: Prompt, substitute: Substitute = "mask") -> Evidence:
    """Compare rollout and the last layer's weights with the effect of hiding each token.

    Args:
        prompt, substitute: as in occlusion.

    Raises:
        ValueError: as occlusion.
    """
    flow = attention_flow(prompt=prompt)
    hidden = occlusion(prompt=prompt, substitute=substitute)
    effect = np.abs(hidden.change)
    return Evidence(
        flow.verdict_rollout,
        flow.verdict_last,
        effect,
        hidden,
        rank_correlation(flow.verdict_rollout, effect),
        rank_correlation(flow.verdict_last, effect),
    )


@dataclass(frozen=True, eq=False)
class WordImportance:
    """How much each word of a text contributes to the prediction.

    Shapes:
        spans: (word, 2), where each begins and ends in the text; unknown: (word,), whether the vocabulary lacks it
        worth: (word,), the winner's probability with the word minus without it, above 0 where it pushes towards the
            winner; not a number where the word cannot be hidden

    Args:
        winner: the likeliest outcome (see outcome.py) of the whole text.
        before: its probability there.
        substitute: how a word was hidden (see occlusion.py).
    """

    spans: np.ndarray
    unknown: np.ndarray
    worth: np.ndarray
    winner: int
    before: float
    substitute: Substitute


def word_importance(*, prompt: Prompt) -> WordImportance:
    """Measure what hiding each word, all its tokens together, takes from the likeliest outcome.

    Args:
        prompt: to a model of a kind that predicts something from this text.

    Raises:
        ValueError: the model predicts nothing from the text.
    """
    encoding = prompt.encoding
    words, substitute = words_of(encoding), substitutes(prompt.bundle)[0]
    hidden, logits = hidden_logits(prompt.bundle, encoding, substitute, [word.places for word in words])
    probabilities = logits.float().softmax(-1).cpu().double().numpy()  # (copy, outcome)
    winner = int(probabilities[0].argmax())
    worth = np.full(len(words), np.nan)
    worth[hidden] = probabilities[0, winner] - probabilities[1:, winner]
    spans = np.array([(word.start, word.end) for word in words], dtype=np.int64).reshape(-1, 2)
    unknown = np.array([word.unknown for word in words], dtype=bool)
    return WordImportance(spans, unknown, worth, winner, float(probabilities[0, winner]), substitute)
