"""Checking the facts of an imported run, which pages rely on: they must have the form that the worker gives them."""

from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta

from transformer_core.bundle import make_config
from transformer_core.training.runs.errors import RunError
from transformer_core.training.spec import BOUNDS, RunSpec
from transformer_core.untrusted.schema import Finite, checked

ITEMS = Meta(max_length=100)
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Item = Annotated[str, Meta(max_length=2_000)]
Words = Annotated[str, Meta(max_length=200_000)]


class Facts(TypedDict):
    """What a worker notes of its run."""

    kind: Words
    labels: Annotated[list[Item], ITEMS]
    baselines: Annotated[dict[Item, Finite], ITEMS]
    counts: Annotated[dict[Item, Count], ITEMS]
    prompt: Words
    model: dict[str, Any]
    n_parameters: Count
    steps_per_epoch: Count
    total_steps: Count
    frames_planned: Annotated[list[Count], ITEMS]
    bytes_of_weights: Count
    notes: Annotated[list[Item], ITEMS]
    device: Literal["cpu", "cuda", "mps"]
    device_name: Words
    threads: Annotated[int, Meta(ge=1, le=BOUNDS["threads"][1] * 16)]
    torch: Words
    python: Words
    started: Finite
    node: Words
    tokenizer_sha256: Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z", description="64 hexadecimal digits")]


LATER: dict[str, Any] = {
    "counts": {},
    "node": "",
}  # what stands for them in runs that have none: of earlier versions, or here


def check_facts(facts: dict[str, Any], spec: RunSpec) -> None:
    """Raise RunError unless the facts are those of a run of this spec, complete and of the right form."""
    names = Facts.__annotations__
    if odd := sorted(map(str, (LATER | facts).keys() ^ names.keys())):
        raise RunError(f"the run's facts must be {', '.join(names)}; too much or missing: {', '.join(odd)[:200]}")
    try:
        checked(LATER | facts, Facts)
    except ValueError as error:
        raise RunError(f"the run's fact {error}") from None
    if facts["kind"] != spec.kind:
        raise RunError(f"the run's model is of kind {facts['kind']!r:.40}; its settings call for {spec.kind!r}")
    try:
        make_config(facts["kind"], facts["model"])
    except (TypeError, ValueError) as error:
        raise RunError(f"the run's model: {error!s:.300}") from None
