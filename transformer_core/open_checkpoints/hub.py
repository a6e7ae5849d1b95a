"""The hub: a checkpoint by its name, fetched once into the cache that the `huggingface_hub` package keeps.

HF_HOME, HF_TOKEN and HF_HUB_OFFLINE are that package's own; nothing is fetched that would have to be unpickled.
"""

import re
from dataclasses import replace
from pathlib import Path

from transformer_core.bundle import Bundle
from transformer_core.open_checkpoints.load import architecture_of, family_of, load_open
from transformer_core.open_checkpoints.sentence_modules import MODULES, POOLING, READING
from transformer_core.untrusted.bundle_files import CONFIG, BundleError
from transformer_core.untrusted.config_json import ConfigJson

HUB = "hf:"
NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?")
CONFIGS = [CONFIG, f"{POOLING}/{CONFIG}", MODULES, READING]
FILES = [
    *CONFIGS,
    *("model.safetensors", "model-*.safetensors", "model.safetensors.index.json"),
    *("tokenizer.json", "tokenizer_config.json", "added_tokens.json", "special_tokens_map.json", "chat_template.jinja"),
    *("vocab.txt", "vocab.json", "merges.txt", "source.spm", "target.spm"),
]


def load_from_hub(name: str, *, device: str | None, max_bytes: int) -> Bundle:
    """Fetch a checkpoint, unless it is in the cache, and read it.

    Args:
        name: such as ``bert-base-uncased`` or ``sentence-transformers/all-MiniLM-L6-v2``.
        device, max_bytes: as in checkpoints.load; nothing larger is fetched.

    Raises:
        BundleError: no such name, no way to it, or as load_open.
    """
    if not NAME.fullmatch(name) or ".." in name:
        raise BundleError(f"{HUB}{name!r:.100} must be {HUB}NAME or {HUB}OWNER/NAME")
    settings = replace(ConfigJson.read(_fetched(name, CONFIGS)), where=f"{HUB}{name}")
    architecture_of(family_of(settings), settings)
    settings.refuse_unsupported()
    _check_size(name, max_bytes)
    return load_open(_fetched(name, FILES), device=device, max_bytes=max_bytes, name=name)


def _fetched(name: str, patterns: list[str]) -> Path:
    import huggingface_hub

    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=patterns))
    except Exception as error:  # that package's errors have no common base but this
        raise BundleError(f"{HUB}{name} cannot be fetched: {error!s:.300}") from error


def _check_size(name: str, max_bytes: int) -> None:
    import huggingface_hub

    if huggingface_hub.constants.HF_HUB_OFFLINE:
        return
    try:
        plan = huggingface_hub.snapshot_download(name, allow_patterns=FILES, dry_run=True)
    except Exception as error:
        raise BundleError(f"{HUB}{name} cannot be looked at: {error!s:.300}") from error
    if (size := sum(file.file_size or 0 for file in plan)) > max_bytes:
        raise BundleError(f"{HUB}{name} has {size} bytes to read; at most {max_bytes} are read")
