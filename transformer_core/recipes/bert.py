"""BERT: `python -m transformer_core.recipes.bert --data DIR` trains on captions and stories and writes its bundle.

Devlin et al. 2019, section 3.1: hidden words and sentence pairs together. Read next: bert_stages.py.
"""

import argparse
import functools
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

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
from transformer_core.recipes.bert_card import Measures, bert_card
from transformer_core.recipes.bert_stages import FULL, QUICK, PackedBatches, Settings
from transformer_core.recipes.captions import NEEDS, Sentences, find_file, read_sentences, sentence_pairs
from transformer_core.recipes.card import describe_training, model_facts
from transformer_core.recipes.command import Trained, command_of, open_clock, recipe_parser, run_command, settle, train
from transformer_core.recipes.writing import OnDisk, write_bundle
from transformer_core.text import PAD_ID, Tokenizer
from transformer_core.training.batching import PackedBatch
from transformer_core.training.config import TrainConfig
from transformer_core.training.objectives import masked_words_and_pairs

QUICK_GROUPS = 60
CAPTIONS_TO_TEST, SET_ASIDE_SEED = "captions.val.en.gz", 0


def _fresh_or_trained(config: ModelConfig, model: nn.Module | None) -> nn.Module:
    return Bert(config) if model is None else model.requires_grad_()


def _batches_on(packed: PackedBatches, device: torch.device, epoch: int) -> Iterator[PackedBatch]:
    return (batch.to(device) for batch in packed.epoch(epoch))


def read_held_out(set_aside: Sentences, chosen: argparse.Namespace) -> tuple[list[SentencePair], list[str]]:
    """Return the pairs and the captions to be measured on, and write the pairs where the command line asks for it."""
    pairs = [SentencePair(*pair) for pair in sentence_pairs(set_aside, random.Random(SET_ASIDE_SEED))]
    captions = read_lines(find_file(chosen.data, CAPTIONS_TO_TEST))
    if chosen.quick:
        pairs, captions = pairs[:QUICK_GROUPS], captions[:QUICK_GROUPS]
    if chosen.held_out is not None:
        write_sentence_pairs(chosen.held_out, pairs)
    return pairs, captions


def train_in_stages(
    settings: Settings, config: ModelConfig, learned: Sentences, tokenizer: Tokenizer, chosen: argparse.Namespace
) -> tuple[nn.Module, list[tuple[TrainConfig, Trained]]]:
    """Train a Bert stage after stage, each going on from the one before; return it, and how each was trained."""
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
        trained.append((training, cost))
    assert model is not None
    return model, trained


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
    config = replace(settings.model, vocab_size=tokenizer.vocab_size, target_vocab_size=None, pad_id=PAD_ID)
    model, trained = train_in_stages(settings, config, learned, tokenizer, chosen)
    pairs, captions = read_held_out(set_aside, chosen)

    def measure(bundle: Bundle) -> tuple[Measures, Measures]:
        return measure_hidden_words(bundle, captions), measure_sentence_pairs(bundle, pairs)

    def card(on_disk: OnDisk) -> str:
        facts = {
            "data": f"captions of photographs (Multi30k, task 2) and TinyStories; {len(texts):,} sentences trained on",
            "licence": "captions CC BY-NC-SA 4.0, stories CDLA-Sharing-1.0; weights for research and teaching",
            "recipe": f"`{command_of('bert', chosen)}`",
            "training": "; then ".join(
                describe_training(
                    cost, training, batch=f"{training.batch_size} sentences or pairs", dropout=settings.model.dropout
                )
                for training, cost in trained
            ),
            **model_facts(on_disk.bundle, trained[-1][1], megabytes=on_disk.megabytes),
        }
        return bert_card(on_disk.bundle, facts, *on_disk.measured, full=on_disk.full)

    words, told = write_bundle(Bundle(chosen.out.name, model, tokenizer), chosen.out, measure, card).measured
    return (
        f"hidden words top-1 {words['top1']:.1%}, top-5 {words['top5']:.1%}, pairs {told['accuracy']:.1%}, "
        f"{trained[-1][1].cpu_minutes:.1f} minutes of processor time"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    parser = recipe_parser("bert", makes="the BERT", data=NEEDS, out="bert")
    parser.add_argument("--held-out", type=Path, help="write the pairs that are set aside to this .jsonl")
    return run_command(parser, run_recipe, arguments)


if __name__ == "__main__":
    sys.exit(main())
