"""Teacher forcing: the probability of each word of a given target, with the right words before it.

Williams and Zipser 1989 name it; it is how a decoder is trained.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.translation.greedy_steps import source_of, stacked
from transformer_core.probe import capture
from transformer_core.prompt import Prompt
from transformer_core.text import Tokenizer


@dataclass(frozen=True, eq=False)
class Scored:
    """How likely given words are, each after the right words before it.

    Shapes:
        probabilities, log_probs, ranks, favourite_probabilities: (step,)

    Args:
        ranks: 1 where the word was the likeliest of all.
        favourites: labels of the words that the model would have written.
        right: at how many places that is the given word.
    """

    probabilities: np.ndarray
    log_probs: np.ndarray
    ranks: np.ndarray
    favourites: tuple[str, ...]
    favourite_probabilities: np.ndarray
    right: int


def scored(logits: Tensor, words: Sequence[int], tokenizer: Tokenizer) -> Scored:
    """Score given words.

    Shapes:
        logits: (step, vocab), of a decoder that read the words before each
    """
    of_all = logits.cpu().double().log_softmax(-1)  # (step, vocab)
    log_probs = of_all[torch.arange(len(words)), words]  # (step,)
    favourite, favourites = of_all.max(-1)
    return Scored(
        log_probs.exp().numpy(),
        log_probs.numpy(),
        ((of_all > log_probs[:, None]).sum(-1) + 1).numpy(),
        tuple(map(tokenizer.label_of, favourites.tolist())),
        favourite.exp().numpy(),
        int((favourites == torch.tensor(words)).sum()),
    )


@dataclass(frozen=True, eq=False)
class Forced(Scored):
    """How likely a target is, word by word.

    Shapes:
        cross_weights: (layer, head, step, source_pos)

    Args:
        token_ids: the start, the target's words, the end.
        words: labels of what each step should write; read: of what it was given last.
        unknown: how many of the words the vocabulary has no entry for.
        log_prob: the sum of log_probs, in nats.
    """

    token_ids: tuple[int, ...]
    words: tuple[str, ...]
    read: tuple[str, ...]
    unknown: int
    cross_weights: np.ndarray
    log_prob: float

    @property
    def per_word(self) -> float:
        """Nats a token, the loss that training lowers."""
        return -self.log_prob / len(self.words)


def forced_target(*, prompt: Prompt, target: str) -> Forced:
    """Score a target that is given, in one pass of the decoder.

    Args:
        prompt: to a translation.
        prompt: its n_tokens bounds the source, and the target.

    Raises:
        ValueError: as source_of, of either text.
    """
    source, tokenizer = source_of(prompt, "translation"), prompt.bundle.of_target
    encoding = tokenizer.encode(target, max_len=min(prompt.n_tokens, prompt.bundle.config.max_len))
    own = [
        id_
        for id_, (start, end), special in zip(encoding.ids, encoding.offsets, encoding.special, strict=True)
        if end > start or not special
    ]  # without the template's tokens
    words = [*own, source.eos_id]
    token_ids = (source.bos_id, *words)
    given = torch.tensor([token_ids[:-1]], device=source.ids.device)  # (1, step)
    logits, trace = capture(source.model, source.ids, given, sites=("decoder.*.cross_attention.weights",))
    found = scored(logits[0], words, tokenizer)
    return Forced(
        **vars(found),
        token_ids=token_ids,
        words=tokenizer.labels_of(words),
        read=tokenizer.labels_of(token_ids[:-1]),
        unknown=sum(encoding.unknown),
        cross_weights=stacked(trace, "cross_attention"),
        log_prob=float(found.log_probs.sum()),
    )
