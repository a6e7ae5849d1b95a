"""The time machine in a page: its script and style, its words, and one self-contained page of finished runs."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pages.figures.matrix_page import DRAWING
from pages.figures.standalone import COMPONENTS, joined, self_contained
from pages.film.figures.colours import PALETTE
from pages.film.figures.film import Film, film_bytes
from pages.film.figures.followed_text import FilmProbe, probe_bytes

DATA = ("pen", "reel", "feed", "clock", "axes")
PICTURES = ("curves", "plot", "map", "trail", "heads")
ELEMENTS = ("telling", "following", "transport", "views", "panel", "record", "typing")
WHOLE = ("timeline", "toolbar", "teller", "screen", "player", "film")
SCRIPTS = (
    *DATA,
    *PICTURES,
    *ELEMENTS,
    *WHOLE,
)  # in reading order: each imports only what comes before, and from the matrix
WORDS = (
    *("loading", "lost", "state_queued", "state_starting", "state_running", "state_running_left"),
    *("state_paused", "state_stopped", "state_finished", "state_failed", "state_interrupted", "unit_s"),
    *("unit_min", "unit_h", "method", "method_tsne", "method_pca", "method_tsne_title", "method_pca_title"),
    *("mistakes", "mistakes_title", "train", "held_out", "show_train", "show_held_out", "focus"),
    *("map_label", "trust", "trust_title", "neighbours_train", "neighbours_held_out", "neighbours_title"),
    *("displacement", "displacement_title", "predicted", "right", "wrong", "followed", "let_go"),
    *("strip_title", "loss", "accuracy", "learning_rate", "gradient_norm", "step", "epoch", "frame"),
    *("each_step", "smoothed", "curves_label", "baseline_majority", "baseline_bag_of_words", "train_loss"),
    *("held_out_loss", "train_accuracy", "held_out_accuracy", "points", "probe", "probe_waits"),
    *("probe_none", "heads", "heads_label", "layer", "head", "weight", "axis_query", "axis_key"),
    *(
        "axis_output",
        "axis_input",
        "samples",
        "goal",
        "scrubber",
        "keys",
        "place",
        "place_two",
        "no_frames",
        "waiting",
        "play",
        "pause",
    ),
    *("previous", "next", "loop", "speed", "live", "live_on", "live_follow", "summary", "open", "branch"),
    *(
        "png",
        "svg",
        "webm",
        "export_png",
        "export_svg",
        "export_webm",
        "picture_title",
        "picture_measures",
        "table_show",
    ),
    *("table_hide", "table_caption"),
)  # every word that the film shows; assets/words has them as film.NAME, the {…} are filled in by the browser
MATRIX_WORDS = ("masked", "axes_note", "own_scale_note", "pooled_note")  # shown beside heads; matrix.NAME


def component_assets() -> tuple[str, str]:
    """Return the component's script, joined with the modules of the matrix that it uses, and its style."""
    modules = ("lasting", *(f"matrix/{name}" for name in DRAWING), *(f"film/{name}" for name in SCRIPTS))
    return joined(modules), (COMPONENTS / "film" / "film.css").read_text(encoding="utf-8")


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
    """Return what the component is told besides the runs' bytes.

    Args:
        runs: id and name of one run, or of two that are compared.
        words: all of WORDS and MATRIX_WORDS, in the reader's language.
        learned: what each run learns from, in the reader's language.
        probe: the text that is followed, "" for none.
        frame: number of the first run's frame to begin with, from 0; None for the newest.
        step: at which to begin where the first of two runs has no frame; else None.
        method: of the map.
        language: of the reader.
        base: where "film/ID" is served, relative to the page.

    Raises:
        ValueError: If there is not one run or two, or words are missing.
    """
    if not 1 <= len(runs) <= 2 or len({run for run, _ in runs}) != len(runs):
        raise ValueError(f"runs={[run for run, _ in runs]} must be one run, or two that differ")
    missing = sorted({*WORDS, *MATRIX_WORDS} - words.keys())
    if missing:
        raise ValueError(f"words lacks {', '.join(missing)}")
    told = zip(runs, [*learned, "", ""], "ab", strict=False)
    return {
        "runs": [{"id": run, "name": name, "learned": what, "role": role} for (run, name), what, role in told],
        "probe": probe,
        "frame": frame,
        "step": step,
        "method": method,
        "words": {name: words[name] for name in (*WORDS, *MATRIX_WORDS)},
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
    """Return one self-contained page with one run or two alive in it; nothing in it reaches for a network.

    Args:
        films: finished runs, one or two that are compared.
        words: all of WORDS and MATRIX_WORDS.
        title: the page's.
        learned: what each run learns from, in words.
        probes: the same text in each run.
        language: of the page.
    """
    texts = [probe.text for probe in probes if probe is not None]
    runs = [(film.id, film.name) for film in films]
    data = film_data(runs, words, learned=learned, probe=texts[0] if texts else "", language=language)
    data["films"] = [_as_text(film_bytes(film)) for film in films]
    packed = ["" if probe is None else _as_text(probe_bytes(probe)) for probe in probes]
    data["probes"] = packed + [""] * (len(films) - len(packed))
    script, style = component_assets()
    script += "\nplaying(document);\n"
    payload = {"film": json.dumps(data, ensure_ascii=False, allow_nan=False)}
    return self_contained(title=title, language=language, script=script, style=style, data=payload)


def _as_text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
