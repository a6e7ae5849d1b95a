"""A model reads one text: the encoding in, the class probabilities and the trace out.

Read next: attention/heads.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from transformer_core.checkpoints import Bundle
from transformer_core.probe import DEFAULT_MAX_BYTES, Edit, Trace, capture
from transformer_core.text import Encoding


@dataclass(frozen=True)
class Reading:
    """What a model made of one text.

    Args:
        probabilities: one a class, in the order of the bundle's labels; they sum to 1.
        trace: what the probe recorded.
    """

    probabilities: tuple[float, ...]
    trace: Trace


def read(
    bundle: Bundle,
    encoding: Encoding,
    *,
    sites: tuple[str, ...] = ("*",),
    edits: Mapping[str, Edit] | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Reading:
    """Run a classifier over one encoding.

    Raises:
        ValueError: the bundle is of another kind, or an error of capture.
    """
    if bundle.kind != "classifier":
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}; it must be a classifier")
    device = next(bundle.model.parameters()).device
    token_ids = torch.tensor([encoding.ids], device=device)  # (batch, pos)
    logits, trace = capture(bundle.model, token_ids, sites=sites, edits=edits, max_bytes=max_bytes)
    return Reading(tuple(logits[0].softmax(-1).tolist()), trace)
