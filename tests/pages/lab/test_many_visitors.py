"""Eight visitors damage one shared model at once, eight others read it on other pages: nobody sees anybody else's."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
import torch

from app import LIVE
from pages.kit.asking import forget_answers
from pages.kit.header import View, linked_view
from pages.kit.live import Live
from pages.kit.models import open_bundle
from pages.lab.edits import changes_of_weights
from pages.lab.outcome import ask_effect, live_outcome, measured
from pages.link import Link, reading

EACH, ROUNDS, MODEL = 8, 3, "sentiment"
READ = (("attention", "heads"), ("home", "verdict"), ("encoder", "layers"), ("embeddings", "sentence"))
MATRIX = "encoder.stack.layers.{}.{}.weight"
PLACES = ("self_attention.query_proj", "self_attention.output_proj", "feed_forward.inner_proj")
OPERATIONS = (("zero", 0.0), ("prune", 0.9), ("noise", 2.0), ("round", 2.0), ("rank", 3.0), ("scale", -1.0))
Visit = tuple[Callable[[View], Live], dict[str, str]]


def live_weights(view: View) -> Live:
    """Return what the part Weights shows above its matrix."""
    return live_outcome(view, ask_effect(view, changes_of_weights(view), measured(view)).value)


def visits() -> list[Visit]:
    """Return what sixteen visitors look at: damaged weights, weights with heads off, and other pages."""
    found: list[Visit] = []
    for number in range(EACH):
        said = {"lang": "en", "model": MODEL, "text": f"The film was not good, but number {number} was."}
        if number % 4 == 3:
            off = "-".join(f"encoder.{layer}.{(layer + number) % 8}" for layer in range(4))
            found.append((LIVE["lab", "heads"], said | {"lab_off": off}))
        else:
            name = MATRIX.format(number % 4, PLACES[number % len(PLACES)])
            operation, amount = OPERATIONS[number % len(OPERATIONS)]
            stroke = [[1.0, [[0, 0, 90, 90]]]]
            edits = [{"code": [name, operation, amount, 0, []], "on": True}]
            edits += [{"code": [name, "paint", 0.0, 0, stroke], "on": True}]
            found.append((live_weights, said | {"lab_weights": json.dumps(edits)}))
    for number in range(EACH):
        text = f"We thought that the film was good, number {number} as well."
        found.append((LIVE[READ[number % len(READ)]], {"lang": "en", "model": MODEL, "text": text}))
    return found


def seen(visit: Visit) -> bytes:
    """Return all numbers that a visitor gets."""
    build, said = visit
    with reading(Link(said)):
        return build(linked_view()).to_bytes()


def weights() -> dict[str, bytes]:
    """Return the shared model's numbers, byte for byte."""
    model = open_bundle(MODEL).model
    return {name: tensor.detach().numpy().tobytes() for name, tensor in model.state_dict().items()}


@pytest.mark.nightly
def test_readers_see_what_they_see_alone_while_eight_others_damage_the_model() -> None:
    before, everybody = weights(), visits()
    alone = [seen(visit) for visit in everybody]
    assert len(set(alone)) == len(everybody)
    start = Barrier(len(everybody))

    def look(place: int) -> list[bytes]:
        torch.set_num_threads(1)
        found = []
        for _ in range(ROUNDS):
            start.wait()
            if place == 0:
                forget_answers()  # so that each is computed again
            start.wait()
            found.append(seen(everybody[place]))
        return found

    with ThreadPoolExecutor(len(everybody)) as pool:
        together = list(pool.map(look, range(len(everybody))))
    for place, found in enumerate(together):
        assert found == [alone[place]] * ROUNDS, everybody[place]
    assert weights() == before
    assert all(np.isfinite(np.frombuffer(raw, dtype=np.float32)).all() for raw in before.values())
