"""Gradients: how strongly the verdict depends on each token's embedding, at the sentence and on the path to it.

Simonyan et al. 2014 (gradients); gradient times input: Shrikumar et al. 2016; integrated gradients: Sundararajan et al.
2017.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.encoder.layers import classifier_of, winner_and_rival
from transformer_core.analysis.outcome import one_text
from transformer_core.bundle import Bundle
from transformer_core.config import require_choice, require_range
from transformer_core.probe import Probe
from transformer_core.prompt import Prompt

Baseline = Literal["mask", "zero"]
EMBEDDING = "encoder.embedding.token_embedding"
MOST_STEPS = 256
AT_ONCE = 16


@dataclass(frozen=True, eq=False)
class Saliency:
    """What gradients say of each token; all in logits of the margin, winner minus rival.

    Shapes:
        norms: (pos,), length of the gradient with respect to the token's embedding
        products: (pos,), gradient . embedding
        integrated: (pos,), gradient averaged from the baseline to the sentence, . (embedding - baseline)

    Args:
        winner, rival: the likeliest class, and the likeliest other one.
        margin: of the sentence; margin_baseline: of the baseline.
        summed: of integrated; it equals margin - margin_baseline if the steps are fine enough (completeness).
        gap: summed - (margin - margin_baseline).
        steps: points on the way, each in the middle of its part.
        baseline: "mask": every word's embedding is that of [MASK]; "zero": it is 0. Special tokens and positions stay.
    """

    norms: np.ndarray
    products: np.ndarray
    integrated: np.ndarray
    winner: int
    rival: int
    margin: float
    margin_baseline: float
    summed: float
    gap: float
    steps: int
    baseline: Baseline


def baselines(bundle: Bundle) -> tuple[Baseline, ...]:
    """Return the baselines that a model has, the best first."""
    return ("zero",) if bundle.tokenizer.mask_id is None else ("mask", "zero")


def margins(bundle: Bundle, token_ids: Tensor, embedded: Tensor, winner: int, rival: int) -> Tensor:
    """Return winner's minus rival's logit where the tokens' embeddings are exchanged for others.

    Shapes:
        token_ids: (one, pos); embedded: (batch, pos, d_model); returns: (batch,)
    """
    ids = token_ids.expand(len(embedded), -1)
    logits = bundle.model(ids, probe=Probe((), edits={EMBEDDING: lambda _: embedded}))
    return logits[:, winner] - logits[:, rival]


def gradients(bundle: Bundle, token_ids: Tensor, embedded: Tensor, winner: int, rival: int) -> tuple[Tensor, Tensor]:
    """Return the margins and their gradients with respect to the embeddings; no parameter gets one.

    Shapes:
        as margins; returns: (batch,) and (batch, pos, d_model)
    """
    with torch.inference_mode(False), torch.enable_grad():
        leaf = embedded.detach().clone().requires_grad_(True)
        found = margins(bundle, token_ids.clone(), leaf, winner, rival)
        (slopes,) = torch.autograd.grad(found.sum(), leaf)
    return found.detach(), slopes


def baseline_of(bundle: Bundle, token_ids: Tensor, special: tuple[bool, ...], baseline: Baseline) -> Tensor:
    """Return the embeddings of a sentence without its words.

    Shapes:
        token_ids: (one, pos); returns: (one, pos, d_model)

    Raises:
        ValueError: there is no such baseline, or no [MASK] in the vocabulary.
    """
    require_choice("baseline", baseline, ("mask", "zero"))
    table = classifier_of(bundle).encoder.embedding.token
    own = torch.tensor([[not is_special for is_special in special]], device=token_ids.device)
    if baseline == "zero":
        return table(token_ids).masked_fill(own[..., None], 0.0)
    if bundle.tokenizer.mask_id is None:
        raise ValueError(f"baseline='mask' needs a token [MASK]; {bundle.name} has none")
    return table(token_ids.masked_fill(own, bundle.tokenizer.mask_id))


def saliency(
    *, prompt: Prompt, steps: int = 32, baseline: Baseline = "mask", between: tuple[int, int] | None = None
) -> Saliency:
    """Measure gradient norm, gradient times input and integrated gradients of the verdict's margin.

    Args:
        prompt: to a classifier.
        steps: of the integral, from 1 to 256; each costs a pass there and back.
        baseline: see Saliency.
        between: the two classes whose margin is meant, in place of the likeliest ones.

    Raises:
        ValueError: steps is outside its range, there is no such baseline, or the bundle is not a classifier.
    """
    bundle = prompt.bundle
    table = classifier_of(bundle).encoder.embedding.token
    require_range("steps", steps, 1, MOST_STEPS)
    encoding = prompt.encoding
    token_ids = one_text(bundle, encoding)
    with torch.no_grad():
        winner, rival = between or winner_and_rival(bundle.model(token_ids)[0])
        here = table(token_ids)  # (one, pos, d_model)
        empty = baseline_of(bundle, token_ids, encoding.special, baseline)
        ends = margins(bundle, token_ids, torch.cat([empty, here]), winner, rival).cpu().double().tolist()
    slope = gradients(bundle, token_ids, here, winner, rival)[1][0].cpu().double()  # (pos, d_model)
    shares = (torch.arange(steps, device=here.device, dtype=here.dtype) + 0.5) / steps
    along = torch.zeros_like(slope)
    for part in shares.split(AT_ONCE):
        points = empty + part[:, None, None] * (here - empty)  # (step, pos, d_model)
        along += gradients(bundle, token_ids, points, winner, rival)[1].cpu().double().sum(0)
    integrated = (along / steps * (here - empty)[0].cpu().double()).sum(-1)
    summed = float(integrated.sum())
    return Saliency(
        slope.norm(dim=-1).numpy(),
        (slope * here[0].cpu().double()).sum(-1).numpy(),
        integrated.numpy(),
        winner,
        rival,
        ends[1],
        ends[0],
        summed,
        summed - (ends[1] - ends[0]),
        steps,
        baseline,
    )
