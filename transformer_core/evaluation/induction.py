"""Which shipped models have an induction head: measured once, read here.

The command is `python -m transformer_core.evaluation.induction`; it measures what lies in assets/checkpoints.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from msgspec import Meta

from transformer_core.analysis.corpus.induction import induction_scores
from transformer_core.analysis.lab.heads_off import attentions
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import SHIPPED, load
from transformer_core.measured_files import FOLDER, read_shipped, write_shipped
from transformer_core.untrusted.schema import Share

FILE = FOLDER / "induction.json"
SEQUENCES = 32
Count = Annotated[int, Meta(ge=0, le=10**6)]
Line = Annotated[str, Meta(max_length=120)]


@dataclass(frozen=True)
class InductionRow:
    """One model's head of the strongest induction.

    Args:
        model: the folder's name; kind: of attention, as of attentions.
        layer, head: that head's; score, low, high: as of Induction; chance: of a uniform head.
        heads: that were measured; induces: how many are called induction heads.
        queries: places that the mean is over.
    """

    model: Line
    kind: Line
    layer: Count
    head: Count
    score: Share
    low: Share
    high: Share
    chance: Share
    heads: Count
    induces: Count
    queries: Count


@dataclass(frozen=True, eq=False)
class InductionMeasured:
    """The row of each shipped model with heads, and how many sequences each read."""

    command: Line
    sequences: Count
    rows: Annotated[
        tuple[InductionRow, ...], Meta(min_length=1, max_length=60, description="a list of 1 to 60 objects")
    ]


def best_induction(bundle: Bundle, sequences: int = SEQUENCES) -> InductionRow:
    """Measure a model, and return its head of the strongest induction."""
    found, by_kind = induction_scores(bundle=bundle, sequences=sequences), attentions(bundle)
    place, n_heads = int(np.nanargmax(found.score)), bundle.config.n_heads
    kinds = [(kind, layer) for kind, scopes in by_kind.items() for layer in range(len(scopes))]
    kind, layer = kinds[place // n_heads]
    score, low, high, chance = (
        round(float(number), 4) for number in (found.score[place], *found.bounds[:, place], found.chance[place])
    )
    return InductionRow(
        model=bundle.name,
        kind=kind,
        layer=layer,
        head=place % n_heads,
        score=score,
        low=low,
        high=high,
        chance=chance,
        heads=int(np.isfinite(found.score).sum()),
        induces=int(found.induces.sum()),
        queries=found.queries,
    )


def induction_measured() -> InductionMeasured:
    """Read what was measured and is shipped in assets/measured; ValueError and OSError as read_shipped."""
    return read_shipped(FILE, InductionMeasured)


def main() -> None:
    """Measure every shipped model that has heads."""
    bundles = (load(folder) for folder in sorted(SHIPPED.iterdir()) if folder.is_dir())
    rows = tuple(best_induction(bundle) for bundle in bundles if attentions(bundle))
    write_shipped(FILE, InductionMeasured("python -m transformer_core.evaluation.induction", SEQUENCES, rows))


if __name__ == "__main__":
    main()
