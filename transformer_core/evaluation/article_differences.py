"""What each of the article's choices is worth, one at a time: measured once by a command, read here.

The command is transformer_core/recipes/article.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transformer_core.analysis.source import ROOT
from transformer_core.config import require_choice
from transformer_core.stored import number, read_stored, rows, text, whole_number, write_stored
from transformer_core.training.spec import RunSpec

FILE = ROOT / "assets" / "measured" / "article_differences.json"
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
LARGEST, MOST_ROWS, LONGEST_TEXT, MOST = 64 << 10, 200, 500, 10**6


@dataclass(frozen=True)
class ArticleRow:
    """One run.

    Args:
        choice: an entry of CHOICES; "ours" is without any of them, "all" with all.
        seed: of weights, batches and the choice of reviews.
        train, held_out: accuracy at the end, in [0, 1]; on a sample of what was learned, and on all that was set aside.
        set_aside: how many reviews that was.
    """

    choice: str
    seed: int
    train: float
    held_out: float
    set_aside: int


@dataclass(frozen=True, eq=False)
class ArticleMeasured:
    """All runs, and how they were made.

    Args:
        rows: as they were measured.
        examples, tokens, epochs: reviews learned, tokens read of each, and passes.
        command: that measured them; `file`: what it read.
    """

    rows: tuple[ArticleRow, ...]
    examples: int
    tokens: int
    epochs: int
    command: str
    file: str

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


def write_article(path: Path, runs: Sequence[ArticleRow], spec: RunSpec, *, command: str, file: str) -> None:
    """Write what was measured as JSON, a run a line.

    Args:
        spec: of a run; it learned and set aside as many reviews as this says.
    """
    entries = {
        "command": command,
        "file": file,
        "examples": spec.data.examples,
        "tokens": spec.model.max_len,
        "epochs": spec.training.epochs,
        "rows": [asdict(run) for run in runs],
    }
    write_stored(path, entries)


def article_measured(path: Path = FILE) -> ArticleMeasured:
    """Read what was measured, by default what is shipped in assets/measured.

    Raises:
        ValueError: the file is too large or holds impossible values.
        OSError: it cannot be read.
    """
    return read_stored(path, LARGEST, _checked)


def _checked(found: Mapping[str, Any]) -> ArticleMeasured:
    runs = tuple(map(_row, rows(found, "rows", MOST_ROWS)))
    if {row.choice for row in runs} != {"ours", *CHOICES, "all"}:
        raise ValueError(f"rows must have runs of every choice: ours, {', '.join(CHOICES)}, all")
    sizes = {name: whole_number(found, name, 1, MOST) for name in ("examples", "tokens", "epochs")}
    command, file = (text(found, name, LONGEST_TEXT) for name in ("command", "file"))
    return ArticleMeasured(runs, **sizes, command=command, file=file)


def _row(row: Mapping[str, Any]) -> ArticleRow:
    require_choice("choice", row.get("choice"), ("ours", *CHOICES, "all"))
    train, held_out = (number(row, name, 0, 1) for name in ("train", "held_out"))
    seed, set_aside = (whole_number(row, name, least, MOST) for name, least in (("seed", 0), ("set_aside", 1)))
    return ArticleRow(row["choice"], seed, train, held_out, set_aside)
