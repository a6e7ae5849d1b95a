"""Why this word: its score as a sum over the embedding, every head, every feed-forward layer and every bias.

Direct logit attribution (Elhage et al. 2021); what is held on the way stands in carried_back.py. The sum is exact for
this text, and does not say what the score would be without a part, which score_without.py measures.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from transformer_core.analysis.stream.asked_score import ALONE, RUNNER_UP, asked_score, place_of
from transformer_core.analysis.stream.carried_back import carried_back
from transformer_core.analysis.stream.opened_part import Opening, number_in, opening_of, pieces_of
from transformer_core.bundle import Bundle
from transformer_core.prompt import Prompt
from transformer_core.wiring import SUBLAYERS


@dataclass(frozen=True, eq=False)
class ScoreSum:
    """A score, or the difference of two, as a sum.

    Shapes:
        values: (part,)

    Args:
        answer, against: numbers of the classes or tokens; against is None where one score is looked at.
        label, against_label: their names.
        names: codes of the parts, such as ``embedding.token``, ``layer0.self_attention.head2``,
            ``layer0.feed_forward``, ``layer0.feed_forward.output_bias`` and ``output.bias``.
        total: the sum of values; score: the model's own number, before a cap; logit: after it, which is the same
            without one.
        norms: how many norms are held; gates: of how many coordinates a function's factor is held, 0 without one.
        cap: of the scores, None without one.
        openings: of the opened parts, the outermost first.
    """

    answer: int
    against: int | None
    label: str
    against_label: str
    names: tuple[str, ...]
    values: np.ndarray
    total: float
    score: float
    logit: float
    norms: int
    gates: int
    cap: float | None
    openings: tuple[Opening, ...]

    @property
    def difference(self) -> float:
        """total - score."""
        return self.total - self.score


@dataclass(frozen=True, eq=False)
class Likeliest:
    """The answers with the highest scores.

    Shapes:
        numbers: (answer,), of classes or tokens

    Args:
        labels: their names.
    """

    numbers: np.ndarray
    labels: tuple[str, ...]


def likeliest(
    *, prompt: Prompt, place: int | None = None, hidden: tuple[int, ...] = (), target_ids: tuple[int, ...] = ()
) -> Likeliest:
    """Return the answers with the highest scores; arguments as of score_sum, whose pass this is."""
    at = place_of(prompt, place, hidden, target_ids)
    found = asked_score(at, answer=None, against=ALONE).likeliest
    return Likeliest(np.array(found), tuple(map(_label_of(at.bundle), found)))


def _label_of(bundle: Bundle) -> Callable[[int], str]:
    return bundle.of_target.label_of if bundle.kind == "translation" else bundle.reader.label


def opened_by(code: str) -> tuple[str, ...]:
    """Return the codes of what is open where a part is: itself and what it lies in, the outermost first."""
    layer, sublayer, inner = pieces_of(code)
    first = 0 if sublayer == "feed_forward" else 1  # of attention, it is its heads that have a share
    if len(inner) < first:
        raise ValueError(f"opened={code!r:.80} must name a head of it, such as {code:.80}.head0")
    return tuple(".".join((layer, sublayer, *inner[:end])) for end in range(first, len(inner) + 1))


def score_sum(
    *,
    prompt: Prompt,
    answer: int | None = None,
    against: int = RUNNER_UP,
    place: int | None = None,
    hidden: tuple[int, ...] = (),
    target_ids: tuple[int, ...] = (),
    opened: str = "",
) -> ScoreSum:
    """Decompose the score of a word or a class, or how far it is above another's.

    score = sum over parts of w . J(part), where w is the row of the output matrix and J the maps above the part with
    the factors of norms, and of phi, held at what this pass computed.

    Args:
        prompt: to a GPT, a BERT, a translation or a classifier.
        answer, against: as of asked_score.
        place, hidden, target_ids: as of place_of.
        opened: the code of a head, a token of it (``layer0.self_attention.head2.token5``), a feed-forward layer, an
            expert (``layer0.feed_forward.expert1``) or a neuron (``layer0.feed_forward.neuron7``); "" for none.

    Raises:
        ValueError: as asked_score and place_of, or there is no such part.
    """
    at = place_of(prompt, place, hidden, target_ids)
    codes = opened_by(opened) if opened else ()
    layers = at.bundle.config.n_layers
    if codes:
        number_in(codes[0].split(".")[0], "layer", layers)
    asked = asked_score(at, answer=answer, against=against, opened=codes[0] if codes else "")
    walk = carried_back(asked)
    names = tuple(sorted(walk.shares, key=_in_order))
    values = np.array([walk.shares[name] for name in names])
    scores, (first, *others) = asked.scored.scores, asked.signs
    label = _label_of(at.bundle)
    return ScoreSum(
        answer=first,
        against=others[0] if others else None,
        label=label(first),
        against_label=label(others[0]) if others else "",
        names=names,
        values=values,
        total=float(values.sum()),
        score=float(asked.of(scores[None])[0]),
        logit=float(sum(sign * float(scores[one]) for one, sign in asked.signs.items())),
        norms=walk.norms,
        gates=walk.gates,
        cap=at.cap,
        openings=tuple(opening_of(walk, code) for code in codes),
    )


def _in_order(name: str) -> tuple[int, int, int, str]:
    """Return where a part stands: the embedding, then layer by layer, then the head."""
    first, *rest = name.split(".")
    if not first.startswith("layer"):
        which = ("token", "position", "segment").index(rest[0]) if "bias" not in name else 3
        return (-1 if first == "embedding" else 1 << 20, which, 0, name)
    inner = rest[1] if len(rest) > 1 else ""
    head = int(inner.removeprefix("head")) if inner.startswith("head") else 1 << 20 if inner else 0
    return int(first.removeprefix("layer")), SUBLAYERS.index(rest[0]), head, inner
