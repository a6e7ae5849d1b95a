"""A run that trains on from the weights that some steps by hand have led to."""

from dataclasses import replace
from typing import Any

from transformer_core.analysis.lab.healing import FRAMES, POINTS, STEPS, built_in
from transformer_core.analysis.lab.weights import with_weights
from transformer_core.analysis.learning.rules import AS_TRAINED, WEIGHT_DECAY, Rule
from transformer_core.analysis.learning.steps import rate_of, walk
from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.prompt import Prompt
from transformer_core.training.runs.beginning import Beginning
from transformer_core.training.spec import LONGEST_NAME, RunSpec, Start


def spec_of(bundle: Bundle, *, rule: Rule, exponent: int, name: str) -> RunSpec:
    """Return the spec of a run with a rule and a constant rate; beginning_of goes with it.

    Args:
        bundle: the model as it is; built-in data that suit it are learned from.
        rule: as of walk; plain SGD becomes training's, which has momentum.
        exponent: of the rate, as of rate_of.
        name: of the run.

    Raises:
        ValueError: no built-in data suit the model, or it is too large for a run.
    """
    if not isinstance(bundle.config, ModelConfig):
        raise ValueError(f"bundle={bundle.name!r} is a {bundle.kind}, and runs train Transformers alone")
    data, training = built_in(bundle, STEPS)
    rates = {"learning_rate": rate_of(exponent), "warm_up": 0.0, "schedule": "constant"}
    training = replace(training, optimizer=AS_TRAINED[rule], weight_decay=WEIGHT_DECAY, clip_norm=None, **rates)
    return RunSpec(
        name=name[:LONGEST_NAME],
        data=data,
        model=bundle.config,
        training=training,
        frames=FRAMES,
        points=POINTS,
        threads=1,
        start=Start(model=bundle.name[:LONGEST_NAME]),
    )


def beginning_of(prompt: Prompt, answer: int | str | None, rule: Rule, taken: tuple[int, ...]) -> Beginning:
    """Return the weights that steps have led to, for RunList.create; arguments as of walk."""
    weights: dict[str, Any] = walk(prompt, answer, rule, taken).before
    return Beginning(prompt.bundle, with_weights(prompt.bundle.model, weights))
