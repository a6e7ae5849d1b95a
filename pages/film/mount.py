"""The time machine in a page: it is mounted here, and here the server answers its requests for a run's bytes.

The bytes go past Streamlit's own messages, so that a run that moves makes no page run again.
../figures/film.py.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pages.film.figures.page import film_data
from pages.film.reading import listening, reading
from pages.kit.component import registered
from pages.kit.runs import find_run
from pages.kit.url import whole_number
from pages.language import LANGUAGES, language, strings, words
from pages.link import below_base
from pages.serving.hooks import before_stopping
from pages.serving.turns import Lane, in_turn
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.store.folder import ID

Method = Literal["tsne", "pca"]
Action = Literal["open", "branch"]
LONGEST_FOLLOWED_TEXT = 4_000
MOST_STEP = 10**9 - 1  # of frames and steps that a link names
FRESH = {"Cache-Control": "no-store"}


@dataclass(frozen=True)
class FilmAsk:
    """What a person asked for: to open the model of a run's frame elsewhere, or to branch a new run off from it."""

    run: str
    frame: int
    action: Action


def film_words() -> dict[str, str]:
    """Return the words of the film, and of the matrix that draws its heads, in the language chosen."""
    return strings("matrix") | strings("duration") | strings("film")


def show_film(
    runs: Sequence[tuple[str, str]],
    *,
    key: str,
    learned: Sequence[str] = (),
    followed_text: str = "",
    frame: int | None = None,
    step: int | None = None,
    method: Method = "tsne",
    turn: str = "",
    on_view: Callable[[int | None, int | None, Method], None] | None = None,
) -> FilmAsk | None:
    """Show one run, or two side by side on one scrubber, and return what was asked for just now.

    The component fetches the runs by itself, live ones again and again; no rerun is needed for them to move.

    Args:
        runs: id and name of one run, or of two.
        key: unique on the page and the same at every run of the script, or the component is remounted.
        learned: what each run learns from, in words.
        followed_text: a text that is followed through the runs, "" for none.
        frame: number of the first run's frame to stand at, from 0; None for the newest.
        step: to stand at where the first of two runs has no frame; else None.
        method: of the map to begin with.
        turn: whatever changes when a run that had ended is taken up again, which makes the component ask at once.
        on_view: called with frame, step and method once a person rests at another moment, before the page runs; for
            the URL.
    """

    def viewed() -> None:
        view = _mapping(_mapping(st.session_state.get(key)).get("view"))
        at, between, how = (view.get(name) for name in ("frame", "step", "method"))
        if on_view and how in ("tsne", "pca"):
            on_view(at if isinstance(at, int) else None, between if isinstance(between, int) else None, how)

    asked = {"learned": learned, "followed_text": followed_text, "frame": frame, "step": step, "method": method}
    data = film_data(runs, film_words(), **asked, language=language())
    data["turn"] = turn
    result = registered("film")(key=key, data=data, on_view_change=viewed, on_ask_change=lambda: None)
    return _asked(_mapping(result).get("ask"), [run for run, _ in runs])


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _asked(value: Any, runs: Sequence[str]) -> FilmAsk | None:
    ask = _mapping(value)
    run, frame, action = ask.get("run"), ask.get("frame"), ask.get("action")
    if not isinstance(run, str) or run not in runs or not isinstance(frame, int) or action not in ("open", "branch"):
        return None
    return FilmAsk(run, frame, action)


def film_routes() -> list[Route]:
    """Return the routes "film/ID" and "film/ID/followed_text" for st.App, below server.baseUrlPath."""
    lane = Lane(1, 1)  # one text at a time is read aloud: the processor belongs to training
    before_stopping(lane.end)

    async def film(request: Request) -> Response:
        after, after_step = _number(request, "after", -1), _number(request, "after_step", 0)
        return await _answer(request, lambda run: reading(run).answer(after, after_step))

    async def followed_text(request: Request) -> Response:
        text, after = request.query_params.get("text", "")[:LONGEST_FOLLOWED_TEXT], _number(request, "after", -1)
        answer = await in_turn(lane, request, lambda: _answer(request, lambda run: listening(run, text).answer(after)))
        return answer or Response(status_code=204, headers=FRESH)  # the text has changed while this one waited

    return [
        Route(below_base("film/{run}"), film),
        Route(below_base("film/{run}/followed_text"), followed_text),
    ]


def _number(request: Request, name: str, default: int) -> int:
    value = whole_number(request.query_params.get(name), MOST_STEP, least=-1)
    return default if value is None else value


async def _answer(request: Request, read: Callable[[str], bytes]) -> Response:
    """Read in a thread; answer with bytes, or with words in the reader's language and never with a trace."""
    run = request.path_params["run"]
    said = words(request.query_params.get("lang") if request.query_params.get("lang") in LANGUAGES else "en")

    def refuse(status: int, key: str, **values: object) -> Response:
        return JSONResponse({"error": said[key].format(**values)}, status_code=status, headers=FRESH)

    if not ID.fullmatch(run):
        return refuse(404, "film_error.unknown", id=run[:40])
    try:
        return Response(await run_in_threadpool(read, run), media_type="application/octet-stream", headers=FRESH)
    except RunError as error:
        if await run_in_threadpool(find_run, run) is None:
            return refuse(404, "film_error.unknown", id=run)
        return refuse(500, "film_error.failed", error=error)
    except ValueError as error:
        return refuse(422, "film_error.followed", error=error)
    except Exception as error:
        logging.getLogger("vitrine").exception("run %s could not be read", run)
        return refuse(500, "film_error.failed", error=type(error).__name__)
