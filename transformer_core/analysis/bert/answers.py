"""Answers to a question in a passage: where they may start and end, and the likeliest spans.

Devlin et al. 2019, sections 4.2 and 4.3: a span from i to j >= i has the score S x_i + E x_j; [CLS] to [CLS] stands for
no answer. The softmax runs over the whole sequence, as in their released code.
"""

from dataclasses import dataclass

import numpy as np
import torch

from transformer_core.analysis.bert.masked_words import tensors
from transformer_core.bundle import Bundle
from transformer_core.models import AnswerFinder
from transformer_core.text import Encoding

MOST_SPAN = 30  # tokens of an answer, as in their released code


@dataclass(frozen=True)
class Span:
    """One possible answer.

    Args:
        text: as the passage has it.
        first, last: its tokens among the passage's, both included.
        probability: of its start times that of its end.
    """

    text: str
    first: int
    last: int
    probability: float


@dataclass(frozen=True, eq=False)
class Answers:
    """Where the answer may be.

    Shapes:
        start, end: (token,), the probability of each token of the passage; what is missing to 1 lies elsewhere

    Args:
        tokens: of the passage.
        spans: the likeliest valid ones, the best first; none where the passage has no tokens.
        nothing: the probability of the first token, [CLS], as start times as end: no answer.
        backwards: the likeliest start lies after the likeliest end, so that the two alone are no answer.
        truncated: tokens that there was no room for.
    """

    tokens: tuple[str, ...]
    start: np.ndarray
    end: np.ndarray
    spans: tuple[Span, ...]
    nothing: float
    backwards: bool
    truncated: int


def encode_question(bundle: Bundle, question: str, passage: str, n_tokens: int) -> Encoding:
    """Cut a question and its passage into tokens, no more than there is room for; the longer is cut first.

    Raises:
        ValueError: one of them has no tokens, or as Tokenizer.encode.
    """
    for name, text in (("question", question), ("passage", passage)):
        if not text.strip():
            raise ValueError(f"{name}={text!r} must be a text")
    return bundle.tokenizer.encode(question, passage, max_len=n_tokens)


@torch.inference_mode()
def find_answers(*, bundle: Bundle, question: str, passage: str, n_tokens: int, top: int) -> Answers:
    """Find the likeliest answers to a question in a passage.

    Args:
        n_tokens: most tokens of both together, special ones among them.
        top: how many spans to return at most.

    Raises:
        ValueError: the model finds no answers, or as encode_question.
    """
    model = bundle.model_as(AnswerFinder)
    encoding = encode_question(bundle, question, passage, n_tokens)
    ids, segments = tensors(bundle, [encoding.ids], encoding.segment_ids)
    probabilities = model(ids, segment_ids=segments)[0].float().softmax(0).cpu().double().numpy()  # (pos, bound)
    both = zip(encoding.segment_ids, encoding.special, strict=True)
    places = [place for place, (segment, special) in enumerate(both) if segment and not special]
    start, end = probabilities[places, 0], probabilities[places, 1]  # (token,)
    return Answers(
        tokens=tuple(encoding.labels[place] for place in places),
        start=start,
        end=end,
        spans=_spans(encoding, places, start, end, top),
        nothing=float(probabilities[0].prod()),
        backwards=bool(places) and int(start.argmax()) > int(end.argmax()),
        truncated=encoding.truncated,
    )


def _spans(encoding: Encoding, places: list[int], start: np.ndarray, end: np.ndarray, top: int) -> tuple[Span, ...]:
    products = np.outer(start, end)  # (first, last)
    first, last = np.indices(products.shape)
    valid = (last >= first) & (last - first < MOST_SPAN)
    order = np.argsort(-np.where(valid, products, -1.0), axis=None, kind="stable")[: min(top, int(valid.sum()))]
    found = []
    for flat in order.tolist():
        begins, ends = divmod(flat, len(places))
        left, right = encoding.offsets[places[begins]][0], encoding.offsets[places[ends]][1]
        text = (encoding.pair or "")[left:right].strip()
        found.append(Span(text, begins, ends, float(products[begins, ends])))
    return tuple(found)
