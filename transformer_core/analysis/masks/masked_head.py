"""One head under a mask of the user's own, and a row that may attend to nothing.

A mask in every layer goes in as the model's argument; in one layer alone, the probe replaces that layer's masked
scores. A layer's window hides what it hides under any mask. Vaswani et al. 2017, section 3.2.3.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_core.analysis.attention.heads import HeadSteps, head_steps
from transformer_core.analysis.masks.codes import mask_from_code
from transformer_core.analysis.outcome import check_kind, conclude, one_text, own_mask
from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.layers.attention import masked_softmax
from transformer_core.layers.masks import HIDDEN, window_mask
from transformer_core.probe import Edit, capture
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding
from transformer_core.trace import Trace


@dataclass(frozen=True, eq=False)
class MaskedHead:
    """A head's steps under a mask, and what the mask does to the verdict.

    Shapes:
        mask, weights_before: (query_pos, key_pos); reach: (pos,)

    Args:
        labels: one per token.
        mask: boolean, True = may attend, as it was asked for.
        steps: of the head, under the mask and its layer's window.
        weights_before: the head's, under the model's own mask.
        before, after: the probability of each outcome (see outcome.py) under the model's own mask and under this one;
            empty where the model predicts nothing.
        wholly_masked: queries that may attend to nothing in the head's layer.
        reach: which tokens can influence the position that the prediction is read from, through all layers and
            residual connections.
    """

    labels: tuple[str, ...]
    mask: np.ndarray
    steps: HeadSteps
    weights_before: np.ndarray
    before: np.ndarray
    after: np.ndarray
    wholly_masked: tuple[int, ...]
    reach: np.ndarray


def padded_encoding(prompt: Prompt, *, pads: int = 0) -> Encoding:
    """Return a text's encoding, cut to n_tokens, with `pads` padding tokens after it.

    Raises:
        ValueError: pads is negative, or the bundle's tokenizer has no padding token to append.
    """
    bundle, encoding = prompt.bundle, prompt.encoding
    pad_id = bundle.tokenizer.pad_id
    if pads < 0 or (pads and pad_id is None):
        raise ValueError(f"pads={pads} must be 0 or more, and 0 where the vocabulary has no padding token")
    if not pads or pad_id is None:
        return encoding
    return replace(
        encoding,
        ids=encoding.ids + (bundle.config.padding,) * pads,
        tokens=encoding.tokens + (bundle.tokenizer.token_of(pad_id),) * pads,
        labels=encoding.labels + (bundle.tokenizer.label_of(pad_id),) * pads,
        offsets=encoding.offsets + ((0, 0),) * pads,
        segment_ids=encoding.segment_ids + (0,) * pads,
        special=encoding.special + (True,) * pads,
        unknown=encoding.unknown + (False,) * pads,
    )


def replace_mask(scope: str, mask: Tensor) -> Mapping[str, Edit]:
    """Return the edits that put a mask in the place of the model's own, in the attention at `scope`.

    Shapes:
        mask: (query_pos, key_pos), boolean

    Args:
        scope: such as ``encoder.layer0.self_attention``, or ``*.self_attention`` for every layer.
    """
    unmasked: list[Tensor] = []

    def hold(scores: Tensor) -> Tensor:
        unmasked[:] = [scores]
        return scores

    def hide(_: Tensor) -> Tensor:
        return unmasked[0].masked_fill(~mask.to(unmasked[0].device), HIDDEN)

    return {f"{scope}.scores": hold, f"{scope}.masked_scores": hide}


def in_window(mask: Tensor, config: ModelConfig, layer: int) -> Tensor:
    """Return a mask (query_pos, key_pos) with what a layer's window hides hidden, too."""
    window = config.window(layer)
    return mask if window is None else mask & window_mask(len(mask), mask.shape[1], window, device=mask.device)


def mask_edits(bundle: Bundle, mask: Tensor, layer: int | None = None) -> Mapping[str, Edit]:
    """Return the edits that put a mask (query_pos, key_pos) into all layers, or one alone, under their windows."""
    config, layers = bundle.config, range(bundle.config.n_layers) if layer is None else (layer,)
    edits: dict[str, Edit] = {}
    for index in layers:
        edits |= replace_mask(bundle.reader.site(f"layer{index}.self_attention"), in_window(mask, config, index))
    return edits


def read_under(
    bundle: Bundle,
    encoding: Encoding,
    mask: Tensor | None = None,
    *,
    layer: int | None = None,
    sites: tuple[str, ...] = (),
    edits: Mapping[str, Edit] | None = None,
) -> tuple[np.ndarray, Trace]:
    """Return what a model predicts and the trace under a mask: in all layers, in one alone, or its own (None).

    Shapes:
        mask: (query_pos, key_pos), boolean

    Raises:
        ValueError: the bundle is of a kind that does not read one text alone, or as capture.
    """
    check_kind(bundle)
    token_ids, outcome = one_text(bundle, encoding), bundle.reader.outcome(encoding)
    given = mask.to(token_ids.device) if mask is not None and layer is None else None
    edits = dict(edits or {})
    if mask is not None and layer is not None:
        edits = {**mask_edits(bundle, mask, layer), **edits}
    if outcome is None:
        return np.empty(0), capture(bundle.model, token_ids, mask=given, sites=sites, edits=edits)[1]
    probabilities, trace = conclude(bundle, token_ids, outcome, mask=given, sites=sites, edits=edits)
    return probabilities[0].cpu().double().numpy(), trace


def masked_head(*, prompt: Prompt, pads: int, mask: str, layer: int, head: int, everywhere: bool) -> MaskedHead:
    """Read a text under a mask and under the model's own.

    Args:
        pads: padding tokens after it.
        mask: a code of codes.py.
        layer, head: whose steps are returned.
        everywhere: the mask holds in every layer; else in this layer alone.

    Raises:
        ValueError: as mask_from_code, padded_encoding, read_under and head_steps.
    """
    bundle = prompt.bundle
    encoding = padded_encoding(prompt, pads=pads)
    allowed = mask_from_code(mask, encoding.ids, bundle.config.padding)
    scope = bundle.reader.site(f"layer{layer}.self_attention")
    own, plain = read_under(bundle, encoding, sites=(f"{scope}.weights",))
    after, trace = read_under(bundle, encoding, allowed, layer=None if everywhere else layer, sites=(f"{scope}.*",))
    return MaskedHead(
        labels=encoding.labels,
        mask=allowed.numpy(),
        steps=head_steps(trace, scope, head, bundle.config),
        weights_before=plain[f"{scope}.weights"][0, head].float().cpu().numpy(),
        before=own,
        after=after,
        wholly_masked=tuple((~in_window(allowed, bundle.config, layer).any(1)).nonzero().flatten().tolist()),
        reach=_reach(bundle, encoding, allowed, None if everywhere else layer).numpy(),
    )


def _reach(bundle: Bundle, encoding: Encoding, mask: Tensor, layer: int | None) -> Tensor:
    """Tell of each token whether the vector behind the prediction depends on it by any path.  # (pos,)"""
    config, size, outcome = bundle.config, len(encoding), bundle.reader.outcome(encoding)
    plain = own_mask(bundle, encoding)
    stays = torch.eye(size) if config.residual else torch.zeros(size, size)
    heard = torch.eye(size)  # (pos, token)
    for index in range(config.n_layers):
        step = in_window(mask if layer is None or index == layer else plain, config, index)
        heard = (((step.float() + stays) > 0).float() @ heard > 0).float()
    place = 0 if outcome is None else outcome.place
    read = torch.zeros(size, dtype=torch.bool)
    read[place or 0] = True
    if place is None and config.pooling == "mean":
        read = torch.tensor(encoding.ids) != config.padding
    return heard[read].any(0)


LARGE = -1e9


@dataclass(frozen=True, eq=False)
class MaskedRow:
    """One query's weights and the verdict under each convention.

    Shapes:
        zeros, torch_attention, softmax, large: (key_pos,)

    Args:
        zeros: ours.
        torch_attention: of torch's scaled_dot_product_attention.
        softmax: of torch's softmax over minus infinities.
        large: of torch's softmax where hidden scores are -1e9.
        verdict_zeros, verdict_softmax, verdict_large: the probability of each outcome where every wholly masked row of
            the mask follows that convention.
    """

    zeros: np.ndarray
    torch_attention: np.ndarray
    softmax: np.ndarray
    large: np.ndarray
    verdict_zeros: np.ndarray
    verdict_softmax: np.ndarray
    verdict_large: np.ndarray


def masked_row(*, prompt: Prompt, pads: int, mask: str, layer: int, head: int, row: int, everywhere: bool) -> MaskedRow:
    """Compute a row's weights under each convention; arguments as in masked_head.

    Raises:
        ValueError: as masked_head, or the row may attend to something.
    """
    bundle = prompt.bundle
    encoding = padded_encoding(prompt, pads=pads)
    allowed = mask_from_code(mask, encoding.ids, bundle.config.padding)
    here = in_window(allowed, bundle.config, layer)
    empty = ~here.any(1)  # (query_pos,)
    if not 0 <= row < len(empty) or not empty[row]:
        raise ValueError(f"row={row} must be a row that is wholly masked, one of {empty.nonzero().flatten().tolist()}")
    where = None if everywhere else layer
    scope = bundle.reader.site(f"layer{layer}.self_attention")
    zeros, trace = read_under(bundle, encoding, allowed, layer=where, sites=(f"{scope}.scores",))
    scores = trace[f"{scope}.scores"][:1, head : head + 1, row : row + 1].float().cpu()  # (1, 1, 1, key_pos)
    hidden = scores.masked_fill(~here[row], HIDDEN)

    def as_softmax_has_it(weights: Tensor) -> Tensor:
        return weights.masked_fill(weights.sum(-1, keepdim=True) == 0, float("nan"))

    def as_large_has_it(masked_scores: Tensor) -> Tensor:
        return masked_scores.clamp(min=LARGE)

    there = "*" if everywhere else bundle.reader.site(f"layer{layer}.*")
    verdicts = [
        read_under(bundle, encoding, allowed, layer=where, edits={f"{there}.{leaf}": edit})[0]
        for leaf, edit in (("weights", as_softmax_has_it), ("masked_scores", as_large_has_it))
    ]
    return MaskedRow(
        masked_softmax(hidden).flatten().numpy(),
        torch_weights(scores, here[row]).numpy(),
        hidden.softmax(-1).flatten().numpy(),
        scores.masked_fill(~here[row], LARGE).softmax(-1).flatten().numpy(),
        zeros,
        *verdicts,
    )


def torch_weights(scores: Tensor, allowed: Tensor) -> Tensor:
    """Return the weights that scaled_dot_product_attention gives to scores, read off by values that are unit vectors.

    Shapes:
        scores: (1, 1, 1, key_pos); allowed: (key_pos,), boolean; returns: (key_pos,)
    """
    size = scores.shape[-1]
    unit = torch.eye(size)[None, None]  # (1, 1, key_pos, key_pos)
    return F.scaled_dot_product_attention(scores, unit, unit, attn_mask=allowed[None, None, None], scale=1.0).flatten()
