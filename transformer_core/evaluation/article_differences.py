"""What each of the article's choices is worth, one at a time: measured once by a command, read here.

The command is transformer_core/recipes/article.py.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from transformer_core.measured_files import FOLDER, read_shipped
from transformer_core.untrusted.schema import Share, one_of

FILE = FOLDER / "article_differences.json"
CHOICES = {
    "embeddings": ("initial",),
    "softmax": ("softmax_before_loss",),
    "cls": ("pooling",),
    "dropout": ("dropout",),
    "optimizer": ("optimizer", "learning_rate", "warm_up", "schedule", "weight_decay", "clip_norm", "label_smoothing"),
    "norm": ("norm_order",),
    "positions": ("positions",),
    "activation": ("activation",),
}  # each with the settings that it takes over; size, mask and the places of dropout stay the app's own
Count = Annotated[int, Meta(ge=1, le=10**6)]
Line = Annotated[str, Meta(max_length=250)]


@dataclass(frozen=True)
class ArticleRow:
    """One run.

    Args:
        choice: an entry of CHOICES; "ours" is without any of them, "all" with all.
        seed: of weights, batches and the choice of reviews.
        train, held_out: accuracy at the end, in [0, 1]; on a sample of what was learned, and on all that was set aside.
        set_aside: how many reviews that was.
    """

    choice: Annotated[str, one_of("ours", *CHOICES, "all")]
    seed: Annotated[int, Meta(ge=0, le=10**6)]
    train: Share
    held_out: Share
    set_aside: Count


@dataclass(frozen=True, eq=False)
class ArticleMeasured:
    """All runs, and how they were made.

    Args:
        command: that measured them; `file`: what it read.
        examples, tokens, epochs: reviews learned, tokens read of each, and passes.
        rows: as they were measured.
    """

    command: Line
    file: Line
    examples: Count
    tokens: Count
    epochs: Count
    rows: Annotated[tuple[ArticleRow, ...], Meta(max_length=200, description="a list of at most 200 objects")]

    def __post_init__(self) -> None:
        if {row.choice for row in self.rows} != {"ours", *CHOICES, "all"}:
            raise ValueError(f"rows must have runs of every choice: ours, {', '.join(CHOICES)}, all")

    def of(self, choice: str) -> tuple[ArticleRow, ...]:
        """Return the runs with a choice, one a seed."""
        return tuple(row for row in self.rows if row.choice == choice)

    @property
    def set_aside(self) -> tuple[int, int]:
        """The fewest and the most reviews that a run set aside."""
        counts = [row.set_aside for row in self.rows]
        return min(counts), max(counts)

    def mean(self, choice: str) -> tuple[float, float]:
        """Return the mean accuracy of a choice's runs: on what was learned, and on what was set aside."""
        rows = self.of(choice)
        return sum(row.train for row in rows) / len(rows), sum(row.held_out for row in rows) / len(rows)


def article_measured(path: Path = FILE) -> ArticleMeasured:
    """Read what was measured, by default what is shipped in assets/measured; ValueError and OSError as read_shipped."""
    return read_shipped(path, ArticleMeasured)
