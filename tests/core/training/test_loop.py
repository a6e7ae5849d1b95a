"""The loop: one batch can be learned by heart, the same seed gives the same curve, and so does an interrupted run."""

import json
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np
import pytest
import torch

from tests.helpers.engine import separable
from transformer_core.config import ModelConfig
from transformer_core.models import Classifier
from transformer_core.text import Tokenizer
from transformer_core.training.batching import LabelledBatch, bucketed, padded
from transformer_core.training.config import TrainConfig
from transformer_core.training.loop import DivergedError, Run
from transformer_core.training.objectives import classification
from transformer_core.training.precision import computing_in
from transformer_core.training.state import load_run, save_run

EXAMPLES = separable(96)
TOKENIZER = Tokenizer.train("word", [example.text for example in EXAMPLES], vocab_size=100, lowercase=True)
ROWS = [list(encoding.ids) for encoding in TOKENIZER.encode_batch([example.text for example in EXAMPLES])]
LABELS = torch.tensor([example.label for example in EXAMPLES])
CONFIG = TrainConfig(learning_rate=5e-3, batch_size=16, epochs=3, seed=5)
SIZES = ModelConfig(
    vocab_size=TOKENIZER.vocab_size, d_model=16, n_heads=2, d_ff=32, n_layers=1, max_len=32, dropout=0.1
)
STEPS_PER_EPOCH = 6


def batches(epoch):
    order = bucketed([len(row) for row in ROWS], 16, np.random.default_rng((1, epoch)))
    return [LabelledBatch(padded([ROWS[n] for n in batch], 0), LABELS[batch]) for batch in order]


HIDING = partial(classification, hide=0.1)


def make_run(config=CONFIG, sizes=SIZES, *, objective=HIDING, batches=batches, steps_per_epoch=STEPS_PER_EPOCH):
    torch.manual_seed(0)
    return Run(Classifier(sizes), objective, batches, steps_per_epoch=steps_per_epoch, config=config)


def curve(run, n=None):
    return [(s.step, s.epoch, s.loss, s.learning_rate, s.gradient_norm, s.examples) for s in islice(run.steps(), n)]


def test_one_batch_can_be_learned_by_heart():
    batch = batches(0)[0]
    run = make_run(
        replace(CONFIG, epochs=60),
        replace(SIZES, dropout=0.0),
        objective=classification,
        batches=lambda epoch: [batch],
        steps_per_epoch=1,
    )
    losses = [step.loss for step in run.steps()]
    assert losses[0] > 0.5
    assert losses[-1] < 0.02


def test_a_run_learns_a_separable_world():
    config = replace(CONFIG, learning_rate=1e-2, epochs=20)
    run = make_run(config, replace(SIZES, dropout=0.0), objective=classification)
    list(run.steps())
    unseen = [example for example in separable(300, seed=9) if example not in EXAMPLES]
    encodings = TOKENIZER.encode_batch([example.text for example in unseen])
    run.model.eval()
    with torch.inference_mode():
        guesses = run.model(padded([encoding.ids for encoding in encodings], 0)).argmax(-1)
    accuracy = (guesses == torch.tensor([example.label for example in unseen])).float().mean().item()
    assert accuracy > 0.95


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_same_seed_gives_the_same_curve_and_another_seed_another(precision):
    config = replace(CONFIG, precision=precision)
    first, again = curve(make_run(config)), curve(make_run(config))
    assert first == again
    assert [row[0] for row in first] == list(range(1, 19))
    assert [row[1] for row in first] == [0] * 6 + [1] * 6 + [2] * 6
    assert first != curve(make_run(replace(config, seed=6)))


def test_what_the_caller_draws_between_steps_changes_nothing_and_the_callers_generator_is_left_alone():
    undisturbed = curve(make_run(), 4)
    run, disturbed = make_run(), []
    for step in islice(run.steps(), 4):
        torch.manual_seed(step.step)
        before = torch.get_rng_state()
        disturbed.append(step.loss)
        run.model.eval()
        assert torch.equal(torch.get_rng_state(), before)
    assert disturbed == [row[2] for row in undisturbed]
    torch.manual_seed(7)
    before = torch.get_rng_state()
    next(run.steps())
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd", "muon"])
@pytest.mark.parametrize("stop", [6, 10])
def test_a_resumed_run_goes_on_to_the_last_digit(tmp_path, optimizer, stop):
    config = replace(CONFIG, optimizer=optimizer)
    whole = make_run(config)
    uninterrupted = curve(whole)
    run = make_run(config)
    before = curve(run, stop)
    save_run(run, tmp_path)
    torch.manual_seed(99)
    resumed = make_run(config)
    assert load_run(resumed, tmp_path)
    assert before + curve(resumed) == uninterrupted
    for parameter, same in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(parameter, same)


def test_nothing_on_disk_is_pickled_and_older_states_are_removed(tmp_path):
    run = make_run()
    for _ in islice(run.steps(), 3):
        save_run(run, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["3.run.safetensors", "run.json"]
    assert json.loads((tmp_path / "run.json").read_text())["step"] == 3


def test_there_may_be_nothing_to_take_up(tmp_path):
    assert not load_run(make_run(), tmp_path)


def test_a_saved_run_that_does_not_fit_is_refused(tmp_path):
    run = make_run()
    next(run.steps())
    save_run(run, tmp_path)
    with pytest.raises(ValueError, match=r"the saved run is of .*this one is of .*delete the folder to start again"):
        load_run(make_run(replace(CONFIG, learning_rate=1e-3)), tmp_path)
    with pytest.raises(ValueError, match="the saved run is of another model"):
        load_run(make_run(sizes=replace(SIZES, d_ff=48)), tmp_path)
    file = tmp_path / "1.run.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(ValueError, match="the saved run cannot be read"):
        load_run(make_run(), tmp_path)


def test_a_run_that_diverges_says_so_and_keeps_its_weights():
    run = make_run(objective=lambda model, batch: classification(model, batch) * float("nan"))
    kept = [parameter.detach().clone() for parameter in run.model.parameters()]
    with pytest.raises(DivergedError, match=r"step 1: the loss is nan and .*learning_rate=0\.0025 may be too high"):
        next(run.steps())
    assert all(torch.equal(old, new) for old, new in zip(kept, run.model.parameters(), strict=True))


def test_too_few_batches_are_refused():
    with pytest.raises(ValueError, match="steps_per_epoch=0 must be at least 1"):
        make_run(steps_per_epoch=0)
    with pytest.raises(ValueError, match="epoch 0 has 6 batches; steps_per_epoch=7 are needed"):
        list(make_run(steps_per_epoch=7).steps())


def test_bfloat16_computes_about_what_float32_does():
    model, batch = make_run().model.eval(), batches(0)[0]
    gradients = {}
    for precision in ("float32", "bfloat16"):
        model.zero_grad()
        with computing_in(precision, torch.device("cpu")):
            loss = classification(model, batch)
        loss.backward()
        gradients[precision] = torch.cat([p.grad.flatten() for p in model.parameters()])
    assert all(gradient.dtype == torch.float32 for gradient in gradients.values())
    difference = (gradients["bfloat16"] - gradients["float32"]).norm() / gradients["float32"].norm()
    assert 0 < difference < 0.05
