"""Masked words: a text with [MASK] in place of some tokens, and the likeliest words there.

Devlin et al. 2019, section 3.1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from transformer_core.bundle import Bundle
from transformer_core.config import require_range
from transformer_core.models import Bert
from transformer_core.progress import counted
from transformer_core.prompt import Prompt
from transformer_core.text import MASK, Encoding, Tokenizer

MOST_TOKENS_AT_ONCE = 2_048


@dataclass(frozen=True)
class Hidden:
    """A text before and after hiding.

    Args:
        original: as it was typed.
        masked: the same with [MASK] at the places.
        places: of all masks, those that the text spells out among them, in order.
        true_ids: what stood at each place; None where the text itself has a mask there.
    """

    original: Encoding
    masked: Encoding
    places: tuple[int, ...]
    true_ids: tuple[int | None, ...]


def bert_of(bundle: Bundle) -> Bert:
    """Return the bundle's model; ValueError where it is not a Bert."""
    return bundle.model_as(Bert)


def mask_token_id(tokenizer: Tokenizer) -> int:
    """Return the id of [MASK].

    Raises:
        ValueError: the vocabulary has none.
    """
    if tokenizer.mask_id is None:
        raise ValueError("bundle has a vocabulary without [MASK]; it must have that token to hide words")
    return tokenizer.mask_id


def encode_masks(prompt: Prompt) -> Encoding:
    """Cut a text, or a pair, of which [MASK] stands for the vocabulary's own mask, however that is spelled.

    Raises:
        ValueError: as Tokenizer.encode.
    """
    tokenizer = prompt.bundle.tokenizer
    spelled = MASK if tokenizer.mask_id is None else tokenizer.token_of(tokenizer.mask_id)
    second = None if prompt.pair is None else prompt.pair.replace(MASK, spelled)
    return tokenizer.encode(prompt.text.replace(MASK, spelled), second, max_len=prompt.n_tokens)


def own_places(encoding: Encoding) -> tuple[int, ...]:
    """Return the places of the text's own tokens, which can be hidden."""
    return tuple(place for place, special in enumerate(encoding.special) if not special)


def hide(encoding: Encoding, places: Sequence[int], tokenizer: Tokenizer) -> Encoding:
    """Return the encoding with [MASK] in place of some tokens; text and offsets stay, so that `surface` still works.

    Raises:
        ValueError: a place is not one of the text's own tokens, or the vocabulary has no [MASK].
    """
    allowed, mask_id = own_places(encoding), mask_token_id(tokenizer)
    for place in places:
        if place not in allowed:
            raise ValueError(f"hidden={tuple(places)} must be places of the text's own tokens, got {place}")
    token, label = tokenizer.token_of(mask_id), tokenizer.label_of(mask_id)
    chosen = set(places)
    columns = {
        name: tuple(new if place in chosen else old for place, old in enumerate(getattr(encoding, name)))
        for name, new in {"ids": mask_id, "tokens": token, "labels": label, "special": True, "unknown": False}.items()
    }
    return replace(encoding, **columns)


def each_masked(encoding: Encoding, tokenizer: Tokenizer) -> tuple[tuple[int, ...], list[list[int]]]:
    """Return the places of a text's own tokens, and its ids with [MASK] at one of them after the other.

    Raises:
        ValueError: the text has no token of its own, or the vocabulary has no [MASK].
    """
    places, mask_id = own_places(encoding), mask_token_id(tokenizer)
    if not places:
        raise ValueError(f"text={encoding.text[:60]!r} has no token that can be hidden")
    return places, [[*encoding.ids[:place], mask_id, *encoding.ids[place + 1 :]] for place in places]


def hidden_text(prompt: Prompt, hidden: Sequence[int], *, place: int | None = None) -> Hidden:
    """Hide tokens of a text, beside those that it hides itself by spelling [MASK].

    Args:
        place: of the mask that is looked at, where it is one.

    Raises:
        ValueError: as encode_masks and hide; or there is no mask at the place.
    """
    original = encode_masks(prompt)
    masked = hide(original, hidden, prompt.bundle.tokenizer)
    mask_id = mask_token_id(prompt.bundle.tokenizer)
    places = tuple(place for place, id_ in enumerate(masked.ids) if id_ == mask_id)
    true_ids = tuple(None if original.ids[place] == mask_id else original.ids[place] for place in places)
    if place is not None and place not in places:
        raise ValueError(f"place={place} must be one of the masks' places, {places}")
    return Hidden(original, masked, places, true_ids)


def tensors(bundle: Bundle, rows: Sequence[Sequence[int]], segments: Sequence[int]) -> tuple[Tensor, Tensor | None]:
    """Return equally long rows of ids, and their segments where the model has any, on the model's device.

    Shapes:
        returns: (batch, pos) each
    """
    device = bundle.device
    ids = torch.tensor(rows, device=device)
    if not bundle.config.n_segments:
        return ids, None
    segment_ids = torch.tensor(segments, device=device).clamp(max=bundle.config.n_segments - 1)
    return ids, segment_ids.expand_as(ids)


def logits_of(bundle: Bundle, encoding: Encoding, places: Sequence[int]) -> Tensor:
    """Return the scores of all words at some places of one text; only those are scored against the vocabulary.

    Shapes:
        returns: (place, vocab), float32, on the CPU
    """
    model = bert_of(bundle)
    ids, segment_ids = tensors(bundle, [encoding.ids], encoding.segment_ids)
    x = model.encoder(ids, segment_ids=segment_ids)[0]  # (pos, d_model)
    return model.mlm_head(x[list(places)]).float().cpu()


def logits_at(bundle: Bundle, rows: Sequence[Sequence[int]], places: Sequence[int], segments: Sequence[int]) -> Tensor:
    """Return the scores of all words at one place of each of many rows, all of one length.

    Shapes:
        returns: (row, vocab), float32, on the CPU
    """
    model, found = bert_of(bundle), []
    step = max(1, MOST_TOKENS_AT_ONCE // len(rows[0]))
    for start in counted(range(0, len(rows), step)):
        ids, segment_ids = tensors(bundle, rows[start : start + step], segments)
        x = model.encoder(ids, segment_ids=segment_ids)  # (batch, pos, d_model)
        chosen = x[torch.arange(len(ids)), list(places[start : start + step])]  # (batch, d_model)
        found.append(model.mlm_head(chosen).float().cpu())
    return torch.cat(found)


def ranks_of(logits: Tensor, ids: Tensor) -> Tensor:
    """Return the rank of one word of each row, from 1.

    Shapes:
        logits: (row, vocab); ids, returns: (row,)
    """
    return (logits > logits.gather(1, ids[:, None])).sum(1) + 1


MOST_GUESSES = 50


@dataclass(frozen=True, eq=False)
class Filled:
    """The guesses behind every mask of one text.

    Shapes:
        places, true_ids, true_ranks, true_probabilities: (mask); ids, probabilities: (mask, guess), the likeliest first

    Args:
        labels: of `ids`, by mask.
        true_ids: what stood there; -1 where the text itself has the mask, so that nothing is known.
        true_labels: of `true_ids`; empty where nothing is known.
        true_ranks: of those among all words, from 1; 0 where nothing is known.
        true_probabilities: of those; nan where nothing is known.
        vocabulary: how many words were scored.
    """

    places: np.ndarray
    ids: np.ndarray
    labels: tuple[tuple[str, ...], ...]
    probabilities: np.ndarray
    true_ids: np.ndarray
    true_labels: tuple[str, ...]
    true_ranks: np.ndarray
    true_probabilities: np.ndarray
    vocabulary: int


@dataclass(frozen=True, eq=False)
class EachHidden:
    """Every token of a text hidden by itself.

    Shapes:
        places, probabilities, ranks, guess_probabilities: (token)

    Args:
        labels: of the tokens.
        probabilities: of the true word, given all the others.
        ranks: of the true word, from 1.
        guesses: the likeliest word in its place, with `guess_probabilities`.
        share_first: of tokens whose true word is the first guess, in [0, 1].
    """

    places: np.ndarray
    labels: tuple[str, ...]
    probabilities: np.ndarray
    ranks: np.ndarray
    guesses: tuple[str, ...]
    guess_probabilities: np.ndarray
    share_first: float


@torch.inference_mode()
def fill_in(*, prompt: Prompt, hidden: tuple[int, ...], top: int = 8) -> Filled:
    """Guess the words behind all masks of a text, in one pass.

    Args:
        hidden: places of tokens to hide, beside every [MASK] that the text spells out.
        top: how many guesses to return for each mask.

    Raises:
        ValueError: there is no mask, a place cannot be hidden, or top is outside its range.
    """
    require_range("top", top, 1, MOST_GUESSES)
    read = hidden_text(prompt, hidden)
    if not read.places:
        raise ValueError("hidden=() hides nothing, and the text has no [MASK]; at least one token must be hidden")
    logits = logits_of(prompt.bundle, read.masked, read.places)  # (mask, vocab)
    probabilities = logits.softmax(-1)
    known = torch.tensor([0 if id_ is None else id_ for id_ in read.true_ids])
    is_known = torch.tensor([id_ is not None for id_ in read.true_ids])
    best = probabilities.topk(min(top, probabilities.shape[1]))
    label = prompt.bundle.tokenizer.label_of
    return Filled(
        places=np.array(read.places),
        ids=best.indices.numpy(),
        labels=tuple(tuple(map(label, row)) for row in best.indices.tolist()),
        probabilities=best.values.numpy(),
        true_ids=known.masked_fill(~is_known, -1).numpy(),
        true_labels=tuple("" if id_ is None else label(id_) for id_ in read.true_ids),
        true_ranks=ranks_of(logits, known).masked_fill(~is_known, 0).numpy(),
        true_probabilities=probabilities.gather(1, known[:, None])[:, 0].masked_fill(~is_known, torch.nan).numpy(),
        vocabulary=probabilities.shape[1],
    )


@torch.inference_mode()
def each_hidden(*, prompt: Prompt) -> EachHidden:
    """Hide each token of a text by itself and guess it from all the others; masks of the text stay masks.

    Raises:
        ValueError: the text has no token of its own, or the vocabulary has no [MASK].
    """
    encoding = encode_masks(prompt)
    places, rows = each_masked(encoding, prompt.bundle.tokenizer)
    logits = logits_at(prompt.bundle, rows, places, encoding.segment_ids)  # (token, vocab)
    true_ids = torch.tensor([encoding.ids[place] for place in places])
    ranks, probabilities = ranks_of(logits, true_ids), logits.softmax(-1)
    best = probabilities.max(-1)
    return EachHidden(
        places=np.array(places),
        labels=tuple(encoding.labels[place] for place in places),
        probabilities=probabilities.gather(1, true_ids[:, None])[:, 0].numpy(),
        ranks=ranks.numpy(),
        guesses=tuple(map(prompt.bundle.tokenizer.label_of, best.indices.tolist())),
        guess_probabilities=best.values.numpy(),
        share_first=float((ranks == 1).double().mean()),
    )
