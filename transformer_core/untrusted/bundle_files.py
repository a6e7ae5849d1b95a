"""The files of a bundle: the size and SHA-256 of each are checked before it is read.

Nothing outside the folder is read, whatever config.json says.
"""

import hashlib
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

FORMAT = 1
WEIGHTS, TOKENIZER, CONFIG, CARD = "model.safetensors", "tokenizer.json", "config.json", "card.md"
CARD_ZH = "card.zh.md"
LENS = "lens.safetensors"
LARGEST_TEXT_FILE = 32 << 20
LARGEST_HEADER = 2 << 20  # about 20,000 tensors; BERT has 200
LANGUAGES = ("en", "zh")


class BundleError(ValueError):
    """A bundle that cannot be read: truncated, tampered with, oversized, or its parts do not fit."""


def check_size(path: Path, limit: int) -> None:
    """Raise BundleError unless this is a regular file, of at most `limit` bytes."""
    where = f"{path.parent.name}/{path.name}"
    if path.is_symlink():
        raise BundleError(f"{where} is a link; a bundle's files lie in its folder")
    if not path.is_file():
        raise BundleError(f"{where} is missing")
    if (size := path.stat().st_size) > limit:
        raise BundleError(f"{where} has {size} bytes; at most {limit} are read")


def check_headers(*paths: Path) -> None:
    """Check how long the lists of tensors are with which safetensors files begin; all of a list is read at once.

    Raises:
        BundleError: the lists of these files have more than LARGEST_HEADER bytes in all.
    """
    left = LARGEST_HEADER
    for path in paths:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
        if left < size < path.stat().st_size:  # a longer one is no list, which its reader says
            raise BundleError(
                f"{path.parent.name}/{path.name} begins with a list of tensors of {size:,} bytes; "
                f"at most {left:,} are read"
            )
        left -= size


def fingerprint(path: Path) -> dict[str, Any]:
    """Return a file's size in bytes and its SHA-256."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def check_file(path: Path, expected: Any, limit: int) -> None:
    """Raise BundleError unless this is the file of which `expected` is the fingerprint, of at most `limit` bytes."""
    where = f"{path.parent.name}/{path.name}"
    check_size(path, limit)
    size = path.stat().st_size
    if not isinstance(expected, dict):
        raise BundleError(f"{path.parent.name}/{CONFIG} does not list {path.name} among its files")
    if size != expected.get("bytes"):
        raise BundleError(f"{where} has {size} bytes; {expected.get('bytes')} were written: it is truncated or changed")
    if fingerprint(path)["sha256"] != expected.get("sha256"):
        raise BundleError(f"{where} is not the file that was written: its SHA-256 differs from {CONFIG}'s")


def read_config(folder: Path, kinds: Collection[str]) -> dict[str, Any]:
    """Read config.json, its form checked but not its model; `kinds` are those that may be named."""
    path = folder / CONFIG
    where = f"{folder.name}/{CONFIG}"
    check_size(path, LARGEST_TEXT_FILE)
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BundleError(f"{where} is not JSON: {error}") from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise BundleError(
            f"{where} has neither format={FORMAT}, as a bundle of ours has, nor model_type, such as bert, as one of "
            "the transformers library"
        )
    for name, kind in (("kind", str), ("model", dict), ("files", dict), ("labels", list)):
        if not isinstance(config.get(name), kind):
            raise BundleError(f"{where}: {name} is a {type(config.get(name)).__name__}; it must be a {kind.__name__}")
    if config["kind"] not in kinds:
        raise BundleError(f"{where}: kind={config['kind']!r:.100} is unknown; it must be one of {', '.join(kinds)}")
    if config.get("reads", "") not in ("", *LANGUAGES):
        raise BundleError(f"{where}: reads={config['reads']!r:.100} must be one of {', '.join(LANGUAGES)}, or empty")
    if not all(isinstance(label, str) for label in config["labels"]):
        raise BundleError(f"{where}: labels must all be strings")
    return config


def read_card(folder: Path, name: str = CARD) -> str:
    """Read a card, or nothing where there is none."""
    path = folder / name
    if not path.exists():
        return ""
    check_size(path, LARGEST_TEXT_FILE)
    return path.read_text(encoding="utf-8", errors="replace")
