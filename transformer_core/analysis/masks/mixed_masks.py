"""A common variant of a batch's padding mask, repeated head by head: heads then wear the masks of other sentences.

The repetition is layers.masks.repeated_by_head. It is put on two masks: one hides padding's keys, with minus infinity;
the other, the mask AND its transpose, hides its queries as well, with -1e20, so that a hidden row averages over all.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.masks.batch_masks import batch_of
from transformer_core.bundle import Bundle
from transformer_core.layers.masks import HIDDEN, LARGE_HIDDEN, both_real, repeated_by_head
from transformer_core.models import AnswerFinder, Bert, Classifier, SentenceEncoder, TokenClassifier

FORMS = {
    "right": {"pairs": False, "mixed": False},
    "mixed": {"pairs": False, "mixed": True},
    "right_pairs": {"pairs": True, "mixed": False},
    "mixed_pairs": {"pairs": True, "mixed": True},
}  # pairs: padding's queries are hidden, too; mixed: repeated head by head


@dataclass(frozen=True, eq=False)
class MixedMasks:
    """How far each sentence's first vector moves when the batch is re-ordered, and from what it is in a batch of one.

    Shapes:
        *_moves, *_apart: (sentence,), lengths of differences over that of the vector
        worn: (sentence, head), whose mask each head wears in the variant

    Args:
        right_*: each head wears its own sentence's mask, mixed_*: the variant, of the mask that hides keys.
        right_pairs_*, mixed_pairs_*: the same of the mask that hides queries as well.
        *_moves: between the batch as it is and the batch the other way round.
        *_apart: between the batch as it is and the sentence by itself.
        padding: share of padding in the batch; without any, all masks are alike.
    """

    right_moves: np.ndarray
    mixed_moves: np.ndarray
    right_pairs_moves: np.ndarray
    mixed_pairs_moves: np.ndarray
    right_apart: np.ndarray
    mixed_apart: np.ndarray
    right_pairs_apart: np.ndarray
    mixed_pairs_apart: np.ndarray
    worn: np.ndarray
    padding: float


def _relative(one: Tensor, other: Tensor) -> np.ndarray:
    """Return the length of the difference over that of the first: (sentence,)."""
    one, other = one.cpu().double(), other.cpu().double()
    apart = (one - other).norm(dim=-1) / one.norm(dim=-1).clamp(min=1e-12)
    return apart.numpy()


@torch.inference_mode()
def mixed_masks(*, bundle: Bundle, texts: tuple[str, ...], n_tokens: int) -> MixedMasks:
    """Read a batch, and the same batch the other way round, under each form of the padding mask.

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

    def read(order: Tensor, *, pairs: bool, mixed: bool) -> Tensor:  # (sentence, d_model), in the order of `texts`
        own = both_real(real[order]) if pairs else real[order][:, None, :]
        mask = repeated_by_head(own, n_heads) if mixed else own[:, None]
        given = {"mask": mask, "hidden_score": LARGE_HIDDEN if pairs else HIDDEN}
        return encoder(ids[order], **given)[:, 0][order.argsort()]

    usual = torch.arange(len(texts), device=device)
    lengths = [len(encoding) for encoding in batch.encodings]
    alone = torch.cat([encoder(ids[row : row + 1, :length])[:, 0] for row, length in enumerate(lengths)])
    found = {}
    for name, form in FORMS.items():
        vectors = read(usual, **form)
        found[f"{name}_moves"] = _relative(vectors, read(usual.flip(0), **form))
        found[f"{name}_apart"] = _relative(alone, vectors)
    return MixedMasks(
        **found,
        worn=np.arange(len(texts) * n_heads).reshape(len(texts), n_heads) % len(texts),
        padding=float(1 - real.float().mean()),
    )
