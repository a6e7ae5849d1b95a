"""The ladder since 2017: its models, what they came to, and both ways of computing a token."""

import gzip
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.helpers.engine import TODAY, made, small_tokenizer
from transformer_core.analysis.gpt.ladder import (
    NAMES,
    RUNGS,
    LadderMeasured,
    LadderRun,
    config_at,
    ladder,
    ladder_measured,
)
from transformer_core.analysis.gpt.rungs import WAYS, both_ways, cost_of
from transformer_core.bundle import Bundle
from transformer_core.measured_files import write_shipped
from transformer_core.models import Gpt
from transformer_core.probe import capture
from transformer_core.prompt import Prompt
from transformer_core.recipes import ladder as command
from transformer_core.shares import STUDENT

TEXT = "a cat sat on a mat"
STORY = "Once there was a dog. It ran to the hill. It saw a bird! The bird flew away."
TOKENIZER = small_tokenizer()


def prompt_of(**options: object) -> Prompt:
    bundle = Bundle("tiny", made(Gpt, vocab_size=TOKENIZER.vocab_size, max_len=24, **options), TOKENIZER)
    return Prompt(bundle, TEXT, len(TOKENIZER.encode(TEXT)))


def written(path: Path, losses: dict[str, list[float]]) -> Path:
    runs = [LadderRun(name, seed, losses.get(name, [1.0, 1.0, 1.0])[seed], 1) for name in NAMES for seed in range(3)]
    write_shipped(path, LadderMeasured("c", "f", 1, 1, 1, tuple(runs)))
    return path


def test_each_rung_changes_one_thing_and_keeps_the_number_of_weights_but_where_it_saves_or_adds_them() -> None:
    counts = {name: sum(p.numel() for p in Gpt(config_at(name)).parameters()) for name in NAMES}
    for below, rung in zip(NAMES, RUNGS[1:], strict=False):
        first, second = config_at(below), config_at(rung.name)
        assert replace(first, **rung.change) == second
        assert first != second
        if rung.name not in ("learned", "rotary", "one_head", "grouped", "mixture"):
            assert counts[rung.name] == pytest.approx(counts[below], rel=0.006)
    for run in ladder_measured().runs:
        assert run.parameters == counts[run.rung], run
    for name in NAMES:
        cost = cost_of(config_at(name))
        assert cost.weights == counts[name]
        assert cost.active <= cost.weights
    mixture, dense = cost_of(config_at("mixture")), cost_of(config_at("unbiased"))
    router = config_at("mixture").n_layers * config_at("mixture").d_model * 8
    assert mixture.active - dense.active == mixture.products - dense.products == router
    assert cost_of(config_at("swiglu")).cache == 4 * cost_of(config_at("one_head")).cache


def test_what_is_shipped_is_what_its_command_measures() -> None:
    found = ladder()
    assert found.rungs == NAMES
    assert found.nats.shape == (len(NAMES), 3)
    assert found.measured.command.startswith("python -m transformer_core.recipes.ladder ")
    np.testing.assert_allclose(found.worth[1:], np.diff(found.nats.mean(1)))
    for place in range(1, len(NAMES)):
        differences = found.nats[place] - found.nats[place - 1]
        half = STUDENT[3] * np.sqrt(differences.var(ddof=1) / 3)
        ends = (differences.mean() - half, differences.mean() + half)
        assert (found.low[place], found.high[place]) == pytest.approx(ends, abs=1e-6)


@pytest.mark.parametrize("seeds", STUDENT)
def test_the_intervals_factor_is_students(seeds: int) -> None:
    free = seeds - 1
    x = np.linspace(-STUDENT[seeds], STUDENT[seeds], 200_001)
    scale = math.gamma((free + 1) / 2) / (math.sqrt(free * math.pi) * math.gamma(free / 2))
    assert np.trapezoid(scale * (1 + x**2 / free) ** (-(free + 1) / 2), x) == pytest.approx(0.95, abs=1e-4)


@pytest.mark.parametrize(
    ("losses", "outcome"),
    [
        ([0.9, 0.9, 0.9], "better"),
        ([1.1, 1.1, 1.1], "worse"),
        ([1.0, 1.0, 1.0], "within"),
        ([0.9, 0.9, 1.0], "within"),
        ([0.90, 0.91, 0.92], "better"),
        ([1.1, 1.1, 0.9], "within"),
    ],
)
def test_a_rung_is_judged_by_its_interval(
    losses: list[float], outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "ladder.json", {"pre": losses})
    monkeypatch.setattr(ladder_measured, "__defaults__", (path,))
    assert ladder(rungs=("paper", "pre")).outcome("pre") == outcome


def test_a_measured_ladder_with_a_missing_rung_or_a_strange_number_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "ladder.json", {})
    whole = json.loads(path.read_text())
    cases = (
        (whole | {"runs": whole["runs"][:-1]}, "runs must have every rung with the same seeds, 2 to 10 of them"),
        (whole | {"runs": [whole["runs"][0] | {"rung": "x"}]}, "rung"),
        (whole | {"runs": [whole["runs"][0] | {"nats": -1}]}, "nats"),
    )
    for broken, message in cases:
        path.write_text(json.dumps(broken))
        with pytest.raises(ValueError, match=message):
            ladder_measured(path)
    with pytest.raises(ValueError, match="rungs='x' is unknown"):
        ladder(rungs=("x",))


def measures(rung: str, **options: object) -> dict[str, tuple[float | None, float | None]]:
    found = both_ways(prompt=prompt_of(**options), rung=rung, layer=1, place=3)
    return {one.name: (one.before, one.after) for one in found.measures}


def test_both_ways_of_a_token_are_those_of_plain_torch() -> None:
    prompt = prompt_of()
    model, ids = prompt.bundle.model, torch.tensor([prompt.encoding.ids])
    sites = ("decoder.layer0.residual", "decoder.layer1.feed_forward.pre_activation")
    with torch.inference_mode():
        _, trace = capture(model, ids, sites=sites)
        x, inside = (trace[site][0] for site in sites)
        attention, width = model.decoder.stack.layers[1].self_attention, (x.shape[-1],)
        post = F.layer_norm(x + attention(x[None], causal=True)[0], width, eps=0.0)[3]
        pre = (x + attention(F.layer_norm(x, width, eps=0.0)[None], causal=True)[0])[3]
    found = measures("pre")
    assert found["length"] == pytest.approx((float(post.norm()), float(pre.norm())), rel=1e-4)
    assert found["alike"][1] == pytest.approx(float(F.cosine_similarity(x[3], pre, dim=0)), abs=1e-5)
    found = measures("rms_norm")
    rms = F.rms_norm(x[3], width, eps=1e-12)
    assert found["mean"] == pytest.approx((0.0, float(rms.mean())), abs=1e-5)
    assert found["largest"][1] == pytest.approx(float(rms[x[3].abs().argmax()]), rel=1e-4)
    found = measures("gelu")
    assert found["zeros"] == (float((inside[3] <= 0).float().mean()), 0.0)
    weak = inside[3][(inside[3] + 0.5).abs().argmin()]
    assert found["weak"] == pytest.approx((float(F.relu(weak)), float(F.gelu(weak))), abs=1e-6)


@pytest.mark.parametrize("options", [{"embedding_norm": True}, TODAY["factorised"]])
def test_the_first_layer_is_entered_by_what_the_embedding_hands_on(options: dict[str, Any]) -> None:
    prompt = prompt_of(**options)
    found = both_ways(prompt=prompt, rung="rms_norm", layer=0, place=3).measures
    with torch.inference_mode():
        x = prompt.bundle.model.decoder.embedding(torch.tensor([prompt.encoding.ids]))[0, 3]
    rms = F.rms_norm(x, x.shape, eps=1e-12)
    assert found[1].after == pytest.approx(float(rms[x.abs().argmax()]), rel=1e-4)


def test_a_gate_and_shared_heads_are_the_models_own() -> None:
    assert measures("swiglu")["strongest"] == (None, None)
    prompt = prompt_of(**TODAY["llama"])
    sites = [f"decoder.layer1.feed_forward.{name}" for name in ("pre_activation", "up")]
    with torch.inference_mode():
        _, trace = capture(prompt.bundle.model, torch.tensor([prompt.encoding.ids]), sites=sites)
    gate, up = (trace[site][0, 3] for site in sites)
    gated = F.silu(gate) * up
    strongest = gated.abs().argmax()
    due = (float(F.gelu(gate)[strongest]), float(gated[strongest]))
    assert measures("swiglu", **TODAY["llama"])["strongest"] == pytest.approx(due, abs=1e-5)
    config = prompt.bundle.config
    one = 2 * config.n_layers * config.d_head * 4 * len(prompt.encoding)
    assert measures("one_head", **TODAY["llama"])["bytes"] == (one * config.n_heads, one)
    assert measures("grouped", **TODAY["llama"])["bytes"] == (one, one * config.kv_heads)
    assert measures("unbiased", **TODAY["llama"])["count"] == (0, 0)
    assert measures("unbiased")["count"][0] > 0


def test_scores_of_one_distance_depend_on_the_place_but_for_rotary_positions() -> None:
    spread = measures("rotary", positions="learned")["spread"]
    assert spread[0] is None  # nothing was given that has learned positions
    prompt = prompt_of(positions="learned")
    found = both_ways(prompt=prompt, rung="rotary", layer=0, place=3, learned=prompt.bundle).measures[0]
    assert found.before is not None
    assert found.after is not None
    assert found.before > 0.01
    assert found.after < 1e-4


@pytest.mark.parametrize("options", ["llama", "gemma2", "olmo2", "neox", "mixture"])
@pytest.mark.parametrize("rung", WAYS)
def test_every_rung_reads_every_model_of_today(rung: str, options: str) -> None:
    found = both_ways(prompt=prompt_of(**TODAY[options]), rung=rung, layer=0, place=0)
    numbers = [number for one in found.measures for number in (one.before, one.after) if number is not None]
    assert np.isfinite(numbers).all()


def test_a_wrong_rung_layer_or_place_is_named() -> None:
    asked = {"prompt": prompt_of(), "rung": "pre", "layer": 0, "place": 0}
    for wrong, message in (
        ({"rung": "paper"}, "rung='paper' is unknown"),
        ({"layer": 2}, "layer=2 must be from 0 to 1"),
        ({"place": 99}, "place=99 must be from 0 to"),
    ):
        with pytest.raises(ValueError, match=message):
            both_ways(**asked | wrong)


def test_the_ladder_goes_on_where_it_was_interrupted_and_ends_in_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("train", "val"):
        with gzip.open(tmp_path / f"tinystories.{part}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.write(f"{json.dumps({'text': STORY})}\n" * 4)
    asked = ["--data", str(tmp_path), "--quick"]
    assert command.main([*asked, f"--out={tmp_path / 'whole.json'}"]) == 0
    whole = ladder_measured(tmp_path / "whole.json")
    assert {run.rung for run in whole.runs} == set(NAMES)
    assert len({run.nats for run in whole.runs}) > len(NAMES)
    trained: list[object] = []
    train = command.train_rung

    def some(*arguments: Any) -> Gpt:
        if len(trained) == 5:
            raise ValueError("interrupted here")
        trained.append(arguments)
        return train(*arguments)

    monkeypatch.setattr(command, "train_rung", some)
    work = [f"--out={tmp_path / 'again.json'}", f"--work={tmp_path / 'work.jsonl'}"]
    assert command.main([*asked, *work]) == 2
    monkeypatch.setattr(command, "train_rung", train)
    assert command.main([*asked, *work]) == 0
    assert ladder_measured(tmp_path / "again.json").runs == whole.runs


def test_the_ladder_without_stories_says_so_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--data", str(tmp_path), "--out", str(tmp_path / "ladder.json")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("ladder: ")
    assert said.endswith(f"--data {tmp_path} and its folders hold no {command.FILES[0]}\n")
