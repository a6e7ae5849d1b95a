"""RunSpec: everything that fixes a training run, checked once when it is made, and written as JSON.

The same spec on the same machine gives the same curve to the last digit. Read next: presets.py.
"""

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from transformer_core.config import ModelConfig, require_choice
from transformer_core.text import KINDS
from transformer_core.training.config import TrainConfig

Source = Literal["reviews", "table", "imdb", "copy", "reverse", "sort", "characters", "masked_words"]
Language = Literal["en", "zh"]
KIND_OF_SOURCE = {
    "reviews": "classifier",
    "table": "classifier",
    "imdb": "classifier",
    "copy": "translation",
    "reverse": "translation",
    "sort": "translation",
    "characters": "gpt",
    "masked_words": "bert",
}
BOUNDS = {
    "examples": (64, 50_000),
    "held_out": (32, 10_000),
    "vocab_size": (16, 20_000),
    "frames": (2, 64),
    "points": (40, 1_400),
    "threads": (0, 64),
    "d_model": (8, 512),
    "n_heads": (1, 16),
    "d_ff": (8, 2_048),
    "n_layers": (1, 12),
    "max_len": (8, 512),
    "batch_size": (4, 512),
    "epochs": (1, 200),
    "symbols": (2, 26),
    "length": (2, 24),
}
LONGEST_NAME = 80


@dataclass(frozen=True, kw_only=True)
class DataSpec:
    """What a run learns from.

    Args:
        source: "reviews", "copy", "reverse" and "sort" are generated; the others lie beside the spec in `file`.
        language: of the generated reviews.
        examples: most examples to train on.
        held_out: most examples that are never trained on.
        vocab_size: largest number of entries of the vocabulary.
        tokenizer: its kind; generated sequences and characters have their own.
        symbols, length: of copy, reverse and sort: different symbols, and most symbols a sequence.
        labels: names of the classes of "table", in order.
        file: name of the data inside the run's folder, None where they are generated.
    """

    source: Source = "reviews"
    language: Language = "en"
    examples: int = 4_000
    held_out: int = 600
    vocab_size: int = 2_000
    tokenizer: str = "word"
    symbols: int = 12
    length: int = 10
    labels: tuple[str, ...] = ("negative", "positive")
    file: str | None = None

    def __post_init__(self) -> None:
        require_choice("source", self.source, get_args(Source))
        require_choice("language", self.language, get_args(Language))
        require_choice("tokenizer", self.tokenizer, tuple(KINDS))
        for name in ("examples", "held_out", "vocab_size", "symbols", "length"):
            require_within(name, getattr(self, name))
        object.__setattr__(self, "labels", tuple(self.labels))
        if not (2 <= len(self.labels) <= 20 and all(isinstance(label, str) and label for label in self.labels)):
            raise ValueError(f"labels={self.labels!r:.200} must be 2 to 20 names of classes")
        if len(set(self.labels)) != len(self.labels):
            raise ValueError(f"labels={self.labels!r:.200} must differ from each other")
        if self.file is not None and (self.file in ("", ".", "..") or {"/", "\\", "\0"} & set(self.file)):
            raise ValueError(f"file={self.file!r} must be the name of a file, without a folder")

    @property
    def kind(self) -> str:
        """The kind of model that learns this, an entry of checkpoints.MODELS."""
        return KIND_OF_SOURCE[self.source]


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where a run began: another run's frame, whose weights it took over, or "same but" with fresh weights.

    Args:
        run: the other run's id.
        frame: the frame whose weights were taken; None where only the settings were.
    """

    run: str
    frame: int | None = None


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """Everything that fixes a run.

    Args:
        name: what people call it.
        data: what it learns from.
        model: its vocab_size, n_classes and pad_id are set by the data; the rest is as chosen.
        training: how.
        softmax_before_loss: of classifiers: the cross entropy is fed probabilities as if they were logits, as the
            source article does.
        frames: moments that are kept, the first before the first step, the last after the last one.
        points: examples whose embeddings are followed, half of them held out.
        threads: of processor work; 0 means all cores.
        origin: the run that this one was made from.
    """

    name: str = "run"
    data: DataSpec = field(default_factory=DataSpec)
    model: ModelConfig = field(default_factory=lambda: ModelConfig(vocab_size=16))
    training: TrainConfig = field(default_factory=TrainConfig)
    softmax_before_loss: bool = False
    frames: int = 24
    points: int = 400
    threads: int = 0
    origin: Origin | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.name, str) and self.name.strip() and len(self.name) <= LONGEST_NAME):
            raise ValueError(f"name={self.name!r:.100} must have 1 to {LONGEST_NAME} characters")
        for name in ("frames", "points", "threads"):
            require_within(name, getattr(self, name))
        for name in ("d_model", "n_heads", "d_ff", "n_layers", "max_len"):
            require_within(name, getattr(self.model, name))
        for name in ("batch_size", "epochs"):
            require_within(name, getattr(self.training, name))
        if not isinstance(self.softmax_before_loss, bool):
            raise ValueError(f"softmax_before_loss={self.softmax_before_loss!r} must be True or False")

    def to_json(self) -> str:
        """Return the spec as JSON that from_json reads back to an equal spec."""
        return json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "RunSpec":
        """Read a spec.

        Raises:
            ValueError: it is no JSON, an entry is unknown or missing, or a value is outside its range.
        """
        try:
            values = json.loads(text)
            origin = values.get("origin")
            return cls(
                **{
                    **values,
                    "data": DataSpec(**values["data"]),
                    "model": ModelConfig(**values["model"]),
                    "training": TrainConfig(**values["training"]),
                    "origin": None if origin is None else Origin(**origin),
                }
            )
        except (TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"the run's settings cannot be read: {error!r:.200}") from None


def require_within(name: str, value: Any) -> None:
    """Raise ValueError unless `value` is a whole number within BOUNDS[name]."""
    least, most = BOUNDS[name]
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{name}={value!r} must be a whole number from {least} to {most}")
