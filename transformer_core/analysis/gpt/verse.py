"""Verse: which heads of a GPT of poems look to the same place of the line above, and to the rhyme.

A weight belongs to the character that is written next: that of the query before it. As with tendencies, a head's mean
weight stands beside what a head gives that looks at all it may alike; and what is lost without the head, beside both.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

from transformer_core.analysis.attention.heads import head_off
from transformer_core.analysis.gpt.kept_logits import gpt_of, ids_on_device
from transformer_core.bundle import Bundle
from transformer_core.measured import LOOKS
from transformer_core.probe import capture
from transformer_core.prompt import Prompt

SIGNS = "，。"
POEMS_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class VerseLooks:
    """How much each head looks to the line above and to the rhyme, over some poems.

    Shapes:
        weights: (look, layer, head), the mean weight on those characters
        worth: (look, layer, head), nats a character that the model loses there where the head is switched off
        uniform: (look,), the weight of a head that looks at all it may alike

    Args:
        places: how many characters each mean is over.
    """

    weights: np.ndarray
    worth: np.ndarray
    uniform: np.ndarray
    places: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PoemHead:
    """One head on one poem.

    Shapes:
        weights: (pos, pos), from the character that is written next to those before it; rows of the first are 0
        looks: (look, pos, pos), boolean: which characters stand above it, and which it rhymes with

    Args:
        characters: of the poem.
        lines, columns: where each stands.
    """

    weights: np.ndarray
    looks: np.ndarray
    characters: tuple[str, ...]
    lines: tuple[int, ...]
    columns: tuple[int, ...]


def laid_out(characters: Sequence[str]) -> list[tuple[int, int]]:
    """Return the line and the place in it of each character; the sign that closes a line is its last."""
    line = column = 0
    places = []
    for character in characters:
        places.append((line, column))
        line, column = (line + 1, 0) if character in SIGNS else (line, column + 1)
    return places


def looks_of(characters: Sequence[str]) -> np.ndarray:
    """Return which characters each character of a poem stands under, and which it should rhyme with.

    A character stands under the one at its place of the line before. The last of an even line rhymes with the last
    ones of the even lines before it.

    Shapes:
        returns: (look, pos, pos), boolean, a row for each character
    """
    places, n = laid_out(characters), len(characters)
    found = np.zeros((len(LOOKS), n, n), dtype=bool)
    at = {place: index for index, place in enumerate(places)}
    ends = [index - 1 for index, character in enumerate(characters) if character in SIGNS and index]
    rhyming = [end for end in ends if places[end][0] % 2]
    for index, (line, column) in enumerate(places):
        above = at.get((line - 1, column))
        if above is not None and characters[index] not in SIGNS and characters[above] not in SIGNS:
            found[0, index, above] = True
    for number, end in enumerate(rhyming):
        found[1, end, rhyming[:number]] = True
    return found


def _as_written(weights: np.ndarray) -> np.ndarray:
    """Move each query's row to the character that is written after it."""
    return np.concatenate([np.zeros_like(weights[..., :1, :]), weights[..., :-1, :]], axis=-2)


def poem_head(*, prompt: Prompt, layer: int, head: int) -> PoemHead:
    """Read a poem and return what one head looks at, at each character.

    Raises:
        ValueError: the bundle is no Gpt.
    """
    model, encoding = gpt_of(prompt.bundle), prompt.encoding
    site = f"decoder.layer{layer}.self_attention.weights"
    _, trace = capture(model, ids_on_device(model, encoding.ids), sites=(site,), until=site)
    weights = trace[site][0, head].float().cpu().numpy()  # (query_pos, key_pos)
    characters = tuple(encoding.text[start:end] for start, end in encoding.offsets)
    lines, columns = zip(*laid_out(characters), strict=True)
    return PoemHead(_as_written(weights), looks_of(characters), characters, lines, columns)


def measured_looks(*, bundle: Bundle) -> VerseLooks:
    """Return what verse_looks measured over the poems that a bundle's recipe sets aside, as it is stored beside it.

    Raises:
        ValueError: nobody measured it.
    """
    rows, config = bundle.measured.verse, bundle.config
    if len(rows) != len(LOOKS) * config.n_layers * config.n_heads:
        raise ValueError(f"bundle={bundle.name!r} has {len(rows)} measured looks; one of each head and look is needed")
    shape = (len(LOOKS), config.n_layers, config.n_heads)
    weights, worth, uniform, places = np.zeros(shape), np.zeros(shape), np.zeros(len(LOOKS)), [0] * len(LOOKS)
    for row in rows:
        look = LOOKS.index(row.look)
        weights[look, row.layer, row.head], worth[look, row.layer, row.head] = row.weight, row.worth
        uniform[look], places[look] = row.uniform, row.places
    return VerseLooks(weights, worth, uniform, tuple(places))


@torch.inference_mode()
def verse_looks(bundle: Bundle, poems: Iterable[str]) -> VerseLooks:
    """Measure every head over poems, each with its end; every character counts the same.

    Raises:
        ValueError: the bundle is no Gpt, or no poem has a rhyme.
    """
    model, config = gpt_of(bundle), bundle.config
    batches = _batches(bundle, poems)
    heads = [(layer, head) for layer in range(config.n_layers) for head in range(config.n_heads)]
    sums, uniform, places = np.zeros((len(LOOKS), config.n_layers, config.n_heads)), np.zeros(2), np.zeros(2, dtype=int)
    lost = np.zeros_like(sums)
    for ids, looks in batches:
        logits, trace = capture(model, ids, sites=("*.self_attention.weights",))
        weights = _as_written(trace.stack("*.self_attention.weights").float().cpu().numpy())
        sums += np.einsum("lbhqk,nbqk->nlh", weights, looks, optimize=True)
        asked = looks.any(-1)  # (look, poem, pos)
        places += asked.sum((1, 2))
        before = np.arange(ids.shape[1]).clip(min=1)  # characters that are seen when each is written
        uniform += (looks.sum(-1) / before).sum((1, 2))
        own = _nats(logits, ids)
        for layer, head in heads:
            edits = head_off(f"decoder.layer{layer}.self_attention", head)
            without, _ = capture(model, ids, sites=(), edits=edits)
            lost[:, layer, head] += ((_nats(without, ids) - own) * asked).sum((1, 2))
    if not places.all():
        raise ValueError("poems hold no line that rhymes with one before it")
    each = places[:, None, None]
    return VerseLooks(sums / each, lost / each, uniform / places, tuple(places.tolist()))


def _nats(logits: torch.Tensor, ids: torch.Tensor) -> np.ndarray:
    """Return the surprise of each character, 0 for the first. # (poem, pos)"""
    losses = F.cross_entropy(logits[:, :-1].float().transpose(1, 2), ids[:, 1:], reduction="none")
    return F.pad(losses, (1, 0)).cpu().double().numpy()


def _batches(bundle: Bundle, poems: Iterable[str]) -> list[tuple[torch.Tensor, np.ndarray]]:
    """Return poems of equal length together: their ids (poem, pos), and what looks_of says, (look, poem, pos, pos)."""
    model, by_length = gpt_of(bundle), dict[int, list[str]]()
    for poem in poems:
        by_length.setdefault(len(poem), []).append(poem)
    found = []
    for alike in by_length.values():
        for start in range(0, len(alike), POEMS_AT_ONCE):
            chunk = alike[start : start + POEMS_AT_ONCE]
            rows = [list(ids) for ids in bundle.tokenizer.ids_of(chunk)]
            device = next(model.parameters()).device
            found.append((torch.tensor(rows, device=device), np.stack([looks_of(poem) for poem in chunk], 1)))
    return found
