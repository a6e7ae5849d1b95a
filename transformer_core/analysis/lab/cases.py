"""Cases: texts ready for a model, with what its reader asks of each, and how well it answers.

The answer to a case is worth its log probability: ln p of the class or the token, and of a target the sum over its
words.
"""

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_core.analysis.encoder.two_sentences import aligned
from transformer_core.bundle import Bundle
from transformer_core.config import require_index, require_range
from transformer_core.generation.sampling import greedy
from transformer_core.probe import Edit, capture
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding
from transformer_core.trace import Trace
from transformer_core.training.batching import padded

NONE = -100  # no answer is asked for here
MOST_TOKENS_AT_ONCE = 4_096
MOST_WORDS = 96
MOST_SET_TOKENS = 64  # of a text that a model is measured on
MOST_KEPT = 256  # findings of a model
MOST_NAMED = 8  # tokens of an answer, for a message

P = ParamSpec("P")
T = TypeVar("T")


def per_model(
    function: Callable[Concatenate[Bundle, P], T],
) -> Callable[Concatenate[Bundle, P], T]:
    """Remember what a function finds for a bundle as long as its model is open; other arguments are hashable.

    The last MOST_KEPT are kept: texts and seeds come from visitors without end.
    """
    kept: weakref.WeakKeyDictionary[nn.Module, dict[Any, T]] = weakref.WeakKeyDictionary()

    @wraps(function)
    def remembered(bundle: Bundle, *args: P.args, **named: P.kwargs) -> T:
        found = kept.setdefault(bundle.model, {})
        key = (args, tuple(sorted(named.items())))
        if key in found:
            with suppress(KeyError):  # another thread may have made room meanwhile
                return found[key]
        value = found[key] = function(bundle, *args, **named)
        while len(found) > MOST_KEPT:
            with suppress(StopIteration, RuntimeError):
                found.pop(next(iter(found)), None)
        return value

    return remembered


@dataclass(frozen=True, eq=False)
class Cases:
    """Texts ready for a model, with what is asked of each.

    Shapes:
        inputs: what the model takes, each (text, pos), padded on the right: a text's ids; of a translation the
            source's, and the target's from its start to the word before the last
        answers: (text, slot), the class; or the token asked for after, or at, each position; NONE where none is

    Args:
        labels: the labels of the positions of each stack that reads them, by its name, of the first text.
        lengths: how many positions of each text are not padding, by stack.
    """

    bundle: Bundle
    inputs: tuple[Tensor, ...]
    answers: Tensor
    labels: Mapping[str, tuple[str, ...]]
    lengths: Mapping[str, tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def asked(self) -> Tensor:
        """How many answers each text is asked for. # (text,)"""
        return (self.answers != NONE).sum(-1)

    def repeated(self, copies: int) -> "Cases":
        """Return the one text so many times. # (copy, ...)"""
        return replace(
            self,
            inputs=tuple(ids.expand(copies, -1) for ids in self.inputs),
            answers=self.answers.expand(copies, -1),
            lengths={stack: found * copies for stack, found in self.lengths.items()},
        )

    def rows(self, start: int, end: int) -> "Cases":
        """Return some of the texts, cut to the longest of them."""
        if len(self) == 1:
            return self
        lengths = {stack: found[start:end] for stack, found in self.lengths.items()}
        longest = [max(found) for found in lengths.values()]
        inputs = tuple(ids[start:end, :most] for ids, most in zip(self.inputs, longest, strict=True))
        slots = min(self.answers.shape[1], longest[-1])  # one for a class
        return replace(self, inputs=inputs, answers=self.answers[start:end, :slots], lengths=lengths)

    def real(self, stack: str, width: int) -> Tensor:
        """Return which positions of a stack are not padding. # (text, width)"""
        lengths = torch.tensor(self.lengths[stack], device=self.answers.device)
        return torch.arange(width, device=self.answers.device) < lengths[:, None]

    def log_probs(self, output: Any) -> Tensor:
        """Return ln p of everything that could be answered. # (text, slot, outcome)"""
        return self.bundle.reader.scores(output).float().log_softmax(-1)


@dataclass(frozen=True, eq=False)
class Answers:
    """How well a model answers cases.

    Shapes:
        log_prob: (text,), ln p of the answer, in nats; over a target summed
        right: (text,), the share of its answers that are the likeliest of all
        asked: (text,), how many answers each is asked for
    """

    log_prob: Tensor
    right: Tensor
    asked: Tensor

    @property
    def mean(self) -> float:
        """Mean ln p of an answer, in nats."""
        return float(self.log_prob.cpu().double().sum() / self.asked.cpu().sum())

    @property
    def chance(self) -> float:
        """The probability of the first text's answer, of a target of all its words."""
        return float(self.log_prob[0].exp())

    @property
    def accuracy(self) -> float:
        """The share of all answers that are the likeliest."""
        return float((self.right * self.asked).cpu().double().sum() / self.asked.cpu().sum())


def answers_of(cases: Cases, output: Any) -> Answers:
    """Return how well an output answers its cases; gradients flow through log_prob."""
    return _answers(cases, cases.log_probs(output))


def _answers(cases: Cases, log_probs: Tensor) -> Answers:
    asked = cases.answers != NONE  # (text, slot)
    lost = F.nll_loss(log_probs.transpose(1, 2), cases.answers, ignore_index=NONE, reduction="none")
    right = ((log_probs.argmax(-1) == cases.answers) & asked).sum(-1) / asked.sum(-1).clamp(min=1)
    return Answers(-lost.sum(-1), right, asked.sum(-1))


def run(
    cases: Cases,
    *,
    model: nn.Module | None = None,
    sites: tuple[str, ...] = (),
    edits: Mapping[str, Edit] | None = None,
) -> tuple[Answers, Trace]:
    """Run a model over cases, all at once.

    Args:
        model: in place of the bundle's.
        sites, edits: as in capture.
    """
    output, trace = capture(model or cases.bundle.model, *cases.inputs, sites=sites, edits=edits)
    return answers_of(cases, output), trace


def at_once(cases: Cases) -> int:
    """Return how many such texts are read together, so that scores and positions fit in memory and stay quick."""
    positions = max(ids.shape[1] for ids in cases.inputs)
    return cases.bundle.reader.at_once(cases.inputs[-1].shape[1], MOST_TOKENS_AT_ONCE // positions)


def batches(cases: Cases) -> Iterator[Cases]:
    """Yield cases in parts that fit, in order."""
    step = at_once(cases)
    for start in range(0, len(cases), step):
        yield cases.rows(start, start + step)


def joined(parts: Sequence[Answers]) -> Answers:
    """Return the answers of several parts as one."""
    return Answers(
        torch.cat([part.log_prob for part in parts]),
        torch.cat([part.right for part in parts]),
        torch.cat([part.asked for part in parts]),
    )


def answer_id(cases: Cases) -> int:
    """Return the class or token that the first text is asked for, of a target its last word."""
    asked = cases.answers[0][cases.answers[0] != NONE]
    return int(asked[-1])


def answer_of(bundle: Bundle, said: str) -> int:
    """Return the number of a class that is named, in any case, or numbered; or of the one token of a text.

    Raises:
        ValueError: there is no such class; the text is no token, or several.
    """
    if bundle.reader.asks == "class":
        classes = {str(number): number for number in range(len(bundle.labels))}
        classes |= {label.strip().lower(): number for number, label in enumerate(bundle.labels)}
        if said.strip().lower() in classes:
            return classes[said.strip().lower()]
        raise ValueError(
            f"answer={said!r:.60} is no class of bundle={bundle.name!r}; it must be one of "
            f"{', '.join(bundle.labels)[:200]}, or its number from 0"
        )
    encoding = bundle.tokenizer.encode(said, max_len=MOST_NAMED, add_special=False)
    if len(encoding) != 1 or any(encoding.unknown):
        tokens = ", ".join(encoding.labels) or "no token"
        raise ValueError(
            f"answer={said!r:.60} is {tokens:.100}; it must be one token that bundle={bundle.name!r} knows"
        )
    return encoding.ids[0]


def logit_diff(bundle: Bundle, output: Any, one: int | str, other: int | str, *, position: int = -1) -> Tensor:
    """Return by how much a model scores one answer above another, before the softmax, in nats. # (text,)

    Args:
        output: of the bundle's model.
        one, other: classes or tokens, by number or as of answer_of.
        position: where the answer is read; a class has one place alone.

    Raises:
        ValueError: there is no such class or token, or no such position.
    """
    bundle.must_ask("class", "next", "masked")
    scores = bundle.reader.scores(output)  # (text, slot, outcome)
    require_range("position", position, -scores.shape[1], scores.shape[1] - 1)
    ids = [answer_of(bundle, said) if isinstance(said, str) else said for said in (one, other)]
    for said in ids:
        require_index("answer", said, scores.shape[-1])
    return scores[:, position, ids[0]] - scores[:, position, ids[1]]


def one_case(*, prompt: Prompt, answer: int | str | None = None) -> Cases:
    """Return one text with what is asked of it.

    Args:
        prompt: to a model that answers.
        answer: a class or a token, its number or, as of answer_of, its text; of a translation the target; by default
            what the model itself finds likeliest, or translates greedily.

    Raises:
        ValueError: the model answers nothing, as a BERT without a [MASK]; there is no such class or token.
    """
    bundle, encoding = prompt.bundle, prompt.encoding
    bundle.must_ask()
    if bundle.reader.asks == "words":
        return with_targets(bundle, [encoding], [answer if isinstance(answer, str) else None])
    if isinstance(answer, str):
        answer = answer_of(bundle, answer)
    slot, outcomes = bundle.reader.required(encoding).slot, bundle.reader.n_outcomes
    cases = with_answers(bundle, [encoding], [{slot: 0}])
    if answer is None:
        with torch.inference_mode():
            log_probs = cases.log_probs(bundle.model(*cases.inputs))
        answer = int(log_probs[0, slot].argmax())
    require_index("answer", answer, outcomes)
    return with_answers(bundle, [encoding], [{slot: answer}])


def donor_of(cases: Cases, other: Prompt) -> Cases:
    """Return the text that activations are taken from, with the first one's answer."""
    if other.bundle.reader.asks == "words":
        donor = one_case(prompt=other, answer="")
        return replace(
            donor,
            inputs=(donor.inputs[0], cases.inputs[1][:1]),
            answers=cases.answers[:1],
            labels=dict(donor.labels) | {"decoder": cases.labels["decoder"]},
            lengths=dict(donor.lengths) | {"decoder": cases.lengths["decoder"][:1]},
        )
    answer = int(cases.answers[0][cases.answers[0] >= 0][-1])
    return one_case(prompt=other, answer=answer)


def position_pairs(cases: Cases, donor: Cases, stack: str) -> list[tuple[int, int]]:
    """Return the aligned positions of this text and of the other one in a stack."""
    which = 1 if stack == "decoder" and len(cases.inputs) > 1 else 0
    mine, theirs = (tuple(one.inputs[which][0].tolist()) for one in (cases, donor))
    return aligned(mine, theirs)


def by_position(change: Callable[[Tensor, range], None]) -> Edit:
    """Return an edit of a tensor in place, for what is read at once and for what comes position after position.

    Args:
        change: is given (..., pos, width) and the numbers of its positions.
    """
    seen = 0

    def edit(tensor: Tensor) -> Tensor:
        nonlocal seen
        start, seen = seen, seen + tensor.shape[-2]
        change(tensor, range(start, seen))
        return tensor

    return edit


def own_places(encoding: Encoding) -> tuple[int, ...]:
    """Return the places of a text's own tokens.

    Raises:
        ValueError: it has none.
    """
    if not encoding.own:
        raise ValueError("text has no token of its own; it must have at least one")
    return encoding.own


def with_answers(bundle: Bundle, encodings: Sequence[Encoding], asked: Sequence[Mapping[int, int]]) -> Cases:
    """Return texts with what is asked at each slot, by slot."""
    device = bundle.device
    token_ids = padded([list(encoding.ids) for encoding in encodings], bundle.config.padding)  # (text, pos)
    slots = 1 if bundle.reader.asks == "class" else token_ids.shape[1]
    answers = torch.full((len(encodings), slots), NONE)
    for row, places in enumerate(asked):
        for slot, answer in places.items():
            answers[row, slot] = answer
    stack = bundle.reader.stack
    lengths = {stack: tuple(len(encoding) for encoding in encodings)}
    return Cases(bundle, (token_ids.to(device),), answers.to(device), {stack: encodings[0].labels}, lengths)


def with_targets(bundle: Bundle, sources: Sequence[Encoding], targets: Sequence[str | None]) -> Cases:
    """Return sources with their targets, each by default what the model writes greedily, "" for none.

    Raises:
        ValueError: the model has no token for the start or the end of a target.
    """
    tokenizer, device = bundle.of_target, bundle.device
    bos_id, eos_id = tokenizer.bos_id, tokenizer.eos_id
    if bos_id is None or eos_id is None:
        raise ValueError(f"bundle={bundle.name!r} must have a token for the start and one for the end of a target")
    written = []
    for source, target in zip(sources, targets, strict=True):
        if target == "":
            written.append([eos_id])
        elif target is None:
            ids = torch.tensor([source.ids], device=device)
            steps = greedy(bundle.model, ids, bos_id=bos_id, eos_id=eos_id, most=MOST_WORDS)  # type: ignore[arg-type]
            written.append([step.token_id for step in steps])
        else:
            encoding = tokenizer.encode(target, max_len=min(MOST_WORDS, bundle.config.max_len))
            own = [id_ for id_, special in zip(encoding.ids, encoding.special, strict=True) if not special]
            written.append([*own, eos_id])
    padding = bundle.config.padding
    source_ids = padded([list(source.ids) for source in sources], padding)  # (text, source_pos)
    given = padded([[bos_id, *words[:-1]] for words in written], padding)  # (text, target_pos)
    answers = padded(written, NONE)  # (text, target_pos)
    labels = {"encoder": sources[0].labels, "decoder": tokenizer.labels_of([bos_id, *written[0][:-1]])}
    lengths = {"encoder": tuple(map(len, sources)), "decoder": tuple(map(len, written))}
    return Cases(bundle, (source_ids.to(device), given.to(device)), answers.to(device), labels, lengths)


def text_cases(bundle: Bundle, texts: Sequence[str]) -> Cases:
    """Return texts that are only read, with nothing asked; a translation's decoder is given the start alone."""
    encodings = bundle.tokenizer.encode_batch(list(texts), max_len=min(MOST_SET_TOKENS, bundle.config.max_len))
    if bundle.reader.asks == "words":
        return with_targets(bundle, encodings, [""] * len(encodings))
    return with_answers(bundle, encodings, [{} for _ in encodings])
