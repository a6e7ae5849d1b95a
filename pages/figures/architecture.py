"""The architecture as a diagram, drawn from the sizes of a model that is loaded and of the sentence it reads.

Vaswani et al. 2017, figure 1, laid along the residual stream. Read next: matrix.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pages.figures.architecture_drawing import BRANCH_Y, HEIGHT, STREAM_Y, Drawing

LAYERS_X = 376
BRANCH_WIDTHS = {2: (244, 98, 191), 3: (200, 88, 172)}  # of each branch, to its middle, to where it comes down
MEMORY_Y = 292


@dataclass(frozen=True)
class Architecture:
    """Sizes of a model, and of one sentence.

    Args:
        kind: "classifier", "bert", "gpt", "encoder" or "translation".
        n_tokens: positions of the sentence.
        vocab_size, target_vocab_size, d_model, n_heads, d_head, d_ff, n_layers, n_classes, n_segments: as in
            ModelConfig.
        positions: the position scheme; "rotary", "alibi" and "none" add no vector.
        norm_order: "pre" or "post".
        embedding_norm: whether the summed embeddings are normalised.
        causal: whether a decoder's position sees nothing that comes later.
        pooling: "cls" or "mean".
        pair_head: whether a BERT also tells if two sentences belong together.
    """

    n_tokens: int
    vocab_size: int
    d_model: int
    n_heads: int
    d_head: int
    d_ff: int
    n_layers: int
    n_classes: int
    positions: str
    norm_order: str
    pooling: str
    kind: str = "classifier"
    target_vocab_size: int = 0
    n_segments: int = 0
    embedding_norm: bool = False
    causal: bool = True
    pair_head: bool = True


@dataclass(frozen=True)
class _Branch:
    part: str
    title: str
    detail: str
    inside: str


def architecture_svg(model: Architecture, words: Mapping[str, str], pages: Mapping[str, str]) -> str:
    """Draw the diagram; a translation has its decoder below its encoder.

    Args:
        words: labels by name.
        pages: titles of the pages that exist, by part; only these parts can be clicked.

    Returns:
        An SVG element, every text in it escaped.
    """
    if model.kind == "translation":
        return _two_stacks(model, words, pages)
    draw = Drawing(words, pages)
    _beginning(draw, model, str(model.n_tokens), model.vocab_size, words["tokens"])
    masked = model.kind == "gpt" and model.causal
    _layers(draw, model, [_attention(model, words, masked=masked), _feed_forward(model, words, str(model.n_tokens))])
    draw.arrow(886, 1010, STREAM_Y, f"(1, {model.n_tokens}, {model.d_model})")
    if model.kind in ("bert", "gpt"):
        _word_scores(draw, model)
    else:
        _sentence(draw, model)
    return draw.svg(words["label"])


def _attention(model: Architecture, words: Mapping[str, str], *, masked: bool, queries: str = "") -> _Branch:
    size = queries or str(model.n_tokens)
    heads = words["heads"].format(count=model.n_heads, width=model.d_head)
    title = words["masked_attention" if masked else "attention"]
    return _Branch("attention", title, heads, f"(1, {model.n_heads}, {size}, {size})")


def _feed_forward(model: Architecture, words: Mapping[str, str], size: str) -> _Branch:
    widths = f"{model.d_model} → {model.d_ff:,} → {model.d_model}"
    return _Branch("feed_forward", words["feed_forward"], widths, f"(1, {size}, {model.d_ff})")


def _beginning(draw: Drawing, model: Architecture, size: str, vocab_size: int, title: str) -> None:
    words = draw.words
    draw.box("target" if draw.down else "tokens", 58, STREAM_Y, 104, title, f"(1, {size})")
    draw.arrow(110, 134, STREAM_Y, "")
    draw.box("embedding", 198, STREAM_Y, 128, words["embedding"], f"{vocab_size:,} × {model.d_model}")
    added = [words["segments"]] if model.n_segments and not draw.down else []
    if model.positions not in ("rotary", "alibi", "none"):
        added = [words["positions"], *added]
    if added:
        draw.box(
            "positions", 198, BRANCH_Y, 128 if len(added) == 1 else 170, " + ".join(added), f"({size}, {model.d_model})"
        )
        draw.line(198, BRANCH_Y + 30, 198, STREAM_Y - 30, "positions", arrow=True)
    draw.arrow(262, LAYERS_X, STREAM_Y, f"(1, {size}, {model.d_model})")
    if model.embedding_norm:
        draw.pill(316, STREAM_Y, words["norm"])


def _layers(draw: Drawing, model: Architecture, branches: list[_Branch]) -> None:
    words, pre = draw.words, model.norm_order == "pre"
    step, to_middle, to_down = BRANCH_WIDTHS[len(branches)]
    width = step * len(branches) + (22 if len(branches) == 2 else 34)
    end = LAYERS_X + width
    draw.frame(LAYERS_X, width, words["layers"].format(count=model.n_layers), start=len(branches) > 2)
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
        draw.plus(down, STREAM_Y)
        draw.pill(*((up, 156) if pre else (down + 32, STREAM_Y)), words["norm"])
    if pre:
        draw.pill(end + 56, STREAM_Y, words["final_norm"])


def _sentence(draw: Drawing, model: Architecture) -> None:
    """End in one vector a sentence, and in the classes where the model has them."""
    words = draw.words
    pooled = words["cls"] if model.pooling == "cls" else words["mean"]
    draw.box("pooled", 1066, STREAM_Y, 104, pooled, f"(1, {model.d_model})")
    if model.kind == "classifier":
        draw.line(1066, STREAM_Y - 30, 1066, BRANCH_Y + 30, "stream", arrow=True)
        draw.box("classifier", 1066, BRANCH_Y, 120, words["classifier"], f"(1, {model.n_classes})")


def _word_scores(draw: Drawing, model: Architecture) -> None:
    """End in a score for every word of the vocabulary at every position, and what is read off it."""
    words = draw.words
    draw.box("word_scores", 1088, STREAM_Y, 156, words["word_scores"], f"(1, {model.n_tokens}, {model.vocab_size:,})")
    if model.kind == "gpt":
        draw.line(1088, STREAM_Y - 30, 1088, BRANCH_Y + 30, "stream", arrow=True)
        draw.box("next_token", 1088, BRANCH_Y, 140, words["next_token"], f"(1, {model.vocab_size:,})")
    elif model.pair_head:
        draw.line(988, STREAM_Y, 988, BRANCH_Y, "branch")
        draw.line(988, BRANCH_Y, 1018, BRANCH_Y, "branch", arrow=True)
        draw.box("pair", 1092, BRANCH_Y, 148, words["pair"], f"{words['cls_short']} → (1, 2)")


def _two_stacks(model: Architecture, words: Mapping[str, str], pages: Mapping[str, str]) -> str:
    draw, size = Drawing(words, pages, 2 * HEIGHT), words["target_size"]
    _beginning(draw, model, str(model.n_tokens), model.vocab_size, words["source"])
    _layers(draw, model, [_attention(model, words, masked=False), _feed_forward(model, words, str(model.n_tokens))])
    draw.arrow(886, 1010, STREAM_Y, f"(1, {model.n_tokens}, {model.d_model})")
    draw.box("memory", 1066, STREAM_Y, 104, words["memory"], f"(1, {model.n_tokens}, {model.d_model})")
    step, to_middle, _ = BRANCH_WIDTHS[3]
    crossing = LAYERS_X + 40 + step + to_middle + 60
    draw.line(1066, STREAM_Y + 30, 1066, MEMORY_Y, "memory")
    draw.line(1066, MEMORY_Y, crossing, MEMORY_Y, "memory")
    draw.line(crossing, MEMORY_Y, crossing, HEIGHT + BRANCH_Y - 30, "memory", arrow=True)
    draw.down = float(HEIGHT)
    _beginning(draw, model, size, model.target_vocab_size or model.vocab_size, words["target"])
    heads = words["heads"].format(count=model.n_heads, width=model.d_head)
    cross = _Branch("cross", words["cross"], heads, f"(1, {model.n_heads}, {size}, {model.n_tokens})")
    own = _attention(model, words, masked=model.causal, queries=size)
    _layers(draw, model, [own, cross, _feed_forward(model, words, size)])
    vocabulary = model.target_vocab_size or model.vocab_size
    draw.line(LAYERS_X + 3 * step + 34, STREAM_Y, 1108, STREAM_Y, "stream")
    draw.line(1108, STREAM_Y, 1108, BRANCH_Y + 30, "stream", arrow=True)
    draw.box("word_scores", 1108, BRANCH_Y, 136, words["word_scores"], f"(1, {size}, {vocabulary:,})")
    return draw.svg(words["label"])
