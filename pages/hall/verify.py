"""Verify a lecture on another model: which of its questions have the same answer there, and which do not hold."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from streamlit import config

from pages.hall.each.frame import STAGES
from pages.hall.each.kinds import CannotAskError, task_of
from pages.hall.lectures import LectureError, Scene, finding_in_words, read_lecture
from pages.hall.take_home import EVERYBODYS, SECONDS_OF_A_SCENE
from pages.hall.tour import measured
from pages.kit.asking import computing_here
from pages.kit.heavy import InParts, Part, Work
from pages.kit.models import kind_of
from pages.language import words
from pages.link import Link, reading
from transformer_core.untrusted.bundle_files import BundleError
from transformer_core.warm_process import ProcessDiedError

HOLDS, FAILS, CANNOT = "holds", "fails", "cannot"


@dataclass(frozen=True)
class Verified:
    """What became of one scene on another model.

    Args:
        number, title: of the scene.
        outcome: "holds" where the same option came true, or a class's part can be done; "fails" where another one did;
            "cannot" where it cannot be asked.
        before, after: what was measured on the scene's own model and on the other one, or why it cannot be, in words.
    """

    number: int
    title: str
    outcome: str
    before: str
    after: str


@InParts
def verify_lecture(
    *, lecture: str, name: str, language: str, model: str, owner: str, public: bool
) -> Work[tuple[Verified, ...]]:
    """Measure every question of a lecture on its own models and on another one, and try the parts that classes do.

    Args:
        lecture: as it is written; name: of its folder; language: of the words.
        model: the other one; owner: who asks; public: the server has more visitors than the one at home.

    Raises:
        LectureError: it cannot be read.
    """
    scenes, found = read_lecture(name, lecture).scenes, list[Verified]()
    for number, scene in enumerate(scenes, 1):
        if scene.question is None and scene.each is None:
            continue
        asked: dict[str, Any] = {"lecture": lecture, "name": name, "language": language, "number": number}
        asked |= {"model": model, "owner": owner, "public": public}
        try:
            said = json.loads((yield Part(scene_on, asked, number - 1, len(scenes), SECONDS_OF_A_SCENE)))
        except ProcessDiedError:
            said = [CANNOT, "", words(language)["await.died"]]
        found.append(Verified(number, scene.title, *said))
    return tuple(found)


def scene_on(*, lecture: str, name: str, language: str, number: int, model: str, owner: str, public: bool) -> str:
    """Return in JSON the outcome, and what was measured before and after, of one scene on another model.

    Args:
        number: of the scene, from 1; the others: as of verify_lecture.
    """
    scene = read_lecture(name, lecture).scenes[number - 1]
    config.set_option("server.address", EVERYBODYS if public else "localhost")
    with computing_here():
        return json.dumps(list(_outcome(scene, language, model, owner)), ensure_ascii=False)


def _outcome(scene: Scene, language: str, model: str, owner: str) -> tuple[str, str, str]:
    own = scene.each.settings.get("model") if scene.each is not None else None
    own = own or scene.state.get("model", "")
    if not own or (scene.each is not None and scene.each.kind == "train"):
        return CANNOT, "", words(language)["lectures.verify_no_model"]
    if kind_of(own) != _kind_for(model, owner, language):
        return CANNOT, "", words(language)["lectures.verify_kind"].format(kind=kind_of(own))
    if scene.each is not None:
        each = replace(scene.each, settings={**scene.each.settings, "model": model})
        with reading(Link({**scene.state, "lang": language}, owner)):
            try:
                task_of(each, scene.state, language, "verify", stage=STAGES[0])
            except CannotAskError as error:
                return FAILS, "", str(error)
        return HOLDS, "", words(language)["lectures.verify_part"]
    if scene.question is None or not scene.question.options:
        return CANNOT, "", words(language)["lectures.verify_words"]
    said = []
    for one in (scene, replace(scene, state={**scene.state, "model": model})):
        with reading(Link({**one.state, "lang": language}, owner)):
            try:
                found = measured(one)
            except (ValueError, BundleError, LectureError) as error:
                return FAILS, said[0][1] if said else "", str(error)
        said.append((found.option, finding_in_words(found, scene.question.measured, language)))
    return HOLDS if said[0][0] == said[1][0] else FAILS, said[0][1], said[1][1]


def _kind_for(model: str, owner: str, language: str) -> str | None:
    with reading(Link({"lang": language}, owner)):
        return kind_of(model)


def counted(found: tuple[Verified, ...]) -> Iterator[tuple[str, int]]:
    """Yield each outcome with how many scenes have it."""
    for outcome in (HOLDS, FAILS, CANNOT):
        yield outcome, sum(one.outcome == outcome for one in found)
