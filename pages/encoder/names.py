"""Names on the encoder page: of depths, classes, measures and tokens, and the texts of its matrices."""

from pages.kit.header import View
from pages.kit.verdict import class_word
from pages.language import plain, strings, t
from transformer_core.analysis.encoder.measures import MEASURES


def depth_names(view: View, *, short: bool = False) -> list[str]:
    """Return the name of each depth: the embedding, then each layer."""
    layers = range(view.bundle.config.n_layers)
    after = [str(layer) if short else t("encoder.after", layer=layer) for layer in layers]
    return [t("encoder.depth_embedding"), *after]


def class_name(view: View, number: int) -> str:
    """Return the name of a class of the model in the chosen language."""
    return class_word(view.bundle.labels[number])


def measure_names(*, short: bool = False) -> list[str]:
    """Return the names of MEASURES in the chosen language; short ones fit slanted above a column."""
    return [t(f"encoder.short_{name}") if short else t(f"encoder.measure_{name}") for name in MEASURES]


def figure_words() -> dict[str, str]:
    """Return the texts of the figures, with those of a matrix that holds no attention weights."""
    return strings("encoder") | strings("encoder_board")


def token_name(view: View, position: int) -> str:
    """Return a token in Markdown, with its position."""
    return f"**{plain(view.encoding.labels[position])}** ({position})"
