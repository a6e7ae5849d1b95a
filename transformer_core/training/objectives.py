"""Objectives: from a model and a batch to the loss that training minimises.

Label smoothing: Szegedy et al. 2016, section 7; masked words: Devlin et al. 2019, section 3.1; next words: Radford et
al. 2018, eq. 1.
"""

from collections.abc import Collection

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_core.models import Bert, Classifier, Gpt, Translation
from transformer_core.models.recurrent import RecurrentLm
from transformer_core.text import MASK_ID, PAD_ID, SPECIAL_TOKENS
from transformer_core.training.batching import UNPAIRED, LabelledBatch, PackedBatch, PairBatch

MASKED, RANDOM = 0.8, 0.1
NO_PADDING = -1  # no token's id
SPECIAL_IDS = frozenset(range(len(SPECIAL_TOKENS)))


def mask_words(
    token_ids: Tensor,
    vocab_size: int,
    *,
    probability: float,
    mask_id: int = MASK_ID,
    special_ids: Collection[int] = SPECIAL_IDS,
) -> tuple[Tensor, Tensor]:
    """Choose tokens at random and hide them: 80 % become [MASK], 10 % a random token, 10 % stay (BERT's recipe).

    Departure: each token is chosen on its own, so that the number chosen varies; BERT chooses a fixed number.

    Shapes:
        token_ids: (batch, pos)
        returns: the corrupted ids and, as booleans, which were chosen, both (batch, pos)

    Args:
        token_ids: of a vocabulary that begins with SPECIAL_TOKENS, or has `special_ids`; these are never chosen.
        vocab_size: random tokens are drawn from its entries behind the first seven.
        probability: of choosing a token, in [0, 1].
        mask_id, special_ids: of a vocabulary that was learned elsewhere.

    Raises:
        ValueError: probability is outside its range, or the vocabulary has no ordinary entries.
    """
    if not 0.0 <= probability <= 1.0:
        raise ValueError(f"probability={probability} must be at least 0 and at most 1")
    n_special = len(SPECIAL_TOKENS)
    if vocab_size <= n_special:
        raise ValueError(f"vocab_size={vocab_size} must be greater than {n_special}, the number of special tokens")
    ordinary = ~torch.isin(token_ids, torch.tensor(sorted(special_ids), device=token_ids.device))
    chosen = (torch.rand_like(token_ids, dtype=torch.float32) < probability) & ordinary
    fate = torch.rand_like(token_ids, dtype=torch.float32)
    random_ids = torch.randint_like(token_ids, n_special, vocab_size)
    corrupted = token_ids.masked_fill(chosen & (fate < MASKED), mask_id)
    corrupted = torch.where(chosen & (fate >= 1 - RANDOM), random_ids, corrupted)
    return corrupted, chosen


def masked_words(
    model: Bert,
    batch: LabelledBatch,
    *,
    probability: float = 0.15,
    mask_id: int = MASK_ID,
    special_ids: Collection[int] = SPECIAL_IDS,
) -> Tensor:
    """Return the cross entropy, in nats a hidden token, of guessing the hidden tokens of a batch.

    Only the hidden positions are scored against the vocabulary: the loss is the same, and most of the work is saved.
    A batch in which nothing is hidden has the loss 0. Arguments as of mask_words.
    """
    corrupted, chosen = mask_words(
        batch.token_ids,
        model.config.vocab_size,
        probability=probability,
        mask_id=mask_id,
        special_ids=special_ids,
    )
    hidden = model.encoder(corrupted)[chosen]  # (chosen, d_model)
    logits = model.mlm_head(hidden).float()  # (chosen, vocab)
    return F.cross_entropy(logits, batch.token_ids[chosen], reduction="sum") / chosen.sum().clamp(min=1)


def masked_words_and_pairs(model: Bert, batch: PackedBatch, *, probability: float = 0.15) -> Tensor:
    """Return the sum of both losses of BERT, in nats: a hidden token's, and a pair's (Devlin et al. 2019, section 3.1).

    A batch in which nothing is hidden, or no sentences are paired, has the loss 0 for that part.
    """
    corrupted, chosen = mask_words(batch.token_ids, model.config.vocab_size, probability=probability)
    x = model.encoder(corrupted, segment_ids=batch.segment_ids)  # (batch, pos, d_model)
    word_logits = model.mlm_head(x[chosen]).float()  # (chosen, vocab)
    words = F.cross_entropy(word_logits, batch.token_ids[chosen], reduction="sum") / chosen.sum().clamp(min=1)
    pair_logits = model.nsp_head(torch.tanh(model.pooler_proj(x[:, 0]))).float()  # (batch, 2)
    n_pairs = (batch.classes != UNPAIRED).sum().clamp(min=1)
    return words + F.cross_entropy(pair_logits, batch.classes, ignore_index=UNPAIRED, reduction="sum") / n_pairs


def classification(
    model: Classifier,
    batch: LabelledBatch,
    *,
    label_smoothing: float = 0.0,
    hide: float = 0.0,
    softmax_before_loss: bool = False,
) -> Tensor:
    """Return the cross entropy, in nats an example, of predicting the classes.

    Args:
        model: on the device of the batch.
        batch: labels are class numbers.
        label_smoothing: probability spread evenly over all classes.
        hide: probability of hiding a token as masked_words does, so that the model cannot rely on single words.
        softmax_before_loss: pass probabilities to the loss where it expects logits, a common error: with two
            classes the loss then cannot fall below 0.313 nats, and its gradient is weak.
    """
    token_ids = batch.token_ids
    if hide:
        token_ids, _ = mask_words(token_ids, model.config.vocab_size, probability=hide)
    logits = model(token_ids).float()
    return F.cross_entropy(
        logits.softmax(-1) if softmax_before_loss else logits, batch.labels, label_smoothing=label_smoothing
    )


def next_words(
    model: Gpt | RecurrentLm, token_ids: Tensor, *, label_smoothing: float = 0.0, padding: int = PAD_ID
) -> Tensor:
    """Return the cross entropy, in nats a token, of guessing each next token; padding is not guessed.

    Shapes:
        token_ids: (batch, pos)

    Args:
        padding: its id; NO_PADDING where there is none.
    """
    logits = model(token_ids[:, :-1]).float()  # (batch, pos, vocab)
    return word_loss(logits, token_ids[:, 1:], label_smoothing=label_smoothing, padding=padding)


def next_target_words(
    model: Translation, batch: PairBatch, *, label_smoothing: float = 0.0, padding: int = PAD_ID
) -> Tensor:
    """Return the cross entropy, in nats a token, of guessing each next target token, given the source.

    Args:
        padding: as of next_words.
    """
    logits = model(batch.source_ids, batch.target_ids[:, :-1]).float()  # (batch, target_pos, vocab)
    return word_loss(logits, batch.target_ids[:, 1:], label_smoothing=label_smoothing, padding=padding)


def word_loss(logits: Tensor, words: Tensor, *, label_smoothing: float = 0.0, padding: int = PAD_ID) -> Tensor:
    """Return the mean cross entropy, in nats a token, over all tokens that are not padding.

    Shapes:
        logits: (batch, pos, vocab); words: (batch, pos)
    """
    return F.cross_entropy(logits.flatten(0, 1), words.flatten(), ignore_index=padding, label_smoothing=label_smoothing)
