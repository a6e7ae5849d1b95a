"""GgufFile: metadata and tensors of a .gguf file, each checked against the file before anything is taken for it.

Format: the GGUF specification, version 3 (and 2, which differs in nothing that is read); the `gguf` package turns its
blocks into numbers.
"""

import math
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer_core.untrusted.bundle_files import BundleError, check_size
from transformer_core.untrusted.config_json import own_path

MAGIC, VERSIONS = b"GGUF", (2, 3)
LARGEST_HEADER = 32 << 20  # bytes; the largest vocabulary in common use takes 12 MB
MOST_VALUES, MOST_TENSORS, MOST_AXES = 4_096, 16_384, 4
LONGEST_NAME, LONGEST_TEXT, MOST_ITEMS = 256, 4 << 20, 1 << 22  # items of all lists together
MOST_NUMBERS = 1 << 28  # of a tensor: 1 GB in float32
MOST_ALIGNED = 1 << 16
AT_ONCE = 1 << 20  # numbers that are made at a time
NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
TEXT, LIST = 8, 9


@dataclass(frozen=True)
class GgufTensor:
    """Where a tensor lies.

    Args:
        shape: as torch has it, the last axis lies together.
        kind: number of its type, as the `gguf` package numbers them.
        offset: of its first byte in the file.
    """

    shape: tuple[int, ...]
    kind: int
    offset: int


@dataclass(frozen=True)
class GgufFile:
    """What a file's header says.

    Args:
        where: the file's name, for messages.
        values: metadata by name: numbers, texts, booleans, and lists of these.
    """

    where: str
    path: Path
    values: dict[str, Any]
    tensors: dict[str, GgufTensor]

    @classmethod
    def open(cls, path: Path, *, max_bytes: int) -> "GgufFile":
        """Read the header of a file.

        Raises:
            BundleError: it is no GGUF file, larger than max_bytes, cut short, or says what cannot be.
        """
        place = own_path(path)
        check_size(place, max_bytes)
        size = place.stat().st_size
        with place.open("rb") as file:
            header = _Header(path.name, file.read(min(size, LARGEST_HEADER)), size)
        if header.take(4) != MAGIC:
            raise BundleError(f"{path.name} is not a GGUF file: it does not begin with GGUF")
        if (version := header.number("<I")) not in VERSIONS:
            raise BundleError(f"{path.name} has version {version} of GGUF; supported: 2 and 3")
        n_tensors = header.count("<Q", MOST_TENSORS, "tensors")
        n_values = header.count("<Q", MOST_VALUES, "values")
        values: dict[str, Any] = {}
        for _ in range(n_values):
            name = header.text(LONGEST_NAME)
            if name in values:
                raise BundleError(f"{path.name} has {name!r:.80} twice")
            values[name] = header.value(header.number("<I"))
        return cls(path.name, place, values, header.tensors(n_tensors, values))

    def read(self, name: str, item: int | None = None) -> Tensor:
        """Read one tensor, or one item along its first axis, as float32, a part of it at a time.

        Raises:
            BundleError: the file is cut short since its header was read.
        """
        from gguf.quants import dequantize

        tensor = self.tensors[name]
        shape = tensor.shape if item is None else tensor.shape[1:]
        count = math.prod(shape)
        of_block, block_bytes = _block(tensor.kind)
        blocks = count // of_block
        made = np.empty(count, dtype=np.float32)
        at_once = max(1, AT_ONCE // of_block)
        with self.path.open("rb", buffering=0) as file:
            file.seek(tensor.offset + (item or 0) * blocks * block_bytes)
            for start in range(0, blocks, at_once):
                part = min(at_once, blocks - start)
                data = file.read(part * block_bytes)
                if len(data) != part * block_bytes:
                    raise BundleError(f"{self.where} is cut short: {name!r:.80} is not whole")
                found = dequantize(np.frombuffer(data, np.uint8)[None], _type(tensor.kind))
                made[start * of_block : (start + part) * of_block] = found.ravel()
        return torch.from_numpy(made).view(shape)


def _type(kind: int) -> Any:
    from gguf.constants import GGMLQuantizationType

    return GGMLQuantizationType(kind)


def name_of(kind: int) -> str:
    """Return the name of a type of numbers, as the `gguf` package numbers them."""
    try:
        return _type(kind).name
    except ValueError:
        return f"type {kind}"


def _block(kind: int) -> tuple[int, int]:
    """Return how many numbers a block of a type has, and how many bytes."""
    from gguf.constants import GGML_QUANT_SIZES

    return GGML_QUANT_SIZES[_type(kind)]


def _readable(kind: int) -> bool:
    """Tell whether the package turns blocks of this type into numbers."""
    from gguf.quants import _type_traits

    try:
        return _type(kind).name in ("F32", "F16") or _type(kind) in _type_traits
    except ValueError:
        return False


class _Header:
    """The beginning of a file, read from its first byte on."""

    def __init__(self, where: str, data: bytes, size: int) -> None:
        self.where, self.data, self.size, self.at, self.left = where, data, size, 0, MOST_ITEMS

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        end = self.at + count
        if end > len(self.data):
            cut = "is cut short" if len(self.data) == self.size else f"has a header of more than {LARGEST_HEADER} bytes"
            raise BundleError(f"{self.where} {cut}: {count} bytes are missing at byte {self.at}")
        self.at = end
        return self.data[end - count : end]

    def number(self, form: str) -> Any:
        """Return the next number."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def count(self, form: str, most: int, what: str) -> int:
        """Return the next number, which says how many there are of something."""
        if (found := self.number(form)) > most:
            raise BundleError(f"{self.where} has {found} {what} at byte {self.at}; at most {most} are read")
        return found

    def text(self, longest: int = LONGEST_TEXT) -> str:
        """Return the next text."""
        data = self.take(self.count("<Q", longest, "bytes of a text"))
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            raise BundleError(f"{self.where}: the text before byte {self.at} must be UTF-8") from None

    def value(self, kind: int, *, within: bool = False) -> Any:
        """Return the next value of a type."""
        if kind in NUMBERS:
            return self.number(NUMBERS[kind])
        if kind == TEXT:
            return self.text()
        if kind != LIST or within:
            raise BundleError(f"{self.where}: a value before byte {self.at} has type {kind}, which is not read")
        kind, items = self.number("<I"), self.count("<Q", self.left, "items of a list")
        self.left -= items
        if kind in NUMBERS:
            form = NUMBERS[kind]
            return [item for (item,) in struct.iter_unpack(form, self.take(items * struct.calcsize(form)))]
        return [self.value(kind, within=True) for _ in range(items)]

    def tensors(self, count: int, values: dict[str, Any]) -> dict[str, GgufTensor]:
        """Return where each tensor lies, after checking its size and that it lies within the file."""
        aligned = values.get("general.alignment", 32)
        if not isinstance(aligned, int) or not 0 < aligned <= MOST_ALIGNED:
            raise BundleError(f"{self.where}: general.alignment={aligned!r:.40} must be from 1 to {MOST_ALIGNED}")
        found: dict[str, GgufTensor] = {}
        for _ in range(count):
            name = self.text(LONGEST_NAME)
            axes = [self.number("<Q") for _ in range(self.count("<I", MOST_AXES, "axes of a tensor"))]
            kind, offset = self.number("<I"), self.number("<Q")
            if name in found:
                raise BundleError(f"{self.where} has the tensor {name!r:.80} twice")
            if not axes or min(axes) < 1 or math.prod(axes) > MOST_NUMBERS:
                raise BundleError(f"{self.where}: {name!r:.80} has the shape {axes[::-1]}, which cannot be")
            if not _readable(kind):
                raise BundleError(f"{self.where}: {name!r:.80} has {name_of(kind)}, which is not read")
            if axes[0] % _block(kind)[0]:
                raise BundleError(
                    f"{self.where}: {name!r:.80} has rows of {axes[0]}, which {name_of(kind)} cannot have"
                )
            found[name] = GgufTensor(tuple(axes[::-1]), kind, offset)
        start = -(-self.at // aligned) * aligned
        for name, tensor in found.items():
            of_block, block_bytes = _block(tensor.kind)
            end = start + tensor.offset + math.prod(tensor.shape) // of_block * block_bytes
            if tensor.offset % aligned or end > self.size:
                raise BundleError(f"{self.where}: {name!r:.80} ends at byte {end} of {self.size}: cut short or damaged")
        return {name: GgufTensor(one.shape, one.kind, start + one.offset) for name, one in found.items()}


def gguf_in(place: Path) -> Path | None:
    """Return a .gguf file: the path itself, or the only one in a folder without a config.json; else None.

    Raises:
        BundleError: there are several.
    """
    if place.suffix.lower() == ".gguf":
        return place
    if not place.is_dir() or os.path.lexists(place / "config.json"):
        return None
    found = sorted(path for path in place.iterdir() if path.suffix.lower() == ".gguf")
    if len(found) > 1:
        names = ", ".join(path.name for path in found[:3])
        raise BundleError(f"{place.name} has {len(found)} GGUF files ({names}); it must have one")
    return found[0] if found else None
