"""Activation patching: how much of the difference between two texts comes back with one activation of the first.

Exact, one forward pass a place: Vig et al. 2020, section 3; Meng et al. 2022, section 2.1. Approximated by one gradient
(attribution patching): Nanda 2023; Kramár et al. 2024, section 2. From head to head (path patching): Wang et al. 2023,
section 3.1; Goldowsky-Dill et al. 2023.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.encoder.two_sentences import pair_labels
from transformer_core.analysis.lab.cases import (
    Cases,
    answers_of,
    at_once,
    by_position,
    donor_of,
    one_case,
    position_pairs,
    run,
)
from transformer_core.analysis.lab.changes import streams
from transformer_core.analysis.lab.heads_off import Boards, attentions, head_boards
from transformer_core.analysis.rank_correlation import RankCorrelation, pearson, rank_correlation
from transformer_core.bundle import Bundle
from transformer_core.config import require_range
from transformer_core.probe import Edit, Probe
from transformer_core.progress import counted
from transformer_core.prompt import Prompt

PLACES = ("residual", "attention", "feed_forward")
LEAVES = {"residual": "residual", "attention": "self_attention.output", "feed_forward": "feed_forward.output"}
PARTS = ("query", "key", "value")
ROUNDING = 1e-5  # of an activation's length, within which two readings of the same words differ
LEAST_DIFFERENCE = 1e-3  # nats, below which there is nothing to share out
Place = tuple[int | Sequence[int], ...]


@dataclass(frozen=True, eq=False)
class PatchMap:
    """What comes back where one activation is taken from the first text while the second one is read.

    1 is the whole difference in ln p of the answer between the two texts; 0 is nothing; below 0 it moves away.

    Shapes:
        exact, estimate: (place, layer, pair), by a forward pass each, and by the gradient at the second text
        heads, heads_estimate: (layer, head), the head's mixtures at all aligned positions; (0, 0) without heads
        pairs: (pair, 2), positions in the first and the second text

    Args:
        first, second: ln p of the answer in the two texts, in nats.
        places: from PLACES; "residual" alone where the stack is recurrent.
        labels: one a pair, "word" or "word → other".
        changed: one a pair, whether the two tokens differ.
        unpaired: how many positions of the two texts together have no partner.
        agreement: of exact with estimate, of all maps with that of the heads, in order; correlation: of Pearson. What
            is 0 by construction counts in neither: cells whose activation is the same in both texts, or reaches no
            answer.
        passes: texts that were read for the exact map.
    """

    first: float
    second: float
    exact: np.ndarray
    estimate: np.ndarray
    heads: np.ndarray
    heads_estimate: np.ndarray
    pairs: np.ndarray
    places: tuple[str, ...]
    labels: tuple[str, ...]
    changed: tuple[bool, ...]
    unpaired: int
    agreement: RankCorrelation
    correlation: float
    passes: int


@dataclass(frozen=True, eq=False)
class HeadWays:
    """At which place a head's mixture matters, and on which ways it reaches the answer, as shares of the difference.

    Shapes:
        by_position: (head, pair), each head of the layer, its mixture at one pair taken from the first text
        ways: (part, layer, head), what each later head reads of the chosen one with one of PARTS alone

    Args:
        total: what comes back with the chosen head's mixtures at all pairs, on all ways.
        direct: what comes back on the way that no later head is on: over the stream and the feed-forward layers.
        labels: one a pair.
        passes: texts that were read.
    """

    by_position: np.ndarray
    ways: np.ndarray
    total: float
    direct: float
    labels: tuple[str, ...]
    passes: int


@dataclass(frozen=True, eq=False)
class TwoMethods:
    """Each head of a stack asked twice: what the answer loses without it, and what it brings into another text.

    Shapes:
        lost: (head,), ln p of the answer in the first text, minus that with the head set to zero, in nats
        back: (head,), ln p of the answer in the second text with the head's mixtures of the first, minus that without

    Args:
        heads: layer and number of each.
        most_lost, most_back: the place of the largest of each.
        r: Pearson's correlation of both; nan where one of the two is flat.
        order: how far both put the same heads first.
        passes: texts that were read.
    """

    lost: np.ndarray
    back: np.ndarray
    heads: tuple[tuple[int, int], ...]
    most_lost: int
    most_back: int
    r: float
    order: RankCorrelation
    passes: int


def patched_stacks(bundle: Bundle) -> tuple[str, ...]:
    """Return the stacks whose activations can be patched."""
    return tuple(streams(bundle))


def sites_of(bundle: Bundle, stack: str) -> dict[str, tuple[str, ...]]:
    """Return the sites that a map has, first layer first, by place; "cross" in a decoder with cross-attention.

    Raises:
        ValueError: the model has no such stack.
    """
    there = streams(bundle)
    if stack not in there:
        raise ValueError(f"stack={stack!r} must be one of {', '.join(there)}")
    if stack == "recurrent" or bundle.kind == "seq2seq":
        return {"residual": there[stack]}
    found = {
        place: tuple(f"{stack}.layer{layer}.{leaf}" for layer in range(bundle.config.n_layers))
        for place, leaf in LEAVES.items()
    }
    if stack == "decoder" and bundle.kind == "translation":
        found["cross"] = tuple(f"decoder.layer{layer}.cross_attention.output" for layer in range(len(there[stack])))
    return found


def heads_in(bundle: Bundle, stack: str) -> tuple[str, ...]:
    """Return the sites of the self-attention's heads of a stack."""
    return tuple(f"{scope}.heads" for scope in attentions(bundle).get(stack, ()))


def passes_needed(*, prompt: Prompt, other: Prompt, stack: str) -> int:
    """Return how many texts the exact map reads: one for each place, layer and aligned position, and each head."""
    bundle, cases = prompt.bundle, one_case(prompt=prompt)
    pairs = len(position_pairs(cases, donor_of(cases, other), stack))
    heads = sum(bundle.config.n_heads for _ in heads_in(bundle, stack))
    return sum(map(len, sites_of(bundle, stack).values())) * pairs + heads


def patch_map(*, prompt: Prompt, other: Prompt, stack: str, answer: int | str | None = None) -> PatchMap:
    """Patch every layer, place and aligned position of one stack, and every head, from the first text into the second.

    Args:
        prompt: its text is where activations are taken from and whose answer counts.
        other: to the same model; what is read while one of them is put in.
        stack: one of patched_stacks.
        answer: as of one_case.

    Raises:
        ValueError: the texts are answered alike, have nothing in common, or as one_case.
    """
    first, second, pairs = _paired(prompt, other, stack, answer)
    places, heads = sites_of(prompt.bundle, stack), heads_in(prompt.bundle, stack)
    sites = tuple(site for found in places.values() for site in found) + heads
    ends, given = run(first, sites=sites)
    start, replaced, slopes = _slopes(second, sites)
    low, high = float(start), float(ends.log_prob[0])
    _require_difference(high, low)
    rows, columns = [there for _, there in pairs], [here for here, _ in pairs]
    all_sites = [*(site for found in places.values() for site in found)]
    exact, passes = _exact(second, given, all_sites, rows, columns)
    by_head, more = _exact_heads(second, given, heads, rows, columns)
    taken = {site: given[site][0][..., columns, :] for site in sites}
    stood, slopes = ({site: found[site][0][..., rows, :] for site in sites} for found in (replaced, slopes))
    products = {site: ((taken[site] - stood[site]) * slopes[site]).sum(-1) for site in sites}
    can = {site: _can_move(taken[site], stood[site], slopes[site]) for site in sites}
    counts = torch.cat([*(can[site] for site in all_sites), *(can[site].any(-1) for site in heads)]).cpu().numpy()
    shape, span = (len(places), -1, len(pairs)), high - low
    estimate = torch.stack([products[site] for site in all_sites]).reshape(shape)
    heads_estimate = torch.stack([products[site].sum(-1) for site in heads]) if heads else torch.zeros(0, 0)
    estimates = [(one / span).cpu().double().numpy() for one in (estimate, heads_estimate)]
    found = [((one - low) / span).numpy() for one in (exact.reshape(shape), by_head)]
    both = [np.concatenate([table.ravel() for table in tables])[counts] for tables in (found, estimates)]
    return PatchMap(
        high,
        low,
        found[0],
        estimates[0],
        found[1],
        estimates[1],
        np.array(pairs, dtype=np.int64),
        tuple(places),
        pair_labels(first.labels[stack], second.labels[stack], pairs),
        tuple(first.labels[stack][here] != second.labels[stack][there] for here, there in pairs),
        len(first.labels[stack]) + len(second.labels[stack]) - 2 * len(pairs),
        rank_correlation(*both),
        pearson(*both),
        passes + more,
    )


def _paired(
    prompt: Prompt, other: Prompt, stack: str, answer: int | str | None
) -> tuple[Cases, Cases, Sequence[tuple[int, int]]]:
    first = one_case(prompt=prompt, answer=answer)
    second = donor_of(first, other)
    pairs = position_pairs(first, second, stack)
    if not pairs:
        raise ValueError("other has no token that could be paired with one of text; change fewer words")
    return first, second, pairs


def _require_difference(high: float, low: float) -> None:
    if abs(high - low) < LEAST_DIFFERENCE:
        raise ValueError(
            f"other must change the answer: ln p is {high:.4f} for text and {low:.4f} for other, which leaves no "
            "difference to bring back"
        )


def head_ways(
    *, prompt: Prompt, other: Prompt, stack: str, layer: int, head: int, answer: int | str | None = None
) -> HeadWays:
    """Put one head's mixtures of the first text into the second: at each place alone, and on each way alone.

    On a way, a later head's query (or key, or value) is the one that it gets when the chosen head is as in the first
    text, all other heads stay as in the second, and the feed-forward layers follow; with that alone, the second text is
    read once more. A head that shares its key and value with others gets both with them.

    Args:
        prompt, other, stack, answer: as of patch_map.
        layer, head: of the stack's self-attention.

    Raises:
        ValueError: layer or head is out of range, heads of another stack read this one's, or as patch_map.
    """
    config, scopes = prompt.bundle.config, attentions(prompt.bundle).get(stack, ())
    if len(attentions(prompt.bundle)) != 1 or not scopes:
        raise ValueError(f"bundle={prompt.bundle.name!r} must have one stack with attention for ways between heads")
    require_range("layer", layer, 0, len(scopes) - 1)
    require_range("head", head, 0, config.n_heads - 1)
    first, second, pairs = _paired(prompt, other, stack, answer)
    rows, columns = [there for _, there in pairs], [here for here, _ in pairs]
    heads = heads_in(prompt.bundle, stack)
    own, later = heads[layer], scopes[layer + 1 :]
    ends, given = run(first, sites=(own,))
    start, stood = run(second, sites=heads)
    low, high = float(start.log_prob[0]), float(ends.log_prob[0])
    _require_difference(high, low)
    taken, mixed = given[own][0], stood[own].clone()  # (head, pos, d_head), (1, head, pos, d_head)
    mixed[0, head, rows] = taken[head, columns]
    still = {site: _always(mixed if site == own else stood[site]) for site in heads}
    direct, seen = run(second, sites=tuple(f"{scope}.{part}" for scope in later for part in PARTS), edits=still)
    total = run(second, edits={own: _always(mixed)})[0]
    places = [(one, place) for one in range(config.n_heads) for place in range(len(pairs))]
    by_position = _in_copies(
        second, own, [((one, rows[place]), taken[one, columns[place]]) for one, place in places]
    ).reshape(config.n_heads, len(pairs))
    ways = np.zeros((len(PARTS), len(later), config.n_heads))
    passes = 4 + len(places)
    for at, scope in enumerate(counted(later)):
        for part, name in enumerate(PARTS):
            read = seen[f"{scope}.{name}"][0]  # (head or kv_head, pos, d_head)
            found = _in_copies(second, f"{scope}.{name}", [((one,), read[one]) for one in range(len(read))])
            ways[part, at] = np.repeat(found, config.n_heads // len(read))
            passes += len(read)
    span = high - low
    return HeadWays(
        (by_position - low) / span,
        (ways - low) / span,
        (float(total.log_prob[0]) - low) / span,
        (float(direct.log_prob[0]) - low) / span,
        pair_labels(first.labels[stack], second.labels[stack], pairs),
        passes,
    )


def two_methods(*, prompt: Prompt, other: Prompt, stack: str, answer: int | str | None = None) -> TwoMethods:
    """Switch every head of a stack off in the first text, and put every one into the second, one by one.

    The two ask different things: what the answer needs in this text, and what carries the difference between both. A
    head that does the same in both texts may be needed, and brings nothing.

    Args:
        prompt, other, stack, answer: as of patch_map.

    Raises:
        ValueError: the stack has no heads, or as patch_map.
    """
    if not heads_in(prompt.bundle, stack):
        raise ValueError(f"stack={stack!r} of bundle={prompt.bundle.name!r} has no heads")
    found = patch_map(prompt=prompt, other=other, stack=stack, answer=answer)
    return compared_methods(found, head_boards(prompt=prompt, answer=answer), stack)


def compared_methods(found: PatchMap, boards: Boards, stack: str) -> TwoMethods:
    """Lay what a map has measured of the heads beside what the answer loses without each; see two_methods."""
    lost, back = -boards.change[stack].ravel(), (found.heads * (found.first - found.second)).ravel()
    return TwoMethods(
        lost,
        back,
        tuple(np.ndindex(*found.heads.shape)),  # type: ignore[arg-type]
        int(lost.argmax()),
        int(back.argmax()),
        pearson(lost, back),
        rank_correlation(lost, back),
        found.passes + boards.passes,
    )


def _always(instead: Tensor) -> Edit:
    return lambda tensor: instead


def _in_copies(cases: Cases, site: str, puts: Sequence[tuple[Place, Tensor]]) -> np.ndarray:
    """Return ln p of the answer in copies of a text, in each of which one place of a site's tensor is another. # (put,)

    Args:
        puts: for each copy the place after its number, which may be several positions, and what stands there.
    """
    found = []
    for begin in range(0, len(puts), at_once(cases)):
        part = puts[begin : begin + at_once(cases)]

        def edit(tensor: Tensor, part: Sequence[tuple[Place, Tensor]] = part) -> Tensor:
            for copy, (place, value) in enumerate(part):
                tensor[(copy, *place)] = value
            return tensor

        found.append(run(cases.repeated(len(part)), edits={site: edit})[0].log_prob)
    return torch.cat(found).cpu().double().numpy()


def _can_move(taken: Tensor, stood: Tensor, slopes: Tensor) -> Tensor:
    """Return where putting an activation in can change the answer: it differs by more than float32's rounding, and the
    answer depends on that place.

    Shapes:
        taken, stood, slopes: (..., pair, width), what is put in, what was there, and the answer's gradient
        returns: (..., pair), boolean
    """
    return ((taken - stood).norm(dim=-1) > ROUNDING * stood.norm(dim=-1)) & (slopes != 0).any(-1)


def _exact(
    second: Cases, given: Mapping[str, Tensor], sites: Sequence[str], rows: Sequence[int], columns: Sequence[int]
) -> tuple[Tensor, int]:
    """Return ln p with each pair's activation at each site put in. # (site, pair)"""
    found = []
    parts = [range(len(rows))[start : start + at_once(second)] for start in range(0, len(rows), at_once(second))]
    for site in counted(sites):
        taken = given[site][0]  # (pos, d_model)
        for part in parts:
            edit = one_in_each([(copy, rows[place], columns[place]) for copy, place in enumerate(part)], taken)
            found.append(run(second.repeated(len(part)), edits={site: edit})[0].log_prob)
    return torch.cat(found).cpu().double().reshape(len(sites), len(rows)), len(sites) * len(rows)


def one_in_each(places: Sequence[tuple[int, int, int]], taken: Tensor) -> Edit:
    """Return the edit that puts a vector of another text in each of some copies.

    Shapes:
        taken: (pos, d_model)

    Args:
        places: copy, position there, and position of what is taken.
    """

    def put(tensor: Tensor, here: range) -> None:
        for copy, row, column in places:
            if row in here:
                tensor[copy, row - here.start] = taken[column]

    return by_position(put)


def _exact_heads(
    second: Cases, given: Mapping[str, Tensor], sites: Sequence[str], rows: Sequence[int], columns: Sequence[int]
) -> tuple[Tensor, int]:
    """Return ln p with each head's mixtures at all pairs put in. # (layer, head)"""
    if not sites:
        return torch.zeros(0, 0), 0
    n_heads, found = second.bundle.config.n_heads, []
    for site in counted(sites):
        taken = given[site][0]  # (head, pos, d_head)
        found.append(_in_copies(second, site, [((head, rows), taken[head, columns]) for head in range(n_heads)]))
    return torch.from_numpy(np.stack(found)), len(sites) * n_heads


def _slopes(cases: Cases, sites: Sequence[str]) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """Return ln p of the answer, the tensors at some sites, and its gradient with respect to each, at one pass."""
    added: dict[str, list[Tensor]] = {}
    seen: dict[str, list[Tensor]] = {}

    def kept(site: str) -> Edit:
        def edit(tensor: Tensor) -> Tensor:
            nothing = torch.zeros_like(tensor, requires_grad=True)
            added.setdefault(site, []).append(nothing)
            seen.setdefault(site, []).append(tensor.detach())
            return tensor + nothing

        return edit

    with torch.inference_mode(False), torch.enable_grad():
        inputs = tuple(ids.clone() for ids in cases.inputs)
        output = cases.bundle.model(*inputs, probe=Probe((), edits={site: kept(site) for site in sites}))
        log_prob = answers_of(cases, output).log_prob.sum()
        leaves = [leaf for site in sites for leaf in added[site]]
        slopes = iter(torch.autograd.grad(log_prob, leaves, allow_unused=True))
    by_site: dict[str, Tensor] = {}
    for site in sites:
        parts = [torch.zeros_like(leaf) if slope is None else slope for leaf in added[site] for slope in [next(slopes)]]
        by_site[site] = torch.cat(parts, -2)
    return log_prob.detach(), {site: torch.cat(seen[site], -2) for site in sites}, by_site
