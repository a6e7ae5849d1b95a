"""BERT: `python -m transformer_core.recipes.bert --data DIR` trains on captions and stories and writes its bundle.

Devlin et al. 2019, section 3.1: hidden words, then pairs of captions as well, then as many pairs from stories.
Departure: BERT learns both from the start; in a short training, pairs are then never learned (DECISIONS.md).
"""

import argparse
import functools
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.evaluation.bert import (
    SentencePair,
    measure_hidden_words,
    measure_sentence_pairs,
    write_sentence_pairs,
)
from transformer_core.evaluation.translation import read_lines
from transformer_core.models import Bert
from transformer_core.recipes.captions import NEEDS, Sentences, find_file, read_sentences, sentence_pairs
from transformer_core.recipes.card import list_of, typical_on, write_bundle
from transformer_core.recipes.command import Trained, command_of, open_clock, recipe_parser, run_command, settle, train
from transformer_core.recipes.texts import card_sentences
from transformer_core.text import PAD_ID, Tokenizer
from transformer_core.training.batching import UNPAIRED, PackedBatch, bucketed, padded
from transformer_core.training.config import TrainConfig
from transformer_core.training.objectives import masked_words_and_pairs

HIDDEN = card_sentences("hidden.en.txt")
GUESSES = 3
QUICK_GROUPS = 60
CAPTIONS_TO_TEST, SET_ASIDE_SEED = "captions.val.en.gz", 0


@dataclass(frozen=True)
class Stage:
    """One of several trainings, each of which starts from the weights of the one before.

    Args:
        name: of its folder.
        hide: probability of hiding a token; BERT has 0.15, but a short training learns more from a higher one.
        alone: share of the sentences that are read without a partner, sampled again in each epoch.
        pairs_a_picture: pairs of captions a picture.
        pairs_a_neighbour: pairs a sentence of a story that has a next one; there are far fewer stories than captions.
        training: how to train.
    """

    name: str
    hide: float
    alone: float
    pairs_a_picture: int
    training: TrainConfig
    pairs_a_neighbour: int = 1


@dataclass(frozen=True)
class BertSettings:
    """Sizes of the vocabulary and the model, and the stages of training."""

    vocab_size: int
    model: ModelConfig
    stages: tuple[Stage, ...]


WORDS = TrainConfig(
    optimizer="muon",
    learning_rate=4e-3,
    warm_up=0.02,
    schedule="constant",
    weight_decay=0.05,
    batch_size=64,
    epochs=3,
)
FULL = BertSettings(
    vocab_size=4_000,
    model=ModelConfig(
        vocab_size=16,
        d_model=192,
        n_heads=6,
        d_ff=768,
        n_layers=4,
        max_len=96,
        dropout=0.0,
        positions="learned",
        n_segments=2,
        embedding_norm=True,
    ),
    stages=(
        Stage("words", hide=0.3, alone=1.0, pairs_a_picture=0, training=WORDS),
        Stage("pairs", hide=0.25, alone=0.3, pairs_a_picture=3, training=replace(WORDS, schedule="cosine")),
        Stage(
            "stories",
            hide=0.15,
            alone=0.3,
            pairs_a_picture=1,
            pairs_a_neighbour=4,
            training=replace(WORDS, schedule="cosine", learning_rate=2e-3, epochs=2),
        ),
    ),
)
QUICK = BertSettings(
    vocab_size=1_000,
    model=replace(FULL.model, d_model=32, n_heads=2, d_head=16, d_ff=64, n_layers=1),
    stages=tuple(replace(stage, training=replace(stage.training, epochs=1)) for stage in FULL.stages),
)


class PackedBatches:
    """Single sentences and pairs, both sampled again in each epoch, bucketed by length."""

    def __init__(self, sentences: Sentences, tokenizer: Tokenizer, stage: Stage, max_len: int, seed: int) -> None:
        self._sentences, self._tokenizer, self._stage, self._max_len = sentences, tokenizer, stage, max_len
        self._seed = seed
        groups = (*sentences.pictures, *sentences.stories)
        self._alone = self._rows([sentence for group in groups for sentence in group], None)
        self._n_alone = round(stage.alone * len(self._alone))
        self._n_pairs = len(self._pairs(random.Random(seed)))

    def __len__(self) -> int:
        return -(-(self._n_alone + self._n_pairs) // self._stage.training.batch_size)

    def _rows(self, firsts: Sequence[str], seconds: Sequence[str] | None) -> list[tuple[Sequence[int], Sequence[int]]]:
        encodings = self._tokenizer.encode_batch(firsts, seconds, max_len=self._max_len)
        return [(encoding.ids, encoding.segment_ids) for encoding in encodings]

    def _pairs(self, rng: random.Random) -> list[tuple[str, str, bool]]:
        stage = self._stage
        return sentence_pairs(
            self._sentences, rng, a_picture=stage.pairs_a_picture, a_neighbour=stage.pairs_a_neighbour
        )

    def epoch(self, number: int) -> Iterator[PackedBatch]:
        """Yield the batches of an epoch; the same number gives the same batches."""
        rng = random.Random(f"{self._seed} {number}")
        pairs = self._pairs(rng)
        alone = self._alone if self._n_alone == len(self._alone) else rng.sample(self._alone, self._n_alone)
        rows = alone + self._rows([first for first, _, _ in pairs], [second for _, second, _ in pairs])
        classes = [UNPAIRED] * len(alone) + [int(not together) for _, _, together in pairs]
        order = np.random.default_rng((self._seed, number))
        for places in bucketed([len(ids) for ids, _ in rows], self._stage.training.batch_size, order):
            yield PackedBatch(
                padded([rows[place][0] for place in places], PAD_ID),
                padded([rows[place][1] for place in places], 0),
                torch.tensor([classes[place] for place in places]),
            )


def guesses(bundle: Bundle, text: str) -> str:
    """Return the likeliest words for the hidden one of a text, with their probabilities."""
    encoding = bundle.tokenizer.encode(text)
    place = encoding.tokens.index("[MASK]")
    with torch.inference_mode():
        probabilities = bundle.model(torch.tensor([encoding.ids])).mlm_logits[0, place].softmax(-1)  # (vocab,)
    best = probabilities.topk(GUESSES)
    words = (bundle.tokenizer.label_of(int(word)) for word in best.indices)
    return ", ".join(f"{word} ({float(chance):.0%})" for word, chance in zip(words, best.values, strict=True))


def _fresh_or_trained(config: ModelConfig, model: nn.Module | None) -> nn.Module:
    return Bert(config) if model is None else model.requires_grad_()


def _batches_on(packed: PackedBatches, device: torch.device, epoch: int) -> Iterator[PackedBatch]:
    return (batch.to(device) for batch in packed.epoch(epoch))


def read_held_out(set_aside: Sentences, chosen: argparse.Namespace) -> tuple[list[SentencePair], list[str]]:
    """Return the held-out pairs and captions, and write the pairs to the file of --held-out."""
    pairs = [SentencePair(*pair) for pair in sentence_pairs(set_aside, random.Random(SET_ASIDE_SEED))]
    captions = read_lines(find_file(chosen.data, CAPTIONS_TO_TEST))
    if chosen.quick:
        pairs, captions = pairs[:QUICK_GROUPS], captions[:QUICK_GROUPS]
    if chosen.held_out is not None:
        write_sentence_pairs(chosen.held_out, pairs)
    return pairs, captions


def train_in_stages(
    settings: BertSettings, config: ModelConfig, learned: Sentences, tokenizer: Tokenizer, chosen: argparse.Namespace
) -> tuple[nn.Module, list[tuple[Trained, TrainConfig]]]:
    """Train a Bert in all stages; return it, and for each stage what it took and its config."""
    clock, trained = open_clock(chosen), []
    model: nn.Module | None = None
    for stage in settings.stages:
        training, device = settle(stage.training, chosen)
        packed = PackedBatches(learned, tokenizer, stage, config.max_len, chosen.seed)
        model, cost = train(
            functools.partial(_fresh_or_trained, config, model),
            functools.partial(masked_words_and_pairs, probability=stage.hide),
            functools.partial(_batches_on, packed, device),
            steps_per_epoch=len(packed),
            config=training,
            device=device,
            chosen=chosen,
            clock=clock,
            stage=stage.name,
        )
        trained.append((cost, training))
    assert model is not None
    return model, trained


def run_recipe(chosen: argparse.Namespace) -> str:
    """Carry out the command line and return its result in words; the bundle is on disk afterwards.

    Raises:
        ValueError: the data cannot be read, or the files of an interrupted run do not fit.
    """
    settings = QUICK if chosen.quick else FULL
    learned, set_aside = read_sentences(chosen.data)
    if chosen.quick:
        learned = Sentences(learned.pictures[:QUICK_GROUPS], learned.stories[:QUICK_GROUPS])
    texts = [sentence for group in (*learned.pictures, *learned.stories) for sentence in group]
    tokenizer = Tokenizer.train("wordpiece", texts, vocab_size=settings.vocab_size, lowercase=True)
    config = replace(settings.model, vocab_size=tokenizer.vocab_size, target_vocab_size=None, pad_id=PAD_ID)
    model, trained = train_in_stages(settings, config, learned, tokenizer, chosen)
    pairs, captions = read_held_out(set_aside, chosen)

    def measure(bundle: Bundle) -> dict[str, Any]:
        return {
            "count": len(texts),
            "words": measure_hidden_words(bundle, captions),
            "pairs": measure_sentence_pairs(bundle, pairs),
            "filled": list_of(f"{text} → {guesses(bundle, text)}" for text in HIDDEN),
        }

    bundle = Bundle(chosen.out.name, model, tokenizer, reads="en")
    stories = [sentence for story in set_aside.stories for sentence in story]
    held_out = ("Multi30k", "caption", captions), ("TinyStories", "sentence", stories)
    usual = typical_on(*held_out, learned=texts)
    found = write_bundle(bundle, chosen.out, ["bert"], trained, measure, usual, recipe=command_of("bert", chosen))
    return (
        f"{chosen.out}: hidden words top-1 {found['words']['top1']:.1%}, top-5 {found['words']['top5']:.1%}, "
        f"pairs {found['pairs']['accuracy']:.1%}, {trained[-1][0].cpu_minutes:.1f} minutes of processor time"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    parser = recipe_parser("bert", makes="the BERT", data=NEEDS, out="bert")
    parser.add_argument("--held-out", type=Path, help="write the pairs that are set aside to this .jsonl")
    return run_command(parser, run_recipe, arguments)


if __name__ == "__main__":
    sys.exit(main())
