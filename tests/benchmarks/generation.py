"""How much quicker a Gpt writes with its keys and values kept than without, in one run.

The goal is for the word after 128 tokens; all 128 words from the first on, where most of the text is shorter, are
printed beside it. Stories and characters have the shapes of the two models that are shipped.

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
    "stories": ModelConfig(vocab_size=4_000, d_model=192, n_heads=6, d_ff=768, n_layers=4, max_len=TOKENS),
    "characters": ModelConfig(vocab_size=72, d_model=192, n_heads=6, d_ff=768, n_layers=4, max_len=TOKENS),
}


def last_word(config: ModelConfig) -> dict[str, Callable[[], object]]:
    """Return what scores the word after TOKENS tokens, of which a cache holds all but one, and without a cache."""
    torch.manual_seed(0)
    model, token_ids = Gpt(config).eval(), torch.randint(1, config.vocab_size, (1, TOKENS))
    with torch.inference_mode():
        state = model.start(token_ids[:, :-1])

    @torch.inference_mode()
    def cached() -> object:
        return model.advance(token_ids[:, -1:], state)

    @torch.inference_mode()
    def whole() -> object:
        return model(token_ids)[:, -1]

    return {"cached": cached, "whole": whole}


def all_words(config: ModelConfig) -> dict[str, Callable[[], object]]:
    """Return what writes TOKENS words after one, the likeliest each time, with a cache and without."""
    torch.manual_seed(0)
    model, beginning = Gpt(config).eval(), torch.tensor([[5]])

    def writer(cached: bool) -> Callable[[], object]:
        return lambda: list(greedy_words(model, beginning, most=TOKENS - 1, cached=cached))

    return {"cached": writer(True), "whole": writer(False)}


def main() -> int:
    """Print two rows a model; exit status 1 where a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each row")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    met = []
    for name, config in CONFIGS.items():
        for what, functions in (("word 128", last_word(config)), ("128 words", all_words(config))):
            calls = 20 if what == "word 128" else 1
            medians = interleaved(functions, seconds=options.seconds, calls=calls, least_rounds=3)
            quicker = ratio(medians, "whole", "cached")
            verdict = ""
            if what == "word 128":
                met.append(quicker >= GOAL)
                verdict = f" >= {GOAL:.1f} {'ok' if met[-1] else 'MISSED'}"
            print(
                f"{name:10} {what:9}  cached {min(medians['cached']) * 1e3:8.2f} ms   without "
                f"{min(medians['whole']) * 1e3:8.2f} ms   {quicker:5.1f} times{verdict}",
                flush=True,
            )
    print(f"{sum(met)} of {len(met)} goals met")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
