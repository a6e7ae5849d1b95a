"""Unpacking: the files of a checkpoint out of a zip, and of those only; nothing in it is executed.

Read next: shelf.py.
"""

import re
import zipfile
from pathlib import Path
from typing import IO

from transformer_core.archives import MB, ArchiveError, entries, extract, opened
from transformer_core.bundle_files import LARGEST_TEXT_FILE, BundleError

MOST_PACKED, MOST_UNPACKED, MOST_ENTRIES, MOST_RATIO = 500 * MB, 1_024 * MB, 1_000, 100
CONFIG, README = "config.json", "README.md"
SIZES = {
    r"(tokenizer_)?config\.json|tokenizer\.json|vocab\.(txt|json)|merges\.txt|source\.spm": LARGEST_TEXT_FILE,
    r"1_Pooling/config\.json|model\.safetensors\.index\.json": LARGEST_TEXT_FILE,
    r"card\.md|README\.md": MB,
    r"model(-[0-9]{5}-of-[0-9]{5})?\.safetensors": MOST_UNPACKED,
}
ASIDE = ("__MACOSX/", "1_Pooling/")


def unpack(file: Path | IO[bytes], folder: Path) -> tuple[str, ...]:
    """Lay a checkpoint's files into an empty folder, out of the one folder of the zip that they lie in.

    Returns:
        The names of what was left in the zip.

    Raises:
        BundleError: what is wrong with the zip.
    """
    try:
        with opened(file, most_bytes=MOST_PACKED) as archive:
            found = entries(archive, most=MOST_ENTRIES, most_bytes=MOST_UNPACKED, most_ratio=MOST_RATIO)
            for name in found:
                _check_name(name)
            return _lay_out(archive, found, folder)
    except ArchiveError as error:
        raise BundleError(str(error)) from None


def _check_name(name: str) -> None:
    parts = re.split(r"[/\\]", name)
    if "\\" in name or ":" in parts[0] or not parts[0] or ".." in parts or not name.isprintable():
        raise BundleError(f"the zip has {name!r:.100}, which leads out of it; nothing of it is taken in")


def _lay_out(archive: zipfile.ZipFile, found: dict[str, zipfile.ZipInfo], folder: Path) -> tuple[str, ...]:
    top, left = _top(found), []
    for name, entry in found.items():
        own = name.removeprefix(top) if name.startswith(top) else ""
        limit = next((limit for pattern, limit in SIZES.items() if re.fullmatch(pattern, own)), None)
        if limit is None:
            left.append(name)
            continue
        if entry.file_size > limit:
            raise BundleError(f"{name:.100} has {entry.file_size:,} bytes; at most {limit:,} are taken in")
        extract(archive, entry, folder / own)
    return tuple(left)


def _top(found: dict[str, zipfile.ZipInfo]) -> str:
    """Return what the names of a checkpoint's files begin with: the folder in the zip, or nothing."""
    tops = [name.removesuffix(CONFIG) for name in found if name == CONFIG or name.endswith(f"/{CONFIG}")]
    tops = [top for top in tops if not any(aside in top for aside in ASIDE)]
    if not tops:
        raise BundleError(f"the zip has no {CONFIG}: it is no checkpoint, which has one beside its weights")
    least = min(top.count("/") for top in tops)
    tops = [top for top in tops if top.count("/") == least]
    if len(tops) > 1:
        raise BundleError(f"the zip holds several models: {', '.join(sorted(tops))[:200]}; one at a time is opened")
    return tops[0]
