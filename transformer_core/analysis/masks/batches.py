"""Masks of a padded batch: padding, causal and both, boolean and additive, for self- and for cross-attention.

Vaswani et al. 2017, sections 3.2.3 and 5.1. Read next: polarity.py.
"""

from dataclasses import dataclass

import numpy as np

from transformer_core.bundle import Bundle
from transformer_core.layers.masks import additive_mask, causal_mask, combined_mask
from transformer_core.text import Batch, make_batch

KINDS = ("padding", "causal", "both")


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
        cross: hides the source's padding from every target position; nothing is causal between two texts.
        added_*: the same in the form that is added to the scores: 0 and minus infinity.
    """

    labels: tuple[tuple[str, ...], ...]
    unknown: int
    token_ids: np.ndarray
    real: np.ndarray
    self_padding: np.ndarray
    self_causal: np.ndarray
    self_both: np.ndarray
    cross: np.ndarray
    added_padding: np.ndarray
    added_causal: np.ndarray
    added_both: np.ndarray
    added_cross: np.ndarray


def batch_of(bundle: Bundle, texts: tuple[str, ...], n_tokens: int) -> Batch:
    """Return texts as one padded batch, each cut to n_tokens.

    Raises:
        ValueError: there are no texts, or one is empty.
    """
    empty = [index for index, text in enumerate(texts) if not text.strip()]
    if not texts or empty:
        raise ValueError(f"texts={texts!r:.60} must hold at least one text, and none that is empty")
    pad_id = bundle.config.pad_id if bundle.config.pad_id is not None else bundle.tokenizer.pad_id
    return make_batch(bundle.tokenizer.encode_batch(texts, max_len=n_tokens), pad_id=pad_id)


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
    for name, row in (("source", source), ("target", target)):
        if not 0 <= row < len(batch):
            raise ValueError(f"{name}={row} must be from 0 to {len(batch) - 1}")
    size = batch.token_ids.shape[1]
    padding = batch.mask[source].expand(size, size)  # (query_pos, key_pos)
    both = combined_mask(padding, causal_mask(size))
    assert both is not None
    masks = {"padding": padding, "causal": causal_mask(size), "both": both}
    pad = (bundle.tokenizer.label_of(int(batch.token_ids[~batch.mask][0])),) if bool((~batch.mask).any()) else ()
    labels = tuple(encoding.labels + pad * (size - len(encoding)) for encoding in batch.encodings)
    return BatchMasks(
        labels=labels,
        unknown=sum(sum(encoding.unknown) for encoding in batch.encodings),
        token_ids=batch.token_ids.numpy(),
        real=batch.mask.numpy(),
        **{f"self_{name}": mask.numpy().copy() for name, mask in masks.items()},
        cross=padding[: len(batch.encodings[target])].numpy().copy(),
        **{f"added_{name}": additive_mask(mask).numpy() for name, mask in masks.items()},
        added_cross=additive_mask(padding[: len(batch.encodings[target])]).numpy(),
    )
