"""From a trained model to its bundle: written in float16, measured as it is on disk, with its card.

All cards have one form (Mitchell et al. 2019, model cards): a table of facts, and sections of Markdown.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

import torch

from transformer_core.bundle import Bundle, save
from transformer_core.bundle_files import WEIGHTS
from transformer_core.checkpoints import load
from transformer_core.config import ModelConfig
from transformer_core.evaluation.weak_sides import measure_beside
from transformer_core.generation import sample
from transformer_core.measured import Measured, Trained
from transformer_core.models import Gpt
from transformer_core.models.recurrent import RecurrentConfig, RecurrentLm, RecurrentLmConfig
from transformer_core.training.config import TrainConfig
from transformer_core.training.examples import Example

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


def describe_training(trained: Trained, config: TrainConfig, *, batch: str, dropout: float) -> str:
    """Return in words how a model was trained; `batch` says what a batch holds, such as "96 pairs"."""
    smoothing = f", label smoothing {config.label_smoothing:g}" if config.label_smoothing else ""
    return (
        f"{trained.steps:,} steps of {batch}, {config.optimizer}, learning rate {config.learning_rate:g}, "
        f"{config.schedule} schedule, weight decay {config.weight_decay:g}, dropout {dropout:g}{smoothing}, "
        f"{trained.precision}, seed {config.seed}"
    )


def model_facts(on_disk: OnDisk, trained: Trained) -> dict[str, str]:
    """Return the rows of a card's table on what a model is and what its training took, all stages together."""
    bundle, model = on_disk.bundle, on_disk.bundle.config
    return {
        "cost": f"{trained.cpu_minutes:.0f} minutes of processor time in {trained.minutes:.0f} minutes on "
        f"{trained.device}",
        "model": shape_of(model),
        "text": f"{bundle.tokenizer.kind}, {bundle.tokenizer.vocab_size:,} entries; at most {model.max_len} are read",
        "size": f"{bundle.n_parameters:,} parameters, {on_disk.megabytes:.1f} MB in float16",
    }


def training_facts(on_disk: OnDisk, trained: Trained, config: TrainConfig, *, batch: str) -> dict[str, str]:
    """Return the rows of a card's table that all recipes of one stage share; `batch` as in describe_training."""
    training = describe_training(trained, config, batch=batch, dropout=on_disk.bundle.config.dropout)
    return {"training": training, **model_facts(on_disk, trained)}


def shape_of(model: ModelConfig | RecurrentConfig | RecurrentLmConfig) -> str:
    """Return the sizes and choices of a model in words."""
    if isinstance(model, RecurrentConfig):
        ways = "bidirectional encoder" if model.bidirectional else "encoder"
        return (
            f"{model.unit} {ways} and decoder, d_hidden {model.d_hidden}, d_model {model.d_model}, "
            f"attention: {model.attention or 'none'}"
        )
    if isinstance(model, RecurrentLmConfig):
        return f"{model.unit}, one layer, d_hidden {model.d_hidden}, d_model {model.d_model}"
    return (
        f"{model.n_layers} layers, {model.n_heads} heads of width {model.d_head}, d_model {model.d_model}, "
        f"d_ff {model.d_ff}, {model.positions} positions, {model.norm_order}-norm"
    )


def write_card(title: str, introduction: str, facts: Mapping[str, str], sections: Mapping[str, str]) -> str:
    """Return a card's Markdown: a title, a sentence, a table of facts, and sections by their heading."""
    rows = "\n".join(f"| {name} | {fact} |" for name, fact in facts.items())
    parts = "\n\n".join(f"## {heading}\n\n{text.strip()}" for heading, text in sections.items())
    return f"# {title}\n\n{introduction}\n\n| | |\n|---|---|\n{rows}\n\n{parts}\n"


def list_of(lines: list[str]) -> str:
    """Return lines as a Markdown list."""
    return "\n".join(f"- {line}" for line in lines)


def write_bundle(
    bundle: Bundle,
    folder: Path,
    measure: Callable[[Bundle], M],
    card: Callable[[OnDisk[M]], str],
    trained: Sequence[Trained],
    weak_sides: Callable[[Bundle], Measured],
) -> OnDisk[M]:
    """Write a bundle in float16, measure it as it is on disk, and write its card.

    Args:
        bundle: the trained model with its tokenizer.
        folder: where to write.
        measure: from a bundle to its measures.
        card: from the bundle on disk and its measures to the card's Markdown.
        trained: what each stage of training took, for its measured.json.
        weak_sides: from the bundle on disk to what else its measured.json holds.
    """
    save(replace(bundle, measured=Measured(trained=tuple(trained))), folder, dtype=torch.float16)
    read_back = load(folder, device="cpu")
    megabytes = (folder / WEIGHTS).stat().st_size / 1e6
    on_disk = OnDisk(read_back, measure(read_back), megabytes)
    measured = replace(weak_sides(read_back), trained=tuple(trained))
    save(replace(read_back, card=card(on_disk), measured=measured), folder, dtype=torch.float16)
    return on_disk


def usual_on(*data: tuple[str, str, Sequence[str]]) -> Callable[[Bundle], Measured]:
    """Return a function that measures how strange texts usually are to a bundle; of data its name, unit and texts."""

    def measure(bundle: Bundle) -> Measured:
        rows = [(name, unit, [Example(text, 0) for text in texts if text.strip()]) for name, unit, texts in data]
        return measure_beside(bundle, rows)

    return measure


def written_on(bundle: Bundle, beginning: str, *, most: int, seed: int) -> str:
    """Return a beginning and the tokens that a language model samples after it, at temperature 1 with this seed."""
    assert isinstance(bundle.model, Gpt | RecurrentLm)
    token_ids = torch.tensor([bundle.tokenizer.encode(beginning).ids])
    generator = torch.Generator().manual_seed(seed)
    steps = sample(bundle.model, token_ids, most=most, generator=generator)
    return beginning + bundle.tokenizer.decode([step.token_id for step in steps])
