"""Names of the parts of a score's sum, of what is inside them, and of the words whose scores they are."""

import numpy as np

from pages.figures.token_strip import shortened
from pages.kit.header import View, shown_word
from pages.kit.verdict import class_word
from pages.language import t
from transformer_core.analysis.stream.opened_part import Opening
from transformer_core.analysis.stream.score_sum import ScoreSum


def kind_of(code: str) -> str:
    """Return which kind of part a code names: embedding, head, feed_forward or bias."""
    if "bias" in code:
        return "bias"
    if code.startswith("embedding"):
        return "embedding"
    return "head" if ".head" in code else "feed_forward"


def part_name(view: View, code: str) -> str:
    """Return what people call a part, or what is inside one."""
    first, _, rest = code.partition(".")
    if not first.startswith("layer"):
        return t(f"score.part_{first}_{rest}")
    layer, (sublayer, *inner) = first.removeprefix("layer"), rest.split(".")
    if not inner:
        return t("score.part_feed_forward", layer=layer)
    last = inner[-1]
    if last.endswith("bias"):
        return t(f"score.{last}", of=t(f"score.part_{sublayer}", layer=layer))
    if len(inner) == 1 and sublayer != "feed_forward":
        crossing = view.bundle.kind == "translation"
        which = "head" if not crossing else "self_head" if sublayer == "self_attention" else "cross_head"
        return t(f"score.part_{which}", layer=layer, head=last.removeprefix("head"))
    return t("score.inner_shared") if last == "shared" else numbered(last)


def numbered(last: str) -> str:
    """Return what people call an inner part such as ``neuron17``."""
    kind = last.rstrip("0123456789")
    return t(f"score.inner_{kind}", number=last.removeprefix(kind))


def inner_names(opening: Opening) -> list[str]:
    """Return what people call everything inside an opened part; a token by its label."""
    named = []
    for place, code in enumerate(opening.names):
        last = code.rpartition(".")[2]
        if last.endswith("bias"):
            named.append(t(f"score.inner_{last}"))
        elif last == "shared":
            named.append(t("score.inner_shared"))
        elif opening.kind == "head":
            named.append(f"{place} · {shortened(shown_word(opening.labels[place]))}")
        else:
            named.append(numbered(last))
    return named


def answer_name(view: View, label: str) -> str:
    """Return what people call a class or a token."""
    return class_word(label) if view.bundle.kind == "classifier" else f"“{shown_word(label)}”"


def asked_name(view: View, found: ScoreSum) -> str:
    """Return in words of which score a sum is, not for Markdown."""
    first, second = answer_name(view, found.label), answer_name(view, found.against_label)
    return t("score.of_one", first=first) if found.against is None else t("score.of_two", first=first, second=second)


def by_stage(view: View, found: ScoreSum) -> tuple[list[str], np.ndarray, list[str]]:
    """Return what each layer writes in all, between what the embedding brings and what the head adds.

    Shapes:
        second: (stage,)
    """
    layers = view.bundle.config.n_layers
    sums = np.zeros(layers + 2)
    for code, value in zip(found.names, found.values, strict=True):
        first = code.partition(".")[0]
        stage = int(first.removeprefix("layer")) + 1 if first.startswith("layer") else 0 if first == "embedding" else -1
        sums[stage] += value
    names = [
        t("score.stage_embedding"),
        *(t("axis.layer", number=layer) for layer in range(layers)),
        t("score.stage_end"),
    ]
    return names, sums, ["embedding", *["feed_forward"] * layers, "bias"]
