"""evaluate: measure a bundle on files; `python -m transformer_core.evaluation BUNDLE FILE...` prints one line of JSON.

Each kind of model has its own measure; the results do not depend on how examples are batched.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.evaluation.bert import measure_hidden_words, measure_sentence_pairs, read_sentence_pairs
from transformer_core.evaluation.classifier import DEFAULT_BATCH_SIZE, Measures, measure_classifier
from transformer_core.evaluation.gpt import measure_poems, measure_text, read_text
from transformer_core.evaluation.translation import measure_translation, read_lines, read_parallel
from transformer_core.untrusted.tables.labelled import is_table, read_labelled


def _measure_classifier_file(bundle: Bundle, path: Path, batch_size: int) -> Measures:
    return measure_classifier(bundle, read_labelled(path, bundle.labels), batch_size=batch_size)


def _measure_text_file(bundle: Bundle, path: Path, batch_size: int) -> Measures:
    if bundle.measured.verse:
        return measure_poems(bundle, read_text(path).splitlines())
    return measure_text(bundle, read_text(path), batch_size=batch_size)


def _measure_bert_file(bundle: Bundle, path: Path, batch_size: int) -> Measures:
    if is_table(path):
        return measure_sentence_pairs(bundle, read_sentence_pairs(path), batch_size=batch_size)
    sentences = [line for line in read_lines(path) if line.strip()]
    return measure_hidden_words(bundle, sentences, batch_size=batch_size)


def _measure_parallel_files(bundle: Bundle, source: Path, target: Path, batch_size: int) -> Measures:
    return measure_translation(bundle, read_parallel(source, target), batch_size=batch_size)


@dataclass(frozen=True)
class Measure:
    """How one kind of model is measured.

    Args:
        files: what each of its files holds, in words.
        measure: from the bundle, the files and the batch size to the measures.
    """

    files: tuple[str, ...]
    measure: Callable[..., Measures]


TRANSLATING = Measure(("sources, a line each", "references, a line each"), _measure_parallel_files)
FORESEEING = Measure(("a text, for a model of poems one a line",), _measure_text_file)
MEASURED: dict[str, Measure] = {
    "classifier": Measure(("text and label in .csv or .jsonl",), _measure_classifier_file),
    "gpt": FORESEEING,
    "bert": Measure(
        ("a text of one sentence a line, or first, second and label (1 = together) in .csv or .jsonl",),
        _measure_bert_file,
    ),
    "translation": TRANSLATING,
    "seq2seq": TRANSLATING,
    "lm": FORESEEING,
}


def evaluate(folder: Path, *files: Path, device: str | None = None, batch_size: int = DEFAULT_BATCH_SIZE) -> Measures:
    """Measure a bundle on files of its kind.

    Args:
        folder: the bundle's.
        files: as MEASURED has them for the bundle's kind.
        device: where to compute; by default cuda where there is one, else cpu.
        batch_size: examples at once.

    Returns:
        bundle, kind, the kind's measures with the number of examples, and seconds without loading the bundle.

    Raises:
        ValueError: the bundle or a file cannot be read, there are too few or too many files, or no measure is written
            for this kind of model.
    """
    bundle = load(folder, device=device)
    if bundle.kind not in MEASURED:
        raise ValueError(f"{bundle.name} is of kind {bundle.kind!r}; measured are {', '.join(MEASURED)}")
    needed = MEASURED[bundle.kind].files
    if len(files) != len(needed):
        raise ValueError(f"files={len(files)} for a {bundle.kind}; needed: {'; '.join(needed)}")
    started = time.perf_counter()
    measures = MEASURED[bundle.kind].measure(bundle, *files, batch_size=batch_size)
    seconds = round(time.perf_counter() - started, 3)
    return {"bundle": bundle.name, "kind": bundle.kind, **measures, "seconds": seconds}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of at least 1")
    return int(text)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    parser = _Parser(prog="evaluate", description="Measure a bundle on files and print one line of JSON.")
    parser.add_argument("bundle", type=Path, help="folder of the bundle")
    forms = "; ".join(f"{kind}: {' and '.join(measure.files)}" for kind, measure in MEASURED.items())
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help=f"plain or .gz: {forms}")
    parser.add_argument("--device", help="cpu, cuda or mps; by default cuda where there is one, else cpu")
    parser.add_argument("--batch-size", type=_positive, default=DEFAULT_BATCH_SIZE, help="examples at once")
    chosen = parser.parse_args(arguments)
    try:
        measures = evaluate(chosen.bundle, *chosen.files, device=chosen.device, batch_size=chosen.batch_size)
    except (ValueError, OSError, RuntimeError) as error:
        print(f"evaluate: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    print(json.dumps(measures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
