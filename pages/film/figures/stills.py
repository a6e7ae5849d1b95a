"""A film's map at one moment, the rows of its curves, and the whole run as an animated GIF drawn with Pillow."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from pages.film.figures.film import CURVES, PALETTE, Film, rim

EDGE, HEADING, KEY_LINE, SMALL, LARGE = 24, 40, 24, 14, 16
DIAMOND = ((0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0))
GROUNDS = {"light": ("#ffffff", "#1f1b2e", "#5b586a"), "dark": ("#14121b", "#ece9f3", "#b3b0bd")}  # paper, ink, muted
TRAIN_ALPHA = 0.5


@dataclass(frozen=True, eq=False)
class Still:
    """Positions of everything on one picture of the map, in pixels.

    Shapes:
        xy: (point, 2)

    Args:
        title, measures: the lines above and below the map.
        radius: of a point.
        key: legend entries as (x, line, text, hue, whether held out), hue None for the two parts.
    """

    side: int
    height: int
    title: str
    measures: str
    xy: np.ndarray
    radius: float
    key: Sequence[tuple[float, int, str, str | None, bool]]


def still(film: Film, words: Mapping[str, str], at: float, *, method: str, theme: str, side: int) -> Still:
    """Lay out the map at a place between frames: 2.5 lies halfway from the third to the fourth.

    The axes hold all frames, so that what moves from picture to picture moved in the layout.

    Args:
        film: a run with points.
        words: film.* of the locale.
        at: from 0 to the number of frames less one.
        method: "tsne" or "pca".
        theme: "light" or "dark".
        side: width of the picture, and width and height of its map.

    Raises:
        ValueError: If the run has no points or no frame of that layout, or `at` lies outside.
    """
    frames = film.laid_out(method)
    if film.points is None or not frames:
        raise ValueError(f"run {film.id} has no frame with a map by {method}")
    if not 0 <= at <= len(frames) - 1:
        raise ValueError(f"at={at} must lie from 0 to {len(frames) - 1}, the last frame")
    every = np.stack([np.asarray(layout.xy, np.float64) for _, layout in frames])  # (frame, point, 2)
    low, high = np.nanmin(every, axis=(0, 1)), np.nanmax(every, axis=(0, 1))  # (2,)
    scale = (side - 2 * EDGE) / max(float((high - low).max()), 1e-9)
    index = min(int(at), len(frames) - 1)
    share = at - index
    share = share * share * (3 - 2 * share)
    here, there = every[index], every[min(index + 1, len(frames) - 1)]
    centred = (here + share * (there - here) - (low + high) / 2) * scale  # (point, 2)
    xy = np.stack([side / 2 + centred[:, 0], HEADING + side / 2 - centred[:, 1]], axis=1)
    frame, layout = frames[index]
    title = words["picture_title"].format(name=film.name, method=words[f"method_{method}"], step=frame.step)
    key = _key(film, words, PALETTE[theme], side)
    height = HEADING + side + KEY_LINE * (key[-1][1] + 2) + 8
    radius = min(6.0, max(2.4, 0.13 * side / math.sqrt(max(60, len(xy)))))
    return Still(side, height, title, _measures(layout.measures, words), xy, radius, key)


def _measures(measures: Mapping[str, float], words: Mapping[str, str]) -> str:
    def said(name: str, form: str) -> str:
        value = measures.get(name)
        return "–" if value is None or not math.isfinite(value) else format(value, form)

    return words["picture_measures"].format(
        held_out=said("neighbours_held_out", ".0%"),
        train=said("neighbours_train", ".0%"),
        trust=said("trustworthiness", ".3f"),
    )


def _key(film: Film, words: Mapping[str, str], hues: Sequence[str], side: int) -> list:
    entries = [(words["train"], None, False), (words["held_out"], None, True)]
    entries += [(label[:24], hue, False) for label, hue in zip(film.labels, hues, strict=False)]
    key, x, line = [], 4.0, 0
    for text, hue, held_out in entries:
        wide = 30 + sum(SMALL if ord(sign) > 0x2E7F else 0.6 * SMALL for sign in text)
        if x > 4 and x + wide > side:
            x, line = 4.0, line + 1
        key.append((x, line, text, hue, held_out))
        x += wide
    return key


def curve_rows(film: Film) -> list[dict[str, float | None]]:
    """Return a run's curves, one row a step; a row at whose step a frame was taken has its measures, too."""
    measures = sorted({name for frame in film.frames for name in frame.measures})
    steps = zip(*(getattr(film.curves, name) for name in CURVES), strict=True)
    of_step = {int(step): dict(zip(CURVES[1:], map(float, row), strict=True)) for step, *row in steps}
    of_frame = {frame.step: frame for frame in film.frames}
    before = {f"{name}_accuracy": float(film.baselines[name]) for name in ("undamaged",) if name in film.baselines}
    rows: list[dict[str, float | None]] = []
    for step in sorted(of_step.keys() | of_frame.keys()):
        frame = of_frame.get(step)
        taken = {} if frame is None else {"frame": frame.number, "epoch": frame.epoch, **frame.measures}
        numbers = {name: of_step.get(step, {}).get(name) for name in CURVES[1:]}
        rows.append(
            {"step": step, **numbers, **{name: taken.get(name) for name in ("frame", "epoch", *measures)}, **before}
        )
    return rows


MOST_PICTURES = 150
PICTURE_MS, LAST_MS, MOST_BETWEEN = 50, 1_600, 8
FINE = 4  # places within a pixel where a mark may lie, and how much finer it is drawn
LATIN = ("DejaVuSans.ttf", "LiberationSans-Regular.ttf", "Arial.ttf", "Helvetica.ttc")
CHINESE = (
    *("NotoSansCJK-Regular.ttc", "NotoSansCJKsc-Regular.otf", "NotoSansSC-Regular.otf", "SourceHanSansSC-Regular.otf"),
    *(
        "wqy-microhei.ttc",
        "PingFang.ttc",
        "Hiragino Sans GB.ttc",
        "msyh.ttc",
        "simhei.ttf",
        "DroidSansFallbackFull.ttf",
    ),
)


def embedding_gif(
    film: Film,
    words: Mapping[str, str],
    *,
    method: str = "tsne",
    theme: str = "light",
    side: int = 640,
    plain_words: Mapping[str, str] | None = None,
) -> bytes:
    """Return the run as an animated GIF that loops, of at most MOST_PICTURES pictures.

    Args:
        film: a run with points.
        words: of the film, in the reader's language.
        method: "tsne" or "pca".
        theme: "light" or "dark".
        side: width of the picture in pixels, 160 to 1,200.
        plain_words: used where no font of this machine has the characters of `words`, such as English.

    Raises:
        ValueError: If the run has no frame with that map, or `side` lies outside its range.
    """
    painter = _Painter(film, words, method, theme, side, plain_words)
    count = max(1, len(film.laid_out(method)))
    between = max(1, min(MOST_BETWEEN, (MOST_PICTURES - 1) // max(1, count - 1)))
    places = np.linspace(0, count - 1, min(MOST_PICTURES, (count - 1) * between + 1))
    pictures = [painter.picture(float(place)) for place in places]
    palette = pictures[-1].quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    coded = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures]
    durations = [PICTURE_MS] * (len(coded) - 1) + [LAST_MS]
    buffer = io.BytesIO()
    coded[0].save(buffer, "GIF", save_all=True, append_images=coded[1:], duration=durations, loop=0)
    return buffer.getvalue()


@lru_cache(maxsize=16)
def font_for(chinese: bool, size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont | None:
    """Return a font of this machine, None if Chinese is needed and no font has it."""
    for name in CHINESE if chinese else (*LATIN, *CHINESE):
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return None if chinese else ImageFont.load_default(size)


def _beyond_latin(text: str) -> bool:
    return any(ord(sign) > 0x2E7F for sign in text)


class _Painter:
    """Draw pictures of one run at different moments."""

    def __init__(
        self, film: Film, words: Mapping[str, str], method: str, theme: str, side: int, plain: Mapping[str, str] | None
    ) -> None:
        if not 160 <= side <= 1_200:
            raise ValueError(f"side={side} must lie from 160 to 1200 pixels")
        if any(map(_beyond_latin, words.values())) and font_for(True, SMALL) is None:
            words = plain or words
        self.film, self.words, self.method, self.theme, self.side = film, words, method, theme, side
        self.paper, self.ink, self.muted = GROUNDS[theme]
        self.stamps: dict[tuple, Image.Image] = {}

    def picture(self, at: float) -> Image.Image:
        """Return the picture at a place between frames."""
        scene = still(self.film, self.words, at, method=self.method, theme=self.theme, side=self.side)
        image = Image.new("RGB", (scene.side, scene.height), self.paper)
        draw = ImageDraw.Draw(image)
        self._write(draw, 4, 9, scene.title, LARGE, self.ink)
        self._points(image, scene)
        for x, line, text, hue, held_out in scene.key:
            y = HEADING + self.side + 18 + KEY_LINE * line
            self._stamp(image, x + 8, y - 5, 5.5, hue or self.muted, held_out, 1.0 if hue or held_out else TRAIN_ALPHA)
            self._write(draw, x + 20, y - 13, text, SMALL, self.ink)
        self._write(draw, 4, scene.height - 26, scene.measures, SMALL, self.muted)
        return image

    def _points(self, image: Image.Image, scene: Still) -> None:
        points, hues = self.film.points, PALETTE[self.theme]
        assert points is not None
        for held_out in (False, True):
            chosen = (np.asarray(points.held_out, bool) == held_out) & np.isfinite(scene.xy).all(1)
            radius = scene.radius * (1.12 if held_out else 1)
            for index in np.flatnonzero(chosen):
                hue = hues[int(points.labels[index])]
                x, y = map(float, scene.xy[index])
                self._stamp(image, x, y, radius, hue, held_out, 1.0 if held_out else TRAIN_ALPHA)

    def _stamp(self, image: Image.Image, x: float, y: float, radius: float, hue: str, held: bool, alpha: float) -> None:
        """Put a mark on the image, at the nearest of FINE x FINE places within a pixel."""
        left, top = int(x), int(y)
        place = (int((x - left) * FINE), int((y - top) * FINE))
        key = (radius, hue, held, alpha, place)
        if key not in self.stamps:
            self.stamps[key] = self._drawn(radius, hue, held, alpha, place)
        stamp = self.stamps[key]
        half = stamp.width // 2
        image.paste(stamp, (left - half, top - half), stamp)

    def _drawn(self, radius: float, hue: str, held: bool, alpha: float, place: tuple[int, int]) -> Image.Image:
        half = int(radius * 1.3) + 3
        size = 2 * half * FINE
        outline = rim(hue, self.ink) if held else hue
        large = Image.new("RGB", (size, size), outline)
        mask = Image.new("L", (size, size), 0)
        x, y = (half * FINE + shift + 0.5 for shift in place)
        reach = radius * FINE
        if held:
            corners = [(x + u * reach, y + v * reach) for u, v in DIAMOND]
            inner = [(x + u * (reach - FINE), y + v * (reach - FINE)) for u, v in DIAMOND]
            ImageDraw.Draw(mask).polygon([(x + 1.06 * (u - x), y + 1.06 * (v - y)) for u, v in corners], fill=255)
            ImageDraw.Draw(large).polygon(inner, fill=hue)
        else:
            ImageDraw.Draw(mask).ellipse((x - reach, y - reach, x + reach, y + reach), fill=round(255 * alpha))
        large.putalpha(mask)
        return large.reduce(FINE)

    def _write(self, draw: ImageDraw.ImageDraw, x: float, y: float, text: str, size: int, fill: str) -> None:
        shown = "".join(sign for sign in text if sign.isprintable())
        font = font_for(_beyond_latin(shown), size)
        if font is None:
            shown, font = shown.encode("ascii", "replace").decode(), font_for(False, size)
        draw.text((x, y), shown, fill=fill, font=font)
