"""ConfigJson: another library's config.json, read entry by entry, and what in it is refused.

Every refusal names the entry, what it says, and what is supported.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer_core.untrusted.bundle_files import CONFIG, LARGEST_TEXT_FILE, BundleError, check_size

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python": "gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
UNUSUAL: dict[str, tuple[Any, ...]] = {
    "is_decoder": (False,),
    "add_cross_attention": (False,),
    "position_embedding_type": ("absolute",),
    "pruned_heads": ({},),
    "scale_attn_by_inverse_layer_idx": (False,),
    "share_encoder_decoder_embeddings": (True,),
    "normalize_before": (False,),
    "normalize_embedding": (False,),
    "add_final_layer_norm": (False,),
    "quantization_config": ({},),
    "auto_map": ({},),
    "use_bidirectional_attention": (False,),
}
BECAUSE = {
    "auto_map": "it asks for code of its own (trust_remote_code), and nothing of a checkpoint is executed",
    "quantization_config": "only whole floating-point weights are read",
}
MOST_SHOWN = 60


def own_path(path: Path) -> Path:
    """Return where a file lies; a link is followed only from a snapshot of the hub's cache to that cache's blobs."""
    if path.is_symlink():
        target = path.resolve()
        for folder in path.parents[1:3]:
            if folder.name == "snapshots" and target.parent == folder.parent.resolve() / "blobs":
                return target
    return path


WORDS_FOR: dict[type, str] = {dict: "an object", list: "a list"}


def read_json(path: Path, kind: type = dict) -> Any:
    """Read a JSON object, or a list, from a file of bounded size.

    Raises:
        BundleError: it is missing, too large, no JSON, or of another kind.
    """
    where = f"{path.parent.name}/{path.name}"
    place = own_path(path)
    check_size(place, LARGEST_TEXT_FILE)
    try:
        values = json.loads(place.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BundleError(f"{where} is not JSON: {error!s:.200}") from error
    except RecursionError:
        raise BundleError(f"{where} is nested too deeply") from None
    if not isinstance(values, kind):
        raise BundleError(f"{where} must hold {WORDS_FOR[kind]}; it holds a {type(values).__name__}")
    return values


@dataclass(frozen=True)
class ConfigJson:
    """The entries of a config.json.

    Args:
        where: folder and file, for messages.
        values: as they were read.
    """

    where: str
    values: dict[str, Any]

    @classmethod
    def read(cls, folder: Path) -> "ConfigJson":
        """Read a folder's config.json; BundleError as read_json."""
        return cls(f"{folder.name}/{CONFIG}", read_json(folder / CONFIG))

    def get(self, name: str, default: Any = None) -> Any:
        """Return an entry, or the default where it is missing or null."""
        value = self.values.get(name)
        return default if value is None else value

    def need(self, name: str) -> Any:
        """Return an entry that must be there; BundleError where it is not."""
        value = self.values.get(name)
        if value is None:
            raise BundleError(f"{self.where} lacks {name}")
        return value

    def part(self, name: str) -> "ConfigJson":
        """Return an entry that must be an object, one without entries where it is missing."""
        value = self.get(name, {})
        if not isinstance(value, dict):
            raise BundleError(f"{self.where}: {name}={value!r:.{MOST_SHOWN}} must be an object")
        return ConfigJson(f"{self.where}: {name}", value)

    def flag(self, name: str, default: bool) -> bool:
        """Return an entry that must be true or false."""
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise BundleError(f"{self.where}: {name}={value!r:.{MOST_SHOWN}} must be true or false")
        return value

    def activation(self, name: str, default: str) -> str:
        """Return our name of the activation that an entry names; BundleError for one that we lack."""
        value = self.get(name, default)
        if not isinstance(value, str) or value not in ACTIVATIONS:
            raise BundleError(
                f"{self.where}: {name}={value!r:.{MOST_SHOWN}} is not supported; supported: {', '.join(ACTIVATIONS)}"
            )
        return ACTIVATIONS[value]

    def refuse_unsupported(self) -> None:
        """Raise BundleError where the checkpoint computes something that our modules do not."""
        for name, usual in UNUSUAL.items():
            value = self.values.get(name)
            if value is not None and value not in usual:
                why = BECAUSE.get(name, f"supported: {', '.join(map(repr, usual))}")
                raise BundleError(f"{self.where}: {name}={value!r:.{MOST_SHOWN}} is not supported; {why}")

    def n_classes(self, shapes: Mapping[str, tuple[int, ...]], classes: str) -> int:
        """Return how many classes there are, by their names or by the rows of the matrix that scores them.

        Raises:
            BundleError: there are fewer than 2, or a text may be of several.
        """
        problem = self.get("problem_type", "single_label_classification")
        count = len(self.labels()) or (shapes.get(f"{classes}.weight") or (2,))[0]
        if problem != "single_label_classification" or count < 2:
            raise BundleError(
                f"{self.where}: problem_type={problem!r:.60} with {count} classes is not supported; "
                "supported: single_label_classification with at least 2"
            )
        return count

    def labels(self) -> tuple[str, ...]:
        """Return the names of the classes in order, or none where the checkpoint does not name them."""
        named = self.get("id2label", {})
        good = isinstance(named, dict) and all(isinstance(name, str | int | float) for name in named.values())
        if not good or sorted(named) != sorted(str(place) for place in range(len(named))):
            raise BundleError(
                f"{self.where}: id2label={named!r:.{MOST_SHOWN}} must name the classes 0, 1, ... by texts or numbers"
            )
        return tuple(str(named[str(place)]) for place in range(len(named)))
