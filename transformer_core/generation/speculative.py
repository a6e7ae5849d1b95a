"""Speculative greedy decoding: each pass checks many words that were guessed, by drafts of the target or a small model.

The result is that of greedy decoding, in fewer passes. Stern et al. 2018, section 3 (there the model guesses
its own next words); Leviathan et al. 2023 (a smaller model does); guesses looked up by the last words: Saxena 2023,
prompt lookup decoding (there in the prompt).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer_core.layers.cache import KeyValueCache
from transformer_core.models.gpt import Gpt
from transformer_core.models.translation import DecoderState, Translation
from transformer_core.probe import Probe
from transformer_core.trace import Trace

MOST_ALIKE = 8  # words that are compared
FIRST_GUESSED, MOST_GUESSED = 32, 12  # words that the first pass guesses, and those after it


@dataclass(frozen=True, eq=False)
class SpeculativePass:
    """What one pass wrote: the guessed words up to the first that the model would not have written, and its own there.

    Shapes:
        logits: (word, vocab)

    Args:
        guessed: ids that were proposed; all words but the last are the first of them.
        token_ids: of the words.
        count: how many tokens the pass read; the last `count` query positions of the trace are theirs, and of these
            the first len(token_ids) wrote the words.
    """

    guessed: tuple[int, ...]
    token_ids: tuple[int, ...]
    logits: Tensor
    count: int
    trace: Trace


Propose = Callable[[Sequence[int], int], Sequence[int]]  # of what was written, and how many words: the next ones


def _checked_passes(
    model: Translation | Gpt,
    state: Any,
    written: Sequence[int],
    propose: Propose,
    *,
    end: int,
    ends: Collection[int],
    device: torch.device,
    sites: tuple[str, ...] = (),
) -> Iterator[SpeculativePass]:
    """Let a model check proposed words, pass by pass, until so many are written or one of `ends` is.

    Args:
        state: after all that was written but the last word.
        propose: is asked for as many words as there is room for beside the model's own.
        end: words in all, those that were written before among them.
    """
    written, begun = list(written), len(written)
    while len(written) < end and (len(written) == begun or written[-1] not in ends):
        guess = tuple(propose(written, end - len(written) - 1))
        probe = Probe(sites)
        with torch.inference_mode():
            logits, after = model.read(torch.tensor([[written[-1], *guess]], device=device), state, probe=probe)
            own = logits[0].argmax(-1).tolist()  # of (1, pos, vocab)
        found = own[: _alike(guess, own) + 1]
        found = found[: next((place for place, id_ in enumerate(found, 1) if id_ in ends), None)]
        yield SpeculativePass(guess, tuple(found), logits[0, : len(found)], 1 + len(guess), probe.trace)
        written += found
        state = after.truncated(len(written) - 1)


def greedy_from_drafts(
    model: Translation,
    state: DecoderState,
    drafts: Sequence[Sequence[int]],
    *,
    bos_id: int,
    eos_id: int,
    most: int,
    sites: tuple[str, ...] = (),
) -> Iterator[SpeculativePass]:
    """Write what greedy writes, many words a pass where a draft is right.

    Each pass guesses what follows in a draft, or in what was written so far, after the words that were written last;
    where none has the last one, as if it stood in the place of another.

    Args:
        state: what the model's `start` returns.
        drafts: target ids after the start, such as translations of sentences that differ in a word, the likeliest
            draft first; may be empty. A model that sees later positions has no use for them.
        bos_id, eos_id, most: as in greedy.
        sites: what the passes record, as of Probe.

    Raises:
        ValueError: a draft holds an id outside the target's vocabulary.
    """
    begun = [[bos_id, *draft] for draft in drafts] if model.config.causal else []

    def propose(written: Sequence[int], room: int) -> Sequence[int]:
        known = [*begun, written] if model.config.causal else []
        length = min(FIRST_GUESSED if len(written) == 1 else MOST_GUESSED, room)
        return _guessed(known, written, length) or _guessed(known, written[:-1], length + 1)[1:]

    end = min(most, model.config.max_len - 1) + 1
    device = state.memory.device
    return _checked_passes(model, state, [bos_id], propose, end=end, ends={eos_id}, device=device, sites=sites)


def looked_up(written: Sequence[int], most: int) -> Sequence[int]:
    """Propose what followed the last words where they stood before; nothing where the last one did not."""
    return _guessed([written], written, most)


class SmallModel:
    """A model that proposes what it would write itself, word by word, with a cache of its own; see Propose."""

    def __init__(self, model: Gpt) -> None:
        self._model, self._read, self._state = model, [], KeyValueCache(model.config.n_layers)

    @torch.inference_mode()
    def __call__(self, written: Sequence[int], most: int) -> Sequence[int]:
        """Return the likeliest words after what was written, one after another."""
        alike = min(_alike(self._read, written), len(written) - 1)
        state, coming, found = self._state.truncated(alike), list(written[alike:]), []
        device = next(self._model.parameters()).device
        for _ in range(most):
            logits, state = self._model.advance(torch.tensor([coming], device=device), state)
            coming = [int(logits[0].argmax())]
            found += coming
        self._read, self._state = [*written, *found[:-1]], state
        return found


def greedy_with_drafts(
    model: Gpt, ids: Sequence[int], propose: Propose, *, length: int, most: int, ends: Collection[int]
) -> Iterator[SpeculativePass]:
    """Write on as greedy does, checking so many proposed words a pass (Leviathan et al. 2023, algorithm 1, greedy).

    Args:
        ids: of the text that is written on, at least one.
        propose: gives the next words; fewer than asked for, or none, are fine.
        length: words proposed a pass.
        most: words written in all; fewer where the model's max_len ends.
        ends: ids, the first of which is the last word.

    Raises:
        ValueError: a proposed id is outside the vocabulary.
    """
    device = next(model.parameters()).device
    end = min(len(ids) + most, model.config.max_len)
    with torch.inference_mode():
        state = model.start(torch.tensor([ids[:-1]], device=device, dtype=torch.long))

    def at_most(written: Sequence[int], room: int) -> Sequence[int]:
        return propose(written, min(length, room))

    return _checked_passes(model, state, ids, at_most, end=end, ends=ends, device=device)


def _guessed(known: Sequence[Sequence[int]], written: Sequence[int], most: int) -> Sequence[int]:
    """Return at most so many words that follow the last written one somewhere in what is known, maybe none.

    Of several places, the one with most words before it alike, then the one in the first draft, then the one nearest to
    where the writing is.
    """
    backwards = written[: -MOST_ALIKE - 1 : -1]
    best: tuple[int, int, int] | None = None
    guess: Sequence[int] = ()
    for rank, words in enumerate(known):
        for place in range(1, len(words)):  # of the word that follows
            if written and words[place - 1] == written[-1]:
                before = words[max(0, place - MOST_ALIKE) : place][::-1]
                score = (_alike(before, backwards), -rank, -abs(place - len(written)))
                if best is None or score > best:
                    best, guess = score, words[place : place + most]
    return guess


def _alike(guess: Sequence[int], token_ids: Sequence[int]) -> int:
    """Return how many words from the first on are the same."""
    pairs = enumerate(zip(guess, token_ids, strict=False))
    return next((place for place, (guessed, own) in pairs if guessed != own), min(len(guess), len(token_ids)))
