"""A family: how one architecture of theirs is recognised, configured, and mapped to our parameters, name by name."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torch import Tensor

from transformer_core.config import ModelConfig
from transformer_core.untrusted.config_json import ConfigJson
from transformer_core.untrusted.tensors import Shape


@dataclass(frozen=True)
class Origin:
    """One of their tensors, or a part of it.

    Args:
        name: of theirs, without the backbone's prefix.
        transposed: theirs is (in, out), as GPT-2's are, and ours (out, in).
        part, parts: of so many equal parts along our first axis, which one; GPT-2 fuses query, key and value.
        skip, after: rows of theirs before and after; RoBERTa's table has the positions behind the padding token's.
        added: name of a tensor whose only row is added to every row: a segment that all tokens share.
        flat: theirs has one axis more, of size 1.
        groups: theirs has so many groups of rows, each cut into `parts`; GPT-NeoX fuses query, key and value by head.
        plus: added to every number; Gemma stores its norms' weights less 1.
    """

    name: str
    transposed: bool = False
    part: int = 0
    parts: int = 1
    skip: int = 0
    after: int = 0
    added: str | None = None
    flat: bool = False
    groups: int = 1
    plus: float = 0.0

    def whole(self, ours: Shape) -> Shape:
        """Return the shape that theirs must have for ours to be this."""
        if self.flat:
            return (1, *ours)
        turned = (ours[0] * self.parts + self.skip + self.after, *ours[1:])
        return turned[::-1] if self.transposed else turned

    def take(self, theirs: Tensor, added: Tensor | None = None) -> Tensor:
        """Return our tensor from theirs."""
        if self.flat:
            return theirs[0]
        whole = theirs.T if self.transposed else theirs
        turned = whole[self.skip : len(whole) - self.after]
        grouped = turned.unflatten(0, (self.groups, self.parts, -1))
        taken = grouped[:, self.part].flatten(0, 1)
        if self.plus:
            taken = taken + self.plus
        return taken if added is None else taken + added


Origins = dict[str, Origin]


def both(pairs: Mapping[str, str], *, transposed: bool = False) -> Origins:
    """Return weight and bias of each pair of modules, ours to theirs; `transposed` turns the weights."""
    found = {f"{ours}.weight": Origin(f"{theirs}.weight", transposed) for ours, theirs in pairs.items()}
    return found | {f"{ours}.bias": Origin(f"{theirs}.bias") for ours, theirs in pairs.items()}


def weights(pairs: Mapping[str, str], *, plus: float = 0.0) -> Origins:
    """Return the weight of each pair of modules, ours to theirs, which have no bias."""
    return {f"{ours}.weight": Origin(f"{theirs}.weight", plus=plus) for ours, theirs in pairs.items()}


def per_layer(origins: Origins, n_layers: int, ours: str, theirs: str) -> Origins:
    """Repeat the origins of one layer for all; `{n}` in both prefixes is the layer's number."""
    return {
        f"{ours.format(n=n)}.{name}": replace(origin, name=f"{theirs.format(n=n)}.{origin.name}")
        for n in range(n_layers)
        for name, origin in origins.items()
    }


def names_of(origins: Iterable[Origin]) -> set[str]:
    """Return every tensor of theirs that is read."""
    origins = list(origins)
    return {origin.name for origin in origins} | {origin.added for origin in origins if origin.added}


Shapes = Mapping[str, Shape]
POSITION_IDS = r"embeddings\.position_ids"


@dataclass(frozen=True)
class Family:
    """One model_type.

    Args:
        prefix: what the backbone's tensors begin with in a checkpoint that has a head.
        backbone: how a backbone's tensor begins without it; one that we do not know changes what is computed.
        kinds: our kind of each architecture of theirs; the first is used where config.json names none.
        configure: the arguments of ModelConfig, from config.json, our kind and the shapes in the file.
        origins: where each of our parameters comes from.
        word_matrix: the embedding of tokens.
        head_matrix: of scores for words, which is tied to word_matrix unless the file has another.
        buffers: tensors that are not weights, and may be there or not.
        aliases: their other names for what they tie together.
        vocabulary: the files that hold a vocabulary where there is no tokenizer.json; none where only that is read.
        heads: by architecture, how tensors of its head begin, and what they are called in the one that origins knows.
        labels: by architecture, names of its classes where config.json has no need to name them.
    """

    model_type: str
    prefix: str
    backbone: tuple[str, ...]
    kinds: Mapping[str, str]
    configure: Callable[[ConfigJson, str, Shapes], dict[str, Any]]
    origins: Callable[[ModelConfig, str], Origins]
    word_matrix: str
    head_matrix: str
    buffers: re.Pattern[str]
    aliases: Mapping[str, str]
    vocabulary: tuple[str, ...]
    heads: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
