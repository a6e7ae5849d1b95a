"""BERT: `python -m transformer_core.recipes.bert --data DIR` trains on captions and stories and writes its bundle.

Devlin et al. 2019, section 3.1: hidden words and sentence pairs together. Read next: bert_card.py.
"""

import argparse
import functools
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from transformer_core.checkpoints import WEIGHTS, Bundle, load, save
from transformer_core.config import ModelConfig
from transformer_core.device import best_device
from transformer_core.evaluate_bert import (
    SentencePair,
    measure_hidden_words,
    measure_sentence_pairs,
    write_sentence_pairs,
)
from transformer_core.evaluate_translation import read_lines
from transformer_core.models import Bert
from transformer_core.recipes.bert_card import bert_card
from transformer_core.recipes.captions import NEEDS, Sentences, find_file, read_sentences, sentence_pairs
from transformer_core.recipes.card import training_facts
from transformer_core.recipes.command import Trained, command_of, recipe_parser, run_command, train
from transformer_core.text import PAD_ID, Tokenizer
from transformer_core.training.batching import UNPAIRED, PackedBatch, bucketed, padded
from transformer_core.training.config import TrainConfig
from transformer_core.training.objectives import masked_words_and_pairs
from transformer_core.training.precision import has_bfloat16

HIDDEN = 0.2  # departure: BERT hides 0.15; with more hidden words a step, a short training learns more


@dataclass(frozen=True)
class Settings:
    """What the recipe fixes."""

    vocab_size: int
    model: ModelConfig
    training: TrainConfig
    pairs_a_picture: int


FULL = Settings(
    vocab_size=4_000,
    model=ModelConfig(
        vocab_size=16,
        d_model=192,
        n_heads=6,
        d_ff=768,
        n_layers=4,
        max_len=96,
        dropout=0.1,
        positions="learned",
        n_segments=2,
        embedding_norm=True,
    ),
    training=TrainConfig(learning_rate=1.5e-3, warm_up=0.05, weight_decay=0.05, batch_size=128, epochs=3),
    pairs_a_picture=1,
)
QUICK = Settings(
    vocab_size=1_000,
    model=replace(FULL.model, d_model=32, n_heads=2, d_head=16, d_ff=64, n_layers=1),
    training=replace(FULL.training, epochs=1),
    pairs_a_picture=1,
)
QUICK_GROUPS = 60
CAPTIONS_TO_TEST, SET_ASIDE_SEED = "captions.val.en.gz", 0


class PackedBatches:
    """Every sentence alone once an epoch, and pairs that are drawn anew each epoch, bucketed by length."""

    def __init__(self, sentences: Sentences, tokenizer: Tokenizer, settings: Settings, seed: int) -> None:
        self._sentences, self._tokenizer, self._settings, self._seed = sentences, tokenizer, settings, seed
        groups = (*sentences.pictures, *sentences.stories)
        self._alone = self._rows([sentence for group in groups for sentence in group], None)
        self._n_pairs = len(sentence_pairs(sentences, random.Random(seed), a_picture=settings.pairs_a_picture))

    def __len__(self) -> int:
        return -(-(len(self._alone) + self._n_pairs) // self._settings.training.batch_size)

    def _rows(self, firsts: Sequence[str], seconds: Sequence[str] | None) -> list[tuple[Sequence[int], Sequence[int]]]:
        encodings = self._tokenizer.encode_batch(firsts, seconds, max_len=self._settings.model.max_len)
        return [(np.array(encoding.ids), np.array(encoding.segment_ids)) for encoding in encodings]

    def epoch(self, number: int) -> Iterator[PackedBatch]:
        """Yield the batches of an epoch; the same number gives the same batches."""
        rng = random.Random(f"{self._seed} {number}")
        pairs = sentence_pairs(self._sentences, rng, a_picture=self._settings.pairs_a_picture)
        rows = self._alone + self._rows([first for first, _, _ in pairs], [second for _, second, _ in pairs])
        classes = [UNPAIRED] * len(self._alone) + [int(not together) for _, _, together in pairs]
        order = np.random.default_rng((self._seed, number))
        for places in bucketed([len(ids) for ids, _ in rows], self._settings.training.batch_size, order):
            yield PackedBatch(
                padded([rows[place][0] for place in places], PAD_ID),
                padded([rows[place][1] for place in places], 0),
                torch.tensor([classes[place] for place in places]),
            )


def run_recipe(chosen: argparse.Namespace) -> str:
    """Do what the command line asks for; the bundle is on disk afterwards.

    Raises:
        ValueError: the data cannot be read, or an earlier sitting's files do not fit.
    """
    settings = QUICK if chosen.quick else FULL
    learned, set_aside = read_sentences(chosen.data)
    if chosen.quick:
        learned = Sentences(learned.pictures[:QUICK_GROUPS], learned.stories[:QUICK_GROUPS])
    texts = [sentence for group in (*learned.pictures, *learned.stories) for sentence in group]
    tokenizer = Tokenizer.train("wordpiece", texts, vocab_size=settings.vocab_size, lowercase=True)
    device = torch.device(chosen.device or best_device())
    precision = "bfloat16" if has_bfloat16(device) else "float32"
    config = replace(settings.training, seed=chosen.seed, precision=precision)
    model_config = replace(settings.model, vocab_size=tokenizer.vocab_size, target_vocab_size=None, pad_id=PAD_ID)
    packed = PackedBatches(learned, tokenizer, settings, chosen.seed)
    model, trained = train(
        lambda: Bert(model_config),
        functools.partial(masked_words_and_pairs, probability=HIDDEN),
        lambda number: (batch.to(device) for batch in packed.epoch(number)),
        steps_per_epoch=len(packed),
        config=config,
        device=device,
        chosen=chosen,
    )
    bundle = Bundle(chosen.out.name, model, tokenizer)
    return write_bundle(bundle, trained, config, set_aside, n_learned=len(texts), chosen=chosen)


def write_bundle(
    bundle: Bundle,
    trained: Trained,
    config: TrainConfig,
    set_aside: Sentences,
    *,
    n_learned: int,
    chosen: argparse.Namespace,
) -> str:
    """Write the bundle in float16 with a card of what was measured on it as it lies on disk; return that in a line."""
    pairs = [SentencePair(*pair) for pair in sentence_pairs(set_aside, random.Random(SET_ASIDE_SEED))]
    captions = read_lines(find_file(chosen.data, CAPTIONS_TO_TEST))
    if chosen.quick:
        pairs, captions = pairs[:QUICK_GROUPS], captions[:QUICK_GROUPS]
    if chosen.held_out is not None:
        write_sentence_pairs(chosen.held_out, pairs)
    full = measure_hidden_words(bundle, captions), measure_sentence_pairs(bundle, pairs)
    save(bundle, chosen.out, dtype=torch.float16)
    on_disk = load(chosen.out, device="cpu")
    words, told = measure_hidden_words(on_disk, captions), measure_sentence_pairs(on_disk, pairs)
    megabytes = (chosen.out / WEIGHTS).stat().st_size / 1e6
    facts = {
        "data": f"captions of photographs (Multi30k, task 2) and TinyStories; {n_learned:,} sentences trained on",
        "licence": "captions CC BY-NC-SA 4.0, stories CDLA-Sharing-1.0; weights for research and teaching",
        "recipe": f"`{command_of('bert', chosen)}`",
        **training_facts(
            on_disk, trained, config, batch=f"{config.batch_size} sentences or pairs", megabytes=megabytes
        ),
    }
    save(replace(on_disk, card=bert_card(on_disk, facts, words, told, full=full)), chosen.out, dtype=torch.float16)
    return (
        f"hidden words top-1 {words['top1']:.1%}, top-5 {words['top5']:.1%}, pairs {told['accuracy']:.1%}, "
        f"{trained.cpu_minutes:.1f} minutes of processor time"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    parser = recipe_parser("bert", makes="the BERT", data=NEEDS, out="bert")
    parser.add_argument("--held-out", type=Path, help="write the pairs that are set aside to this .jsonl")
    return run_command(parser, run_recipe, arguments)


if __name__ == "__main__":
    sys.exit(main())
