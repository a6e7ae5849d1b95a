"""Directions in the residual stream: from two texts or two lists of them, from a neuron, from the output's matrix.

Turner et al. 2023, section 3 (two texts); Rimsky et al. 2024, section 3 (means of two sets); neurons: Geva et al. 2021,
section 2; the output's rows as directions: nostalgebraist 2020, the logit lens.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from transformer_core.analysis.lab.cases import Cases, batches, per_model, run, text_cases
from transformer_core.analysis.lab.text_sets import class_texts, measured_cases
from transformer_core.bundle import Bundle

Source = Literal["texts", "classes", "neuron", "lens", "random"]
FEW = 16  # texts, for a mean length
MOST_LINES = 200  # of a list
SOURCES: tuple[Source, ...] = get_args(Source)


def lines_of(text: str) -> tuple[str, ...]:
    """Return the lines of a text that have anything in them."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())


@dataclass(frozen=True)
class Direction:
    """A direction in the stream at one place of a model.

    Args:
        source: "texts": the mean over positions of the first text's stream minus the second's, where a text of
            several lines is a list of texts that count the same; "classes": the mean over built-in positive reviews
            minus that over negative ones; "neuron": what neuron `index` of the
            feed-forward layer adds to the stream; "lens": the row of the output's matrix for the class or token
            `index`, less that for `other` unless it is -1; "random": normal numbers, `index` being their seed.
        first, second: texts, or lists of at most MOST_LINES, one a line.
        index, other: numbers.
    """

    source: Source
    first: str = ""
    second: str = ""
    index: int = 0
    other: int = -1

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise ValueError(f"source={self.source!r} must be one of {', '.join(SOURCES)}")
        if self.source == "texts" and not (self.first.strip() and self.second.strip()):
            raise ValueError("first and second must both be texts, for their difference")
        for name, text in (("first", self.first), ("second", self.second)):
            if len(lines_of(text)) > MOST_LINES:
                raise ValueError(f"{name} has {len(lines_of(text))} lines; at most {MOST_LINES} are read")


def mean_stream(cases: Cases, site: str, stack: str) -> Tensor:
    """Return the mean of a site over all positions that are not padding, each text counting the same. # (d_model,)"""
    parts = []
    for part in batches(cases):
        stream = run(part, sites=(site,))[1][site].cpu().double()  # (text, pos, d_model)
        real = part.real(stack, stream.shape[1]).cpu()[..., None]
        parts.append((stream * real).sum(1) / real.sum(1))
    return torch.cat(parts).mean(0)


@per_model
def direction_of(bundle: Bundle, site: str, direction: Direction) -> Tensor:
    """Return a direction of length 1 at a site, in float32. # (d_model,)

    Args:
        site: of the residual stream, such as ``encoder.layer1.residual``.

    Raises:
        ValueError: the model has no such neuron, class or token; or the direction is 0.
    """
    found = _FIND[direction.source](bundle, site, direction).cpu().double()
    length = found.norm()
    if not length > 0:
        raise ValueError(f"direction={direction.source!r} is 0 at {site}: both ends are the same there")
    return (found / length).float().to(bundle.device)


def stack_at(site: str) -> str:
    """Return the stack that a site belongs to: the first part of its name."""
    return site.partition(".")[0]


def _between_texts(bundle: Bundle, site: str, direction: Direction) -> Tensor:
    first, second = (text_cases(bundle, lines_of(text)) for text in (direction.first, direction.second))
    return mean_stream(first, site, stack_at(site)) - mean_stream(second, site, stack_at(site))


def _between_classes(bundle: Bundle, site: str, direction: Direction) -> Tensor:
    positive, negative = (text_cases(bundle, class_texts(bundle, label)) for label in (1, 0))
    return mean_stream(positive, site, stack_at(site)) - mean_stream(negative, site, stack_at(site))


def _of_neuron(bundle: Bundle, site: str, direction: Direction) -> Tensor:
    stack, layer = site.split(".")[:2]
    name = f"{stack}.stack.layers.{layer.removeprefix('layer')}.feed_forward.outer_proj.weight"
    weights = dict(bundle.model.named_parameters(remove_duplicate=False))
    if name not in weights:
        raise ValueError(f"source='neuron' needs one feed-forward layer at {site}; this model has none, or a mixture")
    columns = weights[name].detach()  # (d_model, d_ff)
    if not 0 <= direction.index < columns.shape[1]:
        raise ValueError(f"index={direction.index} must be a neuron from 0 to {columns.shape[1] - 1}")
    return columns[:, direction.index]


def has_output_rows(bundle: Bundle) -> bool:
    """Return whether the output's rows are as wide as the stream: not behind a readout, nor narrower (ELECTRA)."""
    return bundle.kind != "seq2seq" and (bundle.kind != "bert" or bundle.config.embedding_width is None)


def output_rows(bundle: Bundle) -> Tensor:
    """Return the matrix whose rows score the classes, or the tokens. # (outcome, d_model)"""
    model: Any = bundle.model
    if not has_output_rows(bundle):
        raise ValueError(
            f"source='lens' needs a stream that the output reads; bundle={bundle.name!r} has a readout between"
        )
    if bundle.kind == "classifier":
        return model.class_proj.weight.detach()
    if bundle.kind == "bert":
        return model.mlm_head.output.proj.weight.detach()
    output = model.output
    return (output.proj if hasattr(output, "proj") else output).weight.detach()


def _by_lens(bundle: Bundle, site: str, direction: Direction) -> Tensor:
    rows = output_rows(bundle)
    for name, index in (("index", direction.index), ("other", direction.other)):
        if not (0 <= index < len(rows) or (name == "other" and index == -1)):
            raise ValueError(f"{name}={index} must be a class or token from 0 to {len(rows) - 1}")
    return rows[direction.index] - (0 if direction.other == -1 else rows[direction.other])


def _at_random(bundle: Bundle, site: str, direction: Direction) -> Tensor:
    generator = torch.Generator().manual_seed(direction.index)
    weight = next(bundle.model.parameters())
    width = run(text_cases(bundle, ("a",)), sites=(site,))[1][site].shape[-1]
    return torch.randn(width, generator=generator).to(weight)


_FIND: dict[str, Callable[[Bundle, str, Direction], Tensor]] = {
    "texts": _between_texts,
    "classes": _between_classes,
    "neuron": _of_neuron,
    "lens": _by_lens,
    "random": _at_random,
}


@per_model
def stream_norm(bundle: Bundle, site: str, seed: int = 0) -> float:
    """Return the mean length of the stream's vectors at a site over built-in texts: a scale for strengths."""
    lengths, count = 0.0, 0
    for part in batches(measured_cases(bundle, FEW, seed)):
        stream = run(part, sites=(site,))[1][site].cpu().double()  # (text, pos, d_model)
        real = part.real(stack_at(site), stream.shape[1]).cpu()
        lengths += float(stream.norm(dim=-1)[real].sum())
        count += int(real.sum())
    return lengths / count
