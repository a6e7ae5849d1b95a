"""Sentence pairs: the verdict on whether the second follows the first, and the segment rows that distinguish them.

Devlin et al. 2019, section 3.1, task 2 (class 0 = it follows), and figure 2 (segments).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.bert.masked_words import (
    MOST_TOKENS_AT_ONCE,
    bert_of,
    each_masked,
    encode_masks,
    tensors,
)
from transformer_core.bundle import Bundle
from transformer_core.probe import Edit, Probe, capture
from transformer_core.prompt import Prompt
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
        flipped: whether the verdict is another, one per token.
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
    """Return the probability that the second sentence follows; no word is scored against the vocabulary.

    Shapes:
        returns: (row,), on the CPU

    Args:
        rows: ids, all of one length.
        segments: of every row.
        edits: as in capture, by the full names of a forward pass of Bert.

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


def encode_pair(prompt: Prompt) -> Encoding:
    """Cut a pair of sentences into tokens, no more than there is room for.

    Raises:
        ValueError: a sentence has no tokens, or as Tokenizer.encode.
    """
    for name, sentence in (("text", prompt.text), ("pair", prompt.pair)):
        if not (sentence or "").strip():
            raise ValueError(f"{name}={sentence!r} must be a sentence")
    return encode_masks(prompt)


@torch.inference_mode()
def pair_verdict(*, prompt: Prompt) -> PairVerdict:
    """Judge a pair of sentences in both orders, and each sentence with itself.

    Raises:
        ValueError: as encode_pair and follows.
    """
    sentences = {"a": prompt.text, "b": prompt.pair}
    encodings = [
        encode_pair(Prompt(prompt.bundle, sentences[order[0]], prompt.n_tokens, sentences[order[1]]))
        for order in ORDERS
    ]
    shares = [float(follows(prompt.bundle, [encoding.ids], encoding.segment_ids)) for encoding in encodings]
    return PairVerdict(ORDERS, np.array(shares), encodings[0].truncated)


@torch.inference_mode()
def words_of_pair(*, prompt: Prompt) -> WordsOfPair:
    """Hide each token of a pair by itself, and return how far the verdict moves.

    Raises:
        ValueError: as encode_pair, each_masked and follows.
    """
    encoding = encode_pair(prompt)
    places, rows = each_masked(encoding, prompt.bundle.tokenizer)
    shares = follows(prompt.bundle, [encoding.ids, *rows], encoding.segment_ids).double().numpy()
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


CHANGES = ("usual", "swapped", "none", "all_a", "all_b")
SITE = "encoder.embedding.segment_embedding"


@dataclass(frozen=True, eq=False)
class SegmentRows:
    """The rows of the segment matrix, and how long each summand of the input is at each token of a pair.

    Shapes:
        rows: (segment, d_model); segment_ids, token_norms, segment_norms, position_norms: (pos)

    Args:
        cosine: of the first two rows.
        apart: length of their difference.
        labels: of the tokens.
        token_norms: after the factor sqrt(d_model), where the model has it.
        position_norms: 0 where no position vectors are added.
    """

    rows: np.ndarray
    cosine: float
    apart: float
    labels: tuple[str, ...]
    segment_ids: np.ndarray
    token_norms: np.ndarray
    segment_norms: np.ndarray
    position_norms: np.ndarray


@dataclass(frozen=True, eq=False)
class WithoutSegments:
    """The probability that the second sentence follows, with other segment vectors in place of the model's own.

    Shapes:
        follows: (change)

    Args:
        changes: "usual"; "swapped", each sentence with the other's row; "none", zeros; "all_a" and "all_b", one row for
            all tokens.
    """

    changes: tuple[str, ...]
    follows: np.ndarray


def _segment_matrix(bundle: Bundle) -> Tensor:
    segment = bert_of(bundle).encoder.embedding.segment
    if segment is None or len(segment.weight) < 2:
        raise ValueError(f"bundle={bundle.name!r} has {bundle.config.n_segments} segment vectors; it must have 2")
    return segment.weight


@torch.inference_mode()
def segment_rows(*, prompt: Prompt) -> SegmentRows:
    """Return the segment matrix and the lengths of what is added up at every token of a pair.

    Raises:
        ValueError: the model has no two segment vectors, or as encode_pair.
    """
    bundle = prompt.bundle
    matrix, encoding = _segment_matrix(bundle).float().cpu(), encode_pair(prompt)
    ids, segment_ids = tensors(bundle, [encoding.ids], encoding.segment_ids)
    part, sites = bert_of(bundle).encoder, ("embedding.*",)
    _, trace = capture(part, ids, segment_ids=segment_ids, sites=sites, until="embedding.residual")
    token = "scaled_embedding" if bundle.config.scale_embeddings else "token_embedding"

    def norms(leaf: str) -> np.ndarray:
        name = f"embedding.{leaf}"
        if name not in trace:
            return np.zeros(len(encoding))
        return trace[name].reshape(len(encoding), -1).norm(dim=-1).float().cpu().numpy()

    return SegmentRows(
        rows=matrix.numpy(),
        cosine=float(torch.cosine_similarity(matrix[0], matrix[1], dim=0)),
        apart=float((matrix[0] - matrix[1]).norm()),
        labels=encoding.labels,
        segment_ids=np.array(encoding.segment_ids),
        token_norms=norms(token),
        segment_norms=norms("segment_embedding"),
        position_norms=norms("position_embedding"),
    )


@torch.inference_mode()
def without_segments(*, prompt: Prompt) -> WithoutSegments:
    """Judge a pair with its segment vectors exchanged, through the probe; the weights stay as they are.

    Raises:
        ValueError: as segment_rows, and as follows.
    """
    matrix, encoding = _segment_matrix(prompt.bundle), encode_pair(prompt)
    own = torch.tensor(encoding.segment_ids, device=matrix.device)
    instead: dict[str, Callable[[Tensor], Tensor]] = {
        "swapped": lambda x: matrix[1 - own].expand_as(x),
        "none": torch.zeros_like,
        "all_a": lambda x: matrix[0].expand_as(x),
        "all_b": lambda x: matrix[1].expand_as(x),
    }
    shares = [
        float(follows(prompt.bundle, [encoding.ids], encoding.segment_ids, edits={SITE: edit} if edit else None))
        for edit in map(instead.get, CHANGES)
    ]
    return WithoutSegments(CHANGES, np.array(shares))
