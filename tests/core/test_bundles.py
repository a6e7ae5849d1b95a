"""A bundle comes back as it was saved, and saving never spoils the one that was there."""

import os
from dataclasses import replace

import pytest
import torch

from tests.helpers.bundles import FILES
from tests.helpers.engine import exactly, first_of, inputs, made, padded_ids
from transformer_core.bundle import CONFIGS, LABELLED, MODELS, Bundle, save
from transformer_core.bundle_files import CARD, CARD_ZH, LANGUAGES, WEIGHTS, BundleError
from transformer_core.checkpoints import load
from transformer_core.models import Gpt


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("tied", [True, False])
def test_a_bundle_comes_back_as_it_was(kind, tied, tmp_path, word_tokenizer):
    changes = {} if kind in CONFIGS else {"positions": "learned", "n_segments": 2}
    changes |= {} if kind in ("lm", "recurrent_classifier") else {"tied_output": tied}
    model = made(MODELS[kind], **changes)
    labels = ("no", "yes") if kind in LABELLED else ()
    save(Bundle("glass", model, word_tokenizer, labels, "# Glass, 玻璃"), tmp_path / "new" / "glass")
    loaded = load(tmp_path / "new" / "glass", device="cpu")
    assert (loaded.name, loaded.kind, loaded.labels, loaded.card) == ("glass", kind, labels, "# Glass, 玻璃")
    assert loaded.config == model.config
    assert loaded.n_parameters == sum(parameter.numel() for parameter in model.parameters())
    for name, parameter in loaded.model.named_parameters():
        assert torch.equal(parameter, model.get_parameter(name))
        assert not parameter.requires_grad
    assert not loaded.model.training
    with torch.inference_mode():
        given = inputs(MODELS[kind])
        assert torch.equal(first_of(loaded.model(*given)), first_of(model(*given)))
    assert loaded.tokenizer.encode("a glass bell").ids == word_tokenizer.encode("a glass bell").ids
    assert sorted(path.name for path in (tmp_path / "new" / "glass").iterdir()) == sorted(FILES)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_width_on_disk_is_near(dtype, tmp_path, word_tokenizer):
    model = made(Gpt)
    bundle = Bundle("glass", model, word_tokenizer)
    save(bundle, tmp_path / "whole")
    save(bundle, tmp_path / "half", dtype=dtype)
    sizes = [(tmp_path / name / WEIGHTS).stat().st_size for name in ("half", "whole")]
    assert sizes[0] < 0.7 * sizes[1]
    for name, parameter in load(tmp_path / "half").model.named_parameters():
        assert parameter.dtype == torch.float32
        expected = model.get_parameter(name).detach()
        torch.testing.assert_close(parameter, expected, rtol=torch.finfo(dtype).eps, atol=1e-6)


def test_a_missing_card_is_no_loss(folder):
    (folder / CARD).unlink()
    assert load(folder).card == ""


def test_a_card_in_chinese_comes_back_and_the_english_one_stands_in_for_it(tmp_path, word_tokenizer):
    bundle = Bundle("glass", made(Gpt), word_tokenizer, card="# Glass", card_zh="# 玻璃")
    save(bundle, tmp_path / "glass")
    loaded = load(tmp_path / "glass")
    assert (loaded.card, loaded.card_zh) == ("# Glass", "# 玻璃")
    assert [loaded.card_in(language) for language in LANGUAGES] == ["# Glass", "# 玻璃"]
    save(replace(bundle, card_zh=""), tmp_path / "glass")
    assert not (tmp_path / "glass" / CARD_ZH).exists()  # it was of the bundle before
    loaded = load(tmp_path / "glass")
    assert [loaded.card_in(language) for language in LANGUAGES] == ["# Glass", "# Glass"]


def test_a_running_model_does_not_depend_on_its_files(folder):
    running, ids = load(folder).model, padded_ids(3, 5)
    with torch.inference_mode():
        before = running(ids)
        for name in FILES:
            (folder / name).write_bytes(b"")
        with pytest.raises(BundleError):
            load(folder)
        assert torch.equal(running(ids), before)


def test_saving_again_replaces_the_old_bundle(folder, word_tokenizer):
    save(Bundle("glass", made(Gpt, seed=1), word_tokenizer, card="# New"), folder)
    assert load(folder).card == "# New"
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)


class BrokenError(Exception):
    """A disk that is full, a machine that is switched off."""


@pytest.mark.parametrize(
    "step", ["transformer_core.bundle.save_file", "transformer_core.text.Tokenizer.save", "json.dumps"]
)
def test_a_save_that_fails_half_way_leaves_the_old_bundle_whole(folder, word_tokenizer, monkeypatch, step):
    def fail(*_, **__):
        raise BrokenError

    before = {name: (folder / name).read_bytes() for name in FILES}
    monkeypatch.setattr(step, fail)
    with pytest.raises(BrokenError):
        save(Bundle("glass", made(Gpt, seed=1), word_tokenizer), folder)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert load(folder).card == "# Glass"


@pytest.mark.parametrize("moved", [0, 1, 2, 3])
def test_a_save_that_stops_between_two_files_is_never_mistaken_for_a_bundle(folder, word_tokenizer, monkeypatch, moved):
    left, replace = [moved], os.replace

    def stop(*paths):
        if not left[0]:
            raise BrokenError
        left[0] -= 1
        replace(*paths)

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(BrokenError):
        save(Bundle("glass", made(Gpt, seed=1), word_tokenizer, card="# Glass"), folder)
    monkeypatch.undo()
    if moved:
        with pytest.raises(BundleError, match=f"glass/{WEIGHTS} is not the file that was written"):
            load(folder)
    else:
        load(folder)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_weights_that_could_not_be_read_again_are_not_written(tmp_path, word_tokenizer, dtype):
    model = made(Gpt)
    with torch.no_grad():
        model.output.proj.weight[0, 0] = 1e6 if dtype == torch.float16 else torch.nan
    message = f"decoder.embedding.token.weight is not finite in {dtype} (1 tensors in all)"
    with pytest.raises(BundleError, match=exactly(message)):
        save(Bundle("glass", model, word_tokenizer), tmp_path / "glass", dtype=dtype)
    assert not (tmp_path / "glass").exists()
