"""A rehearsal: a run of two steps on nothing, so that whatever torch imports late is there before it is needed.

Making the first optimizer alone imports for more than a second. Read next: worker.py.
"""

import tempfile
from pathlib import Path

import torch

from transformer_core.config import ModelConfig
from transformer_core.device import best_device
from transformer_core.layout.sequence import LayoutSequence
from transformer_core.models import Classifier
from transformer_core.training.batching import LabelledBatch
from transformer_core.training.config import TrainConfig
from transformer_core.training.loop import Run
from transformer_core.training.objectives import classification
from transformer_core.training.runs.recorder import embed
from transformer_core.training.state import save_run
from transformer_core.training.tasks.task import Points

SIZES = ModelConfig(vocab_size=16, d_model=8, n_heads=2, d_ff=8, n_layers=1, max_len=8)


def rehearse() -> None:
    """Take two steps of a tiny run, embed and lay out a few points, and save."""
    device = best_device()
    with torch.device("meta"):
        Classifier(SIZES)  # as parameters are counted
    batch = LabelledBatch(torch.full((4, 4), 7), torch.tensor([0, 1, 0, 1])).to(device)
    points = Points(texts=["a"] * 4, labels=[0] * 4, held_out=[False] * 4, token_ids=torch.full((4, 4), 7))
    run = Run(
        Classifier(SIZES).to(device),
        classification,
        lambda _: [batch],
        steps_per_epoch=1,
        config=TrainConfig(epochs=2),
    )
    sequence = LayoutSequence()
    for _ in run.steps():
        vectors, _ = embed(run.model.eval(), points, SIZES.pad_id)
        sequence.add(vectors, points.labels, points.held_out)
    with tempfile.TemporaryDirectory() as scratch:
        save_run(run, Path(scratch))
