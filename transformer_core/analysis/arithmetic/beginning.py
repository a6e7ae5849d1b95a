"""The arithmetic of the input: ids, rows of matrices, and the sum that enters the first layer.

Vaswani et al. 2017, section 3.4; segments: Devlin et al. 2019, figure 2. Read next: placing.py.
"""

import torch
from torch import Tensor

from transformer_core.analysis.arithmetic.flow import Pass
from transformer_core.analysis.arithmetic.step import Step


def same(x: Tensor) -> Tensor:
    """Return what came in."""
    return x


def total(**parts: Tensor) -> Tensor:
    """Add everything up."""
    return torch.stack(torch.broadcast_tensors(*parts.values())).sum(0)


def token_ids(run: Pass, scope: str) -> Step:
    """The ids that the model was given."""
    ids = run.ids[scope.partition(".")[0]]
    return Step(r"\mathrm{vocabulary}(w_{<j>})", "<x>", same, {"x": ids})


def segment_ids(run: Pass, scope: str) -> Step:
    """The segments that the model was given; where none were, all are 0."""
    ids = run.ids[scope.partition(".")[0]]
    given = torch.zeros_like(ids) if run.segment_ids is None else run.segment_ids
    return Step(r"\mathrm{sentence}(w_{<j>})", "<x>", same, {"x": given})


def _row(run: Pass, scope: str, letter: str, picks: str, matrix: Tensor) -> Step:
    ids = run[f"{scope}.{picks}"]
    one_hot_product = matrix.double()[ids]  # (batch, pos, d_model)
    values = {"x": one_hot_product, "id": ids[..., None]}
    pick = picks[0]

    sources = {pick: f"{scope}.{picks}"}
    return Step(
        rf"{letter}_{{{pick}_{{<i>}},\,<j>}}", rf"{letter}_{{<id>,\,<j>}}", lambda x, id: x, values, sources=sources
    )


def token_embedding(run: Pass, scope: str) -> Step:
    """A row of the embedding matrix."""
    return _row(run, scope, "E", "token_ids", run.token_matrix(scope))


def segment_embedding(run: Pass, scope: str) -> Step:
    """A row of the segment matrix."""
    return _row(run, scope, "S", "segment_ids", run.module(f"{scope}.segment").weight)


def scaled_embedding(run: Pass, scope: str) -> Step:
    """The row times sqrt(d_model)."""
    source = f"{scope}.token_embedding"
    x = run[source]
    d = torch.tensor(float(x.shape[-1]))
    return Step(
        r"\sqrt{d_{model}}\cdot e_{<i>,<j>}",
        r"\sqrt{<d>}\cdot<x>",
        lambda x, d: x * torch.sqrt(d.double()),
        {"x": x, "d": d},
        sources={"e": source},
    )


def embedding_sum(run: Pass, scope: str) -> Step:
    """Token, segment and position embeddings, where the model has them."""
    token = "scaled_embedding" if run.config.scale_embeddings else "token_embedding"
    leaves = {"e": token, "s": "segment_embedding", "p": "position_embedding"}
    sources = {letter: f"{scope}.{leaf}" for letter, leaf in leaves.items() if f"{scope}.{leaf}" in run.trace}
    return Step(
        "+".join(rf"{letter}_{{<i>,<j>}}" for letter in sources),
        "+".join(f"<{letter}>" for letter in sources),
        total,
        {letter: run[source] for letter, source in sources.items()},
        sources=sources,
    )
