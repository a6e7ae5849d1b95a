"""One step of learning by hand: gradients are autograd's, steps torch.optim's, and the model itself stays as it is."""

import copy

import numpy as np
import pytest
import torch

from transformer_core.analysis.lab.cases import NONE
from transformer_core.analysis.learning.dying import ORDERS, dying_gradients
from transformer_core.analysis.learning.followed import followed_weight
from transformer_core.analysis.learning.gradients import learning_step, matrix_gradient
from transformer_core.analysis.learning.handed import beginning_of, spec_of
from transformer_core.analysis.learning.rules import AS_TRAINED, RULES, WEIGHT_DECAY
from transformer_core.analysis.learning.steps import (
    MOST_STEPS,
    After,
    RateSweep,
    after_step,
    learner,
    lesson,
    rate_of,
    rate_sweep,
    second_likeliest,
    walk,
)
from transformer_core.checkpoints import load
from transformer_core.prompt import Prompt
from transformer_core.training.config import TrainConfig
from transformer_core.training.optimizers import ADAM_BETAS, make_optimizer

TAKEN, NEXT = (-6, -5), -6


def of(name: str, text: str) -> Prompt:
    return Prompt(load(name), text, 64)


SENTIMENT = ("sentiment", "The film was not good, but I loved the ending.", 0)
ASKED = (
    SENTIMENT,
    ("gpt", "Once upon a time there was a little", " girl named"),
    ("bert", "Paris is the [MASK] of France.", None),
    ("translation-en-fr", "I like tea.", "J'aime le thé."),
    ("lm-gru", "To be, or ", "not"),
)


def torch_optimizer(rule: str, model: torch.nn.Module) -> list[torch.optim.Optimizer]:
    """Return what torch itself has for a rule; matrices alone decay."""
    parameters = list(model.parameters())
    groups = [
        {"params": [one for one in parameters if one.dim() > 1], "weight_decay": WEIGHT_DECAY},
        {"params": [one for one in parameters if one.dim() <= 1], "weight_decay": 0.0},
    ]
    if rule == "adamw":
        return [torch.optim.AdamW(groups, lr=1.0, betas=ADAM_BETAS)]
    return [torch.optim.SGD(groups, lr=1.0, momentum=0.9 if rule == "momentum" else 0.0)]


@pytest.mark.parametrize("rule", ["adamw", "sgd", "momentum"])
def test_steps_by_hand_are_those_of_torch_at_their_own_rates(rule) -> None:
    name, text, answer = SENTIMENT
    prompt = of(name, text)
    model = copy.deepcopy(prompt.bundle.model).requires_grad_(True)
    (optimizer,) = torch_optimizer(rule, model)
    ids, losses = torch.tensor([prompt.encoding.ids]), []
    for exponent in (*TAKEN, NEXT):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(ids), torch.tensor([answer]))
        loss.backward()
        losses.append(float(loss.detach()))
        optimizer.param_groups[0]["lr"] = optimizer.param_groups[1]["lr"] = rate_of(exponent)
        optimizer.step()
    found = walk(prompt, answer, rule, TAKEN)
    np.testing.assert_allclose(found.losses, losses, rtol=1e-3, atol=1e-5)
    reached = found.at(rate_of(NEXT))
    for key, weight in model.named_parameters():
        if not key.endswith("key_proj.bias"):  # a softmax cancels it: its gradient is rounding, which AdamW enlarges
            torch.testing.assert_close(reached[key], weight.detach(), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("rule", RULES)
def test_a_step_is_that_of_the_optimizer_that_trains_at_that_rate(rule) -> None:
    name, text, answer = SENTIMENT
    found = walk(of(name, text), answer, rule, (NEXT,) if rule in ("adamw", "momentum") else ())
    weights = {key: torch.nn.Parameter(weight.clone()) for key, weight in found.before.items()}
    model = learner(found.cases.bundle.model, weights)
    config = TrainConfig(optimizer=AS_TRAINED[rule], learning_rate=rate_of(NEXT), weight_decay=WEIGHT_DECAY)
    optimizer = make_optimizer(model, config)
    for group in optimizer.param_groups if rule == "sgd" else ():
        group["momentum"] = 0.0
    for key, weight in model.named_parameters():
        weight.grad = found.gradients[key]
        if found.moments:
            optimizer.state[weight] = {part: tensor.clone() for part, tensor in found.moments[key].items()}
    optimizer.step()
    reached = found.at(rate_of(NEXT))
    for key, weight in model.named_parameters():
        torch.testing.assert_close(reached[key], weight.detach(), atol=1e-6, rtol=1e-5)
        for part, tensor in found.step_of(key)[1].items():
            torch.testing.assert_close(tensor, optimizer.state[weight][part], atol=1e-7, rtol=1e-5)


@pytest.mark.parametrize(("name", "text", "answer"), ASKED)
def test_gradients_are_autograds_and_the_model_keeps_nothing(name: str, text: str, answer) -> None:
    prompt = of(name, text)
    before = {key: weight.clone() for key, weight in prompt.bundle.model.named_parameters()}
    found = learning_step(prompt=prompt, answer=answer, rule="adamw", taken=())
    cases, model = lesson(prompt=prompt, answer=answer), copy.deepcopy(prompt.bundle.model).requires_grad_(True)
    scores = prompt.bundle.reader.scores(model(*cases.inputs)).flatten(0, 1)
    loss = torch.nn.functional.cross_entropy(scores, cases.answers.flatten(), ignore_index=NONE)
    loss.backward()
    assert found.losses[0] == pytest.approx(float(loss.detach()), abs=1e-5)
    named = dict(model.named_parameters())
    for one in found.matrices:
        slope = named[one.name].grad
        slope = torch.zeros(one.rows, one.cols) if slope is None else slope  # of what the answer does not depend on
        assert one.norm == pytest.approx(float(slope.norm()), rel=1e-4, abs=1e-7)
        np.testing.assert_allclose(one.values, slope.flatten().numpy()[one.places], atol=1e-5)
        assert abs(one.values).max() == pytest.approx(float(slope.abs().max()), rel=1e-4, abs=1e-7)
    for key, weight in prompt.bundle.model.named_parameters():
        assert torch.equal(weight, before[key])
        assert weight.grad is None
        assert not weight.requires_grad


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("taken", [(), TAKEN])
def test_a_followed_weight_ends_where_its_equation_says(rule, taken) -> None:
    name, text, answer = SENTIMENT
    prompt = of(name, text)
    about = {"prompt": prompt, "answer": answer, "rule": rule, "taken": taken}
    for parameter in ("embedding.token_embedding.weight", "self_attention.query_proj.weight"):
        key = next((one for one in walk(**about).before if one.endswith(parameter)), None)
        if key is None:
            continue
        row, col = matrix_gradient(**about, parameter=key).largest
        one = followed_weight(**about, exponent=NEXT, parameter=key, row=row, col=col)
        assert one.after == pytest.approx(one.computed, abs=1e-6)
        assert one.step == len(taken) + 1
        if rule == "adamw" and not taken:
            step = (one.after - one.weight) / one.rate + one.decay * one.weight
            assert step == pytest.approx(-np.sign(one.gradient), abs=1e-2)  # the first step is the sign


def test_the_sweep_is_what_each_step_does_and_tells_where_it_is_best() -> None:
    name, text, answer = ASKED[1]
    about = {"prompt": of(name, text), "answer": answer, "rule": "adamw", "taken": ()}
    found = rate_sweep(**about)
    for exponent in (-10, -6, 0):
        one = after_step(**about, exponent=exponent)
        assert found.losses[found.place(exponent)] == pytest.approx(one.after, rel=1e-3, abs=1e-5)
    taken = walk(about["prompt"], answer, "adamw", (-6,))
    assert taken.losses[1] == pytest.approx(after_step(**about, exponent=-6).after, rel=1e-3, abs=1e-5)


@pytest.mark.parametrize(
    ("losses", "best", "overshoots", "tenfold"),
    [
        ((0.9, 0.5, 0.2, 0.4), 2, -1, "lower"),
        ((0.9, 0.5, 1.0, 1.1), 1, 3, "higher"),  # exactly the start is not above it
        ((0.9, 0.5, float("nan"), 2.0), 1, 2, "above"),
    ],
)
def test_a_sweep_is_judged_by_its_losses(losses, best, overshoots, tenfold) -> None:
    found = RateSweep(np.arange(4), np.arange(4.0), np.array(losses), 1.0)
    assert (found.best, found.overshoots, found.tenfold(0)) == (best, overshoots, tenfold)


@pytest.mark.parametrize(
    ("after", "outcome"),
    [(0.98, "falls"), (0.995, "stays"), (1.005, "stays"), (1.02, "overshoots"), (float("inf"), "overflows")],
)
def test_a_step_is_judged_by_its_loss(after: float, outcome: str) -> None:
    assert After(0.1, 1.0, after, 1.0).outcome == outcome


def test_by_default_the_second_likeliest_is_asked_for_and_bounds_are_named() -> None:
    prompt = of(*SENTIMENT[:2])
    with torch.inference_mode():
        likeliest = int(prompt.bundle.model(torch.tensor([prompt.encoding.ids])).argmax())
    assert second_likeliest(prompt=prompt) == 1 - likeliest
    with pytest.raises(ValueError, match=f"taken=11 must be from 0 to {MOST_STEPS}"):
        walk(prompt, 0, "adamw", (-6,) * 11)
    with pytest.raises(ValueError, match="1 to 8 tokens"):
        lesson(prompt=of("gpt", "Once"), answer=" one two three four five six seven eight nine ten")
    with pytest.raises(ValueError, match="rule='adam' is unknown"):
        walk(prompt, 0, "adam", ())  # type: ignore[arg-type]


def test_gradients_by_layer_are_autograds_and_die_in_saturated_softmaxes_and_dead_neurons() -> None:
    name, text, answer = ASKED[2]
    prompt = of(name, text)
    asked = {"prompt": prompt, "answer": answer, "n_layers": 2, "seed": 0}
    softmax = dying_gradients(cause="softmax", **asked)
    own, *_, sharp = softmax.profiles
    assert own.loss == pytest.approx(learning_step(prompt=prompt, answer=answer, rule="sgd", taken=()).losses[0])
    assert sharp.saturated > 0.5 > own.saturated
    assert np.linalg.norm(sharp.scores) < np.linalg.norm(own.scores)
    relu = dying_gradients(cause="relu", **asked)
    assert [one.dead for one in relu.profiles] == sorted(one.dead for one in relu.profiles)
    assert relu.profiles[-1].dead > 0.9
    assert np.linalg.norm(relu.profiles[-1].pre_activation) < np.linalg.norm(relu.profiles[0].pre_activation)
    orders = dying_gradients(cause="orders", **asked)
    again = dying_gradients(cause="orders", **asked)
    assert [one.name for one in orders.profiles] == list(ORDERS)
    for one, other in zip(orders.profiles, again.profiles, strict=True):
        np.testing.assert_array_equal(one.residual, other.residual)
        assert one.residual.shape == (2, len(orders.tokens))


def test_a_run_begins_with_the_weights_that_the_steps_led_to() -> None:
    name, text, answer = SENTIMENT
    prompt = of(name, text)
    spec = spec_of(prompt.bundle, rule="momentum", exponent=-4, name="x")
    assert (spec.training.optimizer, spec.training.learning_rate, spec.training.schedule) == ("sgd", 0.01, "constant")
    beginning = beginning_of(prompt, answer, "momentum", (-6,))
    reached = walk(prompt, answer, "momentum", ()).at(rate_of(-6))
    for key, weight in beginning.damaged.named_parameters():
        torch.testing.assert_close(weight.detach(), reached[key])
