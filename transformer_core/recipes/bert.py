"""BERT: `python -m transformer_core.recipes.bert --data DIR` trains on captions and stories and writes its bundle.

Devlin et al. 2019, section 3.1: hidden words and sentence pairs together. Read next: bert_stages.py.
"""

import argparse
import functools
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

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
from transformer_core.recipes.bert_stages import FULL, QUICK, PackedBatches, Settings
from transformer_core.recipes.captions import NEEDS, Sentences, find_file, read_sentences, sentence_pairs
from transformer_core.recipes.card import describe_training, model_facts
from transformer_core.recipes.command import Trained, command_of, open_clock, recipe_parser, run_command, train
from transformer_core.text import PAD_ID, Tokenizer
from transformer_core.training.batching import PackedBatch
from transformer_core.training.objectives import masked_words_and_pairs
from transformer_core.training.precision import has_bfloat16

QUICK_GROUPS = 60
CAPTIONS_TO_TEST, SET_ASIDE_SEED = "captions.val.en.gz", 0


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
    config = replace(settings.model, vocab_size=tokenizer.vocab_size, target_vocab_size=None, pad_id=PAD_ID)
    clock, trained = open_clock(chosen), []
    model: nn.Module | None = None
    for stage in settings.stages:
        packed = PackedBatches(learned, tokenizer, stage, config.max_len, chosen.seed)
        model, cost = train(
            functools.partial(_fresh_or_trained, config, model),
            functools.partial(masked_words_and_pairs, probability=stage.hide),
            functools.partial(_batches_on, packed, device),
            steps_per_epoch=len(packed),
            config=replace(stage.training, seed=chosen.seed, precision=precision),
            device=device,
            chosen=chosen,
            clock=clock,
            stage=stage.name,
        )
        trained.append(cost)
    assert model is not None
    bundle = Bundle(chosen.out.name, model, tokenizer)
    return write_bundle(bundle, trained, settings, set_aside, n_learned=len(texts), chosen=chosen)


def _fresh_or_trained(config: ModelConfig, model: nn.Module | None) -> nn.Module:
    return Bert(config) if model is None else model.requires_grad_()


def _batches_on(packed: PackedBatches, device: torch.device, epoch: int) -> Iterator[PackedBatch]:
    return (batch.to(device) for batch in packed.epoch(epoch))


def write_bundle(
    bundle: Bundle,
    trained: Sequence[Trained],
    settings: Settings,
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
        "training": "; then ".join(
            describe_training(
                cost,
                stage.training,
                batch=f"{stage.training.batch_size} sentences or pairs",
                dropout=settings.model.dropout,
            )
            for cost, stage in zip(trained, settings.stages, strict=True)
        ),
        **model_facts(on_disk, trained[-1], megabytes=megabytes),
    }
    save(replace(on_disk, card=bert_card(on_disk, facts, words, told, full=full)), chosen.out, dtype=torch.float16)
    return (
        f"hidden words top-1 {words['top1']:.1%}, top-5 {words['top5']:.1%}, pairs {told['accuracy']:.1%}, "
        f"{trained[-1].cpu_minutes:.1f} minutes of processor time"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    parser = recipe_parser("bert", makes="the BERT", data=NEEDS, out="bert")
    parser.add_argument("--held-out", type=Path, help="write the pairs that are set aside to this .jsonl")
    return run_command(parser, run_recipe, arguments)


if __name__ == "__main__":
    sys.exit(main())
