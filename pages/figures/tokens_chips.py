"""Tokens as chips: a line a tokenizer, for the component in assets/components/chips.

Read next: tokens.py.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pages.figures.standalone import COMPONENTS, joined, self_contained

WORDS = (
    "hint",
    "more",
    "unknown_mark",
    "special",
    "unknown",
    "shared",
    "where",
    "nowhere",
    "bytes",
    "id",
)  # every word that the chips show; assets/locales has them as chips.NAME, the {…} are filled in by the browser

COLUMNS = ("tokenizer", "place", "label", "id", "start", "end", "surface", "bytes")


@dataclass(frozen=True)
class Line:
    """One tokenizer's line.

    Args:
        title: its name.
        count, unit: the large number, and what it counts.
        facts: what else stands beside the line.
        verdict: whether decoding gives the text back, in words; empty to say nothing.
        faithful: whether it does.
        labels, ids, starts, ends, special, unknown, shared, spelled: one a token. # (pos)
        fresh: whether a token was just made, one a token; empty where none was. # (pos)
    """

    title: str
    count: str
    unit: str
    facts: tuple[str, ...]
    verdict: str
    faithful: bool
    labels: Sequence[str]
    ids: Sequence[int]
    starts: Sequence[int]
    ends: Sequence[int]
    special: Sequence[bool]
    unknown: Sequence[bool]
    shared: Sequence[bool]
    spelled: Sequence[str]
    fresh: Sequence[bool] = ()


@dataclass(frozen=True)
class Chips:
    """A text and its lines of tokens.

    Args:
        text: what was cut; places count its code points.
        lines: at least one.
        words: all of WORDS.
        name: of the figure's files, unique on the page.
        version: names this state; `data-painted` carries it once it is on the screen.
    """

    text: str
    lines: tuple[Line, ...]
    words: Mapping[str, str]
    name: str
    version: str

    def __post_init__(self) -> None:
        if missing := sorted(set(WORDS) - self.words.keys()):
            raise ValueError(f"words lacks {', '.join(missing)}")

    def data(self, *, caption: Sequence[str] = ()) -> dict:
        """Return what the component is given.

        Args:
            caption: lines above the picture in its files, which say what it is of.
        """
        return {
            "text": self.text,
            "rows": [_row(line) for line in self.lines],
            "words": {name: self.words[name] for name in WORDS},
            "name": self.name,
            "version": self.version,
            "caption": list(caption),
        }


def _row(line: Line) -> dict:
    names = ("label", "id", "start", "end", "special", "unknown", "shared", "bytes", "fresh")
    columns = (
        line.labels,
        line.ids,
        line.starts,
        line.ends,
        line.special,
        line.unknown,
        line.shared,
        line.spelled,
        line.fresh or (False,) * len(line.ids),
    )
    tokens = [dict(zip(names, token, strict=True)) for token in zip(*columns, strict=True)]
    about = ("title", "count", "unit", "facts", "verdict", "faithful")
    return {name: value for name, value in asdict(line).items() if name in about} | {"tokens": tokens}


def rows_of_chips(chips: Chips, columns: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return every token of every line as a row of one table.

    Args:
        columns: headings of all of COLUMNS.
    """
    rows = []
    for line in chips.lines:
        surfaces = [chips.text[start:end] for start, end in zip(line.starts, line.ends, strict=True)]
        ids = [id_ if id_ >= 0 else None for id_ in line.ids]
        places = zip(line.labels, ids, line.starts, line.ends, surfaces, line.spelled, strict=True)
        for place, token in enumerate(places):
            values = (line.title, place, *token)
            rows.append({columns[name]: value for name, value in zip(COLUMNS, values, strict=True)})
    return rows


def component_assets() -> tuple[str, str]:
    """Return the component's script, its modules joined into one, and its style."""
    style = (COMPONENTS / "chips" / "chips.css").read_text(encoding="utf-8")
    return joined(("matrix/caption", "chips/picture", "chips/chips")), style


def to_html(chips: Chips, *, title: str, language: str = "en", caption: Sequence[str] = ()) -> str:
    """Return one self-contained page with the chips alive in it; nothing in it reaches for a network.

    Args:
        title: of the page.
        caption: lines that say what the figure is of.
    """
    script, style = component_assets()
    payload = base64.b64encode(json.dumps(chips.data(caption=caption)).encode()).decode()
    return self_contained(
        title=title,
        language=language,
        script=f"{script}\nstandalone(document);\n",
        style=style,
        data={"payload": payload},
        caption=caption,
    )
