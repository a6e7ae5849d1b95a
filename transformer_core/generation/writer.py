"""Writer: the interface of every model that generates text: read a source, then score the next token, step by step.

A state is a value: `advance` and `reorder` return another one and leave theirs as it was, so that a search may go on
from any state that it holds.
Read next: transformer_core/generation/sampling.py
"""

from typing import Any, Protocol

from torch import Tensor


class Sizes(Protocol):
    """The sizes that bound what can be written."""

    @property
    def vocab_size(self) -> int:
        """Entries of the vocabulary; where a model has a target_vocab_size too, that one counts."""
        ...

    @property
    def max_len(self) -> int:
        """Most positions of a source, and of a target."""
        ...


class Writer(Protocol):
    """Translation, Gpt, Seq2Seq and RecurrentLm."""

    @property
    def config(self) -> Sizes:
        """The model's configuration."""
        ...

    def start(self, source_ids: Tensor, /) -> Any:
        """Read (batch, source_pos) and return the state before the first word.

        A source is a sentence to translate, or, of a Gpt or a RecurrentLm, what comes before the first word that
        `advance` is given.
        """
        ...

    def advance(self, token_ids: Tensor, state: Any, /) -> tuple[Tensor, Any]:
        """Read the next words, most often one, and score the one after them.

        Shapes:
            token_ids: (batch, pos)
            returns: logits (batch, vocab), and the state after these words
        """
        ...

    def reorder(self, state: Any, rows: Tensor, /) -> Any:
        """Return the state of these rows of the batch, (new_batch,), in this order; a row may occur more than once."""
        ...
