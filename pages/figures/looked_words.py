"""A text as tokens, each tinted by the weight that one query gives it; the query is outlined."""

from collections.abc import Sequence
from html import escape

MOST_HUE = 80  # per cent of it in the background, at a weight of 1
FEWEST = 0.05  # from this weight on the number stands below the token

STYLE = """
.looked { font-size: 1.02rem; line-height: 1.3; padding: 2px 0; }
.looked > span { display: inline-block; text-align: center; vertical-align: top; margin: 0 2px 3px 0; max-width: 100%;
  overflow-wrap: anywhere; }
.looked bdi { border-radius: 5px; padding: 1px 4px; display: inline-block; max-width: 100%; }
.looked small { display: block; font-size: 0.72rem; line-height: 1; min-height: 1em; opacity: 0.85;
  font-variant-numeric: tabular-nums; }
.looked .asks bdi { outline: 2px solid currentColor; outline-offset: -1px; }
"""


def looked_words(
    keys: Sequence[str], weights: Sequence[float], hue: str, *, label: str, said: str, query: int | None = None
) -> str:
    """Return a text's tokens as HTML, every one escaped.

    Args:
        keys: labels of the tokens that are looked at; weights: one each, in [0, 1].
        hue: of the tint.
        label: names the text for screen readers.
        said: of one token, with {token}, {place} and {weight}.
        query: the place of the token that looks, where it is one of these.
    """
    spans = []
    for place, (token, weight) in enumerate(zip(keys, weights, strict=True)):
        about = escape(said.format(token=token, place=place, weight=f"{weight:.3f}"))
        tint = f"background:color-mix(in srgb, {hue} {MOST_HUE * weight:.1f}%, transparent)"
        number = f"{weight:.2f}" if weight >= FEWEST else ""
        asks = ' class="asks"' if place == query else ""
        shown = f'<bdi style="{tint}">{escape(token)}</bdi><small aria-hidden="true">{number}</small>'
        spans.append(f'<span{asks} role="listitem" title="{about}" aria-label="{about}">{shown}</span>')
    whole = "".join(spans)
    return (
        f'<style>{STYLE}</style><div class="looked" role="list" dir="auto" aria-label="{escape(label)}">{whole}</div>'
    )
