"""Lectures: readable text files, each a list of scenes, and a scene is a link of the app with a few words to it.

---
title: The Transformer in twelve scenes
about: From a typed sentence to a verdict and a translation.
minutes: 40
---

## A sentence goes in
screen: home?text=The film was not good, but I loved the ending.
figure: verdict architecture
open: architecture

Two to four sentences, in Markdown.

### Question
measured: verdict

What does the model say?

- negative: It calls this bad.
- positive: It calls this good.

### Notes

What only the lecturer sees.

Instead of a question a scene may give every phone a part of an experiment; each/written.py has how that is written.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

from pages.hall.each.written import Each, EachError, read_each
from pages.kit.models import kind_of
from pages.kit.navigation import ICONS, choice_of_part
from pages.language import ASSETS, LANGUAGES, words
from pages.serving.owners import visitor
from transformer_core.analysis.finding import Finding
from transformer_core.analysis.questions import QUESTIONS, reads, taken_by
from transformer_core.kept import kept_at

FOLDER = ASSETS / "lectures"
MORE_LECTURES = "VITRINE_LECTURES"  # names a folder of lectures to list after the shipped ones
OWN_LECTURES = "VITRINE_OWN_LECTURES"  # names the folder of those that people make here, by default .runs/lectures
READ_FIRST = (
    "twelve_scenes",
    "from_recurrence",
    "how_an_encoder_learns",
    "the_lab",
    "since_2017",
    "a_step_of_learning",
    "you_are_the_model",
)
OWN = "own."  # begins the names of those of this visitor
SENTENCE = "verdict"  # measures a question that has no options: it asks for a sentence
LARGEST, MOST_SCENES = 200_000, 60
LONGEST_TITLE, LONGEST_STATE, MOST_OPTIONS = 120, 2_000, 6
LONGEST_WORDS, MOST_CELLS, MOST_MARKS = 20_000, 2_000, 400  # of a scene's words, notes or question, in Markdown
MARKS = re.compile("[*_~`[>]")  # each may begin what another ends, or lies in
WHOLE = re.compile("-?[0-9]{1,5}")
NAME = re.compile(r"[a-z0-9][a-z0-9_]{0,59}")
KEPT_SPELLING = " ,.!?'\"/:;()[]~*@$<>|{}^`"  # stands in a screen as it is; the rest of ASCII's marks is quoted


class LectureError(ValueError):
    """A lecture cannot be read, or a scene asks for what is not there; with its line, in words for the page.

    Args:
        below: lines between the scene's heading and what is wrong.
    """

    def __init__(self, message: str, below: int = 0) -> None:
        super().__init__(message)
        self.below = below


@dataclass(frozen=True)
class Question:
    """What a scene asks.

    Args:
        measured: a name of QUESTIONS, which answers it.
        numbers: what that takes beside the text, where the scene's state does not have it.
        words: the question, in Markdown.
        options: in words, by what the function may find; none where it asks for a sentence.
    """

    measured: str
    numbers: Mapping[str, int]
    words: str
    options: Mapping[str, str]


@dataclass(frozen=True)
class Scene:
    """One screen of the app, and what is said to it.

    Args:
        page: the page's name; state: what its link says.
        text, notes: Markdown; the notes are the lecturer's alone.
        figure: what the projector shows of the screen: names of pictures on the page, NAME of a container with the key
            figure_NAME, and "verdict", "lines", "formula", "chart", "chart2" for what has none; "" for the largest one.
        left_open: which figures the question leaves open, since they do not answer it, by the same names ("chart" are
            all charts); everything else that the part computes is covered until it is answered.
    """

    title: str
    page: str
    state: Mapping[str, str]
    text: str
    question: Question | None = None
    notes: str = ""
    figure: str = ""
    left_open: str = ""
    each: Each | None = None

    @property
    def sentences(self) -> tuple[str, ...]:
        """What its screen reads, as a person would type it."""
        return tuple(self.state[name] for name in ("text", "lab_other") if self.state.get(name))

    @property
    def chooses(self) -> bool:
        """Whether it asks a question that the screen answers: one with options."""
        return self.question is not None and bool(self.question.options)

    @property
    def screen(self) -> str:
        """The screen as a lecture writes it."""
        state = "&".join(f"{name}={quote(value, safe=KEPT_SPELLING)}" for name, value in self.state.items())
        return f"{self.page}?{state}" if state else self.page

    def asked(self) -> dict[str, int | str]:
        """Return the whole numbers and texts that the question's function takes.

        Raises:
            LectureError: one is missing, or is no whole number.
        """
        assert self.question is not None
        found: dict[str, int | str] = {}
        for name, kind in taken_by(self.question.measured).items():
            value = self.question.numbers.get(name, self.state.get(name, self.state.get(f"{self.page}_{name}")))
            if kind is str:
                if not value:
                    raise LectureError(f"{self.question.measured} needs {name}, a text, in the screen")
                found[name] = str(value)
                continue
            if not WHOLE.fullmatch(str(value)):
                raise LectureError(f"{self.question.measured} needs {name}, a whole number, in measured or the screen")
            found[name] = int(str(value))
        return found


@dataclass(frozen=True)
class Lecture:
    """A list of scenes in one language.

    Args:
        name: of its folder.
        about: one sentence; minutes: how long it takes.
    """

    name: str
    title: str
    about: str
    minutes: int
    scenes: tuple[Scene, ...]

    def written(self) -> str:
        """Return the lecture's file."""
        head = f"---\ntitle: {self.title}\nabout: {self.about}\nminutes: {self.minutes}\n---\n"
        return head + "".join(f"\n{_written(scene)}" for scene in self.scenes)


def _written(scene: Scene) -> str:
    figures = {"figure": scene.figure, "open": scene.left_open, "each": scene.each.head if scene.each else ""}
    said = "".join(f"\n{key}: {names}" for key, names in figures.items() if names)
    parts = [f"## {scene.title}\nscreen: {scene.screen}{said}", scene.text]
    if scene.question is not None:
        question = scene.question
        numbers = "".join(f" {name}={value}" for name, value in question.numbers.items())
        options = "\n".join(f"- {option}: {label}" for option, label in question.options.items())
        parts += [f"### Question\nmeasured: {question.measured}{numbers}", question.words, options]
    if scene.each is not None and (scene.each.words or scene.each.items):
        parts += ["### Each", scene.each.words, "\n".join(f"- {item}" for item in scene.each.items)]
    if scene.notes:
        parts += ["### Notes", scene.notes]
    return "\n\n".join(part for part in parts if part) + "\n"


def read_lecture(name: str, text: str) -> Lecture:
    """Read a lecture and check every scene: its page, part and model are there, and its question can be answered.

    Raises:
        LectureError: what is wrong, and where.
    """
    if len(text) > LARGEST:
        raise LectureError(f"the lecture has {len(text):,} characters; at most {LARGEST:,} are read")
    lines = text.replace("\r\n", "\n").split("\n")
    ends = [number for number, line in enumerate(lines) if line.strip() == "---"]
    if len(ends) < 2 or any(line.strip() for line in lines[: ends[0]]):
        raise LectureError("line 1: a lecture begins with a line --- , then title, about and minutes, then --- again")
    head = dict(_head(lines[ends[0] + 1 : ends[1]], ends[0] + 2))
    for key in ("title", "about", "minutes"):
        if not head.get(key):
            raise LectureError(f"line {ends[0] + 1}: {key} is missing between the two lines ---")
    if not re.fullmatch("[0-9]{1,3}", head["minutes"]):
        raise LectureError(f"minutes={head['minutes']!r:.20} must be a whole number")
    scenes = tuple(_scenes(lines, ends[1] + 1))
    if not 1 <= len(scenes) <= MOST_SCENES:
        raise LectureError(
            f"the lecture has {len(scenes)} scenes, each with a heading ##; it must have 1 to {MOST_SCENES}"
        )
    return Lecture(name, head["title"][:LONGEST_TITLE], head["about"], int(head["minutes"]), scenes)


def _pair(line: str) -> tuple[str, str]:
    key, colon, value = line.partition(":")
    if not colon:
        raise LectureError(f"{line!r:.60} must be a name, a colon and a value")
    return key.strip(), value.strip()


def _head(lines: list[str], first: int) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines, first):
        if line.strip():
            try:
                yield _pair(line)
            except LectureError as error:
                raise LectureError(f"line {number}: {error}") from None


def _scenes(lines: list[str], start: int) -> Iterator[Scene]:
    starts = [number for number in range(start, len(lines)) if lines[number].startswith("## ")]
    if any(line.strip() for line in lines[start : starts[0] if starts else len(lines)]):
        raise LectureError(f"line {start + 1}: before the first scene, a heading ##, nothing may stand")
    for first, end in pairwise([*starts, len(lines)]):
        try:
            yield _scene(lines[first:end])
        except LectureError as error:
            raise LectureError(
                f"line {first + 1 + error.below}, scene {lines[first][3:].strip()!r:.60}: {error}"
            ) from None


def _scene(lines: list[str]) -> Scene:
    parts, starts = {"": list[str]()}, {"": 0}
    for number, line in enumerate(lines[1:], 1):
        if line.startswith("### "):
            parts[line[4:].strip()], starts[line[4:].strip()] = [], number
        else:
            parts[list(parts)[-1]].append(line)
    unknown = parts.keys() - {"", "Question", "Each", "Notes"}
    if unknown:
        raise LectureError(f"### {sorted(unknown)[0]:.60} must be ### Question, ### Each or ### Notes")
    screen, text = _headed(parts[""], "screen")
    page, _, state = screen.partition("?")
    said = dict(parse_qsl(state.replace("+", "%2B"), keep_blank_values=True))
    figures = dict.fromkeys(("figure", "open", "each"), "")
    for key in figures:
        if text.startswith(f"{key}:"):
            figures[key], text = _headed(text.split("\n"), key)
    question = _question(parts["Question"]) if "Question" in parts else None
    each = None
    if figures["each"] or "Each" in parts:
        at = next((number for number, line in enumerate(lines) if line.startswith("each:")), 0)
        if question is not None:
            raise LectureError("a scene has ### Question or each:, not both", at)
        try:
            each = read_each(figures["each"], at, parts.get("Each", []), starts.get("Each", 0), said)
        except EachError as error:
            raise LectureError(str(error), error.line) from None
    scene = Scene(
        lines[0][3:].strip()[:LONGEST_TITLE],
        page.strip("/ ") or next(iter(ICONS)),
        said,
        text,
        question,
        "\n".join(parts.get("Notes", [])).strip(),
        figures["figure"],
        figures["open"],
        each,
    )
    _check(scene)
    return scene


def _headed(lines: list[str], key: str) -> tuple[str, str]:
    """Return what a part says under its key in the first line, and the text below."""
    while lines and not lines[0].strip():
        lines = lines[1:]
    if not lines or not lines[0].startswith(f"{key}:"):
        raise LectureError(f"its first line must be {key}: and a value")
    return lines[0].partition(":")[2].strip(), "\n".join(lines[1:]).strip()


def _question(lines: list[str]) -> Question:
    measured, body = _headed(lines, "measured")
    name, *numbers = measured.split()
    pairs = [number.partition("=") for number in numbers]
    if name not in QUESTIONS or not all(WHOLE.fullmatch(value) for _, _, value in pairs):
        raise LectureError(f"measured: {measured!r:.60} must be one of {', '.join(QUESTIONS)}, and numbers as layer=2")
    text, _, options = f"\n{body}".partition("\n- ")
    found = dict(_pair(line) for line in re.split(r"\n- |\n", options) if line.strip())
    wants_sentence = name == SENTENCE and not options.strip()
    if not text.strip() or not (wants_sentence or 2 <= len(found) <= MOST_OPTIONS):
        raise LectureError(
            f"a question has its words, then 2 to {MOST_OPTIONS} lines such as - negative: It is bad.; "
            f"only one measured by {SENTENCE} may have none, and asks for a sentence"
        )
    return Question(name, {key: int(value) for key, _, value in pairs}, text.strip(), found)


def _check(scene: Scene) -> None:
    """Raise LectureError unless the app has the scene's page, part and model, and its question its numbers."""
    if scene.page not in ICONS:
        raise LectureError(f"screen has the page {scene.page!r:.40}, must be one of {', '.join(ICONS)}")
    choice = choice_of_part(scene.page)
    part, model = scene.state.get(choice), scene.state.get("model")
    start = f"{scene.page}.part_"
    parts = [key.removeprefix(start) for key in words("en") if key.startswith(start)]
    if part is not None and part not in parts:
        raise LectureError(f"screen has {choice}={part!r:.40}, must be one of {', '.join(parts)}")
    if model is not None and kind_of(model) is None:
        raise LectureError(f"screen has model={model!r:.60}, and there is no such model")
    for name in ("layer", "head"):
        if name in scene.state and not re.fullmatch("[0-9]{1,3}", scene.state[name]):
            raise LectureError(f"screen has {name}={scene.state[name]!r:.20}, must be a whole number")
    if any(len(value) > LONGEST_STATE for value in scene.state.values()):
        raise LectureError(f"screen has a value of more than {LONGEST_STATE:,} characters")
    for key, names in (("figure", scene.figure), ("open", scene.left_open)):
        if not re.fullmatch("[a-z0-9_ -]{0,200}", names):
            raise LectureError(f"{key} has {names!r:.60}, must be names of figures with blanks between")
    if not scene.text:
        raise LectureError("it has no words, must have two to four sentences")
    question = "" if scene.question is None else scene.question.words
    each = "" if scene.each is None else scene.each.words
    for what, text in (("words", scene.text), ("notes", scene.notes), ("question", question), ("part", each)):
        _check_markdown(what, text)
    if scene.question is not None:
        scene.asked()
        about = {"bundle": ("model",), "prompt": ("model", "text")}
        needed = {key for name in reads(scene.question.measured) for key in about[name]}
        if not needed <= scene.state.keys():
            raise LectureError(
                f"{scene.question.measured} needs {' and '.join(sorted(needed, reverse=True))} in the screen"
            )


def _check_markdown(what: str, text: str) -> None:
    """Raise LectureError unless a text is made into nodes in a moment, and they lie in each other but so deep.

    A row of a table has as many cells as its widest row: a few kB of lines and bars are millions of them.
    """
    lines = text.split("\n")
    cells = len(lines) * (1 + max(line.count("|") for line in lines))
    for many, most, of in (
        (len(text), LONGEST_WORDS, "characters"),
        (cells, MOST_CELLS, "lines times cells of the widest"),
        (len(MARKS.findall(text)), MOST_MARKS, "marks * _ ~ ` [ >"),
    ):
        if many > most:
            raise LectureError(f"its {what} have {many:,} {of}; at most {most:,} are read")


@lru_cache(maxsize=64)
def _read_file(name: str, path: Path, changed: int) -> Lecture:
    with path.open(encoding="utf-8") as file:
        return read_lecture(name, file.read(LARGEST + 1))


def _paths(language: str) -> dict[str, Path]:
    """Return the file of each lecture that comes with the server, by name, in a language or else in another."""
    more = os.environ.get(MORE_LECTURES)
    order = [language, *(other for other in LANGUAGES if other != language)]
    ours = [FOLDER / name for name in READ_FIRST]
    folders = [*ours, *(path for root in (FOLDER, *([Path(more)] if more else [])) for path in sorted(root.glob("*/")))]
    found = {}
    for folder in folders:
        files = [folder / f"{lang}.md" for lang in order if (folder / f"{lang}.md").is_file()]
        if files and NAME.fullmatch(folder.name):
            found.setdefault(folder.name, files[0])
    return found


def lectures(language: str) -> dict[str, Lecture | str]:
    """Return the lectures that come with the server, by name; of one that cannot be read, what is wrong with it."""
    return {name: _read_or_say(name, path) for name, path in _paths(language).items()}


def _read_or_say(name: str, path: Path) -> Lecture | str:
    try:
        return _read_file(name, path, path.stat().st_mtime_ns)
    except (OSError, UnicodeDecodeError) as error:
        return f"{path.name}: {type(error).__name__}"
    except LectureError as error:
        return f"{path.name}: {error}"


def own_folder() -> Path:
    """Return where this visitor's own lectures lie."""
    return kept_at(OWN_LECTURES, "lectures") / (visitor() or "home")


def _own_paths() -> dict[str, Path]:
    return {f"{OWN}{path.stem}": path for path in sorted(own_folder().glob("*.md")) if NAME.fullmatch(path.stem)}


def own_lectures() -> dict[str, Lecture | str]:
    """Return this visitor's own lectures, by name; of one that cannot be read, what is wrong with it."""
    return {name: _read_or_say(name, path) for name, path in _own_paths().items()}


def find_lecture(name: str, language: str) -> Lecture | None:
    """Return a lecture, None where there is none that can be read."""
    path = (_own_paths() if name.startswith(OWN) else _paths(language)).get(name)
    found = None if path is None else _read_or_say(name, path)
    return found if isinstance(found, Lecture) else None


def projected(name: str, number: int, lang: str) -> str:
    """Return the link of a scene, counted from 1, on the projector, below the app's address."""
    return f"?{urlencode({'lecture': name, 'scene': number, 'lang': lang})}"


def finding_in_words(finding: Finding, measured: str, lang: str) -> str:
    """Return in words what was measured."""
    known = words(lang)
    option = known.get(f"lectures.option_{finding.option}", finding.option)
    return known[f"lectures.measured_{measured}"].format(option=option, value=finding.value)
