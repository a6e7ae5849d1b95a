"""The loss of one text: how many nats a model missed what it should have said by.

A class: Devlin et al. 2019, section 4.1; the next tokens: Radford et al. 2018, eq. 1; hidden words: Devlin et al. 2019,
section 3.1; a translation's words, each after the true ones before it: Williams and Zipser 1989.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_core.bundle import Bundle
from transformer_core.config import require_index
from transformer_core.reader import Asks, Reader
from transformer_core.text import Encoding
from transformer_core.trace import Trace

MOST_ANSWERS = 10


def scored_site(reader: Reader) -> str:
    """Return the leaf of the recorded scores of everything that could be answered."""
    return "class_logits" if reader.asks == "class" else "logits"


@dataclass(frozen=True)
class TextLoss:
    """What a model should have said of one text; called with the model's output, it gives the loss.

    Of a mixture of experts it is the cross entropy alone, without the balance that training adds.

    Args:
        reader: of the bundle.
        slots: where in the reader's scores the answers stand.
        answers: what should have been said there: a class's number, or ids of tokens; as many as slots.
    """

    reader: Reader
    slots: tuple[int, ...]
    answers: tuple[int, ...]

    @property
    def asks(self) -> Asks | None:
        """What is asked for: see reader.py."""
        return self.reader.asks

    @property
    def site(self) -> str:
        """The leaf of the recorded scores that the loss reads."""
        return scored_site(self.reader)

    @property
    def key(self) -> tuple[object, ...]:
        """What tells this loss from another of the same model and text."""
        return self.asks, self.slots, self.answers

    def __call__(self, output: Any) -> Tensor:
        """Return the mean cross entropy of all answers, in nats.

        Shapes:
            returns: ()

        Args:
            output: of the model, whose first text is meant.
        """
        return self.of(self.reader.scores(output)[0])

    def of(self, scores: Tensor) -> Tensor:
        """Return the same of the first text's scores.

        Shapes:
            scores: (slot, outcome); returns: ()
        """
        scores = scores[list(self.slots)]  # (answer, outcome)
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        return F.cross_entropy(scores, torch.tensor(self.answers, device=scores.device))


def text_loss(
    bundle: Bundle, encoding: Encoding, *, target_ids: Sequence[int] | None = None, answer: int | None = None
) -> TextLoss:
    """Return the loss of one text: what the bundle's kind is trained to say of it, as objectives.py has it.

    A classifier should have said the class `answer`; a GPT or a recurrent language model each next token of the text;
    a BERT the token `answer` at the first [MASK], or, in a text without one, each of the text's own tokens at its
    place, as of the tenth of chosen words that its training leaves as they are; a translation each next token of the
    target.

    Args:
        target_ids: what a translation's decoder reads, the start token first.
        answer: a class's number, or a token's id; where it is needed and not given, 0.

    Raises:
        ValueError: the bundle answers nothing, no token of the text or of the target has one to be guessed, or `answer`
            is none of the outcomes.
    """
    bundle.must_ask()
    reader, asks = bundle.reader, bundle.reader.asks
    if answer is not None:
        require_index("answer", answer, reader.n_outcomes)
    if takes_answer(reader, encoding):
        slot = reader.slot(encoding)
        assert slot is not None
        return TextLoss(reader, (slot,), (answer or 0,))
    if asks == "masked":
        return _guessing(reader, tuple(encoding.own), tuple(encoding.ids[place] for place in encoding.own))
    ids = tuple(target_ids or ()) if asks == "words" else encoding.ids
    padding = reader.config.padding
    slots = tuple(place for place in range(len(ids) - 1) if ids[place + 1] != padding)
    return _guessing(reader, slots, tuple(ids[slot + 1] for slot in slots))


def takes_answer(reader: Reader, encoding: Encoding) -> bool:
    """Return whether someone has to say what the right answer is; else it stands in the text."""
    return reader.asks == "class" or (reader.asks == "masked" and reader.slot(encoding) is not None)


def _guessing(reader: Reader, slots: tuple[int, ...], answers: tuple[int, ...]) -> TextLoss:
    if not slots:
        raise ValueError("text has no token that is guessed from another; it needs at least two tokens")
    return TextLoss(reader, slots, answers)


def likeliest_answers(
    bundle: Bundle, encoding: Encoding, trace: Trace, *, most: int = MOST_ANSWERS
) -> tuple[tuple[int, float], ...]:
    """Return the likeliest answers with their probabilities, the likeliest first; none where the answer is in the text.

    Args:
        trace: of a pass over the text that recorded its scores.
        most: how many.
    """
    reader = bundle.reader
    if not takes_answer(reader, encoding):
        return ()
    leaf = scored_site(reader)
    scores = next(tensor for name, tensor in trace.items() if name.rpartition(".")[2] == leaf)[0]
    shares = (scores if reader.asks == "class" else scores[reader.slot(encoding)]).float().softmax(-1)
    top = shares.topk(min(most, len(shares)))
    return tuple(zip(top.indices.tolist(), top.values.tolist(), strict=True))
