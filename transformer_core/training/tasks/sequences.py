"""An encoder-decoder learns pairs: copy, reverse and sort, for which the right attention is known, or a translation.

Sorting as a toy task: Vinyals et al. 2016, section 6.1.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from transformer_core.bundle import Bundle
from transformer_core.text import PAD_ID, Tokenizer
from transformer_core.training.batching import PairBatch, epochs_of, in_turn, padded
from transformer_core.training.corpora.sequences import Rule, sequences
from transformer_core.training.objectives import next_target_words
from transformer_core.training.spec import RunSpec
from transformer_core.training.tasks.task import Task, both_parts, config_of, sample_size, word_measures

Pairs = Sequence[tuple[str, str]]


class PairPart:
    """Pairs of one part, train or held out, as ids; with `most`, at most so many of each text."""

    def __init__(
        self,
        pairs: Pairs,
        tokenizer: Tokenizer,
        device: torch.device,
        most: int | None = None,
        *,
        padding: int = PAD_ID,
    ) -> None:
        self._device, self._padding = device, padding
        sources, targets = zip(*pairs, strict=True)
        self._sources = tokenizer.ids_of(sources, max_len=most)
        self._targets = tokenizer.ids_of(targets, max_len=most)
        self.lengths = [len(row) for row in self._sources]

    def batch(self, places: Sequence[int]) -> PairBatch:
        """Return the pairs at these places as a batch on the device."""
        sources, targets = ([rows[place] for place in places] for rows in (self._sources, self._targets))
        return PairBatch(padded(sources, self._padding), padded(targets, self._padding)).to(self._device)

    def scored(self, model: nn.Module, count: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield logits and target words of the first `count` pairs."""
        for places in in_turn(self.lengths[:count]):
            batch = self.batch(places)
            yield model(batch.source_ids, batch.target_ids[:, :-1]), batch.target_ids[:, 1:]


def sequence_task(spec: RunSpec, device: torch.device, begun: Bundle | None = None) -> Task:
    """Return the task of copying, reversing or sorting letters; accuracy counts whole sequences.

    A sequence counts where each next letter is predicted correctly from the correct letters before it. Greedy decoding
    then writes the same sequence, so this is the accuracy of greedy decoding.

    Args:
        spec: the run's; data.source names the rule.
        device: of the batches.
        begun: the model that the run begins with, if it is not a fresh one.

    Raises:
        ValueError: the model's max_len is too short for the sequences.
    """
    data = spec.data
    if spec.model.max_len < data.length + 2:
        raise ValueError(f"max_len={spec.model.max_len} must be at least {data.length + 2}: length={data.length} and 2")
    return pair_task(spec, *letters_of(spec), device, begun)


def letters_of(spec: RunSpec) -> tuple[Pairs, Pairs]:
    """Return the pairs of letters that a run learns from, and those that are held out."""
    data, rule = spec.data, cast(Rule, spec.data.source)
    sizes = {"train": data.examples, "held_out": data.held_out}
    return sequences(rule, symbols=data.symbols, length=data.length, **sizes, seed=spec.training.seed)


def pair_task(spec: RunSpec, train: Pairs, held_out: Pairs, device: torch.device, begun: Bundle | None = None) -> Task:
    """Return the task of writing the second text of a pair after reading the first; one vocabulary serves both.

    Accuracy counts whole sequences of letters, and words of a translation, each after the right ones before it.

    Args:
        spec: the run's; of letters, each is a word of the vocabulary.
        train, held_out: the pairs.
        device: of the batches.
        begun: as of sequence_task.
    """
    data, training = spec.data, spec.training
    letters = data.source != "pairs"
    if begun is not None:
        tokenizer = begun.tokenizer
    elif letters:
        tokenizer = Tokenizer.train("word", [source for source, _ in train], min_frequency=1, template="bos_eos")
    else:
        texts = [text for pair in train for text in pair]
        tokenizer = Tokenizer.train(data.tokenizer, texts, vocab_size=data.vocab_size, template="bos_eos")
    config = config_of(spec, tokenizer, begun)
    parts = {
        name: PairPart(pairs, tokenizer, device, spec.model.max_len, padding=config.padding)
        for name, pairs in (("train", train), ("held_out", held_out))
    }

    def measure(model: nn.Module, name: str, thorough: bool) -> tuple[float, float]:
        lengths = parts[name].lengths
        count = len(lengths) if thorough else sample_size(lengths)
        loss, words, rows = word_measures(parts[name].scored(model, count), padding=config.padding)
        return loss, rows if letters else words

    part = parts["train"]
    batches, steps_per_epoch = epochs_of(part.lengths, training.batch_size, training.seed, part.batch)
    return Task(
        kind=spec.kind,
        config=config,
        tokenizer=tokenizer,
        objective=functools.partial(
            next_target_words, label_smoothing=training.label_smoothing, padding=config.padding
        ),
        batches=batches,
        steps_per_epoch=steps_per_epoch,
        measure=both_parts(measure),
        counts={"train": sample_size(part.lengths), "held_out": len(held_out)},
        prompt=held_out[0][0],
    )
