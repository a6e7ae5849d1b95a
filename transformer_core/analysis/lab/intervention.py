"""One intervention: changes to a model on one text, what they do to its answer, and what random ones of equal size do.

Every row of the Lab's log is one call of `intervene`, whatever was changed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import torch
from torch import Tensor, nn

from transformer_core.analysis.lab.cases import (
    MOST_WORDS,
    Answers,
    Cases,
    answer_id,
    at_once,
    batches,
    joined,
    one_case,
    run,
)
from transformer_core.analysis.lab.changes import (
    Change,
    Code,
    HeadOff,
    changes_of,
    edits_of,
    edits_of_each,
    model_with,
    random_like,
)
from transformer_core.analysis.lab.heads_off import drawn_texts
from transformer_core.analysis.lab.text_sets import Among, measured_cases
from transformer_core.analysis.lab.weights import WeightEdit
from transformer_core.analysis.outcome import read
from transformer_core.bundle import Bundle
from transformer_core.config import require_range
from transformer_core.generation.sampling import Written as WrittenToken
from transformer_core.generation.sampling import greedy, sample
from transformer_core.layers.cache import KeyValueCache
from transformer_core.models.translation import DecoderState
from transformer_core.probe import Edit, Probe
from transformer_core.progress import counted
from transformer_core.prompt import Prompt
from transformer_core.shares import Paired, paired, share_interval

MOST_CONTROLS = 32
MOST_CONTINUATIONS = 64
TOP = 6
SET_SIZES: dict[str | None, int] = {
    "class": 200,
    "masked": 200,
    "next": 48,
    "words": 48,
}  # texts; those of the last two have many answers


@dataclass(frozen=True, eq=False)
class Effect:
    """What changes do to the answer to one text.

    Shapes:
        controls: (control,), ln p of the answer under random changes of equal size
        outcomes: (outcome,), the ids of classes, or of the likeliest tokens before and after
        probabilities: (2, outcome), theirs before and after; of a translation both are (0,)
        words: (2, word), ln p of each word of a target before and after; (2, 1) where one answer is asked for

    Args:
        answer: the class or token asked for; of a target its last.
        labels: of a target's words; () where one answer is asked for.
        before, after: ln p of the answer, in nats.
        passes: texts that were read, for all this.
        flips: the likeliest answer is another one after.
    """

    answer: int
    labels: tuple[str, ...]
    before: float
    after: float
    controls: np.ndarray
    outcomes: np.ndarray
    probabilities: np.ndarray
    words: np.ndarray
    passes: int
    flips: bool


@dataclass(frozen=True, eq=False)
class SetEffect:
    """What changes do to the answers to a set of texts.

    Shapes:
        accuracy, mean: (2 + control,), of the model as it is, changed, and under random changes of equal size: the
            share of answers that are the likeliest, and the mean ln p of an answer in nats
        bounds: (2, 2), of the first two shares with 95 % confidence
        change: (text,), ln p of each text's answers after, minus before

    Args:
        difference: of the right answers before and after, text by text; loss: of the loss of an answer, in nats, which
            is minus its ln p.
    """

    accuracy: np.ndarray
    mean: np.ndarray
    bounds: np.ndarray
    change: np.ndarray
    difference: Paired
    loss: Paired


def intervene(
    *, prompt: Prompt, changes: tuple[Code, ...], answer: int | str | None = None, controls: int = 8, seed: int = 0
) -> Effect:
    """Measure what changes do to the answer to one text.

    Args:
        prompt: to a model that answers.
        changes: as changes.code_of writes them.
        answer: as of one_case.
        controls: how many random changes of equal size to compare with.
        seed: of those.

    Raises:
        ValueError: a change does not fit the model, controls is out of its range, or as one_case.
    """
    require_range("controls", controls, 0, MOST_CONTROLS)
    found = changes_of(changes)
    cases = one_case(prompt=prompt, answer=answer)
    before, after = (_log_probs(cases, these) for these in ((), found))  # (slot, outcome)
    answers = cases.answers[0].cpu()
    asked = torch.nonzero(answers >= 0)[:, 0]
    words = torch.stack([log_probs[asked, answers[asked]] for log_probs in (before, after)])  # (2, word)
    drawn = random_like(found, cases, controls, seed) if found else []
    random = _each(cases, drawn)
    reader = prompt.bundle.reader
    single = reader.asks != "words"
    top = _top(before[asked[-1]], after[asked[-1]], reader.asks == "class") if single else torch.zeros(0).long()
    probabilities = torch.stack([one[asked[-1], top] for one in (before, after)]).exp()
    return Effect(
        answer_id(cases),
        () if single else reader.tokenizer.labels_of(answers[asked].tolist()),
        float(words[0].sum()),
        float(words[1].sum()),
        np.array(random),
        top.numpy(),
        probabilities.numpy(),
        words.numpy(),
        2 + len(drawn),
        bool((before[asked].argmax(-1) != after[asked].argmax(-1)).any()),
    )


@dataclass(frozen=True, eq=False)
class Resampled:
    """What heads do to an answer where they write what they write for other texts, one text after the other.

    Shapes:
        change: (draw,), ln p of the answer minus that of the model as it is, in nats

    Args:
        texts: the other texts, as of heads_off.drawn_texts.
        moved: the mean of change with the bounds of 95 % of resampled draws.
    """

    change: np.ndarray
    texts: tuple[str, ...]
    moved: Paired


def resampled(*, prompt: Prompt, changes: tuple[Code, ...], answer: int | str | None = None) -> Resampled:
    """Measure heads that are off once for each other text that their mixtures can be taken from.

    Args:
        prompt, changes, answer: as of intervene; heads that are off take all their mixtures from the same text.

    Raises:
        ValueError: as intervene.
    """
    cases, texts = one_case(prompt=prompt, answer=answer), drawn_texts(prompt.bundle)
    found = changes_of(changes)
    drawn = [
        tuple(replace(one, how="resample", draw=draw) if isinstance(one, HeadOff) else one for one in found)
        for draw in range(len(texts))
    ]
    before, *after = _each(cases, [(), *drawn])
    change = np.array(after) - before
    return Resampled(change, texts, paired(np.zeros(len(texts)), change, np.ones(len(texts))))


def _each(cases: Cases, many: Sequence[Sequence[Change]]) -> list[float]:
    """Return ln p of one text's answer under each of several sets of changes; copies are read together where no weights
    differ.
    """
    if any(isinstance(change, WeightEdit) for changes in many for change in changes):
        return [float(changed_answers(cases, changes).log_prob[0]) for changes in many]
    found: list[float] = []
    for start in range(0, len(many), at_once(cases)):
        part = many[start : start + at_once(cases)]
        found += run(cases.repeated(len(part)), edits=edits_of_each(part, cases))[0].log_prob.tolist()
    return found


@torch.inference_mode()
def _log_probs(cases: Cases, changes: Sequence[Change]) -> Tensor:
    probe = Probe((), edits=edits_of(changes, cases))
    output = model_with(changes, cases.bundle)(*cases.inputs, probe=probe)
    return cases.log_probs(output)[0].cpu().double()


def _top(before: Tensor, after: Tensor, everything: bool) -> Tensor:
    if everything:
        return torch.arange(len(before))
    ids = [*before.topk(min(TOP, len(before))).indices.tolist(), *after.topk(min(TOP, len(after))).indices.tolist()]
    return torch.tensor(list(dict.fromkeys(ids)))


def changed_answers(cases: Cases, changes: Sequence[Change], *, model: nn.Module | None = None) -> Answers:
    """Return how well a changed model answers cases, part by part.

    Args:
        model: with the changes of weights made, where somebody has it.
    """
    model = model_with(changes, cases.bundle) if model is None else model
    return joined([run(part, model=model, edits=edits_of(changes, part))[0] for part in batches(cases)])


def intervene_on_set(
    *,
    bundle: Bundle,
    changes: tuple[Code, ...],
    among: Among = None,
    texts: int | None = None,
    controls: int = 4,
    seed: int = 0,
) -> SetEffect:
    """Measure what changes do to the answers to a set of texts; see text_sets.measured_cases.

    Args:
        changes: as changes.code_of writes them; no patches, since those belong to one text.
        among: which texts, as of measured_cases.
        texts: how many; by default as SET_SIZES says.
        controls: how many random changes of equal size to compare with.
        seed: of the texts and of those.

    Raises:
        ValueError: as intervene.
    """
    found = changes_of(changes)
    bundle.must_ask()
    cases = measured_cases(bundle, texts or SET_SIZES[bundle.reader.asks], seed, among)
    drawn = random_like(found, cases, controls, seed)
    answers = [changed_answers(cases, these) for these in counted([(), found, *drawn])]
    asked = answers[0].asked.cpu().double().numpy()  # (text,)
    before, after = (one.right.cpu().double().numpy() * asked for one in answers[:2])  # (text,)
    losses = [-one.log_prob.cpu().double().numpy() for one in answers[:2]]  # (text,), over its answers
    return SetEffect(
        np.array([one.accuracy for one in answers]),
        np.array([one.mean for one in answers]),
        np.array([share_interval(one, asked) for one in (before, after)]),
        (answers[1].log_prob - answers[0].log_prob).cpu().numpy(),
        paired(before, after, asked),
        paired(*losses, asked),
    )


class Edited:
    """A model that writes under changes: what generation.writer asks for, each call with the edits of its probe."""

    def __init__(self, model: nn.Module, edits: dict[str, Edit]) -> None:
        self._model, self._edits, self.config = model, edits, model.config

    def _probe(self, stack: str) -> Probe:
        edits = {site: edit for site, edit in self._edits.items() if not stack or site.startswith(f"{stack}.")}
        return Probe((), edits=edits)

    def start(self, source_ids: Tensor) -> object:
        """Read a source, or what comes before the first word."""
        model = self._model
        if hasattr(model, "encode"):
            memory, mask = model.encode(source_ids, probe=self._probe("encoder"))  # type: ignore[operator]
            return DecoderState(memory, mask, KeyValueCache(model.config.n_layers))  # type: ignore[union-attr]
        if hasattr(model, "decoder") and hasattr(model, "embedding"):
            return model.start(source_ids, probe=self._probe("encoder"))  # type: ignore[operator]
        return model.start(source_ids)  # type: ignore[operator]

    def advance(self, token_ids: Tensor, state: object) -> tuple[Tensor, object]:
        """Read the next words and score the one after them."""
        model = self._model
        if hasattr(model, "decoder") and hasattr(model, "embedding"):
            logits, state = model.read(token_ids, state, probe=self._probe("decoder"))  # type: ignore[operator]
            return logits[:, -1], state
        return model.advance(token_ids, state, probe=self._probe(""))  # type: ignore[operator]

    def has_room(self, state: object, count: int) -> bool:
        """Return whether max_len leaves room for so many more words."""
        return self._model.has_room(state, count)  # type: ignore[operator]


@dataclass(frozen=True)
class TwoTexts:
    """What a model writes as it is, under changes, and under a random change of equal size, if there is one."""

    before: str
    after: str
    random: str | None


def written_with(
    *, prompt: Prompt, changes: tuple[Code, ...], most: int = 40, temperature: float = 0.8, seed: int = 0
) -> TwoTexts:
    """Let a model write with and without changes, each time with the same random numbers.

    Args:
        prompt: to a gpt or a recurrent language model, which continues the text; or one that translates, greedily.
        most: tokens to write, of a continuation.
        temperature: of a continuation.
        seed: of its random numbers, and of the random change.

    Raises:
        ValueError: the model writes nothing, or as intervene.
    """
    prompt.bundle.must_ask("next", "words")
    found = changes_of(changes)
    cases = one_case(prompt=prompt)
    drawn = random_like(found, cases, 1, seed)
    before, after, *random = (
        _write(cases, these, model_with(these, prompt.bundle), most, temperature, seed) for these in ((), found, *drawn)
    )
    return TwoTexts(before, after, random[0] if drawn else None)


@dataclass(frozen=True, eq=False)
class JudgedTexts:
    """Continuations of a text as it is, under changes, and under a random change of equal size, judged by a classifier.

    Shapes:
        scores: (way, text), the judge's probability of the class asked for; two ways where there is no random change

    Args:
        texts: by way, what was judged: the text with its continuation.
        moved, random: the mean of the scores under changes, and under the random change, minus that of the model as it
            is, text by text, since one seed begins all ways; random is None where there is none.
    """

    scores: np.ndarray
    texts: tuple[tuple[str, ...], ...]
    moved: Paired
    random: Paired | None


def judged_continuations(
    *,
    prompt: Prompt,
    changes: tuple[Code, ...],
    judge: Bundle,
    label: int,
    count: int = 20,
    most: int = 24,
    temperature: float = 0.8,
    seed: int = 0,
) -> JudgedTexts:
    """Let a model write on many times with and without changes, and a classifier judge each text.

    Args:
        prompt: to a gpt or a recurrent language model.
        changes: as changes.code_of writes them.
        judge: a classifier; label: of its classes the one whose probability is the score.
        count: continuations a way, with seeds from `seed` on.
        most, temperature: as of written_with.

    Raises:
        ValueError: the judge is no classifier, a number is out of range, or as written_with.
    """
    prompt.bundle.must_ask("next")
    judge.must_ask("class")
    require_range("label", label, 0, len(judge.labels) - 1)
    require_range("count", count, 2, MOST_CONTINUATIONS)
    found = changes_of(changes)
    cases = one_case(prompt=prompt)
    ways = [(these, model_with(these, prompt.bundle)) for these in ((), found, *random_like(found, cases, 1, seed))]
    texts: list[list[str]] = [[] for _ in ways]
    for place in counted(range(count)):
        for way, (these, model) in zip(texts, ways, strict=True):
            way.append(prompt.encoding.text + _write(cases, these, model, most, temperature, seed + place))
    scores = np.array([[_score(judge, text, label) for text in way] for way in texts])
    moves = [paired(scores[0], one, np.ones(count)) for one in scores[1:]]
    return JudgedTexts(scores, tuple(map(tuple, texts)), moves[0], moves[1] if len(moves) > 1 else None)


def _score(judge: Bundle, text: str, label: int) -> float:
    return float(read(judge, judge.tokenizer.encode(text, max_len=judge.config.max_len), sites=()).probabilities[label])


def _write(cases: Cases, changes: Sequence[Change], model: nn.Module, most: int, temperature: float, seed: int) -> str:
    bundle, token_ids = cases.bundle, cases.inputs[0]
    edited = Edited(model, edits_of(changes, cases))
    steps: Iterator[WrittenToken]
    if bundle.reader.asks == "words":
        ends = {"bos_id": bundle.tokenizer.bos_id, "eos_id": bundle.tokenizer.eos_id}
        steps = greedy(edited, token_ids, most=MOST_WORDS, **ends)  # type: ignore[arg-type]
    else:
        own = int(torch.nonzero(cases.answers[0] >= 0)[-1]) + 1
        generator = torch.Generator(token_ids.device).manual_seed(seed)
        steps = sample(edited, token_ids[:, :own], most=most, temperature=temperature, generator=generator)  # type: ignore[arg-type]
    return bundle.tokenizer.decode([step.token_id for step in islice(steps, max(most, MOST_WORDS))])
