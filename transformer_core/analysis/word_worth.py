"""What each word of a text is worth to what a model concludes from it: whole words are hidden, one after the other.

Zeiler and Fergus 2014, section 4.2, with words for pixels. Read next: counter_examples.py.
"""

from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.attention.occlusion import Substitute, hidden_logits, substitutes
from transformer_core.checkpoints import Bundle
from transformer_core.text.encoding import words_of


@dataclass(frozen=True, eq=False)
class WordWorth:
    """What the words of a text do for what a model concludes.

    Shapes:
        spans: (word, 2), where each begins and ends in the text; unknown: (word,), whether the vocabulary lacks it
        worth: (word,), the winner's probability with the word minus without it, above 0 where it pushes towards the
            winner; not a number where the word cannot be hidden

    Args:
        winner: the likeliest outcome (see outcome.py) of the whole text.
        before: its probability there.
        substitute: how a word was hidden (see occlusion.py).
    """

    spans: np.ndarray
    unknown: np.ndarray
    worth: np.ndarray
    winner: int
    before: float
    substitute: Substitute


def word_worth(*, bundle: Bundle, text: str, n_tokens: int) -> WordWorth:
    """Measure what hiding each word, all its tokens together, takes from the likeliest outcome.

    Args:
        bundle: of a kind that concludes something from this text.
        n_tokens: how many tokens of the text are read at most.

    Raises:
        ValueError: the model concludes nothing from the text.
    """
    encoding = bundle.tokenizer.encode(text, max_len=n_tokens)
    words, substitute = words_of(encoding), substitutes(bundle)[0]
    hidden, logits = hidden_logits(bundle, encoding, substitute, [word.places for word in words])
    probabilities = logits.float().softmax(-1).double().cpu().numpy()  # (copy, outcome)
    winner = int(probabilities[0].argmax())
    worth = np.full(len(words), np.nan)
    worth[hidden] = probabilities[0, winner] - probabilities[1:, winner]
    spans = np.array([(word.start, word.end) for word in words], dtype=np.int64).reshape(-1, 2)
    unknown = np.array([word.unknown for word in words], dtype=bool)
    return WordWorth(spans, unknown, worth, winner, float(probabilities[0, winner]), substitute)
