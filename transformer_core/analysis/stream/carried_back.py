"""A score's direction, carried back through a model from the row of its output matrix to the embedding.

Direct logit attribution: the residual stream is a sum of what was written into it (Elhage et al. 2021, "A mathematical
framework for transformer circuits"), and the output matrix is linear. The row of the output matrix is carried back from
the end of the stack to its beginning; what a part wrote, times that row, is its share of the score. On the way lies
what is not linear: a norm divides by its deviation or root mean square, and the head of a BERT or a pooler applies a
function phi, where phi(z) = (phi(z) / z) z. Each of these factors is held at what this pass computed, so that the sum
is exact for this text; it does not say what the score would be without a part, which score_without.py measures.
A norm's centring is linear and stays in. In post-norm order every norm above a part is held so, not the last alone.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from transformer_core.analysis.stream.asked_score import AskedScore
from transformer_core.layers.attention import MultiHeadAttention
from transformer_core.layers.embeddings import InputEmbedding
from transformer_core.layers.feed_forward import ACTIVATIONS, FeedForward, MixtureOfExperts
from transformer_core.layers.normalization import AnyNorm, RmsNorm
from transformer_core.models import Bert, Classifier
from transformer_core.models.classifier import POOLERS
from transformer_core.packed_linear import Linear
from transformer_core.wiring import SUBLAYERS


class Walk:
    """A direction that is carried back through a model, and the share of every part on the way.

    Shapes:
        direction: (row, d_model), of each position that the answer is read from
    """

    def __init__(self, asked: AskedScore) -> None:
        self.asked, self.model = asked, asked.place.bundle.model
        self.trace, self.stack = asked.scored.trace, asked.place.stack
        self.rows = list(asked.place.rows)
        self.shares: dict[str, float] = {}
        self.directions: dict[str, Tensor] = {}  # of every sublayer's output, by its scope
        self.norms = self.gates = 0
        self.direction = torch.empty(0)

    def at(self, site: str) -> Tensor:
        """Return what was recorded at the rows, in 64 bits. # (row, width)"""
        of = self.trace[site]
        return (of if of.dim() == 2 else of[0])[self.rows].cpu().double()

    def norm(self, norm: AnyNorm | None, site: str, name: str) -> None:
        """Carry the direction back through a normalisation whose factor is held; its bias is a part."""
        if norm is None:
            return
        self.norms += 1
        if norm.bias is not None:
            self.shares[name] = float((self.direction * weight_of(norm.bias)).sum())
        pooled = self.trace[f"{site}.{norm.multiplies}"]
        inverse = pooled[:, 0].cpu().double() if site == "pooler_norm" else self.at(f"{site}.{norm.multiplies}")
        back = self.direction * weight_of(norm.weight) * inverse
        self.direction = back if isinstance(norm, RmsNorm) else back - back.mean(-1, keepdim=True)

    def linear(self, proj: Linear, name: str) -> None:
        """Carry the direction back through a linear map; its bias is a part."""
        if proj.bias is not None:
            self.shares[name] = float((self.direction * weight_of(proj.bias)).sum())
        self.direction = self.direction @ weight_of(proj.weight)

    def gate(self, phi: Callable[[Tensor], Tensor], entering: Tensor) -> None:
        """Carry the direction back through phi(z) = (phi(z) / z) z, whose factor is held. # entering: (row, width)"""
        self.gates += entering.shape[-1]
        factor = torch.where(entering == 0, 0.0, phi(entering) / entering)
        self.direction = self.direction * factor


def weight_of(weight: Tensor) -> Tensor:
    return weight.detach().cpu().double()


def _rows_of(asked: AskedScore, weight: Tensor) -> Tensor:
    """Return the row of an output matrix for the score that is asked for. # (one, width)"""
    signs = torch.tensor(list(asked.signs.values()), dtype=torch.float64)
    return (signs @ weight_of(weight[list(asked.signs)]))[None]


def _through_head(walk: Walk) -> None:
    """Begin with the row of the output matrix, and carry it back to the stack's end."""
    model, asked, config = walk.model, walk.asked, walk.asked.place.bundle.config
    leaving = walk.at(asked.place.wiring.leaving(walk.stack))  # (row, d_model)
    share = torch.tensor(list(asked.place.rows.values()), dtype=torch.float64)[:, None]
    if isinstance(model, Classifier):
        output = model.class_proj
    else:
        scores = model.mlm_head.output if isinstance(model, Bert) else model.output  # type: ignore[union-attr]
        output = scores.proj  # type: ignore[union-attr]
    walk.direction = _rows_of(asked, output.weight)  # type: ignore[union-attr, arg-type]
    if output.bias is not None:  # type: ignore[union-attr]
        walk.shares["output.bias"] = float(_rows_of(asked, output.bias[:, None]))  # type: ignore[union-attr, index]
    if isinstance(model, Classifier):
        if model.pooler_proj is not None:
            walk.norm(model.pooler_norm, "pooler_norm", "pooler.norm_bias")
            entering = (share * leaving).sum(0, keepdim=True)
            walk.gate(POOLERS[config.pooler], _mapped(model.pooler_proj, entering))
            walk.linear(model.pooler_proj, "pooler.bias")
        walk.direction = walk.direction * share
    elif isinstance(model, Bert):
        head = model.mlm_head
        walk.norm(head.norm, "mlm_head.norm", "transform.norm_bias")
        walk.gate(ACTIVATIONS[head.activation], _mapped(head.transform_proj, leaving))
        walk.linear(head.transform_proj, "transform.bias")
    elif scores.scale is not None:  # type: ignore[union-attr]
        walk.direction = walk.direction * scores.scale  # type: ignore[union-attr]


def _mapped(proj: Linear, x: Tensor) -> Tensor:
    mapped = x @ weight_of(proj.weight).T
    return mapped if proj.bias is None else mapped + weight_of(proj.bias)


def _through_stack(walk: Walk) -> None:
    """Carry the direction from the stack's end to its embedding; every sublayer takes its share."""
    stack = getattr(walk.model, walk.stack).stack
    walk.norm(stack.final_norm, f"{walk.stack}.final_norm", "final_norm.bias")
    for layer in reversed(range(len(stack.layers))):
        block = stack.layers[layer]
        for sublayer in (name for name in reversed(SUBLAYERS) if hasattr(block, name)):
            around, name = getattr(block, f"{sublayer}_norm"), f"layer{layer}.{sublayer}"
            if around.norm_order == "post":
                walk.norm(around.norm, f"{walk.stack}.{name}.norm", f"{name}.norm_bias")
            stream = walk.direction
            walk.norm(around.output_norm, f"{walk.stack}.{name}.output_norm", f"{name}.norm_bias")
            walk.directions[name] = walk.direction
            (_share_of_feed_forward if sublayer == "feed_forward" else _share_of_heads)(
                walk, getattr(block, sublayer), name
            )
            walk.direction = stream * float(around.residual)


def towards_score(walk: Walk, attention: MultiHeadAttention, name: str) -> Tensor:
    """Return what each coordinate of each head's mixture adds to the score. # (head, row, d_head)"""
    direction = walk.directions[name]
    joined = direction if attention.output_proj is None else direction @ weight_of(attention.output_proj.weight)
    return joined.view(len(joined), attention.n_heads, attention.d_head).transpose(0, 1)


def _share_of_heads(walk: Walk, attention: MultiHeadAttention, name: str) -> None:
    mixtures = walk.trace[f"{walk.stack}.{name}.heads"][0][:, walk.rows].cpu().double()  # (head, row, d_head)
    shares = (mixtures * towards_score(walk, attention, name)).sum((1, 2))
    for head, share in enumerate(shares.tolist()):
        walk.shares[f"{name}.head{head}"] = share
    if attention.output_proj is not None and attention.output_proj.bias is not None:
        walk.shares[f"{name}.output_bias"] = float(
            (walk.directions[name] * weight_of(attention.output_proj.bias)).sum()
        )


def _share_of_feed_forward(walk: Walk, layer: FeedForward | MixtureOfExperts, name: str) -> None:
    share = float((walk.at(f"{walk.stack}.{name}.output") * walk.directions[name]).sum())
    bias = layer.outer_proj.bias if isinstance(layer, FeedForward) else None
    if bias is not None:
        walk.shares[f"{name}.output_bias"] = float((walk.directions[name] * weight_of(bias)).sum())
    walk.shares[name] = share - walk.shares.get(f"{name}.output_bias", 0.0)


def _through_embedding(walk: Walk) -> None:
    """Carry the direction back to the token's, the position's and the segment's vector."""
    embedding: InputEmbedding = getattr(walk.model, walk.stack).embedding
    scope = f"{walk.stack}.embedding"
    if embedding.stream_proj is not None:
        walk.linear(embedding.stream_proj, "embedding.proj_bias")
    walk.norm(embedding.norm, f"{scope}.norm", "embedding.norm_bias")
    token = "scaled_embedding" if embedding.scale is not None else "token_embedding"
    for name, site in (("token", token), ("position", "position_embedding"), ("segment", "segment_embedding")):
        if f"{scope}.{site}" in walk.trace:
            walk.shares[f"embedding.{name}"] = float((walk.at(f"{scope}.{site}") * walk.direction).sum())


def carried_back(asked: AskedScore) -> Walk:
    """Return every part's share of a score, with the directions on the way."""
    walk = Walk(asked)
    _through_head(walk)
    _through_stack(walk)
    _through_embedding(walk)
    return walk
