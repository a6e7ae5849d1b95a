"""The loop, its batches, optimizers and settings: the same seed gives the same curve, interrupted or not."""

import json
import math
import re
from dataclasses import replace
from functools import partial
from itertools import islice, product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import nightly_but
from tests.helpers.engine import separable
from transformer_core.config import ModelConfig
from transformer_core.models import Bert, Classifier
from transformer_core.progress import listening
from transformer_core.text import Tokenizer
from transformer_core.training.batching import LabelledBatch, bucketed, padded
from transformer_core.training.config import TrainConfig
from transformer_core.training.early_stopping import until_diverged, watch
from transformer_core.training.loop import DivergedError, Run
from transformer_core.training.objectives import classification
from transformer_core.training.optimizers import ADAM_BETAS, learning_rate_at, make_optimizer
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


def test_a_run_counts_its_remaining_steps_as_progress():
    run, heard = make_run(), []
    curve(run, 4)
    with listening(lambda done, count: heard.append((done, count))):
        list(run.steps())
    remaining = 3 * STEPS_PER_EPOCH - 4
    assert heard == [(done, remaining) for done in range(remaining)]


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


RESUMED = list(product(("adamw", "adam", "sgd", "muon"), (6, 10)))


@pytest.mark.parametrize(("optimizer", "stop"), nightly_but(RESUMED, [("adamw", 6), ("adam", 10), ("muon", 10)]))
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


def test_a_run_on_a_device_goes_on_as_if_it_had_not_been_interrupted(tmp_path, device):
    def on_device(epoch):
        return [batch.to(device) for batch in batches(epoch)]

    def run_there():
        torch.manual_seed(0)
        return Run(Classifier(SIZES).to(device), HIDING, on_device, steps_per_epoch=STEPS_PER_EPOCH, config=CONFIG)

    uninterrupted = [loss for _, _, loss, *_ in curve(run_there())]
    run = run_there()
    before = curve(run, 7)
    save_run(run, tmp_path)
    torch.manual_seed(99)
    resumed = run_there()
    assert load_run(resumed, tmp_path)
    assert resumed.device.type == device.type
    found = [loss for _, _, loss, *_ in before + curve(resumed)]
    assert found == pytest.approx(uninterrupted, rel=1e-4)  # a card adds up in another order each time


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


LENGTHS = np.random.default_rng(1).integers(1, 300, 5_000).tolist()


@given(st.lists(st.integers(1, 50), max_size=300), st.integers(1, 40), st.integers(0, 9))
def test_every_example_occurs_once_in_batches_of_the_size(lengths, batch_size, seed):
    batches = bucketed(lengths, batch_size, np.random.default_rng(seed))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    assert len(batches) == -(-len(lengths) // batch_size)
    assert all(len(batch) <= batch_size for batch in batches)


def test_the_seed_fixes_the_order_and_another_gives_another():
    first, again, other = (bucketed(LENGTHS, 16, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert first == again != other


def test_little_is_padding():
    batches = bucketed(LENGTHS, 16, np.random.default_rng(0))
    cells = sum(len(batch) * max(LENGTHS[place] for place in batch) for batch in batches)
    assert sum(LENGTHS) / cells > 0.95


def test_rows_are_padded_on_the_right():
    assert padded([[5, 6], [7]], 0).tolist() == [[5, 6], [7, 0]]


def test_what_cannot_be_batched_is_refused():
    with pytest.raises(ValueError, match=r"batch_size=0 must be at least 1"):
        bucketed([1], 0, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"rows=\[\[\]\] must hold at least one row with at least one id"):
        padded([[]], 0)


BERT_SIZES = ModelConfig(vocab_size=20, d_model=8, n_heads=2, d_ff=16, n_layers=1, max_len=8, dropout=0.0, n_segments=2)
MUON = TrainConfig(optimizer="muon", learning_rate=1e-2, weight_decay=0.1)


def give_gradients(model, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def test_muon_moves_the_matrices_of_linear_layers_and_adamw_all_other_parameters():
    model, same = Bert(BERT_SIZES), Bert(BERT_SIZES)
    same.load_state_dict(model.state_dict())
    layers = {name for name, module in same.named_modules() if isinstance(module, torch.nn.Linear)}
    linear = {f"{name}.weight" for name in layers - {"mlm_head.output.proj"}}
    assert len(linear) == 4 + 2 + 3
    named = dict(same.named_parameters())
    muon = torch.optim.Muon([named[n] for n in linear], lr=1e-2, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    others = [parameter for name, parameter in named.items() if name not in linear]
    adamw = [
        torch.optim.AdamW([p for p in others if (p.dim() > 1) == wide], 1e-2, ADAM_BETAS, weight_decay=decay)
        for wide, decay in ((True, 0.1), (False, 0.0))
    ]
    optimizer = make_optimizer(model, MUON)
    for seed in range(3):
        give_gradients(model, seed)
        give_gradients(same, seed)
        for each in (optimizer, muon, *adamw):
            each.step()
    for name, parameter in model.named_parameters():
        rounding = 5e-4 if name in linear else 1e-6  # torch's own orthogonalizes in 16 bits
        assert torch.allclose(parameter, named[name], atol=rounding, rtol=0), name


def test_a_step_of_muon_moves_a_matrix_in_every_direction_alike():
    model = Bert(BERT_SIZES)
    weight = model.pooler_proj.weight
    before = weight.detach().clone()
    give_gradients(model)
    make_optimizer(model, TrainConfig(optimizer="muon", learning_rate=1e-2, weight_decay=0.0)).step()
    sizes = torch.linalg.svdvals((weight - before).detach())
    assert sizes.max() / sizes.min() < 2
    assert torch.linalg.svdvals(weight.grad).max() / torch.linalg.svdvals(weight.grad).min() > 4
    assert float((weight - before).detach().square().mean().sqrt()) == pytest.approx(0.2 * 1e-2, rel=0.25)


def test_the_learning_rate_of_every_group_is_one_that_both_obey():
    model = Bert(BERT_SIZES)
    optimizer = make_optimizer(model, MUON)
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    give_gradients(model)
    optimizer.step()
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name]), name


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"optimizer": "lion"}, "optimizer='lion' is unknown; it must be one of 'adamw', 'adam', 'sgd', 'muon'"),
        ({"schedule": "linear"}, "schedule='linear' is unknown; it must be one of 'cosine', 'constant', 'noam'"),
        ({"precision": "float16"}, "precision='float16' is unknown; it must be one of 'float32', 'bfloat16'"),
        ({"learning_rate": 0.0}, "learning_rate=0.0 must be a number greater than 0"),
        ({"learning_rate": math.nan}, "learning_rate=nan must be a number greater than 0"),
        ({"learning_rate": "fast"}, "learning_rate='fast' must be a number greater than 0"),
        ({"weight_decay": -0.1}, "weight_decay=-0.1 must be a number at least 0"),
        ({"warm_up": 1.0}, "warm_up=1.0 must be a number at least 0 and less than 1"),
        ({"label_smoothing": -1}, "label_smoothing=-1 must be a number at least 0 and less than 1"),
        ({"clip_norm": 0}, "clip_norm=0 must be a number greater than 0"),
        ({"batch_size": 0}, "batch_size=0 must be a whole number from 1 to 65536"),
        ({"batch_size": 1.5}, "batch_size=1.5 must be a whole number from 1 to 65536"),
        ({"epochs": True}, "epochs=True must be a whole number from 1 to 100000"),
        ({"seed": -1}, f"seed=-1 must be a whole number from 0 to {2**63 - 1}"),
    ],
)
def test_what_does_not_fit_is_refused_by_name_value_and_need(choice, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        TrainConfig(**choice)


def test_no_clipping_is_a_choice():
    assert TrainConfig(clip_norm=None).clip_norm is None


def test_warm_up_rises_to_the_highest_rate_and_cosine_falls_to_zero():
    config = TrainConfig(learning_rate=2.0, warm_up=0.2, schedule="cosine")
    rates = [learning_rate_at(step, 10, config) for step in range(10)]
    assert rates[:2] == [1.0, 2.0]
    assert rates[5] == pytest.approx(1.0)
    assert rates[2:] == sorted(rates[2:], reverse=True)
    assert rates[-1] == pytest.approx(0.0)


def test_noam_is_the_papers_formula_scaled_to_its_peak():
    config = TrainConfig(learning_rate=1.0, warm_up=0.25, schedule="noam")
    papers = [min(t**-0.5, t * 4**-1.5) for t in range(1, 17)]
    ours = [learning_rate_at(step, 16, config) for step in range(16)]
    assert ours == pytest.approx([rate / max(papers) for rate in papers])


def test_constant_stays():
    config = TrainConfig(learning_rate=0.5, warm_up=0.0, schedule="constant")
    assert {learning_rate_at(step, 7, config) for step in range(7)} == {0.5}


@pytest.mark.parametrize("schedule", ["cosine", "noam"])
def test_without_warm_up_the_first_step_is_near_the_highest_rate(schedule):
    config = TrainConfig(learning_rate=1.0, warm_up=0.0, schedule=schedule)
    assert learning_rate_at(0, 100, config) == pytest.approx(1.0, abs=0.01)


def test_a_step_outside_the_run_is_refused():
    with pytest.raises(ValueError, match="step=3 must be at least 0 and less than total_steps=3"):
        learning_rate_at(3, 3, TrainConfig())


def test_a_range_test_multiplies_the_rate_by_the_same_factor_at_every_step_and_nothing_else_moves_it():
    config = replace(CONFIG, range_test=True, range_from=1e-5, range_to=1.0, warm_up=0.5)
    rates = [learning_rate_at(step, 101, config) for step in range(101)]
    assert rates[0] == 1e-5
    assert rates[100] == pytest.approx(1.0)
    assert np.diff(np.log10(rates)) == pytest.approx([0.05] * 100)
    assert [step.learning_rate for step in make_run(config).steps()][-1] == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"range_from=1 must be less than range_to=0\.1"):
        replace(config, range_from=1.0, range_to=0.1)


def test_a_range_test_whose_loss_is_no_number_ends_and_any_other_run_fails():
    def objective(model, batch):
        return classification(model, batch) * (float("nan") if run.step == 3 else 1.0)

    for is_range_test in (True, False):
        run = make_run(replace(CONFIG, range_test=is_range_test), objective=objective)
        steps = until_diverged(run)
        assert [step.step for step in islice(steps, 3)] == [1, 2, 3]
        if is_range_test:
            assert list(steps) == []
        else:
            with pytest.raises(DivergedError):
                next(steps)


PATIENT = replace(CONFIG, patience=2, warm_up=0.0)


@pytest.mark.parametrize(
    ("config", "losses", "found"),
    [
        (PATIENT, [3.0, 2.0, 2.1, 2.0], (True, 3, 1, 2.0, 2)),
        (PATIENT, [3.0, 2.0, 2.1, 1.9, 2.0], (False, 4, 3, 1.9, 1)),
        (PATIENT, [3.0, 2.0, None, None, 1.0], (True, 3, 1, 2.0, 2)),
        (PATIENT, [3.0, 2.0, 2.1], (False, 2, 1, 2.0, 1)),
        (replace(PATIENT, min_improvement=0.5), [3.0, 2.6, 2.5, 1.0], (True, 2, 2, 2.5, 2)),
        (replace(PATIENT, min_improvement=0.5), [3.0, 2.6, 2.4, 2.0], (False, 3, 3, 2.0, 1)),
        (replace(PATIENT, warm_up=0.2), [3.0, 3.0, 3.0, 3.0, 2.9], (False, 4, 4, 2.9, 0)),
        (replace(PATIENT, warm_up=0.2), [3.0, 3.0, 3.0, 3.0, 3.0], (True, 4, 0, 3.0, 2)),
        (replace(PATIENT, patience=None), [3.0, 3.0, 3.0, 3.0], (False, 3, 0, 3.0, 3)),
        (replace(PATIENT, range_test=True), [3.0, 3.0, 3.0, 3.0], (False, 3, 0, 3.0, 3)),
    ],
)
def test_early_stopping_counts_evaluations_without_an_improvement_after_the_warm_up(config, losses, found):
    seen = watch(enumerate(losses), config, 10)
    assert (seen.stopped, seen.step, seen.best_step, seen.best, seen.waited) == found


def test_patience_that_runs_out_at_the_last_step_stops_nothing_and_no_loss_at_all_has_no_best():
    assert not watch(enumerate([1.0, 1.0, 1.0]), PATIENT, 2).stopped
    assert math.isnan(watch([(0, None)], PATIENT, 2).best)
