"""The card of the recurrent translation bundle: what it learned from, how well it translates, sentences as they come out.

Form: Mitchell et al. 2019 (model cards). Read next: seq2seq.py.
"""

from dataclasses import dataclass
from typing import Any

from transformer_core.checkpoints import Bundle
from transformer_core.recipes.command import Trained


@dataclass(frozen=True)
class Measured:
    """What a run of the recipe measured.

    Args:
        quality: what measure_translation says of the bundle as it lies on disk.
        full_bleu: of the same weights before they were rounded to float16.
        n_learned: pairs that were trained on.
        trained: what training cost.
        megabytes: of the weights on disk, in units of 1,000,000 bytes.
    """

    quality: dict[str, Any]
    full_bleu: float
    n_learned: int
    trained: Trained
    megabytes: float


def seq2seq_card(bundle: Bundle, measured: Measured, **_) -> str:
    return ""
