"""The families that are read, and how a folder tells which of them it holds."""

import os
from pathlib import Path
from typing import Any

from transformer_core.bundle_files import CONFIG, BundleError
from transformer_core.open_checkpoints.bert import BERT, DISTILBERT, ROBERTA
from transformer_core.open_checkpoints.config_json import ConfigJson, read_json
from transformer_core.open_checkpoints.family import Family
from transformer_core.open_checkpoints.gpt2 import GPT2
from transformer_core.open_checkpoints.marian import MARIAN

FAMILIES = {family.model_type: family for family in (BERT, DISTILBERT, ROBERTA, GPT2, MARIAN)}
SUPPORTED = {name: tuple(family.kinds) for name, family in FAMILIES.items()}


def is_open_config(values: dict[str, Any]) -> bool:
    """Tell a config.json of theirs from a bundle's, which has a format and no model_type."""
    return "format" not in values and isinstance(values.get("model_type"), str)


def family_of(settings: ConfigJson) -> Family:
    """Return the family that a config.json names.

    Raises:
        BundleError: it is not among those that are read.
    """
    named = settings.values.get("model_type")
    if not isinstance(named, str) or named not in FAMILIES:
        raise BundleError(
            f"{settings.where}: model_type={named!r:.60} is not supported; supported: {', '.join(FAMILIES)}"
        )
    return FAMILIES[named]


def architecture_of(family: Family, settings: ConfigJson) -> str:
    """Return the architecture that a config.json names, or the family's first where it names none.

    Raises:
        BundleError: the family has it, and we do not.
    """
    named = settings.get("architectures", [])
    if named == []:
        return next(iter(family.kinds))
    if not isinstance(named, list) or len(named) != 1 or named[0] not in tuple(family.kinds):
        raise BundleError(
            f"{settings.where}: architectures={named!r:.100} is not supported; supported: {', '.join(family.kinds)}"
        )
    return named[0]


def kind_of_folder(folder: str | os.PathLike[str]) -> str | None:
    """Return the kind of model that a folder holds, from its config.json alone.

    Returns:
        An entry of bundle.MODELS; for a bundle whatever its config.json says. None where the file is missing,
        broken, or names what is not supported, which loading the folder tells in words.
    """
    folder = Path(folder)
    try:
        values = read_json(folder / CONFIG)
        if not is_open_config(values):
            kind = values.get("kind")
            return kind if isinstance(kind, str) else None
        settings = ConfigJson(folder.name, values)
        family = family_of(settings)
        return family.kinds[architecture_of(family, settings)]
    except (OSError, BundleError):
        return None
