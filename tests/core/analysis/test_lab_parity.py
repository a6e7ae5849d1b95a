"""Ablation, patching and steering give what a plain loop over torch's hooks gives, on our models and on GPT-2's."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.helpers import nightly_but
from tests.helpers.lab_models import (
    MADE,
    TRANSFORMERS,
    Change,
    bundle_of,
    cases_of,
    found_at,
    hooked,
    log_prob,
    near,
    put,
    texts_of,
    without,
)
from tests.helpers.open_checkpoints import written
from transformer_core.analysis.lab.cases import Cases, built_in_cases, one_case, text_cases
from transformer_core.analysis.lab.changes import (
    EVERYWHERE,
    HeadOff,
    Patch,
    Steer,
    attentions,
    code_of,
    donor_of,
    mean_heads,
    patched_sites,
    position_pairs,
    random_like,
    streams,
)
from transformer_core.analysis.lab.changes import FEW as FEW_TEXTS
from transformer_core.analysis.lab.changes import Change as LabChange
from transformer_core.analysis.lab.directions import FEW, Direction, direction_of, stack_at, stream_norm
from transformer_core.analysis.lab.heads_off import all_heads, head_boards
from transformer_core.analysis.lab.intervention import changed_answers, intervene, written_with
from transformer_core.analysis.lab.patching import heads_in, patch_map, patched_stacks, sites_of
from transformer_core.bundle import Bundle
from transformer_core.checkpoints import load

GATE = ("classifier", "bert", "gpt", "lm gru", "seq2seq")
EACH = nightly_but(MADE, GATE)


def changed(cases: Cases, *changes: LabChange) -> float:
    return float(changed_answers(cases, changes).log_prob[0])


def by_hooks(cases: Cases, changes: dict[str, Change]) -> float:
    return log_prob(cases, hooked(cases.bundle.model, changes))


@pytest.mark.parametrize("name", nightly_but(TRANSFORMERS, GATE))
def test_heads_off_are_columns_of_the_joined_heads_set_to_zero(name: str) -> None:
    bundle = bundle_of(name)
    cases = cases_of(bundle)
    before = log_prob(cases, bundle.model)
    boards = head_boards(bundle=bundle, text=texts_of(name)[0], n_tokens=20)
    assert boards.before == pytest.approx(before, abs=near(cases))
    assert boards.passes == 1 + len(all_heads(bundle))
    for kind, scopes in attentions(bundle).items():
        for layer, scope in enumerate(scopes):
            for head in range(2):
                expected = by_hooks(cases, {f"{scope}.heads": without(head)})
                assert changed(cases, HeadOff(scope, head)) == pytest.approx(expected, abs=near(cases))
                assert boards.change[kind][layer, head] == pytest.approx(expected - before, abs=2 * near(cases))
                assert abs(expected - before) > near(cases), "a head that does nothing tells nothing"


def read_alone(cases: Cases, row: int) -> list[Tensor]:
    """Return one of several texts without its padding."""
    sides = tuple(cases.lengths)
    return [ids[row : row + 1, : cases.lengths[side][row]] for ids, side in zip(cases.inputs, sides, strict=True)]


@pytest.mark.parametrize(
    "name", nightly_but(["classifier post-norm", "gpt", "translation"], ["classifier post-norm", "gpt"])
)
def test_a_heads_mean_is_that_over_every_token_of_the_built_in_texts(name: str) -> None:
    bundle = bundle_of(name)
    built_in, means, cases = built_in_cases(bundle, FEW_TEXTS, 0), mean_heads(bundle), cases_of(bundle)
    for scope in (scopes[-1] for scopes in attentions(bundle).values()):
        seen = [found_at(bundle, f"{scope}.heads", *read_alone(built_in, row))[0] for row in range(len(built_in))]
        expected = torch.cat(seen, 1).mean(1)  # (head, d_head)
        torch.testing.assert_close(means[scope], expected, atol=1e-5, rtol=0.0)
        by_mean = by_hooks(cases, {f"{scope}.heads": without(1, expected[1])})
        assert changed(cases, HeadOff(scope, 1, "mean")) == pytest.approx(by_mean, abs=near(cases))


@pytest.mark.parametrize("name", EACH)
def test_the_exact_map_is_that_of_a_loop_over_hooks(name: str) -> None:
    bundle = bundle_of(name)
    (text, other), first = texts_of(name), cases_of(bundle)
    for stack in patched_stacks(bundle):
        found = patch_map(bundle=bundle, text=text, other=other, n_tokens=20, stack=stack)
        second = donor_of(first, other)
        pairs = position_pairs(first, second, stack)
        low, high = log_prob(second, bundle.model), log_prob(first, bundle.model)
        span, close_by = high - low, 2 * near(first) / min(1.0, abs(high - low))
        assert (found.first, found.second) == pytest.approx((high, low), abs=near(first))
        assert found.pairs.tolist() == [list(pair) for pair in pairs]
        expected = np.zeros(found.exact.shape)
        for place, sites in enumerate(sites_of(bundle, stack).values()):
            for layer, site in enumerate(sites):
                taken = found_at(bundle, site, *first.inputs)
                for index, (here, there) in enumerate(pairs):
                    patched = by_hooks(second, {site: put([there], taken[:, [here]])})
                    expected[place, layer, index] = (patched - low) / span
        np.testing.assert_allclose(found.exact, expected, atol=close_by)
        rows, columns = [there for _, there in pairs], [here for here, _ in pairs]
        for layer, site in enumerate(heads_in(bundle, stack)):
            taken = found_at(bundle, site, *first.inputs)[:, :, columns]
            for head in range(2):
                came_back = (by_hooks(second, {site: put(rows, taken, head)}) - low) / span
                assert found.heads[layer, head] == pytest.approx(came_back, abs=close_by)
        assert found.passes == found.exact.size + found.heads.size


@pytest.mark.parametrize("name", nightly_but(MADE, ("classifier post-norm", "translation", "lm lstm")))
def test_a_patch_alone_takes_one_position_or_all_that_are_aligned(name: str) -> None:
    bundle = bundle_of(name)
    cases, other = cases_of(bundle), texts_of(name)[1]
    donor = donor_of(cases, other)
    for site in patched_sites(bundle):
        taken = found_at(bundle, site, *donor.inputs)
        pairs = position_pairs(cases, donor, stack_at(site))
        rows, columns = [one for one, _ in pairs], [two for _, two in pairs]
        one = by_hooks(cases, {site: put(rows[-1:], taken[..., columns[-1:], :])})
        assert changed(cases, Patch(site, other, *pairs[-1])) == pytest.approx(one, abs=near(cases)), site
        every = by_hooks(cases, {site: put(rows, taken[..., columns, :])})
        assert changed(cases, Patch(site, other)) == pytest.approx(every, abs=near(cases)), site
        if site.endswith(".heads"):
            alone = by_hooks(cases, {site: put(rows, taken[..., columns, :], 1)})
            assert changed(cases, Patch(site, other, head=1)) == pytest.approx(alone, abs=near(cases)), site


@pytest.mark.parametrize("name", EACH)
def test_steering_adds_a_direction_of_so_many_mean_lengths(name: str) -> None:
    bundle = bundle_of(name)
    cases, built_in = cases_of(bundle), built_in_cases(bundle, FEW, 0)
    for sites in streams(bundle).values():
        site, direction = sites[0], Direction("random", index=7)
        unit = direction_of(bundle, site, direction)
        assert float(unit.norm()) == pytest.approx(1.0, abs=1e-6)
        lengths = [found_at(bundle, site, *read_alone(built_in, row))[0].norm(dim=-1) for row in range(len(built_in))]
        if "recurrent" not in site and "hidden" not in site:  # whose hook sees 64 steps
            assert stream_norm(bundle, site) == pytest.approx(float(torch.cat(lengths).mean()), rel=1e-5)
        added = 0.8 * stream_norm(bundle, site) * unit
        for position in (EVERYWHERE, 1):

            def add(stream: Tensor, at: int = position, by: Tensor = added) -> Tensor:
                stream[:, slice(None) if at == EVERYWHERE else slice(at, at + 1)] += by
                return stream

            expected = by_hooks(cases, {site: add})
            assert changed(cases, Steer(site, 0.8, direction, position)) == pytest.approx(expected, abs=near(cases))
            assert abs(expected - log_prob(cases, bundle.model)) > near(cases)


def test_several_changes_at_once_are_several_hooks_at_once() -> None:
    bundle = bundle_of("gpt")
    cases = cases_of(bundle)
    scope, site = "decoder.layer0.self_attention", "decoder.layer1.residual"
    direction = Direction("texts", first="a good film", second="the bell was bad")
    added = -0.5 * stream_norm(bundle, site) * direction_of(bundle, site, direction)

    def both(heads: Tensor) -> Tensor:
        return without(1)(without(0)(heads))

    expected = by_hooks(cases, {f"{scope}.heads": both, site: lambda stream: stream + added})
    changes = (HeadOff(scope, 0), HeadOff(scope, 1), Steer(site, -0.5, direction))
    assert changed(cases, *changes) == pytest.approx(expected, abs=near(cases))
    effect = intervene(bundle=bundle, text=texts_of("gpt")[0], n_tokens=20, changes=tuple(map(code_of, changes)))
    assert effect.after == pytest.approx(expected, abs=near(cases))
    assert effect.before == pytest.approx(log_prob(cases, bundle.model), abs=near(cases))


def written_by_hooks(bundle: Bundle, text: str, changes: dict[str, Change], most: int) -> str:
    """Return what a model writes, each time the likeliest token, reading everything again at each step."""
    ids = list(bundle.tokenizer.encode(text).ids)
    for _ in range(most):
        with torch.no_grad():
            logits = hooked(bundle.model, changes)(torch.tensor([ids]))
        ids.append(int(logits[0, -1].argmax()))
    return bundle.tokenizer.decode(ids[-most:])


@pytest.mark.parametrize("name", ["gpt", "lm gru", "lm lstm"])
def test_a_steered_text_is_written_by_the_model_that_hooks_steer(name: str) -> None:
    """The likeliest token by a temperature near 0; the prompt's own tokens are steered as well."""
    bundle, text = bundle_of(name), texts_of(name)[0]
    site, direction = next(iter(streams(bundle).values()))[0], Direction("random", index=2)
    added = 1.5 * stream_norm(bundle, site) * direction_of(bundle, site, direction)
    for position in (EVERYWHERE, 1):

        def add(stream: Tensor, at: int = position) -> Tensor:
            stream[:, slice(None) if at == EVERYWHERE else slice(at, at + 1)] += added
            return stream

        changes = (code_of(Steer(site, 1.5, direction, position)),)
        found = written_with(bundle=bundle, text=text, n_tokens=20, changes=changes, most=8, temperature=1e-4)
        assert found.before == written_by_hooks(bundle, text, {}, 8)
        assert found.after == written_by_hooks(bundle, text, {site: add}, 8)


@pytest.mark.parametrize("name", ["classifier", "bert", "gpt", "translation"])
def test_two_lists_lead_from_mean_to_mean_each_text_counting_the_same(name: str) -> None:
    bundle = bundle_of(name)
    lists = (("a good film", "the bell"), ("the film was bad", "a box of glass rings", "not good"))
    for sites in streams(bundle).values():
        first, second = (
            torch.stack(
                [found_at(bundle, sites[-1], *text_cases(bundle, (text,)).inputs)[0].double().mean(0) for text in texts]
            ).mean(0)
            for texts in lists
        )
        direction = Direction("texts", first="\n\n".join(lists[0]), second=" \n".join(lists[1]))
        found = direction_of(bundle, sites[-1], direction).double()
        torch.testing.assert_close(found, (first - second) / (first - second).norm(), atol=1e-5, rtol=0.0)


def test_a_list_without_end_is_told() -> None:
    with pytest.raises(ValueError, match="second has 201 lines"):
        Direction("texts", first="a", second="b\n" * 201)


@pytest.mark.parametrize("name", EACH)
def test_controls_that_are_read_together_are_those_read_alone(name: str) -> None:
    bundle, (text, other) = bundle_of(name), texts_of(name)
    cases = cases_of(bundle)
    site = next(iter(streams(bundle).values()))[0]
    position = position_pairs(cases, donor_of(cases, other), stack_at(site))[-1]
    tried: list[tuple[LabChange, ...]] = [
        (Steer(site, 0.7, Direction("random", index=3)),),
        (Patch(site, other, *position), Steer(site, -0.4, Direction("random", index=5))),
    ]
    tried += [(HeadOff(scopes[0], 1), HeadOff(scopes[-1], 0, "mean")) for scopes in attentions(bundle).values()]
    for changes in tried:
        drawn = random_like(changes, cases, range(4))
        found = intervene(bundle=bundle, text=text, n_tokens=20, changes=tuple(map(code_of, changes)), controls=4)
        expected = [changed(cases, *these) for these in drawn]
        np.testing.assert_allclose(found.controls, expected, atol=near(cases))
        assert len(set(np.round(expected, 6))) > 1


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
