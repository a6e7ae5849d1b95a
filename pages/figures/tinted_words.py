"""A sentence whose words are tinted by what hiding each takes from the verdict, with the one legend of these hues."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

FULL = 0.3  # a word worth this much probability, or more, has the full hue; the same wherever words are tinted
MOST_HUE = 66  # per cent of it in the background, so that text stays legible on it in light and dark
FEWEST_POINTS = 1  # from here on the number stands below its word

STYLE = """
.st-key-counter_examples { min-height: 16.5rem; }
.tinted { font-size: 1.3rem; line-height: 1.25; max-height: 7.1em; overflow-y: auto; padding: 2px 0;
  min-height: 2.2em; }
@media (min-width: 641px) { .tinted { min-height: 6.3em; } }  /* so that nothing below moves while a person types */
.tinted > span { display: inline-block; text-align: center; vertical-align: top; margin: 0 0 2px;
  max-width: 100%; overflow-wrap: anywhere; }
.tinted bdi { border-radius: 5px; padding: 1px 4px; display: inline-block; max-width: 100%; }
.tinted .unknown bdi { border-bottom: 2px dotted currentColor; }
.tinted small { display: block; font-size: 0.75rem; line-height: 1; min-height: 1em; opacity: 0.85;
  font-variant-numeric: tabular-nums; }
.tinted-legend { display: flex; flex-wrap: wrap; align-items: center; gap: 0 8px; font-size: 0.8rem; opacity: 0.9; }
.tinted-legend i { display: inline-block; width: 110px; height: 9px; border-radius: 5px; }
"""


@dataclass(frozen=True)
class Tinted:
    """A word as it is shown.

    Args:
        text: of the word; before: what stands between it and the word before.
        worth: the share of probability that hiding it takes away; None where it was not hidden.
        said: its number in words, for a pointer that rests on it and for screen readers.
        unknown: whether the model has no entry for it.
    """

    text: str
    before: str
    worth: float | None
    said: str
    unknown: bool = False


def tinted_words(shown: Sequence[Tinted], hues: tuple[str, str], words: Mapping[str, str]) -> str:
    """Return the sentence and its legend as HTML, every text in it escaped.

    Args:
        hues: of what pushes towards the verdict, and of what pushes against it.
        words: "label" names the sentence for screen readers, "towards" and "against" the ends of the legend, "unit"
            what is measured.
    """
    spans = "".join(_span(word, hues) for word in shown)
    towards, against = (f"color-mix(in srgb, {hue} {MOST_HUE}%, transparent)" for hue in hues)
    ends = f"{100 * FULL:.0f}"
    return (
        f"<style>{STYLE}</style>"
        f'<div class="tinted" role="list" dir="auto" tabindex="0" aria-label="{escape(words["label"])}">{spans}</div>'
        f'<div class="tinted-legend"><span>{escape(words["against"])} ≤ −{ends}</span>'
        f'<i aria-hidden="true" style="background:linear-gradient(90deg, {against}, transparent, {towards})"></i>'
        f"<span>≥ +{ends} {escape(words['towards'])}</span><span>· {escape(words['unit'])}</span></div>"
    )


def points(worth: float) -> str:
    """Return a share of probability in whole points with its sign, as it stands below a word."""
    return f"{100 * worth:+.0f}".replace("-", "−")


def _span(word: Tinted, hues: tuple[str, str]) -> str:
    worth = word.worth or 0.0
    share = MOST_HUE * min(1.0, abs(worth) / FULL)
    tint = f"background:color-mix(in srgb, {hues[0 if worth > 0 else 1]} {share:.1f}%, transparent)"
    number = points(worth) if round(100 * abs(worth)) >= FEWEST_POINTS else ""
    kind = ' class="unknown"' if word.unknown else ""
    said = escape(word.said)
    return (
        f"{escape(word.before)}"
        f'<span{kind} role="listitem" title="{said}" aria-label="{said}"><bdi style="{tint}">{escape(word.text)}</bdi>'
        f'<small aria-hidden="true">{number}</small></span>'
    )
