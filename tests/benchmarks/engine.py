"""How quick a forward pass is, silent and captured, against torch.nn, transformers and, if installed, TransformerLens.

Run: python -m tests.benchmarks.engine [--seconds N] [--shapes small gpt bert] [--lengths 32 128 512]
"""

import argparse
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec

import torch
from torch import nn

from tests.benchmarks.peers import TorchStack, hugging_face, random_ids, transformer_lens
from tests.benchmarks.timing import interleaved, ratio
from transformer_core import Bert, Gpt, ModelConfig, capture

GPT2 = ModelConfig(
    vocab_size=50_257,
    d_model=768,
    n_heads=12,
    d_ff=3072,
    n_layers=12,
    max_len=1024,
    positions="learned",
    activation="gelu_tanh",
    norm_order="pre",
    pad_id=None,
)
BERT_BASE = ModelConfig(
    vocab_size=30_522,
    d_model=768,
    n_heads=12,
    d_ff=3072,
    n_layers=12,
    max_len=512,
    positions="learned",
    activation="gelu",
    norm_order="post",
    n_segments=2,
    embedding_norm=True,
    pad_id=None,
)
SMALL = ModelConfig(
    vocab_size=1_000,
    d_model=256,
    n_heads=4,
    d_ff=1024,
    n_layers=4,
    max_len=512,
    positions="learned",
    activation="gelu_tanh",
    norm_order="pre",
    pad_id=None,
)
SHAPES: dict[str, tuple[type[nn.Module], ModelConfig]] = {
    "small": (Gpt, SMALL),
    "gpt": (Gpt, GPT2),
    "bert": (Bert, BERT_BASE),
}


@dataclass(frozen=True)
class Goal:
    """Ours over a peer's, and the most that it may be, by shape and length; where there is none, it is only shown."""

    title: str
    ours: str
    peer: str
    bound: dict[str, float]
    lengths: tuple[int, ...] = (32, 128, 512)

    def limit(self, shape: str, length: int) -> float | None:
        """Return the bound for one row of the table."""
        return self.bound.get(shape) if length in self.lengths else None


EVERYWHERE = dict.fromkeys(SHAPES, 1.0)
GOALS = (
    Goal("nothing captured / torch.nn", "silent", "torch.nn", EVERYWHERE),
    Goal("nothing captured / transformers sdpa", "silent", "transformers sdpa", dict.fromkeys(SHAPES, 0.95)),
    Goal("everything captured / transformers eager, outputs kept", "everything", "transformers eager", {"small": 0.75}),
    Goal(
        "everything captured / transformers eager, outputs kept",
        "everything",
        "transformers eager",
        {"gpt": 0.9},
        (32,),
    ),
    Goal("everything captured / TransformerLens cache", "everything", "TransformerLens", {"small": 0.3}),
    Goal("everything captured / TransformerLens cache", "everything", "TransformerLens", {"gpt": 0.75}, (32,)),
    Goal("one site of one layer / nothing captured", "one site", "silent", dict.fromkeys(SHAPES, 1.1)),
)


def measure(shape: str, length: int, seconds: float) -> dict[str, list[float]]:
    """Time ours and every peer of one shape at one length."""
    kind, config = SHAPES[shape]
    causal = kind is Gpt
    ours = kind(config).eval()
    ids = random_ids(config, length)
    plain = TorchStack(config, causal=causal).eval()
    sdpa = hugging_face(config, causal=causal, attention="sdpa")
    eager = hugging_face(config, causal=causal, attention="eager")
    stack = "decoder" if causal else "encoder"
    functions = {
        "silent": lambda: ours(ids),
        "one site": lambda: capture(ours, ids, sites=(f"{stack}.layer1.self_attention.weights",)),
        "everything": lambda: capture(ours, ids, max_bytes=4 << 30),
        "torch.nn": lambda: plain(ids),
        "transformers sdpa": lambda: sdpa(ids),
        "transformers eager": lambda: eager(ids, output_attentions=True, output_hidden_states=True),
    }
    if causal and find_spec("transformer_lens"):
        lens = transformer_lens(config, causal=causal)
        functions["TransformerLens"] = lambda: lens.run_with_cache(ids)
    with torch.inference_mode():
        return interleaved(functions, seconds=seconds)


def report(shape: str, length: int, seconds: float) -> list[bool]:
    """Print the rows of one shape and length; return which goals were met."""
    medians = measure(shape, length, seconds)
    met = []
    for goal in GOALS:
        limit = goal.limit(shape, length)
        if goal.peer not in medians or limit is None:
            continue
        measured = ratio(medians, goal.ours, goal.peer)
        met.append(measured <= limit)
        print(
            f"{shape:6} {length:4}  {goal.title:56} {min(medians[goal.ours]) * 1e3:8.2f} ms"
            f" {min(medians[goal.peer]) * 1e3:8.2f} ms {measured:6.2f} <= {limit:4.2f} {'ok' if met[-1] else 'MISSED'}",
            flush=True,
        )
    return met


def import_seconds(rounds: int = 5) -> float:
    """Return how much `import transformer_core` adds to `import torch`, at best of several new processes."""
    code = "import time, torch; t = time.perf_counter(); import transformer_core; print(time.perf_counter() - t)"
    runs = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(rounds)
    )
    return min(float(run.stdout) for run in runs)


def main() -> int:
    """Print one table; exit status 1 where a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=8.0, help="for each shape and length")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--lengths", nargs="+", type=int, default=[32, 128, 512])
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    seconds = import_seconds()
    met = [seconds <= 0.3]
    print(f"import transformer_core adds {seconds:.3f} s to import torch <= 0.30 {'ok' if met[0] else 'MISSED'}")
    print(f"{'shape':6} {'len':>4}  {'ours / peer':56} {'ours':>11} {'peer':>11} {'ratio':>6}")
    for shape in options.shapes:
        for length in options.lengths:
            met += report(shape, length, options.seconds)
    print(f"{sum(met)} of {len(met)} goals met")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
