"""Cases: texts ready for a model, with what its reader asks of each, and how well it answers.

The answer to a case is worth its log probability: ln p of the class or the token, and of a target the sum over its
words.
"""

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from itertools import pairwise
from random import Random
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_core.analysis.encoder.two_sentences import aligned
from transformer_core.bundle import Answered, Bundle
from transformer_core.config import require_index
from transformer_core.generation.sampling import greedy
from transformer_core.generation.translate import translate
from transformer_core.probe import Edit, capture
from transformer_core.prompt import Prompt
from transformer_core.text import Encoding
from transformer_core.trace import Trace
from transformer_core.training.batching import padded
from transformer_core.training.corpora.reviews import passage, reviews
from transformer_core.untrusted.bundle_files import LANGUAGES

NONE = -100  # no answer is asked for here
MOST_TOKENS_AT_ONCE = 4_096
MOST_WORDS = 96
MOST_SET_TOKENS = 64  # of a text that a model is measured on
MOST_GIVEN_TOKENS = 128  # of a text that somebody gives for that
MOST_UNKNOWN = 0.3  # of the tokens of such texts
MOST_KEPT = 256  # findings of a model
OPINIONS = ("negative", "positive")  # of the built-in reviews, 0 and 1

Among = Literal["held_out", "built_in"] | tuple[Answered, ...] | None  # texts; None: held-out where there are any
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


def one_case(*, prompt: Prompt, answer: int | str | None = None) -> Cases:
    """Return one text with what is asked of it.

    Args:
        prompt: to a model that answers.
        answer: a class or the id of a token; of a translation the target; by default what the model itself finds
            likeliest, or translates greedily.

    Raises:
        ValueError: the model answers nothing, as a BERT without a [MASK]; there is no such class or token.
    """
    bundle, encoding = prompt.bundle, prompt.encoding
    bundle.must_ask()
    if bundle.reader.asks == "words":
        return _targets(bundle, [encoding], [answer if isinstance(answer, str) else None])
    if isinstance(answer, str):
        raise ValueError(f"answer={answer!r} must be a number: of a class, or of a token of the vocabulary")
    slot, outcomes = bundle.reader.required(encoding).slot, bundle.reader.n_outcomes
    cases = _texts(bundle, [encoding], [{slot: 0}])
    if answer is None:
        with torch.inference_mode():
            log_probs = cases.log_probs(bundle.model(*cases.inputs))
        answer = int(log_probs[0, slot].argmax())
    require_index("answer", answer, outcomes)
    return _texts(bundle, [encoding], [{slot: answer}])


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


def _own(encoding: Encoding) -> tuple[int, ...]:
    if not encoding.own:
        raise ValueError("text has no token of its own; it must have at least one")
    return encoding.own


def _texts(bundle: Bundle, encodings: Sequence[Encoding], asked: Sequence[Mapping[int, int]]) -> Cases:
    """Return texts with what is asked at each slot, by slot."""
    device = next(bundle.model.parameters()).device
    token_ids = padded([list(encoding.ids) for encoding in encodings], bundle.config.padding)  # (text, pos)
    slots = 1 if bundle.reader.asks == "class" else token_ids.shape[1]
    answers = torch.full((len(encodings), slots), NONE)
    for row, places in enumerate(asked):
        for slot, answer in places.items():
            answers[row, slot] = answer
    stack = bundle.reader.stack
    lengths = {stack: tuple(len(encoding) for encoding in encodings)}
    return Cases(bundle, (token_ids.to(device),), answers.to(device), {stack: encodings[0].labels}, lengths)


def _targets(bundle: Bundle, sources: Sequence[Encoding], targets: Sequence[str | None]) -> Cases:
    """Return sources with their targets, each by default what the model writes greedily."""
    tokenizer, device = bundle.of_target, next(bundle.model.parameters()).device
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


def language_read(bundle: Bundle) -> str:
    """Return the language of the built-in texts that suit a model."""
    return bundle.reads if bundle.reads in LANGUAGES else "en"


def class_texts(bundle: Bundle, label: int, count: int = 48, seed: int = 0) -> tuple[str, ...]:
    """Return held-out texts of one class: of the run that a classifier is of, else built-in reviews in the language
    that a model reads, 0 negative and 1 positive.

    Raises:
        ValueError: there is none.
    """
    if bundle.reader.asks == "class" and bundle.read_held_out is not None:
        found = tuple(text for text, answer in bundle.read_held_out() if answer == label)[:count]
        if not found:
            raise ValueError(f"the run that bundle={bundle.name!r} is of held out no text of class {label}")
        return found
    examples = reviews(language_read(bundle), train=0, held_out=2 * count, seed=seed)[1]  # type: ignore[arg-type]
    return tuple(example.text for example in examples if example.label == label)


def text_cases(bundle: Bundle, texts: Sequence[str]) -> Cases:
    """Return texts that are only read, with nothing asked; a translation's decoder is given the start alone."""
    encodings = bundle.tokenizer.encode_batch(list(texts), max_len=min(MOST_SET_TOKENS, bundle.config.max_len))
    if bundle.reader.asks == "words":
        return _targets(bundle, encodings, [""] * len(encodings))
    return _texts(bundle, encodings, [{} for _ in encodings])


@per_model
def answered_by(bundle: Bundle, rows: tuple[tuple[str, str], ...]) -> tuple[Answered, ...]:
    """Return a given set with its answers as a model has them: of a classifier the numbers of its classes.

    Args:
        rows: each text with its answer as it was written, "" where it has none: the name of a class, whatever its
            case, or its number from 0; or a target. What a model finds in the text itself needs none.

    Raises:
        ValueError: the model answers nothing, has no such class, or can read too few tokens of the texts.
    """
    bundle.must_ask()
    asks = bundle.reader.asks
    classes = {str(number): number for number in range(len(bundle.labels))}
    classes |= {label.strip().lower(): number for number, label in enumerate(bundle.labels)}
    found: list[Answered] = []
    for text, answer in rows:
        if asks == "class" and answer and answer.strip().lower() not in classes:
            raise ValueError(
                f"label={answer!r:.60} is no class of bundle={bundle.name!r}; it must be one of "
                f"{', '.join(bundle.labels)[:200]}, or its number from 0"
            )
        known = classes.get(answer.strip().lower()) if asks == "class" else (answer or None if asks == "words" else None)
        found.append((text, known))
    among = tuple(found)
    _require_known(bundle, _encoded(bundle, [text for text, _ in among], among), among)
    return among


def knows_answers(bundle: Bundle, among: Among = None) -> bool:
    """Return whether right answers to measured_cases are known, or only what the model itself finds.

    Args:
        among: as of measured_cases.
    """
    asks = bundle.reader.asks
    if asks in ("next", "masked"):
        return True
    if isinstance(among, tuple):
        return all(answer is not None for _, answer in among)
    if among != "built_in" and bundle.read_held_out is not None:
        return True
    return asks == "class" and [label.lower() for label in bundle.labels] == list(OPINIONS)


@per_model
def measured_cases(bundle: Bundle, count: int = 48, seed: int = 0, among: Among = None) -> Cases:
    """Return texts that the model never learned from, with their answers: those that its run held out, else built-in
    ones, which no shipped model has learned from; or those that somebody gives.

    A classifier is asked for the label that a text has, a translation for the target. Where nobody knows that, as of
    an opened model, it is asked for what it finds itself. A language model is asked for each next token, and a BERT for
    one hidden token a text.

    Args:
        count: how many at most; of more, so many are drawn.
        seed: of the draw.
        among: which texts: "held_out", "built_in", or a set as answered_by returns it; None for those that were held
            out, and built-in ones where there are none.

    Raises:
        ValueError: the model answers nothing, can read none of the texts, knows too few tokens of those that are not
            its run's own, or is no run's whose held-out texts could be read.
    """
    bundle.must_ask()
    asks = bundle.reader.asks
    texts = _texts_among(bundle, count, seed, among)
    fewest = 2 if asks == "next" else 1
    encodings = sorted((one for one in _encoded(bundle, list(texts), among) if len(one.own) >= fewest), key=len)
    _require_known(bundle, encodings, among)
    if asks == "words":
        if knows_answers(bundle, among):
            return _targets(bundle, encodings, [str(texts[one.text]) for one in encodings])
        return _targets(bundle, encodings, translate(bundle, [one.text for one in encodings], width=1, most=MOST_WORDS))
    if asks == "class":
        if knows_answers(bundle, among):
            return _texts(bundle, encodings, [{0: int(texts[one.text] or 0)} for one in encodings])
        cases = _texts(bundle, encodings, [{0: 0} for _ in encodings])
        with torch.inference_mode():
            found = [part.log_probs(bundle.model(*part.inputs))[:, 0].argmax(-1) for part in batches(cases)]
        return replace(cases, answers=torch.cat(found)[:, None])
    if asks == "masked":
        return _hidden(bundle, encodings, seed)
    return _texts(bundle, encodings, [_nexts(encoding) for encoding in encodings])


def _texts_among(bundle: Bundle, count: int, seed: int, among: Among) -> dict[str, str | int | None]:
    """Return so many texts with their answers."""
    if among == "held_out" and bundle.read_held_out is None:
        raise ValueError(f"among='held_out' needs the model of a run; bundle={bundle.name!r} has no held-out texts")
    if isinstance(among, tuple):
        there = dict(among)
    elif among != "built_in" and bundle.read_held_out is not None:
        there = dict(bundle.read_held_out())
    else:
        return _built_in_texts(bundle, count, seed)
    return dict(Random(seed).sample(list(there.items()), min(count, len(there))))


def _encoded(bundle: Bundle, texts: list[str], among: Among) -> Sequence[Encoding]:
    most = MOST_GIVEN_TOKENS if isinstance(among, tuple) else MOST_SET_TOKENS
    return bundle.tokenizer.encode_batch(texts, max_len=min(most, bundle.config.max_len))


def _built_in_texts(bundle: Bundle, count: int, seed: int) -> dict[str, str | int | None]:
    language = language_read(bundle)
    examples = reviews(language, train=0, held_out=count, seed=seed)[1]  # type: ignore[arg-type]
    texts: dict[str, str | int | None] = {example.text: example.label for example in examples}
    if bundle.reader.asks == "next":
        story = [line for line in passage(language).splitlines()[:8] if line.strip()]  # type: ignore[arg-type]
        return dict.fromkeys((*story, *texts)[:count])
    return texts


def _require_known(bundle: Bundle, encodings: Sequence[Encoding], among: Among) -> None:
    own = [one.unknown[place] for one in encodings for place in one.own]
    if not own:
        raise ValueError(f"bundle={bundle.name!r} can read none of the texts that it would be measured on")
    of_run = among in (None, "held_out") and bundle.read_held_out is not None
    if not of_run and sum(own) / len(own) > MOST_UNKNOWN:
        raise ValueError(
            f"{sum(own) / len(own):.0%} of the tokens of these texts are unknown to bundle={bundle.name!r}; "
            f"to be measured on them it must know {1 - MOST_UNKNOWN:.0%}"
        )


def _nexts(encoding: Encoding) -> dict[int, int]:
    return {place: encoding.ids[following] for place, following in pairwise(_own(encoding))}


def _hidden(bundle: Bundle, encodings: Sequence[Encoding], seed: int) -> Cases:
    mask_id = bundle.tokenizer.mask_id
    if mask_id is None:
        raise ValueError(f"bundle={bundle.name!r} has a vocabulary without [MASK]; it must have that token")
    random, hidden, asked = Random(seed), [], []
    for encoding in encodings:
        place = random.choice(_own(encoding))
        ids = list(encoding.ids)
        asked.append({place: ids[place]})
        ids[place] = mask_id
        hidden.append(replace(encoding, ids=tuple(ids)))
    return _texts(bundle, hidden, asked)
