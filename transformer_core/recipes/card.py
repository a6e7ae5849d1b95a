"""What the cards of all shipped bundles share: a table of facts, and sections of Markdown.

Form: Mitchell et al. 2019 (model cards). Read next: translation.py.
"""

from collections.abc import Mapping

from transformer_core.bundle import Bundle
from transformer_core.config import ModelConfig
from transformer_core.models.recurrent import RecurrentConfig
from transformer_core.recipes.command import Trained
from transformer_core.training.config import TrainConfig


def describe_training(trained: Trained, config: TrainConfig, *, batch: str, dropout: float) -> str:
    """Return in words how a model was trained; `batch` says what a step sees."""
    smoothing = f", label smoothing {config.label_smoothing:g}" if config.label_smoothing else ""
    return (
        f"{trained.steps:,} steps of {batch}, {config.optimizer}, learning rate {config.learning_rate:g}, "
        f"{config.schedule} schedule, weight decay {config.weight_decay:g}, dropout {dropout:g}{smoothing}, "
        f"{config.precision}, seed {config.seed}"
    )


def model_facts(bundle: Bundle, trained: Trained, *, megabytes: float) -> dict[str, str]:
    """Return the rows of a card's table on what a model is and cost.

    Args:
        bundle: as it lies on disk.
        trained: what training cost, all stages together.
        megabytes: of the weights on disk, in units of 1,000,000 bytes.
    """
    model = bundle.config
    return {
        "cost": f"{trained.cpu_minutes:.0f} minutes of processor time ({trained.device})",
        "model": shape_of(model),
        "text": f"{bundle.tokenizer.kind}, {bundle.tokenizer.vocab_size:,} entries; at most {model.max_len} are read",
        "size": f"{bundle.n_parameters:,} parameters, {megabytes:.1f} MB in float16",
    }


def training_facts(
    bundle: Bundle, trained: Trained, config: TrainConfig, *, batch: str, megabytes: float
) -> dict[str, str]:
    """Return the rows of a card's table that every recipe of one stage can fill in; describe_training has `batch`."""
    training = describe_training(trained, config, batch=batch, dropout=bundle.config.dropout)
    return {"training": training, **model_facts(bundle, trained, megabytes=megabytes)}


def shape_of(model: ModelConfig | RecurrentConfig) -> str:
    """Return the sizes and choices that tell a model from others of its kind, in words."""
    if isinstance(model, RecurrentConfig):
        ways = "bidirectional encoder" if model.bidirectional else "encoder"
        return (
            f"{model.unit} {ways} and decoder, d_hidden {model.d_hidden}, d_model {model.d_model}, "
            f"attention: {model.attention or 'none'}"
        )
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
