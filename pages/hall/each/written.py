"""What a scene gives to every phone, as a lecture writes it, and the check of it.

screen: gpt?text=Once upon a time there was a little&model=gpt
each: draw draws=5 temperature=1

### Each

What the phones are asked, in Markdown; without it, the kind's own words.

- one item a line, where the kind takes any
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import get_args

from pages.kit.models import kind_of
from transformer_core.analysis.classroom.cuts import Of
from transformer_core.analysis.classroom.draws import HOTTEST
from transformer_core.analysis.classroom.forecasts import MOST_WORDS
from transformer_core.analysis.classroom.small_runs import SETTINGS

LONGEST_ITEM = 400
COOLEST = 0.1  # temperature
MORE = "model"  # every kind may name another model than the screen's


class EachError(ValueError):
    """It cannot be read; `line` counts from the scene's heading."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Each:
    """What a scene gives to every phone.

    Args:
        kind: a name of KINDS; settings: its settings as they are written.
        words: what the phones are asked, in Markdown; "" for the kind's own words.
        items: texts that the kind takes.
    """

    kind: str
    settings: Mapping[str, str]
    words: str = ""
    items: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> str:
        """Return a setting, by default as KINDS has it."""
        return self.settings.get(name, KINDS[self.kind].settings[name].default)

    @property
    def head(self) -> str:
        """The line as a lecture writes it."""
        return " ".join([self.kind, *(f"{name}={value}" for name, value in self.settings.items())])


@dataclass(frozen=True)
class Setting:
    """What a setting may be: one of some words, or a number.

    Args:
        default: where it is not written.
        options: words; or low, high: bounds of a number; whole: without a fraction.
    """

    default: str
    options: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = True
    ends: bool = False  # two words with / between

    def wrong(self, value: str) -> str:
        """Return what it must be, "" where the value is that."""
        if self.ends:
            fine, needed = re.fullmatch(r"[^/\s]{1,40}/[^/\s]{1,40}", value), "two words such as bad/good"
        elif self.options:
            fine, needed = value in self.options, f"one of {', '.join(self.options)}"
        else:
            number = re.fullmatch(r"[0-9]{1,3}" if self.whole else r"[0-9]{1,3}(\.[0-9]{1,3})?", value)
            fine = number and self.low <= float(value) <= self.high
            needed = f"{'a whole number' if self.whole else 'a number'} from {self.low:g} to {self.high:g}"
        return "" if fine else needed


@dataclass(frozen=True)
class Written:
    """How a kind is written.

    Args:
        settings: by name; items: fewest and most.
        models: kinds of models that it asks; none where it needs no model.
        text: it asks about the screen's text.
    """

    settings: Mapping[str, Setting]
    items: tuple[int, int] = (0, 0)
    models: tuple[str, ...] = ()
    text: bool = False


READ_ONE = ("classifier", "bert", "gpt")
KINDS: Mapping[str, Written] = MappingProxyType(
    {
        "draw": Written(
            {
                "draws": Setting("5", low=1, high=20),
                "temperature": Setting("1", low=COOLEST, high=HOTTEST, whole=False),
            },
            models=("gpt", "lm"),
            text=True,
        ),
        "guess": Written({"words": Setting("10", low=1, high=MOST_WORDS)}, (1, 1), ("gpt", "lm")),
        "cut": Written({"of": Setting("head", get_args(Of))}, models=READ_ONE, text=True),
        "label": Written({}, (2, 20), ("classifier",)),
        "vector": Written(
            {"x": Setting("", ends=True), "y": Setting("", ends=True), "words": Setting("3", low=1, high=10)},
            (4, 40),
            READ_ONE,
        ),
        "train": Written(
            {
                "vary": Setting("seed", tuple(SETTINGS)),
                "runs": Setting("12", low=2, high=max(map(len, SETTINGS.values()))),
                "language": Setting("en", ("en", "zh")),
            }
        ),
    }
)


def read_each(head: str, line: int, section: list[str], below: int, state: Mapping[str, str]) -> Each:
    """Read the line after ``each:`` and the section ### Each.

    Args:
        head: the line; line: its number, counted from the scene's heading.
        section: lines of the section; below: the number of its heading, counted likewise.
        state: of the scene's screen, which has the text and the model.

    Raises:
        EachError: what is wrong, and in which line.
    """
    kind, *pairs = head.split() or [""]
    if kind not in KINDS:
        raise EachError(f"each: {kind!r:.40} must be one of {', '.join(KINDS)}", line)
    written, settings = KINDS[kind], dict[str, str]()
    for pair in pairs:
        name, _, value = pair.partition("=")
        if name != MORE and name not in written.settings:
            known = ", ".join((*written.settings, MORE))
            raise EachError(f"each: {kind} has {name!r:.40}, must be one of {known}", line)
        needed = "" if name == MORE else written.settings[name].wrong(value)
        if needed:
            raise EachError(f"each: {kind} has {name}={value!r:.40}, must be {needed}", line)
        settings[name] = value
    for name, setting in written.settings.items():
        if not setting.default and name not in settings:
            raise EachError(f"each: {kind} needs {name}=, {setting.wrong('')}", line)
    each = Each(kind, settings)
    if kind == "train" and int(each["runs"]) > (most := len(SETTINGS[each["vary"]])):  # type: ignore[index]
        raise EachError(f"each: train has {most} settings of {each['vary']}; runs= must be at most that", line)
    _check_asked(kind, settings.get(MORE) or state.get("model", ""), state.get("text", ""), line)
    words, items = _section(section, below)
    fewest, most = written.items
    if not fewest <= len(items) <= most:
        needed = f"{fewest} to {most}" if most > fewest else str(most)
        raise EachError(f"### Each has {len(items)} lines such as - a text; {kind} takes {needed}", below or line)
    if kind == "guess" and items[0].count(" | ") != 1:
        raise EachError("### Each of guess needs one sign | with blanks, before what is guessed", below)
    if len(set(items)) < len(items):
        raise EachError("### Each has the same line twice", below)
    return replace(each, words=words, items=items)


def _check_asked(kind: str, model: str, text: str, line: int) -> None:
    """Raise EachError unless there is the text, and a model of the kind, that this asks about."""
    written = KINDS[kind]
    if written.text and not text.strip():
        raise EachError(f"each: {kind} needs text in the screen", line)
    found = kind_of(model) if written.models else None
    if written.models and found is None:
        raise EachError(f"each: {kind} has model={model!r:.60}, and there is no such model", line)
    if written.models and found not in written.models:
        needed = " or ".join(written.models)
        raise EachError(f"each: {kind} has model={model!r:.60}, which is a {found}; it must be a {needed}", line)


def _section(lines: list[str], below: int) -> tuple[str, tuple[str, ...]]:
    items = []
    words = []
    for number, line in enumerate(lines, below + 1):
        if line.startswith("- "):
            items.append(line[2:].strip())
            if not 1 <= len(items[-1]) <= LONGEST_ITEM:
                raise EachError(
                    f"a line of ### Each has {len(items[-1])} characters, must have 1 to {LONGEST_ITEM}", number
                )
        elif items and line.strip():
            raise EachError("### Each has its words first, then its lines such as - a text", number)
        else:
            words.append(line)
    return "\n".join(words).strip(), tuple(items)
