"""Changes: what one may do to a model while it reads, as edits of its probe, or to a copy of its weights.

Heads off, to zero: Michel et al. 2019, section 2.3; to their mean (mean ablation): Wang et al. 2023, section 2.2; to
what they write for another text (resampling ablation): Chan et al. 2022, section 2.
Activation patching: Vig et al. 2020, section 3; Meng et al. 2022, section 2.1. Activation steering: Turner et al. 2023.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, get_type_hints
from zlib import crc32

import torch
from torch import Tensor, nn

from transformer_core.analysis.lab.cases import Cases, by_position, donor_of, position_pairs, run
from transformer_core.analysis.lab.directions import Direction, direction_of, stack_at, stream_norm
from transformer_core.analysis.lab.heads_off import LabAblation, attentions, heads_off, scopes_of
from transformer_core.analysis.lab.weights import LARGEST, Block, WeightEdit, damaged, size_of
from transformer_core.bundle import Bundle
from transformer_core.config import require_index
from transformer_core.probe import Edit
from transformer_core.prompt import Prompt
from transformer_core.sites import site_of

Code = tuple[object, ...]
EVERYWHERE = -1
ALL_HEADS = -1
MOST_CHANGES = 5_000
MOST_MISSES = 200  # draws one after the other that bring nothing new, until there are no more


def streams(bundle: Bundle) -> dict[str, tuple[str, ...]]:
    """Return the sites of the residual stream between layers, first layer first, by stack; of a recurrent model, the
    hidden states of the layer that reads from left to right.
    """
    if bundle.kind == "lm":
        return {"recurrent": ("recurrent.hidden",)}
    if bundle.kind == "seq2seq":
        return {"encoder": ("encoder.annotations",), "decoder": ("decoder.hidden",)}
    layers = range(bundle.config.n_layers)
    stacks = ("encoder", "decoder") if bundle.kind == "translation" else tuple(attentions(bundle))
    return {stack: tuple(f"{stack}.layer{layer}.residual" for layer in layers) for stack in stacks}


def patched_sites(bundle: Bundle) -> tuple[str, ...]:
    """Return every site that activations are patched at."""
    found = [site for sites in streams(bundle).values() for site in sites]
    for scope in scopes_of(bundle):
        layer, _, kind = scope.rpartition(".")
        found += [f"{scope}.output", f"{scope}.heads"]
        found += [f"{layer}.feed_forward.output"] if kind == "self_attention" else []
    return tuple(found)


@dataclass(frozen=True)
class HeadOff:
    """One head switched off.

    Args:
        scope: of its attention, such as ``encoder.layer0.self_attention``.
        head: from 0.
        how: "zero", "mean" for its mean mixture over built-in texts, or "resample" for that of one of them.
        draw: which of drawn_texts, to resample from.
    """

    scope: str
    head: int
    how: LabAblation = "zero"
    draw: int = 0

    def site(self) -> str:
        """Return the site that is edited."""
        return f"{self.scope}.heads"

    def edit(self, cases: Cases) -> Edit:
        """Return the edit of (batch, head, query_pos, d_head)."""
        bundle = cases.bundle
        if self.scope not in scopes_of(bundle):
            raise ValueError(f"scope={self.scope!r} is no attention of bundle={bundle.name!r}")
        require_index("head", self.head, bundle.config.n_heads)
        off = torch.arange(bundle.config.n_heads) == self.head
        return heads_off(bundle, self.scope, off, self.how, self.draw)


@dataclass(frozen=True)
class Patch:
    """One activation taken from another text, and put where this one's stands.

    Args:
        at: the site, such as ``encoder.layer1.residual``, or ``….heads``.
        other: the text that it is taken from.
        position, from_position: in this text, and in the other one; EVERYWHERE for all aligned positions.
        head: of ``….heads``, else ALL_HEADS.
    """

    at: str
    other: str
    position: int = EVERYWHERE
    from_position: int = EVERYWHERE
    head: int = ALL_HEADS

    def site(self) -> str:
        """Return the site that is edited."""
        return self.at

    def prompt(self, bundle: Bundle) -> Prompt:
        """Return the other text as a model reads it."""
        return Prompt(bundle, self.other, bundle.config.max_len)

    def edit(self, cases: Cases) -> Edit:
        """Return the edit of (batch, ..., pos, width)."""
        stack = stack_at(self.at)
        if self.at not in patched_sites(cases.bundle):
            raise ValueError(f"at={self.at!r} is no place of bundle={cases.bundle.name!r} that is patched")
        n_heads = cases.bundle.config.n_heads if self.at.endswith(".heads") else 0
        if not ALL_HEADS <= self.head < n_heads:
            raise ValueError(f"head={self.head} must be from 0 to {n_heads - 1} at {self.at}, or {ALL_HEADS} for all")
        donor = donor_of(cases, self.prompt(cases.bundle))
        taken = run(donor, sites=(self.at,))[1][self.at][0]  # (..., pos, width)
        pairs = [(self.position, self.from_position)]
        if self.position == EVERYWHERE:
            pairs = position_pairs(cases, donor, stack)
        if not pairs:
            raise ValueError(f"other={self.other!r:.60} has no token that could be paired with one of the text")
        for here, there in pairs:
            for name, place, there_are in (
                ("position", here, len(cases.labels[stack])),
                ("from_position", there, taken.shape[-2]),
            ):
                require_index(name, place, there_are)
        rows = torch.tensor([here for here, _ in pairs], device=taken.device)
        values = taken[..., [there for _, there in pairs], :]  # (..., pair, width)

        def patch(tensor: Tensor, here: range) -> None:
            inside = (rows >= here.start) & (rows < here.stop)
            if self.head == ALL_HEADS:
                tensor[..., rows[inside] - here.start, :] = values[..., inside, :]
            else:
                tensor[:, self.head, rows[inside] - here.start] = values[self.head, inside]

        return by_position(patch)


@dataclass(frozen=True)
class Steer:
    """A direction added to the stream.

    Args:
        at: a site of `streams`.
        strength: length of what is added, in mean lengths of the stream there; negative for the opposite direction.
        direction: which one.
        position: where; EVERYWHERE for all.
    """

    at: str
    strength: float
    direction: Direction
    position: int = EVERYWHERE

    def site(self) -> str:
        """Return the site that is edited."""
        return self.at

    def edit(self, cases: Cases) -> Edit:
        """Return the edit of (batch, pos, d_model)."""
        bundle = cases.bundle
        if self.at not in [site for sites in streams(bundle).values() for site in sites]:
            raise ValueError(f"at={self.at!r} is no site of the stream of bundle={bundle.name!r}")
        added = direction_of(bundle, self.at, self.direction) * (self.strength * stream_norm(bundle, self.at))
        if self.position == EVERYWHERE:
            return lambda stream: stream + added
        require_index("position", self.position, len(cases.labels[stack_at(self.at)]))

        def steer(stream: Tensor, here: range) -> None:
            if self.position in here:
                stream[..., self.position - here.start, :] += added

        return by_position(steer)


Change = HeadOff | Patch | Steer | WeightEdit
KINDS: dict[str, type] = {"head": HeadOff, "patch": Patch, "steer": Steer, "weights": WeightEdit}


def code_of(change: Change) -> Code:
    """Return a change as a tuple of its kind and its values, as links, logs and scripts have it."""
    kind = next(kind for kind, found in KINDS.items() if type(change) is found)
    return (kind, *astuple(change))


def change_of(code: Sequence[object]) -> Change:
    """Return the change that code_of wrote.

    Raises:
        ValueError: it is no such code.
    """
    kind, *values = code if isinstance(code, list | tuple) and code else ("",)
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"change={kind!r:.60} must be one of {', '.join(KINDS)}")
    try:
        if kind == "steer":
            values[2] = Direction(*values[2])  # type: ignore[misc]
        if kind == "weights" and len(values) > 4:
            values[4] = tuple((float(value), tuple(map(_block, blocks))) for value, blocks in values[4])  # type: ignore[union-attr]
        change = KINDS[kind](*values)  # type: ignore[arg-type]
        _require_forms(change)
        return change
    except (TypeError, IndexError, OverflowError) as error:
        raise ValueError(f"change={list(code)!r:.200} does not fit {kind!r}: {error}") from error


def _block(given: Sequence[Any]) -> Block:
    row, col, height, width = map(int, given)
    return row, col, height, width


def _require_forms(values: Any) -> None:
    """Raise ValueError unless each value has the form that its field is declared with; codes come from links."""
    for name, form in get_type_hints(type(values)).items():
        value = getattr(values, name)
        if isinstance(value, Direction):
            _require_forms(value)
        elif form is int and (type(value) is not int or not -(2**63) <= value < 2**63):
            raise ValueError(f"{name}={value!r:.60} must be a whole number of at most 64 bits")
        elif form is float and (type(value) not in (int, float) or not abs(value) <= LARGEST):
            raise ValueError(f"{name}={value!r:.60} must be a number of at most {LARGEST:g}, whatever its sign")
        elif form is str and not isinstance(value, str):
            raise ValueError(f"{name}={value!r:.60} must be a text")


def changes_of(codes: Sequence[Sequence[object]]) -> tuple[Change, ...]:
    """Return several changes.

    Raises:
        ValueError: one is no change, or there are too many.
    """
    if len(codes) > MOST_CHANGES:
        raise ValueError(f"changes has {len(codes)} entries; at most {MOST_CHANGES} are made at once")
    return tuple(change_of(code) for code in codes)


def edits_of(changes: Sequence[Change], cases: Cases) -> dict[str, Edit]:
    """Return the edits of one pass over cases; those of one site are made one after the other."""
    found: dict[str, list[Edit]] = {}
    for change in changes:
        if not isinstance(change, WeightEdit):
            found.setdefault(change.site(), []).append(change.edit(cases))
    return {site: _chained(edits) for site, edits in found.items()}


def edits_of_each(many: Sequence[Sequence[Change]], cases: Cases) -> dict[str, Edit]:
    """Return the edits of one pass over as many copies of a text as there are sets of changes, one for each copy."""
    found: dict[str, list[tuple[int, Edit]]] = {}
    for copy, changes in enumerate(many):
        for site, edit in edits_of(changes, cases).items():
            found.setdefault(site, []).append((copy, edit))

    def of_each(edits: Sequence[tuple[int, Edit]]) -> Edit:
        def edit(tensor: Tensor) -> Tensor:
            for copy, one in edits:
                tensor[copy : copy + 1] = one(tensor[copy : copy + 1])
            return tensor

        return edit

    return {site: of_each(edits) for site, edits in found.items()}


def _chained(edits: Sequence[Edit]) -> Edit:
    def edit(tensor: Tensor) -> Tensor:
        for one in edits:
            tensor = one(tensor)
        return tensor

    return edit


def model_with(changes: Sequence[Change], bundle: Bundle) -> nn.Module:
    """Return the bundle's model, or a copy where a change is one of weights."""
    return damaged(bundle.model, tuple(change for change in changes if isinstance(change, WeightEdit)))


def random_like(changes: Sequence[Change], cases: Cases, count: int, seed: int = 0) -> list[tuple[Change, ...]]:
    """Draw changes of equal size at random: as many other heads of the same kinds of attention; a direction of the same
    length; an activation of the same kind at another place; noise of the same norm in the same matrix.

    No two are the same and none is what is compared with them; what is drawn depends on that, so that two tests are not
    compared with the same draws. Only where more than half of the heads of a kind are off are some of them drawn, too.

    Args:
        count: how many to draw; there are fewer where that many are not to be had, and none where there is no other.
    """
    model = model_with(changes, cases.bundle)
    sizes = {} if model is cases.bundle.model else size_of(cases.bundle.model, model)
    codes = sorted(repr(code_of(change)) for change in changes)
    generator = torch.Generator().manual_seed(crc32(repr((seed, codes)).encode()))
    off = [change for change in changes if isinstance(change, HeadOff)]
    patches = [_other_places(change, cases) for change in changes if isinstance(change, Patch)]
    drawn: dict[frozenset[Change], tuple[Change, ...]] = {}
    misses = 0
    while len(drawn) < count and misses < MOST_MISSES:
        one = (
            *(WeightEdit(name, "random", size, seed=_number(generator)) for name, size in sizes.items()),
            *_other_heads(off, cases.bundle, generator),
            *(
                replace(change, direction=Direction("random", index=_number(generator)))
                for change in changes
                if isinstance(change, Steer)
            ),
            *(places[_number(generator, len(places))] for places in patches),
        )
        same = frozenset(one) == frozenset(changes) or frozenset(one) in drawn
        misses = misses + 1 if same else 0
        if not same:
            drawn[frozenset(one)] = one
    return list(drawn.values())


def _number(generator: torch.Generator, below: int = 2**31 - 1) -> int:
    return int(torch.randint(below, (), generator=generator))


def _other_heads(off: Sequence[HeadOff], bundle: Bundle, generator: torch.Generator) -> list[HeadOff]:
    """Draw as many heads of each kind of attention as are off there: others as long as there are such."""
    drawn: list[HeadOff] = []
    for scopes in attentions(bundle).values():
        ours = {(change.scope, change.head): change for change in off if change.scope in scopes}
        all_heads = [(scope, head) for scope in scopes for head in range(bundle.config.n_heads)]
        order = [all_heads[place] for place in torch.randperm(len(all_heads), generator=generator)]
        order.sort(key=lambda head: head in ours)
        drawn += [
            replace(one, scope=scope, head=head) for (scope, head), one in zip(order, ours.values(), strict=False)
        ]
    return drawn


def _other_places(change: Patch, cases: Cases) -> list[Patch]:
    """Return the activations of the same kind at other places, by layer and head or layer and position."""
    stack, config = stack_at(change.at), cases.bundle.config
    layers = [change.at]
    if ".layer" in change.at:
        leaf = change.at.split(".", 2)[-1]
        layers = [f"{stack}.layer{layer}.{leaf}" for layer in range(config.n_layers)]
    places = [(change.position, change.from_position)]
    if change.head == ALL_HEADS and change.position != EVERYWHERE:
        places = position_pairs(cases, donor_of(cases, change.prompt(cases.bundle)), stack) or places
    heads = [change.head] if change.head == ALL_HEADS else list(range(config.n_heads))
    others = [
        replace(change, at=at, position=here, from_position=there, head=head)
        for at in layers
        for here, there in places
        for head in heads
    ]
    return [other for other in others if other != change] or [change]


def lens_names(changes: Sequence[Change], bundle: Bundle) -> list[str]:
    """Return what TransformerLens calls the places that changes touch, such as ``blocks.1.attn.hook_z``.

    A place that it has no name for keeps ours; of a model of two stacks, only the decoder's are its blocks.
    """
    found = []
    for change in changes:
        if isinstance(change, WeightEdit):
            found.append(change.parameter)
            continue
        site = change.site()
        parts = site.split(".")
        names = site_of(site).lens_name.split(", ")
        name = names[-1] if "feed_forward" in site else names[0]
        layer = next((part.removeprefix("layer") for part in parts if part.startswith("layer")), "")
        theirs = bundle.kind != "translation" and name and layer
        found.append(name.format(layer=layer) if theirs else site)
    return list(dict.fromkeys(found))
