"""Masks of a padded batch: padding, causal and both, boolean and additive, ours and those of torch.nn.

Vaswani et al. 2017, sections 3.2.3 and 5.1. True = may attend here; True = hide in torch.nn.MultiheadAttention.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from transformer_core.bundle import Bundle
from transformer_core.config import PADDED, ModelConfig, require_index
from transformer_core.layers.attention import MultiHeadAttention
from transformer_core.layers.embeddings import rows_of
from transformer_core.layers.initialization import initialize
from transformer_core.layers.masks import (
    HIDDEN,
    LARGE_HIDDEN,
    additive_mask,
    both_real,
    causal_mask,
    combined_mask,
)
from transformer_core.text import Batch, make_batch

KINDS = ("padding", "pairs", "causal", "both")
NO_LABEL = "–"  # of padding in a vocabulary that has no token for it


@dataclass(frozen=True, eq=False)
class BatchMasks:
    """A batch of texts and the masks of one of them.

    Shapes:
        token_ids, real: (batch, pos); self_*: (query_pos, key_pos); cross*: (target_pos, source_pos)

    Args:
        labels: of every row, padding included.
        unknown: how many tokens the vocabulary has no entry for.
        real: False for padding.
        self_padding, self_causal, self_both: boolean, True = may attend.
        self_pairs: the padding mask AND its transpose, so that padding's queries are hidden, too: a common variant.
        cross: hides the source's padding from every target position; nothing is causal between two texts.
        added_*: the same in the form that is added to the scores: 0 and minus infinity; of self_pairs 0 and -1e20.
    """

    labels: tuple[tuple[str, ...], ...]
    unknown: int
    token_ids: np.ndarray
    real: np.ndarray
    self_padding: np.ndarray
    self_pairs: np.ndarray
    self_causal: np.ndarray
    self_both: np.ndarray
    cross: np.ndarray
    added_padding: np.ndarray
    added_pairs: np.ndarray
    added_causal: np.ndarray
    added_both: np.ndarray
    added_cross: np.ndarray


def _pad_id(bundle: Bundle) -> int | None:
    """Return the id that a batch shows where it is padded: the model's, else the vocabulary's, None without either."""
    return bundle.tokenizer.pad_id if bundle.config.pad_id is None else bundle.config.pad_id


def batch_of(bundle: Bundle, texts: tuple[str, ...], n_tokens: int) -> Batch:
    """Return texts as one padded batch, each cut to n_tokens.

    Raises:
        ValueError: there are no texts, or one is empty.
    """
    empty = [index for index, text in enumerate(texts) if not text.strip()]
    if not texts or empty:
        raise ValueError(f"texts={texts!r:.60} must hold at least one text, and none that is empty")
    pad_id = _pad_id(bundle)
    padding = PADDED if pad_id is None else pad_id
    return make_batch(bundle.tokenizer.encode_batch(texts, max_len=n_tokens), padding=padding)


def batch_masks(*, bundle: Bundle, texts: tuple[str, ...], source: int, target: int, n_tokens: int) -> BatchMasks:
    """Return a batch and the masks of two of its rows.

    Args:
        source: the row whose self-attention is masked, and whose keys cross-attention reads.
        target: the row whose queries cross-attention asks.
        n_tokens: each text is cut to so many tokens.

    Raises:
        ValueError: there is no such row, or as batch_of.
    """
    batch = batch_of(bundle, texts, n_tokens)
    require_index("source", source, len(batch))
    require_index("target", target, len(batch))
    size = batch.token_ids.shape[1]
    padding = batch.mask[source].expand(size, size)  # (query_pos, key_pos)
    both = combined_mask(padding, causal_mask(size))
    assert both is not None
    pairs = both_real(batch.mask[source : source + 1])[0]
    masks = dict(zip(KINDS, (padding, pairs, causal_mask(size), both), strict=True))
    scores = {"pairs": LARGE_HIDDEN}
    pad_id = _pad_id(bundle)
    pad = NO_LABEL if pad_id is None else bundle.tokenizer.label_of(pad_id)
    labels = tuple(encoding.labels + (pad,) * (size - len(encoding)) for encoding in batch.encodings)
    return BatchMasks(
        labels=labels,
        unknown=sum(sum(encoding.unknown) for encoding in batch.encodings),
        token_ids=batch.token_ids.numpy(),
        real=batch.mask.numpy(),
        **{f"self_{name}": mask.numpy().copy() for name, mask in masks.items()},
        cross=padding[: len(batch.encodings[target])].numpy().copy(),
        **{
            f"added_{name}": additive_mask(mask, hidden_score=scores.get(name, HIDDEN)).numpy()
            for name, mask in masks.items()
        },
        added_cross=additive_mask(padding[: len(batch.encodings[target])]).numpy(),
    )


SEED = 0


@dataclass(frozen=True, eq=False)
class Polarity:
    """How far our attention and torch's lie apart on the same batch, with the same weights and a mask.

    Shapes:
        ours, theirs, mistaken: (batch, pos, d_model); real: (batch, pos)

    Args:
        ours: with a mask where True = may attend.
        theirs: torch's module with the opposite mask, as it expects.
        mistaken: torch's module handed our mask as it is.
        real: False for padding, whose outputs no one reads.
        difference, mistaken_difference: the greatest over all real positions, of theirs and of mistaken from ours.
        undefined: real positions at which `mistaken` is not a number.
    """

    ours: np.ndarray
    theirs: np.ndarray
    mistaken: np.ndarray
    real: np.ndarray
    difference: float
    mistaken_difference: float
    undefined: int


@torch.inference_mode()
def mask_polarity(*, bundle: Bundle, texts: tuple[str, ...], n_tokens: int, causal: bool) -> Polarity:
    """Run both on the embedded batch, under its padding mask and with `causal` the causal one as well.

    The attention is the bundle's first one; where torch's module cannot compute that one (rotary positions, ALiBi and
    the like), one of the same width with random weights, seed 0. It reads the token embeddings.

    Raises:
        ValueError: as batch_of.
    """
    batch = batch_of(bundle, texts, n_tokens)
    weight = bundle.model.get_parameter(_embedding_name(bundle)).detach().float().cpu()
    x = nn.functional.embedding(rows_of(batch.token_ids, None), weight)  # (batch, pos, d_model)
    ours, theirs = _twins(bundle)
    size = x.shape[1]
    allowed = batch.mask[:, None, None, :].expand(-1, 1, size, size)
    allowed = allowed & causal_mask(size) if causal else allowed  # (batch, 1, query_pos, key_pos)

    def torch_with(hidden: Tensor) -> Tensor:
        """True = hide, one mask a head: (batch * head, query_pos, key_pos)."""
        return theirs(x, x, x, attn_mask=hidden[:, 0].repeat_interleave(ours.n_heads, 0), need_weights=False)[0]

    mine, right, wrong = ours(x, mask=allowed), torch_with(~allowed), torch_with(allowed)
    real = batch.mask
    gap = (mine - wrong)[real].abs()
    finite = gap[gap.isfinite()]
    return Polarity(
        mine.numpy(),
        right.numpy(),
        wrong.numpy(),
        real.numpy(),
        float((mine - right)[real].abs().max()),
        float(finite.max()) if finite.numel() else float("nan"),
        int((~gap.isfinite()).any(-1).sum()),
    )


def _embedding_name(bundle: Bundle) -> str:
    return next(name for name, _ in bundle.model.named_parameters() if name.endswith("embedding.token.weight"))


def _is_plain(config: ModelConfig) -> bool:
    """Return whether torch's module can compute what this model's attention does."""
    whole = config.projections and not (config.share_query_key or config.share_key_value)
    usual = config.scoring == "dot_product" and config.scale_scores
    usual &= config.positions not in ("rotary", "alibi", "relative")
    return whole and usual and config.n_heads * (config.d_head or 0) == config.d_model


def _twins(bundle: Bundle) -> tuple[MultiHeadAttention, nn.MultiheadAttention]:
    config = bundle.config
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        heads = config.n_heads if config.d_model % config.n_heads == 0 else 1
        ours = MultiHeadAttention(config.d_model, heads, bias=config.bias)
        initialize(ours)
        theirs = nn.MultiheadAttention(config.d_model, heads, batch_first=True)
    if _is_plain(config):
        trained = next(part for part in bundle.model.modules() if isinstance(part, MultiHeadAttention))
        ours.load_state_dict({name: tensor.float().cpu() for name, tensor in trained.state_dict().items()})
    state = ours.state_dict()
    for form in ("weight", "bias")[: 1 + config.bias]:
        projections = [state[f"{role}_proj.{form}"] for role in ("query", "key", "value")]
        theirs.get_parameter(f"in_proj_{form}").copy_(torch.cat(projections))
        theirs.get_parameter(f"out_proj.{form}").copy_(state[f"output_proj.{form}"])
    if not config.bias:
        for parameter in (theirs.in_proj_bias, theirs.out_proj.bias):
            parameter.zero_()
    return ours.eval(), theirs.eval()
