"""What was measured of a model, stored beside its card: accuracy on certain texts, usual values, what training took.

Measures are of texts that the model never learned from; evaluation/weak_sides.py and the recipes write them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformer_core.shares import interval
from transformer_core.stored import number, numbers, read_stored, rows, text, whole_number, write_stored
from transformer_core.untrusted.bundle_files import BundleError, check_size

MEASURED = "measured.json"
LARGEST = 256 << 10
MOST_ROWS, LONGEST_NAME, MOST_TEXTS = 400, 80, 10**9
FEATURES = ("short", "negation", "contrast", "question", "unknown", "cut")
UNITS = ("review", "sentence", "caption", "story", "line", "poem")
MEASURES = ("rarity", "nats_a_token")
LOOKS = ("above", "rhyme")
LARGEST_VALUE = 1e3
LONGEST_TRAINING = 1e6  # minutes
FEWEST = 30  # texts, for a share to be reported
OTHERS = ("usual", "trained", "sureness", "verse")
COUNTS = "learned"


@dataclass(frozen=True)
class Slice:
    """A classifier's accuracy on the texts with certain features.

    Args:
        data: name of the data; unit: what one text of them is.
        features: of the texts, each from FEATURES, in that order; none for all texts of the data.
        texts, right: how many, and how many of them were classified correctly.
    """

    data: str
    unit: str
    features: tuple[str, ...]
    texts: int
    right: int

    @property
    def accuracy(self) -> float:
        """The share of texts classified correctly."""
        return self.right / self.texts

    @property
    def interval(self) -> tuple[float, float]:
        """The bounds of the accuracy with 95 % confidence."""
        return interval(self.accuracy, self.texts)


@dataclass(frozen=True)
class Sureness:
    """How often a classifier is right where it is so sure, on texts of such a length.

    Args:
        words: of the texts, the fewest and the most.
        probability: of the class that it chose, from the first to less than the second (1 is in the last range).
        texts, right: as of Slice.
    """

    words: tuple[int, int]
    probability: tuple[float, float]
    texts: int
    right: int


@dataclass(frozen=True)
class Usual:
    """The usual values of a measure on texts like those the model learned from.

    Args:
        data, unit: as of Slice.
        measure: "nats_a_token" (mean surprise) or "rarity" (mean surprise by how often the model learned from a token).
        tokens: of the texts, the fewest and the most.
        texts: how many were measured.
        median, high: of the texts; high is the 95th percentile.
    """

    data: str
    unit: str
    measure: str
    tokens: tuple[int, int]
    texts: int
    median: float
    high: float


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

    stage: str
    steps: int
    cpu_minutes: float
    minutes: float
    device: str
    precision: str


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

    look: str
    layer: int
    head: int
    weight: float
    uniform: float
    worth: float
    places: int


@dataclass(frozen=True)
class Measured:
    """All that was measured of a model.

    Args:
        learned: how often each entry of the vocabulary stands in what the model learned from; empty if not known.
    """

    slices: tuple[Slice, ...] = ()
    usual: tuple[Usual, ...] = ()
    trained: tuple[Trained, ...] = ()
    sureness: tuple[Sureness, ...] = ()
    verse: tuple[HeadLook, ...] = ()
    learned: tuple[int, ...] = field(default=(), repr=False, hash=False)

    def usual_at(self, measure: str, tokens: int) -> Usual | None:
        """Return the usual values of a measure for texts of so many tokens, or of the nearest length.

        Of several data the one whose 95th percentile is highest: a text is unusual where it is so beside all of them.
        """
        there = [row for row in self.usual if row.measure == measure]

        def away(row: Usual) -> int:
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

    def sure(self, words: int, probability: float) -> Sureness | None:
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
        return Sureness(taken[0].words, bounds, sum(row.texts for row in taken), sum(row.right for row in taken))


NOTHING_MEASURED = Measured()


def _range(row: Sureness) -> tuple[float, float]:
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
    others = {name: [vars(row) for row in getattr(measured, name)] for name in OTHERS}
    learned = {COUNTS: measured.learned} if measured.learned else {}
    write_stored(folder / MEASURED, {"slices": slices} | others | learned)


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
        return read_stored(path, LARGEST, _checked)
    except ValueError as error:
        raise BundleError(f"{folder.name}/{error}") from error


def _checked(found: Mapping[str, Any]) -> Measured:
    readers = {"slices": _slice, "usual": _usual, "trained": _trained, "sureness": _sureness, "verse": _head_look}
    lists = {name: tuple(map(read, rows({name: [], **found}, name, MOST_ROWS, 0))) for name, read in readers.items()}
    return Measured(**lists, learned=_counts(found.get(COUNTS, [])))


def _counts(found: Any) -> tuple[int, ...]:
    if not isinstance(found, list) or any(type(count) is not int or not 0 <= count <= MOST_TEXTS for count in found):
        raise ValueError(f"{COUNTS}={found!r:.80} must be a list of whole numbers from 0 to {MOST_TEXTS}")
    return tuple(found)


def _slice(row: Mapping[str, Any]) -> Slice:
    features = row.get("features")
    if not isinstance(features, list) or features != [name for name in FEATURES if name in features]:
        raise ValueError(f"features={features!r:.80} must be of {', '.join(FEATURES)}, in this order")
    texts, right = whole_number(row, "texts", 1, MOST_TEXTS), whole_number(row, "right", 0, MOST_TEXTS)
    if right > texts:
        raise ValueError(f"right={right} must be at most texts={texts}")
    return Slice(text(row, "data", LONGEST_NAME), _one_of(row, "unit", UNITS), tuple(features), texts, right)


def _usual(row: Mapping[str, Any]) -> Usual:
    median, high = (number(row, name, 0, LARGEST_VALUE) for name in ("median", "high"))
    if median > high:
        raise ValueError(f"median={median} must be at most high={high}")
    texts, measure = whole_number(row, "texts", 1, MOST_TEXTS), _one_of(row, "measure", MEASURES)
    data, unit = text(row, "data", LONGEST_NAME), _one_of(row, "unit", UNITS)
    return Usual(data, unit, measure, _range_of(row, "tokens"), texts, median, high)


def _sureness(row: Mapping[str, Any]) -> Sureness:
    texts, right = whole_number(row, "texts", 1, MOST_TEXTS), whole_number(row, "right", 0, MOST_TEXTS)
    if right > texts:
        raise ValueError(f"right={right} must be at most texts={texts}")
    words = _range_of(row, "words")
    low, high = numbers(row, "probability", 2, 0, 1)
    return Sureness(words, (low, high), texts, right)


def _range_of(row: Mapping[str, Any], name: str) -> tuple[int, int]:
    low, high = numbers(row, name, 2, 0, MOST_TEXTS, whole_number)
    return low, high


def _head_look(row: Mapping[str, Any]) -> HeadLook:
    layer, head = (whole_number(row, name, 0, MOST_ROWS) for name in ("layer", "head"))
    weight, uniform = (number(row, name, 0, 1) for name in ("weight", "uniform"))
    worth = number(row, "worth", -LARGEST_VALUE, LARGEST_VALUE)
    look, places = _one_of(row, "look", LOOKS), whole_number(row, "places", 1, MOST_TEXTS)
    return HeadLook(look, layer, head, weight, uniform, worth, places)


def _trained(row: Mapping[str, Any]) -> Trained:
    cpu_minutes, minutes = (number(row, name, 0, LONGEST_TRAINING) for name in ("cpu_minutes", "minutes"))
    stage, precision = (text(row, name, LONGEST_NAME, 0) for name in ("stage", "precision"))
    steps, device = whole_number(row, "steps", 1, MOST_TEXTS), text(row, "device", LONGEST_NAME)
    return Trained(stage, steps, cpu_minutes, minutes, device, precision)


def _one_of(row: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> str:
    if row.get(name) not in allowed:
        raise ValueError(f"{name}={row.get(name)!r:.80} must be one of {', '.join(allowed)}")
    return row[name]
