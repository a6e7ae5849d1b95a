"""How strange a text is to a model: nats per token, by the model where it predicts tokens, else by counts.

By the model it is the mean surprise (Radford et al. 2018, eq. 1). Of others it is rarity, the mean surprise of a
unigram model, which knows only how often each token stands in what the model learned from. A BERT could guess each
token from all others (Salazar et al. 2020), at the cost of one forward pass per token at every keystroke.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import torch
import torch.nn.functional as F

from transformer_core.analysis.outcome import one_text
from transformer_core.bundle import Bundle
from transformer_core.measured import TypicalRange
from transformer_core.probe import capture
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding

FEWEST = {"nats_a_token": 8, "rarity": 3}  # tokens that a mean is taken of: the first words of any text are a surprise
SMOOTHED = 0.5  # added to each count, so that a token which was never learned from has a finite surprise
AT_ONCE = 1_024  # texts


@dataclass(frozen=True)
class Strangeness:
    """How strange a text is.

    Args:
        measure: as in TypicalRange in measured.py.
        value: nats, the mean over the text; None where it is too short, or nobody counted what the model learned from.
        tokens: how many were read, special ones aside.
    """

    measure: str
    value: float | None
    tokens: int


def measure_of(bundle: Bundle) -> str:
    """Return what tells best how strange a text is to this kind of model."""
    return "nats_a_token" if bundle.reader.asks == "next" else "rarity"


def strangeness(*, prompt: Prompt) -> Strangeness:
    """Measure how strange a text is to a model."""
    encoding = prompt.encoding
    measure, own = measure_of(prompt.bundle), own_tokens(encoding)
    if len(own) < FEWEST[measure]:
        return Strangeness(measure, None, len(own))
    value = (
        _of_next(prompt.bundle, encoding) if measure == "nats_a_token" else _rarity(prompt.bundle.measured.learned, own)
    )
    return Strangeness(measure, value, len(own))


def unusual(bundle: Bundle, found: Strangeness) -> TypicalRange | None:
    """Return what is usual where a text is stranger than 95 of 100 that were set aside, or longer than all lengths of
    which enough were there; None where it is neither.

    None, too, where it is too short to be measured, or nothing was measured of this model.
    """
    usual = bundle.measured.typical_at(found.measure, found.tokens)
    if usual is None or found.value is None:
        return None
    return usual if found.value > usual.high or usual.is_shorter_than(found.tokens) else None


def own_tokens(encoding: Encoding) -> list[int]:
    """Return the ids of a text's own tokens, unknown ones among them, but not those that its template adds."""
    rows = zip(encoding.ids, encoding.special, encoding.unknown, strict=True)
    return [token for token, special, unknown in rows if unknown or not special]


def counted(bundle: Bundle, texts: Iterable[str]) -> tuple[int, ...]:
    """Count how often each entry of the vocabulary stands in texts, as far as the model reads them."""
    counts = torch.zeros(bundle.tokenizer.vocab_size, dtype=torch.long)
    rest = iter(texts)
    while chunk := list(islice(rest, AT_ONCE)):
        rows = bundle.tokenizer.encode_batch(chunk, max_len=bundle.config.max_len)
        own = torch.tensor([token for row in rows for token in own_tokens(row)], dtype=torch.long)
        counts += own.bincount(minlength=len(counts))
    return tuple(counts.tolist())


def _rarity(counts: tuple[int, ...], own: list[int]) -> float | None:
    """Return the mean of -ln((count + 1/2) / (all + V/2)) over tokens."""
    if not counts:
        return None
    whole = sum(counts) + SMOOTHED * len(counts)
    return math.log(whole) - sum(math.log(counts[token] + SMOOTHED) for token in own) / len(own)


@torch.inference_mode()
def _of_next(bundle: Bundle, encoding: Encoding) -> float | None:
    ids = one_text(bundle, encoding)[:, encoding.own]
    if ids.shape[1] < FEWEST["nats_a_token"]:
        return None
    return float(F.cross_entropy(capture(bundle.model, ids, sites=())[0][0, :-1].float(), ids[0, 1:]))
