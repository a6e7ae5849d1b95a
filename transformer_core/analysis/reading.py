"""A model reads one text: the encoding in, what it concludes and the trace out.

Read next: attention/heads.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from transformer_core.analysis.outcome import one_text, outcome_of
from transformer_core.bundle import Bundle
from transformer_core.probe import DEFAULT_MAX_BYTES, Edit, Trace, capture
from transformer_core.text import Encoding

KINDS = ("classifier", "bert", "gpt", "encoder")


@dataclass(frozen=True)
class Reading:
    """What a model made of one text.

    Args:
        probabilities: of each possible outcome (see outcome.py), summing to 1: of the classes in the order of the
            bundle's labels, or of the ids of the vocabulary; empty where the model concludes nothing.
        trace: what the probe recorded.
    """

    probabilities: tuple[float, ...]
    trace: Trace


def scope_of(bundle: Bundle, rest: str) -> str:
    """Return the full name of a part of the stack that reads the text, such as ``encoder.layer0`` of ``layer0``."""
    return f"{'decoder' if bundle.kind == 'gpt' else 'encoder'}.{rest}"


def is_causal(bundle: Bundle) -> bool:
    """Tell whether a position of the stack that reads the text sees only itself and what came before."""
    return bundle.kind == "gpt" and bundle.config.causal


def read(
    bundle: Bundle,
    encoding: Encoding,
    *,
    sites: tuple[str, ...] = ("*",),
    edits: Mapping[str, Edit] | None = None,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> Reading:
    """Run a model that reads one text over one encoding.

    Raises:
        ValueError: the bundle is of a kind that does not read one text alone, or an error of capture.
    """
    if bundle.kind not in KINDS:
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}; it must be one of {', '.join(KINDS)}")
    output, trace = capture(bundle.model, one_text(bundle, encoding), sites=sites, edits=edits, max_bytes=max_bytes)
    outcome = outcome_of(bundle, encoding)
    probabilities = () if outcome is None else tuple(outcome.logits(output)[0].float().softmax(-1).tolist())
    return Reading(probabilities, trace)
