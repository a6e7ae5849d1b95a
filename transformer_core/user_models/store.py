"""The models that a user opened: each a folder by the name the user gave it, with a note of where it comes from.

The files of a zip lie in that folder, and only those that a checkpoint has; of a local folder or a name on the hub
there is only the note, which says where the files are. Nothing in a zip is executed.
"""

import json
import re
import shutil
import unicodedata
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from filelock import FileLock
from msgspec import Struct
from msgspec.structs import asdict

from transformer_core.checkpoints import load
from transformer_core.kept import kept_at
from transformer_core.training.runs.store.folder import LEAVING, making, new_id, write_whole
from transformer_core.trial import try_model
from transformer_core.untrusted.archives import MB, ArchiveError, entries, extract, open_zip
from transformer_core.untrusted.bundle_files import LARGEST_TEXT_FILE, BundleError
from transformer_core.untrusted.schema import checked

MOST_PACKED, MOST_UNPACKED, MOST_ENTRIES, MOST_RATIO = 500 * MB, 1_024 * MB, 1_000, 100
CONFIG, README = "config.json", "README.md"
SIZES = {
    r"(tokenizer_)?config\.json|tokenizer\.json|vocab\.(txt|json)|merges\.txt|(source|target)\.spm": LARGEST_TEXT_FILE,
    r"special_tokens_map\.json|added_tokens\.json": LARGEST_TEXT_FILE,
    r"1_Pooling/config\.json|modules\.json|sentence_bert_config\.json": LARGEST_TEXT_FILE,
    r"model\.safetensors\.index\.json": LARGEST_TEXT_FILE,
    r"card\.md|README\.md|chat_template\.jinja": MB,
    r"model(-[0-9]{5}-of-[0-9]{5})?\.safetensors": MOST_UNPACKED,
}
ASIDE = ("__MACOSX/", "1_Pooling/")


def unpack(file: Path | IO[bytes], folder: Path) -> tuple[str, ...]:
    """Unpack the files of a checkpoint, which lie in one folder of the zip, into an empty folder.

    Returns:
        The names of what was left in the zip.

    Raises:
        BundleError: what is wrong with the zip.
    """
    try:
        with open_zip(file, most_bytes=MOST_PACKED) as archive:
            there = entries(archive, most=MOST_ENTRIES, most_bytes=MOST_UNPACKED, most_ratio=MOST_RATIO)
            found = {name.replace("\\", "/"): entry for name, entry in there.items()}  # as zips of old Windows tools
            if len(found) < len(there):
                raise BundleError("the zip has a name twice, with / and with \\")
            for name in found:
                _check_name(name)
            return _lay_out(archive, found, folder)
    except ArchiveError as error:
        raise BundleError(str(error)) from None


def _check_name(name: str) -> None:
    parts = name.split("/")
    if ":" in parts[0] or not parts[0] or ".." in parts or not name.isprintable():
        raise BundleError(f"the zip has {name!r:.100}, which leads out of it; nothing of it is taken in")


def _lay_out(archive: zipfile.ZipFile, found: dict[str, zipfile.ZipInfo], folder: Path) -> tuple[str, ...]:
    top, left = _top(found), []
    outer = re.sub(r"(?<![^/])0_\w+/$", "", top)  # an old folder of sentence-transformers has its encoder one deeper
    for name, entry in found.items():
        own = next((name.removeprefix(place) for place in (top, outer) if name.startswith(place)), "")
        limit = next((limit for pattern, limit in SIZES.items() if re.fullmatch(pattern, own)), None)
        if limit is None:
            left.append(name)
            continue
        if entry.file_size > limit:
            raise BundleError(f"{name:.100} has {entry.file_size:,} bytes; at most {limit:,} are taken in")
        extract(archive, entry, folder / own)
    return tuple(left)


def _top(found: dict[str, zipfile.ZipInfo]) -> str:
    """Return the prefix of a checkpoint's files in the zip: a folder, or nothing."""
    tops = [name.removesuffix(CONFIG) for name in found if name == CONFIG or name.endswith(f"/{CONFIG}")]
    tops = [top for top in tops if not any(aside in top for aside in ASIDE)]
    if not tops:
        raise BundleError(f"the zip has no {CONFIG}: it is no checkpoint, which has one beside its weights")
    least = min(top.count("/") for top in tops)
    tops = [top for top in tops if top.count("/") == least]
    if len(tops) > 1:
        raise BundleError(f"the zip holds several models: {', '.join(sorted(tops))[:200]}; one at a time is opened")
    return tops[0]


LONGEST_NAME, LARGEST_NOTE = 64, 1 << 16
NAME = re.compile(r"\w[\w.-]*")
NOTE, MOST_NAMED = "opened.json", 20
ORIGINS = ("zip", "folder", "hub")
MAKING = ".making.lock"


def default_root() -> Path:
    """Return where opened models lie."""
    return kept_at("VITRINE_OPENED", "models")


def name_from(text: str) -> str:
    """Derive a model's name from that of a file, a folder or a checkpoint."""
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", text).strip().rstrip("/\\"))[-1]
    kept = re.sub(r"[^\w.-]+", "-", last.removesuffix(".zip").removesuffix(".gguf"))
    return kept[:LONGEST_NAME].strip(".-_") or "model"


@dataclass(frozen=True)
class Opened:
    """A model that a user opened.

    Args:
        origin: an entry of ORIGINS.
        asked: the zip's name, the folder's path, or the name on the hub.
        folder: where its files lie.
        left_out: names of the zip's files that were left out, the first of them.
        owner: who opened it, "" where nobody is told apart; shared: the owner lets everybody use it.
        fetched: its files were downloaded from the hub for this entry, and are deleted with it.
    """

    name: str
    origin: str
    asked: str
    folder: Path
    left_out: tuple[str, ...] = ()
    fetched: bool = False
    owner: str = ""
    shared: bool = False

    @property
    def size(self) -> int:
        """Its files' bytes on the disk."""
        total = 0
        for path in self.folder.glob("*"):
            with suppress(OSError):
                total += path.stat().st_size
        return total


class _Note(Struct):
    """What is written down of an opened model; its folder is "" where its files lie beside the note."""

    origin: str
    asked: str
    folder: str
    fetched: bool
    left_out: tuple[str, ...]
    owner: str = ""
    shared: bool = False


@dataclass(frozen=True)
class Room:
    """How many opened models are kept, and how many bytes of files: of each owner, and of all together."""

    models: int = 12
    size: int = 4 << 30
    all_models: int = 12
    all_size: int = 4 << 30


ROOM = Room()


class OpenedModels:
    """All opened models in a folder.

    Args:
        root: the folder.
        owner: of the models that are added.
        room: for models that are added.
    """

    def __init__(self, root: Path, owner: str = "", *, room: Room = ROOM) -> None:
        self.root, self._owner, self._room = root, owner, room

    def all(self) -> dict[str, Opened]:
        """Return the models by name, without those whose note cannot be read."""
        found = (self._read(path) for path in sorted(self.root.glob(f"*/{NOTE}")))
        return {model.name: model for model in found if model is not None}

    def take_zip(self, file: Path | IO[bytes], name: str, *, asked: str, taken: Collection[str] = ()) -> Opened:
        """Add the model of a zip, after checking that it can be read.

        Args:
            name: to call it.
            asked: what the zip is called.
            taken: names that other models have.

        Raises:
            BundleError: what is wrong with the name, the zip or the model in it, or there is no room.
        """
        with self._making(name, taken) as draft:
            left = unpack(file, draft)
            try_model(load(draft, device="cpu"))
            self._place(Opened(name, "zip", asked, draft, left), draft)
        return self.all()[name]

    def take_note(self, model: Opened, *, taken: Collection[str] = ()) -> Opened:
        """Add a note of where a model lies; the caller has read it and tried it.

        Raises:
            BundleError: what is wrong with the name, or there is no room.
        """
        with self._making(model.name, taken) as draft:
            self._place(model, draft)
        return self.all()[model.name]

    def share(self, name: str, *, shared: bool) -> None:
        """Let everybody use a model, or its owner alone.

        Raises:
            BundleError: there is no such model, or its note cannot be written.
        """
        model = self._named(name)
        with _in_words(f"{name} cannot be shared"):
            write_whole(self.root / name / NOTE, _note(replace(model, shared=shared), self.root / name))

    def remove(self, name: str) -> None:
        """Remove a model; a folder elsewhere stays as it is.

        Raises:
            BundleError: there is no such model, or it cannot be deleted.
        """
        self._named(name)
        with _in_words(f"{name} cannot be deleted"):
            shutil.rmtree((self.root / name).rename(self.root / f"{LEAVING}{new_id()}"))

    def check_room(self, name: str, taken: Collection[str] = ()) -> None:
        """Raise BundleError unless another model of this name may be added."""
        there = self.all()
        if not NAME.fullmatch(name) or len(name) > LONGEST_NAME:
            raise BundleError(
                f"name={name!r:.100} must be at most {LONGEST_NAME} letters, digits and . _ - and not begin with . or -"
            )
        if name.casefold() in {other.casefold() for other in (*there, *taken)}:
            raise BundleError(f"name={name!r} is taken; choose another")
        own = sum(model.owner == self._owner for model in there.values())
        for many, most in ((own, self._room.models), (len(there), self._room.all_models)):
            if many >= most:
                raise BundleError(f"there are {many} opened models, and at most {most} are kept; remove one")

    def _named(self, name: str) -> Opened:
        found = self.all().get(name)
        if found is None:
            raise BundleError(f"there is no opened model named {name!r:.100}")
        return found

    def _read(self, path: Path) -> Opened | None:
        try:
            if path.stat().st_size > LARGEST_NOTE or path.parent.name.startswith("."):
                return None
            note = checked(json.loads(path.read_text(encoding="utf-8")), _Note)
            values = asdict(note)
            values["folder"] = Path(note.folder or path.parent)
            return Opened(path.parent.name, **values)
        except (OSError, ValueError, RecursionError):
            return None

    @contextmanager
    def _making(self, name: str, taken: Collection[str]) -> Iterator[Path]:
        """Yield a temporary folder of that name, one at a time in all processes; it goes unless it was moved."""
        with _in_words(f"{name!r:.100} cannot be opened"):
            self.root.mkdir(parents=True, exist_ok=True)
            with FileLock(self.root / MAKING):
                self.check_room(name, taken)
                with making(self.root) as scratch:
                    (scratch / name).mkdir(mode=0o700)
                    yield scratch / name

    def _place(self, model: Opened, draft: Path) -> None:
        there = list(self.all().values())
        own = [other for other in there if other.owner == self._owner]
        for kept, most in ((own, self._room.size), (there, self._room.all_size)):
            total = model.size + sum(other.size for other in kept)
            if total > most:
                raise BundleError(
                    f"the opened models would have {total:,} bytes; at most {most:,} are kept: remove one"
                )
        write_whole(draft / NOTE, _note(replace(model, owner=self._owner), draft))
        draft.rename(self.root / model.name)


def _note(model: Opened, place: Path) -> str:
    """Return what is written down of a model whose own folder is `place`."""
    left = tuple(name[:LONGEST_NAME] for name in model.left_out[:MOST_NAMED])
    folder = "" if model.folder == place else str(model.folder)
    note = _Note(model.origin, model.asked, folder, model.fetched, left, model.owner, model.shared)
    return json.dumps(asdict(note), indent=2) + "\n"


@contextmanager
def _in_words(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BundleError(f"{doing}: {error.strerror or type(error).__name__}") from error
