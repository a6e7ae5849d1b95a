"""Training without the mask: two small GPTs learn the same text from the same seed, with the causal mask and without.

Without the mask, the word to be guessed stands one place to the right, in plain sight. Vaswani et al. 2017, section
3.2.3: the mask ensures "that the predictions for position i can depend only on the known outputs at positions less
than i".
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from transformer_core.analysis.short_training import characters_of_passage
from transformer_core.config import ModelConfig, require_range
from transformer_core.generation import sample
from transformer_core.layers.masks import causal_mask
from transformer_core.models import Gpt
from transformer_core.progress import counted
from transformer_core.text import Tokenizer
from transformer_core.training.batching import even_windows, random_windows
from transformer_core.training.config import TrainConfig
from transformer_core.training.corpora.grammar import Language
from transformer_core.training.loop import Run
from transformer_core.training.objectives import next_words, word_loss

WIDTH = 32
BATCH = 16
WINDOWS = 24
MEASURES = 12
PROMPT = 16
MOST_STEPS = 400
TEMPERATURE = 0.8
LENGTH = 60
SIZES = {"d_model": 64, "n_heads": 4, "d_ff": 128, "n_layers": 2, "dropout": 0.0, "positions": "rotary"}


@dataclass(frozen=True, eq=False)
class Learner:
    """One run.

    Shapes:
        loss: (step,); held_out, held_out_masked: (measure,)

    Args:
        loss: of each step's batch, in nats per token.
        held_out: loss on text never trained on, the model reading as it was trained to.
        held_out_masked: the same with the causal mask put on, which is how a model must write.
        written: what it writes after the prompt, one token at a time.
    """

    loss: np.ndarray
    held_out: np.ndarray
    held_out_masked: np.ndarray
    written: str


@dataclass(frozen=True, eq=False)
class Cheating:
    """Both runs.

    Args:
        honest, cheater: with and without the causal mask; all else is the same.
        measured_at: the steps after which the held-out text was read.
        prompt: what both continue; it is held out.
        truth: how the text really goes on.
        guessing: nats per token of guessing all of the vocabulary alike.
        parameters: weights in each model.
    """

    honest: Learner
    cheater: Learner
    measured_at: tuple[int, ...]
    prompt: str
    truth: str
    guessing: float
    parameters: int


def mask_cheating(*, language: Language, steps: int, seed: int) -> Cheating:
    """Train both on the built-in text, one after the other.

    Args:
        language: of the text.
        steps: of each run.
        seed: of the weights at the start, the batches and what is written.

    Raises:
        ValueError: steps or language is out of range.
    """
    require_range("steps", steps, MEASURES, MOST_STEPS)
    tokenizer, text, rest = characters_of_passage(language)
    learned, held_out = (torch.tensor(tokenizer.encode(part).ids) for part in (text, rest))
    measured_at = tuple(round(steps * (k + 1) / MEASURES) for k in range(MEASURES))
    config = ModelConfig(vocab_size=tokenizer.vocab_size, max_len=WIDTH, **SIZES)
    start = rest.find(" ", 1) + 1 if language == "en" else 0
    prompt, truth = rest[start : start + PROMPT], rest[start + PROMPT : start + PROMPT + LENGTH].replace("\n", " ")

    def learn(causal: bool) -> tuple[Learner, int]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = Gpt(replace(config, causal=causal))
        losses, measures = _train(model, learned, held_out, steps, seed, measured_at)
        written = _write(model, tokenizer, prompt, seed)
        as_trained, masked = np.array(measures).T  # (measure,)
        learner = Learner(np.array(losses), as_trained, masked, written)
        return learner, sum(parameter.numel() for parameter in model.parameters())

    (honest, size), (cheater, _) = (learn(causal) for causal in counted((True, False)))
    return Cheating(honest, cheater, measured_at, prompt, truth, math.log(tokenizer.vocab_size), size)


def _train(
    model: Gpt, learned: Tensor, held_out: Tensor, steps: int, seed: int, measured_at: tuple[int, ...]
) -> tuple[list[float], list[tuple[float, float]]]:
    batches = random_windows(learned, WIDTH, BATCH, steps=steps, seed=seed)
    settings = TrainConfig(learning_rate=6e-3, batch_size=BATCH, seed=seed)
    run = Run(model, next_words, batches, steps_per_epoch=steps, config=settings)
    losses, measures = [], []
    for step in run.steps():
        losses.append(step.loss)
        if step.step in measured_at:
            measures.append(_measure(model, held_out))
    return losses, measures


@torch.inference_mode()
def _measure(model: Gpt, held_out: Tensor) -> tuple[float, float]:
    """Return the loss on windows of held-out text, read as the model does, and with the causal mask."""
    windows = even_windows(held_out, WIDTH, WINDOWS)  # (window, pos)
    model.eval()
    as_trained = word_loss(model(windows[:, :-1]), windows[:, 1:])
    masked = word_loss(model(windows[:, :-1], mask=causal_mask(WIDTH)), windows[:, 1:])
    return float(as_trained), float(masked)


def _write(model: Gpt, tokenizer: Tokenizer, prompt: str, seed: int) -> str:
    model.eval()
    ids = torch.tensor([tokenizer.encode(prompt).ids])
    generator = torch.Generator().manual_seed(seed)
    steps = sample(model, ids, most=LENGTH, temperature=TEMPERATURE, generator=generator)
    return tokenizer.decode([step.token_id for step in steps]).replace("\n", " ")
