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
    model = Architecture(view.bundle.config, view.bundle.kind, len(view.encoding))
    words = strings("diagram")
    tensors = dict(ask(part_tensors, prompt=view.prompt).value)
    if question_open():  # the last picture is what the model concludes
        tensors.pop("outcome", None)
    pictures = pictures_of(tensors, words["picture"])
    svg = architecture_svg(model, words, pages, pictures)
    with figure("architecture", "architecture"):
        return registered("architecture")(key="architecture", data={"svg": svg}, on_open_change=lambda: None).open
