"""A small server with nothing but the film and made-up runs; `python -m tests.helpers.film_stage 8700` shows it."""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Locator, Page

from pages.figures.standalone import COMPONENTS
from pages.film.figures.film import Film, film_bytes, followed_bytes
from pages.film.figures.page import film_data
from tests.helpers.figures import clouds, film_words, followed_of, followed_reversing, reversing
from transformer_core.analysis.followed_text import FollowedText
from transformer_core.training.runs.store.records import Curves

THEMES = {
    "light": ("#ffffff", "#1f1b2e", "#6b3fa0"),
    "dark": ("#14121b", "#ece9f3", "#b795e4"),
}
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>film</title>
<style>:root { --st-background-color: %s; --st-text-color: %s; --st-primary-color: %s }
body { margin: 20px; background: var(--st-background-color) }</style><main id="host"></main>
<script type="module">
import film from "./components/film/film.js";
const root = document.getElementById("host").attachShadow({ mode: "open" });
root.innerHTML = `<link rel="stylesheet" href="./components/film/film.css">`;
window.told = { view: [], ask: [] };
const tell = (name, value) => told[name].push(value);
window.show = (data) => (window.away = film({ data, parentElement: root, setStateValue: tell, setTriggerValue: tell }));
window.data = %s;
root.querySelector("link").addEventListener("load", () => show(window.data));
</script></html>"""


@dataclass
class Stage:
    """What the server has: whole films, and how many frames of each have been shown so far.

    Args:
        films, followed_texts: by run id.
        shown: frames published, by run id; all of them where nothing is said.
        requests: every path that was asked for.
        broken: answers nothing but errors.
        own: a page of its own, served as "own".
    """

    films: dict[str, Film]
    followed_texts: dict[str, FollowedText] = field(default_factory=dict)
    shown: dict[str, int] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    broken: bool = False
    own: str = ""

    def so_far(self, run: str) -> Film:
        """Return a run as it stood when its last shown frame was published."""
        film = self.films[run]
        count = self.shown.get(run, len(film.frames))
        if count >= len(film.frames):
            return film
        frames = film.frames[:count]
        step = frames[-1].step if frames else 0
        curves = Curves(*(array[:step] for array in vars(film.curves).values()))
        return replace(
            film,
            status=replace(film.status, state="running", step=step, seconds_left=9.0),
            frames=frames,
            curves=curves,
        )


def _page(stage: Stage, query: dict[str, str]) -> str:
    runs = query.get("runs", ",".join(stage.films)).split(",")
    language = query.get("lang", "en")
    names = [(run, stage.films[run].name if run in stage.films else run) for run in runs]
    frame = int(query["frame"]) if "frame" in query else None
    followed_text = query.get(
        "followed_text", next((followed_text.text for followed_text in stage.followed_texts.values()), "")
    )
    data = film_data(names, film_words(language), followed_text=followed_text, frame=frame, language=language)
    return PAGE % (*THEMES[query.get("theme", "light")], json.dumps(data).replace("</", "<\\/"))


def _handler(stage: Stage) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            parts = url.path.strip("/").split("/")
            stage.requests.append(self.path)
            if parts[0] == "favicon.ico":
                self.answer(204, "image/x-icon", b"")
            elif parts[0] == "own":
                self.answer(200, "text/html", stage.own.encode())
            elif stage.broken and parts[0] == "film":
                self.answer(500, "application/json", json.dumps({"error": "The run cannot be read."}).encode())
            elif parts[0] == "components":
                kind = "text/javascript" if url.path.endswith(".js") else "text/css"
                self.answer(200, kind, (COMPONENTS.joinpath(*parts[1:])).read_bytes())
            elif parts[0] == "film" and parts[1] not in stage.films:
                self.answer(404, "application/json", json.dumps({"error": f"There is no run {parts[1]}."}).encode())
            elif parts[0] == "film":
                self.answer(200, "application/octet-stream", self.bytes_of(parts, query))
            else:
                self.answer(200, "text/html", _page(stage, query).encode())

        def bytes_of(self, parts: list[str], query: dict[str, str]) -> bytes:
            run, after = parts[1], int(query["after"])
            film = stage.so_far(run)
            if len(parts) == 2:
                return film_bytes(film, after=after, after_step=int(query["after_step"]))
            followed_text = stage.followed_texts[run]
            last = film.frames[-1].number if film.frames else -1
            return followed_bytes(
                replace(followed_text, frames=[m for m in followed_text.frames if after < m.number <= last])
            )

        def answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(ConnectionError):  # the browser no longer wants it
                self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    return Handler


@contextmanager
def staging(stage: Stage, port: int = 0) -> Iterator[str]:
    """Serve a stage and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", port), _handler(stage))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def example(n_points: int = 400, n_frames: int = 24) -> Stage:
    """Return two runs of a classifier, one with six classes, and one that reverses letters."""
    one = clouds(n_points, n_frames, run="quickrun1")
    two = clouds(n_points, n_frames, run="samebut02", name="same, but without positions", gap=0.55)
    six = clouds(n_points, n_frames, run="sixclass3", name="six kinds", labels=tuple("abcdef"))
    other = reversing()
    followed_texts = {film.id: followed_of(film) for film in (one, two, six)} | {other.id: followed_reversing(other)}
    return Stage({film.id: film for film in (one, two, six, other)}, followed_texts)


if __name__ == "__main__":
    with staging(example(), int(sys.argv[1])) as address:
        print(f"{address}/?runs=quickrun1&theme=light")
        threading.Event().wait()


POINTS = 80


def small_stage() -> Stage:
    """Return two runs of a classifier and one that reverses letters, of eight frames each."""
    one = clouds(POINTS, 8, run="runone01")
    two = clouds(POINTS, 8, run="runtwo02", name="same, but", gap=0.5)
    three = reversing(8, run="runthree")
    followed_texts = {"runone01": followed_of(one), "runtwo02": followed_of(two), "runthree": followed_reversing(three)}
    return Stage({film.id: film for film in (one, two, three)}, followed_texts)


def watch(page: Page, address: str, runs: str = "runone01", frame: int | None = None, **query: str) -> None:
    """Open the film and wait until it shows a frame."""
    asked = {"runs": runs, **query} | ({} if frame is None else {"frame": str(frame)})
    page.goto(f"{address}/?" + "&".join(f"{name}={value}" for name, value in asked.items()))
    wait_frame(page, 7 if frame is None else frame)


def wait_frame(page: Page, frame: int) -> None:
    """Wait until this frame is shown, counted from 0."""
    page.locator(f".vf[data-frame='{frame}']:not([data-version='0'])").wait_for()


def told(page: Page, name: str) -> list:
    """Return what the page has been told: "view" or "ask"."""
    return page.evaluate("name => window.told[name]", name)


def slider(page: Page) -> Locator:
    """Return the scrubber."""
    return page.get_by_role("slider")
