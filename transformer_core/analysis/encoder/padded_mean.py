"""The mean that stands for a sentence, with padding counted and without, as more and more padding is appended.

Reimers and Gurevych 2019, section 3; the mean over all positions is a common variant.
"""

from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.analysis.encoder.layers import class_logits, classifier_of, winner_and_rival
from transformer_core.config import require_range
from transformer_core.models.output import mean_over_real_tokens
from transformer_core.prompt import Prompt


@dataclass(frozen=True, eq=False)
class PaddedMean:
    """Two means of one sentence, by how much padding follows it.

    Shapes:
        pads: (step,), padding tokens appended, from 0 on
        real_moves, all_moves: (step,), how far the mean is from that without padding, as a share of its length
        real_shares, all_shares: (step,), probability of `winner` by the class map where it reads that mean

    Args:
        real_*: of the mean over real tokens; all_*: of the mean over all positions.
        n_real: tokens of the sentence that are no padding.
        winner: the class that the class map gives the mean without padding.
    """

    pads: np.ndarray
    real_moves: np.ndarray
    all_moves: np.ndarray
    real_shares: np.ndarray
    all_shares: np.ndarray
    n_real: int
    winner: int


@torch.inference_mode()
def padded_mean(*, prompt: Prompt, pads: int) -> PaddedMean:
    """Read a text with 0, 1, ... pads behind it, and take both means of what the encoder returns.

    Args:
        prompt: to a classifier; fewer tokens are read where it has no room for the padding behind them.
        pads: the most padding.

    Raises:
        ValueError: the bundle is no classifier of two classes, or has no padding token, or pads is out of range.
    """
    bundle = prompt.bundle
    model, padding = classifier_of(bundle), bundle.config.padding
    if bundle.config.pad_id is None:
        raise ValueError(f"bundle={bundle.name!r} has no padding token")
    require_range("pads", pads, 1, bundle.config.max_len - 1)
    ids = bundle.tokenizer.encode(prompt.text, max_len=min(prompt.n_tokens, bundle.config.max_len - pads)).ids
    device = next(model.parameters()).device
    rows = torch.tensor([[*ids, *[padding] * pads]], device=device)
    real, whole = [], []
    for count in range(pads + 1):
        own = rows[:, : len(ids) + count]
        x = model.encoder(own)  # (1, pos, d_model)
        real.append(mean_over_real_tokens(x, own, padding)[0])
        whole.append(x[0].mean(0))
    read = torch.stack([torch.stack(real), torch.stack(whole)])  # (mean, step, d_model)
    means = read.cpu().double()
    moves = (means - means[:, :1]).norm(dim=-1) / means[:, :1].norm(dim=-1).clamp(min=1e-12)
    logits = class_logits(bundle, read).cpu().double()
    winner, _ = winner_and_rival(logits[0, 0])
    shares = logits.softmax(-1)[..., winner]
    return PaddedMean(
        np.arange(pads + 1),
        *(one.numpy() for one in (*moves, *shares)),
        n_real=sum(id_ != padding for id_ in ids),
        winner=winner,
    )
