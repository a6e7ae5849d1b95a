"""What computes is said under the sentence, in the glass, of a run and to the administrator, in both languages."""

from contextlib import closing
from pathlib import Path

import pytest

from pages.language import LANGUAGES, words
from tests.helpers.made_runs import made_run
from tests.helpers.pages import note, run, told
from transformer_core.training.runs.store.database import RunWriter


def said_of(lang: str, key: str, **values: object) -> str:
    return words(lang)[f"device.{key}"].format(precision="float32", **values)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_page_its_glass_a_run_and_the_servers_page_say_what_computes(
    lang: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VITRINE_RUNS", str(tmp_path))
    on_one = said_of(lang, "threads", count=1)
    app = run("masks", lang=lang, masks_part="paint", glass_open="true")
    assert note(app).endswith(on_one)
    assert [on_one in caption.value for caption in app.caption].count(True) == 1
    assert on_one in told(run("server", lang=lang))
    for facts, said in (
        ({"threads": 2}, said_of(lang, "threads", count=2)),
        (
            {"device": "cuda", "device_name": "NVIDIA T4"},
            said_of(lang, "card", device="cuda", name="NVIDIA T4"),
        ),
        (
            {"threads": 2, "node": "box7"},
            said_of(lang, "node", device=said_of(lang, "threads", count=2), node="box7"),
        ),
    ):
        store = made_run(tmp_path)
        with closing(RunWriter(store.folder)) as writer:
            writer.set_facts(store.facts() | facts)
        assert said in told(run("train", lang=lang, run=store.id))


def test_on_the_processor_no_part_has_to_say_that_it_computes_there() -> None:
    assert words("en")["device.seeded"] not in told(run("norm", norm_part="depth"))
