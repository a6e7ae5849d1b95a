"""What all charts share: hues by role, data without tables, logarithmic axes, captions and files."""

from __future__ import annotations

import base64
import json
import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import altair as alt
import numpy as np
import pyarrow as pa
import vl_convert
from altair.utils.schemapi import disable_debug_mode

from pages.figures.forms import Filled, units_in
from pages.figures.standalone import self_contained

alt.theme.enable("none")  # Streamlit's own theme is laid over it; Altair's would fix sizes
disable_debug_mode()  # every part was checked as it was made, a fifth of the time; tests and files check the whole
Chart = alt.Chart | alt.LayerChart | alt.HConcatChart | alt.VConcatChart | alt.FacetChart
Shown = Chart | Filled
HUES = {
    "query": "#3b76d4",
    "key": "#d6453f",
    "value": "#2a9456",
    "weights": "#8a55d0",
    "residual": "#8d7a63",
    "positions": "#d97614",
}
PALETTE = ("#3b76d4", "#d97614", "#2a9456", "#8a55d0", "#c23b75", "#1f9aa8", "#8d7a63", "#b59a00")
DASHES = ((1, 0), (6, 3), (2, 2), (8, 3, 2, 3), (4, 2), (10, 4), (3, 5), (1, 3))
INK = alt.expr("luminance(background) < 0.3 ? '#ece9f3' : '#3a3346'")  # of what is written on a chart's ground
FONT = 'system-ui, "Segoe UI", "Noto Sans", "Noto Sans CJK SC", sans-serif'
WIDTH_OF_FILES = 720
ROW = "row"  # the place of a row among those of its data, where a chart follows the hand
LETTER, SIGN = 6.8, 34  # pixels of a column of a legend's name, and of its sign with the space around it
NARROW = 280  # pixels of a column of a legend on a phone, where longer names have several lines
ROOM = "(isFinite(containerSize()[0]) ? containerSize()[0] - 70 : width)"  # in pixels; the axis on the left takes 70
SEVERAL = {"hconcat", "vconcat", "concat", "facet", "repeat", "spec"}  # of a chart of several, whose width is another
LINE, LINE_BELOW = 88, 104  # columns of a title and of what stands below it
HEAD = {"anchor": "start", "fontSize": 14, "subtitleFontSize": 12, "subtitlePadding": 5, "offset": 14, "limit": 0}
DRAW = """
const { payload } = document.getElementById("figure").dataset;
const bytes = Uint8Array.from(atob(payload), (letter) => letter.charCodeAt(0));
const specification = JSON.parse(new TextDecoder().decode(bytes));
window.drawChart("#figure", specification, { ast: true, renderer: "svg", actions: false });
"""  # ast: expressions are interpreted, so that the page needs no right to make code of words


def records(**columns: Sequence[Any] | np.ndarray) -> Any:
    """Return equally long columns as a chart's data; what is infinite or not a number becomes a gap.

    A plain mapping with a tuple, since Altair checks every value of its own kind of data, and copies every list at each
    step of building: 300 ms for 1,000 rows.

    Raises:
        ValueError: the columns differ in length.
    """
    lists = [column.tolist() if isinstance(column, np.ndarray) else list(column) for column in columns.values()]
    lengths = {name: len(column) for name, column in zip(columns, lists, strict=True)}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns must be equally long, got {lengths}")
    return {"values": tuple(dict(zip(columns, map(_or_gap, row), strict=True)) for row in zip(*lists, strict=True))}


def tooltips(*shown: str | alt.Tooltip) -> list[alt.Tooltip]:
    """Return what a mark tells of itself; Altair reads a bare name by way of its whole schema, in 3 ms a name."""
    return [alt.Tooltip(one) if isinstance(one, str) else one for one in shown]


def hued(field: str, names: Sequence[str], hues: Sequence[str], **look: Any) -> alt.Color:
    """Return the hue of each name in a column, with a legend above the chart.

    Args:
        look: of the legend, as of alt.Legend.
    """
    scale = alt.Scale(domain=list(names), range=list(hues))
    return alt.Color(f"{field}:N", title=None, scale=scale, legend=alt.Legend(orient="top", **look))


def dashes_of(names: Sequence[str]) -> alt.Scale:
    """Return the dash of each name."""
    return alt.Scale(domain=list(names), range=[list(DASHES[place % len(DASHES)]) for place in range(len(names))])


def _or_gap(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def specification(chart: Shown) -> dict[str, Any]:
    """Return the chart in Vega-Lite, for a page that has a theme of its own; tests check it against the schema.

    Named data are Arrow's tables: Streamlit makes one of a list by way of a data frame, in eight times the time. It
    shows the first of them as the chart's data: that is the one that is drawn. Where several are, they lie where they
    are used and Streamlit shows none, since each would pass for the whole; the export has them all.
    """
    drawn = _inked(chart.to_dict(validate=False))
    named = drawn.pop("datasets", {})
    if not named:
        return drawn
    shown = [id(rows) for _, rows in _tables(drawn, named, None)]
    names = sorted(named, key=lambda name: id(named[name]) not in shown)
    if len(set(shown)) > 1 and not isinstance(chart, Filled):
        _put_in(drawn, named)
    else:
        drawn["datasets"] = {name: pa.Table.from_pylist(named[name]) for name in names}
    return drawn


def followed(drawn: dict[str, Any], event: str, names: Iterable[str]) -> dict[str, Any]:
    """Return a specification whose chart draws other rows as soon as the browser has them, before the page's run.

    assets/components/live/live.js lays {rows} on the page's body, by the names of the data, and tells this event; those
    that differ have another number in a column `live`. Until it lays nothing there, what the page's run brings of an
    older text is replaced.
    Marks are known by the place of their row, so that those that stay are moved and not made anew.

    Args:
        names: of the data that are replaced.
    """
    _know_by_place(drawn)
    for name, table in drawn["datasets"].items():
        drawn["datasets"][name] = table.append_column(ROW, pa.array(range(len(table)), pa.int32()))
    params = [{"name": "live", "value": None, "bind": {"element": "body", "event": event}}]
    for place, name in enumerate(map(json.dumps, names)):
        there, rows = f"data({name})", f"live.rows[{name}]"
        other = f"length({there}) ? !length({rows}) || {there}[0].live !== {rows}[0].live : length({rows}) > 0"
        params.append({"name": f"live_{place}", "expr": f"live && ({other}) ? modify({name}, {rows}, true) : 0"})
    return drawn | {"params": [*drawn.get("params", []), *params]}


def _know_by_place(part: dict[str, Any]) -> None:
    for unit in units_in(part):
        _know_by_place(unit)
    if "mark" in part and part["mark"]["type"] not in ("line", "area"):  # of which each row would be one of its own
        part["encoding"] = {**part.get("encoding", {}), "key": {"field": ROW}}


def shows_several_tables(chart: Filled) -> bool:
    """Tell whether the first of a chart's tables would pass for the whole: marks of several show something."""
    whole = chart.to_dict(validate=False)
    return len({id(rows) for _, rows in _tables(whole, whole["datasets"], None)}) > 1


def _put_in(part: Any, named: dict[str, Any]) -> None:
    """Put rows in the place of their names."""
    if isinstance(part, dict):
        name = part["data"].get("name") if isinstance(part.get("data"), dict) else None
        if name in named:
            part["data"] = {"values": named[name]}
        for kind, inner in part.items():
            if kind != "data":
                _put_in(inner, named)
    elif isinstance(part, list):
        for inner in part:
            _put_in(inner, named)


def covered_specification(chart: Shown) -> dict[str, Any]:
    """Return the chart for a page that covers its marks until a question is answered: it has no words and no tooltips.

    It is drawn as elements and not as pixels, so that marks can be blurred and axes of numbers left as they are: names
    on an axis may stand in the order of what is asked. Those who hear the page hear the chart's name alone.
    """
    drawn = specification(chart)
    _without_words(drawn)
    drawn["usermeta"] = {"embedOptions": {"renderer": "svg"}}
    drawn["config"] |= {"aria": False, "mark": {"aria": False} | drawn["config"].get("mark", {})}
    return drawn


def _without_words(part: Any) -> None:
    if isinstance(part, dict):
        part.pop("tooltip", None)
        encoding = part.get("encoding", {})
        if "text" in encoding:
            encoding["text"] = {"value": ""}
        for side in ("x", "y"):
            channel = encoding.get(side, {})
            if channel.get("type") in ("nominal", "ordinal") and channel.get("axis", {}) is not None:
                channel["axis"] = channel.get("axis", {}) | {"labelOpacity": 0}
        for name, inner in part.items():
            if name not in ("data", "datasets"):
                _without_words(inner)
    elif isinstance(part, list):
        for inner in part:
            _without_words(inner)


def _inked(specification: dict[str, Any]) -> dict[str, Any]:
    """Return it with words in a colour that can be read on a light and on a dark ground, and with whole legends."""
    config = specification.setdefault("config", {})
    config["text"] = {"color": INK.to_dict()} | config.get("text", {})
    config["legend"] = {"labelLimit": 0, "titleLimit": 0} | config.get("legend", {})  # no name is cut off
    if not SEVERAL & specification.keys():
        _fold_legends(specification)
    return specification


def _fold_legends(part: Any) -> None:
    """Give a legend above or below a chart as many columns as the chart's width has room for."""
    if isinstance(part, list):
        for inner in part:
            _fold_legends(inner)
    if not isinstance(part, dict):
        return
    legend, scale = part.get("legend"), part.get("scale")
    names = scale.get("domain") if isinstance(scale, dict) else None
    if isinstance(legend, dict) and isinstance(names, list) and legend.get("orient") in ("top", "bottom"):
        _fold(legend, names)
    for name, inner in part.items():
        if name not in ("data", "datasets"):
            _fold_legends(inner)


def _fold(legend: dict[str, Any], names: Sequence[Any]) -> None:
    if not names or isinstance(legend.get("columns"), dict):
        return
    widths = [LETTER * columns_of(str(name)) + SIGN for name in names]
    most = legend.get("columns") or len(names)
    whole = sum(sorted(widths)[-most:])
    fitting = f"max(1, min({most}, floor({ROOM} / {max(widths):.0f})))"
    legend["columns"] = {"expr": f"{ROOM} < {whole:.0f} ? {fitting} : {most}"}
    if max(widths) > NARROW and "labelExpr" not in legend:
        lines = {name: folded((str(name),), int((NARROW - SIGN) / LETTER)) for name in names}
        wrapped = f"({json.dumps(lines, ensure_ascii=False)})[datum.label]"
        legend["labelExpr"] = f"{ROOM} < {max(widths):.0f} ? {wrapped} : datum.label"


def taller(drawn: dict[str, Any], share: float, most: float) -> dict[str, Any]:
    """Return a specification of one chart with its height times a share; of several in one as it is.

    Args:
        most: pixels of the height.
    """
    height = drawn.get("height")
    if isinstance(height, dict) and "step" in height:
        return drawn | {"height": {**height, "step": height["step"] * share}}
    return drawn | {"height": min(height * share, most)} if isinstance(height, int | float) else drawn


def _for_files(chart: Shown, about: Sequence[str]) -> dict[str, Any]:
    specification = _inked(chart.to_dict())
    if about:
        text, subtitle = folded(about[:1], LINE), folded(about[1:], LINE_BELOW)
        specification["title"] = {"text": text, "subtitle": subtitle, **HEAD}
    _fixed_width(specification)
    specification["config"] |= {"font": FONT, "background": "#ffffff"}
    return specification


def _fixed_width(part: Any) -> None:
    if isinstance(part, dict):
        if part.get("width") == "container":
            part["width"] = WIDTH_OF_FILES
        for inner in part.values():
            _fixed_width(inner)
    elif isinstance(part, list):
        for inner in part:
            _fixed_width(inner)


def to_png(chart: Shown, about: Sequence[str] = ()) -> bytes:
    """Return the chart as a picture, twice as fine as a screen.

    Args:
        about: lines that say in it what it shows, and of what.
    """
    return vl_convert.vegalite_to_png(_for_files(chart, about), scale=2)


def to_svg(chart: Shown, about: Sequence[str] = ()) -> str:
    """Return the chart as a drawing.

    Args:
        about: lines that say in it what it shows, and of what.
    """
    return vl_convert.vegalite_to_svg(_for_files(chart, about))


@lru_cache(maxsize=1)
def _drawing() -> str:
    return vl_convert.javascript_bundle(snippet="window.drawChart = vegaEmbed;") + DRAW


def to_html(chart: Shown, *, title: str, language: str = "en", caption: Sequence[str] = ()) -> str:
    """Return one self-contained page with the chart alive in it; nothing in it reaches for a network.

    Args:
        title: of the page.
        caption: lines that say what the chart is of.
    """
    data = {"payload": base64.b64encode(json.dumps(_for_files(chart, ())).encode()).decode()}
    return self_contained(title=title, language=language, script=_drawing(), style="", data=data, caption=caption)


def rows_of(chart: Shown) -> list[dict[str, Any]]:
    """Return the rows that the chart draws as one table, in order and each once.

    Rows of several axes have a column `part` that names theirs. Words that nobody can point at and rules without a name
    are no rows.
    """
    whole = chart.to_dict()
    tables = list(_tables(whole, whole.get("datasets", {}), None))
    several = len({part for part, _ in tables}) > 1
    found: dict[str, dict[str, Any]] = {}
    for part, rows in tables:
        for row in rows:
            named = {"part": part, **row} if several else row
            found.setdefault(json.dumps(named, sort_keys=True, default=str), named)
    return list(found.values())


def _tables(part: dict[str, Any], datasets: dict[str, Any], name: str | None) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the rows of every mark with the name of its axis, else of its data."""
    inner = units_in(part) + ([part["spec"]] if "spec" in part else [])
    if "layer" in part:
        titles = [_title(unit, side) for side in ("y", "x") for unit in (part, *inner)]
        name = next(filter(None, titles), name)
    for unit in inner:
        shared = {kind: part[kind] | unit.get(kind, {}) for kind in ("data", "encoding") if kind in part}
        yield from _tables(unit | shared, datasets, name)
    mark = part.get("mark")
    if mark is None or "data" not in part:
        return
    data = part["data"]
    called = str(data.get("name", ""))
    rows = data.get("values") or datasets.get(called, ())
    if _is_guide(mark if isinstance(mark, str) else mark["type"], part.get("encoding", {}), rows):
        return
    own = called if called and not called.startswith("data-") else _title(part, "y") or name or _title(part, "x")
    yield own or "", rows


def _is_guide(mark: str, encoding: dict[str, Any], rows: Sequence[Any]) -> bool:
    if encoding.get("tooltip") or mark not in ("rule", "text"):
        return False
    return mark == "text" or not any(isinstance(value, str) for row in rows[:1] for value in row.values())


def _title(unit: dict[str, Any], side: str) -> str | None:
    axis = unit.get("encoding", {}).get(side, {})
    return axis.get("title") or None


MOST = 80  # columns of a shortened text; a Chinese character takes two
JOINERS = "\u200c\u200d"  # of emoji and of scripts that need them


def columns_of(text: str) -> int:
    """Return how many columns of a monospaced font a text takes."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def one_line(text: str, most: int = MOST) -> str:
    """Return a text on one line, shortened, without signs that cannot be seen: they could turn the rest around."""
    start = text[: 8 * most]  # a text may be very long
    seen = "".join(letter if letter in JOINERS or unicodedata.category(letter)[0] != "C" else " " for letter in start)
    words = " ".join(seen.split())
    if columns_of(words) <= most and len(text) == len(start):
        return words
    while columns_of(words) > most - 1:
        words = words[: min(len(words) - 1, most - 1)]
    return f"{words.rstrip()}…"


def folded(lines: Sequence[str], most: int) -> list[str]:
    """Return lines of which none is longer than `most` columns, broken at blanks where there are any."""
    found = []
    for line in lines:
        while columns_of(line) > most:
            end = next(end for end in range(len(line), 0, -1) if columns_of(line[:end]) <= most)
            end = blank if (blank := line.rfind(" ", 0, end + 1)) > end // 2 else end
            found.append(line[:end].rstrip())
            line = line[end:].lstrip()
        found.append(line)
    return found


_POWER = "floor(log(datum.value) / LN10 + 1e-9)"
_LEADING = f"round(datum.value / pow(10, {_POWER}))"
_DIGITS = f"{list('⁰¹²³⁴⁵⁶⁷⁸⁹')}"
_SUPERSCRIPT = (
    f"({_POWER} < 0 ? '⁻' : '') + (abs({_POWER}) > 9 ? {_DIGITS}[floor(abs({_POWER}) / 10)] : '')"
    f" + {_DIGITS}[abs({_POWER}) % 10]"
)
LABELS = (
    "datum.value >= 0.001 && datum.value < 1e6 ? format(datum.value, '~r')"
    f" : ({_LEADING} == 1 ? '' : {_LEADING} + '×') + '10' + {_SUPERSCRIPT}"
)  # in Vega's language
