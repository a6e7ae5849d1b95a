"""Pairs: does the second sentence go with the first? The verdict, the order, and what each word of it is worth.

Devlin et al. 2019, section 3.1, task 2; class 0 = it follows. Read next: segments.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.bert.hiding import (
    MOST_TOKENS_AT_ONCE,
    bert_of,
    encode_masks,
    hide,
    own_places,
    tensors,
)
from transformer_core.bundle import Bundle
from transformer_core.probe import Edit, Probe
from transformer_core.text import Encoding

ORDERS = ("ab", "ba", "aa", "bb")


@dataclass(frozen=True, eq=False)
class PairVerdict:
    """The probability that the second sentence goes with the first, in each order.

    Shapes:
        follows: (order)

    Args:
        orders: "ab" as typed, "ba" swapped, and each sentence with itself.
        dropped: tokens left out of the typed pair, which has room for so many only.
    """

    orders: tuple[str, ...]
    follows: np.ndarray
    dropped: int


@dataclass(frozen=True, eq=False)
class WordsOfPair:
    """What the verdict does when one token of the pair is hidden.

    Shapes:
        places, segments, follows, moves: (token)

    Args:
        labels: of the tokens; segments: 0 for the first sentence's, 1 for the second's.
        usual: the probability that the second follows, with nothing hidden.
        follows: the same with that token hidden.
        moves: follows - usual in percentage points.
        flipped: whether the verdict is another, one a token.
    """

    places: np.ndarray
    labels: tuple[str, ...]
    segments: np.ndarray
    usual: float
    follows: np.ndarray
    moves: np.ndarray
    flipped: np.ndarray


def follows(
    bundle: Bundle,
    rows: Sequence[Sequence[int]],
    segments: Sequence[int],
    *,
    edits: Mapping[str, Edit] | None = None,
) -> Tensor:
    """Return the probability that the second sentence follows; no word is held against the vocabulary for it.

    Shapes:
        returns: (row,), on the CPU

    Args:
        rows: ids, all of one length.
        segments: of every row.
        edits: as of capture, by the full names of a forward pass of Bert.

    Raises:
        ValueError: the model came without the head for pairs.
    """
    model = bert_of(bundle)
    if not model.config.pair_head:
        raise ValueError(f"bundle={bundle.name!r} came without a head for pairs of sentences")
    found, step = [], max(1, MOST_TOKENS_AT_ONCE // len(rows[0]))
    for start in range(0, len(rows), step):
        ids, segment_ids = tensors(bundle, rows[start : start + step], segments)
        probe = Probe((), edits=edits)
        cls_embedding = model.encoder(ids, segment_ids=segment_ids, probe=probe.at("encoder"))[:, 0]
        pooled = torch.tanh(model.pooler_proj(cls_embedding))  # (batch, d_model)
        found.append(model.nsp_head(pooled).softmax(-1)[:, 0].float().cpu())
    return torch.cat(found)


def encode_pair(bundle: Bundle, text: str, pair: str, n_tokens: int) -> Encoding:
    """Cut a pair of sentences into tokens, no more than there is room for.

    Raises:
        ValueError: a sentence has no tokens, or as Tokenizer.encode.
    """
    for name, sentence in (("text", text), ("pair", pair)):
        if not sentence.strip():
            raise ValueError(f"{name}={sentence!r} must be a sentence")
    return encode_masks(bundle, text, n_tokens, pair)


@torch.inference_mode()
def pair_verdict(*, bundle: Bundle, text: str, pair: str, n_tokens: int) -> PairVerdict:
    """Judge a pair of sentences in both orders, and each sentence with itself.

    Args:
        n_tokens: most tokens of a pair, special ones among them.

    Raises:
        ValueError: as encode_pair and follows.
    """
    sentences = {"a": text, "b": pair}
    encodings = [encode_pair(bundle, sentences[order[0]], sentences[order[1]], n_tokens) for order in ORDERS]
    shares = [float(follows(bundle, [encoding.ids], encoding.segment_ids)) for encoding in encodings]
    return PairVerdict(ORDERS, np.array(shares), encodings[0].truncated)


@torch.inference_mode()
def words_of_pair(*, bundle: Bundle, text: str, pair: str, n_tokens: int) -> WordsOfPair:
    """Hide each token of a pair by itself, and return how far the verdict moves.

    Raises:
        ValueError: as encode_pair and follows, or the vocabulary has no [MASK].
    """
    encoding = encode_pair(bundle, text, pair, n_tokens)
    places = own_places(encoding)
    rows = [encoding.ids, *(hide(encoding, (place,), bundle.tokenizer).ids for place in places)]
    shares = follows(bundle, rows, encoding.segment_ids).double().numpy()
    usual, hidden = float(shares[0]), shares[1:]
    return WordsOfPair(
        places=np.array(places),
        labels=tuple(encoding.labels[place] for place in places),
        segments=np.array([encoding.segment_ids[place] for place in places]),
        usual=usual,
        follows=hidden,
        moves=100 * (hidden - usual),
        flipped=(hidden > 0.5) != (usual > 0.5),
    )
