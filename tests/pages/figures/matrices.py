"""Small matrix figures with hostile labels, for the tests."""

import numpy as np

from pages.figures.matrix import Axis, Explain, MatrixFigure, Panel, Scale
from pages.ui.language import strings

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
