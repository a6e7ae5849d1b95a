"""How much quicker a Gpt writes with its keys and values kept than without, in one run.

Run: python -m tests.benchmarks.generation [--seconds N] [--threads N]
"""

import argparse
import sys
from collections.abc import Callable

import torch

from tests.benchmarks.timing import interleaved, ratio
from transformer_core import ModelConfig
from transformer_core.generation import greedy_words
from transformer_core.models import Gpt

TOKENS = 128
GOAL = 5.0
CONFIGS = {
    "words": ModelConfig(vocab_size=8_000, d_model=256, n_heads=4, d_ff=1024, n_layers=4, max_len=TOKENS),
    "characters": ModelConfig(vocab_size=72, d_model=384, n_heads=6, d_ff=1536, n_layers=6, max_len=256),
}


def writer(config: ModelConfig, *, cached: bool) -> Callable[[], object]:
    """Return what writes TOKENS tokens after one, the likeliest each time."""
    torch.manual_seed(0)
    model, beginning = Gpt(config).eval(), torch.tensor([[5]])
    return lambda: list(greedy_words(model, beginning, most=TOKENS, cached=cached))


def main() -> int:
    """Print one row a model; exit status 1 where a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="for each model")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    met = []
    for name, config in CONFIGS.items():
        functions = {"cached": writer(config, cached=True), "whole": writer(config, cached=False)}
        medians = interleaved(functions, seconds=options.seconds, calls=1, least_rounds=3)
        quicker = ratio(medians, "whole", "cached")
        met.append(quicker >= GOAL)
        print(
            f"{name:10} {TOKENS} tokens: cached {min(medians['cached']) * 1e3:7.1f} ms   without "
            f"{min(medians['whole']) * 1e3:7.1f} ms   {quicker:5.1f} times >= {GOAL:.1f} {'ok' if met[-1] else 'MISSED'}",
            flush=True,
        )
    print(f"{sum(met)} of {len(met)} goals met")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
