"""Beyond the trained length: the measure is what the loss of each place says, and the shipped curves hold together."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from transformer_core.analysis.positions import beyond
from transformer_core.analysis.positions.beyond import LIVE, SCHEMES, beyond_live, train_short
from transformer_core.analysis.positions.beyond_measured import FILE, beyond_measured, beyond_shipped, read_beyond
from transformer_core.analysis.positions.data_and_length import data_and_length
from transformer_core.models import Gpt
from transformer_core.recipes import beyond as command
from transformer_core.text import Tokenizer

TEXT = "the glass bell rings in the hall of glass and the bell falls. " * 12
TINY = replace(LIVE, characters=64, steps=3, ends=(4, 8, 16, 32), windows=5)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train("character", [TEXT], vocab_size=60, min_frequency=1, template="none")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_bin_is_the_mean_loss_of_its_places(scheme: str, tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Gpt] = []
    reach = beyond._reach
    monkeypatch.setattr(beyond, "_reach", lambda model, *rest: (seen.append(model), reach(model, *rest))[1])
    found = train_short(tokenizer, TEXT, TEXT[7:], scheme=scheme, width=8, seed=1, course=TINY)
    ids = torch.tensor(tokenizer.encode(TEXT[7:]).ids)
    starts = torch.linspace(0, len(ids) - 32 - 1, TINY.windows).long().tolist()
    losses, short = [], []
    with torch.inference_mode():
        for start in starts:
            window = ids[start : start + 33]
            chances = seen[0](window[None, :-1])[0].log_softmax(-1)  # (place, vocab)
            losses.append([-float(chances[place, window[place + 1]]) for place in range(32)])
            for place in range(16, 32, beyond.STRIDE):
                last = window[place - 7 : place + 1]
                short.append(-float(seen[0](last[None])[0, -1].log_softmax(-1)[window[place + 1]]))
    mean = np.mean(losses, axis=0)
    expected = [mean[begin:end].mean() for begin, end in ((0, 4), (4, 8), (8, 16), (16, 32))]
    np.testing.assert_allclose(found.nats, expected, rtol=1e-4)
    assert found.within == pytest.approx(mean[:8].mean(), rel=1e-4)
    assert found.forgetful == pytest.approx(np.mean(short), rel=1e-4)


def test_the_same_seed_gives_the_same_curve_and_what_cannot_be_is_said(tokenizer) -> None:
    once, again = (train_short(tokenizer, TEXT, TEXT, scheme="learned", width=8, seed=2, course=TINY) for _ in range(2))
    np.testing.assert_array_equal(once.nats, again.nats)
    with pytest.raises(ValueError, match="scheme='x' is unknown; it must be one of"):
        train_short(tokenizer, TEXT, TEXT, scheme="x", width=8, seed=2, course=TINY)
    with pytest.raises(ValueError, match="asked=10 characters must be more than the 32 of a window"):
        train_short(tokenizer, TEXT, TEXT[:10], scheme="none", width=8, seed=2, course=TINY)


def test_all_schemes_are_trained_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beyond, "LIVE", replace(TINY, ends=(8, 16, 24)))
    found = beyond_live(width=8, language="zh", seed=0)
    assert found.schemes == SCHEMES
    assert found.nats.shape == (5, 3)
    assert found.lost("alibi") == pytest.approx(float(found.nats[3, -1] - found.nats[3, 0]))
    with pytest.raises(ValueError, match="width=7 must be one of"):
        beyond_live(width=7, language="en", seed=0)


def test_what_is_said_of_the_shipped_curves_holds() -> None:
    found = beyond_shipped(width=64)
    at_home = {scheme: float(found.mean(scheme, found.within)) for scheme in SCHEMES}
    far = {scheme: float(found.mean(scheme, found.nats)[-1]) for scheme in SCHEMES}
    assert min(at_home, key=at_home.__getitem__) == "rotary" == max(far, key=far.__getitem__)
    assert min(SCHEMES, key=found.lost) == "alibi"
    assert found.lost("alibi") < 0.1 < found.lost("none") < 0.5 < min(map(found.lost, ("sinusoidal", "learned")))
    for scheme in ("sinusoidal", "learned", "rotary"):
        assert float(found.mean(scheme, found.forgetful)) < far[scheme] - 0.5
    assert len(set(found.seeds.tolist())) >= 2
    assert found.spread == pytest.approx(
        max(np.ptp(found.nats[np.array(found.schemes) == s], 0).max() for s in SCHEMES)
    )
    cases = data_and_length()
    assert (cases.gaps > 0).all()
    worst = int(cases.gaps.argmax())
    assert (cases.widths[worst], cases.stories[worst]) == (cases.widths.max(), cases.stories.max())
    assert (cases.high - cases.low).max() < cases.gaps.min()
    few = cases.stories == cases.stories.min()
    assert (cases.learned[:, few] < cases.nats[:, few] - 0.5).all()


def test_the_shipped_runs_are_whole() -> None:
    found = beyond_measured()
    expected = {(plan.scheme, plan.width, plan.stories or 972, plan.seed) for plan in command.plans()}
    assert {(run.scheme, run.width, run.stories, run.seed) for run in found.runs} == expected
    assert found.command.startswith("python -m transformer_core.recipes.beyond ")
    assert found.ends == beyond.COURSE.ends
    assert found.steps == beyond.COURSE.steps
    with pytest.raises(ValueError, match="width=3 and stories=972 have no runs"):
        found.chosen(width=3, stories=972)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ends": [8, 8]}, "must ascend"),
        ({"runs": []}, "it must hold an object with the lists"),
        ({"steps": 0}, "steps=0 must be a whole number from 1"),
        ({"command": 3}, "command and files must be texts"),
        ({"runs": [{"nats": [1]}]}, "a run must be an object with nats, a list of 10"),
    ],
)
def test_a_broken_file_is_refused_in_words(change: dict, message: str, tmp_path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(json.loads(FILE.read_text(encoding="utf-8")) | change))
    with pytest.raises(ValueError, match=f"x.json: .*{message}"):
        read_beyond(path)


def test_the_command_writes_what_is_read_and_goes_on_where_it_was(tmp_path, capsys) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name in command.FILES:
        with gzip.open(data / name, "wt", encoding="utf-8") as file:
            file.write("\n".join(json.dumps({"text": TEXT}) for _ in range(12)))
    arguments = ["--data", str(data), "--out", str(tmp_path / "found.json"), "--quick"]
    work = ["--work", str(tmp_path / "work.jsonl")]
    assert command.main([*arguments, *work]) == 0
    first = (tmp_path / "found.json").read_text()
    assert len(read_beyond(tmp_path / "found.json").runs) == len(command.plans((0,)))
    rows = (tmp_path / "work.jsonl").read_text()
    assert command.main([*arguments, *work]) == 0
    assert (tmp_path / "found.json").read_text() == first
    assert (tmp_path / "work.jsonl").read_text() == rows
    assert command.main(["--data", str(tmp_path / "none"), "--out", str(tmp_path / "x.json"), "--quick"]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("beyond: ")
