"""How strange a text is to a model: nats a token where it foresees or guesses tokens, else tokens a word.

Next tokens: Radford et al. 2018, eq. 1; each token guessed from all others: Salazar et al. 2020, eq. 1 (a
pseudo-log-likelihood). Read next: word_worth.py.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from transformer_core.analysis.outcome import copies_at_once, one_text
from transformer_core.checkpoints import Bundle
from transformer_core.probe import capture
from transformer_core.text import Encoding
from transformer_core.text.words import words_of

MOST_AT_ONCE = 32


@dataclass(frozen=True)
class Strangeness:
    """How strange a text is.

    Args:
        measure: as of Usual in measured.py.
        value: the mean over the text; None where it is too short to be measured.
    """

    measure: str
    value: float | None


def measure_of(bundle: Bundle) -> str:
    """Return what tells best how strange a text is to this kind of model."""
    foresees = bundle.kind == "gpt" or (bundle.kind == "bert" and bundle.tokenizer.mask_id is not None)
    return "nats_a_token" if foresees else "tokens_a_word"


def strangeness(*, bundle: Bundle, text: str, n_tokens: int) -> Strangeness:
    """Measure how strange a text is to a model.

    Args:
        n_tokens: how many tokens of the text are read at most.
    """
    encoding = bundle.tokenizer.encode(text, max_len=n_tokens)
    measure = measure_of(bundle)
    if measure == "tokens_a_word":
        words = [word for word in words_of(encoding) if encoding.text[word.start].isalnum()]
        return Strangeness(measure, sum(len(word.places) for word in words) / len(words) if words else None)
    return Strangeness(measure, _of_next(bundle, encoding) if bundle.kind == "gpt" else _of_hidden(bundle, encoding))


@torch.inference_mode()
def _of_next(bundle: Bundle, encoding: Encoding) -> float | None:
    ids = one_text(bundle, encoding)[:, [place for place, (_, end) in enumerate(encoding.offsets) if end]]
    if ids.shape[1] < 2:
        return None
    return float(F.cross_entropy(capture(bundle.model, ids, sites=())[0][0, :-1].float(), ids[0, 1:]))


@torch.inference_mode()
def _of_hidden(bundle: Bundle, encoding: Encoding) -> float | None:
    own = [place for place, special in enumerate(encoding.special) if not special]
    if not own:
        return None
    ids = one_text(bundle, encoding)
    hidden = ids.repeat(len(own), 1)  # (copy, pos)
    hidden[range(len(own)), own] = bundle.tokenizer.mask_id
    at_once = copies_at_once(bundle, len(encoding), MOST_AT_ONCE)
    places, logits = torch.tensor(own, device=ids.device).split(at_once), []
    for part, there in zip(hidden.split(at_once), places, strict=True):
        scores = capture(bundle.model, part, sites=())[0].mlm_logits  # (copy, pos, vocab)
        logits.append(scores[range(len(there)), there].float())
    return float(F.cross_entropy(torch.cat(logits), ids[0, own]))
