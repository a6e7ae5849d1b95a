"""What a kind of model answers, and where in its output the answer stands: one Reader a kind, on its bundle.

A classifier is asked for a class, a GPT or a recurrent language model for the next token, a BERT for the token behind
[MASK], a translation for every word of a target, given those before it. Other kinds answer nothing.

Devlin et al. 2019, section 3.1; Radford et al. 2018, section 3.1; Williams and Zipser 1989.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from torch import Tensor

from transformer_core.config import ModelConfig
from transformer_core.text import Encoding, Tokenizer
from transformer_core.wiring import Wiring

Asks = Literal["class", "next", "masked", "words"]
MOST_SCORES = 1 << 24  # of what is read at once


@dataclass(frozen=True)
class Reader:
    """How a model reads a text, and what it answers; this one answers nothing.

    Args:
        config: the model's.
        tokenizer: of what is answered.
        labels: names of the classes.
    """

    config: ModelConfig
    tokenizer: Tokenizer
    labels: tuple[str, ...]

    asks: ClassVar[Asks | None] = None
    stack: ClassVar[str] = "encoder"  # that reads the text
    needs: ClassVar[str] = "a model with a head that answers"

    @property
    def causal(self) -> bool:
        """Whether a position of that stack sees only itself and what came before."""
        return False

    @property
    def n_outcomes(self) -> int:
        """How many classes, or tokens, can be answered."""
        return getattr(self.config, "target_vocab_size", self.config.vocab_size)

    def site(self, rest: str) -> str:
        """Return the full name of a part of the stack, such as ``encoder.layer0`` of ``layer0``."""
        return f"{self.stack}.{rest}"

    @property
    def wiring(self) -> Wiring:
        """Which recorded tensor flows into which part of that stack."""
        return Wiring(self.config)

    def sees(self, layer: int) -> tuple[int, int | None] | None:
        """Return how many positions a query of a layer sees back and ahead at most, itself in both; None for all."""
        window = self.config.window(layer)
        return None if window is None else (window, None if self.causal else window)

    @property
    def stages(self) -> tuple[str, ...]:
        """The sites of the residual stream as it enters the first layer, and as it leaves each."""
        leaving = (self.site(f"layer{layer}.residual") for layer in range(self.config.n_layers))
        return (self.wiring.entering(self.stack), *leaving)

    def scores(self, output: Any) -> Tensor:
        """Return the scores of everything that could be answered.

        Shapes:
            returns: (text, slot, outcome), the slots being positions, or one for a class
        """
        return output

    def slot(self, encoding: Encoding) -> int | None:
        """Return the one slot that answers a text, None where nothing does or many do."""
        return None

    def outcome(self, encoding: Encoding) -> "Outcome | None":
        """Return which scores are the prediction for a text, None where there is none."""
        slot = self.slot(encoding)
        return None if slot is None else Outcome(self, slot)

    def required(self, encoding: Encoding) -> "Outcome":
        """Return the same.

        Raises:
            ValueError: it predicts nothing from this text.
        """
        found = self.outcome(encoding)
        if found is None:
            raise ValueError(f"text={encoding.text!r:.40} has nothing to answer; it needs {self.needs}")
        return found

    def label(self, index: int) -> str:
        """Return the name of one possible outcome, its number where it has none: a token, or a class."""
        known = index < self.tokenizer.vocab_size  # a model may score more rows than its tokenizer has entries
        return (self.tokenizer.label_of(index) if known else "") or f"#{index}"

    def at_once(self, n_tokens: int, most: int) -> int:
        """Return how many texts of so many tokens are read together, so that all scores fit in memory."""
        return max(1, min(most, MOST_SCORES // (n_tokens * self.n_outcomes)))


@dataclass(frozen=True)
class _OfClass(Reader):
    asks = "class"

    @property
    def n_outcomes(self) -> int:
        return self.config.n_classes

    def scores(self, output: Any) -> Tensor:
        return output[:, None]

    def slot(self, encoding: Encoding) -> int | None:
        return 0

    def outcome(self, encoding: Encoding) -> "Outcome | None":
        return Outcome(self)

    def label(self, index: int) -> str:
        return self.labels[index] if index < len(self.labels) else f"#{index}"

    def at_once(self, n_tokens: int, most: int) -> int:
        return super().at_once(1, most)


@dataclass(frozen=True)
class _OfNext(Reader):
    """The token after the last one that the text itself has: padding and closing tokens come after it."""

    asks = "next"
    stack = "decoder"
    needs = "a token of its own"

    @property
    def causal(self) -> bool:
        return getattr(self.config, "causal", True)  # a recurrent model never looks ahead

    def slot(self, encoding: Encoding) -> int | None:
        return encoding.own[-1] if encoding.own else None


@dataclass(frozen=True)
class _OfRecurrentNext(_OfNext):
    stack = "recurrent"


@dataclass(frozen=True)
class _OfMasked(Reader):
    asks = "masked"
    needs = "a [MASK], where the word stands that it is asked for"

    def scores(self, output: Any) -> Tensor:
        return output.mlm_logits

    def slot(self, encoding: Encoding) -> int | None:
        mask_id = self.tokenizer.mask_id
        return encoding.ids.index(mask_id) if mask_id in encoding.ids else None


@dataclass(frozen=True)
class _OfWords(Reader):
    asks = "words"


READERS: dict[str, type[Reader]] = {
    "classifier": _OfClass,
    "recurrent_classifier": _OfClass,
    "gpt": _OfNext,
    "lm": _OfRecurrentNext,
    "bert": _OfMasked,
    "translation": _OfWords,
    "seq2seq": _OfWords,
}  # of all other kinds, Reader itself


@dataclass(frozen=True)
class Outcome:
    """Which scores of a model's output are its prediction for one text.

    Args:
        place: the position that is read, None for a class.
    """

    reader: Reader
    place: int | None = None

    @property
    def asks(self) -> Asks | None:
        """What is predicted: of which class the text is, which token comes next, or stood where its first [MASK] is."""
        return self.reader.asks

    @property
    def slot(self) -> int:
        """Which slot of the reader's scores is read."""
        return self.place or 0

    def logits(self, output: Any) -> Tensor:
        """Return the scores of the possible outcomes.

        Shapes:
            returns: (batch, outcome), the outcomes being classes, or the ids of the vocabulary
        """
        return self.reader.scores(output)[:, self.slot]
