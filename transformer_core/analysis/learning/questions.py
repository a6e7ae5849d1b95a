"""Questions about one step of learning whose answers are measured: what a scene of a lecture asks of its screen."""

import math
import re
from collections.abc import Iterator

import torch
from torch import Tensor

from transformer_core.analysis.arithmetic import Pass, explain_gradient, read_through
from transformer_core.analysis.arithmetic.nudge import nudge
from transformer_core.analysis.finding import Finding, plain_word
from transformer_core.analysis.gradients.loss import takes_answer, text_loss
from transformer_core.analysis.lab.cases import batches, run
from transformer_core.analysis.lab.text_sets import measured_cases
from transformer_core.analysis.lab.weights import with_weights
from transformer_core.analysis.learning.dying import ORDERS, dying_gradients
from transformer_core.analysis.learning.gradients import learning_step
from transformer_core.analysis.learning.rules import RULES
from transformer_core.analysis.learning.steps import (
    MOST_STEPS,
    TENFOLD,
    after_step,
    learner,
    loss_of,
    rate_of,
    rate_sweep,
    walk,
    weights_of,
)
from transformer_core.config import require_choice
from transformer_core.prompt import Prompt

MOST_NATS = 3
ALIKE, FAR = 2.0, 10.0  # times as far
AGREES = 0.1  # a cosine, from here on
MATRICES = {
    "embedding": "embeddings",
    "query_proj": "queries",
    "key_proj": "queries",
    "value_proj": "values",
    "output_proj": "values",
    "feed_forward": "feed_forward",
}  # by a part of the name; all others: answers
STEP_OF_NUDGE = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3})?")
CELL = re.compile(r"([0-9]{1,6})\.([0-9]{1,6})")


def loss_of_a_text(*, prompt: Prompt) -> Finding:
    """Below how many whole nats the loss lies ("to1", "to2", "to3", "above"), where the second likeliest answer is
    right; the loss.

    Raises:
        ValueError: as lesson.
    """
    loss = walk(prompt, None, "adamw", ()).losses[0]
    up = max(1, math.ceil(loss))
    return Finding(f"to{up}" if up <= MOST_NATS else "above", loss)


def _backward(prompt: Prompt, answer: int) -> Pass:
    loss = text_loss(
        prompt.bundle, prompt.encoding, answer=answer if takes_answer(prompt.bundle.reader, prompt.encoding) else None
    )
    return read_through(prompt.bundle, prompt.encoding, loss=loss)


def _slopes(run: Pass, name: str) -> Tensor:
    """Return the gradient with respect to a recorded tensor of positions. # (pos, width)"""
    gradients = run.trace.gradients or {}
    if name not in gradients or gradients[name].dim() != 3:
        raise ValueError(f"glass={name!r:.80} must be a recorded tensor with a vector for each token")
    return gradients[name][0].double()


def _index(run: Pass, name: str, cell: str) -> tuple[int, int, int]:
    rows, cols = _slopes(run, name).shape
    found = CELL.fullmatch(cell)
    if found is None or not (int(found[1]) < rows and int(found[2]) < cols):
        raise ValueError(f"glass_cell={cell!r:.40} must be row and column, such as 2.7, of {rows} x {cols}")
    return 0, int(found[1]), int(found[2])


def steepest_token(*, prompt: Prompt, glass: str, glass_answer: int) -> Finding:
    """With respect to which token's vector the loss has the largest gradient, and its Euclidean norm.

    Args:
        glass: name of a recorded tensor with a vector for each token.
        glass_answer: what should have been said, a class or a token, where the text does not say it.

    Raises:
        ValueError: there is no such tensor, or as text_loss.
    """
    norms = _slopes(_backward(prompt, glass_answer), glass).norm(dim=1)
    place = int(norms.argmax())
    return Finding(plain_word(prompt.encoding.labels[place]), float(norms[place]))


def way_back(*, prompt: Prompt, glass: str, glass_answer: int, glass_cell: str) -> Finding:
    """Whether more of a cell's gradient comes from the sum that it is a term of ("sum"), or from the rest that is
    computed from it ("layer"); the larger one's share of both sizes.

    Args:
        glass: name of a residual stream; glass_cell: row and column in it; glass_answer: as of steepest_token.

    Raises:
        ValueError: there is no such cell, nothing is computed from it, or as text_loss.
    """
    run = _backward(prompt, glass_answer)
    parts = explain_gradient(run, glass, _index(run, glass, glass_cell)).parts
    straight = abs(sum(part.value for part in parts if part.name.endswith(".residual")))
    around = abs(sum(part.value for part in parts if not part.name.endswith(".residual")))
    if straight + around == 0:
        raise ValueError(f"glass_cell={glass_cell!r:.40} must be a cell with a gradient")
    return Finding("sum" if straight >= around else "layer", max(straight, around) / (straight + around))


def nudged(*, prompt: Prompt, glass: str, glass_answer: int, glass_cell: str, glass_step: str) -> Finding:
    """Whether the loss follows its gradient as a cell is moved ("straight", "curved", or "lost" in rounding), and
    by how many nats it changes.

    Args:
        glass_step: what is added; others as of way_back.

    Raises:
        ValueError: there is no such cell, the step is no number, or as text_loss.
    """
    if not STEP_OF_NUDGE.fullmatch(glass_step):
        raise ValueError(f"glass_step={glass_step!r:.20} must be a number from 0.001 to 999")
    index = _index(_backward(prompt, glass_answer), glass, glass_cell)
    answer = glass_answer if takes_answer(prompt.bundle.reader, prompt.encoding) else None
    found = nudge(prompt=prompt, name=glass, index=index, step=float(glass_step), answer=answer)
    return Finding("lost" if found.fit == "none" else found.fit, found.change)


def steepest_matrix(*, prompt: Prompt) -> Finding:
    """Which kind of matrix has the one with the largest gradient ("embeddings", "queries" or keys, "values" or heads'
    outputs, "feed_forward", "answers"), and its norm.

    Raises:
        ValueError: as learning_step.
    """
    found = max(
        learning_step(prompt=prompt, answer=None, rule="adamw", taken=()).matrices, key=lambda matrix: matrix.norm
    )
    kind = next((kind for part, kind in MATRICES.items() if part in found.name), "answers")
    return Finding(kind, found.norm)


def moves_farther(*, prompt: Prompt, rule: str) -> Finding:
    """How much farther the first step takes the weight of the largest gradient than the median one of its matrix:
    less than 2 times ("alike"), less than 10 ("farther"), or more ("far"); how many times.

    Args:
        rule: as of walk.

    Raises:
        ValueError: as learning_step.
    """
    require_choice("rule", rule, RULES)
    matrices = learning_step(prompt=prompt, answer=None, rule="adamw", taken=()).matrices
    steepest = max(matrices, key=lambda matrix: matrix.norm)
    found = walk(prompt, None, rule, ())  # type: ignore[arg-type]
    slopes = found.gradients[steepest.name].abs()
    steps = found.move(steepest.name).abs()
    moved = slopes > 0
    middle = (slopes[moved] - slopes[moved].median()).abs().argmin()
    times = float(steps[steepest.largest] / steps[moved][middle])
    return Finding("alike" if times < ALIKE else "farther" if times < FAR else "far", times)


def best_rule(*, prompt: Prompt, rate: int) -> Finding:
    """Which rule's first step at one rate leaves the smallest loss, and that loss.

    Args:
        rate: its exponent, as of rate_of.

    Raises:
        ValueError: as after_step.
    """
    losses = {rule: after_step(prompt=prompt, answer=None, rule=rule, taken=(), exponent=rate).after for rule in RULES}
    best = min(losses, key=lambda rule: losses[rule] if math.isfinite(losses[rule]) else math.inf)
    return Finding(best, losses[best])


def overshoots_from(*, prompt: Prompt, rule: str) -> Finding:
    """How many times the best rate of the first step is the first one beyond it that leaves a larger loss than before:
    at most 10 ("within10"), at most 100 ("within100"), more ("beyond"), or "nowhere" among those tried; that ratio, of
    "nowhere" the largest one's.

    Args:
        rule: as of walk.

    Raises:
        ValueError: as rate_sweep.
    """
    require_choice("rule", rule, RULES)
    found = rate_sweep(prompt=prompt, answer=None, rule=rule, taken=())  # type: ignore[arg-type]
    first = int(found.exponents[found.overshoots]) - int(found.exponents[found.best])  # in half powers of ten
    times = rate_of(first)
    if found.overshoots < 0:
        return Finding("nowhere", times)
    return Finding("within10" if first <= TENFOLD else "within100" if first <= 2 * TENFOLD else "beyond", times)


def where_scores_die(*, prompt: Prompt, layers: int, seed: int) -> Finding:
    """In which of four untrained models the scores of some layer get less than a thousandth of the gradient that those
    of another one get: in none ("none_dies"), those without residual connections ("alone"), those with the norm after
    the sublayer ("after"), all ("all_die"), or "others"; the smallest such share.

    Args:
        layers, seed: as of dying_gradients, whose cause is "orders".

    Raises:
        ValueError: as dying_gradients.
    """
    found = dying_gradients(prompt=prompt, answer=None, cause="orders", n_layers=layers, seed=seed)
    dead = {one.name for one in found.profiles if one.outcome("scores") == "dies"}
    named = {
        "none_dies": set(),
        "alone": {name for name in ORDERS if name.endswith("alone")},
        "after": {name for name in ORDERS if name.startswith("post")},
        "all_die": {*ORDERS},
    }
    option = next((option for option, names in named.items() if names == dead), "others")
    return Finding(option, min(one.smallest("scores")[1] for one in found.profiles))


def steps_to_say_it(*, prompt: Prompt, rule: str, rate: int) -> Finding:
    """After how many steps at one rate the model finds likeliest what it should have said: "in1", "in2to3",
    "in4to10", or "later"; the loss then.

    Args:
        rule: as of walk; rate: its exponent, as of rate_of.

    Raises:
        ValueError: as walk.
    """
    require_choice("rule", rule, RULES)
    loss = math.nan
    for count in range(MOST_STEPS):
        found = walk(prompt, None, rule, (rate,) * count)  # type: ignore[arg-type]
        after, _ = run(found.cases, model=with_weights(prompt.bundle.model, found.at(rate_of(rate))))
        loss = -float(after.log_prob.sum() / after.asked.sum())
        if bool((after.right == 1).all()):
            taken = count + 1
            return Finding("in1" if taken == 1 else "in2to3" if taken <= 3 else "in4to10", loss)
    return Finding("later", loss)


def agrees_with_many(*, prompt: Prompt) -> Finding:
    """Whether the gradient of one text points as the mean gradient of built-in texts does ("along"), against it
    ("against"), or neither ("across", a cosine between -0.1 and 0.1); the cosine over all weights.

    Raises:
        ValueError: as lesson and measured_cases.
    """
    own = walk(prompt, None, "adamw", ()).gradients
    cosine = torch.nn.functional.cosine_similarity(
        torch.cat([own[name].flatten() for name in own]),
        torch.cat([slope.flatten() for slope in _mean_gradient(prompt, tuple(own))]),
        dim=0,
    )
    value = float(cosine)
    return Finding("along" if value >= AGREES else "against" if value <= -AGREES else "across", value)


def _mean_gradient(prompt: Prompt, names: tuple[str, ...]) -> Iterator[Tensor]:
    """Yield the gradient of the mean loss of built-in texts with respect to each weight, 0 where there is none."""
    cases = measured_cases(prompt.bundle)
    total: dict[str, Tensor] = {}
    with torch.inference_mode(False), torch.enable_grad():
        own = weights_of(prompt.bundle.model)
        model = learner(prompt.bundle.model, own)
        weights = dict(model.named_parameters())
        for part in batches(cases):
            loss = loss_of(part, model(*(ids.clone() for ids in part.inputs))) * part.asked.sum()
            slopes = torch.autograd.grad(loss, [weights[name] for name in names], allow_unused=True)
            for name, slope in zip(names, slopes, strict=True):
                if slope is not None:
                    total[name] = total.get(name, torch.zeros_like(slope)) + slope
    for name in names:
        yield total.get(name, torch.zeros_like(own[name])) / cases.asked.sum()


def else_after_steps(*, prompt: Prompt, rule: str, taken: str) -> Finding:
    """Whether, after steps on one text, more of the built-in texts are answered rightly than before ("more_right"),
    fewer ("fewer_right") or "as_many"; the change of their share, in points.

    Args:
        rule: as of walk; taken: exponents of the steps' rates, as of rate_of, with points between them.

    Raises:
        ValueError: as walk and measured_cases.
    """
    require_choice("rule", rule, RULES)
    if not re.fullmatch(r"-?[0-9]{1,2}(\.-?[0-9]{1,2}){0,9}", taken):
        raise ValueError(f"taken={taken!r:.60} must be whole numbers with points between them")
    found = walk(prompt, None, rule, tuple(map(int, taken.split("."))))  # type: ignore[arg-type]
    cases = measured_cases(prompt.bundle)
    own, other = prompt.bundle.model, with_weights(prompt.bundle.model, found.before)
    before, after = (torch.cat([run(part, model=model)[0].right for part in batches(cases)]) for model in (own, other))
    change = 100 * float((after.double() - before.double()).mean())
    return Finding("fewer_right" if change < 0 else "more_right" if change > 0 else "as_many", change)


QUESTIONS_OF_A_STEP = (
    loss_of_a_text,
    steepest_token,
    way_back,
    nudged,
    steepest_matrix,
    moves_farther,
    best_rule,
    overshoots_from,
    where_scores_die,
    steps_to_say_it,
    agrees_with_many,
    else_after_steps,
)
