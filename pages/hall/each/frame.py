"""What all kinds of part have in common: who does it, what is asked of them, and what is shown of all together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from pages.hall.each.written import MORE, Each
from pages.kit.header import MOST_TOKENS
from pages.kit.models import is_there, open_bundle
from pages.language import t, words
from transformer_core.bundle import Bundle
from transformer_core.prompt import Prompt
from transformer_core.untrusted.bundle_files import BundleError

STAGES = ("asked", "shown", "measured")
ROUNDED = 6  # decimals of numbers in figures
Body = dict[str, Any]
E = TypeVar("E")


class BadPartError(ValueError):
    """What a phone sent is nothing that its part takes."""


@dataclass(frozen=True)
class Phone:
    """One of those who do a part.

    Args:
        seat: a number from 0, in the order in which phones came.
        seed: of its random numbers, which no other phone of the scene has.
    """

    seat: int
    seed: int


@dataclass(frozen=True)
class Given:
    """What a phone gave in one round, from 0, as its kind keeps it."""

    phone: Phone
    round: int
    said: Any


@dataclass(frozen=True)
class Row:
    """One line of what a scene came to, for tables: the class's value beside the exact one, each with its unit."""

    answer: str
    count: int
    of_class: float | None
    exact: float | None
    unit: str


@dataclass(frozen=True)
class Picture:
    """What the projector shows of a class.

    Args:
        figures: as assets/hall/figure.js draws them; said: sentences; rows: the same as a table.
        count: answers in it; people: who gave them.
    """

    figures: tuple[Body, ...]
    said: tuple[str, ...]
    rows: tuple[Row, ...]
    count: int
    people: int

    def sent(self) -> Body:
        """Return it for browsers, which read the figures and not the rows."""
        return {"figures": self.figures, "said": self.said, "count": self.count, "people": self.people}

    def table(self) -> list[Body]:
        """Return its rows for a table, the class's value beside the exact one."""
        return [
            {"answer": row.answer, "count": row.count, "class": row.of_class, "exact": row.exact, "unit": row.unit}
            for row in self.rows
        ]


@dataclass(frozen=True)
class Task(Generic[E]):
    """A scene's part for each, with what is exact about it.

    Args:
        exact: what the kind's question came to.
        setting: the lecturer's slider, where the kind has one.
        stage: of STAGES.
    """

    each: Each
    exact: E
    language: str
    setting: float | None = None
    stage: str = STAGES[0]

    def say(self, key: str, **values: object) -> str:
        """Return words of the screen."""
        return words(self.language)[f"each.{key}"].format(**values)

    def called(self, label: str) -> str:
        """Return what people call a class of a model."""
        return words(self.language).get(f"lectures.option_{label}", label)

    @property
    def open(self) -> bool:
        """Whether the class's answers are shown."""
        return self.stage != STAGES[0]

    @property
    def measured(self) -> bool:
        """Whether what is exact may be seen."""
        return self.stage == STAGES[-1]

    def picture(
        self, figures: Sequence[Body], said: Sequence[str], rows: Sequence[Row], given: Sequence[Given]
    ) -> Picture:
        """Return a picture of what was given."""
        return Picture(tuple(figures), tuple(said), tuple(rows), len(given), len({one.phone for one in given}))


@dataclass(frozen=True)
class Slider:
    """What a lecturer may move: a number with bounds and a step, and the key of its label."""

    label: str
    low: float
    high: float
    step: float
    first: float


class Kind(Generic[E]):
    """A kind of part. Its methods are pure: the same phone with the same exact values has the same part."""

    heavy: ClassVar[bool] = False  # what is exact takes longer than a moment

    def question(self, each: Each, state: Mapping[str, str]) -> tuple[Callable[..., E], Body]:
        """Return the function, and its arguments, that computes what is exact, once for all phones.

        Raises:
            BundleError: this visitor has no such model, or it cannot be opened.
        """
        raise NotImplementedError

    def rounds(self, each: Each) -> int:
        """Return how often a phone gives something."""
        return 1

    def slider(self, each: Each) -> Slider | None:
        """Return the lecturer's slider, if there is one."""
        return None

    def part(self, task: Task[E], phone: Phone, given: Sequence[Any]) -> Body:
        """Return what a phone sees: lines, what it is asked (None once it is done), results of its rounds.

        Args:
            given: what it gave so far, one a round.
        """
        raise NotImplementedError

    def take(self, task: Task[E], phone: Phone, place: int, said: Any) -> Any:
        """Return what is kept of what a phone sent in a round.

        Raises:
            BadPartError: it is nothing that the part takes.
        """
        raise NotImplementedError

    def other(self, task: Task[E], phone: Phone) -> list[Any]:
        """Return what a draw of the model gives in place of a phone, one a round."""
        raise NotImplementedError

    def picture(self, task: Task[E], given: Sequence[Given]) -> Picture:
        """Return what is shown of all that was given."""
        raise NotImplementedError


def bundle_of(each: Each, state: Mapping[str, str]) -> Bundle:
    """Return the model that is asked: the one that `each` names, else the screen's.

    Raises:
        BundleError: this visitor has no such model, or it cannot be opened.
    """
    name = each.settings.get(MORE) or state["model"]
    if not is_there(name):
        raise BundleError(t("model.gone", name=name))
    return open_bundle(name)


def prompt_of(bundle: Bundle, text: str) -> Prompt:
    """Return a text as a model is asked about it."""
    return Prompt(bundle, text, min(MOST_TOKENS, bundle.config.max_len))


def random_of(phone: Phone) -> np.random.Generator:
    """Return a phone's random numbers: numpy.random.default_rng(seed)."""
    return np.random.default_rng(phone.seed)


def share_of(said: Any, least: float = 0.0, most: float = 1.0) -> float:
    """Return a number that a phone sent.

    Raises:
        BadPartError: it is no number between the bounds.
    """
    if isinstance(said, bool) or not isinstance(said, int | float) or not least <= said <= most:
        raise BadPartError(f"said={said!r:.40} must be a number from {least:g} to {most:g}")
    return float(said)


def choice_in(said: Any, options: Sequence[str]) -> str:
    """Return an option that a phone sent.

    Raises:
        BadPartError: it is none.
    """
    if not isinstance(said, str) or said not in options:
        raise BadPartError(f"said={said!r:.40} must be one of {len(options)} options")
    return said


def known(value: float) -> float | None:
    """Return a number as figures have it; None where it is none."""
    return round(float(value), ROUNDED) if np.isfinite(value) else None


def bars(
    title: str, unit: str, names: Sequence[str], rows: Sequence[Body], *, least: float = 0.0, most: float | None = None
) -> Body:
    """Return a figure of bars: of the class, and below each the exact one.

    Args:
        unit: "share", "bits" or "points" (of a percentage).
        names: of the class's and of the exact bars.
        rows: label, values (of the class and exact, None where there is none), low, high (of the class), n.
        least, most: ends of the scale; by default the greatest value.
    """
    return {
        "form": "bars",
        "title": title,
        "unit": unit,
        "names": list(names),
        "rows": list(rows),
        "least": least,
        "most": most,
    }
