"""From a trained model to its bundle: written in float16, measured as it is on disk, with its cards.

All cards have one form (Mitchell et al. 2019, model cards), [card] of cards.en.md and cards.zh.md: a table of facts,
and sections of Markdown. Each is written in English and in Chinese with the same figures.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import torch

from transformer_core.bundle import Bundle, save
from transformer_core.checkpoints import load
from transformer_core.config import ModelConfig
from transformer_core.evaluation.weak_sides import measure_on_each
from transformer_core.examples import Example
from transformer_core.generation import sample
from transformer_core.measured import Measured, Trained
from transformer_core.models import Gpt
from transformer_core.models.recurrent import RecurrentConfig, RecurrentLm, RecurrentLmConfig
from transformer_core.recipes.texts import Say
from transformer_core.training.config import TrainConfig
from transformer_core.untrusted.bundle_files import WEIGHTS

Stages = Sequence[tuple[Trained, TrainConfig]]
Values = dict[str, Any]
CORES = re.compile(r"(\d+) cores")


def describe_training(trained: Trained, config: TrainConfig, say: Say, *, batch: str, dropout: float) -> str:
    """Return in words how a model was trained; `batch` says what a batch holds, such as "96 pairs"."""
    return say(
        "training",
        steps=trained.steps,
        batch=batch,
        config=config,
        schedule=say(f"schedule.{config.schedule}"),
        dropout=dropout,
        smoothing=say("training.smoothing", config=config) if config.label_smoothing else "",
        precision=say("training.precision", precision=trained.precision) if trained.precision else "",
    )


def describe_cost(trained: Trained, say: Say) -> str:
    """Return in words what a training took, all stages together."""
    device = CORES.sub(lambda cores: say("cost.cores", count=cores[1]), trained.device)
    return say("cost" if trained.minutes else "cost.processor", **(vars(trained) | {"device": device}))


def shape_of(model: ModelConfig | RecurrentConfig | RecurrentLmConfig, say: Say) -> str:
    """Return the sizes and choices of a model in words."""
    if isinstance(model, RecurrentConfig):
        ways = say("encoder.bidirectional" if model.bidirectional else "encoder.forward")
        attention = say(f"attention.{model.attention}")
        return say("shape.seq2seq", **(vars(model) | {"ways": ways, "attention": attention}))
    if isinstance(model, RecurrentLmConfig):
        return say("shape.recurrent", **vars(model))
    names = {"positions": say(f"positions.{model.positions}"), "norm_order": say(f"norm.{model.norm_order}")}
    shape = say("shape.transformer", **(vars(model) | names))
    since = {"kv_heads": model.kv_heads != model.n_heads, "rms_norm": model.norm == "rms_norm", "gated": model.gated}
    return "".join((shape, *(say(f"shape.{name}", **vars(model)) for name, there in since.items() if there)))


def _training_of(bundle: Bundle, kinds: Sequence[str], stages: Stages, say: Say, values: Values) -> str:
    """Return in words how a model was trained, one stage after another."""
    told = [
        describe_training(
            trained,
            config,
            say,
            batch=say.all_of(kinds, "batch", bundle=bundle, config=config, **values)[-1],
            dropout=bundle.config.dropout,
        )
        for trained, config in stages
    ]
    return reduce(lambda before, after: say("training.then", before=before, after=after), told)


def write_card(
    bundle: Bundle, say: Say, kinds: Sequence[str], trained: Trained, *, megabytes: float, recipe: str, **values: Any
) -> str:
    """Return a card's Markdown.

    Args:
        bundle: read back from the disk.
        say: the texts of a language.
        kinds: whose texts its parts are, from the most general to the model's own; of limits it has those of all.
        trained: the training's last stage.
        megabytes: of the weights on disk, in units of 1,000,000 bytes.
        recipe: the command that makes the bundle again.
        values: for the texts of the kinds, beside the bundle; `training` says in words how it was trained.
    """

    def part(name: str) -> list[str]:
        return say.all_of(kinds, name, bundle=bundle, **values)

    text = say(
        "card",
        bundle=bundle,
        megabytes=megabytes,
        recipe=recipe,
        training=values["training"],
        cost=describe_cost(trained, say),
        shape=shape_of(bundle.config, say),
        tokenizer=say(f"tokenizer.{bundle.tokenizer.kind}"),
        classes=f"\n{say('classes')}" if bundle.labels else "",
        limits="\n".join(part("limits")),
        **{name: part(name)[-1].strip() for name in ("title", "introduction", "data", "licence", "quality", "shown")},
    )
    return f"{text}\n"


def list_of(lines: Iterable[str]) -> str:
    """Return lines as a Markdown list."""
    return "\n".join(f"- {line}" for line in lines)


def write_bundle(
    bundle: Bundle,
    folder: Path,
    kinds: Sequence[str],
    stages: Stages,
    measure: Callable[[Bundle], Values],
    weak_sides: Callable[[Bundle], Measured],
    *,
    recipe: str,
    in_words: Callable[[Values, Say], Values] = lambda found, say: {},
) -> Values:
    """Write a bundle in float16, measure it as it is on disk, write its cards, and return what `measure` found.

    Args:
        bundle: the trained model with its tokenizer.
        folder: where to write.
        kinds: of the cards, as of write_card.
        stages: what each stage of training took, and how it was done.
        measure: from the bundle on disk to values for the texts of the cards.
        weak_sides: from the bundle on disk to what else its measured.json holds.
        recipe: the command that makes the bundle again.
        in_words: from those values to further ones in the words of a language; among them may be `training`.
    """
    trained = tuple(one for one, _ in stages)
    save(replace(bundle, measured=Measured(trained=trained)), folder, dtype=torch.float16)
    read_back = load(folder, device="cpu")
    found, megabytes = measure(read_back), (folder / WEIGHTS).stat().st_size / 1e6

    def card(say: Say) -> str:
        values = found | in_words(found, say)
        if "training" not in values:
            values["training"] = _training_of(read_back, kinds, stages, say, values)
        return write_card(read_back, say, kinds, trained[-1], megabytes=megabytes, recipe=recipe, **values)

    cards = {"card": card(Say("en")), "card_zh": card(Say("zh"))}
    measured = replace(weak_sides(read_back), trained=trained)
    save(replace(read_back, measured=measured, **cards), folder, dtype=torch.float16)
    return found


def typical_on(*data: tuple[str, str, Sequence[str]], learned: Iterable[str] = ()) -> Callable[[Bundle], Measured]:
    """Return a function that measures how strange texts usually are to a bundle.

    Args:
        data: of each its name, unit and texts.
        learned: as of measure_on_each.
    """

    def measure(bundle: Bundle) -> Measured:
        rows = [(name, unit, [Example(text, 0) for text in texts if text.strip()]) for name, unit, texts in data]
        return measure_on_each(bundle, rows, learned=learned)

    return measure


def samples_of(bundle: Bundle, beginnings: Iterable[str], *, most: int) -> str:
    """Return in Markdown what a language model writes after each beginning, drawn at temperature 1, seeds from 0."""
    return "\n\n".join(
        f"```text\n{_written_on(bundle, beginning, most, seed)}\n```" for seed, beginning in enumerate(beginnings)
    )


def _written_on(bundle: Bundle, beginning: str, most: int, seed: int) -> str:
    assert isinstance(bundle.model, Gpt | RecurrentLm)
    token_ids = torch.tensor([bundle.tokenizer.encode(beginning).ids])
    generator = torch.Generator().manual_seed(seed)
    steps = sample(bundle.model, token_ids, most=most, generator=generator)
    return beginning + bundle.tokenizer.decode([step.token_id for step in steps])
