"""What a figure is of, in words: the model, what it was asked besides, and the texts that it read."""

from collections.abc import Mapping
from typing import Any

from pages.figures.caption import one_line
from pages.ui.language import t
from pages.ui.models import called
from transformer_core.bundle import Bundle

TEXTS = ("text", "pair", "other", "texts", "target", "source", "pasted", "sentence")
NAMED = ("layer", "head", "token", "place", "step", "row", "seed", "temperature")
UNSAID = ("n_tokens", "top", "measurement")
MOST_TEXTS = 3
SHORT = 40


def caption_of(arguments: Mapping[str, Any], **shown: Any) -> tuple[str, ...]:
    """Return the lines that say what an answer is of.

    Args:
        arguments: that the answer was asked with.
        shown: what the picture shows of it besides, by the same names, such as layer and head.
    """
    facts, texts = [], []
    for name, value in {**arguments, **shown}.items():
        if isinstance(value, Bundle):
            facts.insert(0, t("caption.model", name=one_line(called(value.name), SHORT)))
        elif name in TEXTS and isinstance(value, str | tuple):
            texts += [value] if isinstance(value, str) else [part for part in value if isinstance(part, str)]
        elif value is not None and name not in UNSAID:
            said = value if isinstance(value, str) else repr(value)
            said = one_line(said, SHORT)
            facts.append(t(f"caption.{name}", value=said) if name in NAMED else f"{name}={said}")
    quoted = [t("caption.text", text=one_line(text)) for text in texts[:MOST_TEXTS] if text.strip()]
    return (*filter(None, [" · ".join(facts)]), *quoted)
