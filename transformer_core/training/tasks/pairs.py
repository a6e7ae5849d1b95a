"""The data of a small translation: pairs from the app's own grammar, or those that a person gave.

Sutskever et al. 2014; Bahdanau et al. 2015; Vaswani et al. 2017.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from transformer_core.examples import most_held_out
from transformer_core.training.corpora.pairs import translation_pairs
from transformer_core.training.corpora.sequences import Pair
from transformer_core.training.spec import RunSpec
from transformer_core.untrusted.tables.pairs import read_pairs

INTO = {"en": "fr", "zh": "zh"}  # what the app's own English sentences are translated into, by the run's language


def pairs_of(spec: RunSpec, folder: Path | None) -> tuple[Sequence[Pair], Sequence[Pair]]:
    """Return the pairs that a run of source "pairs" learns from, and those that are held out.

    Args:
        spec: the run's.
        folder: of the file that spec.data names; None where there is none.

    Raises:
        ValueError: the file is missing, broken or not what the spec says of it.
        OSError: it cannot be read.
    """
    data, seed = spec.data, spec.training.seed
    if data.file is None:
        return translation_pairs(INTO[data.language], train=data.examples, held_out=data.held_out, seed=seed)  # type: ignore[arg-type]
    if folder is None:
        raise ValueError(f"file={data.file!r} must lie in the run's folder; there is none")
    pairs = read_pairs(folder / data.file)
    if data.given is not None and data.given.count != len(pairs):
        raise ValueError(f"given={data.given!r} is not what lies in {data.file}, which counts {len(pairs):,}")
    order = np.random.default_rng(seed).permutation(len(pairs))
    count = max(1, min(data.held_out, most_held_out(len(pairs))))
    shuffled = [pairs[place] for place in order]
    return shuffled[count : count + data.examples], shuffled[:count]
