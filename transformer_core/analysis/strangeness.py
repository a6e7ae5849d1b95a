"""How strange a text is to a model: nats per token where it predicts tokens, else tokens per word.

Radford et al. 2018, eq. 1. A BERT could guess each token from all others (Salazar et al. 2020), at the cost of one
forward pass per token at every keystroke.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from transformer_core.analysis.outcome import one_text
from transformer_core.bundle import Bundle
from transformer_core.probe import capture
from transformer_core.text import Encoding
from transformer_core.text.encoding import words_of

FEWEST = 8  # tokens that a mean of nats is taken of: the first words of any text are a surprise


@dataclass(frozen=True)
class Strangeness:
    """How strange a text is.

    Args:
        measure: as in Usual in measured.py.
        value: the mean over the text; None where it is too short to be measured.
    """

    measure: str
    value: float | None


def measure_of(bundle: Bundle) -> str:
    """Return what tells best how strange a text is to this kind of model."""
    return "nats_a_token" if bundle.kind in ("gpt", "lm") else "tokens_a_word"


def strangeness(*, bundle: Bundle, text: str, n_tokens: int) -> Strangeness:
    """Measure how strange a text is to a model.

    Args:
        n_tokens: most tokens of the text to read.
    """
    encoding = bundle.tokenizer.encode(text, max_len=n_tokens)
    measure = measure_of(bundle)
    if measure == "tokens_a_word":
        words = [word for word in words_of(encoding) if encoding.text[word.start].isalnum()]
        return Strangeness(measure, sum(len(word.places) for word in words) / len(words) if words else None)
    return Strangeness(measure, _of_next(bundle, encoding))


@torch.inference_mode()
def _of_next(bundle: Bundle, encoding: Encoding) -> float | None:
    ids = one_text(bundle, encoding)[:, [place for place, (_, end) in enumerate(encoding.offsets) if end]]
    if ids.shape[1] < FEWEST:
        return None
    return float(F.cross_entropy(capture(bundle.model, ids, sites=())[0][0, :-1].float(), ids[0, 1:]))
