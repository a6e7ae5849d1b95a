"""The trial of a tokenizer that somebody brings: its first texts are encoded in a process with limits.

What hangs or takes all memory there does so without this process, whose threads serve everybody. The interpreter is a
fresh one: a copy of this process would have its threads' locks and none of its threads.
"""

import os
import subprocess
import sys
from pathlib import Path

from transformer_core.text import trial_process
from transformer_core.text.tokenizer import Tokenizer
from transformer_core.untrusted.tokenizer_json import TokenizerError

SCRIPT = Path(trial_process.__file__)
PATIENCE = 20.0  # seconds, more than the seconds of a processor that it may take: the machine may be busy


def try_out(tokenizer: Tokenizer) -> None:
    """Encode and decode a few texts in a process of its own, long runs of one character among them.

    Raises:
        TokenizerError: it fails on one of them, or takes too much time or memory.
    """
    need = f"{trial_process.MOST_SECONDS} s and {trial_process.MOST_MEMORY >> 20:,} MB"
    try:
        done = subprocess.run(
            (sys.executable, "-P", str(SCRIPT)),
            input=tokenizer.to_json().encode(),
            capture_output=True,
            timeout=PATIENCE,
            env={**os.environ, "RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TokenizerError(
            f"the tokenizer was tried on {len(trial_process.TEXTS)} texts and did not end; must take at most {need}"
        ) from None
    except OSError as error:
        raise TokenizerError(f"the tokenizer cannot be tried: {error.strerror or error}") from None
    if done.returncode:
        reason = done.stdout.decode("utf-8", "replace") or f"it took more than {need}"
        raise TokenizerError(
            f"the tokenizer fails on one of {len(trial_process.TEXTS)} texts that it was tried on: {reason:.200}"
        )
