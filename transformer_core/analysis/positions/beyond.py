"""Beyond the trained length: a small model of each scheme of positions learns short windows and is asked longer ones.

Press et al. 2022, section 2, show the same curve. Causal models without positions: Haviv et al. 2022.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_core.analysis.short_training import characters_of_passage
from transformer_core.analysis.timing import alone_on_one_thread
from transformer_core.config import ModelConfig, require_choice
from transformer_core.models import Gpt
from transformer_core.progress import counted
from transformer_core.text import PAD_ID, Tokenizer
from transformer_core.training.batching import even_windows, random_windows
from transformer_core.training.config import TrainConfig
from transformer_core.training.corpora import Language
from transformer_core.training.loop import Run
from transformer_core.training.objectives import next_words

SCHEMES = ("sinusoidal", "learned", "rotary", "alibi", "none")
WINDOWS_AT_ONCE = 32
STRIDE = 8  # of the places at which a model that forgets is measured


@dataclass(frozen=True)
class Course:
    """How every model of a comparison is made and trained; only positions, text, width and seed differ.

    Args:
        model: its positions, vocab_size and max_len are put in.
        training: its batch_size and seed are put in.
        characters: that a step reads: windows of half the width are twice as many.
        steps: of training.
        ends: last place of each bin of places, ascending; the last is how long a text the models are asked.
        windows: of held-out text to ask, at most.
    """

    model: ModelConfig
    training: TrainConfig
    characters: int
    steps: int
    ends: tuple[int, ...]
    windows: int


SMALL = ModelConfig(
    vocab_size=16, d_model=64, n_heads=4, d_ff=256, n_layers=2, dropout=0.1, scale_embeddings=True, pad_id=PAD_ID
)
COURSE = Course(
    model=SMALL,
    training=TrainConfig(learning_rate=3e-3, warm_up=0.05, weight_decay=0.1),
    characters=2_048,
    steps=1_500,
    ends=(8, 16, 32, 64, 96, 128, 192, 256, 384, 512),
    windows=320,
)
LIVE = replace(
    COURSE,
    model=replace(SMALL, d_model=32, d_ff=64, n_layers=1, dropout=0.0),
    training=replace(COURSE.training, learning_rate=1e-2),
    characters=1_024,
    steps=200,
    ends=(4, 8, 16, 24, 32, 48, 64, 96, 128),
    windows=128,
)
LIVE_WIDTHS = (8, 16, 32, 64)


@dataclass(frozen=True, eq=False)
class Reach:
    """What a model that learned windows of `width` characters loses at each place of longer ones.

    Shapes:
        nats: (bin,), nats a held-out character at places up to each end of the course

    Args:
        within: nats at the places that it learned.
        forgetful: nats in the last bin where the model is given the last `width` characters alone.
        learned: nats a character of the last tenth of the training steps.
    """

    nats: np.ndarray
    within: float
    forgetful: float
    learned: float


def train_short(
    tokenizer: Tokenizer, text: str, asked: str, *, scheme: str, width: int, seed: int, course: Course
) -> Reach:
    """Train one model on windows of a text and measure it on longer windows of another.

    Args:
        tokenizer: of characters, the same for all models that are compared.
        text, asked: what is learned, and what is held out.
        scheme: one of SCHEMES.
        width: characters a window in training.
        seed: of the starting weights and of the windows.

    Raises:
        ValueError: no such scheme, or a text shorter than one window.
    """
    require_choice("scheme", scheme, SCHEMES)
    longest = course.ends[-1]
    learned, held_out = (torch.tensor(tokenizer.encode(part).ids) for part in (text, asked))
    for name, ids, least in (("text", learned, width), ("asked", held_out, longest)):
        if len(ids) <= least:
            raise ValueError(f"{name}={len(ids):,} characters must be more than the {least} of a window")
    config = replace(course.model, vocab_size=tokenizer.vocab_size, target_vocab_size=None)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Gpt(replace(config, positions=scheme, max_len=longest))
    training = replace(course.training, seed=seed)
    windows = random_windows(learned, width, max(1, course.characters // width), steps=course.steps, seed=seed)
    run = Run(model, next_words, windows, steps_per_epoch=course.steps, config=training)
    losses = [step.loss for step in run.steps()]
    return _reach(model.eval(), held_out, width, course, float(np.mean(losses[-max(1, len(losses) // 10) :])))


@torch.inference_mode()
def _reach(model: Gpt, ids: Tensor, width: int, course: Course, learned: float) -> Reach:
    longest = course.ends[-1]
    windows = even_windows(ids, longest, min(course.windows, len(ids) - longest))  # (window, longest + 1)
    nats = torch.cat([_nats(model, chunk) for chunk in windows.split(WINDOWS_AT_ONCE)]).mean(0).numpy()  # (place,)
    begins = (0, *course.ends[:-1])
    bins = np.array([nats[begin:end].mean() for begin, end in zip(begins, course.ends, strict=True)])
    last = range(max(begins[-1], width), longest, STRIDE)
    short = [_nats(model, windows[:, place - width + 1 : place + 2])[:, -1].mean().item() for place in last]
    return Reach(bins, float(nats[:width].mean()), float(np.mean(short)), learned)


def _nats(model: Gpt, windows: Tensor) -> Tensor:
    """Return the loss of each character but the first, (window, place)."""
    logits = model(windows[:, :-1]).float()  # (window, place, vocab)
    return F.cross_entropy(logits.transpose(1, 2), windows[:, 1:], reduction="none")


@dataclass(frozen=True, eq=False)
class Beyond:
    """A comparison: one run a scheme and seed, on windows of one width.

    Shapes:
        seeds, within, forgetful, learned: (run,); nats: (run, bin); ends: (bin,)

    Args:
        schemes: of each run, one of SCHEMES.
        width: characters a window in training.
        learned, within, forgetful, nats: as in Reach.
        characters: of the text that was learned.
        steps: of each training.
    """

    schemes: tuple[str, ...]
    width: int
    characters: int
    steps: int
    seeds: np.ndarray
    ends: np.ndarray
    nats: np.ndarray
    within: np.ndarray
    forgetful: np.ndarray
    learned: np.ndarray

    def mean(self, scheme: str, measured: np.ndarray) -> np.ndarray:
        """Return the mean over seeds of the part of a measure, (run, ...), that belongs to a scheme."""
        return measured[np.array(self.schemes) == scheme].mean(0)

    @property
    def spread(self) -> float:
        """How far two seeds of one scheme lie apart in any bin at most, in nats."""
        own = (self.nats[np.array(self.schemes) == scheme] for scheme in set(self.schemes))
        return max(float(np.ptp(nats, axis=0).max()) for nats in own)

    def lost(self, scheme: str) -> float:
        """Return the nats in the last bin minus those where the trained length ends, mean over seeds."""
        nats = self.mean(scheme, self.nats)
        return float(nats[-1] - nats[int(np.searchsorted(self.ends, self.width))])


def beyond_live(*, width: int, language: Language, seed: int) -> Beyond:
    """Train one tiny model a scheme on the built-in running text, and ask each for longer windows.

    Args:
        width: characters a window in training, one of LIVE_WIDTHS.
        language: of the text, "en" or "zh".
        seed: of starting weights and windows.

    Raises:
        ValueError: a value outside its range.
    """
    if width not in LIVE_WIDTHS:
        raise ValueError(f"width={width!r} must be one of {LIVE_WIDTHS}")
    tokenizer, text, asked = characters_of_passage(language)
    with alone_on_one_thread():
        runs = [
            train_short(tokenizer, text, asked, scheme=scheme, width=width, seed=seed, course=LIVE)
            for scheme in counted(SCHEMES)
        ]
    return Beyond(
        schemes=SCHEMES,
        width=width,
        characters=len(text),
        steps=LIVE.steps,
        seeds=np.full(len(SCHEMES), seed),
        ends=np.array(LIVE.ends),
        nats=np.stack([run.nats for run in runs]),
        within=np.array([run.within for run in runs]),
        forgetful=np.array([run.forgetful for run in runs]),
        learned=np.array([run.learned for run in runs]),
    )
