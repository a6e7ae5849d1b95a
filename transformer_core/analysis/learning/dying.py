"""Where gradients die: how large they are in each layer, at each place, for models that differ in one thing.

Norm order: Xiong et al. 2020, section 3; residuals: He et al. 2016, section 3.1; a saturated softmax: Vaswani et al.
2017, section 3.2.1; dead ReLU: Maas et al. 2013, section 2.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from transformer_core.analysis.feed_forward.other_activation import other_activation
from transformer_core.analysis.lab.cases import Cases
from transformer_core.analysis.learning.steps import learner, lesson, loss_of, weights_of
from transformer_core.bundle import MODELS
from transformer_core.config import ModelConfig, require_choice, require_range
from transformer_core.layers.initialization import initialize
from transformer_core.probe import Edit, Probe
from transformer_core.progress import counted
from transformer_core.prompt import Prompt

Cause = Literal["orders", "softmax", "relu"]
CAUSES: tuple[Cause, ...] = get_args(Cause)
SITES = {"residual": "residual", "scores": "self_attention.scores", "pre_activation": "feed_forward.pre_activation"}
ORDERS = ("pre", "post", "pre_alone", "post_alone")  # the last two without residual connections
TIMES = (1, 4, 16, 64)  # by which scores are multiplied
SHIFTS = (0, 1, 2, 4)  # below zero, in deviations of what the activation reads
MOST_LAYERS = 24
NOTHING: Mapping[str, Edit] = MappingProxyType({})
DEAD, SMALL = 1e-3, 0.1
GREATEST_WEIGHT = 0.99  # from here on a row of weights is saturated


@dataclass(frozen=True, eq=False)
class GradientProfile:
    """Gradients of one model's loss at each layer and token.

    Shapes:
        residual, scores, pre_activation: (layer, pos), Euclidean norms: of the stream as it leaves a layer; of all
            scores of a query, all heads together; of what the activation reads; NaN where a layer has no such tensor

    Args:
        loss: in nats.
        saturated: share of the rows of attention weights of which one weight is above 0.99.
        dead: share of neurons that read nothing above 0 at any token, and so pass no gradient through a ReLU.
    """

    name: str
    residual: np.ndarray
    scores: np.ndarray
    pre_activation: np.ndarray
    loss: float
    saturated: float
    dead: float

    def by_layer(self, site: str) -> np.ndarray:
        """Return the gradient's norm in each layer, over all tokens. # (layer,)"""
        return np.linalg.norm(getattr(self, site), axis=1)

    def smallest(self, site: str) -> tuple[int, float]:
        """Return in which layer the gradient is smallest, and its share of the largest layer's."""
        norms = self.by_layer(site)
        place = int(np.nan_to_num(norms, nan=np.inf).argmin())
        return place, float(norms[place] / (np.nan_to_num(norms).max() or 1.0))

    def outcome(self, site: str) -> str:
        """Tell if the gradient "dies" in a layer (a thousandth of the largest), "shrinks" (a tenth), or "flows"."""
        share = self.smallest(site)[1]
        return "dies" if share < DEAD else "shrinks" if share < SMALL else "flows"


@dataclass(frozen=True, eq=False)
class DyingGradients:
    """Profiles of models that differ in one thing.

    Args:
        tokens: labels of the positions.
        trained: whether they have the trained weights; else random ones, the same seed for each.
    """

    profiles: tuple[GradientProfile, ...]
    tokens: tuple[str, ...]
    trained: bool


def dying_gradients(
    *, prompt: Prompt, answer: int | str | None, cause: Cause, n_layers: int, seed: int
) -> DyingGradients:
    """Backpropagate the loss of a text through models that differ in one thing.

    Args:
        prompt: to a Transformer that answers.
        answer: as of lesson.
        cause: "orders": untrained models, pre- and post-norm, with and without residual connections; "softmax": the
            trained one, its scores multiplied by TIMES; "relu": the trained one with ReLU, what that reads moved down
            by SHIFTS deviations.
        n_layers: of the untrained models, from 2 to 24.
        seed: of their weights.

    Raises:
        ValueError: as lesson, the model is no Transformer, or cannot have another norm order.
    """
    require_choice("cause", cause, CAUSES)
    require_range("n_layers", n_layers, 2, MOST_LAYERS)
    bundle = prompt.bundle
    if not isinstance(bundle.config, ModelConfig):
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}; gradients by layer need a Transformer")
    if cause == "relu":
        bundle.must_be_dense()
    cases = lesson(prompt=prompt, answer=answer)
    model = learner(bundle.model, weights_of(bundle.model))
    stack, found = bundle.reader.stack, []

    def measure(
        name: str, model: nn.Module, layers: int, edits: Mapping[str, Edit], then: Mapping[str, Edit] = NOTHING
    ) -> None:
        found.append(_profile(name, model, cases, f"{stack}.", layers, edits, then))

    own = bundle.config.n_layers
    if cause == "orders":
        for name in counted(ORDERS):
            measure(name, _untrained(bundle.kind, bundle.config, name, n_layers, seed), n_layers, {})
    elif cause == "softmax":
        for times in counted(TIMES):
            measure(str(times), model, own, {"*attention.scores": _times(float(times))})
    else:
        for shift in counted(SHIFTS):
            relu = other_activation("relu", gated=bundle.config.gated)
            measure(str(shift), model, own, {"*.feed_forward.pre_activation": _down(float(shift))}, relu)
    return DyingGradients(tuple(found), cases.labels[stack], cause != "orders")


def _untrained(kind: str, config: ModelConfig, name: str, n_layers: int, seed: int) -> nn.Module:
    order, _, alone = name.partition("_")
    changed = replace(
        config,
        norm_order=order,  # type: ignore[arg-type]
        residual=not alone,
        n_layers=n_layers,
        dropout=0.0,
        windows=(),
    )
    with torch.random.fork_rng([]):
        model = MODELS[kind](changed)
    initialize(model, torch.Generator().manual_seed(seed))
    return model.eval()


def _times(factor: float) -> Edit:
    return lambda scores: scores * factor


def _down(deviations: float) -> Edit:
    return lambda read: read - deviations * read.detach().std()


def _keeping(into: dict[str, Tensor], name: str) -> Callable[[Tensor], Tensor]:
    def keep(tensor: Tensor) -> Tensor:
        into[name] = tensor
        return tensor

    return keep


def _profile(
    name: str,
    model: nn.Module,
    cases: Cases,
    stack: str,
    n_layers: int,
    edits: Mapping[str, Edit],
    then: Mapping[str, Edit],
) -> GradientProfile:
    """Return the profile of one model, whose tensors are watched between some edits and others."""
    kept: dict[str, Tensor] = {}
    names = {site: [f"{stack}layer{layer}.{rest}" for layer in range(n_layers)] for site, rest in SITES.items()}
    weights = [f"{stack}layer{layer}.self_attention.weights" for layer in range(n_layers)]
    watched = {one: _keeping(kept, one) for one in (*(one for row in names.values() for one in row), *weights)}
    with torch.inference_mode(False), torch.enable_grad():
        inputs = tuple(ids.clone() for ids in cases.inputs)
        loss = loss_of(cases, model(*inputs, probe=Probe((), edits={**edits, **watched, **then})))
        slopes = dict(zip(kept, torch.autograd.grad(loss, list(kept.values()), allow_unused=True), strict=True))
    n_tokens = cases.inputs[0].shape[1]

    def norms(site: str) -> np.ndarray:
        rows = [_by_token(slopes.get(one), kept.get(one), n_tokens) for one in names[site]]
        return np.stack(rows)

    read = [kept[one].detach() for one in names["pre_activation"] if one in kept]
    rows = [kept[one].detach().amax(-1).flatten() for one in weights if one in kept]
    return GradientProfile(
        name=name,
        residual=norms("residual"),
        scores=norms("scores"),
        pre_activation=norms("pre_activation"),
        loss=float(loss.detach()),
        saturated=float((torch.cat(rows) > GREATEST_WEIGHT).float().mean()) if rows else float("nan"),
        dead=float(torch.stack([(one <= 0).all(dim=1).float().mean() for one in read]).mean()) if read else 0.0,
    )


def _by_token(slope: Tensor | None, tensor: Tensor | None, n_tokens: int) -> np.ndarray:
    """Return the norm of a gradient at each token: 0 where nothing flows, NaN where there is no such tensor."""
    if tensor is None:
        return np.full(n_tokens, np.nan)
    if slope is None:
        return np.zeros(n_tokens)
    by_token = slope[0].transpose(0, 1) if slope.dim() == 4 else slope[0]  # (query_pos, head, key_pos), or (pos, width)
    return by_token.double().flatten(1).norm(dim=1).cpu().numpy()
