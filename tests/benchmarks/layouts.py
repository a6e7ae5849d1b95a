"""How quick, how faithful and how calm the live pictures are, against scikit-learn's t-SNE drawn afresh at each frame.

Run: python -m tests.benchmarks.layouts [--data DIR] [--epochs N] [--rounds N]
DIR holds train.csv.gz with the columns text and label, at least 1,200 texts; without it they are made up.
"""

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from transformer_core import Classifier, ModelConfig, TrainConfig
from transformer_core.examples import Example
from transformer_core.layout.neighbours import displacement, trustworthiness
from transformer_core.layout.pca import normalised, turned_onto
from transformer_core.layout.sequence import LayoutSequence
from transformer_core.recipes.reviews import encode_rows
from transformer_core.text import CLS_ID, PAD_ID, SEP_ID, Tokenizer
from transformer_core.training.batching import LabelledBatch, bucketed, padded
from transformer_core.training.loop import Run
from transformer_core.training.objectives import classification
from transformer_core.untrusted.tables.labelled import read_labelled

POINTS, SMALL_POINTS, SMALL_WIDTH = 1_200, 600, 64
BATCH = 32
CONFIG = ModelConfig(
    vocab_size=4_000, d_model=256, n_heads=4, d_ff=512, n_layers=2, max_len=64, dropout=0.0, n_classes=2
)
TRAINING = TrainConfig(learning_rate=1e-3, batch_size=BATCH, seed=0)
MOST_SECONDS, MOST_SECONDS_SMALL = 0.8, 0.15
LEAST_TRUST, TRUST_BELOW_PEER, MOST_OF_PEER = 0.95, 0.03, 0.7


@dataclass(frozen=True)
class Film:
    """What one method drew: of each frame its trustworthiness (k = 10), and its displacement but for the first."""

    seconds: list[float]
    trust: list[float]
    moves: list[float]


def invented() -> list[Example]:
    """Return made-up reviews: words for and against, some turned by "not", among others."""
    rng = np.random.default_rng(0)
    plain, good, bad = (
        [f"{kind}{number}" for number in range(size)] for kind, size in (("w", 400), ("g", 40), ("b", 40))
    )
    examples = []
    for _ in range(POINTS):
        label, words = int(rng.integers(2)), []
        for _ in range(int(rng.integers(8, 20))):
            word, turned = rng.choice(plain), rng.random() < 0.3
            if rng.random() < 0.3:
                word = rng.choice(good if (label == 1) != turned else bad)
                words += ["not"] if turned else []
            words.append(str(word))
        examples.append(Example(" ".join(words), label))
    return examples


def record(examples: list[Example], epochs: int) -> list[torch.Tensor]:
    """Train a classifier; return the [CLS] vectors of all texts before the first epoch and after each.

    Shapes:
        returns: each (point, d_model)
    """
    tokenizer = Tokenizer.train("wordpiece", [e.text for e in examples], vocab_size=CONFIG.vocab_size, lowercase=True)
    config = replace(CONFIG, vocab_size=tokenizer.vocab_size)
    rows = [[CLS_ID, *row[: config.max_len - 2].tolist(), SEP_ID] for row in encode_rows(tokenizer, examples)]
    labels = torch.tensor([example.label for example in examples])

    def batches(epoch: int) -> Iterator[LabelledBatch]:
        for places in bucketed([len(row) for row in rows], BATCH, np.random.default_rng((0, epoch))):
            yield LabelledBatch(padded([rows[place] for place in places], PAD_ID), labels[places])

    torch.manual_seed(0)
    steps = -(-len(rows) // BATCH)
    run = Run(
        Classifier(config), classification, batches, steps_per_epoch=steps, config=replace(TRAINING, epochs=epochs)
    )
    frames, ids = [], padded(rows, PAD_ID)

    @torch.inference_mode()
    def look() -> None:
        run.model.eval()
        frames.append(torch.cat([run.model.encoder(part)[:, 0] for part in ids.split(100)]).clone())

    look()
    for step in run.steps():
        if step.step % steps == 0:
            look()
            print(f"epoch {step.epoch + 1}: loss {step.loss:.3f} nats", flush=True)
    return frames


def film_of(frames: list[torch.Tensor], pictures: list[torch.Tensor], seconds: list[float]) -> Film:
    """Measure pictures."""
    trust = [trustworthiness(x, xy) for x, xy in zip(frames, pictures, strict=True)]
    return Film(seconds, trust, [displacement(after, before) for before, after in itertools.pairwise(pictures)])


def ours(frames: list[torch.Tensor], rounds: int) -> dict[str, Film]:
    """Draw all frames by every method of ours, several times; a frame's seconds are its best of them."""
    parts = [place % 2 for place in range(len(frames[0]))], [False] * len(frames[0])
    seconds = []
    for _ in range(rounds):
        sequence, drawn, times = LayoutSequence(), [], []
        for x in frames:
            start = time.perf_counter()
            drawn.append(sequence.add(x, *parts))
            times.append(time.perf_counter() - start)
        seconds.append(times)
    best = [min(times) for times in zip(*seconds, strict=True)]

    films = {}
    for method in drawn[0]:
        pictures = [torch.from_numpy(layouts[method].xy) for layouts in drawn]
        films[method] = film_of(frames, pictures, best)
    return films


def refitted(frames: list[torch.Tensor]) -> tuple[Film, Film] | None:
    """Draw every frame afresh with scikit-learn, where it is installed.

    Returns:
        The film as drawn, and the film with each frame turned and mirrored onto the one before.
    """
    try:
        from sklearn.manifold import TSNE
    except ImportError:
        return None
    seconds, drawn, turned = [], [], []
    for x in frames:
        start = time.perf_counter()
        xy = TSNE(init="pca", random_state=0).fit_transform(x.numpy())
        seconds.append(time.perf_counter() - start)
        drawn.append(normalised(torch.from_numpy(xy)))
        turned.append(turned_onto(drawn[-1], turned[-1]) if turned else drawn[-1])
    return film_of(frames, drawn, seconds), film_of(frames, turned, seconds)


def show(title: str, film: Film) -> None:
    """Print a row: the median is over the frames after the first, of which a run consists."""
    print(
        f"{title:42} {statistics.median(film.seconds[1:]):7.3f} s {max(film.seconds):7.3f} s"
        f" {statistics.mean(film.trust):6.3f} {min(film.trust):6.3f} {statistics.mean(film.moves):6.3f}",
        flush=True,
    )


def judge(title: str, measured: float, sign: str, limit: float) -> bool:
    """Print a goal; return whether it was met."""
    met = measured <= limit if sign == "<=" else measured >= limit
    print(f"{title:70} {measured:6.3f} {sign} {limit:5.3f} {'ok' if met else 'MISSED'}", flush=True)
    return met


def against(peer: tuple[Film, Film], tsne: Film) -> list[bool]:
    """Print ours beside scikit-learn's, frame by frame too; return which goals were met."""
    plain, turned = peer
    show("scikit-learn, afresh", plain)
    show("scikit-learn, afresh, each frame turned", turned)
    print("frame  trust: ours, scikit-learn  moved: ours, scikit-learn, turned")
    moves = ([0.0, *film.moves] for film in (tsne, plain, turned))
    for number, row in enumerate(zip(tsne.trust, plain.trust, *moves, strict=True)):
        print(f"{number:5}  " + "  ".join(f"{value:.3f}" for value in row))
    behind = max(theirs - mine for theirs, mine in zip(plain.trust, tsne.trust, strict=True))
    moved, theirs, theirs_turned = (statistics.mean(film.moves) for film in (tsne, plain, turned))
    return [
        judge("displacement / scikit-learn", moved / theirs, "<=", MOST_OF_PEER),
        judge("displacement / scikit-learn, each frame turned", moved / theirs_turned, "<=", MOST_OF_PEER),
        judge("trustworthiness, how far below scikit-learn at worst", behind, "<=", TRUST_BELOW_PEER),
    ]


def main() -> int:
    """Print the tables; exit status 1 where a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3, help="of ours; the best counts")
    options = parser.parse_args()
    torch.set_num_threads(2)
    file = options.data and options.data / "train.csv.gz"
    examples = list(read_labelled(file, ("negative", "positive")))[:POINTS] if file else invented()
    frames = record(examples, options.epochs)
    small = [x[:SMALL_POINTS, :SMALL_WIDTH] for x in frames]
    print(f"{len(frames)} frames of {' x '.join(map(str, frames[0].shape))}")
    print(f"{'':42} {'median':>9} {'longest':>9} {'trust':>6} {'least':>6} {'moved':>6}")
    for threads in (1, 2):
        torch.set_num_threads(threads)
        whole, little = ours(frames, options.rounds), ours(small, options.rounds)
        show(f"t-SNE, PCA and measures, {threads} threads", whole["tsne"])
        show(f"the same, {SMALL_POINTS} x {SMALL_WIDTH}", little["tsne"])
    tsne, few = whole["tsne"], little["tsne"]
    show("PCA (its time is in the above)", whole["pca"])
    peer = refitted(frames)
    met = [] if peer is None else against(peer, tsne)
    met += [
        judge("seconds a frame", statistics.median(tsne.seconds[1:]), "<=", MOST_SECONDS),
        judge("seconds a small frame", statistics.median(few.seconds[1:]), "<=", MOST_SECONDS_SMALL),
        judge("trustworthiness", statistics.mean(tsne.trust), ">=", LEAST_TRUST),
    ]
    print(f"{sum(met)} of {len(met)} goals met{'' if peer else '; scikit-learn is not installed'}")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
