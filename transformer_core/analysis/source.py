"""Where a site is computed: the line of this package that taps it, found in the source itself.

Read next: config.py, to start over from the leaves.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class SourceLine:
    """A line of code.

    Args:
        path: from the project's root, such as ``transformer_core/layers/attention.py``.
        number: from 1.
        code: without its indent.
    """

    path: str
    number: int
    code: str


@lru_cache(maxsize=1)
def _taps() -> dict[str, tuple[SourceLine, ...]]:
    found: dict[str, list[SourceLine]] = {}
    for path in sorted(PACKAGE.glob("**/*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            _, tap, rest = line.partition('.tap("')
            if tap:
                place = SourceLine(path.relative_to(PACKAGE.parent).as_posix(), number, line.strip())
                found.setdefault(rest.partition('"')[0], []).append(place)
    return {leaf: tuple(places) for leaf, places in found.items()}


HOMES = {
    "embedding": "embeddings",
    "norm": "normalization",
    "final_norm": "normalization",
    "self_attention": "attention",
    "cross_attention": "attention",
    "feed_forward": "feed_forward",
    "mlm_head": "bert",
    "nsp_head": "bert",
    "": "classifier",
}


def tapped_at(name: str) -> tuple[SourceLine, ...]:
    """Return the lines that tap a full name such as ``encoder.layer0.self_attention.weights``; empty where none does.

    Several parts tap a leaf of one name; the part that the name stands in decides which is meant.
    """
    scope, _, leaf = name.rpartition(".")
    places = _taps().get(leaf, ())
    home = HOMES.get(scope.rpartition(".")[2], "blocks")
    if leaf == "residual" and home != "embeddings":
        home = "blocks"
    meant = tuple(place for place in places if Path(place.path).stem == home)
    wanted = "x + output" if (leaf == "residual" and "attention" in scope) or "feed_forward" in scope else ""
    return tuple(place for place in meant if wanted in place.code) or meant or places
