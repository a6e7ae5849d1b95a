"""Speculative greedy decoding: each pass checks many words of a draft of the target.

The result is that of greedy decoding, in fewer passes. Stern et al. 2018, section 3 (there the model guesses
its own next words); Leviathan et al. 2023 (a smaller model does); guesses looked up by the last words: Saxena 2023,
prompt lookup decoding (there in the prompt).
"""

from collections.abc import Iterator, Sequence

import torch

from transformer_core.generation.sampling import Written
from transformer_core.models.translation import DecoderState, Translation

MOST_ALIKE, MOST_GUESSED = 4, 8  # words that are compared, and that are guessed once the draft was wrong


def greedy_from_draft(
    model: Translation, state: DecoderState, draft: Sequence[int], *, bos_id: int, eos_id: int, most: int
) -> Iterator[Written]:
    """Write what greedy writes, many words a pass where the draft is right.

    Each pass reads words of the draft and takes those up to the first that the model would not have written, and the
    model's own in its place; the next pass reads on where the draft has the words that were written last, else behind
    the word that was wrong.

    Args:
        state: what the model's `start` returns.
        draft: target ids after the start, such as the translation of a sentence that differs in a word; may be empty.
            A model that sees later positions has no use for it.
        bos_id, eos_id, most: as in greedy.

    Raises:
        ValueError: the draft holds an id outside the target's vocabulary.
    """
    most = min(most, model.config.max_len - 1)
    draft = tuple(draft) if model.config.causal else ()
    written, guess, place = [bos_id], draft, 0  # place: how many words of the draft lie behind
    while len(written) <= most:
        guess = guess[: most - len(written)]
        read_ids = torch.tensor([[written[-1], *guess]], device=state.memory.device)  # (1, pos)
        with torch.inference_mode():
            logits, after = model.read(read_ids, state)  # (1, pos, vocab)
            token_ids = logits[0].argmax(-1).tolist()
        right = _alike(guess, token_ids)
        for at in range(right + 1):
            yield Written(token_ids[at], logits[0, at])
            if token_ids[at] == eos_id:
                return
        written += token_ids[: right + 1]
        state = after.truncated(len(written) - 1)
        place += right + 1
        found = _place_after(draft, written, place)
        place = place if found is None else found
        guess = draft[place : place + MOST_GUESSED] if right or found else ()


def _place_after(draft: Sequence[int], written: Sequence[int], expected: int) -> int | None:
    """Return how many words of the draft lie behind, by the words written last; None where it lacks the last one.

    Of several places, the one with most words alike, then the one nearest to the one expected.
    """
    places = [place for place in range(1, len(draft) + 1) if draft[place - 1] == written[-1]]
    if not places:
        return None
    backwards = written[: -MOST_ALIKE - 1 : -1]
    return max(places, key=lambda place: (_alike(draft[:place][::-1], backwards), -abs(place - expected)))


def _alike(guess: Sequence[int], token_ids: Sequence[int]) -> int:
    """Return how many words from the first on are the same."""
    pairs = enumerate(zip(guess, token_ids, strict=False))
    return next((place for place, (guessed, own) in pairs if guessed != own), min(len(guess), len(token_ids)))
