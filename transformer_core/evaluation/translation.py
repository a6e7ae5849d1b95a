"""How well a model translates: BLEU and chrF of its beam search against the references.

Papineni et al. 2002 (BLEU), Popović 2015 (chrF), Post 2018 (sacrebleu, which computes both).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sacrebleu

from transformer_core.bundle import Bundle
from transformer_core.evaluation.gpt import read_text
from transformer_core.generation import translate

Pairs = Sequence[tuple[str, str]]
FIRST_HAN, LAST_HAN = "\u4e00", "\u9fff"
BEAM_WIDTH = 4


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file in UTF-8, plain or gzipped; a last line end begins no line of its own.

    Raises:
        ValueError: it is not UTF-8, or is broken.
        OSError: it cannot be opened.
    """
    return [line.removesuffix("\r") for line in read_text(path).removesuffix("\n").split("\n")]


def read_parallel(source: Path, target: Path) -> Pairs:
    """Return the pairs of two files of which line n of one translates line n of the other.

    Raises:
        ValueError: they differ in their number of lines, or one is not text.
    """
    sources, targets = read_lines(source), read_lines(target)
    if len(sources) != len(targets):
        raise ValueError(f"{source.name} has {len(sources)} lines, {target.name} {len(targets)}; they must be parallel")
    return list(zip(sources, targets, strict=True))


def bleu_tokenizer(references: Sequence[str]) -> str:
    """Return which of sacrebleu's tokenizers cuts these references: "zh" where most letters are Han, else "13a"."""
    letters = [char for text in references for char in text if char.isalpha()]
    han = sum(FIRST_HAN <= char <= LAST_HAN for char in letters)
    return "zh" if 2 * han > len(letters) else "13a"


def measure_translation(
    bundle: Bundle, pairs: Pairs, *, width: int = BEAM_WIDTH, batch_size: int = 32
) -> dict[str, Any]:
    """Translate every source and compare with its reference; texts go in and out raw, as people write them.

    Args:
        bundle: of a Translation or a Seq2Seq.
        pairs: (source, reference).
        width: of the beam.
        batch_size: sentences at once; it changes speed and memory only.

    Returns:
        bleu and chrf in [0, 100], bleu_signature (sacrebleu's, so that anybody can compare), beam, sentences.

    Raises:
        ValueError: the bundle is of another kind, or there are no pairs.
    """
    bundle.must_ask("words")
    if not pairs:
        raise ValueError("pairs are none; at least one is needed")
    sources, references = zip(*pairs, strict=True)
    translations = translate(bundle, sources, width=width, batch_size=batch_size)
    metric = sacrebleu.BLEU(tokenize=bleu_tokenizer(references))
    bleu = metric.corpus_score(translations, [references])
    return {
        "bleu": round(bleu.score, 2),
        "chrf": round(sacrebleu.corpus_chrf(translations, [references]).score, 2),
        "bleu_signature": str(metric.get_signature()),
        "beam": width,
        "sentences": len(pairs),
    }
