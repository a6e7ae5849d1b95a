"""How far signals and gradients reach, what layers cost, and quality by length as it was measured."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from tests.helpers import ROOT, refusals
from tests.helpers.engine import work_for_time
from transformer_core.analysis.before import layer_types, step_times
from transformer_core.analysis.before.by_length import by_length, read_by_length
from transformer_core.analysis.before.layer_types import KERNELS, make_layers, operations, path_length
from transformer_core.analysis.before.reach import gradient_reach, jacobian_norms
from transformer_core.measured_files import FOLDER
from transformer_core.models.recurrent import Gru


def test_norms_are_those_of_the_whole_jacobian() -> None:
    torch.manual_seed(0)
    layer, x = Gru(3, 4), torch.randn(2, 5, 3, requires_grad=True)
    found = jacobian_norms(layer(x)[0][:, -1], x)
    for row in range(2):
        whole = torch.autograd.functional.jacobian(lambda y: layer(y)[0][0, -1], x[row : row + 1])[:, 0]
        torch.testing.assert_close(found[row], whole.square().sum((0, 2)).sqrt())


def test_steps_in_between_fade_and_attention_does_not() -> None:
    found = gradient_reach(length=48, d_model=16, seed=0)
    assert found.systems == ("plain", "gru", "lstm", "attention")
    assert found.norms.shape == (4, 48)
    assert found.distances.tolist() == list(range(48))
    plain, gru, lstm, attention = found.norms
    for steps in (plain, gru, lstm):
        assert steps[-1] < 1e-2 * steps[0]
    assert attention[1:].max() < 20 * attention[1:].min()
    np.testing.assert_allclose(found.relative[:, 0], 1.0)


def test_small_matrices_fade_sooner_and_open_gates_later() -> None:
    plain = gradient_reach(length=24, d_model=16, seed=0)
    small = gradient_reach(length=24, d_model=16, seed=0, gain=0.5)
    kept = gradient_reach(length=24, d_model=16, seed=0, keep_bias=2.0)
    assert small.half[0] <= plain.half[0]
    assert small.norms[0, -1] < plain.norms[0, -1]
    assert (kept.norms[1:3, -1] > plain.norms[1:3, -1]).all()
    assert np.array_equal(kept.norms[[0, 3]], plain.norms[[0, 3]])


@pytest.fixture
def small_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure how many numbers a call makes in place of its seconds, at few lengths; the clock stands at 5."""
    work_for_time(monkeypatch)
    for module, lengths in ((step_times, (16, 32, 64, 128)), (layer_types, (16, 32, 64, 128))):
        monkeypatch.setattr(module, "LENGTHS", lengths)
        monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: 5.0))


@pytest.mark.usefixtures("small_work")
def test_one_more_word_costs_a_recurrent_layer_the_same_and_attention_more_the_longer_the_text() -> None:
    found = step_times.step_times(d_model=32, seed=0, measurement=0)
    assert found.measured == 5.0
    assert found.systems == step_times.SYSTEMS
    assert found.lengths.tolist() == [16, 32, 64, 128]
    gru, lstm, attention = found.kept_numbers
    assert gru.tolist() == [32] * 4
    assert lstm.tolist() == [64] * 4
    assert attention.tolist() == [64 * length for length in found.lengths.tolist()]
    assert [np.ptp(row) == 0 for row in found.step] == [True, True, False]
    assert (np.diff(found.step[2]) > 0).all()
    assert found.step_slopes[2] == pytest.approx(1, abs=0.2)
    assert found.reading[:, -1] == pytest.approx(8 * found.reading[:, 0], rel=0.05)  # of 16 and of 128 positions
    assert found.reading_slopes == pytest.approx([1, 1, 1], abs=0.05)


def multiplied(call) -> int:
    """Return the multiplications that torch counts in a call: it counts additions, too, so twice as many."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        call()
    return counter.get_total_flops() // 2


@pytest.mark.parametrize(("n", "d", "k"), [(8, 16, 2), (16, 4, 3), (5, 12, 5), (33, 8, 9)])
def test_operations_are_those_that_torch_counts(n: int, d: int, k: int) -> None:
    x, w, u = torch.randn(1, n, d), torch.randn(d, d), torch.randn(d, d)
    heads = x.view(1, n, 2, d // 2).transpose(1, 2)
    attend = multiplied(lambda: (heads @ heads.mT).softmax(-1) @ heads)
    assert attend == operations("attention", n, d, k)

    def recur() -> None:
        h = torch.zeros(1, d)
        for place in range(n):
            h = torch.tanh(x[:, place] @ w + h @ u)

    assert multiplied(recur) == operations("recurrent", n, d, k)
    layers = make_layers(d, k)
    assert multiplied(lambda: layers["convolution"](x)) == operations("convolution", n, d, k)


def arrives(layers: list, n: int, d: int = 4) -> bool:
    """Tell whether the first position's input moves the last position's output."""
    x = torch.randn(1, n, d, dtype=torch.float64, requires_grad=True)
    y = x.mT
    for dilation, convolution in layers:
        reach = dilation * (convolution.kernel_size[0] - 1)
        y = convolution(nn.functional.pad(y, (reach, 0)))
    y[0, :, -1].sum().backward()
    assert x.grad is not None
    return bool(x.grad[0, 0].abs().sum() > 0)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n", [2, 3, 9, 10, 17, 28])
@pytest.mark.parametrize("dilated", [False, True])
def test_a_signal_crosses_so_many_convolutions_and_no_fewer(kernel: int, n: int, dilated: bool) -> None:
    needed = path_length("dilated" if dilated else "convolution", n, kernel)

    def stack(depth: int) -> list:
        dilations = [kernel**layer if dilated else 1 for layer in range(depth)]
        made = [(dilation, nn.Conv1d(4, 4, kernel, dilation=dilation, dtype=torch.float64)) for dilation in dilations]
        for _, convolution in made:
            nn.init.constant_(convolution.weight, 0.3)
        return made

    assert arrives(stack(needed), n)
    assert not arrives(stack(needed - 1), n) or needed == 1


def test_attention_crosses_in_one_layer_and_recurrence_step_by_step() -> None:
    layers = make_layers(8, 3)
    for name in ("attention", "recurrent"):
        x = torch.randn(1, 6, 8, requires_grad=True)
        layers[name](x)[0, -1].sum().backward()
        assert x.grad is not None
        assert bool((x.grad[0].abs().sum(-1) > 0).all())
    assert (path_length("attention", 6, 3), path_length("recurrent", 6, 3)) == (1, 5)


def test_no_output_of_a_convolution_sees_a_later_position_and_all_keep_the_shape() -> None:
    x = torch.randn(1, 7, 8)
    changed = x.clone()
    changed[:, 5:] += 1
    for name, layer in make_layers(8, 3).items():
        with torch.no_grad():
            assert layer(x).shape == x.shape
            if name != "attention":
                torch.testing.assert_close(layer(x)[:, :5], layer(changed)[:, :5])


@pytest.mark.usefixtures("small_work")
def test_what_is_counted_and_timed_has_a_row_a_system() -> None:
    found = layer_types.layer_types(d_model=32, kernel=3, seed=0, measurement=0)
    assert found.measured == 5.0
    assert found.systems == layer_types.SYSTEMS
    assert found.seconds.shape == found.operations.shape == found.steps.shape == (3, 4)
    assert (np.diff(found.seconds) > 0).all()
    assert found.steps.tolist() == [[1] * 4, found.lengths.tolist(), [1] * 4]
    assert found.paths.shape == (4, 4)
    assert found.overtaken() == 33  # at 32 both multiply as often
    np.testing.assert_array_equal(found.operations[0] > found.operations[1], found.lengths > 32)


SHIPPED = FOLDER / "length_en_fr.json"


def changed(folder: Path, **changes) -> Path:
    """Write the shipped file with other values."""
    path = folder / "other.json"
    path.write_text(json.dumps(json.loads(SHIPPED.read_text()) | changes))
    return path


def test_the_shipped_file_is_of_shipped_models_and_fits_their_cards() -> None:
    found = by_length(name="length_en_fr")
    assert found.bleu.shape == (len(found.models), len(found.fewest)) == (3, 5)
    assert int(found.sentences.sum()) == 1_000
    for name, overall in zip(found.models, found.overall, strict=True):
        card = (ROOT / "assets" / "checkpoints" / name / "card.md").read_text(encoding="utf-8")
        assert f"BLEU {overall:.2f}" in card
        assert name in found.command
    np.testing.assert_allclose(found.lost, found.bleu[:, 0] - found.bleu[:, -1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bins": []}, r"bins=\[\] must be a list of 1 to 40 objects"),
        ({"bins": [{"fewest": 9, "most": 8, "sentences": 1}]}, "must follow each other"),
        (
            {"bins": [{"fewest": n, "most": n, "sentences": n - 1} for n in range(1, 6)]},
            "sentences=0 must be a whole number",
        ),
        (
            {"models": [{"name": "x", "overall": 1, "bleu": [1], "low": [1], "high": [1]}]},
            r"bleu=\[1.0\] must be a list of 5 numbers",
        ),
        ({"models": [{"name": "x", "overall": 1, "bleu": [101] * 5}]}, "bleu=101 must be a number from 0 to 100"),
        (
            {"models": [{"name": "x", "overall": 1, "bleu": [9] * 5, "low": [10] * 5, "high": [11] * 5}]},
            "bleu must be from low to high",
        ),
        ({"command": ""}, "command='' must be printable"),
        ({"beam": True}, "beam=True must be a whole number"),
    ],
)
def test_impossible_values_are_refused(tmp_path: Path, changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_by_length(changed(tmp_path, **changes))


def test_other_files_are_refused(tmp_path: Path) -> None:
    for text in ("[]", "{", "[" * 10_000, "x" * 100_000):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(ValueError, match=r"bad\.json"):
            read_by_length(tmp_path / "bad.json")
    for name in ("../checkpoints", "nothing", ""):
        with pytest.raises(ValueError, match="must be that of a file in assets/measured"):
            by_length(name=name)


REFUSED = [
    (lambda: gradient_reach(length=1, d_model=8, seed=0), "length=1"),
    (lambda: gradient_reach(length=257, d_model=8, seed=0), "length=257"),
    (lambda: gradient_reach(length=8, d_model=6, seed=0), "d_model=6"),
    (lambda: gradient_reach(length=8, d_model=68, seed=0), "d_model=68"),
    (lambda: step_times.step_times(d_model=33, seed=0, measurement=0), "d_model=33 must be one of 32, 64"),
    (lambda: layer_types.layer_types(d_model=32, kernel=4, seed=0, measurement=0), "kernel=4 must be one of 2, 3"),
    (lambda: layer_types.layer_types(d_model=33, kernel=3, seed=0, measurement=0), "d_model=33 must be one of 32"),
    (lambda: path_length("x", 3, 3), "system='x' must be one of attention"),
    (lambda: operations("x", 3, 3, 3), "system='x' must be one of attention"),
]
test_what_cannot_be_asked_is_told = refusals(REFUSED)
