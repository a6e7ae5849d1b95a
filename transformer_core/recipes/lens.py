"""Tuned lenses: `python -m transformer_core.recipes.lens [MODEL] --data DIR` trains one and adds it to the bundle.

Belrose et al. 2023, section 3: for each stage one affine map, trained so that what the model's own output reads there
is near the distribution that it ends with (KL divergence); the model itself is not changed. Departure: AdamW in place
of SGD with momentum. It takes 1 to 10 minutes of one core, by the sizes of the model and of its vocabulary.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.lens import THROUGH, divergence, read_out
from transformer_core.bundle import Bundle, save
from transformer_core.checkpoints import load
from transformer_core.evaluation.gpt import poem_rows, read_text
from transformer_core.evaluation.translation import read_lines
from transformer_core.layers.tuned_lens import TunedLens
from transformer_core.measured import LensStage, Trained
from transformer_core.probe import capture
from transformer_core.recipes import gpt_poem
from transformer_core.recipes.captions import NEEDS, Sentences, find_file, read_captions, read_sentences, read_stories
from transformer_core.recipes.card import describe_cost
from transformer_core.recipes.command import command_of, recipe_parser, run_command, train, trained_before
from transformer_core.recipes.gpt import BETWEEN_TEXTS, written_together
from transformer_core.recipes.lm import DATA_FILES
from transformer_core.recipes.texts import Say, data_name
from transformer_core.shares import ratio_bounds
from transformer_core.training.batching import padded
from transformer_core.training.config import TrainConfig
from transformer_core.training.objectives import mask_words
from transformer_core.training.tasks.characters import parts_of
from transformer_core.untrusted.bundle_files import LENS

STAGE = "lens"
HIDE = 0.15
TOKENS_A_STEP = 1_024  # whose distributions are compared; all tokens of the batch are read
TRAINING = TrainConfig(learning_rate=1e-3, warm_up=0.05, weight_decay=1e-3, batch_size=16)
SENTENCES_A_STEP = 64  # of a BERT, which answers at hidden tokens alone
STEPS, QUICK_STEPS = 400, 4
MOST_HELD_OUT, MOST_SENTENCES, AT_ONCE = 320, 2_560, 16
Rows = list[list[int]]


@dataclass(frozen=True)
class Texts:
    """Rows of token ids to learn from, and rows that are set aside; data is the name of both."""

    learned: Rows
    held_out: Rows
    data: str


def _windows(bundle: Bundle, text: str) -> Rows:
    """Cut a text into windows of as many tokens as the model reads; what is left at the end is dropped."""
    width, ids = bundle.config.max_len, list(bundle.tokenizer.encode(text).ids)
    return [ids[start : start + width] for start in range(0, len(ids) - width + 1, width)]


def _stories(bundle: Bundle, chosen: argparse.Namespace) -> Texts:
    captions = [caption for picture in read_captions(chosen.data) for caption in picture]
    text = written_together(read_stories(chosen.data), captions, chosen.seed)
    aside = [BETWEEN_TEXTS.join(read_stories(chosen.data, "tinystories.val.jsonl.gz"))]
    aside += ["\n".join(read_lines(find_file(chosen.data, "captions.val.en.gz")))]
    held_out = [row for part in aside for row in _windows(bundle, part)]
    return Texts(_windows(bundle, text), held_out, "TinyStories and Multi30k")


def _characters(bundle: Bundle, chosen: argparse.Namespace) -> Texts:
    learned, aside = parts_of(read_text(find_file(chosen.data, *DATA_FILES)))
    return Texts(_windows(bundle, learned), _windows(bundle, aside), "Tiny Shakespeare")


def _poems(bundle: Bundle, chosen: argparse.Namespace) -> Texts:
    learned, aside = (gpt_poem.read_poems(chosen.data, name) for name in (gpt_poem.TRAIN, gpt_poem.TEST))
    parts = (poem_rows(bundle.tokenizer, poems) for poems in (learned[: -gpt_poem.POEMS_FOR_CHOICE], aside))
    own, others = ([row[:-1] for row in rows] for rows in parts)  # after [EOS] nothing comes
    return Texts(own, others, "poems of the Tang")


def _sentences(bundle: Bundle, chosen: argparse.Namespace) -> Texts:
    def rows(part: Sentences) -> Rows:
        texts = [sentence for group in (*part.pictures, *part.stories) for sentence in group]
        return [list(ids) for ids in bundle.tokenizer.ids_of(texts, max_len=bundle.config.max_len)]

    learned, aside = map(rows, read_sentences(chosen.data))
    return Texts(learned, aside, "TinyStories and Multi30k")


MODELS: dict[str, Callable[[Bundle, argparse.Namespace], Texts]] = {
    **dict.fromkeys(("gpt", "gpt-today", "gpt-draft"), _stories),
    "gpt-char": _characters,
    "gpt-poem": _poems,
    "bert": _sentences,
}


def read_stages(bundle: Bundle, token_ids: Tensor, *, most: int | None = None) -> tuple[list[Tensor], Tensor, Tensor]:
    """Read a batch, and return the residual stream at every stage where something is answered.

    A GPT answers after each token; a BERT where a token is hidden, which is drawn here.

    Shapes:
        token_ids: (batch, pos)
        returns: the stream of each stage, (token, d_model); the model's log-probabilities, (token, vocab); and the row
            of the batch that each token stands in, (token,)

    Args:
        most: at most so many tokens, drawn at random; by default all.
    """
    answered = token_ids != bundle.config.padding  # (batch, pos)
    if bundle.kind == "bert":
        token_ids, answered = mask_words(token_ids, bundle.config.vocab_size, probability=HIDE)
    sites = bundle.reader.stages
    with torch.no_grad():
        _, trace = capture(bundle.model, token_ids, sites=sites)
        rows, places = answered.nonzero(as_tuple=True)
        if most is not None and len(rows) > most:
            drawn = torch.randperm(len(rows))[:most].to(rows.device)
            rows, places = rows[drawn], places[drawn]
        streams = [trace[site][rows, places] for site in sites]
        own = read_out(bundle, streams[-1], len(sites) - 1).log_softmax(-1)
    return streams, own, rows


def distance(lens: TunedLens, token_ids: Tensor, *, bundle: Bundle) -> Tensor:
    """Return how far what is read at each stage is from the model's distribution, in nats, summed over the stages."""
    streams, own, _ = read_stages(bundle, token_ids, most=TOKENS_A_STEP)
    tuned = replace(bundle, lens=lens)
    found = [divergence(own, read_out(tuned, x, stage, "tuned")) for stage, x in enumerate(streams[:-1])]
    return torch.stack(found).mean(-1).sum()


def batches(rows: Rows, config: TrainConfig, padding: int, steps: int, epoch: int) -> Iterator[Tensor]:
    """Yield batches (batch, pos) of rows that are drawn at random; the same epoch gives the same ones."""
    rng = np.random.default_rng((config.seed, epoch))
    for _ in range(steps):
        yield padded([rows[place] for place in rng.integers(len(rows), size=config.batch_size)], padding)


@torch.inference_mode()
def measure_lens(bundle: Bundle, rows: Sequence[Sequence[int]], data: str) -> tuple[LensStage, ...]:
    """Measure at each stage but the last how far both lenses are from the model's own answer, on held-out rows.

    Rows and, for a BERT, hidden tokens are drawn with seed 0; intervals are of resampled rows.
    """
    most = MOST_SENTENCES if bundle.kind == "bert" else MOST_HELD_OUT
    drawn = np.random.default_rng(0).permutation(len(rows))[:most]
    sums, counts = [], []
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        for start in range(0, len(drawn), AT_ONCE):
            batch = padded([rows[place] for place in drawn[start : start + AT_ONCE]], bundle.config.padding)
            streams, own, of = read_stages(bundle, batch)
            found = [
                torch.stack([divergence(own, read_out(bundle, x, stage, way)) for way in THROUGH])
                for stage, x in enumerate(streams[:-1])
            ]
            nats = torch.stack(found).double().permute(2, 0, 1)  # (token, stage, lens)
            sums.append(torch.zeros(len(batch), *nats.shape[1:], dtype=torch.double).index_add_(0, of, nats))
            counts.append(torch.bincount(of, minlength=len(batch)))
    total, count = torch.cat(sums).numpy(), torch.cat(counts).numpy()  # (row, stage, lens), (row,)
    low, high = ratio_bounds(total[..., 1] - total[..., 0], count)
    means = total.sum(0) / count.sum()  # (stage, lens)
    tokens, texts = int(count.sum()), int((count > 0).sum())
    numbers = np.concatenate([means.T, low[None], high[None]]).T.round(4).tolist()  # of each stage
    return tuple(
        LensStage(data, stage, logit, tuned, low, high, tokens, texts)
        for stage, (logit, tuned, low, high) in enumerate(numbers)
    )


def _with_lens(card: str, bundle: Bundle, say: Say, *, trained: Trained, **values: object) -> str:
    """Return a card with what it says of the lens at its end, in place of what it said before."""
    heading, rows = say("lens.heading"), bundle.measured.lens
    assert bundle.lens is not None
    places = [say("lens.layer" if row.stage else "lens.embedding", layer=row.stage - 1) for row in rows]
    section = say(
        "lens",
        heading=heading,
        cost=describe_cost(trained, say),
        steps=trained.steps,
        parameters=sum(parameter.numel() for parameter in bundle.lens.parameters()),
        measured=rows[0],
        data=data_name(rows[0].data, say.language),
        width=bundle.config.max_len,
        answered=say(f"lens.{bundle.kind}", share=HIDE),
        stages="\n".join(
            say("lens.stage", place=place, row=row, change=row.tuned - row.logit)
            for place, row in zip(places, rows, strict=True)
        ),
        **values,
    )
    return f"{card.partition(heading)[0].rstrip()}\n\n{section}\n"


def run_recipe(chosen: argparse.Namespace) -> str:
    """Carry out the command line and return its result in words; the bundle has its lens afterwards.

    Raises:
        ValueError: the bundle or the data cannot be read, or the files of an interrupted run do not fit.
    """
    torch.set_num_threads(1)
    chosen.out, chosen.work = (Path(str(path).replace("MODEL", chosen.model)) for path in (chosen.out, chosen.work))
    bundle = load(chosen.out, device=chosen.device)
    texts = MODELS[chosen.model](bundle, chosen)
    batch_size = SENTENCES_A_STEP if bundle.kind == "bert" else TRAINING.batch_size
    config = replace(TRAINING, seed=chosen.seed, batch_size=batch_size)
    if chosen.again:
        lens, trained = bundle.lens, trained_before(bundle, STAGE)
    else:
        steps = QUICK_STEPS if chosen.quick else STEPS
        lens, trained = train(
            lambda: TunedLens(bundle.config),
            partial(distance, bundle=bundle),
            partial(batches, texts.learned, config, bundle.config.padding, steps),
            steps_per_epoch=steps,
            config=config,
            device=torch.device("cpu"),
            chosen=chosen,
            stage=STAGE,
        )
    others = tuple(row for row in bundle.measured.trained if row.stage != STAGE)
    measured = replace(bundle.measured, trained=(*others, trained))
    save(replace(bundle, lens=lens, measured=measured), chosen.out, dtype=torch.float16)
    bundle = load(chosen.out, device=chosen.device)  # as it is in float16
    held_out = texts.held_out[:AT_ONCE] if chosen.quick else texts.held_out
    bundle = replace(bundle, measured=replace(measured, lens=measure_lens(bundle, held_out, texts.data)))
    said = {"recipe": command_of(f"lens {chosen.model}", chosen), "config": config, "rows": len(texts.learned)}
    card, card_zh = (
        _with_lens(card, bundle, Say(language), trained=trained, **said)
        for language, card in (("en", bundle.card), ("zh", bundle.card_zh))
    )
    save(replace(bundle, card=card, card_zh=card_zh), chosen.out, dtype=torch.float16)
    stages = "; ".join(f"{row.logit:.3f} -> {row.tuned:.3f}" for row in bundle.measured.lens)
    return f"{chosen.out / LENS}: held-out KL a stage in nats a token {stages}, {trained.cpu_minutes:.1f} minutes"


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, or 2 with one line on standard error."""
    parser = recipe_parser("lens", makes="a tuned lens", data=NEEDS, out="MODEL", device="cpu")
    parser.set_defaults(work=Path(".runs/lens-MODEL"))
    parser.add_argument("model", nargs="?", default="gpt", choices=MODELS, help="gpt by default")
    return run_command(parser, run_recipe, arguments)


if __name__ == "__main__":
    sys.exit(main())
