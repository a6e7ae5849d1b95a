"""Bundles: a trained model as a folder of config.json, model.safetensors, tokenizer.json and card.md.

Nothing is ever unpickled or executed; every file is measured, hashed and compared before it is believed.
Read next: evaluate.py.
"""

import dataclasses
import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from transformer_core.config import ModelConfig
from transformer_core.device import best_device
from transformer_core.models import Bert, Classifier, Gpt, Translation
from transformer_core.text import Tokenizer

FORMAT = 1
MODELS: dict[str, type[nn.Module]] = {
    "classifier": Classifier,
    "translation": Translation,
    "bert": Bert,
    "gpt": Gpt,
}
WEIGHTS, TOKENIZER, CONFIG, CARD = "model.safetensors", "tokenizer.json", "config.json", "card.md"
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
LARGEST_TEXT_FILE = 32 << 20
DEFAULT_MAX_BYTES = 1 << 30


class BundleError(ValueError):
    """A bundle that cannot be read: truncated, tampered with, oversized, or its parts do not fit."""


@dataclasses.dataclass(frozen=True)
class Bundle:
    """A model with everything it needs to read text.

    Args:
        name: the folder's name.
        model: in evaluation mode; shared by threads, so never changed by its readers.
        tokenizer: the one it was trained with.
        labels: names of the classes, in order; empty for models without classes.
        card: Markdown: data, licence, recipe, quality, limits.
    """

    name: str
    model: nn.Module
    tokenizer: Tokenizer
    labels: tuple[str, ...] = ()
    card: str = ""

    @property
    def kind(self) -> str:
        """The model's entry in MODELS."""
        return next(kind for kind, model in MODELS.items() if type(self.model) is model)

    @property
    def config(self) -> ModelConfig:
        """The model's configuration."""
        return self.model.config  # type: ignore[return-value]

    @property
    def n_parameters(self) -> int:
        """How many numbers the model learned; tied ones count once."""
        return sum(parameter.numel() for parameter in self.model.parameters())


def save(bundle: Bundle, folder: str | os.PathLike[str], *, dtype: torch.dtype = torch.float32) -> None:
    """Write a bundle, file by file beside its place and then moved there, so that none is ever half written.

    Args:
        folder: made where it is not there.
        dtype: of the weights on disk; float16 halves the size.

    Raises:
        BundleError: weights that are not finite in this dtype, which load would refuse.
    """
    folder = Path(folder)
    tensors = {name: p.detach().to("cpu", dtype).contiguous() for name, p in bundle.model.named_parameters()}
    if spoilt := [name for name, tensor in tensors.items() if not bool(tensor.isfinite().all())]:
        raise BundleError(f"{spoilt[0]} is not finite in {dtype} ({len(spoilt)} tensors in all)")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        draft = Path(scratch)
        save_file(tensors, draft / WEIGHTS)
        bundle.tokenizer.save(draft / TOKENIZER)
        (draft / CARD).write_text(bundle.card, encoding="utf-8")
        config = {
            "format": FORMAT,
            "kind": bundle.kind,
            "labels": list(bundle.labels),
            "model": dataclasses.asdict(bundle.config),
            "files": {name: _fingerprint(draft / name) for name in (WEIGHTS, TOKENIZER)},
        }
        (draft / CONFIG).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        for name in (WEIGHTS, TOKENIZER, CARD, CONFIG):
            os.replace(draft / name, folder / name)


def load(folder: str | os.PathLike[str], *, device: str | None = None, max_bytes: int = DEFAULT_MAX_BYTES) -> Bundle:
    """Read a bundle.

    Args:
        folder: a folder that save wrote.
        device: where the model shall be; by default the quickest at hand.
        max_bytes: bound on the size of the weights on disk.

    Raises:
        BundleError: with the file and what is wrong with it.
        ValueError: the named device is unknown or not at hand.
    """
    folder = Path(folder)
    try:
        return _load(folder, device, max_bytes)
    except OSError as error:
        raise BundleError(f"{folder.name:.100} cannot be read: {error.strerror or error}") from error
    except RecursionError:
        raise BundleError(f"{folder.name}/{CONFIG} is nested too deeply") from None


def _load(folder: Path, device: str | None, max_bytes: int) -> Bundle:
    if not folder.is_dir():
        raise BundleError(f"{folder.name}: there is no such folder; a bundle is a folder with {CONFIG} in it")
    config = _read_config(folder)
    for name, limit in ((WEIGHTS, max_bytes), (TOKENIZER, LARGEST_TEXT_FILE)):
        _check_file(folder / name, config["files"].get(name), limit)
    model_config = _model_config(folder, config)
    model = _load_weights(folder / WEIGHTS, MODELS[config["kind"]], model_config)
    try:
        tokenizer = Tokenizer.load(folder / TOKENIZER)
    except ValueError as error:
        raise BundleError(f"{folder.name}/{TOKENIZER}: {error}") from error
    if tokenizer.vocab_size > model_config.vocab_size:
        raise BundleError(
            f"{folder.name}/{TOKENIZER} has {tokenizer.vocab_size} tokens; the model reads {model_config.vocab_size}"
        )
    model = model.to(best_device(device)).eval().requires_grad_(False)
    return Bundle(folder.name, model, tokenizer, tuple(config["labels"]), _read_card(folder))


def _read_card(folder: Path) -> str:
    path = folder / CARD
    if not path.exists():
        return ""
    _check_size(path, LARGEST_TEXT_FILE)
    return path.read_text(encoding="utf-8", errors="replace")


def _check_size(path: Path, limit: int) -> None:
    where = f"{path.parent.name}/{path.name}"
    if path.is_symlink():
        raise BundleError(f"{where} is a link; a bundle's files lie in its folder")
    if not path.is_file():
        raise BundleError(f"{where} is missing")
    if (size := path.stat().st_size) > limit:
        raise BundleError(f"{where} has {size} bytes; at most {limit} are read")


def _fingerprint(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    where = f"{folder.name}/{CONFIG}"
    _check_size(path, LARGEST_TEXT_FILE)
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BundleError(f"{where} is not JSON: {error}") from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise BundleError(f"{where} is not a bundle's: it must hold an object with format={FORMAT}")
    for name, kind in (("kind", str), ("model", dict), ("files", dict), ("labels", list)):
        if not isinstance(config.get(name), kind):
            raise BundleError(f"{where}: {name} is a {type(config.get(name)).__name__}; it must be a {kind.__name__}")
    if config["kind"] not in MODELS:
        raise BundleError(f"{where}: kind={config['kind']!r:.100} is unknown; it must be one of {', '.join(MODELS)}")
    if not all(isinstance(label, str) for label in config["labels"]):
        raise BundleError(f"{where}: labels must all be strings")
    return config


def _check_file(path: Path, expected: Any, limit: int) -> None:
    where = f"{path.parent.name}/{path.name}"
    _check_size(path, limit)
    size = path.stat().st_size
    if not isinstance(expected, dict):
        raise BundleError(f"{path.parent.name}/{CONFIG} does not list {path.name} among its files")
    if size != expected.get("bytes"):
        raise BundleError(f"{where} has {size} bytes; {expected.get('bytes')} were written: it is truncated or changed")
    if _fingerprint(path)["sha256"] != expected.get("sha256"):
        raise BundleError(f"{where} is not the file that was written: its SHA-256 differs from {CONFIG}'s")


def _model_config(folder: Path, values: dict[str, Any]) -> ModelConfig:
    where = f"{folder.name}/{CONFIG}"
    try:
        config = ModelConfig(**values["model"])
    except (TypeError, ValueError) as error:
        raise BundleError(f"{where}: model: {error!s:.300}") from error
    if values["kind"] == "classifier" and len(values["labels"]) not in (0, config.n_classes):
        raise BundleError(f"{where} has {len(values['labels'])} labels for n_classes={config.n_classes}")
    return config


def _load_weights(path: Path, kind: type[nn.Module], config: ModelConfig) -> nn.Module:
    where = f"{path.parent.name}/{path.name}"
    try:
        with safe_open(path, framework="pt") as file:
            found = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
            _compare_shapes(where, found, kind, config)
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
    with torch.device("meta"):
        needed = {name: tuple(parameter.shape) for name, parameter in kind(config).named_parameters()}
    if missing := needed.keys() - found.keys():
        raise BundleError(f"{where} lacks {', '.join(sorted(missing)[:3])} ({len(missing)} tensors in all)")
    if extra := found.keys() - needed.keys():
        raise BundleError(f"{where} has {', '.join(sorted(extra)[:3])}, which this model lacks ({len(extra)} in all)")
    for name, shape in needed.items():
        if found[name] != shape:
            raise BundleError(f"{where}: {name} has shape {found[name]}; {CONFIG} calls for {shape}")
