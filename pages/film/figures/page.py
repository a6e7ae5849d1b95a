"""A run, or two that are compared, as data for the film component and as one self-contained page."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pages.figures.standalone import component_assets, self_contained
from pages.film.figures.colours import PALETTE
from pages.film.figures.film import Film, film_bytes
from pages.film.figures.followed_text import FilmProbe, probe_bytes


def film_data(
    runs: Sequence[tuple[str, str]],
    words: Mapping[str, str],
    *,
    learned: Sequence[str] = (),
    probe: str = "",
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
        probe: the text that is followed, "" for none.
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
        "probe": probe,
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
    probes: Sequence[FilmProbe | None] = (),
    language: str = "en",
) -> str:
    """Return one self-contained page with the film of one run or two in it, which needs no network.

    Args:
        films: finished runs, one or two that are compared.
        words: as of film_data.
        title: of the page.
        learned: as of film_data.
        probes: the same text, followed through each run.
        language: of the page.
    """
    texts = [probe.text for probe in probes if probe is not None]
    runs = [(film.id, film.name) for film in films]
    data = film_data(runs, words, learned=learned, probe=texts[0] if texts else "", language=language)
    data["films"] = [_as_text(film_bytes(film)) for film in films]
    packed = ["" if probe is None else _as_text(probe_bytes(probe)) for probe in probes]
    data["probes"] = packed + [""] * (len(films) - len(packed))
    script, style = component_assets("film")
    script += "\nplaying(document);\n"
    payload = {"film": json.dumps(data, ensure_ascii=False, allow_nan=False)}
    return self_contained(title=title, language=language, script=script, style=style, data=payload)


def _as_text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
