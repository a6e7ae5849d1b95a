"""The run that is under way, shown on every page: a small sign in the frame that asks the server by itself.

The answer is made once a second for all visitors, and no page runs again for it.
"""

import json
import threading
import time
from typing import Any

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pages.kit.component import registered
from pages.kit.navigation import open_page
from pages.kit.runs import find_run, follow, followed, is_live, run_list
from pages.language import strings, t
from pages.link import below_base
from pages.serving.owners import is_home, owner_in
from transformer_core.training.runs.errors import RunError
from transformer_core.training.runs.store.folder import ID
from transformer_core.training.runs.store.run_store import RunStore

SECONDS_FRESH = 1.0
HEADERS = {"Cache-Control": "no-store"}


def _told(store: RunStore) -> dict[str, Any]:
    status = store.status()
    return {
        "id": store.id,
        "name": store.spec.name,
        "state": status.state,
        "step": status.step,
        "total": status.total_steps,
        "seconds_left": status.seconds_left,
        "owner": store.owner,
    }


class _Snapshot:
    """The runs under way, looked up at most once a second however many ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at = -SECONDS_FRESH
        self._live: list[dict[str, Any]] = []

    @property
    def is_fresh(self) -> bool:
        """Whether the last look is good enough still."""
        return time.monotonic() - self._at < SECONDS_FRESH

    def live(self) -> list[dict[str, Any]]:
        """Return the runs under way, the newest first; looks at the disk where the last look is too old."""
        with self._lock:
            if not self.is_fresh:
                self._live = [_told(store) for store in run_list().live()]
                self._at = time.monotonic()
            return self._live

    def known(self) -> list[dict[str, Any]]:
        """Return what the last look found."""
        return self._live


def _ended(run: str) -> dict[str, Any] | None:
    store = find_run(run)
    return None if store is None or is_live(store.status()) else _told(store) | {"ended": True}


def running_routes() -> list[Route]:
    """Return the route "runs/underway" for st.App, below server.baseUrlPath."""
    snapshot = _Snapshot()

    async def underway(request: Request) -> Response:
        was = request.query_params.get("was", "")
        try:
            live = snapshot.known() if snapshot.is_fresh else await run_in_threadpool(snapshot.live)
            asks = owner_in(request.headers.get("cookie", ""))
            live = [{**run, "owner": ""} for run in live if is_home() or run["owner"] == asks or run["id"] == was]
            gone = ID.fullmatch(was) and was not in {run["id"] for run in live}
            ended = await run_in_threadpool(_ended, was) if gone else None
        except RunError:  # the Train page says what is wrong with the folder of runs
            live, ended = [], None
        body = json.dumps({"live": live, "ended": ended})
        return Response(body, media_type="application/json", headers=HEADERS)

    return [Route(below_base("runs/underway"), underway)]


def show_running(page: str) -> None:
    """Show the sign; where it is clicked, open its run.

    Args:
        page: that is shown below; on Train, the run that it shows needs no sign.
    """
    own = followed() or ""
    words = strings("underway") | strings("duration") | {"step": t("run.step"), "left": t("run.left")}
    words |= {"states": strings("state")}
    data = {"base": "./", "own": own, "shown": own if page == "train" else "", "words": words}
    with st.container(key="underway"):
        result = registered("underway")(
            key="underway_sign",
            data=data,
            on_open_change=lambda: None,
            on_again_change=lambda: None,  # the page runs again after a broken connection
        )
    asked = result.get("open") if hasattr(result, "get") else None
    if isinstance(asked, str) and ID.fullmatch(asked):
        follow(asked)
        open_page("train")
