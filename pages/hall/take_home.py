"""A lecture to take home: one HTML file with its words, its figures alive, its questions, and what the class said.

Each scene's page is run once, in a process of low priority that serves others between two scenes, and what it showed is
put into the file. Words come as nodes and numbers as data, so that nobody's text is read as markup; nothing in the file
reaches for a network.
"""

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import unescape
from typing import Any

import pyarrow as pa
import vl_convert
from streamlit import config
from streamlit.testing.v1 import AppTest

from pages.figures.standalone import component_assets, self_contained
from pages.hall.each.frame import STAGES
from pages.hall.each.kinds import CannotAskError, alone, task_of
from pages.hall.files import FOLDER
from pages.hall.lectures import Scene, read_lecture
from pages.hall.projector import measure
from pages.hall.scene_words import scene_in_words
from pages.kit.asking import computing_here
from pages.kit.heavy import InParts, Part, Work
from pages.kit.navigation import HALL
from pages.language import ASSETS, strings
from pages.link import Link, reading
from pages.serving.inside_streamlit import hash_of_page
from transformer_core.warm_process import ProcessDiedError

ENTRY = ASSETS.parent / "pages" / "entry.py"
SECONDS_OF_A_SCENE = 60.0
MOST_TOO_SLOW = 3  # scenes whose figures are left out, since they took longer
MOST_FIGURES = 2  # of a scene that names none
LARGEST_MB = 15  # of all scenes
EVERYBODYS = "0.0.0.0"  # an address at which nobody is at home
ALIVE = ("matrix", "chips", "arcs", "architecture")  # components that need no server
MODULES = ("components/kit", "hall/nodes", "hall/figure", "hall/home")  # each after those that it imports
TABLE = b'<main id="figure" data-table="'  # stands before the class's answers in a file
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


@InParts
def take_home(
    *,
    lecture: str,
    name: str,
    language: str,
    answers: str = "{}",
    pictures: str = "{}",
    table: str = "",
    public: bool = True,
) -> Work[TakenHome]:
    """Return a lecture as one file that opens with no server.

    A scene whose page takes longer than a minute, or all memory, has no figures there.

    Args:
        lecture: as it is written; name: of its folder.
        language: of the file.
        answers: in JSON, how often each answer was given, by scene; none where there was no class.
        pictures: in JSON, what the class came to where every phone had a part, by scene; draws of the model stand for a
            class where there was none.
        table: all of that as CSV, which stands in the file to be read again (pages/hall/two_rooms.py).
        public: the file has what anybody may see; else it is for the one person at home, who may see all.

    Raises:
        LectureError: it cannot be read.
        ValueError: the file would be too large, or too many scenes take too long.
    """
    read, answered, of_class = read_lecture(name, lecture), json.loads(answers), json.loads(pictures)
    scenes, size, slow = list[str](), 0, 0
    total = len(read.scenes) + 1
    for done, scene in enumerate(read.scenes):
        asked = {"lecture": lecture, "name": name, "language": language, "public": public, "number": done + 1}
        asked["answers"] = json.dumps(answered.get(str(done + 1), {}))
        asked["picture"] = json.dumps(of_class.get(str(done + 1)))
        try:
            taken = yield Part(scene_at_home, asked, done, total, SECONDS_OF_A_SCENE)
        except ProcessDiedError:
            slow += 1
            if slow > MOST_TOO_SLOW:
                raise ValueError(f"{slow} scenes take too long, lastly {scene.title!r}; leave them out") from None
            taken = yield Part(scene_at_home, asked | {"figures": False}, done, total, SECONDS_OF_A_SCENE)
        scenes.append(taken)
        size += len(taken)
        if size > LARGEST_MB * 1e6:
            most = f"all may take {LARGEST_MB}"
            raise ValueError(f"{done + 1} scenes take {size / 1e6:.0f} MB, and {most}; leave scenes out")
    asked = {"title": read.title, "about": read.about, "language": language, "scenes": tuple(scenes), "table": table}
    return (yield Part(file_of, asked, total - 1, total))


def scene_at_home(
    *,
    lecture: str,
    name: str,
    language: str,
    public: bool,
    number: int,
    answers: str,
    picture: str = "null",
    figures: bool = True,
) -> str:
    """Return in JSON what the file says of a scene: words, question, what was measured, the answers, and its figures.

    Args:
        number: of the scene, from 1; answers, picture: of this scene; figures: take them along.
        lecture, name, language, public: as of take_home.
    """
    read = read_lecture(name, lecture)
    scene, finding = read.scenes[number - 1], None
    config.set_option("server.address", EVERYBODYS if public else "localhost")
    with computing_here():
        if scene.question is not None and scene.question.options:
            finding = measure(scene, scene.question, Link({**scene.state, "lang": language}))
        shown = scene_in_words(read, number, language) | {"finding": finding, "answers": json.loads(answers)}
        shown |= {"screen": scene.screen, "figures": _figures(scene, language) if figures else []}
        shown |= {"sentences": scene.sentences, "picture": json.loads(picture)}
        if scene.each is not None and shown["picture"] is None:
            shown |= {"picture": _of_draws(scene, language), "alone": True}
    return json.dumps(shown, ensure_ascii=False)


def _of_draws(scene: Scene, language: str) -> dict[str, Any] | None:
    """Return the picture of a class that draws of the model stand for; None where it cannot be had."""
    assert scene.each is not None
    with reading(Link({**scene.state, "lang": language})):
        try:
            task = task_of(scene.each, scene.state, language, "file", stage=STAGES[-1])
        except CannotAskError:
            return None
    assert task is not None  # it was computed here
    return alone(task, 0, ())[1].sent()


def file_of(*, title: str, about: str, language: str, scenes: tuple[str, ...], table: str = "") -> TakenHome:
    """Return the file of scenes as scene_at_home returns them, and of a room's table as Rooms.to_csv has it."""
    shown = [json.loads(scene) for scene in scenes]
    data = {"about": about, "scenes": shown, "words": strings("home_file", language)}
    html = self_contained(
        title=title,
        language=language,
        script=_script({figure["component"] for scene in shown for figure in scene["figures"]}),
        style="\n".join((FOLDER / f"{name}.css").read_text(encoding="utf-8") for name in ("home", "figure")),
        data={"table": _base64(table), "payload": _base64(json.dumps(data, ensure_ascii=False))},
    )
    return TakenHome(html, tuple(scene["title"] for scene in shown if not scene["figures"]))


def _base64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "replace")).decode()


def _figures(scene: Scene, language: str) -> list[Figure]:
    """Run a scene's page and return the figures that it shows, those that the scene names or the first ones.

    Each says whether it is covered until the scene's question is answered.
    """
    found = dict(_shown(_run(scene, language)))
    named = [name for name in scene.figure.split() if name in found]
    stays = set(scene.left_open.split())
    return [
        found[name] | {"covered": scene.chooses and not {name, found[name]["component"]} & stays}
        for name in named or list(found)[:MOST_FIGURES]
    ]


def _run(scene: Scene, language: str) -> AppTest:
    """Open a scene's screen as a browser would, and uncover all."""
    app = AppTest.from_file(str(ENTRY), default_timeout=2 * SECONDS_OF_A_SCENE)  # its process ends before
    for name, value in {**scene.state, "lang": language, HALL: "1"}.items():
        app.query_params[name] = value
    app._page_hash = hash_of_page(scene.page)
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


@cache
def _chart_script() -> str:
    """Return what draws charts; to bundle it takes seconds."""
    return vl_convert.javascript_bundle(snippet="window.drawChart = vegaEmbed;")


def _script(components: set[str]) -> str:
    """Return the one script of the file: the components in it, each in a scope of its own, and what shows them."""
    charts = _chart_script() if "chart" in components else ""
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
