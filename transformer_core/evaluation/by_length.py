"""Quality by length: `python -m transformer_core.evaluation.by_length BUNDLE... --sources F --references F --out F`.

BLEU of beam search for sentences of so many words, each with the spread of resampled test sets (Koehn 2004).
"""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import sacrebleu

from transformer_core.analysis.before.by_length import Bin, LengthMeasured, ModelBleu
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.evaluation.translation import BEAM_WIDTH, Pairs, bleu_tokenizer, read_parallel
from transformer_core.generation import translate
from transformer_core.measured_files import write_shipped

ENDS = (8, 11, 14, 18)  # the most words of each bin but the last
RESAMPLED = 1_000
SIDES = (2.5, 97.5)  # percentiles


def words_in(text: str) -> int:
    """Return how many words a text has: what blanks separate."""
    return len(text.split())


def places_by_length(sources: Sequence[str], ends: Sequence[int] = ENDS) -> list[list[int]]:
    """Return the places of the sentences of each length, bins without any left out.

    Args:
        ends: the most words of each bin but the last, ascending.
    """
    bins: list[list[int]] = [[] for _ in range(len(ends) + 1)]
    for place, source in enumerate(sources):
        bins[sum(words_in(source) > end for end in ends)].append(place)
    return [places for places in bins if places]


def resampled_bleu(
    metric: sacrebleu.BLEU, translations: Sequence[str], references: Sequence[str], *, times: int, seed: int = 0
) -> tuple[float, float, float]:
    """Return the BLEU of a corpus, and the bounds of 95 % of the BLEU of as many sentences drawn from it again.

    Args:
        times: how often the sentences are drawn.
    """
    bleu = metric.corpus_score(translations, [references])
    each = [metric.corpus_score([ours], [[theirs]]) for ours, theirs in zip(translations, references, strict=True)]
    counts = np.array([[*one.counts, *one.totals, one.sys_len, one.ref_len] for one in each])  # (sentence, statistic)
    draws = np.random.default_rng(seed).integers(len(each), size=(times, len(each)))
    drawn = [_of_statistics(metric, counts[rows].sum(0)) for rows in draws]
    low, high = np.percentile(drawn, SIDES)
    return bleu.score, min(float(low), bleu.score), max(float(high), bleu.score)


def _of_statistics(metric: sacrebleu.BLEU, sums: np.ndarray) -> float:
    order = metric.max_ngram_order
    counts, totals = sums[:order].tolist(), sums[order : 2 * order].tolist()
    return metric.compute_bleu(
        counts, totals, sys_len=int(sums[-2]), ref_len=int(sums[-1]), max_ngram_order=order
    ).score


def measure_by_length(
    bundles: Sequence[Bundle], pairs: Pairs, *, files: tuple[str, str], command: str, times: int = RESAMPLED
) -> LengthMeasured:
    """Translate every source with every model, and measure BLEU by the number of words of the source.

    Args:
        bundles: of a Translation or a Seq2Seq each.
        pairs: (source, reference).
        files: names of the sources' and the references' file; command: what measures.
        times: how often sentences are drawn for an interval.

    Raises:
        ValueError: a bundle is of another kind, or there are no pairs.
    """
    for bundle in bundles:
        bundle.must_ask("words")
    if not pairs or not bundles:
        raise ValueError(f"pairs={len(pairs)} and bundles={len(bundles)}; at least one of each is needed")
    sources, references = ([pair[side] for pair in pairs] for side in (0, 1))
    metric = sacrebleu.BLEU(tokenize=bleu_tokenizer(references))
    bins = places_by_length(sources)
    models = []
    for bundle in bundles:
        print(f"by_length: {bundle.name} translates {len(sources):,} sentences", file=sys.stderr, flush=True)
        written = translate(bundle, sources, width=BEAM_WIDTH, batch_size=32)
        overall = round(metric.corpus_score(written, [references]).score, 2)
        parts = (([written[place] for place in places], [references[place] for place in places]) for places in bins)
        scores = [[round(score, 2) for score in resampled_bleu(metric, *part, times=times)] for part in parts]
        models.append(ModelBleu(bundle.name, overall, *map(tuple, zip(*scores, strict=True))))
        print(f"by_length: {models[-1]}", file=sys.stderr, flush=True)
    counted = [[words_in(sources[place]) for place in places] for places in bins]
    return LengthMeasured(
        command=command,
        sources=files[0],
        references=files[1],
        beam=BEAM_WIDTH,
        signature=str(metric.get_signature()),
        bins=tuple(Bin(min(words), max(words), len(words)) for words in counted),
        models=tuple(models),
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    parser = argparse.ArgumentParser(prog="by_length", description="Measure BLEU by the length of the source.")
    parser.add_argument("bundles", type=Path, nargs="+", metavar="BUNDLE", help="folders of models that translate")
    parser.add_argument("--sources", type=Path, required=True, metavar="FILE", help="a sentence a line, plain or .gz")
    parser.add_argument("--references", type=Path, required=True, metavar="FILE", help="their translations, alike")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.json", help="where the numbers are written")
    chosen = parser.parse_args(arguments)
    files = (chosen.sources.name, chosen.references.name)  # without folders, which are those of one machine
    words = ["python", "-m", "transformer_core.evaluation.by_length", *map(Path.as_posix, chosen.bundles)]
    words += ["--sources", files[0], "--references", files[1], "--out", chosen.out.as_posix()]
    try:
        pairs = read_parallel(chosen.sources, chosen.references)
        bundles = [load(folder, device="cpu") for folder in chosen.bundles]
        write_shipped(chosen.out, measure_by_length(bundles, pairs, files=files, command=shlex.join(words)))
    except (ValueError, OSError) as error:
        print(f"by_length: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    print(chosen.out.read_text(encoding="utf-8"), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
