import pytest
import torch

from transformer_core import Bert, ModelConfig
from transformer_core.training.config import TrainConfig
from transformer_core.training.optimizers import ADAM_BETAS, make_optimizer

SIZES = ModelConfig(vocab_size=20, d_model=8, n_heads=2, d_ff=16, n_layers=1, max_len=8, dropout=0.0, n_segments=2)
CONFIG = TrainConfig(optimizer="muon", learning_rate=1e-2, weight_decay=0.1)


def give_gradients(model, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def test_muon_moves_the_matrices_of_linear_layers_and_adamw_all_other_parameters():
    model, same = Bert(SIZES), Bert(SIZES)
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
    optimizer = make_optimizer(model, CONFIG)
    for seed in range(3):
        give_gradients(model, seed)
        give_gradients(same, seed)
        for each in (optimizer, muon, *adamw):
            each.step()
    for name, parameter in model.named_parameters():
        assert torch.allclose(parameter, named[name], atol=1e-6), name


def test_a_step_of_muon_moves_a_matrix_in_every_direction_alike():
    model = Bert(SIZES)
    weight = model.pooler_proj.weight
    before = weight.detach().clone()
    give_gradients(model)
    make_optimizer(model, TrainConfig(optimizer="muon", learning_rate=1e-2, weight_decay=0.0)).step()
    sizes = torch.linalg.svdvals((weight - before).detach())
    assert sizes.max() / sizes.min() < 2
    assert torch.linalg.svdvals(weight.grad).max() / torch.linalg.svdvals(weight.grad).min() > 4
    assert float((weight - before).detach().square().mean().sqrt()) == pytest.approx(0.2 * 1e-2, rel=0.25)


def test_the_learning_rate_of_every_group_is_one_that_both_obey():
    model = Bert(SIZES)
    optimizer = make_optimizer(model, CONFIG)
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    give_gradients(model)
    optimizer.step()
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, before[name]), name
