"""How quick a training step is against the same model on torch.nn.TransformerEncoder, in one run.

Run: python -m tests.benchmarks.training [--seconds N] [--threads N]
"""

import argparse
import functools
import sys
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.benchmarks.timing import interleaved, ratio
from transformer_core import Classifier, ModelConfig, TrainConfig
from transformer_core.training.batching import LabelledBatch
from transformer_core.training.loop import Run
from transformer_core.training.objectives import classification
from transformer_core.training.precision import has_bfloat16

CONFIG = ModelConfig(
    vocab_size=8_000, d_model=128, n_heads=4, d_ff=512, n_layers=2, max_len=128, dropout=0.1, positions="learned"
)
BATCH, LENGTH = 32, 128
GOALS = {"float32": 0.65, "bfloat16": 0.45}
FOREVER = 100_000
LEARNING_RATE = 1e-6  # nothing is memorised, or ever smaller gradients would be timed instead of ordinary ones


class TorchClassifier(nn.Module):
    """The same model with the parts that torch.nn has."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            config.d_model,
            config.n_heads,
            config.d_ff,
            config.dropout,
            activation=F.gelu,
            batch_first=True,
            norm_first=config.norm_order == "pre",
        )
        self.token = nn.Embedding(config.vocab_size, config.d_model)
        self.position = nn.Embedding(config.max_len, config.d_model)
        self.stack = nn.TransformerEncoder(
            layer, config.n_layers, norm=nn.LayerNorm(config.d_model), enable_nested_tensor=False
        )
        self.class_proj = nn.Linear(config.d_model, config.n_classes)

    def forward(self, token_ids: Tensor) -> Tensor:
        """Score (batch, pos): (batch, class)."""
        x = self.token(token_ids) + self.position.weight[: token_ids.shape[1]]
        return self.class_proj(self.stack(x, src_key_padding_mask=token_ids == 0)[:, 0])


def batches() -> list[LabelledBatch]:
    """Return batches of random ids of which the last quarter of some rows is padding."""
    random = torch.Generator().manual_seed(0)
    made = []
    for _ in range(8):
        ids = torch.randint(7, CONFIG.vocab_size, (BATCH, LENGTH), generator=random)
        ids[::2, LENGTH * 3 // 4 :] = 0
        made.append(LabelledBatch(ids, torch.randint(0, 2, (BATCH,), generator=random)))
    return made


def ours(config: ModelConfig, precision: str) -> Callable[[], object]:
    """Return one step of our loop, clipping, schedule and checks included."""
    training = TrainConfig(epochs=FOREVER, learning_rate=LEARNING_RATE, precision=precision)  # type: ignore[arg-type]
    made = batches()
    run = Run(Classifier(config), functools.partial(classification), lambda _: made, steps_per_epoch=8, config=training)
    steps = run.steps()
    return lambda: next(steps)


def theirs(config: ModelConfig) -> Callable[[], object]:
    """Return one step of the same model on torch.nn: loss, backward, clipping, AdamW."""
    model, made = TorchClassifier(config).train(), batches()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    turn = iter(range(10**9))

    def step() -> float:
        batch = made[next(turn) % len(made)]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch.token_ids), batch.labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    return step


def main() -> int:
    """Print one table; exit status 1 where a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0, help="for each dropout")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    precisions = ["float32"] + ["bfloat16"] * has_bfloat16(torch.device("cpu"))
    met = []
    for dropout in (0.0, CONFIG.dropout):
        config = ModelConfig(**{**vars(CONFIG), "dropout": dropout})
        functions = {name: ours(config, name) for name in precisions} | {"torch.nn": theirs(config)}
        medians = interleaved(functions, seconds=options.seconds)
        for name in precisions:
            measured = ratio(medians, name, "torch.nn")
            met.append(measured <= GOALS[name])
            print(
                f"dropout {dropout:.1f}  {name:9} {min(medians[name]) * 1e3:7.1f} ms   torch.nn "
                f"{min(medians['torch.nn']) * 1e3:7.1f} ms   {measured:5.2f} <= {GOALS[name]:.2f} "
                f"{'ok' if met[-1] else 'MISSED'}",
                flush=True,
            )
    print(f"{sum(met)} of {len(met)} goals met")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
