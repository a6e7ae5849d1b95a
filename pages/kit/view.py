"""What a page is about: a model, and the text that it reads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from transformer_core.bundle import Bundle
from transformer_core.prompt import Prompt
from transformer_core.reader import Outcome
from transformer_core.text import Encoding


class _Asked(Protocol):
    """An answer, as of pages.kit.asking."""

    @property
    def old(self) -> bool: ...

    @property
    def arguments(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class View:
    """What the header chose: a model and the encoded text that it reads."""

    bundle: Bundle
    encoding: Encoding

    @property
    def prompt(self) -> Prompt:
        """The model and the text, or both texts of a pair, as functions of the library take them."""
        read = self.encoding
        return Prompt(self.bundle, read.text, len(read), read.pair, read.add_special)

    @property
    def outcome(self) -> Outcome | None:
        """Which scores are the model's prediction for the text; None where it predicts nothing."""
        return self.bundle.reader.outcome(self.encoding)

    @property
    def name(self) -> str:
        """The model's name and the text, of what is asked about them."""
        return f"{self.bundle.name} {self.encoding.text}"

    def of(self, answer: _Asked) -> "View":
        """Return this model with the text that an answer of it is of: another one, where the answer is old."""
        if not answer.old:
            return self
        return View(self.bundle, answer.arguments["prompt"].encoding)
