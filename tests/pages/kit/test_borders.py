"""Sentences that judge a number: at each border, and just below it, the number gets the case that its words say."""

from collections.abc import Callable
from math import inf, nan, nextafter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pages.attention.induction import EVERY, SUDDEN_STEPS, rises
from pages.encoder.agreement import _most_like
from pages.feed_forward.neurons import size_of_move
from pages.gpt import mask
from pages.kit.lens import nearer
from pages.lab.heads import adds_up
from pages.lab.steer import moved_in_words
from pages.masks import cheat
from transformer_core.analysis.arithmetic.nudge import Nudge
from transformer_core.analysis.learning.dying import GradientProfile
from transformer_core.analysis.learning.steps import After
from transformer_core.analysis.rank_correlation import agreement_word
from transformer_core.measured import LensStage

SPAN = SUDDEN_STEPS // EVERY  # points


def below(value: float) -> float:
    return nextafter(value, -inf)


def above(value: float) -> float:
    return nextafter(value, inf)


def unmasked(change: float) -> str:
    return mask._outcome(SimpleNamespace(mean_masked=2.0, mean_unmasked=2.0 * (1 + change)))


def cheated(gap: float) -> str:
    learners = (SimpleNamespace(held_out=[9.0, nats]) for nats in (0.0, gap))
    return cheat._outcome(SimpleNamespace(**dict(zip(("honest", "cheater"), learners, strict=True))))


def moved(low: float, high: float) -> str:
    return moved_in_words(SimpleNamespace(moved=SimpleNamespace(low=low, high=high)))


def kept(attention: float, gradients: float) -> str:
    left = [gradients, 0.0, nan, 0.0, attention, 0.0]  # gradient, product, integrated, occlusion, rollout, last
    return _most_like(SimpleNamespace(mean_rho=np.array([[1.0] * 6, left])))


def risen(points: int, appears: int = 100) -> str:
    """Judge scores that rise evenly over so many points."""
    scores = np.arange(points)[:, None, None]
    return rises(SimpleNamespace(appears=appears, layer=0, head=0, induction=scores))


def loss_after(after: float) -> str:
    return After(0.1, 2.0, after, 1.0).outcome


def nudged(change: float, expected: float) -> str:
    return Nudge(step=1.0, gradient=expected, before=0.0, after=change).fit


def stages_nearer(first: float, second: float) -> str:
    return nearer([LensStage("d", stage, 1.0, 1.0, -2.0, high, 9, 9) for stage, high in enumerate((first, second))])


def share_left(share: float) -> str:
    norms = np.array([[1.0], [share]])  # (layer, token)
    profile = SimpleNamespace(by_layer=lambda site: norms[:, 0])
    profile.smallest = lambda site: GradientProfile.smallest(profile, site)
    return GradientProfile.outcome(profile, "residual")


CASES: dict[Callable[..., str], list[tuple[tuple[Any, ...], str]]] = {
    agreement_word: [
        ((1.0,), "close"),
        ((0.7,), "close"),
        ((below(0.7),), "loose"),
        ((0.3,), "loose"),
        ((below(0.3),), "none"),
        ((-1.0,), "none"),
        ((nan,), "none"),
    ],
    size_of_move: [((5.0,), "much"), ((below(5.0),), "little"), ((-0.1,), "little"), ((above(-0.1),), "nothing")],
    adds_up: [((1.0, 0.9), "adds"), ((1.0, 0.89), "more"), ((-0.89, 1.0), "less"), ((0.0, 0.0), "adds")],
    unmasked: [((0.049,), "alike"), ((0.051,), "worse"), ((-0.049,), "alike"), ((-0.051,), "better")],
    cheated: [((0.2,), "higher"), ((below(0.2),), "equal"), ((-0.2,), "lower"), ((above(-0.2),), "equal")],
    moved: [((0.0, 1.0), "not"), ((above(0.0), 1.0), "moves"), ((-1.0, 0.0), "not"), ((-1.0, below(0.0)), "moves")],
    kept: [((0.5, 0.5), "attention"), ((0.4, 0.5), "gradients"), ((below(0.5), 0.1), "nothing")],
    risen: [((1 + 2 * SPAN,), "sudden"), ((2 + 2 * SPAN,), "steady"), ((1 + 2 * SPAN, -1), "never")],
    loss_after: [
        ((1.98,), "falls"),
        ((1.981,), "stays"),
        ((2.02,), "overshoots"),
        ((2.019,), "stays"),
        ((inf,), "overflows"),
    ],
    stages_nearer: [((-1.0, below(0.0)), "all"), ((-1.0, 0.0), "some"), ((0.0, 0.0), "none")],
    nudged: [((1.04, 1.0), "straight"), ((1.06, 1.0), "curved"), ((0.94, 1.0), "curved"), ((0.0, 0.0), "none")],
    share_left: [((0.1,), "flows"), ((below(0.1),), "shrinks"), ((1e-3,), "shrinks"), ((below(1e-3),), "dies")],
}


@pytest.mark.parametrize("judge", CASES, ids=lambda judge: judge.__name__)
def test_each_side_of_a_border_gets_its_words(judge: Callable[..., str]) -> None:
    more = {"flipped": False} if judge is size_of_move else {}
    for numbers, said in CASES[judge]:
        assert judge(*numbers, **more) == said, numbers


def test_a_move_that_flips_the_verdict_is_said_so_whatever_its_size() -> None:
    assert size_of_move(0.0, flipped=True) == "flips"
