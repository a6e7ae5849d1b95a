"""Objectives: from a model and a batch to the loss that training minimises.

Label smoothing: Szegedy et al. 2016, section 7; masked words: Devlin et al. 2019, section 3.1; next words: Radford et
al. 2018, eq. 1; balance of experts: Fedus et al. 2022, eq. 4. Of a mixture of experts, the gradient of each objective
holds that of the balance as well, times `balance`; its value stays what it says, in nats.
"""

from collections.abc import Callable, Collection

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_core.models import Bert, Classifier, Gpt, Translation
from transformer_core.models.recurrent import RecurrentLm
from transformer_core.probe import SILENT, Probe
from transformer_core.text import MASK_ID, PAD_ID, SPECIAL_TOKENS
from transformer_core.training.batching import UNPAIRED, LabelledBatch, PackedBatch, PairBatch

MASKED, RANDOM = 0.8, 0.1
NO_PADDING = -1  # no token's id
SPECIAL_IDS = frozenset(range(len(SPECIAL_TOKENS)))
BALANCE = 0.01  # Fedus et al. 2022, section 2.2: alpha


def expert_balance(probabilities: Tensor, n_active: int) -> Tensor:
    """Return N sum_e f_e P_e: 1 where all experts have one load, N where one has all of it (Fedus et al. 2022, eq. 4).

    f_e is the share of choices that fall on expert e, P_e its mean probability, through which alone a gradient flows.

    Shapes:
        probabilities: the router's, (token, expert)

    Args:
        n_active: how many experts each token chooses.
    """
    n_experts = probabilities.shape[-1]
    chosen = probabilities.topk(n_active, dim=-1).indices.flatten()
    load = torch.bincount(chosen, minlength=n_experts) / max(len(chosen), 1)  # (expert,)
    return n_experts * (load * probabilities.sum(0)).sum() / max(len(probabilities), 1)


class _Balanced:
    """Watches the routers of one forward pass, where the model has any.

    Args:
        real: by how names of a stack's tensors begin, which of its tokens are no padding, (batch, pos).
    """

    def __init__(self, model: Bert | Classifier | Gpt | RecurrentLm | Translation, **real: Tensor) -> None:
        self._layers: list[Tensor] = []
        self._n_active = getattr(model.config, "n_active_experts", 0)
        edits = {f"{stack}*router_probabilities": self._watch(mask) for stack, mask in real.items()}
        self.probe = Probe((), edits=edits) if self._n_active else SILENT

    def _watch(self, real: Tensor) -> Callable[[Tensor], Tensor]:
        def keep(probabilities: Tensor) -> Tensor:
            self._layers.append(expert_balance(probabilities[real], self._n_active))
            return probabilities

        return keep

    def with_gradient(self, loss: Tensor, coefficient: float) -> Tensor:
        """Return a loss of the same value, whose gradient is also that of the sum of all layers' balance."""
        if not self._layers:
            return loss
        total = coefficient * torch.stack(self._layers).sum()
        return loss + (total - total.detach())


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
    balance: float = BALANCE,
) -> Tensor:
    """Return the cross entropy, in nats a hidden token, of guessing the hidden tokens of a batch.

    Only the hidden positions are scored against the vocabulary: the loss is the same, and most of the work is saved.
    A batch in which nothing is hidden has the loss 0. Other arguments as of mask_words.
    """
    corrupted, chosen = mask_words(
        batch.token_ids,
        model.config.vocab_size,
        probability=probability,
        mask_id=mask_id,
        special_ids=special_ids,
    )
    experts = _Balanced(model, layer=corrupted != model.config.padding)
    hidden = model.encoder(corrupted, probe=experts.probe)[chosen]  # (chosen, d_model)
    logits = model.mlm_head(hidden).float()  # (chosen, vocab)
    loss = F.cross_entropy(logits, batch.token_ids[chosen], reduction="sum") / chosen.sum().clamp(min=1)
    return experts.with_gradient(loss, balance)


def masked_words_and_pairs(
    model: Bert, batch: PackedBatch, *, probability: float = 0.15, balance: float = BALANCE
) -> Tensor:
    """Return the sum of both losses of BERT, in nats: a hidden token's, and a pair's (Devlin et al. 2019, section 3.1).

    A batch in which nothing is hidden, or no sentences are paired, has the loss 0 for that part.
    """
    corrupted, chosen = mask_words(batch.token_ids, model.config.vocab_size, probability=probability)
    experts = _Balanced(model, layer=corrupted != model.config.padding)
    x = model.encoder(corrupted, segment_ids=batch.segment_ids, probe=experts.probe)  # (batch, pos, d_model)
    word_logits = model.mlm_head(x[chosen]).float()  # (chosen, vocab)
    words = F.cross_entropy(word_logits, batch.token_ids[chosen], reduction="sum") / chosen.sum().clamp(min=1)
    pair_logits = model.nsp_head(torch.tanh(model.pooler_proj(x[:, 0]))).float()  # (batch, 2)
    n_pairs = (batch.classes != UNPAIRED).sum().clamp(min=1)
    pairs = F.cross_entropy(pair_logits, batch.classes, ignore_index=UNPAIRED, reduction="sum") / n_pairs
    return experts.with_gradient(words + pairs, balance)


def classification(
    model: Classifier,
    batch: LabelledBatch,
    *,
    label_smoothing: float = 0.0,
    hide: float = 0.0,
    softmax_before_loss: bool = False,
    balance: float = BALANCE,
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
    experts = _Balanced(model, encoder=token_ids != model.config.padding)
    logits = model(token_ids, probe=experts.probe).float()
    loss = F.cross_entropy(
        logits.softmax(-1) if softmax_before_loss else logits, batch.labels, label_smoothing=label_smoothing
    )
    return experts.with_gradient(loss, balance)


def next_words(
    model: Gpt | RecurrentLm,
    token_ids: Tensor,
    *,
    label_smoothing: float = 0.0,
    padding: int = PAD_ID,
    balance: float = BALANCE,
) -> Tensor:
    """Return the cross entropy, in nats a token, of guessing each next token; padding is not guessed.

    Shapes:
        token_ids: (batch, pos)

    Args:
        padding: its id; NO_PADDING where there is none.
    """
    experts = _Balanced(model, decoder=token_ids[:, :-1] != padding)
    logits = model(token_ids[:, :-1], probe=experts.probe).float()  # (batch, pos, vocab)
    loss = word_loss(logits, token_ids[:, 1:], label_smoothing=label_smoothing, padding=padding)
    return experts.with_gradient(loss, balance)


def next_target_words(
    model: Translation,
    batch: PairBatch,
    *,
    label_smoothing: float = 0.0,
    padding: int = PAD_ID,
    balance: float = BALANCE,
) -> Tensor:
    """Return the cross entropy, in nats a token, of guessing each next target token, given the source.

    Args:
        padding: as of next_words.
    """
    read = batch.target_ids[:, :-1]
    experts = _Balanced(model, encoder=batch.source_ids != padding, decoder=read != padding)
    logits = model(batch.source_ids, read, probe=experts.probe).float()  # (batch, target_pos, vocab)
    loss = word_loss(logits, batch.target_ids[:, 1:], label_smoothing=label_smoothing, padding=padding)
    return experts.with_gradient(loss, balance)


def word_loss(logits: Tensor, words: Tensor, *, label_smoothing: float = 0.0, padding: int = PAD_ID) -> Tensor:
    """Return the mean cross entropy, in nats a token, over all tokens that are not padding.

    Shapes:
        logits: (batch, pos, vocab); words: (batch, pos)
    """
    return F.cross_entropy(logits.flatten(0, 1), words.flatten(), ignore_index=padding, label_smoothing=label_smoothing)
