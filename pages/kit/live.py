"""Live figures: what follows the hand goes the short way, past the run of a page, which follows once the hand rests.

A part of a page that has pictures of this kind makes them in a function of its own, which the page asks and the route
"live/PAGE/PART" asks, too: one builder, two deliveries. The browser's part is assets/components/live/live.js.
"""

import asyncio
import json
import logging
import struct
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from html.parser import HTMLParser
from typing import Any, Protocol
from zlib import crc32

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pages.figures.matrix import padded
from pages.kit.charts import Drawing
from pages.kit.component import registered
from pages.kit.controls import Control
from pages.kit.header import View, linked_view, typed_in_link
from pages.kit.matrix import Picture
from pages.kit.url import current, whole_number
from pages.kit.verdict import Number, Verdict
from pages.language import language
from pages.link import LIVE, Link, below_base, reading
from pages.serving.hooks import before_stopping
from pages.serving.inside_streamlit import ClientState, katex_module, run_in, with_texts_of
from pages.serving.owners import is_home, owner_in
from pages.serving.turns import Lane, in_turn
from transformer_core.untrusted.bundle_files import BundleError

LONG_TEXT = 400  # characters
MOST_AT_ONCE, MOST_OF_ONE = 3, 2  # requests of short texts, and of long ones, that are answered at once; of one person
MOST_STAMP = 10**9
ROUTE = "/live/"
SECONDS_BETWEEN = 0.004  # a click's two requests, which come in any order
SECONDS_TO_PAINT, MOST_SECONDS_HELD = 0.025, 0.1
PAGE = "page"  # what follows the part of a page
HEADERS = {"Cache-Control": "no-store"}


class AnyPicture(Protocol):
    """A figure as a page mounts it: a Picture, or one of another component."""

    @property
    def key(self) -> str:
        """Return its place on the page."""
        ...

    def to_bytes(self, *, stamp: int = 0) -> bytes:
        """Return what its component takes."""
        ...


@dataclass(frozen=True)
class Live:
    """What follows the hand on one part of a page.

    Args:
        pictures, drawings: matrices and charts as the page mounts them.
        verdicts, numbers: by the names of their places on the page.
        lines: in HTML, by the names of their places on the page, as show_lines has them.
        formulas: in LaTeX, by the names of their places on the page, as show_formula has them.
        more: it is of a part of the answer, and who asks again gets more of it.
    """

    pictures: tuple[AnyPicture, ...] = ()
    verdicts: Mapping[str, Verdict | None] = field(default_factory=dict)
    numbers: Mapping[str, Number] = field(default_factory=dict)
    drawings: tuple[Drawing, ...] = ()
    lines: Mapping[str, str] = field(default_factory=dict)
    formulas: Mapping[str, str] = field(default_factory=dict)
    more: bool = False

    @property
    def matrices(self) -> tuple[Picture, ...]:
        """The matrices among the pictures."""
        return tuple(one for one in self.pictures if isinstance(one, Picture))

    def to_bytes(self, *, stamp: int = 0) -> bytes:
        """Return the length of a header (uint32, little-endian), the header in JSON, and the pictures' bytes.

        Everything is padded to 8 bytes; the header has verdicts, numbers, lines, formulas, tables of charts with a
        checksum each, and whether there is more, and for each picture its key and length.

        Args:
            stamp: of the last stroke, as of MatrixFigure.
        """
        parts = [padded(picture.to_bytes(stamp=stamp)) for picture in self.pictures]
        keys = [picture.key for picture in self.pictures]
        verdicts = {name: asdict(verdict) for name, verdict in self.verdicts.items() if verdict is not None}
        numbers = {name: asdict(number) for name, number in self.numbers.items()}
        pictures = list(zip(keys, map(len, parts), strict=True))
        drawings = {one.event: {name: _json(rows) for name, rows in one.rows.items()} for one in self.drawings}
        header: dict[str, Any] = {"verdicts": verdicts, "numbers": numbers, "pictures": pictures}
        header |= {"lines": {name: nodes_of(html) for name, html in self.lines.items()}}
        header |= {"formulas": dict(self.formulas), "more": self.more}
        header |= {"sums": {e: {name: crc32(part) for name, part in rows.items()} for e, rows in drawings.items()}}
        text = b'{"drawings":' + _joined({e: _joined(rows) for e, rows in drawings.items()}) + b"," + _json(header)[1:]
        return padded(struct.pack("<I", len(text)) + text) + b"".join(parts)


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _joined(parts: Mapping[str, bytes]) -> bytes:
    return b"{" + b",".join(_json(name) + b":" + part for name, part in parts.items()) + b"}"


class _Nodes(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[list[Any]] = [[]]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = [tag, dict(attrs)]
        self.open[-1].append(node)
        self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].append(data)


def nodes_of(html: str) -> list[Any]:
    """Return HTML of ours as the browser builds it without reading markup: texts, and [tag, attributes, *children].

    Every element in it is closed.
    """
    parser = _Nodes()
    parser.feed(html)
    parser.close()
    return parser.open[0]


Build = Callable[[View], Live]


class PicturesFirst:
    """Let a page's run wait, a moment at most, while pictures of the same browser are underway (ASGI middleware).

    A click asks for both at once. They would take turns on the server, and what the run brings would hold up the
    browser before it has painted. Browsers without a cookie cannot be told apart: their runs wait for nothing.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._underway: Counter[str] = Counter()  # by browser

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on, a run's request once it may begin."""
        pictures = scope["type"] == "http" and ROUTE in scope["path"]
        if not pictures and scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        browser = owner_in(Headers(scope=scope).get("cookie", ""))
        before: ClientState | None = None

        async def hear() -> Message:
            nonlocal before
            message = await receive()
            run = run_in(message)
            if run is not None:
                await self._wait(browser)
                message, before = with_texts_of(before, run, message), run
            return message

        if pictures:
            if is_home():  # to compress 60 kB takes 2 ms, and no network is spared
                scope = {**scope, "headers": [one for one in scope["headers"] if one[0] != b"accept-encoding"]}
            self._underway[browser] += 1
            try:
                await self._app(scope, receive, send)
            finally:
                asyncio.get_running_loop().call_later(SECONDS_TO_PAINT, self._end, browser)
        else:
            await self._app(scope, hear, send)

    def _end(self, browser: str) -> None:
        self._underway[browser] -= 1
        if not self._underway[browser]:
            del self._underway[browser]

    async def _wait(self, browser: str) -> None:
        await asyncio.sleep(SECONDS_BETWEEN)
        end = time.monotonic() + MOST_SECONDS_HELD
        while browser and browser in self._underway and time.monotonic() < end:
            await asyncio.sleep(SECONDS_BETWEEN)


def live_routes(parts: Mapping[tuple[str, str], Build]) -> list[Route]:
    """Return the route "live/PAGE/PART" for st.App, below server.baseUrlPath; from now on pages use it.

    Args:
        parts: what makes the pictures of a part, by page and part.
    """
    LIVE.update(parts)
    lanes = {heavy: Lane(MOST_AT_ONCE, MOST_OF_ONE) for heavy in (False, True)}
    for lane in lanes.values():
        before_stopping(lane.end)

    async def live(request: Request) -> Response:
        build = parts.get((request.path_params["page"], request.path_params["part"]))
        if build is None:
            return Response(status_code=404, headers=HEADERS)
        link = Link(dict(request.query_params), owner_in(request.headers.get("cookie", "")))
        lane = lanes[len(link.said.get("text", "")) > LONG_TEXT]
        answer = await in_turn(lane, request, lambda: run_in_threadpool(_answer, build, link))
        return answer or Response(status_code=204, headers=HEADERS)

    return [Route(below_base("live/{page}/{part}"), live)]


def _answer(build: Build, link: Link) -> Response:
    """Return the pictures of a link; 204 where they cannot be made, since the page's run says why."""
    try:
        with reading(link):
            stamp = whole_number(link.said.get("stamp", "0"), MOST_STAMP)
            body = build(linked_view()).to_bytes(stamp=stamp or 0)
    except (ValueError, BundleError):
        return Response(status_code=204, headers=HEADERS)
    except Exception:
        logging.getLogger("vitrine").exception("a live picture failed")
        return Response(status_code=204, headers=HEADERS)
    return Response(body, media_type="application/octet-stream", headers=HEADERS)


def follow(page: str, part: str, view: View, controls: Sequence[Control[Any]]) -> None:
    """Let the pictures of a part follow what is typed, chosen and slid; only where the route is there.

    Args:
        controls: that the pictures depend on, shown before.
    """
    if (page, part) not in LIVE:
        return
    kinds = {kind: [one for one in controls if one.follows == kind] for kind in ("choices", "sliders", "boxes")}
    boxes = ["text", *(one.name for one in kinds["boxes"])]
    said = {"lang": language(), "model": view.bundle.name} | typed_in_link(view)
    data = {
        "route": f"./live/{page}/{part}",
        "page": st.session_state.page,
        "said": said | {one.name: one.written(view) for one in controls},
        "boxes": boxes,
        "choices": {one.name: list(one.options_of(view)) for one in kinds["choices"]},
        "sliders": [one.name for one in kinds["sliders"]],
        "katex": katex_module(),
        "typed": {box: str(current(box) or "") for box in boxes},  # so that the component hears of each run
    }
    registered("live")(key="live", data={"name": PAGE} | data)


def follow_choice(page: str, part: str, said: Mapping[str, str]) -> None:
    """Let what stands in a box below any part follow a choice in one of the box's pictures.

    Args:
        page, part: as of follow; the pictures ask for "PAGE.PART".
        said: what the link says of the box, by name.
    """
    said = {"lang": language()} | dict(said)
    controls = {"page": st.session_state.get("page", ""), "boxes": [], "choices": {}, "sliders": []}
    data: dict[str, Any] = {
        "name": f"{page}.{part}",
        "route": f"./live/{page}/{part}",
        "said": said,
        "katex": katex_module(),
    }
    registered("live")(key=f"live_{page}_{part}", data=data | controls)


def show_lines(place: str, html: str, *, style: str = "") -> None:
    """Show HTML that follows the hand.

    Args:
        place: its name, by which assets/components/live/live.js finds it.
        style: an element with their style.
    """
    st.html(f'{style}<div data-lines="{escape(place)}">{html}</div>')


def show_formula(place: str, latex: str) -> None:
    """Show a formula that follows the hand; what comes the short way lies in front of it (the entry script's style).

    Args:
        place: its name, by which assets/components/live/live.js finds it.
    """
    with st.container(key=f"formula_{place}"):
        st.latex(latex)
        st.html(f'<div data-formula="{escape(place)}"></div>')
