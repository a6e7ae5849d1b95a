"""Tiny models with lively weights, inputs with padding in them, and small bundles made of them."""

import math
import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.helpers import ROOT
from transformer_core import packed_linear
from transformer_core.analysis.timing import Stopwatch
from transformer_core.analysis.translation.letter_search import trained_letters
from transformer_core.bundle import CONFIGS, Bundle
from transformer_core.bundle import MODELS as KINDS
from transformer_core.checkpoints import load
from transformer_core.config import ModelConfig
from transformer_core.examples import Example
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
from transformer_core.text import Tokenizer
from transformer_core.trial import FEWEST

MODELS: tuple[type[nn.Module], ...] = (
    *(Encoder, Decoder, MaskedDecoder),
    *(Classifier, SentenceEncoder, Translation, Bert, Gpt, TokenClassifier, AnswerFinder),
)
TINY_RECURRENT: dict[str, Any] = {"vocab_size": 13, "d_model": 16, "d_hidden": 10, "max_len": 12, "dropout": 0.0}
ATOL = 1e-5
ROTARY: dict[str, Any] = {"positions": "rotary", "rotary_halves": True}
RMS: dict[str, Any] = {"norm": "rms_norm", "bias": False}
TODAY: dict[str, dict[str, Any]] = {  # options of models since 2017, as families combine them
    "llama": ROTARY | RMS | {"gated": True, "activation": "silu", "n_heads": 4, "n_kv_heads": 2, "rotary_base": 100.0},
    "multi_query": {"n_heads": 4, "n_kv_heads": 1, "d_head": 6, "score_width": 9.0},
    "grouped_additive": {"n_heads": 4, "n_kv_heads": 2, "scoring": "additive"},
    "window": {"windows": (2, None), "positions": "alibi"},
    "qwen2": ROTARY | RMS | {"query_key_value_bias": True, "windows": (None, 3), "tied_output": False},
    "gemma2": ROTARY
    | RMS
    | {"norm_order": "both", "score_cap": 2.0, "logit_cap": 3.0, "gated": True, "windows": (3, 3)},
    "gemma3": ROTARY
    | RMS
    | {"norm_order": "both", "query_key_norm": "head", "windows": (2, None), "rotary_base_in_window": 10.0}
    | {"rotary_scaling": "linear", "rotary_factor": 8.0, "scale_embeddings": True},
    "olmo2": ROTARY | RMS | {"norm_order": "output", "query_key_norm": "all", "n_heads": 4, "n_kv_heads": 2},
    "neox": ROTARY | {"parallel": True, "norm_order": "pre", "rotary_dims": 2, "activation": "gelu"},
    "llama3": {"positions": "rotary", "rotary_scaling": "llama3", "rotary_factor": 8.0, "rotary_original_len": 8},
    "mixture": ROTARY
    | RMS
    | {"n_experts": 5, "n_active_experts": 2, "expert_weights_sum_to_one": True}
    | {"norm_order": "pre", "gated": True, "activation": "silu"},
    "shared_expert": {"n_experts": 3, "n_active_experts": 1, "shared_d_ff": 20, "shared_gate": True},
    "factorised": {"embedding_width": 6, "embedding_norm": True, "tied_output": False, "scale_embeddings": True},
    "modernbert": ROTARY
    | {"norm_bias": False, "bias": False, "head_bias": False, "first_attention_norm": False, "embedding_norm": True}
    | {"norm_order": "pre", "gated": True, "pooler": "gelu", "pooler_norm": True, "windows": (None, 2)},
    "t5": RMS
    | {"positions": "relative", "relative_buckets": 8, "relative_distance": 5, "scale_scores": False}
    | {"norm_order": "pre", "scale_output": True, "d_head": 6, "activation": "relu"},
    "albert": {"shared_layers": True, "head_activation": "gelu_tanh", "norm_order": "post"},
    "yarn": ROTARY | {"rotary_scaling": "yarn", "rotary_factor": 4.0, "rotary_original_len": 8},
}
MIXTURES = tuple(name for name, changes in TODAY.items() if "n_experts" in changes)
CROSSING = (Decoder, Translation)  # kinds with cross-attention, beside which no sublayer runs in parallel
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


@contextmanager
def small_weights_packed() -> Iterator[None]:
    """Pack every weight, however small; packed ones give the same bits wherever they lie in memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_linear, "PACKED_FROM", 1)
        yield


class _Numbers(TorchDispatchMode):
    """Counts the numbers that torch's operations give back."""

    made = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.made += sum(part.numel() for part in tree_leaves(found) if isinstance(part, Tensor))
        return found


def numbers_made(call: Callable[[], object]) -> float:
    """Return how many numbers torch makes in a call: a measure of its work that stands in for seconds."""
    with _Numbers() as counted:
        call()
    return float(counted.made)


def work_for_time(
    monkeypatch: pytest.MonkeyPatch, work: Callable[[Callable[[], object]], float] = numbers_made
) -> None:
    """Let every stopwatch return the work of a call in place of its seconds."""
    monkeypatch.setattr(Stopwatch, "seconds", lambda _, call, **options: work(call))


def exactly(message: str) -> str:
    """Return the pattern for pytest.raises that a whole message must match, to the last value in it."""
    return f"(?s)^{re.escape(message)}$"


@lru_cache(maxsize=3)
def shipped(name: str) -> Bundle:
    """Return a shipped model, one of the last few kept between tests; no test may change it."""
    return load(ROOT / "assets" / "checkpoints" / name, device="cpu")


READ_BY = {  # of each kind that pages read, a shipped model whose tokenizer will do
    **dict.fromkeys(("classifier", "encoder"), "sentiment"),
    **dict.fromkeys(("bert", "tagger", "answerer"), "bert"),
    "gpt": "gpt",
    "translation": "translation-en-fr",
    "seq2seq": "seq2seq-en-fr",
    "lm": "lm-gru",
}
ODD_WEIGHTS: dict[str, Callable[[Tensor], object]] = {
    "zero": Tensor.zero_,
    "denormal": lambda weight: weight.mul_(1e-42),
    "large": lambda weight: weight.mul_(30),
    "biased": lambda weight: weight[:1].fill_(1e5) if weight.dim() == 1 else None,
    "short": lambda weight: None,  # of a model with one head that reads FEWEST tokens
    "overflowing": lambda weight: weight.mul_(1e5),
    "beyond": lambda weight: weight.view(-1)[:1].fill_(3e38),
}


def odd_model(kind: str, weights: str) -> Bundle:
    """Return a model of this kind whose weights are odd, or that has options of TODAY, called KIND-WEIGHTS."""
    tokenizer = shipped(READ_BY[kind]).tokenizer
    sizes = {"vocab_size": tokenizer.vocab_size, "max_len": FEWEST if weights == "short" else 64}
    if kind not in CONFIGS and weights == "short":
        sizes["n_heads"] = 1
    model = made(KINDS[kind], **(sizes | TODAY.get(weights, {}))).requires_grad_(False)
    for weight in model.parameters() if weights in ODD_WEIGHTS else ():
        ODD_WEIGHTS[weights](weight)
    return Bundle(f"{kind}-{weights}", model, tokenizer)


@lru_cache(maxsize=4)
def small_tokenizer() -> Tokenizer:
    """Return a tokenizer of at most 13 words."""
    return Tokenizer.train("word", ["a glass box", "a glass bell", "a box"] * 3, vocab_size=13)


def small_bundle(**changes: Any) -> Bundle:
    """Return a classifier that nobody trained."""
    return Bundle("glass", made(Classifier, **changes), small_tokenizer(), ("no", "yes"))


SENTENCE = "a cat sat on the mat"


@cache
def sentence_tokenizer() -> Tokenizer:
    """Return a tokenizer of a few words that marks both ends of a text."""
    return Tokenizer.train("word", [SENTENCE, "le chat dort"], min_frequency=1, template="bos_eos")


def seq2seq_bundle(**changes: Any) -> Bundle:
    """Return a recurrent translator that nobody trained, called old."""
    tokenizer = sentence_tokenizer()
    return Bundle("old", made(Seq2Seq, vocab_size=tokenizer.vocab_size, **changes).requires_grad_(False), tokenizer)


def translation_bundle() -> Bundle:
    """Return a Transformer that translates, not well, with the same tokenizer, called new."""
    tokenizer = sentence_tokenizer()
    return Bundle("new", made(Translation, vocab_size=tokenizer.vocab_size).requires_grad_(False), tokenizer)


def lm_bundle(name: str = "lm", **changes: Any) -> Bundle:
    """Return a recurrent language model of characters."""
    characters = Tokenizer.train("character", [SENTENCE], min_frequency=1, template="none")
    model = made(RecurrentLm, vocab_size=characters.vocab_size, max_len=24, **changes)
    return Bundle(name, model.requires_grad_(False), characters)


def random_weights(layers: int, heads: int, n: int, seed: int = 0) -> np.ndarray:
    """Return rows that sum to 1, of shape (layer, head, query_pos, key_pos)."""
    raw = np.random.default_rng(seed).random((layers, heads, n, n))
    return raw / raw.sum(-1, keepdims=True)


SOURCE = "a b c a b"


@lru_cache(maxsize=1)
def letters_bundle() -> Bundle:
    """Return a translator that reverses letters, not well."""
    letters = trained_letters("reverse", epochs=4, seed=0)
    return Bundle("letters", letters.model, letters.tokenizer)


FUNCTIONS = {
    "sqrt": math.sqrt,
    "tanh": math.tanh,
    "sin": math.sin,
    "cos": math.cos,
    "exp": math.exp,
    "sigma": lambda x: 1 / (1 + math.exp(-x)),
}
NAMES = FUNCTIONS | {"max": max, "abs": abs, "inf": math.inf, "pi": math.pi}
INNER = r"\{([^{}]*)\}"  # braces without braces in them


def value_of(latex: str) -> float:
    """Return the number that a right side such as ``\\frac{1\\cdot(-2)}{\\sqrt{4}}+0.5`` comes to."""
    text = latex.rpartition("=")[2]
    text = re.sub(r"\\left|\\right|\\,", "", text)
    text = re.sub(r"\\times10\^\{(-?\d+)\}", r"e\1", text)
    text = re.sub(r"(?<![\d.])10\^\{(-?\d+)\}", r"1e\1", text)
    text = re.sub(r"_\{\\Sigma\d+\}", "", text).replace(r"\tfrac12", "0.5").replace(r"\infty", "inf")
    text = re.sub(r"\\(sin|cos)\s*(\d+(?:\.\d+)?(?:e-?\d+)?)", r"\1(\2)", text)
    before = ""
    while before != text:
        before = text
        text = re.sub(rf"\\underbrace{INNER}", r"(\1)", text)
        text = re.sub(rf"\\sqrt{INNER}", r"sqrt(\1)", text)
        text = re.sub(rf"\\frac{INNER}{INNER}", r"((\1)/(\2))", text)
        text = re.sub(rf"(?<!\d)e\^{INNER}", r"exp(\1)", text)
        text = re.sub(rf"\^{INNER}", r"**(\1)", text)
    text = re.sub(r"\|([^|]*)\|", r"abs(\1)", text).replace("^", "**").replace(r"\cdot", "*")
    text = re.sub(r"(?<=[\d)])(?=\(|sin|cos)", "*", text.replace("\\", ""))
    return float(eval(text, {"__builtins__": {}}, NAMES))


GOOD, BAD = ("good", "great", "lovely", "superb"), ("bad", "awful", "dull", "poor")
FILLER = ("the", "film", "plot", "was", "and", "actor", "a", "scene", "story", "music")


def separable(n: int, *, seed: int = 0) -> list[Example]:
    """Return n different sentences; those with a good word are of class 1, those with a bad word of class 0."""
    rng = random.Random(seed)
    found: dict[str, int] = {}
    while len(found) < n:
        label = len(found) % 2
        words = [*rng.choices(FILLER, k=rng.randint(4, 14)), rng.choice((BAD, GOOD)[label])]
        rng.shuffle(words)
        found[" ".join(words) + "."] = label
    return [Example(text, label) for text, label in found.items()]
