"""RunSpec: everything that fixes a training run, checked once when it is made, and written as JSON.

The same spec on the same machine gives exactly the same curve.
"""

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta

from transformer_core.config import ModelConfig, require_choice
from transformer_core.text import KINDS
from transformer_core.training.config import TrainConfig
from transformer_core.untrusted.schema import check_fields

Source = Literal["reviews", "table", "imdb", "copy", "reverse", "sort", "pairs", "characters", "masked_words"]
Language = Literal["en", "zh"]
Network = Literal["transformer", "rnn", "gru", "lstm"]
AlignmentChoice = Literal["additive", "dot_product", "none"]
SummaryChoice = Literal["last", "mean"]
InitialWeights = Literal["usual", "normal", "unit"]
KIND_OF_SOURCE = {
    "reviews": "classifier",
    "table": "classifier",
    "imdb": "classifier",
    "copy": "translation",
    "reverse": "translation",
    "sort": "translation",
    "pairs": "translation",
    "characters": "gpt",
    "masked_words": "bert",
}
RECURRENT_KINDS = {"classifier": "recurrent_classifier", "translation": "seq2seq", "gpt": "lm"}
BOUNDS = {
    "examples": (8, 50_000),
    "held_out": (2, 10_000),
    "vocab_size": (16, 20_000),
    "frames": (2, 64),
    "points": (40, 1_400),
    "threads": (0, 64),
    "d_model": (8, 512),
    "n_heads": (1, 16),
    "d_ff": (8, 2_048),
    "n_experts": (0, 8),
    "shared_d_ff": (0, 2_048),
    "n_layers": (1, 12),
    "max_len": (8, 512),
    "batch_size": (4, 512),
    "epochs": (1, 200),
    "symbols": (2, 26),
    "length": (2, 24),
}
LONGEST_NAME = 80
START = "start"  # the folder, in that of a run, of the model that it starts from
MOST_EDITS, LONGEST_EDITS = 2_000, 400_000  # of the weights that a run begins with; characters as JSON
MOST_STEPS = 300_000  # of a run; each is kept
LABELS_OF_REVIEWS = ("negative", "positive")
Labels = Annotated[
    tuple[Annotated[str, Meta(min_length=1, description="a name of a class")], ...],
    Meta(min_length=2, max_length=20, description="2 to 20 names of classes"),
]
Name = Annotated[str, Meta(max_length=LONGEST_NAME)]
FullName = Annotated[
    str, Meta(min_length=1, max_length=LONGEST_NAME, description=f"a text of 1 to {LONGEST_NAME} characters")
]
NEED_FILE, MAY_HAVE_FILE = ("table", "imdb"), ("table", "imdb", "pairs", "characters", "masked_words")


def within(name: str) -> Meta:
    """Return the bounds of a field: BOUNDS[name]."""
    return Meta(ge=BOUNDS[name][0], le=BOUNDS[name][1])


@dataclass(frozen=True, kw_only=True)
class Given:
    """Data that a person gave.

    Args:
        name: of that person's file; "" for a pasted text.
        count: rows of a table, reviews, pairs, or characters of a text.
    """

    name: Name
    count: Annotated[int, Meta(ge=1, description="a whole number from 1")]

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class DataSpec:
    """What a run learns from.

    Args:
        source: "reviews", "copy", "reverse" and "sort" are generated, and so are "pairs" without a file; the others are
            read from `file` beside the spec.
        language: of the generated reviews; generated pairs are of English and French ("en") or Chinese ("zh").
        examples: most examples to train on.
        held_out: most examples that are never trained on.
        vocab_size: largest number of entries of the vocabulary.
        tokenizer: its kind; generated sequences and characters have their own.
        symbols, length: of copy, reverse and sort: number of symbols, and maximal length of a sequence.
        labels: names of the classes of "table", in order.
        file: name of the data inside the run's folder, None where they are generated.
        given: where the file came from; None where the data are generated, and in runs of earlier versions.
    """

    source: Source = "reviews"
    language: Language = "en"
    examples: Annotated[int, within("examples")] = 4_000
    held_out: Annotated[int, within("held_out")] = 600
    vocab_size: Annotated[int, within("vocab_size")] = 2_000
    tokenizer: str = "word"
    symbols: Annotated[int, within("symbols")] = 12
    length: Annotated[int, within("length")] = 10
    labels: Labels = LABELS_OF_REVIEWS
    file: str | None = None
    given: Given | None = None

    def __post_init__(self) -> None:
        require_choice("tokenizer", self.tokenizer, tuple(KINDS))
        check_fields(self)
        object.__setattr__(self, "labels", tuple(self.labels))
        if len(set(self.labels)) != len(self.labels):
            raise ValueError(f"labels={self.labels!r:.200} must differ from each other")
        if self.file is not None and (self.file in ("", ".", "..") or {"/", "\\", "\0"} & set(self.file)):
            raise ValueError(f"file={self.file!r} must be the name of a file, without a folder")

    @property
    def kind(self) -> str:
        """The kind of model that learns this, an entry of bundle.MODELS."""
        return KIND_OF_SOURCE[self.source]

    @property
    def described(self) -> str:
        """What is learned from, in a line: "my.csv, 120 rows, food / travel"."""
        given, where = self.given, {"en": "English", "zh": "Chinese"}[self.language]
        if self.source == "table":
            rows = f"{given.name}, {given.count:,} rows" if given else "a table"
            return f"{rows}, {' / '.join(self.labels)}"
        if self.source == "imdb":
            return f"IMDB reviews, {given.count:,}" if given else "IMDB reviews"
        if self.source in ("characters", "masked_words"):
            if self.file is None:
                return f"built-in story in {where}"
            return f"pasted text, {given.count:,} characters" if given else "pasted text"
        if self.source == "reviews":
            return f"built-in reviews in {where}, {self.examples:,}"
        if self.source == "pairs":
            if self.file is not None:
                return f"{(given and given.name) or 'pasted'} pairs" + (f", {given.count:,}" if given else "")
            into = "French" if self.language == "en" else "Chinese"
            return f"built-in pairs in English and {into}, {self.examples:,}"
        return f"{self.source}: up to {self.length} of {self.symbols} letters, {self.examples:,} rows"

    def require_fitting(self) -> None:
        """Raise ValueError unless source, labels and file go together.

        Checked before a run is created, not when its spec is read, so that a run whose parts do not fit can be shown.
        """
        if self.source in NEED_FILE and self.file is None:
            raise ValueError(f"file=None must name the data of source={self.source!r} in the run's folder")
        if self.source not in MAY_HAVE_FILE and self.file is not None:
            raise ValueError(
                f"source={self.source!r} is generated and learns from no file; file={self.file!r} was given"
            )
        if self.given is not None and self.file is None:
            raise ValueError(f"given={self.given!r} needs the name of its file in the run's folder; file is None")
        if self.source != "table" and self.labels != LABELS_OF_REVIEWS:
            raise ValueError(f"labels={self.labels!r:.200} are of a table; source={self.source!r} has none of its own")


@dataclass(frozen=True, kw_only=True)
class NetworkSpec:
    """What learns: a Transformer, or one of the recurrent networks before it, and its own choices.

    A recurrent network has one layer. It takes d_model, as the width of its embeddings and of its state, max_len and
    dropout from the run's ModelConfig, and nothing else.

    Args:
        network: "transformer"; "rnn", the plain recurrent network; "gru" or "lstm".
        alignment: of a recurrent network that writes a sequence: how its decoder finds the input's positions, or
            "none": it has the encoder's last state alone.
        summary: of a recurrent classifier: the sentence's vector is the state after its last word, or the mean of all.
        bidirectional: it also reads from the end to the beginning.
        one_hot: of a recurrent network of characters, as of RecurrentLmConfig: d_model is then its state's width alone.
        initial: "usual", as initialize or initialize_recurrent has it; "normal": every matrix from N(0, 0.01^2), or
            "unit": embeddings from N(0, 1), as torch.nn.Embedding begins, the rest as usual.
    """

    network: Network = "transformer"
    alignment: AlignmentChoice = "additive"
    summary: SummaryChoice = "last"
    bidirectional: bool = False
    one_hot: bool = False
    initial: InitialWeights = "usual"

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class Origin:
    """The run that a run was made from: it starts with the weights of a frame, or with fresh ones and other settings.

    Args:
        run: the other run's id.
        frame: whose weights were copied; None where only the settings were.
    """

    run: str
    frame: int | None = None


@dataclass(frozen=True, kw_only=True)
class Start:
    """The damaged model that a run begins with; its own vocabulary holds, whatever the data would give.

    The model as it was lies in the run's folder, and so do the damaged weights: see runs.beginning.

    Args:
        model: what the model was called.
        edits: what was done to its weights, as analysis.lab.changes.code_of writes them.
    """

    model: FullName
    edits: Annotated[tuple[Any, ...], Meta(description="codes of edits of weights")] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.model.strip():
            raise ValueError(f"model={self.model!r} must have 1 to {LONGEST_NAME} characters")
        object.__setattr__(self, "edits", _as_tuples(self.edits))
        if not all(isinstance(e, tuple) and e[:1] == ("weights",) for e in self.edits):
            raise ValueError(f"edits={self.edits!r:.100} must be codes of edits of weights")
        if len(self.edits) > MOST_EDITS or len(json.dumps(self.edits)) > LONGEST_EDITS:
            raise ValueError(f"edits has {len(self.edits)} edits; at most {MOST_EDITS} small ones are kept with a run")


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list | tuple) else value


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """Everything that fixes a run.

    Args:
        name: shown on screen.
        data: what it learns from.
        network: what learns it.
        model: its vocab_size, n_classes and pad_id follow from the data.
        training: of the loop.
        softmax_before_loss: of classifiers: the cross entropy gets probabilities instead of logits, as in the source
            article.
        frames: number of recorded moments, the first before the first step, the last after the last one.
        points: number of examples whose embeddings are recorded, half of them held out.
        threads: of processor work; 0 means all cores.
        origin: the run that this one was made from.
        start: the damaged model that it begins with; None for fresh weights, or those of the origin's frame.
    """

    name: FullName = "run"
    data: DataSpec = field(default_factory=DataSpec)
    network: NetworkSpec = field(default_factory=NetworkSpec)
    model: ModelConfig = field(default_factory=lambda: ModelConfig(vocab_size=16))
    training: TrainConfig = field(default_factory=TrainConfig)
    softmax_before_loss: bool = False
    frames: Annotated[int, within("frames")] = 24
    points: Annotated[int, within("points")] = 400
    threads: Annotated[int, within("threads")] = 0
    origin: Origin | None = None
    start: Start | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.name.strip():
            raise ValueError(f"name={self.name!r} must have 1 to {LONGEST_NAME} characters")
        for name in ("d_model", "n_heads", "d_ff", "n_experts", "shared_d_ff", "n_layers", "max_len"):
            require_within(name, getattr(self.model, name))
        for name in ("batch_size", "epochs"):
            require_within(name, getattr(self.training, name))
        if self.network.network != "transformer" and self.data.kind not in RECURRENT_KINDS:
            raise ValueError(
                f"network={self.network.network!r} does not learn source={self.data.source!r}: a recurrent network "
                "reads in one order, and a hidden word has neighbours on both sides"
            )

    @property
    def takes_weights(self) -> bool:
        """Whether the run starts from weights in its folder: a damaged model's, or those of another run's frame."""
        return self.start is not None or (self.origin is not None and self.origin.frame is not None)

    @property
    def kind(self) -> str:
        """The kind of model that learns, an entry of bundle.MODELS."""
        return self.data.kind if self.network.network == "transformer" else RECURRENT_KINDS[self.data.kind]

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
            origin, given, start = values.get("origin"), values["data"].get("given"), values.get("start")
            return cls(
                **{
                    **values,
                    "data": DataSpec(**values["data"] | {"given": None if given is None else Given(**given)}),
                    "network": NetworkSpec(**values.get("network", {})),
                    "model": ModelConfig(**values["model"]),
                    "training": TrainConfig(**values["training"]),
                    "origin": None if origin is None else Origin(**origin),
                    "start": None if start is None else Start(**start),
                }
            )
        except (TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"the run's settings cannot be read: {error!r:.200}") from None


def require_within(name: str, value: Any) -> None:
    """Raise ValueError unless `value` is a whole number within BOUNDS[name]."""
    least, most = BOUNDS[name]
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{name}={value!r} must be a whole number from {least} to {most}")
