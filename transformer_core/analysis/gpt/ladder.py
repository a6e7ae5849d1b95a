"""The ladder from the decoder of 2017 to today's, one change a rung, and what each was worth: measured once, read here.

The command is transformer_core/recipes/ladder.py.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from transformer_core.config import ModelConfig, require_choice
from transformer_core.measured_files import FOLDER, read_shipped
from transformer_core.shares import STUDENT, mean_interval
from transformer_core.untrusted.schema import one_of

FILE = FOLDER / "ladder.json"


@dataclass(frozen=True)
class Rung:
    """One change to the decoder below it.

    Args:
        name: of what it changes to.
        change: entries of ModelConfig.
        source: the paper that brought it.
    """

    name: str
    change: dict[str, Any]
    source: str


BASE = ModelConfig(
    vocab_size=2_000,
    d_model=96,
    n_heads=4,
    d_ff=288,
    n_layers=3,
    max_len=96,
    dropout=0.0,
    pad_id=None,
    positions="sinusoidal",
    rotary_halves=True,
    scale_embeddings=True,
    norm_order="post",
    activation="relu",
)
RUNGS = (
    Rung("paper", {}, "Vaswani et al. 2017"),
    Rung("pre", {"norm_order": "pre"}, "Xiong et al. 2020"),
    Rung("learned", {"positions": "learned"}, "Radford et al. 2018"),
    Rung("rotary", {"positions": "rotary"}, "Su et al. 2021"),
    Rung("rms_norm", {"norm": "rms_norm"}, "Zhang and Sennrich 2019"),
    Rung("gelu", {"activation": "gelu"}, "Hendrycks and Gimpel 2016"),
    Rung("swiglu", {"activation": "silu", "gated": True, "d_ff": 192}, "Shazeer 2020"),
    Rung("one_head", {"n_kv_heads": 1}, "Shazeer 2019"),
    Rung("grouped", {"n_kv_heads": 2}, "Ainslie et al. 2023"),
    Rung("unbiased", {"bias": False}, "Chowdhery et al. 2022"),
    Rung(
        "mixture",
        {"n_experts": 8, "n_active_experts": 2, "expert_weights_sum_to_one": True, "d_ff": 96},
        "Jiang et al. 2024",
    ),
)
NAMES = tuple(rung.name for rung in RUNGS)


def config_at(name: str, base: ModelConfig = BASE) -> ModelConfig:
    """Return the base with every change up to a rung."""
    for rung in RUNGS[: NAMES.index(name) + 1]:
        base = replace(base, **rung.change)
    return base


Count = Annotated[int, Meta(ge=1, le=10**9)]
Line = Annotated[str, Meta(max_length=500)]


@dataclass(frozen=True)
class LadderRun:
    """One model trained from one seed.

    Args:
        rung: an entry of NAMES.
        seed: of weights and batches; a seed's batches are the same on every rung.
        nats: a token, of the stories set aside.
        parameters: of the model.
    """

    rung: Annotated[str, one_of(*NAMES)]
    seed: Annotated[int, Meta(ge=0, le=10**6)]
    nats: Annotated[float, Meta(ge=0, le=1_000)]
    parameters: Count


@dataclass(frozen=True)
class LossChange:
    """By how much a rung's loss differs from the one below it: the mean over seeds, and its interval.

    Args:
        nats: a token; below 0 is better.
        low, high: of Student's interval of 95 % for differences of the same seed.
        seeds: how many.
    """

    nats: float
    low: float
    high: float
    seeds: int


@dataclass(frozen=True, eq=False)
class LadderMeasured:
    """All runs, and how they were made.

    Args:
        command: that measured them; file: what it learned.
        steps: of each training; tokens: that it read; asked: tokens of the stories set aside.
        runs: as they were measured.
    """

    command: Line
    file: Line
    steps: Count
    tokens: Count
    asked: Count
    runs: Annotated[tuple[LadderRun, ...], Meta(max_length=200, description="a list of at most 200 objects")]

    def __post_init__(self) -> None:
        seeds = {name: [run.seed for run in self.of(name)] for name in NAMES}
        if len({tuple(found) for found in seeds.values()}) > 1 or len(seeds["paper"]) not in STUDENT:
            raise ValueError(f"runs must have every rung with the same seeds, {min(STUDENT)} to {max(STUDENT)} of them")

    def of(self, rung: str) -> tuple[LadderRun, ...]:
        """Return the runs of a rung, in the order of their seeds."""
        return tuple(sorted((run for run in self.runs if run.rung == rung), key=lambda run: run.seed))

    def nats(self, rung: str) -> np.ndarray:
        """Return the loss of a rung's runs, (seed,)."""
        return np.array([run.nats for run in self.of(rung)])

    def worth(self, rung: str) -> LossChange | None:
        """Return what a rung was worth; None for the lowest."""
        place = NAMES.index(rung)
        if not place:
            return None
        differences = self.nats(rung) - self.nats(NAMES[place - 1])
        return LossChange(*mean_interval(differences), len(differences))


@dataclass(frozen=True, eq=False)
class Ladder:
    """What the ladder's models came to.

    Shapes:
        nats: (rung, seed), a token of the stories set aside
        worth, low, high: (rung,), as of LossChange; not numbers for the lowest rung

    Args:
        rungs: entries of NAMES, from the lowest.
        measured: how.
    """

    rungs: tuple[str, ...]
    nats: np.ndarray
    worth: np.ndarray
    low: np.ndarray
    high: np.ndarray
    measured: LadderMeasured

    def outcome(self, rung: str) -> str:
        """Return "better" or "worse" than the rung below by the interval's sign, or "within" where it holds 0."""
        place = self.rungs.index(rung)
        return "better" if self.high[place] < 0 else "worse" if self.low[place] > 0 else "within"


def ladder(*, rungs: tuple[str, ...] = NAMES) -> Ladder:
    """Return what some of the rungs came to, as it was measured and is shipped.

    Raises:
        ValueError, OSError: as ladder_measured; or there is no such rung.
    """
    for rung in rungs:
        require_choice("rungs", rung, NAMES)
    found = ladder_measured()
    worths = [found.worth(rung) or LossChange(math.nan, math.nan, math.nan, 0) for rung in rungs]
    return Ladder(
        rungs=rungs,
        nats=np.array([found.nats(rung) for rung in rungs]),
        worth=np.array([worth.nats for worth in worths]),
        low=np.array([worth.low for worth in worths]),
        high=np.array([worth.high for worth in worths]),
        measured=found,
    )


def ladder_measured(path: Path = FILE) -> LadderMeasured:
    """Read what was measured, by default what is shipped in assets/measured; ValueError and OSError as read_shipped."""
    return read_shipped(path, LadderMeasured)
