"""Minimal pairs: built-in texts that differ in one word, and one patch measured on all of them.

The pairs are written by templates in assets/corpora/minimal_pairs, which says where they come from. A place is carried
from one text to another by its role: where the answer is read, or so many tokens from the word that differs.
"""

import json
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import torch

from transformer_core.analysis.lab.cases import Cases, donor_of, one_case, position_pairs, run
from transformer_core.analysis.lab.patching import one_in_each, sites_of
from transformer_core.analysis.lab.text_sets import language_read
from transformer_core.bundle import Bundle
from transformer_core.config import require_choice, require_index, require_range
from transformer_core.probe import Edit
from transformer_core.progress import counted
from transformer_core.prompt import Prompt
from transformer_core.training.corpora.grammar import CORPORA

PAIRS = Path(CORPORA) / "minimal_pairs" / "pairs.json"
MOST_TOKENS = 64
LEAST_SPAN = 0.1  # nats between the two texts of a pair, below which a share of it says little
MOST_CONTROLS = 32


@dataclass(frozen=True, eq=False)
class PatchedPairs:
    """What one patch brings back on built-in pairs.

    Shapes:
        shares: (pair,), of the difference in ln p of the first text's answer, 1 for all of it
        random: (control, pair), with activations of the same kind from as many random places

    Args:
        pairs: the texts that were used.
        left_out: how many others were not: they differ in several tokens, are answered alike, or lack such a place.
        offset: tokens from the word that differs to the place, None for where the answer is read.
        passes: texts that were read.
    """

    shares: np.ndarray
    random: np.ndarray
    pairs: tuple[tuple[str, str], ...]
    left_out: int
    offset: int | None
    passes: int


@cache
def _templates() -> dict:
    return json.loads(PAIRS.read_text(encoding="utf-8"))


def minimal_pairs(bundle: Bundle) -> tuple[tuple[str, str], ...]:
    """Return the built-in pairs that suit a model, () where none are built in."""
    found = _templates().get(language_read(bundle), {}).get(bundle.kind)
    if found is None:
        return ()
    made = product(found["frames"], found["nouns"], found["words"])
    return tuple(tuple(frame.format(noun=noun, word=word) for word in words) for frame, noun, words in made)  # type: ignore[misc]


def reading_position(cases: Cases) -> int | None:
    """Return where the answer to the first text is read, None where that is all of it."""
    if cases.bundle.reader.asks == "class":
        return 0 if cases.bundle.config.pooling == "cls" else None
    return int(torch.nonzero(cases.answers[0] >= 0)[-1])


def _aligned(first: Cases, second: Cases, stack: str) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the aligned positions of two texts, and those of the first whose tokens differ."""
    pairs = position_pairs(first, second, stack)
    mine, theirs = (one.inputs[0][0].tolist() for one in (first, second))
    return pairs, [here for here, there in pairs if mine[here] != theirs[there]]


def offset_of(first: Cases, second: Cases, stack: str, position: int) -> int | None:
    """Return the role of a position: None where the answer is read, else tokens from the nearest word that differs.

    Raises:
        ValueError: no token differs.
    """
    changed = _aligned(first, second, stack)[1]
    if position == reading_position(first) and position not in changed:
        return None
    if not changed:
        raise ValueError("other must have a token in place of another one of text")
    return min((position - one for one in changed), key=abs)


def patch_on_pairs(
    *,
    prompt: Prompt,
    other: Prompt,
    stack: str,
    place: str,
    layer: int,
    position: int,
    controls: int = 8,
    seed: int = 0,
) -> PatchedPairs:
    """Patch, in each built-in pair, the activation whose role is that of a position of a text.

    Args:
        prompt: to a classifier, BERT or GPT.
        prompt, other: as of patch_map; they give the position its role.
        stack, place, layer: as of patch_map.
        position: in text.
        controls: how many random places of the same kind to patch in each pair.
        seed: of those.

    Raises:
        ValueError: no pairs are built in for the model, or none has such a place; or as patch_map.
    """
    bundle = prompt.bundle
    pairs = minimal_pairs(bundle)
    if not pairs:
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}, for which no pairs are built in")
    require_range("controls", controls, 0, MOST_CONTROLS)
    ours = one_case(prompt=prompt)
    offset = offset_of(ours, donor_of(ours, other), stack, position)
    places = sites_of(bundle, stack)
    require_choice("place", place, tuple(places))
    sites = places[place]
    require_index("layer", layer, len(sites))
    generator = torch.Generator().manual_seed(seed)
    kept, rows = [], []
    for pair in counted(pairs):
        shares = _shares(bundle, pair, stack, sites, layer, offset, controls, generator)
        if shares is not None:
            kept.append(pair)
            rows.append(shares)
    if not rows:
        raise ValueError("none of the built-in pairs has such a place")
    found = np.array(rows).T  # (1 + control, pair)
    return PatchedPairs(found[0], found[1:], tuple(kept), len(pairs) - len(kept), offset, len(kept) * (3 + controls))


def _shares(
    bundle: Bundle,
    pair: tuple[str, str],
    stack: str,
    sites: tuple[str, ...],
    layer: int,
    offset: int | None,
    controls: int,
    generator: torch.Generator,
) -> list[float] | None:
    """Return what comes back in one pair at the place and at random ones, None where it cannot be measured."""
    prompt, other = (Prompt(bundle, text, MOST_TOKENS) for text in pair)
    first = one_case(prompt=prompt)
    second = donor_of(first, other)
    pairs, changed = _aligned(first, second, stack)
    length = len(first.labels[stack])
    if len(changed) != 1 or not len(pairs) == length == len(second.labels[stack]):
        return None
    here = reading_position(first) if offset is None else changed[0] + offset
    if here is None or not 0 <= here < length:
        return None
    chosen = layer * length + here
    others = [one for one in range(len(sites) * length) if one != chosen]
    if len(others) < controls:
        return None
    drawn = [others[place] for place in torch.randperm(len(others), generator=generator)[:controls]]
    ends, given = run(first, sites=sites)
    edits: dict[str, Edit] = {}
    for number, site in enumerate(sites):
        copies = [(copy, one % length) for copy, one in enumerate([chosen, *drawn], start=1) if one // length == number]
        edits[site] = one_in_each([(copy, row, row) for copy, row in copies], given[site][0])
    found = run(second.repeated(2 + controls), edits=edits)[0].log_prob.cpu().double()  # (copy,)
    low, high = float(found[0]), float(ends.log_prob[0])
    if high - low < LEAST_SPAN:
        return None
    return ((found[1:] - low) / (high - low)).tolist()
