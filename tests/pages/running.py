"""Run a page as Streamlit would, without a browser."""

import asyncio
import re
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from typing import Any, TypeVar

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from pages.ui.language import words
from tests.paths import ROOT

T = TypeVar("T")
NUMBER = re.compile('data-label="".*?>(.*?)</div><div data-value="".*?>(.*?)</div>')
ENTRY = ROOT / "pages" / "ui" / "entry.py"


IN_ENGLISH = {"gpt": "gpt", "translation": "translation-en-fr"}  # of the other pages "sentiment"
OTHERS = ("bert", "before", "compare", "my_model", "train", "why")  # these have no model of Chinese


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
    app = AppTest.from_file(str(ENTRY), default_timeout=120)
    for name, value in query.items():
        app.query_params[name] = value
    app._page_hash = calc_hash(page)  # switch_page would have to run the front page first
    return app.run()


def told(app: AppTest) -> str:
    """Return every message and text on the page, joined; a term that is explained where it stands is its word."""
    kinds = (app.info, app.warning, app.error, app.toast, app.markdown, app.caption, app.header, app.subheader)
    shown = [str(element.value) for kind in kinds for element in kind]
    live = (element.proto.body for element in app.get("html") if "data-lines=" in element.proto.body)
    shown += [unescape(re.sub("<style>.*?</style>|<.*?>", "", lines, flags=re.DOTALL)) for lines in live]
    return re.sub("</?dfn.*?>", "", "\n".join([*shown, note(app)]), flags=re.DOTALL)


def note(app: AppTest) -> str:
    """Return the lines under the boxes of text: what there is to say about what was typed."""
    lines = (element.proto.body for element in app.get("html"))
    return "\n".join(re.sub("<.*?>", "", unescape(line)) for line in lines if 'class="text-line"' in line)


def metrics(app: AppTest) -> dict[str, str]:
    """Return the page's large numbers by their labels, those that follow a finger among them."""
    bodies = "".join(element.proto.body for element in app.get("html"))
    live = {unescape(label): unescape(value) for label, value in NUMBER.findall(bodies)}
    return {metric.label: metric.value for metric in app.metric} | live


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
