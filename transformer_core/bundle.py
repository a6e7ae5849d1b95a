"""Bundles: a trained model as a folder of config.json, model.safetensors, tokenizer.json and cards.

Nothing is ever unpickled or executed.
Read next: transformer_core/checkpoints.py
"""

import dataclasses
import json
import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from transformer_core.config import ModelConfig
from transformer_core.device import best_device
from transformer_core.layers.initialization import Undrawn, shapes_alone
from transformer_core.layers.tuned_lens import TunedLens
from transformer_core.measured import MEASURED, NOTHING_MEASURED, Measured, read_measured, write_measured
from transformer_core.models import AnswerFinder, Bert, Classifier, Gpt, SentenceEncoder, TokenClassifier, Translation
from transformer_core.models.recurrent import (
    RecurrentClassifier,
    RecurrentClassifierConfig,
    RecurrentConfig,
    RecurrentLm,
    RecurrentLmConfig,
    Seq2Seq,
)
from transformer_core.reader import READERS, Asks, Reader
from transformer_core.text import Tokenizer, make_batch
from transformer_core.text.characters import check_text
from transformer_core.text.chat import ChatTemplate
from transformer_core.untrusted.bundle_files import (
    CARD,
    CARD_ZH,
    CONFIG,
    FORMAT,
    LARGEST_TEXT_FILE,
    LENS,
    TOKENIZER,
    WEIGHTS,
    BundleError,
    check_file,
    check_headers,
    fingerprint,
    read_card,
    read_config,
)
from transformer_core.untrusted.tensors import header, kinds_of

MODELS: dict[str, type[nn.Module]] = {
    "classifier": Classifier,
    "translation": Translation,
    "bert": Bert,
    "gpt": Gpt,
    "encoder": SentenceEncoder,
    "tagger": TokenClassifier,
    "answerer": AnswerFinder,
    "seq2seq": Seq2Seq,
    "lm": RecurrentLm,
    "recurrent_classifier": RecurrentClassifier,
}
SPOKEN_WITH_AN = ("encoder", "answerer", "lm")
M = TypeVar("M", bound=nn.Module)
Answered = tuple[str, str | int | None]  # a text, and its class or its target, if it has one
LABELLED = ("classifier", "tagger", "recurrent_classifier")  # kinds with named classes
WITH_LENS = ("gpt", "bert")  # kinds whose every layer a tuned lens can read
CONFIGS: dict[str, type] = {
    "seq2seq": RecurrentConfig,
    "lm": RecurrentLmConfig,
    "recurrent_classifier": RecurrentClassifierConfig,
}  # of all other kinds, ModelConfig
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
DEFAULT_MAX_BYTES = 2 << 30
MOST_PARAMETERS = 650_000_000  # 2.6 GB in float32, whatever the file has; BERT large has 335 million, Qwen 3 0.6B 596
MOST_HEADS = 2_048  # of all layers; their weights for 128 tokens take 134 MB; GPT-2's largest model has 1,200
MOST_ENTRIES = 262_144  # scores of as many words for 128 tokens take 134 MB


@dataclasses.dataclass(frozen=True)
class Bundle:
    """A model with everything it needs to read text.

    Args:
        name: the folder's name.
        model: in evaluation mode; shared by threads, so never changed by its readers.
        tokenizer: the one it was trained with.
        labels: names of the classes, in order; empty for models without classes.
        card: Markdown: data, licence, recipe, quality, limits.
        source: the folder of another library's checkpoint that it was read from.
        stored: how many tensors of its files had which type of numbers, before they were made float32.
        measured: results on texts that it was not trained on, if there are any.
        reads: the language of the texts that it learned to read, one of LANGUAGES; empty if it is not known.
        card_zh: the card in Chinese, if there is one.
        target_tokenizer: what cuts the texts of a translation's target, where that is another one; both have the same
            ids.
        chat: what makes one text of a conversation, if the model was trained on such.
        lens: a tuned lens that was trained for these weights, if there is one.
        read_held_out: of the model of a run, reads the texts that the run never learned from; None where nobody knows.

    Raises:
        BundleError: a label is no text, since it holds a lone surrogate.
    """

    name: str
    model: nn.Module
    tokenizer: Tokenizer
    labels: tuple[str, ...] = ()
    card: str = ""
    source: Path | None = None
    measured: Measured = NOTHING_MEASURED
    reads: str = ""
    card_zh: str = ""
    target_tokenizer: Tokenizer | None = None
    chat: ChatTemplate | None = None
    lens: TunedLens | None = None
    read_held_out: Callable[[], Sequence[Answered]] | None = None
    stored: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        for place, label in enumerate(self.labels):
            try:
                check_text(label, f"labels[{place}]")
            except ValueError as error:
                raise BundleError(f"{self.name}: {error}") from None

    @property
    def of_target(self) -> Tokenizer:
        """What cuts the texts that the model writes: target_tokenizer, or the tokenizer of all texts."""
        return self.target_tokenizer or self.tokenizer

    def to_tokens(self, *texts: str, target: bool = False) -> Tensor:
        """Return the ids of texts with their special tokens, padded on the right, where the model is. # (text, pos)

        Args:
            target: they are translations, and begin as the model writes them.

        Raises:
            ValueError: as of Tokenizer.encode.
        """
        tokenizer = self.of_target if target else self.tokenizer
        encodings = [tokenizer.encode(text, max_len=self.config.max_len) for text in texts]
        return make_batch(encodings, padding=self.config.padding).token_ids.to(self.device)

    def card_in(self, language: str) -> str:
        """Return the card in a language, one of LANGUAGES; in English where there is none in it."""
        return (self.card_zh if language == "zh" else "") or self.card

    @property
    def kind(self) -> str:
        """The model's entry in MODELS."""
        return next(kind for kind, model in MODELS.items() if type(self.model) is model)

    @property
    def reader(self) -> Reader:
        """What the model answers, and where in its output that stands."""
        return READERS.get(self.kind, Reader)(self.config, self.of_target, self.labels)

    def must_ask(self, *asks: Asks) -> None:
        """Refuse a model that is asked for none of these, by default a model that answers nothing.

        Raises:
            ValueError: it is one.
        """
        asks = asks or get_args(Asks)
        if self.reader.asks not in asks:
            fitting = ", ".join(kind for kind, reader in READERS.items() if reader.asks in asks)
            raise ValueError(f"bundle={self.name!r} is a {self.kind}; it must be one of {fitting}")

    def model_as(self, *kinds: type[M]) -> M:
        """Return the model, which must be of one of these classes.

        Raises:
            ValueError: it is of another kind.
        """
        if not isinstance(self.model, kinds):
            names = [name for kind in kinds for name, model in MODELS.items() if model is kind]
            needed = " or ".join(f"{'an' if name in SPOKEN_WITH_AN else 'a'} {name}" for name in names)
            raise ValueError(f"bundle={self.name!r} is a {self.kind}; it must be {needed}")
        return self.model

    def must_be_dense(self) -> None:
        """Refuse a mixture of experts, whose feed-forward layers have no inside that every token goes through.

        Raises:
            ValueError: it is one.
        """
        if experts := getattr(self.config, "n_experts", 0):
            raise ValueError(f"bundle={self.name!r} has n_experts={experts}; it must have 0: one inside for all tokens")

    @property
    def config(self) -> ModelConfig:
        """The model's configuration; a recurrent model's is one of models/recurrent/config.py."""
        return self.model.config  # type: ignore[return-value]

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    @property
    def n_parameters(self) -> int:
        """How many numbers the model learned; tied ones count once."""
        return sum(parameter.numel() for parameter in self.model.parameters())


def make_config(kind: str, values: Mapping[str, Any]) -> ModelConfig:
    """Return the configuration of a kind of model from its values, as config.json and a run's facts have them.

    A recurrent model's is one of models/recurrent/config.py.

    Raises:
        TypeError, ValueError: a value is unknown, missing or outside its range.
    """
    return CONFIGS.get(kind, ModelConfig)(**values)


def save(bundle: Bundle, folder: str | os.PathLike[str], *, dtype: torch.dtype = torch.float32) -> None:
    """Write a bundle; every file is written to a temporary folder first, so that none is ever half written.

    Args:
        folder: created if it is missing.
        dtype: of the weights on disk; float16 halves the size.

    Raises:
        BundleError: weights that are not finite in this dtype, which load would refuse; two tokenizers, of which a
            bundle holds one.
    """
    if bundle.target_tokenizer is not None:
        raise BundleError(f"{bundle.name} has a tokenizer for its target, and a bundle holds one for all texts")
    folder = Path(folder)
    modules = {WEIGHTS: bundle.model} | ({} if bundle.lens is None else {LENS: bundle.lens})
    tensors = {name: _tensors_of(module, dtype) for name, module in modules.items()}
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        draft = Path(scratch)
        for name, own in tensors.items():
            save_file(own, draft / name)
            (draft / name).chmod(0o644)  # safetensors makes it readable for its owner only
        bundle.tokenizer.save(draft / TOKENIZER)
        (draft / CARD).write_text(bundle.card, encoding="utf-8")
        if bundle.card_zh:
            (draft / CARD_ZH).write_text(bundle.card_zh, encoding="utf-8")
        config = {
            "format": FORMAT,
            "kind": bundle.kind,
            "labels": list(bundle.labels),
            "reads": bundle.reads,
            "model": dataclasses.asdict(bundle.config),
            "chat": None if bundle.chat is None else dataclasses.asdict(bundle.chat),
            "files": {name: fingerprint(draft / name) for name in (*modules, TOKENIZER)},
        }
        (draft / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        if bundle.measured != NOTHING_MEASURED:
            write_measured(draft, bundle.measured)
        for name in (MEASURED, CARD_ZH, LENS):
            if not (draft / name).exists():
                (folder / name).unlink(missing_ok=True)  # of the bundle that was here before
        for name in (WEIGHTS, LENS, TOKENIZER, CARD, CARD_ZH, MEASURED, CONFIG):
            if (draft / name).exists():
                os.replace(draft / name, folder / name)


def _tensors_of(module: nn.Module, dtype: torch.dtype) -> dict[str, Tensor]:
    tensors = {name: p.detach().to("cpu", dtype).contiguous() for name, p in module.named_parameters()}
    if spoilt := [name for name, tensor in tensors.items() if not bool(tensor.isfinite().all())]:
        raise BundleError(f"{spoilt[0]} is not finite in {dtype} ({len(spoilt)} tensors in all)")
    return tensors


def load_bundle(folder: Path, *, device: str | None, max_bytes: int) -> Bundle:
    """Read a folder that save wrote.

    Args:
        device, max_bytes: as in checkpoints.load.

    Raises:
        BundleError: with the file and what is wrong with it.
        OSError: a file cannot be read.
        ValueError: the named device is unknown or not available.
    """
    if not folder.is_dir():
        raise BundleError(f"{folder.name}: there is no such folder; a bundle is a folder with {CONFIG} in it")
    config = read_config(folder, MODELS)
    for name, limit in ((WEIGHTS, max_bytes), (TOKENIZER, LARGEST_TEXT_FILE)):
        check_file(folder / name, config["files"].get(name), limit)
    model_config = _model_config(folder, config)
    model = load_weights(folder / WEIGHTS, MODELS[config["kind"]], model_config)
    try:
        tokenizer = Tokenizer.load(folder / TOKENIZER)
    except ValueError as error:
        raise BundleError(f"{folder.name}/{TOKENIZER}: {error}") from error
    if tokenizer.vocab_size > model_config.vocab_size:
        raise BundleError(
            f"{folder.name}/{TOKENIZER} has {tokenizer.vocab_size} tokens; the model reads {model_config.vocab_size}"
        )
    tokenizer = tokenizer.widened(model_config.vocab_size)
    if config["kind"] == "translation" and model_config.starts_with_pad:
        tokenizer.bos_id = model_config.pad_id
    model = model.to(best_device(device)).eval().requires_grad_(False)
    lens = _lens_in(folder, config, model_config, max_bytes)
    lens = None if lens is None else lens.to(best_device(device))
    labels, reads = tuple(config["labels"]), config.get("reads", "")
    if config["kind"] in LABELLED and not labels:
        labels = tuple(f"LABEL_{place}" for place in range(model_config.n_classes))
    card, card_zh = read_card(folder), read_card(folder, CARD_ZH)
    measured, chat = read_measured(folder), _chat_in(folder, config)
    stored = kinds_of(kind for _, kind in header(folder / WEIGHTS, f"{folder.name}/{WEIGHTS}").values())
    return Bundle(
        folder.name, model, tokenizer, labels, card, None, measured, reads, card_zh, chat=chat, lens=lens, stored=stored
    )


def _lens_in(folder: Path, values: dict[str, Any], config: ModelConfig, max_bytes: int) -> TunedLens | None:
    if LENS not in values["files"]:
        return None
    if values["kind"] not in WITH_LENS:
        raise BundleError(f"{folder.name}/{LENS} is of a {values['kind']}; only {' or '.join(WITH_LENS)} has one")
    check_file(folder / LENS, values["files"][LENS], max_bytes)
    lens = load_weights(folder / LENS, TunedLens, config).eval().requires_grad_(False)
    assert isinstance(lens, TunedLens)
    return lens


def _chat_in(folder: Path, values: dict[str, Any]) -> ChatTemplate | None:
    said = values.get("chat")
    if said is None:
        return None
    try:
        return ChatTemplate(said["source"], tuple((name, token) for name, token in said["tokens"]))
    except (KeyError, TypeError, ValueError) as error:
        raise BundleError(f"{folder.name}/{CONFIG}: chat: {error!s:.300}") from error


def _model_config(folder: Path, values: dict[str, Any]) -> ModelConfig:
    where = f"{folder.name}/{CONFIG}"
    try:
        config = make_config(values["kind"], values["model"])
    except (TypeError, ValueError) as error:
        raise BundleError(f"{where}: model: {error!s:.300}") from error
    if values["kind"] in LABELLED and len(values["labels"]) not in (0, config.n_classes):
        raise BundleError(f"{where} has {len(values['labels'])} labels for n_classes={config.n_classes}")
    return config


def needed_shapes(where: str, kind: type[nn.Module], config: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter of a model, of which nothing is allocated.

    Args:
        where: folder and file, for messages.

    Raises:
        BundleError: the model is larger than any that is opened, or a pass over a text would be.
    """
    heads = getattr(config, "n_layers", 1) * getattr(config, "n_heads", 1)
    entries = max(config.vocab_size, getattr(config, "target_vocab_size", 0))
    for named, count, most in (("n_layers x n_heads", heads, MOST_HEADS), ("vocab_size", entries, MOST_ENTRIES)):
        if count > most:
            raise BundleError(f"{where}: the model has {named}={count:,}; at most {most:,} are opened")
    with shapes_alone():
        needed = {name: tuple(parameter.shape) for name, parameter in kind(config).named_parameters()}
    if (parameters := sum(map(math.prod, needed.values()))) > MOST_PARAMETERS:
        raise BundleError(f"{where}: the model has {parameters:,} parameters; at most {MOST_PARAMETERS:,} are opened")
    return needed


def load_weights(path: Path, kind: type[nn.Module], config: ModelConfig) -> nn.Module:
    """Return a model of this kind and config with the weights of a safetensors file, after checking that they fit.

    Raises:
        BundleError: a tensor is missing, too much, of another shape, or not finite.
    """
    where = f"{path.parent.name}/{path.name}"
    check_headers(path)
    try:
        with safe_open(path, framework="pt") as file:
            _compare_shapes(where, {name: shape for name, (shape, _) in header(path, where).items()}, kind, config)
            with Undrawn():
                model = kind(config)
            with torch.no_grad():
                for name, parameter in model.named_parameters():
                    tensor = file.get_tensor(name)
                    if tensor.dtype not in DTYPES or not bool(tensor.to(parameter.dtype).isfinite().all()):
                        raise BundleError(f"{where}: {name} must hold finite floating-point numbers")
                    parameter.copy_(tensor)
    except SafetensorError as error:
        raise BundleError(f"{where} is not a safetensors file: {error}") from error
    return model


def _compare_shapes(where: str, found: dict[str, tuple], kind: type[nn.Module], config: ModelConfig) -> None:
    needed = needed_shapes(where, kind, config)
    if missing := needed.keys() - found.keys():
        raise BundleError(f"{where} lacks {', '.join(sorted(missing)[:3])} ({len(missing)} tensors in all)")
    if extra := found.keys() - needed.keys():
        raise BundleError(f"{where} has {', '.join(sorted(extra)[:3])}, which this model lacks ({len(extra)} in all)")
    for name, shape in needed.items():
        if found[name] != shape:
            raise BundleError(f"{where}: {name} has shape {found[name]}; {CONFIG} calls for {shape}")
