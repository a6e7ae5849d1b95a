"""The architecture diagram on the page: every part that has a name opens its page."""

from pages.hall.scene import question_open
from pages.home.figures import Architecture, architecture_svg, pictures_of
from pages.kit.asking import ask
from pages.kit.component import registered
from pages.kit.experiment import figure
from pages.kit.header import View
from pages.kit.navigation import choice_of_part, open_page
from pages.kit.url import keep
from pages.language import strings, t
from transformer_core.analysis.part_tensors import part_tensors
from transformer_core.config import ModelConfig

READING = {
    "tokens": ("tokens", ""),
    "embedding": ("embeddings", ""),
    "positions": ("positions", ""),
    "attention": ("attention", ""),
    "feed_forward": ("feed_forward", ""),
    "norm": ("norm", ""),
    "stream": ("norm", "residual"),
}
PLACES = {  # for each kind of model: the page of each part of the diagram, and which part of that page
    "classifier": READING | {"pooled": ("encoder", "layers"), "classifier": ("encoder", "sum")},
    "bert": READING | {"word_scores": ("bert", "fill"), "pair": ("bert", "pair")},
    "gpt": READING | {"word_scores": ("gpt", "lens"), "next_token": ("gpt", "next")},
    "encoder": READING | {"pooled": ("embeddings", "sentence")},
    "tagger": READING | {"token_scores": ("bert", "names")},
    "answerer": READING | {"token_scores": ("bert", "answers")},
    "translation": READING
    | {
        "target": ("translation", "steps"),
        "memory": ("translation", "cross"),
        "cross": ("translation", "cross"),
        "word_scores": ("translation", "forced"),
    },
}


ALIKE = (
    *("vocab_size", "d_model", "n_heads", "d_ff", "n_layers", "n_classes", "n_segments", "positions", "norm_order"),
    *("pooling", "embedding_norm", "causal", "pair_head", "gated", "parallel", "n_experts", "n_active_experts"),
    *("d_embedding", "first_attention_norm"),
)


def architecture_of(config: ModelConfig, kind: str, n_tokens: int) -> Architecture:
    """Return the sizes of a config, and of a sentence of so many tokens."""
    return Architecture(
        kind=kind,
        n_tokens=n_tokens,
        d_head=config.d_head or config.d_model // config.n_heads,
        target_vocab_size=config.target_vocab_size or config.vocab_size,
        n_kv_heads=config.kv_heads,
        **{name: getattr(config, name) for name in ALIKE},
    )


def show_diagram(view: View) -> None:
    """Show the loaded model as a diagram, and open the page of the part that is chosen in it."""
    places = PLACES[view.bundle.kind]
    chosen = show_architecture(view, {part: t(f"nav.{page}") for part, (page, _) in places.items()})
    if chosen in places:
        page, part = places[chosen]
        if part:
            keep(choice_of_part(page), part, "")
        open_page(page)


def show_architecture(view: View, pages: dict[str, str]) -> str | None:
    """Draw the loaded model with the shapes of the typed sentence; return the part that was just chosen.

    Args:
        pages: title of the page that each part opens, by part.
    """
    model = architecture_of(view.bundle.config, view.bundle.kind, len(view.encoding))
    words = strings("diagram")
    tensors = dict(ask(part_tensors, prompt=view.prompt).value)
    if question_open():  # the last picture is what the model concludes
        tensors.pop("outcome", None)
    pictures = pictures_of(tensors, words["picture"])
    svg = architecture_svg(model, words, pages, pictures)
    with figure("architecture", "architecture"):
        return registered("architecture")(key="architecture", data={"svg": svg}, on_open_change=lambda: None).open
