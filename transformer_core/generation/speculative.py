"""Speculative greedy decoding: each pass checks many words that were guessed from drafts of the target.

The result is that of greedy decoding, in fewer passes. Stern et al. 2018, section 3 (there the model guesses
its own next words); Leviathan et al. 2023 (a smaller model does); guesses looked up by the last words: Saxena 2023,
prompt lookup decoding (there in the prompt).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

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
        token_ids: of the words.
        count: how many tokens the pass read; the last `count` query positions of the trace are theirs, and of these
            the first len(token_ids) wrote the words.
    """

    token_ids: tuple[int, ...]
    logits: Tensor
    count: int
    trace: Trace


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
    most = min(most, model.config.max_len - 1)
    begun = [[bos_id, *draft] for draft in drafts] if model.config.causal else []
    written, ended = [bos_id], False
    while len(written) <= most and not ended:
        known = [*begun, written] if model.config.causal else []
        length = min(FIRST_GUESSED if len(written) == 1 else MOST_GUESSED, most - len(written))
        guess = _guessed(known, written, length) or _guessed(known, written[:-1], length + 1)[1:]
        read_ids = torch.tensor([[written[-1], *guess]], device=state.memory.device)  # (1, pos)
        probe = Probe(sites)
        with torch.inference_mode():
            logits, after = model.read(read_ids, state, probe=probe)  # (1, pos, vocab)
            token_ids = logits[0].argmax(-1).tolist()
        found = token_ids[: _alike(guess, token_ids) + 1]
        ended = eos_id in found
        found = found[: found.index(eos_id) + 1] if ended else found
        yield SpeculativePass(tuple(found), logits[0, : len(found)], len(read_ids[0]), probe.trace)
        written += found
        state = after.truncated(len(written) - 1)


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
