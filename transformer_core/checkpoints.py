"""load: one call for every checkpoint, a bundle, a folder of the `transformers` library or a name on the hub.

Nothing is ever unpickled or executed.
"""

import os
from pathlib import Path

from transformer_core.bundle import DEFAULT_MAX_BYTES, Bundle, load_bundle
from transformer_core.kept import PROJECT
from transformer_core.open_checkpoints import HUB, is_open_checkpoint, load_from_hub, load_open
from transformer_core.open_checkpoints.sentence_modules import encoder_folder
from transformer_core.untrusted.bundle_files import CONFIG, BundleError

SHIPPED = PROJECT / "assets" / "checkpoints"


def load(folder: str | os.PathLike[str], *, device: str | None = None, max_bytes: int = DEFAULT_MAX_BYTES) -> Bundle:
    """Read a model with its tokenizer, from a bundle or from another library's checkpoint.

    Args:
        folder: a folder that save or the `transformers` library wrote, ``hf:NAME`` for a name on the hub, or where
            there is no folder of this name, a model that comes with Vitrine, such as "gpt".
        device: where to put the model; by default cuda where there is one, else the processor.
        max_bytes: bound on the size of the weights on disk.

    Raises:
        BundleError: with the file and what is wrong with it.
        ValueError: the named device is unknown or not available.
    """
    if str(folder).startswith(HUB):
        name = str(folder).removeprefix(HUB)
        return load_from_hub(name, device=device, max_bytes=max_bytes)
    shipped = SHIPPED / folder
    folder = encoder_folder(shipped if shipped.parent == SHIPPED and not Path(folder).exists() else Path(folder))
    try:
        if is_open_checkpoint(folder):
            return load_open(folder, device=device, max_bytes=max_bytes)
        return load_bundle(folder, device=device, max_bytes=max_bytes)
    except OSError as error:
        raise BundleError(f"{folder.name:.100} cannot be read: {error.strerror or error}") from error
    except RecursionError:
        raise BundleError(f"{folder.name}/{CONFIG} is nested too deeply") from None
