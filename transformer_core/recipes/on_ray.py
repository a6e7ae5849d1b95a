"""A recipe on a Ray cluster, `--on ray`: its data go to a node, and its bundle and what --resume needs come back.

The same command runs there in a folder of its own. What it has written is taken over every ten seconds, so that where
the node dies, or the command is interrupted here, --resume goes on from what is here, on the cluster or without it.
"""

import argparse
import importlib
import os
import re
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tqdm import tqdm

from transformer_core.training.runs.cluster.ray_cluster import RayCluster, Resources
from transformer_core.training.runs.cluster.remote_run import require_versions, versions
from transformer_core.training.runs.cluster.replica import File, Stamp, stamps_of

DATA, PRINTED = "data", "printed"
BYTES_AT_ONCE = 32 << 20
SECONDS_BETWEEN_LOOKS, SECONDS_BETWEEN_FILES = 1.0, 10.0
PATIENCE, PATIENCE_WITH_PLACE = 600.0, 24 * 3_600.0
PACKAGE = "transformer_core.recipes"


class RemoteRecipe:
    """One recipe's command on a node, in a folder that goes with it.

    Args:
        server: the versions where the command was given.

    Raises:
        RunError: the versions here are others.
    """

    def __init__(self, server: Mapping[str, str]) -> None:
        require_versions(server)
        self._scratch = tempfile.TemporaryDirectory(prefix="vitrine-recipe-")
        self._folder, self._code = Path(self._scratch.name), None

    def put(self, name: str, content: bytes) -> None:
        """Write a file, or the next part of it."""
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(content)

    def begin(self, recipe: str, arguments: Sequence[str], folders: Sequence[str]) -> None:
        """Run the command in its folder, which has these folders; what it prints is kept."""
        os.chdir(self._folder)
        for name in folders:
            Path(name).mkdir(exist_ok=True)
        with (self._folder / PRINTED).open("wb") as printed:
            for end in (1, 2):
                os.dup2(printed.fileno(), end)
        threading.Thread(target=self._run, args=(recipe, list(arguments)), name="recipe", daemon=True).start()

    def news(self, seen: Mapping[str, Stamp], printed: int, *, files: bool) -> "tuple[dict, set | None, bytes, object]":
        """Return what is new.

        Args:
            seen: stamps of the files that are known.
            printed: how many bytes of what is printed are known.
            files: whether they are looked at; at the end they are in any case.

        Returns:
            New files; the names of all, None where they were not looked at; what was printed; the exit code or None.
        """
        code = self._code
        text = (self._folder / PRINTED).read_bytes()[printed:]
        new, names = {}, None
        if files or code is not None:
            with suppress(FileNotFoundError):  # one is being replaced: the next look has it
                stamps = stamps_of(self._folder, _made(self._folder))
                found = [name for name, stamp in stamps.items() if seen.get(name) != stamp]
                new = {name: ((self._folder / name).read_bytes(), stamps[name][1]) for name in found}
                names = set(stamps)
        return new, names, text, code

    def _run(self, recipe: str, arguments: list[str]) -> None:
        try:
            self._code = importlib.import_module(f"{PACKAGE}.{recipe}").main(arguments)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
            self._code = 2


def _made(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if parts[0] not in (DATA, PRINTED) and not any(part.startswith((".", "tmp")) for part in parts):
            yield path


def run_on_ray(recipe: str, chosen: argparse.Namespace, arguments: Sequence[str]) -> int:
    """Run a recipe's command on the cluster; print what it prints, and write here what it writes.

    Args:
        recipe: its module's name.
        chosen: the arguments as they were read; arguments: as they were given.

    Returns:
        The command's exit code.

    Raises:
        RunError: the cluster cannot be used, or the node is gone.
        OSError: the data cannot be read, or nothing can be written here.
    """
    cluster, places = RayCluster(), _places(chosen)
    there = [*_without_on(arguments), f"--data={DATA}"]
    there += [f"--{name.replace('_', '-')}={name}/{path.name}" for name, path in places.items()]
    cluster.connect()
    handle = cluster.submit(RemoteRecipe, Resources.set_here(), versions())
    try:
        _send(cluster, handle, list(_needed(chosen, places)))
        cluster.answer(cluster.call(handle, "begin", recipe, there, list(places)), PATIENCE)
        return _follow(cluster, handle, places)
    finally:
        cluster.kill(handle)


def _places(chosen: argparse.Namespace) -> dict[str, Path]:
    """Return the files and folders that the command names, but the data, by their arguments' names."""
    return {name: value for name, value in vars(chosen).items() if isinstance(value, Path) and name != "data"}


def _without_on(arguments: Sequence[str]) -> list[str]:
    rest, left = list(arguments), []
    while rest:
        argument = rest.pop(0)
        if argument == "--on":
            rest.pop(0)
        elif not argument.startswith("--on="):
            left.append(argument)
    return left


def _needed(chosen: argparse.Namespace, places: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    """Yield the files that the command may read there, each with its name there."""
    yield from ((f"{DATA}/{path.relative_to(chosen.data).as_posix()}", path) for path in _files(chosen.data))
    for name, place in places.items():
        if (name == "work" and not chosen.resume) or (name == "out" and not chosen.again):
            continue
        stem = re.split("[A-Z]", place.name)[0]  # "translation-PAIR" stands for any of them
        beside = place.parent.glob(f"{stem}*") if name in ("work", "out") else [place]
        for one in beside:
            yield from ((f"{name}/{path.relative_to(place.parent).as_posix()}", path) for path in _files(one))


def _files(place: Path) -> list[Path]:
    return [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())


def _send(cluster: RayCluster, handle: object, needed: Sequence[tuple[str, Path]]) -> None:
    total = sum(path.stat().st_size for _, path in needed)
    with tqdm(total=total, desc="to the cluster", unit="B", unit_scale=True) as bar:
        for name, path in needed:
            with path.open("rb") as file:
                while content := file.read(BYTES_AT_ONCE):
                    cluster.answer(cluster.call(handle, "put", name, content), PATIENCE_WITH_PLACE)
                    bar.update(len(content))


def _follow(cluster: RayCluster, handle: object, places: Mapping[str, Path]) -> int:
    """Print and write what is new until the command has ended; return its exit code."""
    seen: dict[str, Stamp] = {}
    printed, looked = 0, 0.0
    while True:
        due = time.monotonic() - looked >= SECONDS_BETWEEN_FILES
        new, names, text, code = cluster.answer(cluster.call(handle, "news", seen, printed, files=due), PATIENCE)
        print(text.decode("utf-8", "replace"), end="", flush=True)
        printed += len(text)
        if names is not None:
            looked = time.monotonic()
            _write(new, seen.keys() - names, places)
            seen = {name: stamp for name, stamp in seen.items() if name in names} | _stamps_of_new(new)
        if code is not None and names is not None:
            return code
        time.sleep(SECONDS_BETWEEN_LOOKS)


def _stamps_of_new(new: Mapping[str, File]) -> dict[str, Stamp]:
    return {name: (len(content), written) for name, (content, written) in new.items()}


def _write(new: Mapping[str, File], gone: set[str], places: Mapping[str, Path]) -> None:
    """Write what came, each file whole, and delete what is gone there."""
    for name, (content, _) in new.items():
        path = _here(name, places)
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}")
        draft.write_bytes(content)
        draft.replace(path)
    for name in gone:
        with suppress(FileNotFoundError):
            _here(name, places).unlink()


def _here(name: str, places: Mapping[str, Path]) -> Path:
    place, _, rest = name.partition("/")
    return places[place].parent / rest
