"""From a trained model to its bundle: written in float16, measured as it is on disk, with its cards.

All cards have one form (Mitchell et al. 2019, model cards): a table of facts, and sections of Markdown. Each is written
in English and in Chinese with the same figures.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

import torch

from transformer_core.bundle import Bundle, save
from transformer_core.checkpoints import load
from transformer_core.config import ModelConfig
from transformer_core.evaluation.weak_sides import measure_beside
from transformer_core.examples import Example
from transformer_core.generation import sample
from transformer_core.measured import Measured, Trained
from transformer_core.models import Gpt
from transformer_core.models.recurrent import RecurrentConfig, RecurrentLm, RecurrentLmConfig
from transformer_core.recipes.wording import Say, template
from transformer_core.training.config import TrainConfig
from transformer_core.untrusted.bundle_files import WEIGHTS

M = TypeVar("M")


@dataclass(frozen=True, eq=False)
class OnDisk(Generic[M]):
    """A bundle as it is on disk, with its measures.

    Args:
        bundle: read back from the folder.
        measured: the measures of it.
        megabytes: of the weights on disk, in units of 1,000,000 bytes.
    """

    bundle: Bundle
    measured: M
    megabytes: float


SCHEDULES = {
    "cosine": template("cosine schedule"),
    "constant": template("constant schedule"),
    "noam": template("noam schedule"),
}
POSITIONS = {
    "sinusoidal": template("sinusoidal positions"),
    "sinusoidal_doubled": template("sinusoidal_doubled positions"),
    "learned": template("learned positions"),
    "rotary": template("rotary positions"),
    "alibi": template("alibi positions"),
    "none": template("none positions"),
}
TOKENIZERS = {
    "word": template("word"),
    "wordpiece": template("wordpiece"),
    "bpe": template("bpe"),
    "character": template("character"),
}
ALIGNMENTS = {"additive": template("additive"), "dot_product": template("dot_product"), None: template("none")}
NORMS = {"pre": template("pre-norm"), "post": template("post-norm")}
CORES = re.compile(r"(\d+) cores")


def describe_training(trained: Trained, config: TrainConfig, say: Say, *, batch: str, dropout: float) -> str:
    """Return in words how a model was trained; `batch` says what a batch holds, such as "96 pairs"."""
    smoothing = say(", label smoothing {share:g}", share=config.label_smoothing) if config.label_smoothing else ""
    return say(
        "{steps:,} steps of {batch}, {optimizer}, learning rate {rate:g}, {schedule}, weight decay {decay:g}, dropout "
        "{dropout:g}{smoothing}{precision}, seed {seed}",
        steps=trained.steps,
        batch=batch,
        optimizer=config.optimizer,
        rate=config.learning_rate,
        schedule=say(SCHEDULES[config.schedule]),
        decay=config.weight_decay,
        dropout=dropout,
        smoothing=smoothing,
        precision=say(", {precision}", precision=trained.precision) if trained.precision else "",
        seed=config.seed,
    )


def describe_cost(trained: Trained, say: Say) -> str:
    """Return in words what a training took, all stages together."""
    device = CORES.sub(lambda cores: say("{count} cores", count=cores[1]), trained.device)
    if not trained.minutes:
        return say("{cpu:.0f} minutes of processor time on {device}", cpu=trained.cpu_minutes, device=device)
    return say(
        "{cpu:.0f} minutes of processor time in {minutes:.0f} minutes on {device}",
        cpu=trained.cpu_minutes,
        minutes=trained.minutes,
        device=device,
    )


def model_facts(on_disk: OnDisk, trained: Trained, say: Say) -> dict[str, str]:
    """Return the rows of a card's table on what a model is and what its training took, all stages together."""
    bundle, model = on_disk.bundle, on_disk.bundle.config
    return {
        say("cost"): describe_cost(trained, say),
        say("model"): shape_of(model, say),
        say("text"): say(
            "{kind}, {entries:,} entries; at most {longest} are read",
            kind=say(TOKENIZERS[bundle.tokenizer.kind]),
            entries=bundle.tokenizer.vocab_size,
            longest=model.max_len,
        ),
        say("size"): say(
            "{count:,} parameters, {megabytes:.1f} MB in float16",
            count=bundle.n_parameters,
            megabytes=on_disk.megabytes,
        ),
    }


def training_facts(on_disk: OnDisk, trained: Trained, config: TrainConfig, say: Say, *, batch: str) -> dict[str, str]:
    """Return the rows of a card's table that all recipes of one stage share; `batch` as in describe_training."""
    training = describe_training(trained, config, say, batch=batch, dropout=on_disk.bundle.config.dropout)
    return {say("training"): training, **model_facts(on_disk, trained, say)}


def shape_of(model: ModelConfig | RecurrentConfig | RecurrentLmConfig, say: Say) -> str:
    """Return the sizes and choices of a model in words."""
    if isinstance(model, RecurrentConfig):
        ways = say("bidirectional encoder") if model.bidirectional else say("encoder")
        return say(
            "{unit} {ways} and decoder, d_hidden {d_hidden}, d_model {d_model}, attention: {attention}",
            **(vars(model) | {"ways": ways, "attention": say(ALIGNMENTS[model.attention])}),
        )
    if isinstance(model, RecurrentLmConfig):
        return say("{unit}, one layer, d_hidden {d_hidden}, d_model {d_model}", **vars(model))
    names = {"positions": say(POSITIONS[model.positions]), "norm_order": say(NORMS[model.norm_order])}
    return say(
        "{n_layers} layers, {n_heads} heads of width {d_head}, d_model {d_model}, d_ff {d_ff}, {positions}, "
        "{norm_order}",
        **(vars(model) | names),
    )


def write_card(
    bundle: Bundle, title: str, introduction: str, facts: Mapping[str, str], sections: Mapping[str, str]
) -> str:
    """Return a card's Markdown: the bundle's name, a title, a sentence, a table of facts, and sections by heading."""
    rows = "\n".join(f"| {name} | {fact} |" for name, fact in facts.items())
    parts = "\n\n".join(f"## {heading}\n\n{text.strip()}" for heading, text in sections.items())
    return f"# {bundle.name}: {title}\n\n{introduction}\n\n| | |\n|---|---|\n{rows}\n\n{parts}\n"


def commands(bundle: Bundle, how: str, *files: str) -> str:
    """Return a sentence on how to measure a bundle again, and the command for each of the files that it names."""
    folder = f"assets/checkpoints/{bundle.name}"
    return f"{how}\n\n" + "\n".join(f"    python -m transformer_core.evaluation {folder} {file}" for file in files)


def list_of(lines: list[str]) -> str:
    """Return lines as a Markdown list."""
    return "\n".join(f"- {line}" for line in lines)


def write_bundle(
    bundle: Bundle,
    folder: Path,
    measure: Callable[[Bundle], M],
    card: Callable[[OnDisk[M], Say], str],
    trained: Sequence[Trained],
    weak_sides: Callable[[Bundle], Measured],
) -> OnDisk[M]:
    """Write a bundle in float16, measure it as it is on disk, and write its cards.

    Args:
        bundle: the trained model with its tokenizer.
        folder: where to write.
        measure: from a bundle to its measures.
        card: from the bundle on disk, its measures and the sentences of a language to the card's Markdown.
        trained: what each stage of training took, for its measured.json.
        weak_sides: from the bundle on disk to what else its measured.json holds.
    """
    save(replace(bundle, measured=Measured(trained=tuple(trained))), folder, dtype=torch.float16)
    read_back = load(folder, device="cpu")
    megabytes = (folder / WEIGHTS).stat().st_size / 1e6
    on_disk = OnDisk(read_back, measure(read_back), megabytes)
    measured = replace(weak_sides(read_back), trained=tuple(trained))
    cards = {"card": card(on_disk, Say("en")), "card_zh": card(on_disk, Say("zh"))}
    save(replace(read_back, measured=measured, **cards), folder, dtype=torch.float16)
    return on_disk


def usual_on(*data: tuple[str, str, Sequence[str]], learned: Iterable[str] = ()) -> Callable[[Bundle], Measured]:
    """Return a function that measures how strange texts usually are to a bundle.

    Args:
        data: of each its name, unit and texts.
        learned: as of measure_beside.
    """

    def measure(bundle: Bundle) -> Measured:
        rows = [(name, unit, [Example(text, 0) for text in texts if text.strip()]) for name, unit, texts in data]
        return measure_beside(bundle, rows, learned=learned)

    return measure


def written_on(bundle: Bundle, beginning: str, *, most: int, seed: int) -> str:
    """Return a beginning and the tokens that a language model samples after it, at temperature 1 with this seed."""
    assert isinstance(bundle.model, Gpt | RecurrentLm)
    token_ids = torch.tensor([bundle.tokenizer.encode(beginning).ids])
    generator = torch.Generator().manual_seed(seed)
    steps = sample(bundle.model, token_ids, most=most, generator=generator)
    return beginning + bundle.tokenizer.decode([step.token_id for step in steps])
