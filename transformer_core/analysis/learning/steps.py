"""One step of learning on one text: the gradient of every weight, the optimizer's step, and the loss along it.

The model itself is never touched: what a step adds is computed beside it, by the rules of the optimizers of training
(Kingma and Ba 2015; Loshchilov and Hutter 2019; Jordan et al. 2024). Departures from a run: dropout is off, the
gradient is not clipped, and the batch is one text.
"""

import math
import threading
import weakref
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from cachetools import LRUCache
from torch import Tensor, nn

from transformer_core.analysis.lab.cases import NONE, Cases, answers_of, one_case, with_answers
from transformer_core.analysis.lab.weights import with_weights
from transformer_core.analysis.learning.rules import RULES, Rule, move_at_one, optimizer_of, state_then
from transformer_core.config import require_choice, require_range
from transformer_core.progress import counted
from transformer_core.prompt import Prompt

MOST_STEPS, MOST_TARGET = 10, 8  # steps by hand; tokens after a text
MOST_PARAMETERS = 12_000_000  # a step holds a model six times
SLOWEST, FASTEST = -10, 2  # rates of 10^(e/2): from 1e-5 to 10
RATES = tuple(range(SLOWEST, FASTEST + 1))
TENFOLD = 2  # so much more is ten times the rate
MOST_KEPT = 256 << 20  # bytes
MANY_ROWS = 1_000  # of a matrix of which a text may touch few


def rate_of(exponent: int) -> float:
    """Return 10^(exponent / 2)."""
    return 10.0 ** (exponent / 2)


def lesson(*, prompt: Prompt, answer: int | str | None = None) -> Cases:
    """Return a text with what the model should have said, whose mean -ln p, in nats, is the loss.

    Args:
        prompt: to a model that answers.
        answer: as of one_case; after a text, up to 8 tokens that follow it; by default the second likeliest class or
            token, and of a translation the model's own.

    Raises:
        ValueError: the model is too large to be copied, answers nothing, or cannot be asked for this.
    """
    bundle = prompt.bundle
    size = sum(parameter.numel() for parameter in bundle.model.parameters())
    if size > MOST_PARAMETERS:
        raise ValueError(
            f"bundle={bundle.name!r} has {size:,} parameters; a step holds a model six times, so at most "
            f"{MOST_PARAMETERS:,} are taken"
        )
    bundle.must_ask()
    if bundle.reader.asks == "next" and isinstance(answer, str):
        return _continued(prompt, answer)
    if answer is None and bundle.reader.asks != "words":
        answer = second_likeliest(prompt=prompt)
    return one_case(prompt=prompt, answer=answer)


def second_likeliest(*, prompt: Prompt) -> int:
    """Return the class or token that a model finds likeliest but one."""
    slot, cases = prompt.bundle.reader.required(prompt.encoding).slot, one_case(prompt=prompt, answer=0)
    with torch.inference_mode():
        return int(cases.log_probs(prompt.bundle.model(*cases.inputs))[0, slot].topk(2).indices[1])


def _continued(prompt: Prompt, target: str) -> Cases:
    """Return a text and the tokens after it, each of which is to be guessed."""
    bundle, encoding = prompt.bundle, prompt.encoding
    slot = bundle.reader.required(encoding).slot
    added = bundle.tokenizer.encode(target, max_len=MOST_TARGET + 1, add_special=False)
    if not 1 <= len(added) <= MOST_TARGET or any(added.unknown):
        tokens = ", ".join(added.labels) or "no token"
        raise ValueError(f"answer={target!r:.60} is {tokens:.100}; it must be 1 to {MOST_TARGET} tokens that are known")
    assert slot is not None
    read = (*encoding.ids[: slot + 1], *added.ids[:-1])
    if len(read) > bundle.config.max_len:
        raise ValueError(f"text and answer have {len(read)} tokens; at most {bundle.config.max_len} are read")
    cases = with_answers(bundle, [encoding], [{}])
    ids = torch.tensor([read], device=cases.answers.device)  # (1, pos)
    answers = torch.full_like(ids, NONE)
    answers[0, slot:] = torch.tensor(added.ids, device=ids.device)
    labels = {bundle.reader.stack: (*encoding.labels[: slot + 1], *added.labels[:-1])}
    return replace(cases, inputs=(ids,), answers=answers, labels=labels, lengths={bundle.reader.stack: (len(read),)})


def loss_of(cases: Cases, output: Any) -> Tensor:
    """Return the mean cross entropy of what a text is asked for, in nats an answer; a gradient flows through it."""
    return -answers_of(cases, output).log_prob.sum() / cases.asked.sum()


def learner(model: nn.Module, weights: dict[str, Tensor]) -> nn.Module:
    """Return a model that reads these very weights, each of which can have a gradient; the model itself stays."""
    other = with_weights(model, weights)
    return other.requires_grad_(True)


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Return a model's own weights by name, without their gradients."""
    return {
        name: weight.clone() if weight.is_inference() else weight.detach() for name, weight in model.named_parameters()
    }


@dataclass(frozen=True, eq=False)
class Walk:
    """Where some steps have led a copy of a model, and the next one at the rate 1.

    Every rule here moves each weight along a straight line as the rate grows: the step at r leads to before + r move,
    and its moments are the same at every rate.

    Args:
        cases: the text and what is asked of it.
        before: weights by name; gradients: of the loss, by name.
        moments: the optimizer's state of each weight, before the step; empty before the first.
        settings: of the optimizer's group that each weight is in.
        losses: at the start, and after each step taken.
    """

    cases: Cases
    before: dict[str, Tensor]
    gradients: dict[str, Tensor]
    moments: dict[str, dict[str, Tensor]]
    settings: dict[str, dict[str, Any]]
    losses: tuple[float, ...]

    @property
    def nbytes(self) -> int:
        """Size in bytes, but for the weights of the model itself, before the first step."""
        own = self.before.values() if len(self.losses) > 1 else ()
        states = [tensor for state in self.moments.values() for tensor in state.values()]
        return sum(tensor.nbytes for tensor in (*own, *self.gradients.values(), *states))

    def step_of(self, name: str, rows: slice = slice(None)) -> tuple[Tensor, dict[str, Tensor]]:
        """Return what the step at the rate 1 adds to these rows of a weight, and the optimizer's state of them then."""
        state = self.moments.get(name, {})
        part = rows if self._each_alone(name) else slice(None)
        kept = {key: value[part] if value.dim() else value for key, value in state.items()}
        about = self.before[name][part], self.gradients[name][part], kept, self.settings[name]
        move, then = move_at_one(*about), state_then(*about)
        return (move, then) if part == rows else (move[rows], {key: value[rows] for key, value in then.items()})

    def _each_alone(self, name: str) -> bool:
        """Tell whether each number of a weight is moved by its own gradient: by all rules but Muon's."""
        return not {"betas", "momentum"}.isdisjoint(self.settings[name])

    def move(self, name: str) -> Tensor:
        """Return what the step at the rate 1 adds to a weight."""
        with torch.inference_mode(False), torch.no_grad():
            return move_at_one(self.before[name], self.gradients[name], self.moments.get(name, {}), self.settings[name])

    def stepped(self, name: str, rate: float) -> tuple[Tensor, Tensor]:
        """Return a weight after a step at a rate, and the Euclidean norm of that step at the rate 1."""
        rows, weight = self.touched.get(name), self.before[name]
        with torch.inference_mode(False), torch.no_grad():
            if rows is None or self.moments or not self._each_alone(name):
                move = self.move(name)
                return weight.add(move, alpha=rate), move.norm()
            decay, mine = self.settings[name]["weight_decay"], weight[rows]
            move = move_at_one(mine, self.gradients[name][rows], {}, self.settings[name])
            after = weight * (1 - rate * decay)  # as the other rows' gradient is 0, they decay and nothing else
            after[rows] = mine.add(move, alpha=rate)
            others = (weight.norm().square() - mine.norm().square()).clamp(min=0)
            return after, (decay**2 * others + move.norm().square()).sqrt()

    @cached_property
    def touched(self) -> dict[str, Tensor]:
        """Of gradients with very many rows those that are not 0: of an embedding the text's own. # (row,)"""
        many = {name: slope for name, slope in self.gradients.items() if len(slope) >= MANY_ROWS and slope.dim() == 2}
        found = {name: ((one.amax(1) != 0) | (one.amin(1) != 0)).nonzero()[:, 0] for name, one in many.items()}
        return {name: rows for name, rows in found.items() if 0 < len(rows) < len(many[name]) // 2}

    @cached_property
    def norms(self) -> dict[str, float]:
        """Euclidean norm of each gradient."""
        own = {name: self.gradients[name][rows] for name, rows in self.touched.items()}
        found = torch.stack([slope.norm() for slope in (self.gradients | own).values()])
        return dict(zip(self.gradients, found.tolist(), strict=True))

    def at(self, rate: float) -> dict[str, Tensor]:
        """Return the weights after a step at a rate."""
        with torch.inference_mode(False), torch.no_grad():
            return {name: self.stepped(name, rate)[0] for name in self.before}


_kept: LRUCache[Any, Walk] = LRUCache(MOST_KEPT, getsizeof=lambda walk: walk.nbytes)
_lock = threading.Lock()


def walk(prompt: Prompt, answer: int | str | None, rule: Rule, taken: tuple[int, ...]) -> Walk:
    """Return where steps have led, from the very weights of the model; the last walks are kept.

    Args:
        answer: as of lesson.
        rule: "adamw", "sgd" (without momentum), "momentum" (SGD with 0.9), or "muon" (AdamW for all but the matrices of
            inner linear layers).
        taken: the rate of each step, as of rate_of; at most 10.

    Raises:
        ValueError: as lesson; a rate is not among RATES, or there are more steps.
    """
    require_choice("rule", rule, RULES)
    require_range("taken", len(taken), 0, MOST_STEPS)
    for exponent in taken:
        require_range("taken", exponent, SLOWEST, FASTEST)
    said = (prompt.text, prompt.n_tokens, prompt.pair, prompt.add_special)
    key = (id(prompt.bundle.model), said, answer, rule, taken)
    with _lock:
        found = _kept.get(key)
    if found is not None:
        return found
    if taken:
        earlier = walk(prompt, answer, rule, taken[:-1])
        moments = {name: earlier.step_of(name)[1] for name in earlier.before}
        with torch.inference_mode(False):
            learning = _Learning.of(prompt.bundle.model, earlier.at(rate_of(taken[-1])))
        found = _from(earlier.cases, learning, moments, rule, earlier.losses)
    else:
        cases = lesson(prompt=prompt, answer=answer)
        found = _from(cases, _with_own(prompt.bundle.model), {}, rule, ())
    with _lock:
        if found.nbytes <= MOST_KEPT:
            _kept[key] = found
    return found


@dataclass(frozen=True, eq=False)
class _Learning:
    """A model that reads some weights, its parameters by name, and the optimizer's settings of each, by rule."""

    model: nn.Module
    named: dict[str, Tensor]
    settings: dict[Rule, dict[str, dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    def of(cls, model: nn.Module, weights: dict[str, Tensor]) -> "_Learning":
        other = learner(model, weights)
        return cls(other, dict(other.named_parameters()))

    def settings_of(self, rule: Rule) -> dict[str, dict[str, Any]]:
        if rule not in self.settings:
            names = {id(weight): name for name, weight in self.named.items()}
            groups = optimizer_of(self.model, rule).param_groups
            kept = [({key: group[key] for key in group if key != "params"}, group["params"]) for group in groups]
            self.settings[rule] = {names[id(weight)]: group for group, weights in kept for weight in weights}
        return self.settings[rule]


_learning: weakref.WeakKeyDictionary[nn.Module, _Learning] = weakref.WeakKeyDictionary()  # with the model's own weights


def _with_own(model: nn.Module) -> _Learning:
    with torch.inference_mode(False):
        return _learning.get(model) or _learning.setdefault(model, _Learning.of(model, weights_of(model)))


def _from(
    cases: Cases, learning: _Learning, moments: dict[str, dict[str, Tensor]], rule: Rule, losses: tuple[float, ...]
) -> Walk:
    """Return the walk that goes on with these weights and moments, after the losses so far."""
    with torch.inference_mode(False), torch.enable_grad():
        loss = loss_of(cases, learning.model(*(ids.clone() for ids in cases.inputs)))
        slopes = torch.autograd.grad(loss, list(learning.named.values()), allow_unused=True, materialize_grads=True)
    return Walk(
        cases=cases,
        before={name: weight.detach() for name, weight in learning.named.items()},
        gradients=dict(zip(learning.named, slopes, strict=True)),
        moments=moments,
        settings=learning.settings_of(rule),
        losses=(*losses, float(loss.detach())),
    )


def _loss_with(found: Walk, model: nn.Module) -> float:
    """Return the loss of a changed copy; infinite or NaN where floats end."""
    with torch.no_grad():
        return float(loss_of(found.cases, model(*found.cases.inputs))) + 0.0  # not -0


@dataclass(frozen=True)
class After:
    """What a step at one rate did.

    Args:
        rate: learning rate; before, after: loss, in nats; norm: of the whole step.
    """

    rate: float
    before: float
    after: float
    norm: float

    @property
    def chance_before(self) -> float:
        """The probability of what should have been said, a geometric mean over its tokens."""
        return math.exp(-self.before)

    @property
    def chance_after(self) -> float:
        """The same after the step; 0 where the loss is not finite."""
        return math.exp(-self.after) if math.isfinite(self.after) else 0.0

    @property
    def outcome(self) -> str:
        """Whether the loss "falls", rises ("overshoots"), hardly moves ("stays": by less than 1 %), or "overflows"."""
        if not math.isfinite(self.after):
            return "overflows"
        if not abs(self.after - self.before) >= 0.01 * self.before:
            return "stays"
        return "falls" if self.after < self.before else "overshoots"


def after_step(*, prompt: Prompt, answer: int | str | None, rule: Rule, taken: tuple[int, ...], exponent: int) -> After:
    """Take one more step with a copy, and run it again; the rate is rate_of(exponent), others as of walk."""
    require_range("exponent", exponent, SLOWEST, FASTEST)
    found, rate = walk(prompt, answer, rule, taken), rate_of(exponent)
    after = {name: found.stepped(name, rate) for name in found.before}
    norm = rate * float(torch.stack([norm for _, norm in after.values()]).norm())
    model = with_weights(found.cases.bundle.model, {name: weight for name, (weight, _) in after.items()})
    return After(rate, found.losses[-1], _loss_with(found, model), norm)


@dataclass(frozen=True, eq=False)
class RateSweep:
    """The loss along one step, at every rate.

    Shapes:
        exponents, rates, losses: (rate)

    Args:
        start: the loss before the step, in nats.
    """

    exponents: np.ndarray
    rates: np.ndarray
    losses: np.ndarray
    start: float

    @property
    def best(self) -> int:
        """Which rate leaves the smallest loss."""
        return int(np.nanargmin(np.where(np.isfinite(self.losses), self.losses, np.inf)))

    @property
    def overshoots(self) -> int:
        """The first rate beyond the best that leaves a loss above the start; -1 where none does."""
        beyond = np.flatnonzero(~(self.losses <= self.start))
        return next((int(place) for place in beyond if place > self.best), -1)

    def place(self, exponent: int) -> int:
        """Return the place of a rate among all; ValueError where it is none of them."""
        return self.exponents.tolist().index(exponent)

    def side(self, exponent: int) -> str:
        """Tell whether a rate is "below" the best one, "above" it, or the best ("at")."""
        place = self.place(exponent)
        return "below" if place < self.best else "above" if place > self.best else "at"

    def tenfold(self, exponent: int) -> str:
        """Tell what ten times a rate does to the loss: "lower", "higher" (not above the start) or "above" the start."""
        place = self.place(exponent)
        first, more = self.losses[place], self.losses[place + TENFOLD]
        return "lower" if more < first else "above" if not more <= self.start else "higher"


def rate_sweep(*, prompt: Prompt, answer: int | str | None, rule: Rule, taken: tuple[int, ...]) -> RateSweep:
    """Run the copy after a step at each of RATES and at the ten times larger ones; arguments as of walk."""
    found = walk(prompt, answer, rule, taken)
    moves = {name: found.move(name) for name in found.before}
    model = with_weights(prompt.bundle.model, {name: weight.clone() for name, weight in found.before.items()})
    exponents = np.arange(SLOWEST, FASTEST + TENFOLD + 1)
    rates = np.array([rate_of(exponent) for exponent in exponents.tolist()])
    losses = np.empty(len(rates))
    for place, rate in enumerate(counted(rates.tolist())):
        for name, weight in model.named_parameters():
            torch.add(found.before[name], moves[name], alpha=rate, out=weight)
        losses[place] = _loss_with(found, model)
    return RateSweep(exponents, rates, losses, found.losses[-1])
