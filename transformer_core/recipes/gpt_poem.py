"""A GPT of poems: `python -m transformer_core.recipes.gpt_poem --data DIR` trains and writes its bundle.

It reads Chinese regulated verse character by character: four or eight lines of five or seven, of which the even ones
rhyme. A poem begins with its first character and ends with [EOS].
"""

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from transformer_core.analysis.gpt.verse import verse_looks
from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.evaluation.gpt import measure_poems, poem_rows, read_text
from transformer_core.evaluation.ngrams import KneserNey
from transformer_core.generation import sample
from transformer_core.measured import LOOKS, HeadLook, Trained
from transformer_core.models import Gpt
from transformer_core.recipes.captions import find_file
from transformer_core.recipes.card import list_of, typical_on, write_bundle
from transformer_core.recipes.command import command_of, recipe_parser, run_command, settle, train
from transformer_core.recipes.gpt import GptSettings
from transformer_core.recipes.texts import card_sentences
from transformer_core.text import EOS_ID, PAD_ID, SPECIAL_TOKENS, Tokenizer
from transformer_core.training.batching import epochs_of, padded
from transformer_core.training.config import TrainConfig
from transformer_core.training.objectives import next_words

TRAIN, TEST = "tang.train.txt.gz", "tang.val.txt.gz"
POEMS_FOR_CHOICE = 600
POEMS_WRITTEN = 200
FIRST_LINES = card_sentences("first_lines.zh.txt")
LINE_END = re.compile("[，。]")
# The thirteen rhyme groups of northern Chinese, by the final that pinyin writes (v stands for u with two dots).
GROUPS = (
    *("a ia ua", "o e uo", "ie ve ue", "u", "i v er", "ai uai", "ei uei ui", "ao iao", "ou iou iu"),
    *("an ian uan van", "en in uen un vn", "ang iang uang", "eng ing ueng ong iong"),
)
GROUP_OF = {final: number for number, finals in enumerate(GROUPS) for final in finals.split()}


FULL = GptSettings(
    vocab_size=5_000,
    model=ModelConfig(
        vocab_size=16,
        d_model=192,
        n_heads=6,
        d_ff=768,
        n_layers=6,
        max_len=64,
        dropout=0.25,
        positions="learned",
    ),
    training=TrainConfig(
        optimizer="muon", learning_rate=3e-3, warm_up=0.05, weight_decay=0.1, batch_size=64, epochs=14
    ),
)
QUICK = GptSettings(
    vocab_size=800,
    model=replace(FULL.model, d_model=32, n_heads=2, d_head=16, d_ff=64, n_layers=1),
    training=replace(FULL.training, batch_size=16, epochs=1),
)
QUICK_POEMS, QUICK_MEASURED = 320, 20


@dataclass(frozen=True)
class Written:
    """What became of poems that a model wrote from given first lines.

    Args:
        poems: how many.
        in_form: how many have four or eight lines of the first line's length, and an end.
        rhyming: of those in form, how many have even lines that all end in one rhyme group.
        chance: the share of poems that would rhyme if the ends of all their even lines were shuffled.
        real: the share that rhymes of the poems that the first lines are from.
    """

    poems: int
    in_form: int
    rhyming: int
    chance: float
    real: float


def lines_of(poem: str) -> list[str]:
    """Return a poem's lines without the signs after them."""
    return [line for line in LINE_END.split(poem) if line]


def in_form(poem: str) -> bool:
    """Return whether a poem has four or eight lines of equal length, each closed by a sign."""
    lines = lines_of(poem)
    return len(lines) in (4, 8) and len({len(line) for line in lines}) == 1 and bool(LINE_END.search(poem[-1:]))


def rhyme_groups(characters: Sequence[str]) -> list[int | None]:
    """Return the rhyme group of each character as it is read today, None where its reading is unknown.

    Raises:
        ValueError: the package pypinyin, which only this recipe needs, is not installed.
    """
    try:
        import pypinyin
    except ImportError:
        raise ValueError("pypinyin, which tells how Chinese characters are read, is not installed") from None
    finals = pypinyin.lazy_pinyin(list(characters), style=pypinyin.Style.FINALS, strict=False)
    return [GROUP_OF.get(final) for final in finals]


def rhymes(ends: Sequence[str]) -> bool:
    """Return whether characters are all read with one rhyme."""
    groups = set(rhyme_groups(ends))
    return len(groups) == 1 and None not in groups


def even_ends(poem: str) -> list[str]:
    """Return the last characters of a poem's even lines, which are those that rhyme."""
    return [line[-1] for line in lines_of(poem)[1::2]]


def share_rhyming(poems: Sequence[list[str]]) -> float:
    """Return the share of poems whose even ends rhyme."""
    return sum(map(rhymes, poems)) / max(len(poems), 1)


def shuffled_ends(poems: Sequence[list[str]], seed: int) -> list[list[str]]:
    """Return as many poems' ends, each poem with as many as before, dealt anew among all poems."""
    ends = [end for poem in poems for end in poem]
    dealt = iter(np.random.default_rng(seed).permutation(ends).tolist())
    return [[next(dealt) for _ in poem] for poem in poems]


def write_poem(bundle: Bundle, first_line: str, *, seed: int) -> str:
    """Return a first line and what a Gpt samples after it, at temperature 1 with this seed, to its end."""
    assert isinstance(bundle.model, Gpt)
    token_ids = torch.tensor([bundle.tokenizer.encode(first_line).ids])
    never = tuple(number for number in range(len(SPECIAL_TOKENS)) if number != EOS_ID)
    written = []
    generator = torch.Generator().manual_seed(seed)
    most = bundle.config.max_len + 1 - token_ids.shape[1]
    for step in sample(bundle.model, token_ids, most=most, exclude=never, generator=generator):
        if step.token_id == EOS_ID:
            return first_line + bundle.tokenizer.decode(written)
        written.append(step.token_id)
    return first_line + bundle.tokenizer.decode(written) + "…"


def measure_written(bundle: Bundle, poems: Sequence[str]) -> Written:
    """Let a model write a poem from the first line of each of some poems, and see which keep form and rhyme."""
    firsts = [poem[: LINE_END.search(poem).end()] for poem in poems]  # type: ignore[union-attr]
    written = [write_poem(bundle, first, seed=number) for number, first in enumerate(firsts)]
    kept = [
        poem
        for poem, first in zip(written, firsts, strict=True)
        if in_form(poem) and len(lines_of(poem)[1]) == len(first) - 1
    ]
    ends = [even_ends(poem) for poem in kept]
    rhyming = round(share_rhyming(ends) * len(ends))
    chance = share_rhyming([poem for seed in range(20) for poem in shuffled_ends(ends, seed)])
    return Written(len(poems), len(kept), rhyming, chance, share_rhyming([even_ends(poem) for poem in poems]))


def head_looks(bundle: Bundle, poems: Sequence[str]) -> tuple[HeadLook, ...]:
    """Return how much each head looks to the line above and to the rhyme, over poems."""
    found = verse_looks(bundle, poems)
    return tuple(
        HeadLook(
            LOOKS[look],
            layer,
            head,
            round(float(weight), 4),
            round(float(found.uniform[look]), 4),
            round(float(found.worth[look, layer, head]), 4),
            found.places[look],
        )
        for (look, layer, head), weight in np.ndenumerate(found.weights)
    )


def read_poems(folder: Path, name: str) -> list[str]:
    """Return the poems of a file, one a line.

    Raises:
        ValueError: the file is missing, or a line is no poem of four or eight equal lines.
    """
    poems = [line.strip() for line in read_text(find_file(folder, name)).splitlines() if line.strip()]
    wrong = next((number for number, poem in enumerate(poems, 1) if not in_form(poem)), None)
    if wrong is not None:
        raise ValueError(f"{name}, line {wrong}: four or eight lines of equal length are needed")
    return poems


@dataclass(frozen=True)
class Parts:
    """Poems to learn from, and poems to measure on."""

    learned: list[str]
    measured_on: list[str]


def read_parts(chosen: argparse.Namespace) -> Parts:
    """Return the poems of both parts, and write those to measure on to the file of --held-out.

    Raises:
        ValueError: as read_poems.
    """
    poems, test = read_poems(chosen.data, TRAIN), read_poems(chosen.data, TEST)
    learned, for_choice = poems[:-POEMS_FOR_CHOICE], poems[-POEMS_FOR_CHOICE:]
    parts = Parts(learned, for_choice if chosen.choice else test)
    if chosen.quick:
        parts = Parts(parts.learned[:QUICK_POEMS], parts.measured_on[:QUICK_MEASURED])
    if chosen.held_out is not None:
        chosen.held_out.write_text("".join(f"{poem}\n" for poem in parts.measured_on), encoding="utf-8")
    return parts


def train_on_poems(
    settings: GptSettings, tokenizer: Tokenizer, rows: Sequence[Sequence[int]], chosen: argparse.Namespace
) -> tuple[Bundle, Trained, TrainConfig]:
    """Train a Gpt on rows of token ids, one a poem; return it, what it took, and how."""
    config, device = settle(settings.training, chosen)
    model_config = replace(settings.model, vocab_size=tokenizer.vocab_size, target_vocab_size=None, pad_id=PAD_ID)

    def batch_of(places: list[int]) -> torch.Tensor:
        return padded([rows[place] for place in places], PAD_ID).to(device)

    batches, steps_per_epoch = epochs_of([len(row) for row in rows], config.batch_size, config.seed, batch_of)
    model, trained = train(
        lambda: Gpt(model_config),
        next_words,
        batches,
        steps_per_epoch=steps_per_epoch,
        config=config,
        device=device,
        chosen=chosen,
    )
    return Bundle(chosen.out.name, model, tokenizer, reads="zh"), trained, config


def run_recipe(chosen: argparse.Namespace) -> str:
    """Carry out the command line and return its result in words; the bundle is on disk afterwards.

    Raises:
        ValueError: the data cannot be read, or the files of an interrupted run do not fit.
    """
    settings, parts = QUICK if chosen.quick else FULL, read_parts(chosen)
    tokenizer = Tokenizer.train("character", parts.learned, vocab_size=settings.vocab_size, template="none")
    rows = poem_rows(tokenizer, parts.learned)
    bundle, trained, config = train_on_poems(settings, tokenizer, rows, chosen)

    def measure(bundle: Bundle) -> dict[str, Any]:
        own, size = poem_rows(tokenizer, parts.measured_on), tokenizer.vocab_size
        bigram, trigram = (KneserNey(rows, order=order, vocab_size=size).nats(own) for order in (2, 3))
        written = measure_written(bundle, parts.measured_on[:POEMS_WRITTEN])
        return {
            "file": TRAIN,
            "count": len(parts.learned),
            "measured": measure_poems(bundle, parts.measured_on) | {"bigram": bigram, "trigram": trigram},
            "written": written,
            "last": written.poems - 1,
            "share_in_form": written.in_form / written.poems,
            "share_rhyming": written.rhyming / max(written.in_form, 1),
            "chosen_by": POEMS_FOR_CHOICE,
            "shown": list_of(write_poem(bundle, line, seed=number) for number, line in enumerate(FIRST_LINES)),
        }

    usual = typical_on(("poems of the Tang", "poem", parts.measured_on))
    found = write_bundle(
        bundle,
        chosen.out,
        ["gpt-poem"],
        [(trained, config)],
        measure,
        lambda read: replace(usual(read), verse=head_looks(read, parts.measured_on)),
        recipe=command_of("gpt_poem", chosen),
        in_words=lambda _, say: {"part": say("gpt-poem.choice") if chosen.choice else f"`{TEST}`"},
    )
    measured, written = found["measured"], found["written"]
    return (
        f"{chosen.out}: {measured['loss_nats']:.4f} nats a character (bigram {measured['bigram']:.4f}, trigram "
        f"{measured['trigram']:.4f}), {written.in_form} of {written.poems} in form, {written.rhyming} rhyming (chance "
        f"{written.chance:.1%}, real {written.real:.1%}), {trained.cpu_minutes:.1f} minutes of processor time"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    parser = recipe_parser("gpt_poem", makes="the GPT of poems", data=f"{TRAIN} and {TEST}", out="gpt-poem")
    parser.add_argument("--held-out", type=Path, help="write the poems that are set aside to this .txt")
    parser.add_argument("--choice", action="store_true", help="measure the part by which settings are chosen instead")
    return run_command(parser, run_recipe, arguments)


if __name__ == "__main__":
    sys.exit(main())
