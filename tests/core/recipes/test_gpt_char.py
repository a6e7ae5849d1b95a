"""The recipe of the GPT of characters: its card says what `evaluate` measures, and it goes on where it was stopped."""

import gzip
import math

import pytest
import torch

from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load
from transformer_core.config import ModelConfig
from transformer_core.evaluation.evaluate import evaluate
from transformer_core.evaluation.gpt import measure_text, read_text
from transformer_core.models import Gpt
from transformer_core.recipes import command, gpt_char
from transformer_core.text import Tokenizer

TEXT = "to be, or not to be: that is the question\n" * 120


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpt_char")
    with gzip.open(folder / "shakespeare.txt.gz", "wt", encoding="utf-8") as file:
        file.write(TEXT)
    places = [f"--{name}={folder / name}" for name in ("out", "work")]
    held_out = folder / "held_out.txt"
    assert gpt_char.main(["--data", str(folder), *places, f"--held-out={held_out}", "--quick", "--device=cpu"]) == 0
    return folder


def test_the_card_says_what_evaluate_measures(made) -> None:
    measured = evaluate(made / "out", made / "held_out.txt", device="cpu")
    card, chinese = ((made / "out" / name).read_text(encoding="utf-8") for name in ("card.md", "card.zh.md"))
    assert f"{measured['loss_nats']:.4f} nats a character" in card
    assert f"每个字符 {measured['loss_nats']:.4f} 奈特" in chinese
    assert card.split("```")[1::2] == chinese.split("```")[1::2]
    assert measured["loss_nats"] < math.log(load(made / "out").tokenizer.vocab_size)
    assert card.count("```text") == 10
    assert (made / "held_out.txt").read_text(encoding="utf-8") == TEXT[round(len(TEXT) * 0.9) :]


def test_an_interrupted_recipe_ends_in_the_same_weights(made, monkeypatch) -> None:
    class InterruptionError(Exception):
        pass

    def save_and_stop(run, folder, save=command.save_run):
        save(run, folder)
        raise InterruptionError

    arguments = ["--data", str(made), "--out", str(made / "parts"), "--work", str(made / "work2"), "--quick"]
    monkeypatch.setattr(command, "STEPS_BETWEEN_SAVES", 15)
    with monkeypatch.context() as patch:
        patch.setattr(command, "save_run", save_and_stop)
        with pytest.raises(InterruptionError):
            gpt_char.main([*arguments, "--device=cpu"])
    assert gpt_char.main([*arguments, "--device=cpu", "--resume"]) == 0
    whole, parts = load(made / "out").model.state_dict(), load(made / "parts").model.state_dict()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_again_measures_the_same_and_trains_nothing(made, monkeypatch) -> None:
    before = {path.name: path.read_bytes() for path in (made / "out").iterdir()}
    monkeypatch.setattr(command, "take_steps", None)
    places = [f"--{name}={made / name}" for name in ("out", "work")]
    assert gpt_char.main(["--data", str(made), *places, "--quick", "--device=cpu", "--again"]) == 0
    assert {path.name: path.read_bytes() for path in (made / "out").iterdir()} == before


def test_a_folder_without_the_text_is_named(tmp_path, capsys) -> None:
    assert gpt_char.main(["--data", str(tmp_path)]) == 2
    assert "hold no shakespeare.txt.gz" in capsys.readouterr().err


def a_bundle(text: str, max_len: int = 8) -> Bundle:
    tokenizer = Tokenizer.train("character", [text], vocab_size=100, min_frequency=1, template="none")
    torch.manual_seed(0)
    config = ModelConfig(vocab_size=tokenizer.vocab_size, d_model=16, n_heads=2, d_ff=16, n_layers=1, max_len=max_len)
    return Bundle("tiny", Gpt(config).eval(), tokenizer)


@pytest.mark.parametrize("length", [2, 8, 9, 10, 17, 30])
def test_every_token_but_the_first_is_foreseen_once_whatever_the_batch(length: int) -> None:
    bundle, text = a_bundle(TEXT), TEXT[:length]
    one, many = measure_text(bundle, text, batch_size=1), measure_text(bundle, text, batch_size=7)
    assert one == many
    assert one["tokens"] == length - 1
    assert one["perplexity"] == pytest.approx(math.exp(one["loss_nats"]), rel=1e-3)


def test_bytes_are_counted_in_utf_8() -> None:
    measured = measure_text(a_bundle("好的，好的。"), "好的，好的。")
    assert measured["nats_a_byte"] == pytest.approx(measured["loss_nats"] * 5 / 18, abs=1e-3)


def test_texts_that_cannot_be_measured_are_refused(tmp_path) -> None:
    with pytest.raises(ValueError, match="text has 1 tokens; at least 2"):
        measure_text(a_bundle(TEXT), "t")
    (tmp_path / "a.txt").write_bytes(b"ok \xff")
    with pytest.raises(ValueError, match=r"a.txt is not UTF-8: invalid start byte at byte 3"):
        read_text(tmp_path / "a.txt")
    (tmp_path / "b.txt.gz").write_bytes(b"no gzip")
    with pytest.raises(ValueError, match=r"b.txt.gz: the gzip data is broken"):
        read_text(tmp_path / "b.txt.gz")
