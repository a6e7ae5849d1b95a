"""A lecture to take home: one HTML file with its words, its figures alive, its questions, and what the class said.

Each scene's page is run once, in a process of its own, and what it showed is put into the file. Words come as nodes and
numbers as data, so that nobody's text is read as markup; nothing in the file reaches for a network.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from html import unescape
from typing import Any

import pyarrow as pa
import vl_convert
from streamlit import config
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from pages.figures.standalone import component_assets, self_contained
from pages.hall.files import FOLDER
from pages.hall.projector import measure
from pages.hall.told import scene_told
from pages.ui.asking import computing_here
from pages.ui.in_hall import HALL
from pages.ui.language import ASSETS, strings
from pages.ui.lectures import Lecture, Scene, read_lecture
from pages.ui.link import Link
from transformer_core.progress import counted

ENTRY = ASSETS.parent / "pages" / "ui" / "entry.py"
SECONDS_OF_A_PAGE = 120
MOST_FIGURES = 2  # of a scene that names none
LARGEST_MB = 15
EVERYBODYS = "0.0.0.0"  # an address at which nobody is at home
ALIVE = ("matrix", "chips", "arcs", "architecture")  # components that need no server
MODULES = ("components/kit", "hall/nodes", "hall/home")  # each after those that it imports
Figure = dict[str, Any]


@dataclass(frozen=True)
class TakenHome:
    """A lecture as one file.

    Args:
        html: the file.
        without: titles of scenes whose figures could not be taken along.
    """

    html: str
    without: tuple[str, ...]


def take_home(*, lecture: str, name: str, language: str, answers: str = "{}", stranger: str = "yes") -> TakenHome:
    """Return a lecture as one file that opens with no server.

    Args:
        lecture: as it is written; name: of its folder.
        language: of the file.
        answers: in JSON, how often each answer was given, by scene; none where there was no class.
        stranger: "" where the file is for the one person at home, who may see all; else it has what anybody may see.

    Raises:
        LectureError: it cannot be read.
        ValueError: the file would be too large.
    """
    read, said = read_lecture(name, lecture), json.loads(answers)
    scenes, without = [], []
    config.set_option("server.address", EVERYBODYS if stranger else "localhost")
    with computing_here():
        for number in counted(range(1, len(read.scenes) + 1)):
            scene = read.scenes[number - 1]
            figures = _figures(scene, language)
            without += [] if figures else [scene.title]
            scenes.append(_scene(read, number, language, said.get(str(number), {})) | {"figures": figures})
    data = {"about": read.about, "scenes": scenes, "words": strings("home_file", language)}
    html = self_contained(
        title=read.title,
        language=language,
        script=_script({figure["component"] for scene in scenes for figure in scene["figures"]}),
        style=(FOLDER / "home.css").read_text(encoding="utf-8"),
        data={"payload": base64.b64encode(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace")).decode()},
    )
    if len(html) > LARGEST_MB * 1e6:
        raise ValueError(f"the file has {len(html) / 1e6:.0f} MB, and may have {LARGEST_MB}; leave scenes out")
    return TakenHome(html, tuple(without))


def _scene(lecture: Lecture, number: int, language: str, said: Mapping[str, int]) -> dict[str, Any]:
    """Return what the file says of a scene: its words, its question, what was measured and what the class answered."""
    scene = lecture.scenes[number - 1]
    finding = None
    if scene.question is not None and scene.question.options:
        finding = measure(scene, scene.question, Link({**scene.state, "lang": language}))
    told = scene_told(lecture, number, language)
    return told | {"finding": finding, "answers": said, "screen": scene.screen}


def _figures(scene: Scene, language: str) -> list[Figure]:
    """Run a scene's page and return the figures that it shows, those that the scene names or the first ones."""
    with suppress(RuntimeError):  # a page that takes too long
        found = dict(_shown(_run(scene, language)))
        named = [name for name in scene.figure.split() if name in found]
        return [found[name] for name in named or list(found)[:MOST_FIGURES]]
    return []


def _run(scene: Scene, language: str) -> AppTest:
    """Open a scene's screen as a browser would, and uncover all."""
    app = AppTest.from_file(str(ENTRY), default_timeout=SECONDS_OF_A_PAGE)
    for name, value in {**scene.state, "lang": language, HALL: "1"}.items():
        app.query_params[name] = value
    app._page_hash = calc_hash(scene.page)
    app.run()
    for button in [button for button in app.button if str(button.key).startswith("show_")]:
        app.button(key=str(button.key)).click().run()
    return app


def _shown(app: AppTest) -> Iterator[tuple[str, Figure]]:
    """Yield the figures of a page by the names that scenes use; assets/hall/projector.js has the same ones."""
    charts = 0
    for element in _elements(app.main):
        proto = element.proto
        if element.type == "vega_lite_chart":
            charts += 1
            yield "chart" if charts == 1 else f"chart{charts}", {"component": "chart", "data": _specification(proto)}
        elif element.type == "html" and "data-verdict" in proto.body:
            yield "verdict", {"component": "verdict", "data": _verdict(proto.body)}
        elif element.type == "bidi_component":
            component = proto.component_name.rpartition(".")[2]
            key = proto.id.split("-", 2)[2]
            if component in ALIVE:
                data = {"bytes": base64.b64encode(proto.bytes).decode()} if proto.bytes else json.loads(proto.json)
                yield key, {"component": component, "data": data}


def _elements(block: Any) -> Iterator[Any]:
    for child in block.children.values():
        if hasattr(child, "children"):
            yield from _elements(child)
        else:
            yield child


def _specification(proto: Any) -> dict[str, Any]:
    """Return a chart with its rows in it, in colours that are read on white."""
    chart = json.loads(proto.spec)
    tables = {table.name: pa.ipc.open_stream(table.data.data).read_all().to_pylist() for table in proto.datasets}
    if tables:
        chart["datasets"] = chart.get("datasets", {}) | tables
    if proto.data.data:
        chart["data"] = {"values": pa.ipc.open_stream(proto.data.data).read_all().to_pylist()}
    chart.setdefault("config", {})["background"] = "#ffffff"
    chart.setdefault("width", "container")
    return chart


def _verdict(body: str) -> list[tuple[str, float]]:
    """Return the names of a verdict's bar, each with its share in percent."""
    names = [unescape(name) for name in re.findall(r'data-name="">(.*?)</span>', body)]
    ends = [float(end) for end in re.findall(r"width:([0-9.]+)%;background", body)]
    return [(name, end - before) for name, before, end in zip(names, [0.0, *ends], ends, strict=False)]


def _script(components: set[str]) -> str:
    """Return the one script of the file: the components in it, each in a scope of its own, and what shows them."""
    charts = vl_convert.javascript_bundle(snippet="window.drawChart = vegaEmbed;") if "chart" in components else ""
    parts = ["const components = {};"]
    for name in sorted(components & set(ALIVE)):
        script, style = component_assets(name)
        script = re.sub(r"^export default function *\w*", "const mount = function", script, flags=re.MULTILINE)
        made = f"{{ mount, style: {json.dumps(style)} }}"
        parts.append(f"components.{name} = (() => {{\n{script}\nreturn {made};\n}})();")
    for module in MODULES:
        text = (ASSETS / f"{module}.js").read_text(encoding="utf-8")
        parts.append(re.sub(r"^import .*\n|^export ", "", text, flags=re.MULTILINE))
    return "\n".join([charts, "{", *parts, "}"])
