"""Tensors: the weights of a checkpoint in one safetensors file or several, checked before they are read.

Nothing is unpickled, and no file outside the folder is opened, whatever the index says.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from transformer_core.untrusted.bundle_files import CONFIG, WEIGHTS, BundleError, check_headers, check_size
from transformer_core.untrusted.config_json import own_path, read_json

Shape = tuple[int, ...]
INDEX = f"{WEIGHTS}.index.json"
MOST_SHARDS = 1_000
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".onnx")


@dataclass(frozen=True)
class Place:
    """A tensor of a file: its name there, its shape, its type of numbers, and what reads it."""

    name: str
    shape: Shape
    kind: str
    take: Callable[[], Tensor]


@dataclass(frozen=True)
class Tensors:
    """All tensors of a checkpoint, each by the name that a renaming gave it."""

    where: str
    places: dict[str, Place]

    @classmethod
    def look(cls, folder: Path, *, max_bytes: int, rename: Callable[[str], str]) -> "Tensors":
        """Read the headers of the files, and no weights.

        Raises:
            BundleError: no safetensors file, files larger than max_bytes together, an index that does not fit them.
        """
        paths = _files(folder, max_bytes)
        places: dict[str, Place] = {}
        for path in paths:
            for name, (shape, kind) in header(path, f"{folder.name}/{path.name}").items():
                ours, place = rename(name), Place(name, shape, kind, partial(_tensor, path, name))
                if ours in places:
                    raise BundleError(f"{folder.name} holds {ours} twice, as {places[ours].name} and as {name}")
                places[ours] = place
        return cls(folder.name, places)

    @property
    def shapes(self) -> dict[str, Shape]:
        """The shape of each tensor."""
        return {name: place.shape for name, place in self.places.items()}

    def kinds(self) -> tuple[tuple[str, int], ...]:
        """Return how many tensors of the files have which type of numbers, the most frequent type first."""
        return kinds_of({place.name: place.kind for place in self.places.values()}.values())

    def read(self, name: str) -> Tensor:
        """Read one tensor as float32.

        Raises:
            BundleError: it is not finite, or the file is damaged there.
        """
        place = self.places[name]
        try:
            tensor = place.take()
        except SafetensorError as error:
            raise BundleError(f"{self.where}: {place.name} cannot be read: {error!s:.200}") from error
        numbers = tensor.float() if tensor.is_floating_point() else None
        if numbers is None or not all(bound.isfinite() for bound in numbers.aminmax()):  # neither of which skips a NaN
            raise BundleError(f"{self.where}: {place.name} must hold finite floating-point numbers")
        return numbers

    def without_doubles(self, aliases: Mapping[str, str]) -> "Tensors":
        """Rename tensors stored under an alias; where both names are there, drop the alias if it is equal."""
        kept = dict(self.places)
        for alias, name in aliases.items():
            if alias in kept and name not in kept:
                kept[name] = kept.pop(alias)
            elif alias in kept and _equal(kept[alias], kept[name]):
                del kept[alias]
        return Tensors(self.where, kept)

    def same(self, one: str, other: str) -> bool:
        """Return whether two tensors are equal, number by number."""
        return _equal(self.places[one], self.places[other])


def _tensor(path: Path, name: str) -> Tensor:
    with safe_open(path, framework="pt") as file:
        return file.get_tensor(name)


def _equal(one: Place, other: Place) -> bool:
    return one.shape == other.shape and torch.equal(one.take(), other.take())


def kinds_of(kinds: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Count types of numbers, the most frequent first."""
    return tuple(Counter(kinds).most_common())


def header(path: Path, where: str) -> dict[str, tuple[Shape, str]]:
    """Return the shape and the type of numbers of each tensor of a safetensors file.

    Raises:
        BundleError: it is none.
    """
    try:
        with safe_open(path, framework="pt") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {name: (tuple(one.get_shape()), one.get_dtype()) for name, one in slices.items()}
    except SafetensorError as error:
        raise BundleError(f"{where} is not a safetensors file: {error!s:.200}") from error


def _files(folder: Path, max_bytes: int) -> list[Path]:
    single = own_path(folder / WEIGHTS)
    if os.path.lexists(single):
        check_size(single, max_bytes)
        check_headers(single)
        return [single]
    if not os.path.lexists(folder / INDEX):
        others = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLED)
        found = f"; it has {', '.join(others[:3])}, which is not read: only safetensors is" if others else ""
        listed = read_json(folder / CONFIG).get("architectures")
        named = listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], str) else "AutoModel"
        raise BundleError(
            f"{folder.name} has no {WEIGHTS} and no {INDEX}{found}; another format is converted in its folder by: "
            f"python -c \"from transformers import {named:.60} as M; M.from_pretrained('.').save_pretrained('.')\""
        )
    return _shards(folder, max_bytes)


def _shards(folder: Path, max_bytes: int) -> list[Path]:
    where = f"{folder.name}/{INDEX}"
    index = read_json(folder / INDEX).get("weight_map")
    if not isinstance(index, dict) or not index or not all(isinstance(name, str) for name in index.values()):
        raise BundleError(f"{where}: weight_map must say for each tensor the name of its file")
    names = sorted(set(index.values()))
    if len(names) > MOST_SHARDS:
        raise BundleError(f"{where} names {len(names)} files; at most {MOST_SHARDS} are read")
    for name in names:
        plain = PurePosixPath(name).name == name == PureWindowsPath(name).name and name.isprintable()
        if not plain or not name.endswith(".safetensors"):
            raise BundleError(f"{where}: {name!r:.100} must be the plain name of a safetensors file in the same folder")
    paths = [own_path(folder / name) for name in names]
    left = max_bytes
    for path in paths:
        check_size(path, left)
        left -= path.stat().st_size
    check_headers(*paths)
    there = {tensor for path in paths for tensor in header(path, f"{folder.name}/{path.name}")}
    if missing := sorted(set(index) - there):
        raise BundleError(f"{folder.name} lacks {missing[0]!r:.100}, which its index names ({len(missing)} in all)")
    return paths
