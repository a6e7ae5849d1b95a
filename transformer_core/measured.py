"""What was measured of a model, stored beside its card: accuracy on certain texts, usual values, what training took.

Measures are of texts that the model never learned from; evaluation/weak_sides.py and the recipes write them.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from transformer_core.shares import interval
from transformer_core.untrusted.bundle_files import BundleError, check_size
from transformer_core.untrusted.schema import Share, check_printable, checked, one_of

MEASURED = "measured.json"
LARGEST = 256 << 10
FEATURES = ("short", "negation", "contrast", "question", "unknown", "cut")
UNITS = ("review", "sentence", "caption", "story", "line", "poem")
MEASURES = ("rarity", "nats_a_token")
LOOKS = ("above", "rhyme")
FEWEST = 30  # texts, for a share to be reported
OTHERS = ("usual", "trained", "sureness", "verse", "lens")
COUNTS = "learned"
Count = Annotated[int, Meta(ge=1, le=10**9)]
CountOrNone = Annotated[int, Meta(ge=0, le=10**9)]
Counts = Annotated[tuple[CountOrNone, CountOrNone], Meta(description="a list of two numbers")]
Shares = Annotated[tuple[Share, Share], Meta(description="a list of two numbers")]
Place = Annotated[int, Meta(ge=0, le=400)]
Value = Annotated[float, Meta(ge=0, le=1e3)]
Minutes = Annotated[float, Meta(ge=0, le=1e6)]
Name = Annotated[str, Meta(min_length=1, max_length=80, description="a printable name of at most 80 characters")]
NameOrNone = Annotated[str, Meta(max_length=80, description="a printable name of at most 80 characters")]
ORDERED = f"of {', '.join(FEATURES)}, in this order"
Feature = Annotated[str, one_of(*FEATURES)]
ROWS = Meta(max_length=400, description="a list of at most 400 objects")


@dataclass(frozen=True)
class Slice:
    """A classifier's accuracy on the texts with certain features.

    Args:
        data: name of the data; unit: what one text of them is.
        features: of the texts, each from FEATURES, in that order; none for all texts of the data.
        texts, right: how many, and how many of them were classified correctly.
    """

    data: Name
    unit: Annotated[str, one_of(*UNITS)]
    features: Annotated[tuple[Feature, ...], Meta(description=ORDERED)]
    texts: Count
    right: CountOrNone

    def __post_init__(self) -> None:
        check_printable(self, "data")
        if self.features != tuple(name for name in FEATURES if name in self.features):
            raise ValueError(f"features={self.features!r:.80} must be {ORDERED}")
        _check_right(self)

    @property
    def accuracy(self) -> float:
        """The share of texts classified correctly."""
        return self.right / self.texts

    @property
    def interval(self) -> tuple[float, float]:
        """The bounds of the accuracy with 95 % confidence."""
        return interval(self.accuracy, self.texts)


@dataclass(frozen=True)
class Confidence:
    """How often a classifier is right where it is so sure, on texts of such a length.

    Args:
        words: of the texts, the fewest and the most.
        probability: of the class that it chose, from the first to less than the second (1 is in the last range).
        texts, right: as of Slice.
    """

    words: Counts
    probability: Shares
    texts: Count
    right: CountOrNone

    def __post_init__(self) -> None:
        _check_right(self)


def _check_right(row: Slice | Confidence) -> None:
    if row.right > row.texts:
        raise ValueError(f"right={row.right} must be at most texts={row.texts}")


@dataclass(frozen=True)
class TypicalRange:
    """The usual values of a measure on texts like those the model learned from.

    Args:
        data, unit: as of Slice.
        measure: "nats_a_token" (mean surprise) or "rarity" (mean surprise by how often the model learned from a token).
        tokens: of the texts, the fewest and the most.
        texts: how many were measured.
        median, high: of the texts; high is the 95th percentile.
    """

    data: Name
    unit: Annotated[str, one_of(*UNITS)]
    measure: Annotated[str, one_of(*MEASURES)]
    tokens: Counts
    texts: Count
    median: Value
    high: Value

    def __post_init__(self) -> None:
        check_printable(self, "data")
        if self.median > self.high:
            raise ValueError(f"median={self.median} must be at most high={self.high}")

    def is_shorter_than(self, tokens: int) -> bool:
        """Tell whether a text of so many tokens is longer than all that were measured."""
        return tokens > self.tokens[1]


@dataclass(frozen=True)
class Trained:
    """What one stage of a training took.

    Args:
        stage: its name; empty where there is one alone.
        steps: of training.
        cpu_minutes: processor time of the recipe up to its end, interrupted runs included, all cores together.
        minutes: of wall-clock time of the same; 0 where it is not on record.
        device: the processor or card that computed, in words.
        precision: of the matrix products, as in TrainConfig; empty where it is not on record.
    """

    stage: NameOrNone
    steps: Count
    cpu_minutes: Minutes
    minutes: Minutes
    device: Name
    precision: NameOrNone

    def __post_init__(self) -> None:
        check_printable(self, "stage", "device", "precision")


@dataclass(frozen=True)
class HeadLook:
    """How much a head of a GPT of poems looks to the line above, or to the rhyme, over poems set aside.

    Args:
        look: "above" or "rhyme", as in analysis/gpt/verse.py.
        layer, head: which head.
        weight: its mean weight on those characters; uniform: that of a head that looks at all it may alike.
        worth: nats a character that the model loses there where the head is switched off; may be below 0.
        places: how many characters the means are over.
    """

    look: Annotated[str, one_of(*LOOKS)]
    layer: Place
    head: Place
    weight: Share
    uniform: Share
    worth: Annotated[float, Meta(ge=-1e3, le=1e3)]
    places: Count


@dataclass(frozen=True)
class LensStage:
    """How far the answer read from one stage is from the model's own, through the logit lens and the tuned lens.

    Args:
        data: as of Slice.
        stage: 0 for the embedding, then one a layer; the last layer has none, since it is the answer.
        logit, tuned: mean KL divergence of the model's own distribution from the one read there, in nats a token.
        low, high: the bounds of 95 % of resampled texts of the change, tuned minus logit.
        tokens, texts: how many were measured.
    """

    data: Name
    stage: Place
    logit: Annotated[float, Meta(ge=0, le=1e3)]
    tuned: Annotated[float, Meta(ge=0, le=1e3)]
    low: Annotated[float, Meta(ge=-1e3, le=1e3)]
    high: Annotated[float, Meta(ge=-1e3, le=1e3)]
    tokens: Count
    texts: Count

    def __post_init__(self) -> None:
        check_printable(self, "data")
        if self.low > self.high:
            raise ValueError(f"low={self.low} must be at most high={self.high}")


@dataclass(frozen=True)
class Measured:
    """All that was measured of a model.

    Args:
        learned: how often each entry of the vocabulary stands in what the model learned from; empty if not known.
    """

    slices: Annotated[tuple[Slice, ...], ROWS] = ()
    usual: Annotated[tuple[TypicalRange, ...], ROWS] = ()
    trained: Annotated[tuple[Trained, ...], ROWS] = ()
    sureness: Annotated[tuple[Confidence, ...], ROWS] = ()
    verse: Annotated[tuple[HeadLook, ...], ROWS] = ()
    lens: Annotated[tuple[LensStage, ...], ROWS] = ()
    learned: Annotated[tuple[CountOrNone, ...], Meta(description="a list of whole numbers")] = field(
        default=(), repr=False, hash=False
    )

    def typical_at(self, measure: str, tokens: int) -> TypicalRange | None:
        """Return the usual values of a measure for texts of so many tokens, or of the nearest length.

        Of several data the one whose 95th percentile is highest: a text is unusual where it is so beside all of them.
        """
        there = [row for row in self.usual if row.measure == measure]

        def away(row: TypicalRange) -> int:
            return max(row.tokens[0] - tokens, tokens - row.tokens[1], 0)

        nearest = min(map(away, there), default=0)
        return max((row for row in there if away(row) == nearest), key=lambda row: row.high, default=None)

    def fitting(self, features: Collection[str], unit: str = "sentence") -> tuple[Slice, ...]:
        """Return the slices that describe a text: the one with most features in common, then the one of all texts.

        Of several slices with as many features, the one with the lowest accuracy is taken; of several with the same
        features, the one with most texts; of several of all texts, the first.

        Args:
            features: of the text.
            unit: of the text; slices of other units count only where there are none of this one.
        """
        there = [row for row in self.slices if row.features and set(row.features) <= set(features)]
        there = [row for row in there if row.unit == unit] or there
        largest: dict[tuple[str, ...], Slice] = {}
        for row in sorted(there, key=lambda row: row.texts):
            largest[row.features] = row
        narrow = sorted(largest.values(), key=lambda row: (-len(row.features), row.accuracy))
        return (*narrow[:1], *[row for row in self.slices if not row.features][:1])

    def sure(self, words: int, probability: float) -> Confidence | None:
        """Return how often a verdict of this probability is right on texts of this many words, None if unknown.

        Where fewer than 30 texts were judged with such a probability, the ranges beside it are taken in, too.
        """
        rows = sorted((row for row in self.sureness if row.words[0] <= words <= row.words[1]), key=_range)
        ends = [row.probability[1] for row in rows]
        low = high = next((place for place, end in enumerate(ends) if probability < end or end >= 1.0), None)
        if low is None or high is None:
            return None
        while sum(row.texts for row in rows[low : high + 1]) < FEWEST:
            if low == 0 and high == len(rows) - 1:
                return None
            low, high = max(low - 1, 0), min(high + 1, len(rows) - 1)
        taken = rows[low : high + 1]
        bounds = taken[0].probability[0], taken[-1].probability[1]
        return Confidence(taken[0].words, bounds, sum(row.texts for row in taken), sum(row.right for row in taken))


NOTHING_MEASURED = Measured()


def _range(row: Confidence) -> tuple[float, float]:
    return row.probability


def write_measured(folder: Path, measured: Measured) -> None:
    """Write what was measured into a bundle's folder, shares and their intervals beside the counts."""
    slices = [
        {
            "data": row.data,
            "unit": row.unit,
            "features": list(row.features),
            "texts": row.texts,
            "right": row.right,
            "accuracy": round(row.accuracy, 4),
            "interval": [round(end, 4) for end in row.interval],
        }
        for row in measured.slices
    ]
    rows = {"slices": slices, **{name: [vars(row) for row in getattr(measured, name)] for name in OTHERS}}
    lists = [
        f'  "{name}": [' + ",".join(f"\n    {json.dumps(row)}" for row in own) + "\n  ]" for name, own in rows.items()
    ]
    lists += [f'  "{COUNTS}": {json.dumps(measured.learned)}'] if measured.learned else []
    (folder / MEASURED).write_text("{\n" + ",\n".join(lists) + "\n}\n", encoding="utf-8")


def read_measured(folder: Path) -> Measured:
    """Read what was measured of a bundle; NOTHING_MEASURED where there is no file.

    Raises:
        BundleError: the file is too large, a link, or holds impossible values.
    """
    path = folder / MEASURED
    if not path.exists() and not path.is_symlink():
        return NOTHING_MEASURED
    check_size(path, LARGEST)
    try:
        return checked(json.loads(path.read_text(encoding="utf-8")), Measured)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{folder.name}/{MEASURED}: {error!s:.300}") from error
