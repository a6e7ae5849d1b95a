"""Checking the facts of an imported run, which pages rely on: they must have the form that the worker gives them."""

import re
from typing import Any

from transformer_core.bundle import make_config
from transformer_core.training.runs.errors import RunError
from transformer_core.training.spec import BOUNDS, RunSpec

FORMS: dict[str, type | tuple[type, ...]] = {
    "kind": str,
    "labels": list,
    "baselines": dict,
    "counts": dict,
    "prompt": str,
    "model": dict,
    "n_parameters": int,
    "steps_per_epoch": int,
    "total_steps": int,
    "frames_planned": list,
    "bytes_of_weights": int,
    "notes": list,
    "device": str,
    "device_name": str,
    "threads": int,
    "torch": str,
    "python": str,
    "started": (int, float),
    "tokenizer_sha256": str,
}
ITEMS: dict[str, type | tuple[type, ...]] = {
    "labels": str,
    "notes": str,
    "frames_planned": int,
    "baselines": (int, float),
    "counts": int,
}
LATER: dict[str, Any] = {"counts": {}}  # what stands for them in runs of earlier versions, which have none
PATTERNS = {"device": r"cpu|cuda|mps", "tokenizer_sha256": r"[0-9a-f]{64}"}
LONGEST_TEXT = 2_000
MOST_ITEMS = 100


def check_facts(facts: dict[str, Any], spec: RunSpec) -> None:
    """Raise RunError unless the facts are those of a run of this spec, complete and of the right form."""
    if odd := sorted(map(str, (LATER | facts).keys() ^ FORMS.keys())):
        raise RunError(f"the run's facts must be {', '.join(FORMS)}; too much or missing: {', '.join(odd)[:200]}")
    facts = LATER | facts
    for name, form in FORMS.items():
        value = facts[name]
        if not isinstance(value, form) or isinstance(value, bool) or len(str(value)) > MOST_ITEMS * LONGEST_TEXT:
            raise RunError(f"the run's fact {name}={value!r:.100} has another form than a worker gives it")
    for name, pattern in PATTERNS.items():
        if not re.fullmatch(pattern, facts[name]):
            raise RunError(f"the run's fact {name}={facts[name]!r:.100} is none that a worker gives it")
    for name, form in ITEMS.items():
        items = list(facts[name].values() if isinstance(facts[name], dict) else facts[name])
        fit = all(isinstance(item, form) and len(str(item)) <= LONGEST_TEXT for item in items)
        if len(items) > MOST_ITEMS or not fit:
            raise RunError(f"the run's fact {name}={items!r:.100} has other items than a worker gives it")
    if facts["kind"] != spec.kind:
        raise RunError(f"the run's model is of kind {facts['kind']!r:.40}; its settings call for {spec.kind!r}")
    try:
        make_config(facts["kind"], facts["model"])
    except (TypeError, ValueError) as error:
        raise RunError(f"the run's model: {error!s:.300}") from None
    if not 1 <= facts["threads"] <= BOUNDS["threads"][1] * 16:
        raise RunError(f"the run's fact threads={facts['threads']} is out of range")
