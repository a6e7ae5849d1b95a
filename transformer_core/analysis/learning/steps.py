"""One step of learning on one text: the gradient of every weight, the optimizer's step, and the loss along it.

Steps are taken by copies; the model itself is never touched. The optimizers are those of training (Kingma and Ba 2015;
Loshchilov and Hutter 2019; Jordan et al. 2024). Departures from a run: dropout is off, the gradient is not clipped, and
the batch is one text.
"""

import math
import threading
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from cachetools import LRUCache
from torch import Tensor, nn

from transformer_core.analysis.lab.cases import NONE, Cases, answers_of, one_case, with_answers
from transformer_core.analysis.lab.weights import with_weights
from transformer_core.config import require_choice, require_range
from transformer_core.progress import counted
from transformer_core.prompt import Prompt
from transformer_core.training.config import Optimizer, TrainConfig
from transformer_core.training.optimizers import make_optimizer

Rule = Literal["adamw", "sgd", "momentum", "muon"]
RULES: tuple[Rule, ...] = get_args(Rule)
AS_TRAINED: dict[Rule, Optimizer] = {"adamw": "adamw", "sgd": "sgd", "momentum": "sgd", "muon": "muon"}
WEIGHT_DECAY = TrainConfig().weight_decay
MOST_STEPS, MOST_TARGET = 10, 8  # steps by hand; tokens after a text
MOST_PARAMETERS = 12_000_000  # a step holds a model six times
SLOWEST, FASTEST = -10, 2  # rates of 10^(e/2): from 1e-5 to 10
RATES = tuple(range(SLOWEST, FASTEST + 1))
TENFOLD = 2  # so much more is ten times the rate
MOST_KEPT = 256 << 20  # bytes


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
    """Return a model with these weights, each of which can have a gradient; the model itself keeps its own."""
    other = with_weights(model, weights)
    return other.requires_grad_(True)


@dataclass(frozen=True, eq=False)
class Walk:
    """Where some steps have led a copy of a model, and the next one at the rate 1.

    Every rule here moves each weight along a straight line as the rate grows: the step at r leads to before +
    r (after - before), and its moments are the same at every rate.

    Args:
        cases: the text and what is asked of it.
        before: weights by name; gradients: of the loss, by name.
        moments: the optimizer's state of each weight, before the step; empty before the first.
        after: weights by name, after the optimizer's step at the rate 1.
        moved: its state then.
        settings: of the optimizer's group that each weight is in.
        losses: at the start, and after each step taken.
    """

    cases: Cases
    before: dict[str, Tensor]
    gradients: dict[str, Tensor]
    moments: dict[str, dict[str, Tensor]]
    after: dict[str, Tensor]
    moved: dict[str, dict[str, Tensor]]
    settings: dict[str, dict[str, Any]]
    losses: tuple[float, ...]

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        states = [tensor for state in (*self.moments.values(), *self.moved.values()) for tensor in state.values()]
        return sum(t.nbytes for t in (*self.before.values(), *self.gradients.values(), *self.after.values(), *states))

    def at(self, rate: float) -> dict[str, Tensor]:
        """Return the weights after a step at a rate."""
        return {name: weight.lerp(self.after[name], rate) for name, weight in self.before.items()}


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
        cases, weights = earlier.cases, earlier.at(rate_of(taken[-1]))
        found = _from(cases, weights, earlier.moved, rule, earlier.losses)
    else:
        cases = lesson(prompt=prompt, answer=answer)
        weights = {name: weight.detach() for name, weight in prompt.bundle.model.named_parameters()}
        found = _from(cases, weights, {}, rule, ())
    with _lock:
        if found.nbytes <= MOST_KEPT:
            _kept[key] = found
    return found


def _from(
    cases: Cases,
    weights: dict[str, Tensor],
    moments: dict[str, dict[str, Tensor]],
    rule: Rule,
    losses: tuple[float, ...],
) -> Walk:
    """Return the walk that goes on with these weights and moments, after the losses so far."""
    with torch.inference_mode(False), torch.enable_grad():
        model = learner(cases.bundle.model, {name: weight.clone() for name, weight in weights.items()})
        named = dict(model.named_parameters())
        loss = loss_of(cases, model(*(ids.clone() for ids in cases.inputs)))
        slopes = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
        optimizer = _optimizer(model, rule)
        for (name, weight), slope in zip(named.items(), slopes, strict=True):
            weight.grad = torch.zeros_like(weight) if slope is None else slope
            if name in moments:
                optimizer.state[weight] = {part: tensor.clone() for part, tensor in moments[name].items()}
        gradients = {name: weight.grad for name, weight in named.items() if weight.grad is not None}
        optimizer.step()
    names = {id(weight): name for name, weight in named.items()}
    groups = {names[id(weight)]: group for group in optimizer.param_groups for weight in group["params"]}
    return Walk(
        cases=cases,
        before=weights,
        gradients=gradients,
        moments=moments,
        after={name: weight.detach() for name, weight in named.items()},
        moved={name: _state(optimizer, weight) for name, weight in named.items()},
        settings={name: {key: groups[name][key] for key in groups[name] if key != "params"} for name in named},
        losses=(*losses, float(loss.detach())),
    )


def _optimizer(model: nn.Module, rule: Rule) -> torch.optim.Optimizer:
    """Return training's own optimizer at the rate 1; plain SGD is its SGD without momentum."""
    config = TrainConfig(optimizer=AS_TRAINED[rule], learning_rate=1.0, weight_decay=WEIGHT_DECAY)
    optimizer = make_optimizer(model, config)
    if rule == "sgd":
        for group in optimizer.param_groups:
            group["momentum"] = 0.0
    return optimizer


def _state(optimizer: torch.optim.Optimizer, weight: Tensor) -> dict[str, Tensor]:
    return {part: value for part, value in optimizer.state.get(weight, {}).items() if isinstance(value, Tensor)}


def loss_at(found: Walk, rate: float, model: nn.Module | None = None) -> float:
    """Return the loss after a step at a rate, by running the changed copy; infinite or NaN where floats end.

    Args:
        model: of learner, which is written over; by default one is made.
    """
    with torch.no_grad():
        weights = found.at(rate)
        if model is None:
            model = with_weights(found.cases.bundle.model, weights)
        else:
            for name, weight in model.named_parameters():
                weight.copy_(weights[name])
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
    moved = [(found.after[name] - weight).norm() for name, weight in found.before.items()]
    norm = rate * float(torch.stack(moved).norm())
    return After(rate, found.losses[-1], loss_at(found, rate), norm)


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
    model = with_weights(prompt.bundle.model, {name: weight.clone() for name, weight in found.before.items()})
    exponents = np.arange(SLOWEST, FASTEST + TENFOLD + 1)
    rates = np.array([rate_of(exponent) for exponent in exponents.tolist()])
    losses = np.array([loss_at(found, rate, model) for rate in counted(rates.tolist())])
    return RateSweep(exponents, rates, losses, found.losses[-1])
