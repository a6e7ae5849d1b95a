"""One attention head: its steps, its weights, how widely it spreads (entropy), and the edit that switches it off.

Vaswani et al. 2017, eq. 1; entropy: Shannon 1948, for attention Clark et al. 2019, section 3.3; switching heads off:
Michel et al. 2019, section 2.3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.outcome import Prediction, read
from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig, require_choice, require_index
from transformer_core.probe import Edit
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding
from transformer_core.trace import Trace
from transformer_core.wiring import Wiring

WEIGHTS = "*.self_attention.weights"
MOST_KEPT = 64  # tokens of a text of which all sites are recorded
Ablation = Literal["zero", "mean"]  # the mean over the sentence; in the Lab over built-in texts
Over = Literal["head", "mean", "max"]


@dataclass(frozen=True, eq=False)
class HeadSteps:
    """Everything that one head computed for one sentence, in float32.

    Shapes:
        query: (query_pos, d_head); key, value: (key_pos, d_head)
        products, scores, masked_scores, weights: (query_pos, key_pos)
        mixture: (query_pos, d_head)

    Args:
        query, key, value: as they are scored and mixed; key and value may be those of several heads.
        products: query . key, recomputed here; all else is as the model computed it.
        divisor: of the dot products, sqrt(d_head) unless the model says otherwise; None where they are not its scores.
        cap: scores s became cap * tanh(s / cap); None where they did not.
        bias: (query_pos, key_pos), what a position added to the scores; None where nothing was added.
    """

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    products: np.ndarray
    scores: np.ndarray
    masked_scores: np.ndarray
    weights: np.ndarray
    mixture: np.ndarray
    divisor: float | None
    cap: float | None = None
    bias: np.ndarray | None = None


def head_steps(trace: Trace, scope: str, head: int, config: ModelConfig) -> HeadSteps:
    """Return the steps of one head of the first sentence of a batch.

    Its keys and values are those of the head of keys and values that it reads.

    Args:
        trace: with every site of the attention at `scope`.
        scope: such as ``encoder.layer0.self_attention``.
        head: from 0.
        config: the model's.

    Raises:
        ValueError: there is no such head.
    """
    require_index("head", head, config.n_heads)

    def array(site: str, place: int = head) -> np.ndarray:
        return trace[site][0, place].float().cpu().numpy()

    shared, wiring, bias = config.kv_head(head), Wiring(config), f"{scope}.position_bias"
    query, key = array(wiring.scored(scope, "query")), array(wiring.scored(scope, "key"), shared)
    return HeadSteps(
        query=query,
        key=key,
        value=array(f"{scope}.value", shared),
        products=query @ key.T,
        scores=array(f"{scope}.scores"),
        masked_scores=array(f"{scope}.masked_scores"),
        weights=array(f"{scope}.weights"),
        mixture=array(f"{scope}.heads"),
        divisor=config.score_divisor,
        cap=config.score_cap,
        bias=trace[bias][head].float().cpu().numpy() if bias in trace else None,
    )


@dataclass(frozen=True, eq=False)
class Heads:
    """The weights of every head on one text, and the steps of one of them.

    Shapes:
        weights: (layer, head, query_pos, key_pos)

    Args:
        probabilities: as in Prediction.
    """

    probabilities: np.ndarray
    weights: np.ndarray
    steps: HeadSteps


def attention_scope(bundle: Bundle, layer: int) -> str:
    """Return the full name of a layer's self-attention."""
    return bundle.reader.site(f"layer{layer}.self_attention")


def heads_of_text(*, prompt: Prompt, layer: int, head: int) -> Heads:
    """Read a text once: every head's weights, and the steps of one head.

    Args:
        prompt: to a model of a kind that reads one text.
        layer, head: the one whose steps are wanted, from 0.

    Raises:
        ValueError: there is no such layer or head, or as read.
    """
    bundle = prompt.bundle
    require_index("layer", layer, bundle.config.n_layers)
    encoding = prompt.encoding
    scope = attention_scope(bundle, layer)
    reading = read_attention(bundle, encoding, sites=(WEIGHTS, f"{scope}.*"))
    steps = head_steps(reading.trace, scope, head, bundle.config)
    return Heads(reading.probabilities, stacked_weights(reading.trace), steps)


def read_attention(bundle: Bundle, encoding: Encoding, *, sites: tuple[str, ...] = (WEIGHTS,)) -> Prediction:
    """Read a text for what self-attention does: of a short one, the same pass serves all questions (kept_passes.py).

    Args:
        bundle: of a kind that reads one text.
        sites: of self-attention, which must be recorded; others of it may be, too.

    Raises:
        ValueError: as read.
    """
    return read(bundle, encoding, sites=sites if len(encoding) > MOST_KEPT else ("*.self_attention.*",))


def stacked_weights(trace: Trace) -> np.ndarray:
    """Return the weights of every recorded self-attention for the first sentence of a batch.

    Shapes:
        returns: (layer, head, query_pos, key_pos)
    """
    return trace.stack(WEIGHTS)[:, 0].float().cpu().numpy()


@dataclass(frozen=True, eq=False)
class Looks:
    """The attention weights of one layer.

    Shapes:
        weights: (query_pos, key_pos)

    Args:
        sharpest: query and key of the greatest weight between two different tokens.
    """

    weights: np.ndarray
    sharpest: tuple[int, int]


def layer_looks(*, prompt: Prompt, layer: int, head: int, over: Over = "head") -> Looks:
    """Return the weights of one head, or of a layer's heads as one.

    Args:
        prompt: to a model of a kind that reads one text.
        layer, head: from 0.
        over: "head" for that head alone, "mean" over the layer's heads (rows still sum to 1), "max" for the greatest
            weight among them (rows may sum to more).

    Raises:
        ValueError: there is no such layer or head, over is not one of these, or as read.
    """
    weights = heads_of_text(prompt=prompt, layer=layer, head=head).weights[layer]
    if over not in ("head", "mean", "max"):
        raise ValueError(f"over={over!r} must be head, mean or max")
    looks = weights[head] if over == "head" else weights.mean(0) if over == "mean" else weights.max(0)
    others = np.where(np.eye(len(looks), dtype=bool), -1.0, looks)
    query, key = np.unravel_index(int(others.argmax()), others.shape)
    return Looks(looks, (int(query), int(key)))


def without(heads: Tensor, off: Tensor, instead: Tensor | float) -> Tensor:
    """Return the mixtures of heads, others in place of those that are off.

    Shapes:
        heads, returns: (..., head, query_pos, d_head); off: (..., head), boolean; instead: broadcast to heads
    """
    instead = torch.as_tensor(instead, dtype=heads.dtype, device=heads.device)
    return torch.where(off.to(heads.device)[..., None, None], instead, heads)


def sentence_ablation(heads: Tensor, how: Ablation) -> Tensor:
    """Return what stands in place of each head that is off: zero, or its mean over the sentence.

    The mean keeps what is the same at all positions and removes what differs between them. The Lab's mean is another
    one, over built-in texts (lab/changes.py), in which nothing of this sentence is left.

    Shapes:
        heads: (..., head, query_pos, d_head); returns: (..., head, one, d_head)

    Raises:
        ValueError: how is neither zero nor mean.
    """
    require_choice("how", how, get_args(Ablation))
    mean = heads.mean(-2, keepdim=True)
    return torch.zeros_like(mean) if how == "zero" else mean


def head_off(scope: str, head: int, how: Ablation = "zero") -> Mapping[str, Edit]:
    """Return the edit that replaces one head's mixture, by zero or by its mean over the sentence.

    It raises ValueError where the attention has no such head.
    """

    def edit(heads: Tensor) -> Tensor:
        require_index("head", head, heads.shape[-3])
        return without(heads, torch.arange(heads.shape[-3]) == head, sentence_ablation(heads, how))

    return {f"{scope}.heads": edit}


@dataclass(frozen=True, eq=False)
class Entropies:
    """How widely each head spreads its attention, in nats.

    Shapes:
        heads: (layer, head), the mean over tokens; tokens: (layer, head, query_pos)
        shares: (layer, head), the mean over tokens of the share of each token's maximum
        bounds: (query_pos,), the maximum at each token: ln of how many tokens it can look at

    Args:
        greatest: ln n, the entropy of a head that looks at all n tokens alike; padding does not count.
    """

    heads: np.ndarray
    tokens: np.ndarray
    shares: np.ndarray
    bounds: np.ndarray
    greatest: float


def entropy(weights: np.ndarray) -> np.ndarray:
    """Return -sum w ln w over the last axis, where 0 ln 0 is 0.

    Shapes:
        weights: (..., key_pos), each row summing to 1; returns: (...)
    """
    weights = np.asarray(weights, dtype=np.float64)
    return -(weights * np.log(np.where(weights > 0, weights, 1.0))).sum(-1)


def real_positions(encoding: Encoding, padding: int) -> np.ndarray:
    """Return which positions are not padding.

    Shapes:
        returns: (pos,), boolean
    """
    return np.array([token_id != padding for token_id in encoding.ids])


def head_entropies(*, prompt: Prompt) -> Entropies:
    """Measure the entropy of every head at every token of a text.

    Args:
        prompt: to a model of a kind that reads one text.

    Raises:
        ValueError: as read.
    """
    encoding = prompt.encoding
    weights = stacked_weights(read_attention(prompt.bundle, encoding).trace)
    real = real_positions(encoding, prompt.bundle.config.padding)
    tokens = entropy(weights)  # (layer, head, query_pos)
    greatest = float(np.log(max(int(real.sum()), 2)))
    keys = np.cumsum(real) if prompt.bundle.reader.causal else np.full(len(real), real.sum())  # (query_pos,)
    bounds = np.log(np.clip(keys, 2, None))
    several = real & (keys > 1) if (real & (keys > 1)).any() else real
    shares = (tokens / bounds)[..., several].mean(-1)
    return Entropies(tokens[..., real].mean(-1), tokens, shares, np.log(np.clip(keys, 1, None)), greatest)
