"""Every part of every page computes on a device that is not the processor, and makes no float64 there: mps has none.

A covered picture is drawn from its answer, so that no cover has to be opened for it.
"""

from collections.abc import Iterator

import pytest
import torch

from pages.kit import experiment
from pages.kit.asking import computing_here, forget_answers
from pages.kit.models import KINDS_OF_PAGE, forget_models, kind_of, open_bundle, shipped_names
from pages.kit.url import current
from pages.language import words
from tests.helpers import nightly_but
from tests.helpers.pages import SCREENS, named, note, run, told
from tests.helpers.pretend_device import DEVICES, computing_on

SHOWN = [
    (page, part, name)
    for page, part in SCREENS
    for name in {
        kind_of(name): name for name in reversed(shipped_names()) if kind_of(name) in KINDS_OF_PAGE[page]
    }.values()
]

IN_GATE = (  # of most kinds of model
    ("attention", "flow", "classifier"),
    ("before", "look", "seq2seq"),
    ("bert", "pair", "bert"),
    ("lab", "patch", "classifier"),
    ("translation", "forced", "translation"),
)
TRAINING = ("positions_beyond_open", "refit_open")  # boxes in which a model is trained or points are laid out


@pytest.fixture(scope="module", params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[torch.device]:
    """A device, on which every model computes; what takes long is computed in this process."""
    forget_models()
    forget_answers()
    with pytest.MonkeyPatch.context() as patch, computing_here():
        yield computing_on(request.param, patch)
    forget_models()
    forget_answers()


MADE_FROM_A_SEED = (
    ("translation", "toy"),
    ("translation", "search"),
    ("masks", "cheat"),
    ("embeddings", "counts"),
    ("norm", "depth"),
    ("why", "values"),
    ("why", "positions"),
)


@pytest.fixture
def _boxes_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(name: str) -> str | None:
        return "true" if name.endswith("_open") and name not in TRAINING else current(name)

    monkeypatch.setattr(experiment, "current", opened)


def in_gate(case: tuple[str, str, str]) -> bool:
    page, part, name = case
    return (page, part, kind_of(name)) in IN_GATE


@pytest.mark.usefixtures("_boxes_open")
@pytest.mark.parametrize(("page", "part", "name"), nightly_but(SHOWN, in_gate))
def test_a_part_computes_on_a_device_without_float64(device: torch.device, page: str, part: str, name: str) -> None:
    app = run(page, model=name, **named(page, part))
    assert next(open_bundle(name).model.parameters()).device.type == device.type
    assert not app.exception
    assert not app.error
    assert f"on {device.type}:0 " in note(app)
    assert (words("en")["device.seeded"] in told(app)) == ((page, part) in MADE_FROM_A_SEED)
