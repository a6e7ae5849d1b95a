"""A run, or two that are compared, as data for the film component and as one self-contained page."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pages.figures.standalone import component_assets, self_contained
from pages.film.figures.film import PALETTE, Film, film_bytes, followed_bytes


def film_data(
    runs: Sequence[tuple[str, str]],
    words: Mapping[str, str],
    *,
    learned: Sequence[str] = (),
    followed_text: str = "",
    frame: int | None = None,
    step: int | None = None,
    method: Literal["tsne", "pca"] = "tsne",
    language: str = "en",
    base: str = "./",
) -> dict[str, Any]:
    """Return the data of the component, except the runs' bytes.

    Args:
        runs: id and name of one run, or of two that are compared.
        words: as film_words of pages/film/mount.py returns them.
        learned: what each run learns from, in the reader's language.
        followed_text: the text that is followed, "" for none.
        frame: number of the first run's frame that is shown first, counted from 0; None for the newest.
        step: shown first where the first of two runs has no frame at it; else None.
        method: of the map.
        language: of the reader.
        base: where "film/ID" is served, relative to the page.

    Raises:
        ValueError: If there is not one run or two that differ.
    """
    if not 1 <= len(runs) <= 2 or len({run for run, _ in runs}) != len(runs):
        raise ValueError(f"runs={[run for run, _ in runs]} must be one run, or two that differ")
    parts = zip(runs, [*learned, "", ""], "ab", strict=False)
    return {
        "runs": [{"id": run, "name": name, "learned": what, "role": role} for (run, name), what, role in parts],
        "followed_text": followed_text,
        "frame": frame,
        "step": step,
        "method": method,
        "words": dict(words),
        "language": language,
        "base": base,
        "palette": {name: list(hues) for name, hues in PALETTE.items()},
    }


def to_html(
    films: Sequence[Film],
    words: Mapping[str, str],
    *,
    title: str,
    learned: Sequence[str] = (),
    followed_texts: Sequence[Any] = (),
    language: str = "en",
) -> str:
    """Return one self-contained page with the film of one run or two in it, which needs no network.

    Args:
        films: finished runs, one or two that are compared.
        words: as of film_data.
        title: of the page.
        learned: as of film_data.
        followed_texts: the same text, followed through each run, as of followed_bytes; None where it is not.
        language: of the page.
    """
    texts = [followed_text.text for followed_text in followed_texts if followed_text is not None]
    runs = [(film.id, film.name) for film in films]
    data = film_data(runs, words, learned=learned, followed_text=texts[0] if texts else "", language=language)
    data["films"] = [_as_text(film_bytes(film)) for film in films]
    packed = [
        "" if followed_text is None else _as_text(followed_bytes(followed_text)) for followed_text in followed_texts
    ]
    data["followed_texts"] = packed + [""] * (len(films) - len(packed))
    script, style = component_assets("film")
    script += "\nplaying(document);\n"
    payload = {"film": json.dumps(data, ensure_ascii=False, allow_nan=False)}
    return self_contained(title=title, language=language, script=script, style=style, data=payload)


def _as_text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
