"""Pictures of the map as files: points lie where the frames say, sizes are bounded, and every script finds a font."""

import csv
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from pages.film.figures import stills as animation
from pages.film.figures.stills import MOST_PICTURES, curve_rows, embedding_gif, still
from pages.kit.exports import rows_csv
from tests.helpers.figures import ATTACK, clouds, film_words, reversing


@pytest.mark.parametrize(("n_frames", "pictures"), [(1, 1), (2, 9), (5, 33), (64, 127), (200, MOST_PICTURES)])
def test_the_animation_shows_every_frame_and_stays_bounded(n_frames, pictures):
    film = clouds(8, n_frames, steps=400)
    with Image.open(io.BytesIO(embedding_gif(film, film_words(), side=160))) as gif:
        assert gif.format == "GIF"
        # Pillow writes a picture that equals the one before it by showing that one longer.
        assert pictures // 2 <= gif.n_frames <= pictures
        assert gif.info.get("loop") == 0 or n_frames == 1
        assert gif.size[0] == 160


def test_points_lie_where_the_frame_says_on_axes_that_stay():
    film = clouds(30, 4)
    scenes = [still(film, film_words(), at, method="tsne", theme="light", side=600) for at in (0, 1, 3)]
    layouts = [film.laid_out("tsne")[at][1].xy for at in (0, 1, 3)]
    scale = np.ptp(scenes[0].xy[:, 0]) / np.ptp(layouts[0][:, 0])
    origin = scenes[0].xy - scale * layouts[0] * [1, -1]
    for scene, xy in zip(scenes, layouts, strict=True):
        np.testing.assert_allclose(scene.xy, origin[0] + scale * xy * [1, -1], atol=1e-6)
    halfway = still(film, film_words(), 0.5, method="tsne", theme="light", side=600)
    np.testing.assert_allclose(halfway.xy, (scenes[0].xy + scenes[1].xy) / 2, atol=1e-6)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_picture_shows_marks_of_both_classes(theme):
    film = clouds(60, 3)
    with Image.open(io.BytesIO(embedding_gif(film, film_words(), theme=theme, side=400))) as picture:
        picture.seek(picture.n_frames - 1)
        pixels = np.asarray(picture.convert("RGB")).reshape(-1, 3).astype(int)
    for hue in animation.PALETTE[theme][:2]:
        wanted = [int(hue[i : i + 2], 16) for i in (1, 3, 5)]
        assert (np.abs(pixels - wanted).sum(1) < 40).sum() > 60


def test_a_picture_says_its_run_its_step_and_how_far_to_trust_it():
    film = clouds(20, 3, labels=(ATTACK, "b"), name=ATTACK)
    drawn = still(film, film_words(), 1, method="tsne", theme="light", side=720)
    assert drawn.title == f"{ATTACK} · t-SNE · step 120"
    assert re.search(r"held out \d+%, train \d+%", drawn.measures)
    assert [(text, held_out) for _, _, text, _, held_out in drawn.key[:2]] == [("train", False), ("held out", True)]


def test_chinese_words_are_drawn_or_replaced_but_never_fail(monkeypatch):
    film = clouds(10, 2, labels=("负面", "正面"), name="影评")
    embedding_gif(film, film_words("zh"), side=200, plain_words=film_words())
    animation.font_for.cache_clear()
    monkeypatch.setattr(animation, "CHINESE", ("no-such-font.ttf",))
    monkeypatch.setattr(animation, "LATIN", ("no-such-font.ttf",))
    embedding_gif(film, film_words("zh"), side=200, plain_words=film_words())
    animation.font_for.cache_clear()


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(ValueError, match="run reverse1 has no frame with a map by tsne"):
        embedding_gif(reversing(3), film_words())
    with pytest.raises(ValueError, match="side=99 must lie from 160 to 1200"):
        embedding_gif(clouds(5, 2), film_words(), side=99)
    with pytest.raises(ValueError, match="at=2 must lie from 0 to 1"):
        still(clouds(5, 2), film_words(), 2, method="tsne", theme="light", side=200)


def test_curves_read_back_exactly():
    film = clouds(10, 4, steps=30)
    film = replace(film, frames=[*film.frames[:-1], replace(film.frames[-1], measures={"train_loss": 0.1})])
    rows = list(csv.DictReader(io.StringIO(rows_csv(curve_rows(film)))))
    assert [int(row["step"]) for row in rows] == list(range(31))
    np.testing.assert_array_equal([float(row["loss"]) for row in rows[1:]], film.curves.loss)
    taken = [row for row in rows if row["frame"]]
    assert [int(row["frame"]) for row in taken] == [0, 1, 2, 3]
    assert float(taken[1]["held_out_loss"]) == film.frames[1].measures["held_out_loss"]
    assert (taken[3]["train_loss"], taken[3]["held_out_loss"]) == ("0.1", "")
