"""A common variant of a batch's padding mask, repeated head by head: heads then wear the masks of other sentences.

Scores of shape (batch, head) are laid out sentence by sentence; a mask that is repeated as a whole, once for each head,
is laid out head by head. Both have batch * head rows, so that nothing fails: row b * n_heads + h gets the mask of
sentence (b * n_heads + h) % batch.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.masks.batch_masks import batch_of
from transformer_core.bundle import Bundle
from transformer_core.models import AnswerFinder, Bert, Classifier, SentenceEncoder, TokenClassifier


@dataclass(frozen=True, eq=False)
class MixedMasks:
    """How far each sentence's first vector moves when the batch is re-ordered, and from what it is in a batch of one.

    Shapes:
        right_moves, mixed_moves, right_apart, mixed_apart: (sentence,), lengths of differences over that of the vector
        worn: (sentence, head), whose mask each head wears in the variant

    Args:
        right_*: each head wears its own sentence's mask; mixed_*: the variant.
        *_moves: between the batch as it is and the batch the other way round.
        *_apart: between the batch as it is and the sentence by itself.
        padding: share of padding in the batch; without any, all masks are alike.
    """

    right_moves: np.ndarray
    mixed_moves: np.ndarray
    right_apart: np.ndarray
    mixed_apart: np.ndarray
    worn: np.ndarray
    padding: float


def repeated_by_head(real: Tensor, n_heads: int) -> Tensor:
    """Repeat a batch's padding mask once for each head, and read the rows sentence by sentence.

    Shapes:
        real: (batch, pos), True = real; returns: (batch, head, 1, pos), True = may attend
    """
    size = len(real)
    return real.repeat(n_heads, 1).view(size, n_heads, 1, -1)


def _relative(one: Tensor, other: Tensor) -> np.ndarray:
    """Return the length of the difference over that of the first: (sentence,)."""
    one, other = one.cpu().double(), other.cpu().double()
    apart = (one - other).norm(dim=-1) / one.norm(dim=-1).clamp(min=1e-12)
    return apart.cpu().numpy()


@torch.inference_mode()
def mixed_masks(*, bundle: Bundle, texts: tuple[str, ...], n_tokens: int) -> MixedMasks:
    """Read a batch, and the same batch the other way round, with each head's own mask and with the variant's.

    Args:
        bundle: an encoder, with or without a head, that hides padding.
        texts: two or more.
        n_tokens: each text is cut to so many tokens.

    Raises:
        ValueError: the model is of another kind or has no padding token, or there are not two texts.
    """
    if (
        not isinstance(bundle.model, Classifier | Bert | SentenceEncoder | TokenClassifier | AnswerFinder)
        or bundle.config.pad_id is None
    ):
        raise ValueError(f"bundle={bundle.name!r} must be an encoder with a padding token")
    if len(texts) < 2:
        raise ValueError(f"texts={texts!r:.60} must hold at least 2 texts, which can be re-ordered")
    encoder, n_heads = bundle.model.encoder, bundle.config.n_heads
    batch = batch_of(bundle, texts, n_tokens)
    device = next(encoder.parameters()).device
    ids = batch.token_ids.to(device)
    real = batch.mask.to(device) & (ids != bundle.config.padding)

    def read(order: Tensor, *, mixed: bool) -> Tensor:  # (sentence, d_model), in the order of `texts`
        own = real[order]
        mask = repeated_by_head(own, n_heads) if mixed else own[:, None, None, :]
        return encoder(ids[order], mask=mask)[:, 0][order.argsort()]

    usual = torch.arange(len(texts), device=device)
    right, mixed = read(usual, mixed=False), read(usual, mixed=True)
    lengths = [len(encoding) for encoding in batch.encodings]
    alone = torch.cat([encoder(ids[row : row + 1, :length])[:, 0] for row, length in enumerate(lengths)])
    return MixedMasks(
        right_moves=_relative(right, read(usual.flip(0), mixed=False)),
        mixed_moves=_relative(mixed, read(usual.flip(0), mixed=True)),
        right_apart=_relative(alone, right),
        mixed_apart=_relative(alone, mixed),
        worn=np.arange(len(texts) * n_heads).reshape(len(texts), n_heads) % len(texts),
        padding=float(1 - real.float().mean()),
    )
