"""What a sentence-transformers folder does after its encoder: the pooling that is read, and the modules that are not.

Reimers and Gurevych 2019; the file format of the sentence-transformers library.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from transformer_core.untrusted.bundle_files import CONFIG, BundleError
from transformer_core.untrusted.config_json import read_json

POOLING = "1_Pooling"
MODULES, READING = "modules.json", "sentence_bert_config.json"
READ = ("Transformer", "Pooling")
MOST_MODULES, LONGEST_MODULE = 16, 40
OLD_PLACE = "0_*"  # of the encoder in folders of before 2021, such as 0_BERT; all else lies beside that


@dataclass(frozen=True)
class SentenceModules:
    """What the library computes beyond our encoder and its pooling.

    Args:
        left_out: classes of the modules after the pooling, such as "Dense", in their order; none of them is applied.
        max_seq_length: tokens of a text that the library reads, special ones among them; None where it does not say.
    """

    left_out: tuple[str, ...] = ()
    max_seq_length: int | None = None


def encoder_folder(folder: Path) -> Path:
    """Return where a folder's config.json lies: in it, or in the place that old folders have for the encoder."""
    if os.path.lexists(folder / CONFIG) or not os.path.lexists(folder / MODULES):
        return folder
    return next((path for path in sorted(folder.glob(OLD_PLACE)) if (path / CONFIG).is_file()), folder)


def _whole(folder: Path) -> Path:
    """Return the folder that has the modules of an encoder's folder."""
    old = folder.match(OLD_PLACE) and os.path.lexists(folder.parent / MODULES)
    return folder.parent if old else folder


def read_modules(folder: Path) -> SentenceModules:
    """Read modules.json and sentence_bert_config.json, where a folder has them.

    Raises:
        BundleError: one of them is damaged.
    """
    modules = _whole(folder) / MODULES
    listed = read_json(modules, list) if os.path.lexists(modules) else []
    types = [entry["type"] for entry in listed if isinstance(entry, dict) and isinstance(entry.get("type"), str)]
    if len(listed) > MOST_MODULES or len(types) < len(listed):
        raise BundleError(f"{folder.name}/{MODULES} must list at most {MOST_MODULES} modules, each with its type")
    names = [name.rpartition(".")[-1][:LONGEST_MODULE] for name in types]
    most = read_json(folder / READING).get("max_seq_length") if os.path.lexists(folder / READING) else None
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
        raise BundleError(f"{folder.name}/{READING}: max_seq_length={most!r:.60} must be a whole number from 1 on")
    return SentenceModules(tuple(name for name in names if name not in READ), most)


def read_pooling(folder: Path) -> str:
    """Return how a sentence's vector is made, as ModelConfig.pooling has it; the mean where the folder does not say.

    Raises:
        BundleError: it is made in a way that we lack.
    """
    path = _whole(folder) / POOLING / CONFIG
    if not os.path.lexists(path):
        return "mean"
    values = read_json(path)
    named = values.get("pooling_mode")
    modes = [named] if isinstance(named, str) else [name for name, on in values.items() if on is True]
    modes = [mode.removeprefix("pooling_mode_") for mode in modes if mode != "include_prompt"]
    known = {"mean": "mean", "mean_tokens": "mean", "cls": "cls", "cls_token": "cls"}
    if len(modes) != 1 or modes[0] not in known:
        found = ", ".join(modes) or "nothing"
        raise BundleError(f"{folder.name}/{POOLING}/{CONFIG} asks for {found:.100}; supported: mean_tokens, cls_token")
    return known[modes[0]]
