"""Run a page as Streamlit would, without a browser; every part of every page; the scripts that pages export."""

import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from html import unescape
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
from google.protobuf.message import Message
from streamlit.testing.v1 import AppTest, local_script_runner
from streamlit.util import calc_hash

from pages.language import words
from pages.room import Page
from tests.helpers import PATIENCE, ROOT
from tests.helpers.figures import unpack
from transformer_core.training.runs.store.run_store import RunStore

# Streamlit asks a thousand times a second whether the page has run, for a sixth of the page's own time; run() joins the
# thread next.
local_script_runner.require_widgets_deltas = lambda runner, timeout: runner._script_thread.join(timeout)
T = TypeVar("T")
NUMBER = re.compile('data-label="".*?>(.*?)</div><div data-value="".*?>(.*?)</div>')
ENTRY = ROOT / "pages" / "entry.py"


IN_ENGLISH = {"gpt": "gpt", "translation": "translation-en-fr"}  # of the other pages "sentiment"
OTHERS = ("bert", "before", "compare", "my_model", "sweep", "train", "why")  # these have no model of Chinese


def run(page: str = "home", **query: str | list[str]) -> AppTest:
    """Open a page, such as "attention", with these values in the URL.

    A page in Chinese shows the model that the English one shows, so that one test asks the same of both; what people
    meet there first is what first_screen opens.
    """
    if query.get("lang") == "zh" and page not in OTHERS:
        query.setdefault("model", IN_ENGLISH.get(page, "sentiment"))
    return first_screen(page, **query)


def first_screen(page: str = "home", **query: str | list[str]) -> AppTest:
    """Open a page with these values in the URL and no others."""
    app = AppTest.from_file(str(ENTRY), default_timeout=PATIENCE)
    for name, value in query.items():
        app.query_params[name] = value
    app._page_hash = calc_hash(page)  # switch_page would have to run the front page first
    return app.run()


class Starts:
    """A launcher that only remembers which runs it was to start and to go on with."""

    def __init__(self) -> None:
        self.started, self.resumed = list[str](), list[str]()

    def start(self, store: RunStore) -> None:
        self.started.append(store.id)

    def ask(self, store: RunStore, _: object) -> None:
        self.resumed.append(store.id)

    def estimate(self, *_: object) -> None:
        raise ValueError("the data are missing")


def nothing_starts(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Starts:
    """Keep a test's runs in a folder, and start none."""
    made = Starts()
    monkeypatch.setenv("VITRINE_RUNS", str(folder))
    for module in ("train.form", "kit.runs"):
        monkeypatch.setattr(f"pages.{module}.starter", lambda: made)
    return made


def told(app: AppTest) -> str:
    """Return every message and text on the page, joined; a term that is explained where it stands is its word."""
    kinds = (app.info, app.warning, app.error, app.toast, app.markdown, app.caption, app.header, app.subheader)
    shown = [str(element.value) for kind in kinds for element in kind]
    live = (element.proto.body for element in app.get("html") if "data-lines=" in element.proto.body)
    shown += [unescape(re.sub("<style>.*?</style>|<.*?>", "", lines, flags=re.DOTALL)) for lines in live]
    return re.sub("</?dfn.*?>", "", "\n".join([*shown, note(app)]), flags=re.DOTALL)


def matrices(app: AppTest) -> list[tuple[dict[str, Any], dict[str, np.ndarray]]]:
    """Return header and arrays of every matrix on the page, in its order."""
    sent = (one.proto.bytes for one in app.get("bidi_component"))
    return [unpack(payload) for payload in sent if payload[4:5] == b"{"]


def minus(number: str) -> str:
    """Return a number as the sentences of a page write it."""
    return number.replace("-", "−")


def texts(app: AppTest) -> Iterator[str]:
    """Yield every text on the page but formulas, programs, styles, and what a component fills in in the browser."""

    def within(message: Message) -> Iterator[str]:
        for _, value in message.ListFields():
            for one in value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else (value,):
                if isinstance(one, str):
                    yield one
                elif isinstance(one, Message):
                    yield from within(one)

    for element in app._tree:
        if isinstance(getattr(element, "proto", None), Message) and element.type not in (
            "code",
            "latex",
            "bidi_component",
        ):
            for text in within(element.proto):
                yield re.sub(r"\$[^$]*\$|<style>.*?</style>|<[^<>]*>", "", text, flags=re.DOTALL)


def note(app: AppTest) -> str:
    """Return the lines under the boxes of text: what there is to say about what was typed."""
    lines = (element.proto.body for element in app.get("html"))
    return "\n".join(re.sub("<.*?>", "", unescape(line)) for line in lines if 'class="text-line"' in line)


def metrics(app: AppTest) -> dict[str, str]:
    """Return the page's large numbers by their labels, those that follow the hand among them."""
    bodies = "".join(element.proto.body for element in app.get("html"))
    live = {unescape(label): unescape(value) for label, value in NUMBER.findall(bodies)}
    return {metric.label: metric.value for metric in app.metric} | live


UNCOUNTED = ("underway_sign", "share", "live")  # components that show nothing of a model


def uncovered(app: AppTest) -> set[str]:
    """Return the figures that no cover lies over, by the names that lectures use; numbers and tables by their kinds."""

    def walk(block: Any, over: bool) -> Iterator[Any]:
        for child in block.children.values():
            if not hasattr(child, "children"):
                yield from () if over else (child,)
                continue
            key = str(getattr(child.proto, "id", "")).split("-", 2)[-1]
            marks = [one.proto.body for one in child.children.values() if one.type == "html"][:1]
            begins = bool(marks) and key.startswith(("asked_", "cover_")) and "covered" in marks[0]
            yield from walk(child, not key.startswith("leftopen_") and (over or begins))

    found = set[str]()
    for element in walk(app.main, False):
        if element.type == "bidi_component":
            found.add(element.proto.id.split("-", 2)[2])
        elif element.type == "html":
            found |= {name for name in ("verdict", "number", "lines") if f"<div data-{name}=" in element.proto.body}
        elif element.type in ("vega_lite_chart", "metric", "table", "dataframe", "plotly_chart", "latex"):
            found.add("chart" if element.type == "vega_lite_chart" else element.type)
    return found.difference(UNCOUNTED)


def asks(app: AppTest) -> list:
    """Return the questions of the page that come before an answer, each with its options."""
    return [pills for pills in app.pills if str(pills.key).startswith("predict ")]


def answered(app: AppTest, choice: str) -> AppTest:
    """Answer the first question of the page."""
    return asks(app)[0].set_value(choice).run()


def finished(work: Coroutine[Any, Any, T]) -> T:
    """Return what work comes to, in a thread of its own: a test in a browser leaves a loop that runs in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def strings(prefix: str, language: str = "en") -> dict[str, str]:
    """Return all words whose keys start with ``prefix.``, without that prefix."""
    start = f"{prefix}."
    return {key.removeprefix(start): word for key, word in words(language).items() if key.startswith(start)}


def show_all(app: AppTest) -> AppTest:
    """Open every covered picture of the page."""
    for button in [button for button in app.button if str(button.key).startswith("show_")]:
        app.button(key=button.key).click().run()
    return app


CHOSEN_BY = {"why": "why"}


def parts_of(script: Path) -> list[str]:
    """Return the names of a page's parts in the order in which they are shown; one without a name where none is."""
    if "import Page" not in script.read_text(encoding="utf-8"):
        return [""]
    declared = vars(import_module(f"pages.{script.parent.name}.page")).values()
    return [part.name for page in declared if isinstance(page, Page) for part in page.parts]


ALL_SCREENS = [
    (script.parent.name, part) for script in sorted((ROOT / "pages").glob("*/page.py")) for part in parts_of(script)
]
NO_TEXT = ("train", "compare", "sweep", "my_model", "server", "lectures")
SCREENS = [screen for screen in ALL_SCREENS if screen[0] not in NO_TEXT]


def named(page: str, part: str) -> dict[str, str]:
    """Return how a link asks for a part of a page."""
    return {CHOSEN_BY.get(page, f"{page}_part"): part} if part else {}


RUNNER = """
import contextlib, io, json, os, runpy, sys, traceback

for line in sys.stdin:
    asked = json.loads(line)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    sys.path[0] = asked["folder"]
    said, wrong = io.StringIO(), ""
    try:
        with contextlib.redirect_stdout(said):
            runpy.run_path("again.py", run_name="__main__")
    except SystemExit as end:
        wrong = str(end.code or "")
    except BaseException:
        wrong = traceback.format_exc()
    print(json.dumps([said.getvalue(), wrong]), flush=True)
"""


@lru_cache(maxsize=1)
def _runner() -> subprocess.Popen[str]:
    """Start the one process for all scripts, which then has torch; it ends with the tests."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", RUNNER], cwd=tempfile.gettempdir(), text=True, **pipes)


def told_by(script: str, folder: Path) -> tuple[str, str]:
    """Run a script as a person would, from a folder of its own; return what it printed, and its error or nothing."""
    runner = _runner()
    assert runner.stdin is not None
    assert runner.stdout is not None
    (folder / "again.py").write_text(script, encoding="utf-8")
    environment = {**os.environ, "VITRINE": str(ROOT)}
    print(json.dumps({"folder": str(folder), "environment": environment}), file=runner.stdin, flush=True)
    said, wrong = json.loads(runner.stdout.readline())
    return said, wrong


def saved_by(script: str) -> dict[str, np.ndarray]:
    """Run a script and return the arrays that it saves."""
    with tempfile.TemporaryDirectory() as folder:
        _, wrong = told_by(script, Path(folder))
        assert not wrong, wrong
        (path,) = Path(folder).glob("*.npz")
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)


def repeats(script: str, arrays: Mapping[str, np.ndarray], *, atol: float = 1e-5) -> None:
    """Assert that a script saves the same arrays under the same names."""
    same(saved_by(script), arrays, atol=atol)


def same(saved: Mapping[str, np.ndarray], arrays: Mapping[str, np.ndarray], *, atol: float = 1e-5) -> None:
    """Assert that arrays are the same under the same names."""
    assert saved.keys() == arrays.keys()
    for name, array in arrays.items():
        if array.dtype.kind in "fc":
            np.testing.assert_allclose(saved[name], array, atol=atol, rtol=1e-4, err_msg=name)
        else:
            np.testing.assert_array_equal(saved[name], array, err_msg=name)
