"""The trial of a tokenizer that somebody brings: what hangs, takes all memory or fails does so in another process."""

from pathlib import Path

import pytest

from transformer_core.text import Tokenizer, TokenizerError, trial
from transformer_core.text.trial import try_out


def test_every_kind_of_tokenizer_passes(tokenizer: Tokenizer) -> None:
    try_out(tokenizer)


def in_its_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str) -> None:
    """Let the trial do something else after its limits are set."""
    script = tmp_path / "trial_process.py"
    own = trial.SCRIPT.read_text(encoding="utf-8")
    assert "    pipeline = " in own
    script.write_text(own.replace("    pipeline = ", f"    {code}\n    pipeline = ", 1), encoding="utf-8")
    monkeypatch.setattr(trial, "SCRIPT", script)


def test_one_that_takes_all_memory_is_refused_with_words(trained, tmp_path, monkeypatch) -> None:
    in_its_place(monkeypatch, tmp_path, "held = [bytes(1 << 28) for _ in range(64)]")
    with pytest.raises(TokenizerError, match=r"tried on: it took more than 5 s and 1,024 MB|tried on: MemoryError"):
        try_out(trained["bpe"])


def test_one_that_does_not_end_is_refused_with_words(trained, tmp_path, monkeypatch) -> None:
    in_its_place(monkeypatch, tmp_path, "import signal; signal.pause()")
    monkeypatch.setattr(trial, "PATIENCE", 0.0)
    with pytest.raises(TokenizerError, match="did not end; must take at most 5 s and 1,024 MB"):
        try_out(trained["bpe"])


def test_one_that_fails_on_a_text_says_so(trained, tmp_path, monkeypatch) -> None:
    in_its_place(monkeypatch, tmp_path, "raise ValueError('no such entry')")
    with pytest.raises(TokenizerError, match="fails on one of 7 texts that it was tried on: no such entry"):
        try_out(trained["bpe"])
