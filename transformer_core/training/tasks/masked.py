"""Masked words: a BERT learns to guess hidden words of sentences.

Devlin et al. 2019, section 3.1.
"""

import functools
import re
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from transformer_core.bundle import Bundle
from transformer_core.config import PADDED, ModelConfig
from transformer_core.text import Tokenizer
from transformer_core.training.batching import LabelledBatch, epochs_of, in_turn, padded
from transformer_core.training.objectives import NO_PADDING, masked_words
from transformer_core.training.spec import RunSpec
from transformer_core.training.tasks.task import Task, both_parts, config_of, sample_size, word_measures

SENTENCE = re.compile(r"[^.!?。！？\n]+[.!?。！？]*[”’\"']?")
LEAST_SENTENCES = 20
HIDDEN = 0.15


def sentences_of(text: str) -> list[str]:
    """Cut a text into its sentences, each different one once, in their order."""
    return list(dict.fromkeys(found.strip() for found in SENTENCE.findall(text) if len(found.strip()) > 1))


class MaskedPart:
    """Sentences of one part, train or held out, as ids, and the same with fixed words hidden for measuring."""

    def __init__(self, texts: Sequence[str], tokenizer: Tokenizer, config: ModelConfig, device: torch.device) -> None:
        self._device, self._padding = device, config.padding
        self._mask_id, self._special = mask_id_of(tokenizer), torch.tensor(sorted(special_ids_of(tokenizer)))
        self._rows = tokenizer.ids_of(texts, max_len=config.max_len)
        self.lengths = [len(row) for row in self._rows]

    def batch(self, places: Sequence[int]) -> LabelledBatch:
        """Return the sentences at these places as a batch on the device."""
        rows = padded([self._rows[place] for place in places], self._padding)
        return LabelledBatch(rows, torch.zeros(len(rows), dtype=torch.long)).to(self._device)

    def scored(self, model: nn.Module, count: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield logits and the hidden words (all others as padding) of the first `count` sentences."""
        rng = np.random.default_rng(0)
        for places in in_turn(self.lengths[:count]):
            ids = self.batch(places).token_ids
            drawn = torch.from_numpy(rng.random(ids.shape) < HIDDEN).to(ids.device)
            hidden = drawn & ~torch.isin(ids, self._special.to(ids.device))  # (batch, pos)
            yield model(ids.masked_fill(hidden, self._mask_id)).mlm_logits, ids.masked_fill(~hidden, NO_PADDING)


def mask_id_of(tokenizer: Tokenizer) -> int:
    """Return the id of [MASK].

    Raises:
        ValueError: the vocabulary has none.
    """
    if tokenizer.mask_id is None:
        raise ValueError("the vocabulary has no [MASK], which stands for the words to guess")
    return tokenizer.mask_id


def special_ids_of(tokenizer: Tokenizer) -> frozenset[int]:
    """Return the ids of the special tokens, and PADDED, which are never hidden."""
    named = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id)
    return frozenset(id_ for id_ in (PADDED, *named, tokenizer.bos_id, tokenizer.eos_id) if id_ is not None)


def sentence_parts(spec: RunSpec, text: str) -> tuple[list[str], list[str]]:
    """Return the sentences of a text that are learned, and every tenth, which is held out.

    Raises:
        ValueError: it has too few sentences.
    """
    sentences = sentences_of(text)[: spec.data.examples + spec.data.held_out]
    if len(sentences) < LEAST_SENTENCES:
        raise ValueError(f"text has {len(sentences)} different sentences; at least {LEAST_SENTENCES} are needed")
    return [sentence for place, sentence in enumerate(sentences) if place % 10], sentences[::10]


def masked_task(spec: RunSpec, text: str, device: torch.device, begun: Bundle | None = None) -> Task:
    """Return the task of guessing hidden words; every tenth sentence is held out.

    Args:
        spec: the run's.
        text: what is learned.
        device: of the batches.
        begun: the model that the run begins with, if it is not a fresh one.

    Raises:
        ValueError: the text has too few sentences.
    """
    data, training = spec.data, spec.training
    train, held_out = sentence_parts(spec, text)
    tokenizer = (
        Tokenizer.train(data.tokenizer, train, vocab_size=data.vocab_size, lowercase=True, min_frequency=1)
        if begun is None
        else begun.tokenizer
    )
    config = config_of(spec, tokenizer, begun)
    parts = {
        name: MaskedPart(texts, tokenizer, config, device) for name, texts in (("train", train), ("held_out", held_out))
    }

    def measure(model: nn.Module, name: str, thorough: bool) -> tuple[float, float]:
        lengths = parts[name].lengths
        scored = parts[name].scored(model, len(lengths) if thorough else sample_size(lengths))
        return word_measures(scored, padding=NO_PADDING)[:2]

    part = parts["train"]
    batches, steps_per_epoch = epochs_of(part.lengths, training.batch_size, training.seed, part.batch)
    return Task(
        kind="bert",
        config=config,
        tokenizer=tokenizer,
        objective=functools.partial(
            masked_words,
            probability=HIDDEN,
            mask_id=mask_id_of(tokenizer),
            special_ids=special_ids_of(tokenizer),
        ),
        batches=batches,
        steps_per_epoch=steps_per_epoch,
        measure=both_parts(measure),
        prompt=with_hidden_word(held_out[0], tokenizer),
    )


def with_hidden_word(text: str, tokenizer: Tokenizer) -> str:
    """Put [MASK] in place of a text's middle token."""
    encoding = tokenizer.encode(text)
    own = [place for place in range(len(encoding)) if not encoding.special[place]]
    start, end = encoding.offsets[own[len(own) // 2]]
    return f"{text[:start]}{tokenizer.token_of(mask_id_of(tokenizer))}{text[end:]}"
