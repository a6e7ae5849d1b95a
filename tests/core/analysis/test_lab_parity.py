"""Ablation, patching and steering give what a plain loop over torch's hooks gives."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.helpers import nightly_but
from tests.helpers.engine import shipped
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
from transformer_core.analysis.lab.cases import Cases, donor_of, position_pairs, text_cases
from transformer_core.analysis.lab.changes import (
    EVERYWHERE,
    HeadOff,
    Patch,
    Steer,
    code_of,
    patched_sites,
    random_like,
    streams,
)
from transformer_core.analysis.lab.changes import Change as LabChange
from transformer_core.analysis.lab.directions import FEW, Direction, direction_of, stack_at, stream_norm
from transformer_core.analysis.lab.heads_off import (
    ENOUGH,
    all_heads,
    attentions,
    compare_ablations,
    few_heads,
    head_boards,
    mean_heads,
)
from transformer_core.analysis.lab.heads_off import FEW as FEW_TEXTS
from transformer_core.analysis.lab.intervention import (
    changed_answers,
    intervene,
    judged_continuations,
    resampled,
    written_with,
)
from transformer_core.analysis.lab.patching import (
    PARTS,
    head_ways,
    heads_in,
    patch_map,
    patched_stacks,
    sites_of,
    two_methods,
)
from transformer_core.analysis.lab.text_sets import measured_cases
from transformer_core.bundle import Bundle
from transformer_core.prompt import Prompt

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
    boards = head_boards(prompt=Prompt(bundle, texts_of(name)[0], 20))
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
    built_in, means, cases = measured_cases(bundle, FEW_TEXTS, 0), mean_heads(bundle), cases_of(bundle)
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
        found = patch_map(prompt=Prompt(bundle, text, 20), other=Prompt(bundle, other, 20), stack=stack)
        second = donor_of(first, Prompt(bundle, other, 20))
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
    donor = donor_of(cases, Prompt(bundle, other, 20))
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


ONE_STACK = nightly_but([name for name in TRANSFORMERS if name != "translation"], GATE)


def asked_of_two(name: str) -> tuple[Bundle, dict[str, Any]]:
    """Return a model of one stack, and what is asked of its two texts."""
    bundle = bundle_of(name)
    (stack,) = patched_stacks(bundle)
    prompt, other = (Prompt(bundle, text, 20) for text in texts_of(name))
    return bundle, {"prompt": prompt, "other": other, "stack": stack}


def cases_of_two(bundle: Bundle) -> tuple[Cases, Cases, list[int], list[int]]:
    """Return the first text, the second as it is asked for the same, and the aligned positions of both."""
    first, (stack,) = cases_of(bundle), patched_stacks(bundle)
    second = donor_of(first, Prompt(bundle, texts_of(bundle.name)[1], 20))
    pairs = position_pairs(first, second, stack)
    return first, second, [one for one, _ in pairs], [two for _, two in pairs]


@pytest.mark.parametrize("name", ONE_STACK)
def test_on_a_way_one_later_head_reads_a_head_of_the_other_text_and_all_others_are_held(name: str) -> None:
    bundle, asked = asked_of_two(name)
    first, second, columns, rows = cases_of_two(bundle)
    own, later = heads_in(bundle, asked["stack"])
    found = head_ways(**asked, layer=0, head=1)
    low, high = log_prob(second, bundle.model), log_prob(first, bundle.model)

    def share(changes: dict[str, Change]) -> float:
        return (by_hooks(second, changes) - low) / (high - low)

    taken = found_at(bundle, own, *first.inputs)[:, :, columns]
    into = put(rows, taken, 1)
    stays = found_at(bundle, later, *second.inputs)
    held: dict[str, Change] = {own: into, later: lambda _: stays}
    apart = near(second) / abs(high - low)
    assert found.total == pytest.approx(share({own: into}), abs=apart)
    assert found.total == pytest.approx(patch_map(**asked).heads[0, 1], abs=apart)
    assert found.direct == pytest.approx(share(held), abs=apart)
    assert found.by_position[1, -1] == pytest.approx(share({own: put(rows[-1:], taken[:, :, -1:], 1)}), abs=apart)
    for part, leaf in enumerate(PARTS):
        site, seen = later.replace("heads", leaf), list[Tensor]()
        by_hooks(second, held | {site: lambda read, seen=seen: seen.append(read) or read})
        for head in range(2):
            alone = share({site: put(range(seen[0].shape[2]), seen[0], head)})
            assert found.ways[part, 0, head] == pytest.approx(alone, abs=apart)
    assert np.abs(found.ways).max() > apart, "a way on which nothing goes tells nothing"


@pytest.mark.parametrize("name", ONE_STACK)
def test_two_methods_are_a_head_set_to_zero_here_and_put_in_there(name: str) -> None:
    bundle, asked = asked_of_two(name)
    first, second, columns, rows = cases_of_two(bundle)
    found = two_methods(**asked)
    sites = heads_in(bundle, asked["stack"])
    for place, (layer, head) in enumerate(found.heads):
        lost = log_prob(first, bundle.model) - by_hooks(first, {sites[layer]: without(head)})
        taken = found_at(bundle, sites[layer], *first.inputs)[:, :, columns]
        back = by_hooks(second, {sites[layer]: put(rows, taken, head)}) - log_prob(second, bundle.model)
        assert (found.lost[place], found.back[place]) == pytest.approx((lost, back), abs=2 * near(first))
    assert found.most_lost == found.lost.argmax()
    assert found.most_back == found.back.argmax()


@pytest.mark.parametrize("name", EACH)
def test_steering_adds_a_direction_of_so_many_mean_lengths(name: str) -> None:
    bundle = bundle_of(name)
    cases, built_in = cases_of(bundle), measured_cases(bundle, FEW, 0)
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
    effect = intervene(prompt=Prompt(bundle, texts_of("gpt")[0], 20), changes=tuple(map(code_of, changes)))
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
        found = written_with(prompt=Prompt(bundle, text, 20), changes=changes, most=8, temperature=1e-4)
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
    position = position_pairs(cases, donor_of(cases, Prompt(bundle, other, 20)), stack_at(site))[-1]
    tried: list[tuple[LabChange, ...]] = [
        (Steer(site, 0.7, Direction("random", index=3)),),
        (Patch(site, other, *position), Steer(site, -0.4, Direction("random", index=5))),
    ]
    tried += [(HeadOff(scopes[0], 1), HeadOff(scopes[-1], 0, "mean")) for scopes in attentions(bundle).values()]
    for changes in tried:
        drawn = random_like(changes, cases, 4)
        found = intervene(prompt=Prompt(bundle, text, 20), changes=tuple(map(code_of, changes)), controls=4)
        expected = [changed(cases, *these) for these in drawn]
        np.testing.assert_allclose(found.controls, expected, atol=near(cases))
        assert len(set(np.round(expected, 6))) > 1


def test_a_row_of_the_output_is_a_direction() -> None:
    bundle = bundle_of("gpt")
    row = bundle.model.output.proj.weight[5]  # pyright: ignore
    found = direction_of(bundle, "decoder.layer1.residual", Direction("lens", index=5))
    torch.testing.assert_close(found, row / row.norm(), atol=1e-5, rtol=0.0)


@pytest.mark.parametrize("name", ["classifier", "translation"])
def test_each_ablation_is_that_of_hooks_and_their_correlation_is_the_definitions(name: str) -> None:
    bundle = bundle_of(name)
    text = texts_of(name)[0]
    found = compare_ablations(prompt=Prompt(bundle, text, 20))
    cases, whole = cases_of(bundle), by_hooks(cases_of(bundle), {})
    drawn = [measured_cases(bundle, FEW_TEXTS, 0).rows(draw, draw + 1) for draw in range(3)]
    again = compare_ablations(prompt=Prompt(bundle, text, 20), how="resample", draws=3)
    np.testing.assert_allclose(again.zero, found.zero, atol=2 * near(cases))
    for place, (kind, layer, head) in enumerate(found.heads):
        site = f"{attentions(bundle)[kind][layer]}.heads"
        kept = mean_heads(bundle)[site.removesuffix(".heads")][head]
        for values, instead in ((found.zero, 0.0), (found.other, kept)):
            lost = by_hooks(cases, {site: without(head, instead)}) - whole
            assert values[place] == pytest.approx(lost, abs=2 * near(cases))
        taken = found_at(bundle, site, *cases.inputs).shape[2]
        lost = []
        for other in drawn:
            mixtures = found_at(bundle, site, *other.inputs)[:, head]  # (one, pos, d_head)
            beginning_anew = mixtures[:, [position % mixtures.shape[1] for position in range(taken)]]
            lost.append(by_hooks(cases, {site: without(head, beginning_anew)}) - whole)
        assert again.other[place] == pytest.approx(np.mean(lost), abs=2 * near(cases))
        assert min(lost) - 2 * near(cases) <= again.bounds[0, place] <= again.other[place] <= again.bounds[1, place]
    x, y = (values - values.mean() for values in (found.zero, found.other))
    assert found.r == pytest.approx((x * y).sum() / np.sqrt((x**2).sum() * (y**2).sum()))
    assert abs(found.zero[found.most]) == np.abs(found.zero).max()
    assert (len(found.heads), found.passes) == (len(found.zero), 1 + 2 * len(found.zero))
    assert (again.draws, again.passes) == (3, 1 + 4 * len(found.zero))
    np.testing.assert_array_equal(found.bounds, np.stack((found.other, found.other)))


def test_several_heads_take_their_mixtures_from_the_same_text_and_all_texts_have_their_mean() -> None:
    bundle = bundle_of("classifier post-norm")
    text, scopes = texts_of("classifier post-norm")[0], attentions(bundle)["encoder"]
    off = tuple(("head", scope, 1, "zero") for scope in scopes)
    found = resampled(prompt=Prompt(bundle, text, 20), changes=off)
    cases = cases_of(bundle)
    whole = by_hooks(cases, {})
    built_in = measured_cases(bundle, FEW_TEXTS, 0)
    assert len(found.change) == len(found.texts) == len(built_in)
    for draw in (0, len(built_in) - 1):
        other, edits = built_in.rows(draw, draw + 1), {}
        for scope in scopes:
            mixtures = found_at(bundle, f"{scope}.heads", *other.inputs)[:, 1]
            places = [position % mixtures.shape[1] for position in range(cases.inputs[0].shape[1])]
            edits[f"{scope}.heads"] = without(1, mixtures[:, places])
        assert found.change[draw] == pytest.approx(by_hooks(cases, edits) - whole, abs=2 * near(cases))
    assert found.moved.moved == pytest.approx(found.change.mean())
    assert found.moved.low <= found.moved.moved <= found.moved.high
    with pytest.raises(ValueError, match=r"draw=.* must be"):
        changed(cases, HeadOff(scopes[0], 1, "resample", len(built_in)))


def test_continuations_are_judged_pair_by_pair() -> None:
    bundle, judge = shipped("gpt"), shipped("sentiment")
    prompt = Prompt(bundle, "Lily was", 20)
    happy = code_of(Steer("decoder.layer2.residual", 2.0, Direction("texts", "so happy", "so sad")))
    asked = {"prompt": prompt, "changes": (happy,), "judge": judge, "most": 4}
    found = judged_continuations(**asked, label=1, count=3, seed=5)
    written = written_with(prompt=prompt, changes=(happy,), most=4, seed=6)
    assert [way[1] for way in found.texts[:2]] == [
        prompt.encoding.text + one for one in (written.before, written.after)
    ]
    for texts, scores in zip(found.texts, found.scores, strict=True):
        with torch.inference_mode():
            ids = [judge.tokenizer.encode(text).ids for text in texts]
            expected = [float(judge.model(torch.tensor([one])).softmax(-1)[0, 1]) for one in ids]
        np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert found.moved.moved == pytest.approx((found.scores[1] - found.scores[0]).mean())
    assert found.random is not None
    assert found.random.moved == pytest.approx((found.scores[2] - found.scores[0]).mean())
    for wrong in ({"judge": bundle}, {"label": 2}, {"count": 1}):
        with pytest.raises(ValueError, match="must be"):
            judged_continuations(**(asked | {"label": 1, "count": 3} | wrong))


def test_so_many_heads_are_enough_as_each_curve_says() -> None:
    bundle = bundle_of("classifier")
    found = few_heads(prompt=Prompt(bundle, texts_of("classifier")[0], bundle.config.max_len))
    for curve, enough in zip(found.kept, found.enough, strict=True):
        fallen = [off for off, height in zip(found.off, curve, strict=True) if height < ENOUGH * curve[0]]
        most_off = max(off for off in found.off if not fallen or off < fallen[0])
        assert enough == len(all_heads(bundle)) - most_off
