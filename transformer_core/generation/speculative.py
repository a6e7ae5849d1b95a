"""Speculative greedy decoding: each pass checks many words of a draft of the target.

The result is that of greedy decoding, in fewer passes. Stern et al. 2018, section 3 (there the model guesses
its own next words); Leviathan et al. 2023 (a smaller model does).
"""

from collections.abc import Iterator, Sequence

import torch

from transformer_core.generation.sampling import Written
from transformer_core.models.translation import DecoderState, Translation


def greedy_from_draft(
    model: Translation, state: DecoderState, draft: Sequence[int], *, bos_id: int, eos_id: int, most: int
) -> Iterator[Written]:
    """Write what greedy writes, many words a pass where the draft is right.

    Each pass reads the draft's words that are left and takes those up to the first that the model would not have
    written, and the model's own in its place. A pass that finds no word right ends the use of the draft.

    Args:
        state: what the model's `start` returns.
        draft: target ids after the start, such as the translation of a sentence that differs in a word; may be empty.
            A model that sees later positions has no use for it.
        bos_id, eos_id, most: as in greedy.

    Raises:
        ValueError: the draft holds an id outside the target's vocabulary.
    """
    most = min(most, model.config.max_len - 1)
    last, guess, length = bos_id, tuple(draft) if model.config.causal else (), 0
    while most > length:
        guess = guess[: most - length - 1]
        read_ids = torch.tensor([[last, *guess]], device=state.memory.device)  # (1, pos)
        with torch.inference_mode():
            logits, after = model.read(read_ids, state)  # (1, pos, vocab)
            token_ids = logits[0].argmax(-1).tolist()
        right = _alike(guess, token_ids)
        for place in range(right + 1):
            yield Written(token_ids[place], logits[0, place])
            if token_ids[place] == eos_id:
                return
        length += right + 1
        state, last = after.truncated(length), token_ids[right]
        guess = guess[right + 1 :] if right else ()


def _alike(guess: Sequence[int], token_ids: Sequence[int]) -> int:
    """Return how many words from the first on are the same."""
    pairs = enumerate(zip(guess, token_ids, strict=False))
    return next((place for place, (guessed, own) in pairs if guessed != own), len(guess))
