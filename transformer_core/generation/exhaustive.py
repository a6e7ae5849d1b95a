"""Every hypothesis there is, weighed: a beam so wide that nothing is ever dropped; for tiny vocabularies only.

Read next: ../checkpoints.py.
"""

from collections.abc import Iterator

from torch import Tensor

from transformer_core.generation.beam import BeamStep, beam_search
from transformer_core.generation.writer import Writer

MOST_HYPOTHESES = 50_000


def count_hypotheses(n_words: int, most: int) -> int:
    """Return how many targets there are: those of 0 to most - 1 words that end, and those of `most` words cut off.

    Args:
        n_words: words that can be written, the end token not counted.
    """
    return sum(n_words**length for length in range(most + 1))


def exhaustive_search(
    model: Writer,
    source_ids: Tensor,
    *,
    bos_id: int,
    eos_id: int,
    most: int,
    length_penalty: float = 0.6,
    exclude: tuple[int, ...] = (),
) -> Iterator[BeamStep]:
    """Weigh every target of at most `most` tokens; `best_of` gives the best, which no beam search can beat.

    Each step keeps all hypotheses of its length that do not end. Arguments as in beam_search.

    Raises:
        ValueError: there are more than 50,000 hypotheses, or as beam_search.
    """
    config = model.config
    n_words = getattr(config, "target_vocab_size", config.vocab_size) - len({*exclude, eos_id})
    most = min(most, config.max_len - 1)
    count = count_hypotheses(n_words, most)
    if count > MOST_HYPOTHESES:
        raise ValueError(
            f"most={most} tokens of {n_words} words make {count:,} hypotheses; at most {MOST_HYPOTHESES:,} are "
            "searched: lower most, or exclude words"
        )
    return beam_search(
        model,
        source_ids,
        width=count + 1,  # one more than can end, so that the search never stops early
        bos_id=bos_id,
        eos_id=eos_id,
        most=most,
        length_penalty=length_penalty,
        exclude=exclude,
    )
