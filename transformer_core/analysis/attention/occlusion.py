"""Occlusion: what the verdict loses when one token is hidden, beside where attention led.

Zeiler and Fergus 2014, section 4.2, with tokens for pixels; that attention need not agree: Jain and Wallace 2019.
Read next: effects.py.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from transformer_core.analysis.attention.flow import attention_flow
from transformer_core.analysis.attention.ranking import RankCorrelation, rank_correlation
from transformer_core.checkpoints import Bundle
from transformer_core.probe import capture

Substitute = Literal["mask", "unk"]
MOST_AT_ONCE = 32


@dataclass(frozen=True, eq=False)
class Occlusion:
    """What each token does for the verdict.

    Shapes:
        change: (pos,), not a number at special tokens and where the token was the substitute already

    Args:
        winner: the likeliest class of the whole text.
        before: its probability there.
        change: its probability without the token, minus before.
    """

    winner: int
    before: float
    change: np.ndarray


@dataclass(frozen=True, eq=False)
class Evidence:
    """Where attention led and what hiding changes, with how far the two orders of tokens agree.

    Shapes:
        rollout, last: (pos,); effect: (pos,), the size of occlusion's change
    """

    rollout: np.ndarray
    last: np.ndarray
    effect: np.ndarray
    occlusion: Occlusion
    rollout_agrees: RankCorrelation
    last_agrees: RankCorrelation


@torch.inference_mode()
def occlusion(*, bundle: Bundle, text: str, n_tokens: int, substitute: Substitute = "mask") -> Occlusion:
    """Read a text once for each of its tokens, with that token replaced; special tokens stay where they are.

    Args:
        bundle: a classifier.
        n_tokens: how many tokens of the text are read at most.
        substitute: the token that takes its place, [MASK] or the unknown one.

    Raises:
        ValueError: the bundle is no classifier, or its vocabulary has no such token.
    """
    if bundle.kind != "classifier":
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}; it must be a classifier")
    token_id = {"mask": bundle.tokenizer.mask_id, "unk": bundle.tokenizer.unk_id}.get(substitute)
    if token_id is None:
        raise ValueError(f"substitute={substitute!r} must be mask or unk, and a token of the model's vocabulary")
    encoding = bundle.tokenizer.encode(text, max_len=n_tokens)
    places = [
        place
        for place, (there, special) in enumerate(zip(encoding.ids, encoding.special, strict=True))
        if not special and there != token_id
    ]
    device = next(bundle.model.parameters()).device
    token_ids = torch.tensor([encoding.ids], device=device).repeat(len(places) + 1, 1)  # (copy, pos)
    for copy, place in enumerate(places):
        token_ids[copy + 1, place] = token_id
    logits = torch.cat(
        [capture(bundle.model, part, sites=("class_logits",))[0] for part in token_ids.split(MOST_AT_ONCE)]
    )
    probabilities = logits.softmax(-1).double().cpu().numpy()  # (copy, class)
    winner = int(probabilities[0].argmax())
    change = np.full(len(encoding), np.nan)
    change[places] = probabilities[1:, winner] - probabilities[0, winner]
    return Occlusion(winner, float(probabilities[0, winner]), change)


def verdict_evidence(*, bundle: Bundle, text: str, n_tokens: int, substitute: Substitute = "mask") -> Evidence:
    """Hold rollout and the last layer's weights against the effect that hiding each token has.

    Args:
        bundle, text, n_tokens, substitute: as of occlusion.

    Raises:
        ValueError: as occlusion.
    """
    flow = attention_flow(bundle=bundle, text=text, n_tokens=n_tokens)
    hidden = occlusion(bundle=bundle, text=text, n_tokens=n_tokens, substitute=substitute)
    effect = np.abs(hidden.change)
    return Evidence(
        flow.verdict_rollout,
        flow.verdict_last,
        effect,
        hidden,
        rank_correlation(flow.verdict_rollout, effect),
        rank_correlation(flow.verdict_last, effect),
    )
