"""Tiny models with lively weights, and inputs with padding in them."""

import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from transformer_core.config import ModelConfig
from transformer_core.models import (
    AnswerFinder,
    Bert,
    BertOutput,
    Classifier,
    Decoder,
    Encoder,
    Gpt,
    MaskedDecoder,
    SentenceEncoder,
    TokenClassifier,
    Translation,
)
from transformer_core.models.recurrent import (
    RecurrentClassifier,
    RecurrentClassifierConfig,
    RecurrentConfig,
    RecurrentLm,
    RecurrentLmConfig,
    Seq2Seq,
)

MODELS: tuple[type[nn.Module], ...] = (
    *(Encoder, Decoder, MaskedDecoder),
    *(Classifier, SentenceEncoder, Translation, Bert, Gpt, TokenClassifier, AnswerFinder),
)
TINY_RECURRENT: dict[str, Any] = {"vocab_size": 13, "d_model": 16, "d_hidden": 10, "max_len": 12, "dropout": 0.0}
ATOL = 1e-5
Inputs = tuple[Tensor, ...]


def tiny(**changes: Any) -> ModelConfig:
    """Make a config of a model that runs in a millisecond; every size differs, so that mixed-up axes show."""
    sizes = {"vocab_size": 13, "d_model": 16, "n_heads": 2, "d_ff": 24, "n_layers": 2, "max_len": 12, "dropout": 0.0}
    return ModelConfig(**(sizes | changes))


def lively(module: nn.Module, seed: int = 0) -> nn.Module:
    """Shake every parameter, biases and norms too, so that none can be left out unnoticed; set evaluation mode."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return module.eval()


def tiny_recurrent(**changes: Any) -> RecurrentConfig:
    """Make a config of a recurrent model that runs in a millisecond; every size differs."""
    return RecurrentConfig(**(TINY_RECURRENT | changes))


def tiny_recurrent_lm(**changes: Any) -> RecurrentLmConfig:
    """Make a config of a recurrent language model, with the sizes of tiny_recurrent."""
    return RecurrentLmConfig(**(TINY_RECURRENT | changes))


def tiny_recurrent_classifier(**changes: Any) -> RecurrentClassifierConfig:
    """Make a config of a recurrent classifier, with the sizes of tiny_recurrent."""
    return RecurrentClassifierConfig(**(TINY_RECURRENT | changes))


def made(kind: type[nn.Module], seed: int = 0, **changes: Any) -> Any:
    """Make a tiny lively model."""
    torch.manual_seed(seed)
    configs: dict[type[nn.Module], Callable[..., Any]] = {
        Seq2Seq: tiny_recurrent,
        RecurrentLm: tiny_recurrent_lm,
        RecurrentClassifier: tiny_recurrent_classifier,
    }
    return lively(kind(configs.get(kind, tiny)(**changes)), seed)


def padded_ids(batch: int, length: int, vocab_size: int = 13, seed: int = 0) -> Tensor:
    """Return ids from 1 on; sentence i ends in i pads of 0, at most all but one."""
    ids = torch.randint(1, vocab_size, (batch, length), generator=torch.Generator().manual_seed(seed))
    for row in range(batch):
        ids[row, length - min(row, length - 1) :] = 0
    return ids


def inputs(kind: type[nn.Module], seed: int = 0, *, batch: int = 3, source: int = 6, target: int = 5) -> Inputs:
    """Return a batch with padding for any model; source and target differ in length."""
    if kind is Decoder:
        memory = torch.randn(batch, source, 16, generator=torch.Generator().manual_seed(seed))
        return padded_ids(batch, target, seed=seed), memory
    if kind in (Translation, Seq2Seq):
        return padded_ids(batch, source, seed=seed), padded_ids(batch, target, seed=seed + 1)
    return (padded_ids(batch, target, seed=seed),)


def first_of(output: Tensor | BertOutput) -> Tensor:
    """Return the tensor that a model's output consists of, or starts with."""
    return output if isinstance(output, Tensor) else output[0]


def close(ours: Tensor, theirs: Tensor, atol: float = ATOL) -> None:
    """Assert equal to within `atol`, NaN nowhere."""
    torch.testing.assert_close(ours, theirs, atol=atol, rtol=0.0, equal_nan=False)


def exactly(message: str) -> str:
    """Return the pattern for pytest.raises that a whole message must match, to the last value in it."""
    return f"(?s)^{re.escape(message)}$"
