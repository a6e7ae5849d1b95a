"""Before it learns to classify, an encoder learns to guess hidden words of the same texts; no label is used.

Devlin et al. 2019, section 3.1. Without it the upper layers' heads stay near uniform (DECISIONS.md).
Read next: sentiment.py.
"""

import functools
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from transformer_core.config import ModelConfig
from transformer_core.models import Bert
from transformer_core.recipes.reviews import Crops, ReviewBatches
from transformer_core.training.config import TrainConfig
from transformer_core.training.loop import Run
from transformer_core.training.objectives import masked_words

STRETCHES = Crops(opening=0.0, window=1.0)


@dataclass(frozen=True)
class Pretraining:
    """How an encoder learns to guess hidden words.

    Args:
        training: as of any run.
        max_len: tokens of a stretch of text, [CLS] and [SEP] included.
        hide: probability of hiding a token.
    """

    training: TrainConfig
    max_len: int
    hide: float


def make_pretraining(model: ModelConfig, batches: ReviewBatches, settings: Pretraining, config: TrainConfig) -> Run:
    """Return the run that trains a fresh Bert on hidden words, before its first step."""
    torch.manual_seed(config.seed)
    objective = functools.partial(masked_words, probability=settings.hide)
    return Run(Bert(model), objective, batches, steps_per_epoch=len(batches), config=config)


@torch.no_grad()
def take_over(classifier: nn.Module, bert: nn.Module) -> None:
    """Give a classifier the encoder that learned to guess words."""
    learned = dict(bert.get_submodule("encoder").named_parameters())
    for name, parameter in classifier.get_submodule("encoder").named_parameters():
        parameter.copy_(learned[name])


def work_folders(work: Path) -> tuple[Path, Path]:
    """Return where the two runs of a recipe are kept: the pretraining, and the training after it."""
    return work / "pretraining", work / "training"
