"""Zips as a person would send them, or as an attacker would."""

import io
import zipfile
from collections.abc import Callable, Mapping


def zipped(files: Mapping[str, bytes], change: Callable[[zipfile.ZipInfo], None] | None = None) -> io.BytesIO:
    """Return files, by name, as a zip; `change` may spoil the entry of each."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            if change is not None:
                change(entry)
            archive.writestr(entry, content)
    packed.seek(0)
    return packed
