"""What a run begins with that starts from a damaged model: the model as it was, and its damaged weights.

Both lie in the run's folder from its making on, so that it can be continued, exported and repeated wherever it is.
"""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from transformer_core.bundle import Bundle, save
from transformer_core.text import Tokenizer
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.store.folder import ORIGIN, START
from transformer_core.training.runs.worker.recorder import save_weights
from transformer_core.untrusted.bundle_files import TOKENIZER, BundleError


@dataclass(frozen=True, eq=False)
class Beginning:
    """A model that a run starts from.

    Args:
        bundle: the model as it was; its vocabulary and classes are the run's.
        damaged: the same with other weights.
    """

    bundle: Bundle
    damaged: nn.Module


def put_beginning(beginning: Beginning, folder: Path) -> None:
    """Write a beginning into the folder of a new run.

    Raises:
        RunError: a weight is not finite.
        OSError: it cannot be written.
    """
    spoilt = [name for name, weight in beginning.damaged.named_parameters() if not bool(weight.isfinite().all())]
    if spoilt:
        raise RunError(f"the damaged {spoilt[0]} is not finite ({len(spoilt)} tensors in all); damage it less")
    was = beginning.bundle
    try:
        save(Bundle(was.name, was.model, was.tokenizer, was.labels, reads=was.reads), folder / START)
    except BundleError as error:
        raise RunError(str(error)) from None
    vocabulary = Tokenizer.load(folder / START / TOKENIZER).to_json()  # as the worker will write it
    save_weights(beginning.damaged, folder / ORIGIN, hashlib.sha256(vocabulary.encode()).hexdigest())


def copy_beginning(run: Path, folder: Path) -> None:
    """Copy the beginning of a run into the folder of a new one.

    Raises:
        OSError: it is not there, or cannot be copied.
    """
    shutil.copytree(run / START, folder / START)
    shutil.copyfile(run / ORIGIN, folder / ORIGIN)
