"""Mount the architecture diagram and hear which part was chosen."""

from pages.home.figures import Architecture, architecture_svg
from pages.ui.component import registered
from pages.ui.header import View
from pages.ui.language import strings


def show_architecture(view: View, pages: dict[str, str]) -> str | None:
    """Draw the loaded model with the shapes of the typed sentence; return the part that was just chosen.

    Args:
        pages: titles of the pages that exist, by part.
    """
    config = view.bundle.config
    model = Architecture(
        kind=view.bundle.kind,
        n_tokens=len(view.encoding),
        vocab_size=config.vocab_size,
        d_model=config.d_model,
        n_heads=config.n_heads,
        d_head=config.d_model // config.n_heads if config.d_head is None else config.d_head,
        d_ff=config.d_ff,
        n_layers=config.n_layers,
        n_classes=config.n_classes,
        positions=config.positions,
        norm_order=config.norm_order,
        pooling=config.pooling,
        target_vocab_size=config.target_vocab_size or config.vocab_size,
        n_segments=config.n_segments,
        embedding_norm=config.embedding_norm,
        causal=config.causal,
        pair_head=config.pair_head,
    )
    svg = architecture_svg(model, strings("diagram"), pages)
    return registered("architecture")(key="architecture", data={"svg": svg}, on_open_change=lambda: None).open
