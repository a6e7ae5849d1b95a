"""What the lecture on a step of learning asks: each answer is plain torch's, on the model that the lecture has."""

import copy
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from transformer_core.analysis.lab.text_sets import measured_cases
from transformer_core.analysis.learning.rules import WEIGHT_DECAY
from transformer_core.analysis.questions import QUESTIONS
from transformer_core.checkpoints import load
from transformer_core.probe import Probe
from transformer_core.prompt import Prompt
from transformer_core.training.optimizers import ADAM_BETAS

TEXT, RIGHT, STREAM = "Not a bad film.", 1, "encoder.layer1.residual"
BUNDLE = load("sentiment")
PROMPT = Prompt(BUNDLE, TEXT, 64)
GLASS = {"prompt": PROMPT, "glass": STREAM, "glass_answer": RIGHT}


def loss_of(model: nn.Module, probe: Probe | None = None) -> Tensor:
    scores = model(torch.tensor([PROMPT.encoding.ids]), **({} if probe is None else {"probe": probe}))
    return nn.functional.cross_entropy(scores, torch.tensor([RIGHT]))


def with_slope(name: str, by: Tensor | float = 0.0) -> tuple[Tensor, float]:
    """Return the gradient with respect to a recorded tensor, (pos, width), to which something is added; the loss."""
    kept: list[Tensor] = []

    def add(tensor: Tensor) -> Tensor:
        kept.append(torch.zeros_like(tensor).add(by).requires_grad_(True))
        return tensor + kept[0]

    loss = loss_of(BUNDLE.model, Probe((), edits={name: add}))
    return torch.autograd.grad(loss, kept[0])[0][0], float(loss.detach())


def walked(make: type[torch.optim.Optimizer], steps: int, **settings: object) -> Iterator[nn.Module]:
    """Yield a copy of the model after each step on the text; matrices alone decay."""
    model = copy.deepcopy(BUNDLE.model).requires_grad_(True)
    parts = [[one for one in model.parameters() if (one.dim() > 1) is matrix] for matrix in (True, False)]
    decays = (WEIGHT_DECAY, 0.0)
    optimizer = make(
        [{"params": part, "weight_decay": decay} for part, decay in zip(parts, decays, strict=True)], **settings
    )
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()
        yield model


def test_the_loss_the_steepest_token_and_the_steepest_matrix_are_autograds() -> None:
    found = QUESTIONS["loss_of_a_text"](prompt=PROMPT)
    loss = float(loss_of(BUNDLE.model))
    assert (found.option, found.value) == ("to1", pytest.approx(loss, abs=1e-6))
    norms = with_slope(STREAM)[0].norm(dim=1)
    found = QUESTIONS["steepest_token"](**GLASS)
    assert found.option == PROMPT.encoding.labels[int(norms.argmax())]
    assert found.value == pytest.approx(float(norms.max()), rel=1e-4)
    model = copy.deepcopy(BUNDLE.model).requires_grad_(True)
    loss_of(model).backward()
    slopes = {name: one.grad.norm() for name, one in model.named_parameters() if one.grad is not None and one.dim() > 1}
    steepest = max(slopes, key=lambda name: slopes[name])
    found = QUESTIONS["steepest_matrix"](prompt=PROMPT)
    assert (steepest, found.option) == ("class_proj.weight", "answers")
    assert found.value == pytest.approx(float(slopes[steepest]), rel=1e-4)


@pytest.mark.parametrize(("row", "col"), [(1, 89), (0, 105)])
def test_what_comes_back_by_the_residual_sum_is_the_gradient_after_it_and_the_rest_comes_by_the_layer(
    row: int, col: int
) -> None:
    found = QUESTIONS["way_back"](**GLASS, glass_cell=f"{row}.{col}")
    whole = float(with_slope(STREAM)[0][row, col])
    straight = float(with_slope("encoder.layer2.self_attention.residual")[0][row, col])
    share = abs(straight) / (abs(straight) + abs(whole - straight))
    assert found.option == ("sum" if share >= 0.5 else "layer")
    assert found.value == pytest.approx(max(share, 1 - share), abs=1e-4)


def test_a_nudge_is_what_the_loss_does() -> None:
    slopes, before = with_slope(STREAM)
    by = torch.zeros_like(slopes)
    by[1, 89] = 1.0
    found = QUESTIONS["nudged"](**GLASS, glass_cell="1.89", glass_step="1")
    change = with_slope(STREAM, by)[1] - before
    assert found.value == pytest.approx(change, abs=1e-6)
    assert (found.option == "straight") is (abs(change - float(slopes[1, 89])) <= 0.05 * abs(float(slopes[1, 89])))


def test_steps_and_what_else_they_change_are_those_of_torchs_own_optimizers() -> None:
    losses = [float(loss_of(model).detach()) for model in walked(torch.optim.SGD, 3, lr=1e-3)]
    first = next(place for place, loss in enumerate(losses, 1) if loss < torch.tensor(2.0).log())  # of two classes
    found = QUESTIONS["steps_to_say_it"](prompt=PROMPT, rule="sgd", rate=-6)
    assert (found.option, 2 <= first <= 3) == ("in2to3", True)
    assert found.value == pytest.approx(losses[first - 1], abs=1e-4)
    cases = measured_cases(BUNDLE)
    assert len(cases) == 48  # as the scene says
    *_, other = walked(torch.optim.AdamW, 3, lr=1e-3, betas=ADAM_BETAS)
    with torch.no_grad():
        right = [(model(*cases.inputs).argmax(-1) == cases.answers[:, 0]).sum() for model in (BUNDLE.model, other)]
    found = QUESTIONS["else_after_steps"](prompt=PROMPT, rule="adamw", taken="-6.-6.-6")
    assert found.value == pytest.approx(100 * float(right[1] - right[0]) / 48, abs=0.01)
    assert found.option == "fewer_right"


def test_one_texts_gradient_agrees_with_the_mean_of_many_as_their_cosine_says() -> None:
    def slope(ids: Tensor, answer: Tensor) -> Tensor:
        model.zero_grad()
        nn.functional.cross_entropy(model(ids), answer).backward()
        return torch.cat([torch.zeros(one.numel()) if one.grad is None else one.grad.flatten() for one in named])

    model = copy.deepcopy(BUNDLE.model).requires_grad_(True)
    named, cases = list(model.parameters()), measured_cases(BUNDLE)
    mean = slope(cases.inputs[0], cases.answers[:, 0]).clone()
    own = slope(torch.tensor([PROMPT.encoding.ids]), torch.tensor([RIGHT]))
    found = QUESTIONS["agrees_with_many"](prompt=PROMPT)
    assert found.value == pytest.approx(float(torch.cosine_similarity(mean, own, dim=0)), abs=1e-3)
    assert found.option == "along"


def test_what_the_rules_do_with_one_gradient_is_told_by_their_own_steps() -> None:
    assert QUESTIONS["moves_farther"](prompt=PROMPT, rule="adamw").option == "alike"  # its first step is the sign
    assert QUESTIONS["moves_farther"](prompt=PROMPT, rule="sgd").option != "alike"
    for name, make, settings in (("adamw", torch.optim.AdamW, {"betas": ADAM_BETAS}), ("sgd", torch.optim.SGD, {})):
        (model,) = walked(make, 1, lr=1e-3, **settings)
        if name == "adamw":
            best = QUESTIONS["best_rule"](prompt=PROMPT, rate=-6)
            assert (best.option, best.value) == (name, pytest.approx(float(loss_of(model).detach()), abs=1e-4))
        else:
            assert float(loss_of(model).detach()) > best.value
    found = QUESTIONS["overshoots_from"](prompt=PROMPT, rule="adamw")
    assert found.option == "within10"
    (over,) = walked(torch.optim.AdamW, 1, lr=10**-1.5 * found.value, betas=ADAM_BETAS)
    assert float(loss_of(over).detach()) > float(loss_of(BUNDLE.model))
    assert QUESTIONS["overshoots_from"](prompt=PROMPT, rule="sgd").option == "nowhere"


@pytest.mark.parametrize("seed", [0, 1])
def test_scores_die_without_residual_connections_whatever_the_seed(seed: int) -> None:
    found = QUESTIONS["where_scores_die"](prompt=PROMPT, layers=12, seed=seed)
    assert found.option == "alone"
    assert found.value < 1e-5


def test_what_cannot_be_asked_of_a_cell_or_of_steps_is_told() -> None:
    for cell in ("99.0", "1", "1.99999", "x"):
        with pytest.raises(ValueError, match="glass_cell"):
            QUESTIONS["way_back"](**GLASS, glass_cell=cell)
    with pytest.raises(ValueError, match="glass_step='-1' must be"):
        QUESTIONS["nudged"](**GLASS, glass_cell="1.89", glass_step="-1")
    with pytest.raises(ValueError, match="taken='-6;-6' must be"):
        QUESTIONS["else_after_steps"](prompt=PROMPT, rule="adamw", taken="-6;-6")
    with pytest.raises(ValueError, match="must be a recorded tensor"):
        QUESTIONS["steepest_token"](prompt=PROMPT, glass="token_ids", glass_answer=RIGHT)
