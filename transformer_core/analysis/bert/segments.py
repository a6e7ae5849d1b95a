"""Segments: two rows that tell a pair's sentences apart, where they are added, and the verdict without them.

Devlin et al. 2019, figure 2. Read next: tied.py.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.bert.hiding import bert_of, tensors
from transformer_core.analysis.bert.pairs import encode_pair, follows
from transformer_core.bundle import Bundle
from transformer_core.probe import capture

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
def segment_rows(*, bundle: Bundle, text: str, pair: str, n_tokens: int) -> SegmentRows:
    """Return the segment matrix and the lengths of what is added up at every token of a pair.

    Raises:
        ValueError: the model has no two segment vectors, or as encode_pair.
    """
    matrix, encoding = _segment_matrix(bundle).float().cpu(), encode_pair(bundle, text, pair, n_tokens)
    ids, segment_ids = tensors(bundle, [encoding.ids], encoding.segment_ids)
    _, trace = capture(bert_of(bundle).encoder, ids, segment_ids=segment_ids, sites=("embedding.*",))
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
def without_segments(*, bundle: Bundle, text: str, pair: str, n_tokens: int) -> WithoutSegments:
    """Judge a pair with its segment vectors exchanged, through the probe; the weights stay as they are.

    Raises:
        ValueError: as segment_rows, and as follows.
    """
    matrix, encoding = _segment_matrix(bundle), encode_pair(bundle, text, pair, n_tokens)
    own = torch.tensor(encoding.segment_ids, device=matrix.device)
    instead: dict[str, Callable[[Tensor], Tensor]] = {
        "swapped": lambda x: matrix[1 - own].expand_as(x),
        "none": torch.zeros_like,
        "all_a": lambda x: matrix[0].expand_as(x),
        "all_b": lambda x: matrix[1].expand_as(x),
    }
    shares = [
        float(follows(bundle, [encoding.ids], encoding.segment_ids, edits={SITE: edit} if edit else None))
        for edit in map(instead.get, CHANGES)
    ]
    return WithoutSegments(CHANGES, np.array(shares))
