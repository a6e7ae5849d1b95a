"""On random weights of GPT-2's shape the Lab gives what hooks on the model of `transformers` give."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.helpers.open_checkpoints import written
from transformer_core.analysis.lab.cases import Cases, one_case
from transformer_core.analysis.lab.changes import HeadOff, Steer
from transformer_core.analysis.lab.directions import Direction, direction_of, stream_norm
from transformer_core.analysis.lab.intervention import changed_answers
from transformer_core.analysis.lab.patching import patch_map
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load

NEAR = 1e-5
TEXT, OTHER = "a glass 你 好 glass a", "a cafe 你 好 cafe a"
HEADS, LAYERS, WIDTH = 3, 3, 8
Hook = tuple[Any, bool, Callable[[Tensor], Tensor]]


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> tuple[Bundle, Any]:
    """Return one model as ours and as theirs."""
    folder: Path = tmp_path_factory.mktemp("gpt2")
    sizes = {"n_embd": HEADS * WIDTH, "n_head": HEADS, "n_layer": LAYERS, "n_positions": 32}
    theirs = written("GPT2LMHeadModel", folder, **sizes)
    return load(folder, device="cpu"), theirs


@pytest.fixture(scope="module")
def both(gpt2: tuple[Bundle, Any]) -> tuple[Cases, Cases]:
    """Return two texts, asked for one token."""
    asked = one_case(bundle=gpt2[0], text=TEXT, n_tokens=20)
    answer = int(asked.answers[0].max())
    first, second = (one_case(bundle=gpt2[0], text=text, n_tokens=20, answer=answer) for text in (TEXT, OTHER))
    return first, second


def theirs_alone(theirs: Any, cases: Cases, hooks: Sequence[Hook] = ()) -> float:
    """Return their ln p of the answer under hooks: a module, whether before it, and a function of its tensor."""

    def before(change: Callable[[Tensor], Tensor]) -> Any:
        return lambda _, given: (change(given[0].clone()), *given[1:])

    def after(change: Callable[[Tensor], Tensor]) -> Any:
        return lambda _, __, made: (
            (change(made[0].clone()), *made[1:]) if isinstance(made, tuple) else change(made.clone())
        )

    handles = [
        module.register_forward_pre_hook(before(change)) if first else module.register_forward_hook(after(change))
        for module, first, change in hooks
    ]
    slot = int(torch.nonzero(cases.answers[0] >= 0)[-1])
    with torch.no_grad():
        scores = theirs(cases.inputs[0][:, : slot + 1]).logits[0, -1].double().log_softmax(-1)
    for handle in handles:
        handle.remove()
    return float(scores[cases.answers[0, slot]])


def test_heads_off_are_columns_before_their_projection(gpt2, both) -> None:
    theirs = gpt2[1]
    before = theirs_alone(theirs, both[0])
    for layer, block in enumerate(theirs.transformer.h):
        for head in range(HEADS):

            def off(joined: Tensor, head: int = head) -> Tensor:
                joined[..., WIDTH * head : WIDTH * (head + 1)] = 0.0
                return joined

            expected = theirs_alone(theirs, both[0], [(block.attn.c_proj, True, off)])
            change = HeadOff(f"decoder.layer{layer}.self_attention", head)
            assert float(changed_answers(both[0], (change,)).log_prob[0]) == pytest.approx(expected, abs=NEAR)
            assert abs(expected - before) > NEAR


def test_the_exact_map_is_that_of_a_loop_over_their_hooks(gpt2, both) -> None:
    bundle, theirs = gpt2
    first, second = both
    slot = int(torch.nonzero(first.answers[0] >= 0)[-1])
    found = patch_map(
        bundle=bundle, text=TEXT, other=OTHER, n_tokens=20, stack="decoder", answer=int(first.answers[0, slot])
    )
    high, low = theirs_alone(theirs, first), theirs_alone(theirs, second)
    assert (found.first, found.second) == pytest.approx((high, low), abs=NEAR)
    compared = 0
    for place, name in enumerate(found.places):
        for layer, block in enumerate(theirs.transformer.h):
            module = {"residual": block, "attention": block.attn, "feed_forward": block.mlp}[name]
            kept: list[Tensor] = []

            def keep(made: Tensor, to: list = kept) -> Tensor:
                to.append(made.clone())
                return made

            theirs_alone(theirs, first, [(module, False, keep)])
            for index, (here, there) in enumerate(found.pairs.tolist()):
                if max(here, there) > slot:
                    continue  # a token of the template behind the one that the answer follows

                def put_in(made: Tensor, here: int = here, there: int = there, of: list = kept) -> Tensor:
                    made[:, there] = of[0][:, here]
                    return made

                came_back = (theirs_alone(theirs, second, [(module, False, put_in)]) - low) / (high - low)
                close_by = 2 * NEAR / min(1.0, abs(high - low))
                assert found.exact[place, layer, index] == pytest.approx(came_back, abs=close_by)
                compared += 1
    assert compared >= len(found.places) * LAYERS * 4


def test_a_row_of_the_output_steers_alike(gpt2, both) -> None:
    bundle, theirs = gpt2
    direction, site = Direction("lens", index=5), "decoder.layer1.residual"
    row = theirs.lm_head.weight[5].detach()
    torch.testing.assert_close(direction_of(bundle, site, direction), row / row.norm(), atol=NEAR, rtol=0.0)
    added = 0.6 * stream_norm(bundle, site) * row / row.norm()
    expected = theirs_alone(theirs, both[0], [(theirs.transformer.h[1], False, lambda made: made + added)])
    ours = float(changed_answers(both[0], (Steer(site, 0.6, direction),)).log_prob[0])
    assert ours == pytest.approx(expected, abs=NEAR)
