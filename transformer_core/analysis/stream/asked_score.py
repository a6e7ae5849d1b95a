"""Which score of a model is looked at, a word's or a class's or the difference of two, and the pass that made it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transformer_core.analysis.bert.masked_words import hidden_text, tensors
from transformer_core.analysis.outcome import one_text
from transformer_core.analysis.translation.greedy_steps import source_of
from transformer_core.bundle import Bundle
from transformer_core.config import require_index
from transformer_core.kept_passes import kept_pass
from transformer_core.probe import Edit, Probe, capture
from transformer_core.prompt import Prompt
from transformer_core.trace import Trace
from transformer_core.wiring import Wiring

MOST_KEPT = 64  # tokens of a text of which one pass records what every opening needs
INSIDE = (
    "weights",
    "value",
    "activation",
    "pre_activation",
    "gate",
    "up",
    "expert_weights",
    "shared_gate",
    "shared_output",
)
RUNNER_UP, ALONE = -1, -2
KINDS = ("gpt", "bert", "translation", "classifier")
TOP = 10


@dataclass(frozen=True, eq=False)
class Place:
    """Where a model is asked for something: what it reads, and which of its slots answers.

    Shapes:
        inputs: ids, (1, pos) each; of a translation the source's, and the target's up to the word before

    Args:
        options: of the model, such as segments.
        slot: of the scores that the pass returns.
        rows: positions of the stack whose stream the answer is read from, and the share of each.
        keys: the labels of what self-attention reads, and of what cross-attention reads.
    """

    bundle: Bundle
    inputs: tuple[Tensor, ...]
    options: Mapping[str, Any]
    slot: int
    rows: Mapping[int, float]
    keys: Mapping[str, tuple[str, ...]]

    @property
    def stack(self) -> str:
        """The stack whose stream is scored."""
        return "decoder" if self.bundle.kind == "translation" else self.bundle.reader.stack

    @property
    def cap(self) -> float | None:
        """Of the words' scores; None without one, as of classes."""
        return None if self.bundle.kind == "classifier" else self.bundle.config.logit_cap

    @property
    def wiring(self) -> Wiring:
        """Which recorded tensor flows into which part of that stack."""
        return Wiring(self.bundle.config, crossing=self.bundle.kind == "translation")

    def scores(self, output: Any) -> Tensor:
        """Return the scores of everything that could be answered there. # (batch, outcome)"""
        return self.bundle.reader.scores(output)[:, self.slot]

    def repeated(self, copies: int) -> tuple[tuple[Tensor, ...], dict[str, Any]]:
        """Return what the model takes, so many times over."""
        options = {name: of.expand(copies, -1) if isinstance(of, Tensor) else of for name, of in self.options.items()}
        return tuple(ids.expand(copies, -1) for ids in self.inputs), options


@dataclass(frozen=True, eq=False)
class Scored:
    """A pass: the scores at a place, (outcome,), and what was recorded."""

    scores: Tensor
    trace: Trace

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.scores.nbytes + self.trace.nbytes


@dataclass(frozen=True, eq=False)
class AskedScore:
    """The score of one answer, or how far it is above that of another.

    Args:
        signs: by the number of a class or a token, what its score is multiplied by: 1, and -1 for the second.
        likeliest: the numbers of the answers with the highest scores, the highest first.
        place, scored: where it is asked, and the pass.
    """

    place: Place
    scored: Scored
    signs: Mapping[int, float]
    likeliest: tuple[int, ...]

    def of(self, scores: Tensor) -> Tensor:
        """Return the score, or the difference, of each copy, before a cap: (batch, outcome) to (batch,)."""
        mine = scores[:, list(self.signs)].cpu().double()  # (batch, answer)
        if (cap := self.place.cap) is not None:  # score to cap * tanh(score / cap)
            mine = cap * torch.atanh((mine / cap).clamp(-1 + 1e-7, 1 - 1e-7))
        return mine @ torch.tensor(list(self.signs.values()), dtype=torch.float64)


def place_of(
    prompt: Prompt, place: int | None = None, hidden: tuple[int, ...] = (), target_ids: tuple[int, ...] = ()
) -> Place:
    """Return where a model is asked.

    Args:
        prompt: to a model that scores words or classes.
        place: of a GPT, how many tokens it has read, all of the text's own by default; of a BERT, which mask, by
            default the first; of a translation, which step, by default the last; of a class there is none.
        hidden: as of hidden_text, of a BERT.
        target_ids: of a translation, the start and what was written.

    Raises:
        ValueError: it is of another kind, or there is no such place.
    """
    bundle = prompt.bundle
    if bundle.kind not in KINDS:
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}; it must be one of {', '.join(KINDS)}")
    if bundle.kind == "translation":
        source = source_of(prompt, "translation")
        step = len(target_ids) - 1 if place is None else place
        require_index("place", step, len(target_ids))
        read = target_ids[: step + 1]
        target = torch.tensor([read], device=source.ids.device)
        keys = {"self_attention": bundle.of_target.labels_of(read), "cross_attention": source.encoding.labels}
        return Place(bundle, (source.ids, target), {}, step, {step: 1.0}, keys)
    if bundle.kind == "bert":
        read = hidden_text(prompt, hidden, place=place)
        if not read.places:
            raise ValueError("hidden=() hides nothing; the text must have a [MASK], or a place be hidden")
        ids, segments = tensors(bundle, [read.masked.ids], read.masked.segment_ids)
        slot = read.places[0] if place is None else place
        options = {} if segments is None else {"segment_ids": segments}
        return Place(bundle, (ids,), options, slot, {slot: 1.0}, {"self_attention": read.masked.labels})
    encoding = prompt.encoding
    keys, ids = {"self_attention": encoding.labels}, one_text(bundle, encoding)
    if bundle.kind == "classifier":
        return Place(bundle, (ids,), {}, 0, _pooled_rows(bundle, encoding.ids), keys)
    count = bundle.reader.required(encoding).slot + 1 if place is None else place
    if not 1 <= count <= len(encoding):
        raise ValueError(f"place={count} must be from 1 to {len(encoding)}")
    if bundle.reader.causal:  # what comes later changes nothing
        ids, keys = ids[:, :count], {"self_attention": encoding.labels[:count]}
    return Place(bundle, (ids,), {"scored": slice(count - 1, count)}, 0, {count - 1: 1.0}, keys)


def _pooled_rows(bundle: Bundle, ids: tuple[int, ...]) -> dict[int, float]:
    if bundle.config.pooling == "cls":
        return {0: 1.0}
    real = [place for place, id_ in enumerate(ids) if id_ != bundle.config.padding]
    return dict.fromkeys(real, 1 / max(1, len(real)))


def asked_score(place: Place, *, answer: int | None, against: int, opened: str = "") -> AskedScore:
    """Run the pass, and return the score that is asked for.

    Args:
        answer: a class or a token by its number; None for the likeliest.
        against: the one whose score is subtracted: a number, RUNNER_UP for the likeliest other one, ALONE for none.
        opened: a part whose inside is needed, as of score_sum.

    Raises:
        ValueError: there is no such class or token, or both are one.
    """
    scored = _scored(place, opened)
    scores = scored.scores
    likeliest = tuple(scores.topk(min(TOP, len(scores))).indices.tolist())
    answer = likeliest[0] if answer is None else answer
    require_index("answer", answer, len(scores))
    if against == RUNNER_UP:
        against = next((other for other in likeliest if other != answer), ALONE)
    if against == ALONE:
        return AskedScore(place, scored, {answer: 1.0}, likeliest)
    require_index("against", against, len(scores))
    if against == answer:
        raise ValueError(f"against={against} must be another one than answer={answer}")
    return AskedScore(place, scored, {answer: 1.0, against: -1.0}, likeliest)


@torch.inference_mode()
def _scored(place: Place, opened: str) -> Scored:
    stack, bundle = place.stack, place.bundle
    sites = [f"{stack}.embedding.*", f"{stack}.*.heads", f"{stack}.*.feed_forward.output", "*.inverse_*"]
    sites += [place.wiring.leaving(stack), "pooled"]
    short = max(ids.shape[1] for ids in place.inputs) <= MOST_KEPT
    every, one = range(bundle.config.n_layers), opened.partition(".")[0].removeprefix("layer")
    layers = every if short else [int(one)] if one else []
    for layer in layers:
        sites += [f"{stack}.layer{layer}.*.{leaf}" for leaf in INSIDE]
        sites += [place.wiring.into(f"{stack}.layer{layer}.feed_forward")] * bool(bundle.config.n_experts)

    def made() -> Scored:
        probe = Probe(tuple(sites))
        output = bundle.model(*place.inputs, probe=probe, **place.options)
        return Scored(place.scores(output)[0].cpu(), probe.trace)

    read = [ids[0].tolist() for ids in (*place.inputs, *place.options.values()) if isinstance(ids, Tensor)]
    return kept_pass(bundle.model, ("score_sum", repr(read), place.slot, repr(place.rows), tuple(sites)), made)


def scores_under(asked: AskedScore, edits: Mapping[str, Edit], copies: int) -> Tensor:
    """Return the score, or the difference, of copies of the text under edits, before a cap. # (copy,)"""
    inputs, options = asked.place.repeated(copies)
    output, _ = capture(asked.place.bundle.model, *inputs, sites=(), edits=edits, **options)
    return asked.of(asked.place.scores(output))
