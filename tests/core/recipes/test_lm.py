"""The recipes of recurrent language models: the card says what `evaluate` measures, and what gpt-char reaches."""

import pytest

from transformer_core.bundle import Bundle, save
from transformer_core.checkpoints import load
from transformer_core.config import ModelConfig
from transformer_core.evaluation.evaluate import evaluate
from transformer_core.models import Gpt
from transformer_core.models.recurrent import RecurrentLm
from transformer_core.recipes import lm
from transformer_core.recipes.characters import characters_seen
from transformer_core.recipes.gpt_char import CHARACTERS_SEEN
from transformer_core.text import Tokenizer
from transformer_core.training.config import TrainConfig

TEXT = "to be, or not to be: that is the question\n" * 120


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with a text and a bundle to be compared with."""
    folder = tmp_path_factory.mktemp("lm")
    (folder / "shakespeare.txt").write_text(TEXT)
    tokenizer = Tokenizer.train("character", [TEXT], vocab_size=100, min_frequency=1, template="none")
    config = ModelConfig(vocab_size=tokenizer.vocab_size, d_model=16, n_heads=2, d_ff=16, n_layers=1, max_len=32)
    save(Bundle("gpt-char", Gpt(config), tokenizer), folder / "gpt-char")
    return folder


@pytest.mark.parametrize("unit", lm.NETWORKS)
def test_a_recipe_writes_a_bundle_whose_card_compares_it(data, tmp_path, unit) -> None:
    places = [f"--{name}={tmp_path / f'{name}-UNIT'}" for name in ("out", "work")]
    held_out = tmp_path / "held_out.txt"
    options = ["--quick", "--device=cpu", f"--beside={data / 'gpt-char'}", f"--held-out={held_out}"]
    assert lm.main([unit, "--data", str(data), *places, *options]) == 0
    out = tmp_path / f"out-{unit}"
    measured, other = (evaluate(folder, held_out, device="cpu") for folder in (out, data / "gpt-char"))
    bundle = load(out)
    card = bundle.card
    assert bundle.kind == "lm"
    assert isinstance(bundle.model, RecurrentLm)
    assert (bundle.model.config.unit, bundle.reads) == (lm.NETWORKS[unit].unit, "en")
    assert bundle.n_parameters == pytest.approx(lm.QUICK.n_parameters, rel=0.2)
    assert f"{measured['loss_nats']:.4f} nats a character" in card
    own_seen = bundle.measured.trained[0].steps * lm.QUICK.batch_size * lm.QUICK.max_len
    for name, seen, of in ((f"out-{unit}", own_seen, measured), ("gpt-char", CHARACTERS_SEEN, other)):
        n_parameters = load(out if name != "gpt-char" else data / name).n_parameters
        row = f"| {name} | {n_parameters:,} | {seen:,} | {of['loss_nats']:.4f} |"
        assert row in card
        assert row in bundle.card_zh
    assert f"transformer_core.recipes.lm {unit} --data DIR --quick" in card
    assert card.count("```text") == 10
    assert measured["loss_nats"] < other["loss_nats"]
    assert bundle.measured.usual[0].measure == "nats_a_token"


def test_gpt_char_learned_from_half_as_many_characters() -> None:
    training = TrainConfig(batch_size=lm.FULL.batch_size, epochs=lm.FULL.epochs)
    own = characters_seen(training, windows=lm.FULL.windows, width=lm.FULL.max_len)
    assert own == 3_125 * 64 * 128
    assert CHARACTERS_SEEN == 3_124 * 32 * 128


def test_without_the_bundle_to_compare_with_nothing_is_trained(data, tmp_path, capsys) -> None:
    options = ["--quick", "--device=cpu", f"--beside={tmp_path / 'nowhere'}", f"--out={tmp_path / 'out'}"]
    assert lm.main(["gru", "--data", str(data), *options]) == 2
    assert "nowhere: there is no such folder" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
