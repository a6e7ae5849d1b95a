"""Small matrices, and made-up runs for the film: points that separate, and heads that find a diagonal."""

import json
import struct
from typing import Any

import numpy as np

from pages.figures.matrix import ALIGNMENT, LEVELS, MASKED, Axis, Explain, MatrixFigure, Panel, Scale
from pages.film.figures.film import Film
from pages.language import strings
from transformer_core.analysis.followed_text import FollowedText, Moment
from transformer_core.training.runs.store.records import Curves, Frame, Layout, State, Status, StoredPoints

ENGLISH_WORDS = strings("matrix", "en")
ATTACK = "</script><img src=x onerror=alert(1)>"
TOKENS = ("[CLS]", "你好", "🙂", ATTACK, "مرحبا")


def attention(seed: int = 0, size: int = 5, d_head: int = 8, *, causal: bool = False) -> Explain:
    rng = np.random.default_rng(seed)
    query, key = rng.normal(size=(2, size, d_head)).astype(np.float32)
    scores = query @ key.T / np.float32(np.sqrt(d_head))
    masked = np.where(np.tril(np.ones((size, size), bool)), scores, -np.inf) if causal else scores
    raised = np.exp(masked - masked.max(axis=1, keepdims=True))
    weights = (raised / raised.sum(axis=1, keepdims=True)).astype(np.float32)
    return Explain(query, key, scores, masked.astype(np.float32), weights, float(np.sqrt(d_head)))


def figure(*panels: Panel, tokens: tuple[str, ...] = TOKENS, **fields) -> MatrixFigure:
    if not panels:
        weights = attention(size=len(tokens)).weights
        panels = (Panel("head", "Head 0", weights, Scale.of("probability")),)
    rows, cols = Axis("query position", tokens), Axis("key position", tokens)
    return MatrixFigure(panels, rows, cols, ENGLISH_WORDS, **fields)


def panel_of(values, scale=None) -> Panel:
    return Panel("a", "", np.asarray(values), scale or Scale("probability", 0, 1))


def film_words(language: str = "en") -> dict[str, str]:
    """Return every word of the film."""
    return strings("matrix", language) | strings("duration", language) | strings("film", language)


def clouds(
    n_points: int = 120,
    n_frames: int = 12,
    *,
    labels: tuple[str, ...] = ("negative", "positive"),
    steps: int = 240,
    gap: float = 1.0,
    seed: int = 0,
    run: str = "abcdefgh",
    name: str = "reviews, quick",
    state: State = "finished",
) -> Film:
    """Return a classifier's run whose classes come apart, its held-out half less and later.

    Args:
        gap: how far they come apart.
    """
    rng = np.random.default_rng(seed)
    n_classes = len(labels)
    classes = rng.integers(n_classes, size=n_points)
    held_out = np.arange(n_points) % 2 == 1
    angle = 2 * np.pi * np.arange(n_classes) / n_classes + 0.4
    centres = 14 * gap * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    start = rng.normal(scale=9, size=(n_points, 2))
    noise = rng.normal(scale=3.2, size=(n_points, 2))
    astray = np.where(held_out & (rng.random(n_points) < 0.18), rng.integers(n_classes, size=n_points), classes)
    turn = rng.normal(scale=0.35, size=n_points)
    frames, layouts, guesses, sure = [], [], {}, {}
    for number in range(n_frames):
        share = number / max(1, n_frames - 1)
        pull = share ** np.where(held_out, 1.6 / gap, 0.8)
        xy = (1 - pull)[:, None] * start + pull[:, None] * (centres[astray] + noise)
        swirl = turn * np.sin(np.pi * share)
        xy = np.stack([xy[:, 0] * np.cos(swirl) - xy[:, 1], xy[:, 0] * np.sin(swirl) + xy[:, 1]], axis=1)
        wrong = rng.random(n_points) < 0.5 * (1 - pull)
        predicted = np.where(wrong, rng.integers(n_classes, size=n_points), astray)
        right = predicted == classes
        far = min(gap, 1) * share
        measures = {"train_loss": 0.7 - 0.66 * far, "held_out_loss": 0.71 - 0.5 * far + 0.12 * share**3}
        measures |= {"train_accuracy": right[~held_out].mean(), "held_out_accuracy": right[held_out].mean()}
        trust = {"trustworthiness": 0.95 + 0.03 * share, "displacement": 0.34 * (1 - share) + 0.04}
        trust |= {"neighbours_train": 0.5 + 0.49 * share, "neighbours_held_out": 0.5 + 0.38 * share}
        layouts += [Layout(number, "tsne", xy, trust), Layout(number, "pca", 0.2 * xy * (0.2 + share), trust)]
        certainty = 0.5 + 0.48 * pull
        step = round(share * steps)
        frames.append(Frame(number, step, 6 * share, 48 * share, measures))
        guesses[number], sure[number] = predicted, certainty
    taken = np.arange(1, steps + 1)
    loss = 0.04 + 0.66 * np.exp(-3 * taken / steps) * (1 + 0.25 * rng.normal(size=steps))
    rate = 1e-3 * np.minimum(taken / 24, 1) * 0.5 * (1 + np.cos(np.pi * taken / steps))
    norm = 1.4 * np.exp(-2 * taken / steps) * (1 + 0.3 * np.abs(rng.normal(size=steps)))
    texts = [
        f"Review {i}: the plot was {'thin' if label == 0 else 'bright'} but I cared" for i, label in enumerate(classes)
    ]
    status, curves = Status(state, steps, steps, seconds=48.0), Curves(taken, loss, rate, norm, 48 * taken / steps)
    return Film(
        *(run, name, "classifier", labels, status, curves, frames, layouts),
        predicted=guesses,
        certainty=sure,
        baselines={"majority": 0.52, "bag_of_words": 0.81},
        points=StoredPoints(texts, classes, held_out),
        steps_per_epoch=steps // 6,
        frames_planned=n_frames,
    )


def followed_of(
    film: Film, text: str = "Not a bad film at all.", *, n_layers: int = 2, n_heads: int = 4
) -> FollowedText:
    """Return a sentence that wanders from the middle to the second class."""
    tokens = ("[CLS]", *text.split())
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(n_layers, n_heads, len(tokens), len(tokens)))
    moments = []
    for frame in film.frames:
        share = frame.number / max(1, len(film.frames) - 1)
        laid = {layout.method: layout for layout in film.layouts if layout.frame == frame.number}
        moments.append(
            Moment(
                frame.number,
                _softmax(4 * share * logits),
                np.eye(len(film.labels))[1] * 0.9 * share + (1 - 0.9 * share) / len(film.labels),
                xy={method: tuple(layout.xy[film.points.labels == 1].mean(0)) for method, layout in laid.items()},
            )
        )
    return FollowedText(text, tokens, tokens, "self", tuple(moments))


def reversing(n_frames: int = 16, *, steps: int = 400, run: str = "reverse1", state: State = "finished") -> Film:
    """Return an encoder-decoder's run that has no points."""
    taken = np.arange(1, steps + 1)
    loss, rate = 0.02 + 2.4 * np.exp(-5 * taken / steps), np.full(steps, 1e-3)
    norm = 2 * np.exp(-taken / steps)
    frames = []
    for number in range(n_frames):
        share = number / max(1, n_frames - 1)
        measures = {"train_loss": 2.4 * np.exp(-5 * share), "held_out_loss": 2.5 * np.exp(-4.6 * share)}
        measures |= {"train_accuracy": share**2, "held_out_accuracy": 0.97 * share**2}
        frames.append(Frame(number, round(share * steps), 4 * share, 31 * share, measures))
    status, curves = Status(state, steps, steps, seconds=31.0), Curves(taken, loss, rate, norm, 31 * taken / steps)
    return Film(run, "reverse", "translation", (), status, curves, frames, steps_per_epoch=100, frames_planned=n_frames)


def followed_reversing(film: Film, text: str = "d a c b f e h g") -> FollowedText:
    """Return cross-attention that becomes the anti-diagonal, and samples that grow from noise to the answer."""
    letters = text.split()
    answer = letters[::-1]
    n = len(letters)
    target = np.eye(n)[::-1]
    rng = np.random.default_rng(5)
    moments = []
    for frame in film.frames:
        share = frame.number / max(1, len(film.frames) - 1)
        sharp = rng.normal(scale=0.4, size=(2, 4, n, n)) + 7 * share * target * np.linspace(0.1, 1, 8).reshape(
            2, 4, 1, 1
        )
        sample = [right if rng.random() < share else rng.choice(letters) for right in answer]
        moments.append(Moment(frame.number, _softmax(sharp), sample=" ".join(sample)))
    return FollowedText(text, tuple(answer), tuple(letters), "cross", tuple(moments), " ".join(answer))


def _softmax(logits: np.ndarray) -> np.ndarray:
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)


def unpack(payload: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the header and the arrays by panel id and as "explain.query" and so on; codes become values again."""
    (length,) = struct.unpack_from("<I", payload)
    header = json.loads(payload[4 : 4 + length].decode("utf-8"))
    start = -(-(4 + length) // ALIGNMENT) * ALIGNMENT

    def read(place: dict[str, Any]) -> np.ndarray:
        kind = np.dtype({"u1": np.uint8, "f4": "<f4"}[place["type"]])
        flat = np.frombuffer(payload, kind, int(np.prod(place["shape"])), start + place["at"])
        return flat.reshape(place["shape"])

    arrays = {}
    for panel in header["panels"]:
        values, scale = read(panel["values"]), panel["scale"]
        if values.dtype == np.uint8:
            decoded = scale["low"] + values / LEVELS * (scale["high"] - scale["low"])
            values = np.where(values == MASKED, np.nan, decoded)
        arrays[panel["id"]] = values
    for name, place in header.get("explain", {}).get("arrays", {}).items():
        arrays[f"explain.{name}"] = read(place)
    return header, arrays
