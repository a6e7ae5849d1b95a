"""A model and the text that it is asked about: what nearly every measurement takes."""

from dataclasses import dataclass, replace

from transformer_core.bundle import Bundle
from transformer_core.text import Encoding


@dataclass(frozen=True)
class Prompt:
    """A text, or a pair of texts, and the model that reads it.

    Args:
        n_tokens: most tokens that are read, special ones among them.
        pair: the second text, for a model that reads two at once.
        add_special: the tokenizer adds special tokens; a conversation's text spells its own.
    """

    bundle: Bundle
    text: str
    n_tokens: int
    pair: str | None = None
    add_special: bool = True

    @property
    def encoding(self) -> Encoding:
        """The text as the model reads it; ValueError as of Tokenizer.encode."""
        return self.bundle.tokenizer.encode(self.text, self.pair, max_len=self.n_tokens, add_special=self.add_special)

    def with_text(self, text: str) -> "Prompt":
        """Another text to the same model, as much of it as that can read."""
        return Prompt(self.bundle, text, self.bundle.config.max_len)

    @property
    def fitting(self) -> "Prompt":
        """The same, cut where the model's places end."""
        return replace(self, n_tokens=min(self.n_tokens, self.bundle.config.max_len))
