"""The toy batch of tutorials: fixed ids through a small Transformer, with every shape, mask and weight to look at.

Ids, sizes and conventions are those of a widely copied listing: vocabulary of 5, 4 layers, 8 heads of 64, d_model 128,
d_ff 256, post-norm, GELU by tanh, an output matrix of its own; what other conventions change is measured.
Vaswani et al. 2017, section 3.1.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from transformer_core.config import ModelConfig, require_choice, require_index
from transformer_core.layers.masks import causal_mask, combined_mask, padding_mask
from transformer_core.models import Translation
from transformer_core.probe import capture
from transformer_core.progress import counted
from transformer_core.trace import Trace

Source = Literal["listing", "random", "ones", "padded", "all_padding"]
Convention = Literal["listing", "pre_norm", "exact_gelu", "tied_output", "ours"]
CONFIG = ModelConfig(
    vocab_size=5,
    d_model=128,
    d_ff=256,
    n_heads=8,
    d_head=64,
    n_layers=4,
    max_len=16,
    pad_id=0,
    norm_order="post",
    activation="gelu_tanh",
    tied_output=False,
)
CHANGES: dict[Convention, dict[str, Any]] = {
    "listing": {},
    "pre_norm": {"norm_order": "pre"},
    "exact_gelu": {"activation": "gelu"},
    "tied_output": {"tied_output": True},
}
CHANGES["ours"] = {name: value for change in CHANGES.values() for name, value in change.items()}
SENTENCES, LENGTH = 4, 6
SOURCE = (1, 3, 4, 1, 2, 3)
TARGETS = ((1, 0, 0, 0, 0, 0), (1, 3, 0, 0, 0, 0), (1, 3, 4, 0, 0, 0), (1, 3, 4, 1, 0, 0))
LARGE = -1e9
KINDS = ("encoder.self_attention", "decoder.self_attention", "decoder.cross_attention")


@dataclass(frozen=True, eq=False)
class Attended:
    """One head of one attention for one sentence.

    Shapes:
        mask: (query_pos, key_pos), True = may attend; weights, filled: (query_pos, key_pos)

    Args:
        filled: what the same scores give where hidden ones become -1e9, as is often printed.
        on_hidden, filled_on_hidden: the greatest weight on a key that is hidden, in `weights` and in `filled`.
        empty_rows: queries with nothing to attend to.
    """

    mask: np.ndarray
    weights: np.ndarray
    filled: np.ndarray
    on_hidden: float
    filled_on_hidden: float
    empty_rows: int


@dataclass(frozen=True, eq=False)
class ToyBatch:
    """The batch, its logits, all that the pass recorded by name and shape, and three attentions of one sentence.

    Shapes:
        source_ids, target_ids: (batch, pos); logits: (batch, pos, vocab); least, greatest: (tensor,)

    Args:
        first_difference: how far the logits of the targets' first position are apart between sentences, at most.
        names, shapes: of every tensor, in the order computed.
        least, greatest: of the finite values of each.
        finite: whether each tensor has finite values alone; masked scores need not.
        encoder_self, decoder_self, cross: the three attentions.
        row_sums: how far the sum of a row of weights that may attend is from 1, at most, over the whole batch.
        parameters: how many numbers the model has.
    """

    source_ids: np.ndarray
    target_ids: np.ndarray
    logits: np.ndarray
    first_difference: float
    names: tuple[str, ...]
    shapes: tuple[str, ...]
    least: np.ndarray
    greatest: np.ndarray
    finite: tuple[bool, ...]
    encoder_self: Attended
    decoder_self: Attended
    cross: Attended
    row_sums: float
    parameters: int


@dataclass(frozen=True, eq=False)
class ConventionChanges:
    """What the listing's model becomes where a convention of it is changed, the weights that both have being the same.

    Shapes:
        parameters, logits_moved, likeliest_moved: (convention,)

    Args:
        conventions: the listing first, then each single change, then all of them together.
        parameters: how many numbers the model has.
        logits_moved: the greatest difference of a logit from the listing's.
        likeliest_moved: share of the positions with a real word where another word is likeliest.
    """

    conventions: tuple[Convention, ...]
    parameters: np.ndarray
    logits_moved: np.ndarray
    likeliest_moved: np.ndarray


@lru_cache(maxsize=8)
def toy_model(seed: int, convention: Convention = "listing") -> Translation:
    """Return the listing's model, or one with other conventions, with seeded, untrained weights.

    The same seed gives the same weights under all conventions, but for an output matrix that is tied.

    Raises:
        ValueError: there is no such convention.
    """
    require_choice("convention", convention, get_args(Convention))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Translation(replace(CONFIG, **CHANGES[convention])).eval().requires_grad_(False)


def toy_source(source: Source, seed: int) -> Tensor:
    """Return the source ids.

    Shapes:
        returns: (batch, pos)

    Args:
        source: "listing" is one sentence four times; "random" draws each id from 1 to 4; "ones" is 1 everywhere;
            "padded" draws, and ends each sentence one token earlier than the one before; "all_padding" draws, and
            leaves nothing but padding in the last one.

    Raises:
        ValueError: source is not one of these.
    """
    require_choice("source", source, get_args(Source))
    if source == "listing":
        return torch.tensor([SOURCE] * SENTENCES)
    drawn = torch.randint(1, CONFIG.vocab_size, (SENTENCES, LENGTH), generator=torch.Generator().manual_seed(seed))
    if source == "ones":
        return torch.ones_like(drawn)
    if source == "padded":
        ends = LENGTH - torch.arange(SENTENCES)
        return drawn.masked_fill(torch.arange(LENGTH) >= ends[:, None], 0)
    if source == "all_padding":
        drawn[-1] = 0
    return drawn


def toy_batch(
    *, source: Source, seed: int, sentence: int, layer: int, head: int, convention: Convention = "listing"
) -> ToyBatch:
    """Run the batch and look at one head of each attention for one sentence.

    Args:
        seed: of the weights and of the drawn ids.
        sentence, layer, head: from 0.
        convention: what is changed of the listing's.

    Raises:
        ValueError: there is no such source, sentence, layer, head or convention.
    """
    require_index("sentence", sentence, SENTENCES)
    require_index("layer", layer, CONFIG.n_layers)
    require_index("head", head, CONFIG.n_heads)
    model, source_ids, target_ids = toy_model(seed, convention), toy_source(source, seed), torch.tensor(TARGETS)
    logits, trace = capture(model, source_ids, target_ids)
    values = [tensor[torch.isfinite(tensor)].float() for tensor in trace.values()]
    real = {"encoder": padding_mask(source_ids, 0), "decoder": padding_mask(target_ids, 0)}
    masks = (real["encoder"], combined_mask(real["decoder"], causal_mask(LENGTH)), real["encoder"])
    seen = [
        _attended(trace, kind.replace(".", f".layer{layer}.", 1), mask, sentence, head)
        for kind, mask in zip(KINDS, masks, strict=True)
    ]
    return ToyBatch(
        source_ids=source_ids.numpy(),
        target_ids=target_ids.numpy(),
        logits=logits.numpy(),
        first_difference=float((logits[:, 0] - logits[:1, 0]).abs().max()),
        names=tuple(trace),
        shapes=tuple(" × ".join(map(str, tensor.shape)) for tensor in trace.values()),
        least=np.array([float(part.min()) if part.numel() else np.nan for part in values]),
        greatest=np.array([float(part.max()) if part.numel() else np.nan for part in values]),
        finite=tuple(bool(torch.isfinite(tensor).all()) for tensor in trace.values()),
        encoder_self=seen[0],
        decoder_self=seen[1],
        cross=seen[2],
        row_sums=_off_one(trace),
        parameters=_size(model),
    )


def _size(model: Translation) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@torch.inference_mode()
def convention_changes(*, source: Source, seed: int) -> ConventionChanges:
    """Run the batch under every convention and compare its logits with the listing's.

    Args:
        seed: of the weights and of the drawn ids.

    Raises:
        ValueError: there is no such source.
    """
    source_ids, target_ids = toy_source(source, seed), torch.tensor(TARGETS)
    models = [toy_model(seed, convention) for convention in counted(tuple(CHANGES))]
    logits = torch.stack([model(source_ids, target_ids) for model in models])  # (convention, batch, pos, vocab)
    others = (logits.argmax(-1) != logits[0].argmax(-1))[:, target_ids != 0]  # (convention, word)
    return ConventionChanges(
        conventions=tuple(CHANGES),
        parameters=np.array([_size(model) for model in models]),
        logits_moved=(logits - logits[0]).abs().flatten(1).amax(1).numpy(),
        likeliest_moved=others.float().mean(1).numpy(),
    )


def _attended(trace: Trace, scope: str, mask: Tensor | None, sentence: int, head: int) -> Attended:
    weights, scores = (trace[f"{scope}.{leaf}"][sentence, head] for leaf in ("weights", "scores"))
    whole = trace[f"{scope}.weights"].shape
    every = torch.ones(1, dtype=torch.bool) if mask is None else mask
    allowed = every.broadcast_to(whole)[sentence, head]  # (query_pos, key_pos)
    filled = scores.masked_fill(~allowed, LARGE).softmax(-1)
    return Attended(
        mask=allowed.numpy(),
        weights=weights.numpy(),
        filled=filled.numpy(),
        on_hidden=float(weights.masked_fill(allowed, 0.0).max()),
        filled_on_hidden=float(filled.masked_fill(allowed, 0.0).max()),
        empty_rows=int((~allowed.any(-1)).sum()),
    )


def _off_one(trace: Trace) -> float:
    sums = [tensor.sum(-1) for name, tensor in trace.items() if name.endswith(".weights")]
    return max(float((part[part > 0] - 1).abs().max()) for part in sums)
