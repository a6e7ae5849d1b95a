"""Labels of tokens, such as parts of names: each token's probabilities, and what they make of words and names.

Devlin et al. 2019, section 5.3: a word is labelled by its first token. Prefixes B- and I-: Ramshaw and Marcus 1995.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from transformer_core.analysis.bert.masked_words import tensors
from transformer_core.models import TokenClassifier
from transformer_core.prompt import Prompt
from transformer_core.text.encoding import words_of

OUTSIDE = "O"


@dataclass(frozen=True)
class Name:
    """Neighbouring words that belong together.

    Args:
        kind: the label without B- and I-.
        start, end: in characters of the text.
        first, last: its words, both included.
        probability: of the labels of its words, their mean.
    """

    kind: str
    start: int
    end: int
    first: int
    last: int
    probability: float


@dataclass(frozen=True, eq=False)
class TokenLabels:
    """What a token classifier makes of a text.

    Shapes:
        probabilities: (pos, label), each row summing to 1
        chosen: (word,), the label of each word: the likeliest of its first token

    Args:
        labels: their names; tokens: the text's, special ones among them.
        words: as they are written; places: the positions of each word's tokens.
        names: words joined by their labels, those labelled O left out.
        truncated: tokens of the text that there was no room for.
    """

    labels: tuple[str, ...]
    tokens: tuple[str, ...]
    probabilities: np.ndarray
    words: tuple[str, ...]
    places: tuple[tuple[int, ...], ...]
    chosen: np.ndarray
    names: tuple[Name, ...]
    truncated: int

    @property
    def sure(self) -> np.ndarray:
        """The probability of each word's label at its first token, (word,)."""
        return np.array(
            [self.probabilities[own[0], label] for own, label in zip(self.places, self.chosen, strict=True)]
        )

    @property
    def disagreeing(self) -> int:
        """How many words have a later token whose likeliest label is another one than the word's."""
        best = self.probabilities.argmax(-1)
        pairs = zip(self.places, self.chosen, strict=True)
        return sum(bool((best[list(own)] != label).any()) for own, label in pairs)


def kind_of_label(label: str) -> str:
    """Return a label without its prefix: ``PER`` of ``B-PER`` and of ``I-PER``."""
    return label[2:] if label[:2] in ("B-", "I-") and len(label) > 2 else label


@torch.inference_mode()
def token_labels(*, prompt: Prompt) -> TokenLabels:
    """Label every token of a text.

    Raises:
        ValueError: the model is no token classifier, or as Tokenizer.encode.
    """
    bundle = prompt.bundle
    model = bundle.model_as(TokenClassifier)
    encoding = prompt.encoding
    ids, segments = tensors(bundle, [encoding.ids], encoding.segment_ids)
    logits = model(ids, segment_ids=segments)
    probabilities = logits[0].float().softmax(-1).cpu().numpy()  # (pos, label)
    labels = bundle.labels or tuple(f"LABEL_{place}" for place in range(probabilities.shape[1]))
    words = words_of(encoding)
    chosen = np.array([int(probabilities[word.places[0]].argmax()) for word in words], dtype=int)
    found = TokenLabels(
        labels=labels,
        tokens=encoding.labels,
        probabilities=probabilities,
        words=tuple(prompt.text[word.start : word.end] for word in words),
        places=tuple(word.places for word in words),
        chosen=chosen,
        names=(),
        truncated=encoding.truncated,
    )
    spans = [(word.start, word.end) for word in words]
    return replace(found, names=_names(found, spans))


def _names(found: TokenLabels, spans: list[tuple[int, int]]) -> tuple[Name, ...]:
    """Join neighbouring words of one kind; B- begins another name, and I- after another kind does, too."""
    runs: list[list[int]] = []
    for word, label in enumerate(found.labels[index] for index in found.chosen):
        before = found.labels[found.chosen[word - 1]] if word else OUTSIDE
        joins = runs and kind_of_label(before) == kind_of_label(label) and not label.startswith("B-")
        if label == OUTSIDE:
            continue
        if joins and runs[-1][-1] == word - 1:
            runs[-1].append(word)
        else:
            runs.append([word])
    sure = found.sure
    return tuple(
        Name(
            kind=kind_of_label(found.labels[found.chosen[run[0]]]),
            start=spans[run[0]][0],
            end=spans[run[-1]][1],
            first=run[0],
            last=run[-1],
            probability=float(sure[run].mean()),
        )
        for run in runs
    )
