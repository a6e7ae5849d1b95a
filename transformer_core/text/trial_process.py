"""Try a tokenizer on a few texts in a process with limits; `trial.py` starts it, and says what it found.

It imports `tokenizers` and nothing of this package, so that it starts at once. It reads a tokenizer.json from its input
and writes what failed, if anything did, to its output.
"""

import sys
from contextlib import suppress
from pathlib import Path

import tokenizers

MOST_MEMORY = 1 << 30
MOST_SECONDS = 5
LENGTH = 1_000
RUN = 40
TEXTS = (
    "In 1999 it was not good at all, she said: “Not once!” 你好，世界。",
    "a" * LENGTH,
    "0123456789" * (LENGTH // 10),
    "🧑‍🚀😀é́" * (LENGTH // 6),
    " " * LENGTH + "\n" * LENGTH + ".",
    "".join(chr(code) * RUN for code in range(32, 127)),
    "ﷺ你é" * (LENGTH // 3),
)


def limit() -> None:
    """Take at most MOST_MEMORY more bytes and MOST_SECONDS seconds of a processor, where the system can tell."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + MOST_MEMORY
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main() -> None:
    """Encode and decode every text, alone and with another one."""
    limit()
    pipeline = tokenizers.Tokenizer.from_str(sys.stdin.buffer.read().decode("utf-8"))
    for text in TEXTS:
        pipeline.decode(pipeline.encode(text).ids)
    pipeline.encode(TEXTS[0], TEXTS[1])


if __name__ == "__main__":
    try:
        main()
    except BaseException as error:
        print(f"{error!s:.200}" or type(error).__name__, end="")
        raise SystemExit(1) from None
