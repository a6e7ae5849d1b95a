"""The recipe: 15 % of the tokens are to be guessed, 80 % of them hidden, 10 % exchanged, 10 % left, and what for.

Devlin et al. 2019, section 3.1 and appendix A.1.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.bert.masked_words import (
    each_masked,
    encode_masks,
    logits_at,
    logits_of,
    mask_token_id,
    own_places,
)
from transformer_core.config import require_range
from transformer_core.prompt import Prompt
from transformer_core.text import MASK_ID, SPECIAL_TOKENS, Encoding, Tokenizer
from transformer_core.training.objectives import mask_words

FATES = ("untouched", "masked", "exchanged", "kept")
WAYS = FATES[1:]
MOST_COPIES = 20_000
MOST_EXCHANGES = 16


@dataclass(frozen=True, eq=False)
class Recipe:
    """What the recipe does to one text once, and to how many tokens of many copies of it.

    Shapes:
        chosen: (pos), whether the token is to be guessed; fates: (pos), places in `names`
        read_ids: (pos), what the model reads; shares: (fate), of all tokens that may be chosen, over all copies

    Args:
        names: of the fates.
        labels: of the tokens; read_labels: of what the model reads.
        copies: how many, each with its own draws.
        tokens: that may be chosen, in one copy.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    chosen: np.ndarray
    fates: np.ndarray
    read_ids: np.ndarray
    read_labels: tuple[str, ...]
    shares: np.ndarray
    copies: int
    tokens: int


@dataclass(frozen=True, eq=False)
class ThreeWays:
    """How probable the true word of each token is to the head when its place is masked, exchanged or kept.

    Shapes:
        places: (token); probabilities: (way, token); means, firsts: (way)

    Args:
        ways: in the order of the arrays.
        labels: of the tokens.
        firsts: share of tokens whose true word is the likeliest, in [0, 1].
        exchanges: random words tried in each token's place; their probabilities are averaged.
    """

    ways: tuple[str, ...]
    places: np.ndarray
    labels: tuple[str, ...]
    probabilities: np.ndarray
    means: np.ndarray
    firsts: np.ndarray
    exchanges: int


def choosable_places(encoding: Encoding) -> list[int]:
    """Return the places that training may choose: of the text's own tokens, those that the vocabulary knows."""
    return [place for place in own_places(encoding) if not encoding.unknown[place]]


def _special_first(tokenizer: Tokenizer) -> Tensor:
    """Return the ids of a vocabulary, the special ones first, where mask_words expects them; -1 where there is none.

    Shapes:
        returns: (entry,); of a vocabulary made here, 0, 1, 2, …
    """
    named = ("pad_id", "unk_id", "cls_id", "sep_id", "mask_id", "bos_id", "eos_id")
    first = [-1 if (id_ := getattr(tokenizer, name)) is None else id_ for name in named]
    assert len(first) == len(SPECIAL_TOKENS)
    assert first[MASK_ID] == mask_token_id(tokenizer)
    return torch.tensor([*first, *(id_ for id_ in range(tokenizer.vocab_size) if id_ not in first)])


def _corrupted(
    encoding: Encoding, tokenizer: Tokenizer, copies: int, probability: float, seed: int
) -> tuple[Tensor, Tensor]:
    """Return copies of a text as mask_words leaves them, and as booleans which tokens it chose.

    Shapes:
        returns: (copy, pos) each
    """
    order = _special_first(tokenizer)
    entry = {id_: place for place, id_ in reversed(list(enumerate(order.tolist())))}
    rows = torch.tensor([[entry[id_] for id_ in encoding.ids]]).repeat(copies, 1)  # (copy, pos)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        read, chosen = mask_words(rows, len(order), probability=probability)
    return order[read], chosen


@torch.inference_mode()
def masking_recipe(*, prompt: Prompt, probability: float, seed: int, copies: int = 2_000) -> Recipe:
    """Mask a text as in training: once to look at, with this seed, and many times to count.

    Args:
        probability: of choosing a token, in [0, 1]; BERT's is 0.15.
        seed: of the draws; the first copy is the one that is shown.
        copies: from 1 to 20,000.

    Raises:
        ValueError: the text has no token of its own, the vocabulary no [MASK], or an argument is out of its range.
    """
    require_range("copies", copies, 1, MOST_COPIES)
    encoding, tokenizer = encode_masks(prompt), prompt.bundle.tokenizer
    mask_id, own = mask_token_id(tokenizer), choosable_places(encoding)
    if not own:
        raise ValueError(f"text={prompt.text[:60]!r} has no token that can be chosen")
    read, chosen = _corrupted(encoding, tokenizer, copies, probability, seed)
    ids = torch.tensor(encoding.ids)
    changed = torch.where(read == mask_id, 1, torch.where(read == ids, 3, 2))
    fates = torch.where(chosen.bool(), changed, 0)  # (copy, pos)
    counts = torch.bincount(fates[:, own].flatten(), minlength=len(FATES)).double()
    return Recipe(
        names=FATES,
        labels=encoding.labels,
        chosen=chosen[0].bool().numpy(),
        fates=fates[0].numpy(),
        read_ids=read[0].numpy(),
        read_labels=tuple(map(tokenizer.label_of, read[0].tolist())),
        shares=(counts / counts.sum()).numpy(),
        copies=copies,
        tokens=len(own),
    )


@torch.inference_mode()
def three_ways(*, prompt: Prompt, seed: int, exchanges: int = 4) -> ThreeWays:
    """Treat every token of a text in each of the recipe's three ways by itself, and ask the head for the true word.

    Args:
        seed: of the random words.
        exchanges: random words to try in each token's place, from 1 to 16.

    Raises:
        ValueError: as masking_recipe.
    """
    require_range("exchanges", exchanges, 1, MOST_EXCHANGES)
    encoding, tokenizer = encode_masks(prompt), prompt.bundle.tokenizer
    places, rows = each_masked(encoding, tokenizer)
    ordinary = _special_first(tokenizer)[len(SPECIAL_TOKENS) :].numpy()
    drawn = np.random.default_rng(seed).choice(ordinary, (exchanges, len(places)))  # (exchange, token)
    pairs = [(place, int(id_)) for ids in drawn for place, id_ in zip(places, ids, strict=True)]
    rows += [[*encoding.ids[:place], id_, *encoding.ids[place + 1 :]] for place, id_ in pairs]
    true_ids = torch.tensor([encoding.ids[place] for place in places])
    changed = logits_at(prompt.bundle, rows, places * (1 + exchanges), encoding.segment_ids)
    kept = logits_of(prompt.bundle, encoding, places)
    logits = torch.cat([changed, kept]).reshape(exchanges + 2, len(places), -1)  # (row, token, vocab)
    shares = logits.softmax(-1)[:, torch.arange(len(places)), true_ids].double()  # (row, token)
    first = (logits.argmax(-1) == true_ids).double()
    by_way = [torch.stack([x[0], x[1:-1].mean(0), x[-1]]) for x in (shares, first)]  # (way, token)
    return ThreeWays(
        ways=WAYS,
        places=np.array(places),
        labels=tuple(encoding.labels[place] for place in places),
        probabilities=by_way[0].numpy(),
        means=by_way[0].mean(1).numpy(),
        firsts=by_way[1].mean(1).numpy(),
        exchanges=exchanges,
    )
