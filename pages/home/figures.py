"""The architecture diagram as SVG, drawn from the sizes of a loaded model and of the sentence that it reads.

Drawing has the shapes (boxes that open a page, arrows, sums, norms); architecture_svg puts them together.
"""

import base64
import io
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import Any

import numpy as np
from PIL import Image

WIDTH, HEIGHT = 1180, 300
STREAM_Y, BRANCH_Y, MEMORY_Y = 214, 92, 292
LAYERS_X = 376
BELOW, ABOVE = 36, -82  # of a box's middle, where its picture begins
PICTURE_HEIGHT, STRIP_HEIGHT, MOST_COLUMNS = 46, 14, 256
NEGATIVE, POSITIVE, WEIGHT = (181, 112, 42), (31, 143, 156), (123, 63, 184)  # seen on light and on dark
BRANCH_WIDTHS = {2: (244, 98, 191), 3: (200, 88, 172)}  # by number of branches: width, to its middle, to its end


@dataclass(frozen=True)
class Thumbnail:
    """A small picture of a tensor: a PNG as a data URI, and what it is in words."""

    uri: str
    title: str


def summarised(values: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return at most so many rows and columns of a matrix; of cells that fall together the greatest by size is kept."""
    for axis, most in ((0, height), (1, width)):
        if values.shape[axis] > most:
            parts = np.array_split(values, most, axis=axis)
            low, high = (np.stack([find(part, axis=axis) for part in parts], axis=axis) for find in (np.min, np.max))
            values = np.where(-low > high, low, high)
    return values


def tinted(values: np.ndarray) -> str:
    """Return a matrix as a PNG: a cell's hue is its sign, and its opacity the root of its size, so that little is seen.

    Weights and probabilities, all of 0 or more, have a hue of their own.
    """
    top = float(np.abs(values).max()) or 1.0
    hues = np.where(values[..., None] < 0, NEGATIVE, WEIGHT if values.min() >= 0 else POSITIVE)
    pixels = np.concatenate([hues, np.round(255 * np.sqrt(np.abs(values) / top))[..., None]], axis=-1).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels, "RGBA").save(file, "PNG", compress_level=1)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def side_by_side_sheet(heads: np.ndarray) -> np.ndarray:
    """Lay the maps of all heads (head, row, column) out in two rows, with an empty line between any two."""
    n_heads, rows, columns = heads.shape
    wide = -(-n_heads // 2)
    sheet = np.zeros((2 * rows + 1, wide * (columns + 1) - 1))
    for head, weights in enumerate(heads):
        top, left = (head // wide) * (rows + 1), (head % wide) * (columns + 1)
        sheet[top : top + rows, left : left + columns] = weights
    return sheet


def pictures_of(tensors: Mapping[str, np.ndarray], words: str) -> dict[str, Thumbnail]:
    """Return a picture of the tensor at each part of the diagram that has one.

    Args:
        tensors: vectors, matrices, and maps of several heads, by part.
        words: what is said of each, with places for its shape, and its least and its greatest number.
    """
    outcome = {part: tensors["outcome"] for part in ("classifier", "next_token") if "outcome" in tensors}
    return {part: _picture(values, words) for part, values in {**tensors, **outcome}.items()}


def _picture(values: np.ndarray, words: str) -> Thumbnail:
    title = words.format(
        shape=" × ".join(map(str, values.shape)), low=f"{values.min():.3g}", high=f"{values.max():.3g}"
    )
    sheet = side_by_side_sheet(values) if values.ndim == 3 else np.atleast_2d(values)
    return Thumbnail(tinted(summarised(sheet, 2 * PICTURE_HEIGHT, MOST_COLUMNS)), title)


class Drawing:
    """Collect shapes and return them as SVG; boxes and norms lie on top of lines and texts.

    Args:
        words: labels by name.
        pages: title of the page that each part opens, by part; only these parts can be clicked.
        pictures: of the tensor at a part, by part.
        height: of the whole drawing.
        changed: parts that are marked; "norm" marks every normalisation.
    """

    def __init__(
        self,
        words: Mapping[str, str],
        pages: Mapping[str, str],
        pictures: Mapping[str, Thumbnail],
        height: int = HEIGHT,
        changed: Collection[str] = (),
    ) -> None:
        self.words, self.pages, self.pictures, self.height, self.changed = words, pages, pictures, height, changed
        self.down = 0.0  # added to every y that is drawn after it is set
        self._lines: list[str] = []
        self._shapes: list[str] = []

    def box(self, part: str, x: float, y: float, width: float, title: str, detail: str) -> None:
        """Draw a part of the model as a box centred at x and y."""
        self._shapes.append(
            f'<g class="box {escape(part)}{self._mark(part)}"{self._button(part)}>'
            f'<rect x="{x - width / 2}" y="{y - 30 + self.down}" width="{width}" height="60" rx="9"/>'
            f'<text x="{x}" y="{y - 4 + self.down}">{escape(title)}</text>'
            f'<text x="{x}" y="{y + 16 + self.down}" class="shape">{escape(detail)}</text></g>'
        )

    def picture(self, part: str, x: float, y: float, width: float, height: float = PICTURE_HEIGHT) -> None:
        """Draw the picture of a part's tensor, if there is one, centred at x, from y down."""
        found = None if self.down else self.pictures.get(part)
        if found is not None:
            self._shapes.append(
                f'<image x="{x - width / 2}" y="{y}" width="{width}" height="{height}" preserveAspectRatio="none" '
                f'href="{found.uri}"><title>{escape(found.title)}</title></image>'
            )

    def _mark(self, part: str) -> str:
        return " changed" if part in self.changed else ""

    def _button(self, part: str) -> str:
        if part not in self.pages:
            return ""
        label = escape(self.words["open"].format(page=self.pages[part]))
        return f' role="button" tabindex="0" data-part="{escape(part)}" aria-label="{label}"'

    def pill(self, x: float, y: float, title: str) -> None:
        """Draw a normalisation, centred at x and y."""
        y += self.down
        self._shapes.append(
            f'<g class="pill{self._mark("norm")}"{self._button("norm")}>'
            f'<rect x="{x - 30}" y="{y - 11}" width="60" height="22" rx="11"/>'
            f'<text x="{x}" y="{y + 4}" class="small">{escape(title)}</text></g>'
        )

    def caption(self, part: str, x: float, y: float, title: str) -> None:
        """Write the name of a part that is drawn as a line; the text starts at x."""
        y += self.down
        self._shapes.append(
            f'<g class="caption"{self._button(part)}><rect x="{x - 6}" y="{y - 14}" width="130" height="20" rx="6"/>'
            f'<text x="{x}" y="{y}" class="small" style="text-anchor:start">{escape(title)}</text></g>'
        )

    def plus(self, x: float, y: float) -> None:
        """Draw a sum, centred at x and y."""
        y += self.down
        cross = f"M{x - 5} {y}H{x + 5}M{x} {y - 5}V{y + 5}"
        self._shapes.append(f'<g class="plus"><circle cx="{x}" cy="{y}" r="11"/><path d="{cross}"/></g>')

    def frame(self, x: float, width: float, title: str, *, start: bool = False) -> None:
        """Draw the border around a layer, with its title at the start or in the middle."""
        self._lines.append(f'<rect class="frame" x="{x}" y="{34 + self.down}" width="{width}" height="232" rx="14"/>')
        place, anchor = (x + 4, "start") if start else (x + width / 2, "middle")
        self.text(place, 24, title, "frame-title", anchor=anchor)

    def line(self, x1: float, y1: float, x2: float, y2: float, role: str, *, arrow: bool = False) -> None:
        """Draw a line of one role: stream, branch, positions or memory."""
        y1, y2 = y1 + self.down, y2 + self.down
        end = ' marker-end="url(#tip)"' if arrow else ""
        self._lines.append(f'<line class="{role}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"{end}/>')

    def arrow(self, x1: float, x2: float, y: float, shape: str) -> None:
        """Draw an arrow of the residual stream, with the shape of its tensor below."""
        self.line(x1, y, x2, y, "stream", arrow=True)
        self.text((x1 + x2) / 2, y + 27, shape, "shape")

    def text(self, x: float, y: float, text: str, role: str, *, anchor: str = "middle") -> None:
        """Write a text, escaped."""
        self._lines.append(
            f'<text class="{role}" x="{x}" y="{y + self.down}" style="text-anchor:{anchor}">{escape(text)}</text>'
        )

    def svg(self, label: str) -> str:
        """Return the whole as an SVG element."""
        tip = (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" '
            'markerUnits="userSpaceOnUse" markerWidth="13" markerHeight="13" orient="auto">'
            '<path d="M0 0L8 4L0 8z"/></marker></defs>'
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" role="group" '
            f'aria-label="{escape(label)}">{tip}{"".join(self._lines)}{"".join(self._shapes)}</svg>'
        )


@dataclass(frozen=True)
class Architecture:
    """A model, and the sentence that it reads.

    Args:
        config: its ModelConfig, not named as a type: figures do not import the engine.
        kind: "classifier", "bert", "gpt", "encoder", "tagger", "answerer" or "translation".
        n_tokens: positions of the sentence.
    """

    config: Any
    kind: str
    n_tokens: int


@dataclass(frozen=True)
class _Branch:
    part: str
    title: str
    detail: str
    inside: str


def _attention(model: Architecture, words: Mapping[str, str], *, masked: bool, queries: str = "") -> _Branch:
    config, size = model.config, queries or str(model.n_tokens)
    shared = config.kv_heads != config.n_heads
    heads = words["heads_shared" if shared else "heads"]
    heads = heads.format(count=config.n_heads, width=config.d_head, kept=config.kv_heads)
    title = words["masked_attention" if masked else "attention"]
    return _Branch("attention", title, heads, f"(1, {config.n_heads}, {size}, {size})")


def _feed_forward(model: Architecture, words: Mapping[str, str], size: str) -> _Branch:
    config = model.config
    widths = f"{config.d_model} {'⇉' if config.gated else '→'} {config.d_ff:,} → {config.d_model}"
    if config.n_experts:
        chosen = words["experts"].format(count=config.n_experts, active=config.n_active_experts)
        return _Branch("feed_forward", chosen, widths, f"(1, {size}, {config.d_model})")
    title = words["gated" if config.gated else "feed_forward"]
    return _Branch("feed_forward", title, widths, f"(1, {size}, {config.d_ff})")


def _inputs(draw: Drawing, model: Architecture, size: str, vocab_size: int, title: str) -> None:
    words, config = draw.words, model.config
    draw.box("target" if draw.down else "tokens", 58, STREAM_Y, 104, title, f"(1, {size})")
    draw.picture("tokens", 58, STREAM_Y + BELOW, 104, STRIP_HEIGHT)
    draw.arrow(110, 134, STREAM_Y, "")
    draw.box("embedding", 198, STREAM_Y, 128, words["embedding"], f"{vocab_size:,} × {config.d_embedding}")
    draw.picture("embedding", 198, STREAM_Y + BELOW, 128)
    added = [words["segments"]] if config.n_segments and not draw.down else []
    if config.positions not in ("rotary", "alibi", "relative", "none"):
        added = [words["positions"], *added]
    if added:
        wide, shape = 128 if len(added) == 1 else 170, f"({size}, {config.d_embedding})"
        draw.box("positions", 198, BRANCH_Y, wide, " + ".join(added), shape)
        draw.line(198, BRANCH_Y + 30, 198, STREAM_Y - 30, "positions", arrow=True)
        draw.picture("positions", 198, BRANCH_Y + ABOVE, 128)
    draw.arrow(262, LAYERS_X, STREAM_Y, f"(1, {size}, {config.d_model})")
    if config.embedding_norm:
        draw.pill(316, STREAM_Y, words["norm"])


def _layers(draw: Drawing, model: Architecture, branches: list[_Branch]) -> None:
    words, config = draw.words, model.config
    step, to_middle, to_down = BRANCH_WIDTHS[len(branches)]
    width = step * len(branches) + (22 if len(branches) == 2 else 34)
    end = LAYERS_X + width
    title = words["layers_parallel" if config.parallel else "layers"].format(count=config.n_layers)
    draw.frame(LAYERS_X, width, title, start=len(branches) > 2)
    draw.line(LAYERS_X, STREAM_Y, end, STREAM_Y, "stream")
    draw.caption("stream", LAYERS_X + 20, STREAM_Y + 24, words["residual"])
    for index, branch in enumerate(branches):
        up = LAYERS_X + 40 + step * index
        middle, down = up + to_middle, up + to_down
        draw.text(middle, BRANCH_Y - 38, branch.inside, "shape")
        draw.line(up, STREAM_Y, up, BRANCH_Y, "branch")
        draw.line(up, BRANCH_Y, down, BRANCH_Y, "branch")
        draw.line(down, BRANCH_Y, down, STREAM_Y - 11, "branch", arrow=True)
        draw.box(branch.part, middle, BRANCH_Y, 156, branch.title, branch.detail)
        draw.picture(branch.part, middle, BRANCH_Y + BELOW, 120)
        draw.plus(down, STREAM_Y)
        places = {"pre": [(up, 156)], "post": [(down + 32, STREAM_Y)], "output": [(down, 156)]}
        for place in places.get(config.norm_order, [(up, 156), (down, 156)]):
            draw.pill(*place, words["norm"])
        if index == 0 and not config.first_attention_norm:
            draw.text(up + 62, 200, words["norm_from_second"], "shape")
    if config.norm_order != "post":
        draw.pill(end + 56, STREAM_Y, words["final_norm"])


def _sentence(draw: Drawing, model: Architecture) -> None:
    """Draw one vector for the sentence, and the classifier where the model has one."""
    words = draw.words
    pooled = words["cls"] if model.config.pooling == "cls" else words["mean"]
    draw.box("pooled", 1066, STREAM_Y, 104, pooled, f"(1, {model.config.d_model})")
    draw.picture("pooled", 1066, STREAM_Y + BELOW, 104, STRIP_HEIGHT)
    if model.kind == "classifier":
        draw.line(1066, STREAM_Y - 30, 1066, BRANCH_Y + 30, "stream", arrow=True)
        draw.box("classifier", 1066, BRANCH_Y, 120, words["classifier"], f"(1, {model.config.n_classes})")
        draw.picture("classifier", 1066, BRANCH_Y + ABOVE + PICTURE_HEIGHT - STRIP_HEIGHT, 104, STRIP_HEIGHT)


def _word_scores(draw: Drawing, model: Architecture) -> None:
    """Draw the score of every word of the vocabulary at every position, and what is read from it."""
    words, config = draw.words, model.config
    draw.box("word_scores", 1088, STREAM_Y, 156, words["word_scores"], f"(1, {model.n_tokens}, {config.vocab_size:,})")
    draw.picture("word_scores", 1088, STREAM_Y + BELOW, 128)
    if model.kind == "gpt":
        draw.line(1088, STREAM_Y - 30, 1088, BRANCH_Y + 30, "stream", arrow=True)
        draw.box("next_token", 1088, BRANCH_Y, 140, words["next_token"], f"(1, {config.vocab_size:,})")
        draw.picture("next_token", 1088, BRANCH_Y + ABOVE + PICTURE_HEIGHT - STRIP_HEIGHT, 128, STRIP_HEIGHT)
    elif config.pair_head:
        draw.line(988, STREAM_Y, 988, BRANCH_Y, "branch")
        draw.line(988, BRANCH_Y, 1018, BRANCH_Y, "branch", arrow=True)
        draw.box("pair", 1092, BRANCH_Y, 148, words["pair"], f"{words['cls_short']} → (1, 2)")


def _two_stacks(
    model: Architecture, words: Mapping[str, str], pages: Mapping[str, str], pictures: Mapping[str, Thumbnail]
) -> str:
    draw, size = Drawing(words, pages, pictures, 2 * HEIGHT), words["target_size"]
    _inputs(draw, model, str(model.n_tokens), model.config.vocab_size, words["source"])
    _layers(draw, model, [_attention(model, words, masked=False), _feed_forward(model, words, str(model.n_tokens))])
    draw.arrow(886, 1010, STREAM_Y, f"(1, {model.n_tokens}, {model.config.d_model})")
    draw.box("memory", 1066, STREAM_Y, 104, words["memory"], f"(1, {model.n_tokens}, {model.config.d_model})")
    step, to_middle, _ = BRANCH_WIDTHS[3]
    crossing = LAYERS_X + 40 + step + to_middle + 60
    draw.line(1066, STREAM_Y + 30, 1066, MEMORY_Y, "memory")
    draw.line(1066, MEMORY_Y, crossing, MEMORY_Y, "memory")
    draw.line(crossing, MEMORY_Y, crossing, HEIGHT + BRANCH_Y - 30, "memory", arrow=True)
    draw.down = float(HEIGHT)
    _inputs(draw, model, size, model.config.target_vocab_size or model.config.vocab_size, words["target"])
    heads = words["heads"].format(count=model.config.n_heads, width=model.config.d_head)
    cross = _Branch("cross", words["cross"], heads, f"(1, {model.config.n_heads}, {size}, {model.n_tokens})")
    own = _attention(model, words, masked=model.config.causal, queries=size)
    _layers(draw, model, [own, cross, _feed_forward(model, words, size)])
    vocabulary = model.config.target_vocab_size or model.config.vocab_size
    draw.line(LAYERS_X + 3 * step + 34, STREAM_Y, 1108, STREAM_Y, "stream")
    draw.line(1108, STREAM_Y, 1108, BRANCH_Y + 30, "stream", arrow=True)
    draw.box("word_scores", 1108, BRANCH_Y, 136, words["word_scores"], f"(1, {size}, {vocabulary:,})")
    return draw.svg(words["label"])


TOKEN_HEADS = {"tagger": 0, "answerer": 2}  # how many scores a token has; 0 for one a class


def architecture_svg(
    model: Architecture,
    words: Mapping[str, str],
    pages: Mapping[str, str],
    pictures: Mapping[str, Thumbnail] = MappingProxyType({}),
    changed: Collection[str] = (),
) -> str:
    """Draw the diagram; a translation has its decoder below its encoder.

    Args:
        words: labels by name.
        pages: title of the page that each part opens, by part; only these parts can be clicked.
        pictures: of the tensor at a part, by part.
        changed: parts that are marked, as of Drawing; of a translation none.

    Returns:
        An SVG element, every text in it escaped.
    """
    if model.kind == "translation":
        return _two_stacks(model, words, pages, pictures)
    draw = Drawing(words, pages, pictures, changed=changed)
    _inputs(draw, model, str(model.n_tokens), model.config.vocab_size, words["tokens"])
    masked = model.kind == "gpt" and model.config.causal
    _layers(draw, model, [_attention(model, words, masked=masked), _feed_forward(model, words, str(model.n_tokens))])
    draw.arrow(886, 1010, STREAM_Y, f"(1, {model.n_tokens}, {model.config.d_model})")
    if model.kind in ("bert", "gpt"):
        _word_scores(draw, model)
    elif model.kind in TOKEN_HEADS:
        size = TOKEN_HEADS[model.kind] or model.config.n_classes
        draw.box("token_scores", 1088, STREAM_Y, 156, words[f"{model.kind}_scores"], f"(1, {model.n_tokens}, {size})")
    else:
        _sentence(draw, model)
    return draw.svg(words["label"])
