"""The film's script, run without a browser: it reads what Python wrote, keeps time, and lets points glide."""

from dataclasses import replace

import numpy as np
import pytest

from pages.film.figures.film import film_bytes
from tests.helpers.figures import clouds
from tests.helpers.node import in_node, needs_node
from transformer_core.training.histograms import BINS, LOWEST, PER_POWER, QUANTITIES, Histograms
from transformer_core.training.runs.store.records import Curves


@needs_node
def test_a_run_that_comes_in_parts_is_the_run_that_comes_whole(tmp_path):
    film = clouds(30, 6, steps=120)
    half = replace(film, frames=film.frames[:3], curves=Curves(*(a[:60] for a in vars(film.curves).values())))
    script = """
    const told = (reel) => ({
      frames: reel.frames.map(({ number, step, layouts }) => [number, step, ...layouts.pca.xy]),
      curves: [[...reel.steps.step], [...reel.steps.loss], [...reel.smooth]],
      rest: [reel.points.texts, reel.box("tsne"), reel.lastFrame],
    });
    const [whole, parts] = [new Reel({ id: "r", name: "n" }), new Reel({ id: "r", name: "n" })];
    whole.add(bytes("whole"));
    const changes = ["half", "rest", "rest", "whole"].map((name) => parts.add(bytes(name)));
    print({ same: JSON.stringify(told(whole)) === JSON.stringify(told(parts)), changes, count: parts.frames.length });
    """
    parts = {"whole": film_bytes(film), "half": film_bytes(half), "rest": film_bytes(film, after=2, after_step=60)}
    assert in_node(tmp_path, "film", script, **parts) == {
        "same": True,
        "changes": [True, True, False, False],
        "count": 6,
    }


@needs_node
def test_points_glide_between_frames_and_stand_on_them(tmp_path):
    film = clouds(5, 3, steps=100)
    script = """
    const reel = new Reel({ id: "r" });
    reel.add(bytes("film"));
    const to = { scale: 1, x: 0, y: 0 };
    const at = (step) => [...positions(reel, "tsne", reel.placeAt(step), to)];
    print({ at: [at(0), at(25), at(50), at(100)], place: [reel.placeAt(49), reel.placeAt(50), reel.placeAt(1e6)] });
    """
    got = in_node(tmp_path, "film", script, film=film_bytes(film))
    first, between, second, last = (np.array(xy).reshape(5, 2) * [1, -1] for xy in got["at"])
    for shown, (_, layout) in zip((first, second, last), film.laid_out("tsne"), strict=True):
        np.testing.assert_allclose(shown, layout.xy, rtol=1e-5)
    np.testing.assert_allclose(between, (first + second) / 2, rtol=1e-5)
    assert [place["index"] for place in got["place"]] == [0, 1, 2]
    assert got["place"][0]["share"] == pytest.approx(0.98)


@needs_node
def test_the_clock_plays_loops_follows_and_keeps_its_bounds(tmp_path):
    script = """
    const clock = new Clock();
    const seen = {};
    clock.grow(5); seen.first = clock.frame;
    clock.grow(6); seen.gliding = clock.glide !== null;
    clock.tick(0); clock.tick(1000); seen.followed = [clock.frame, clock.at];
    clock.seek(2); clock.tick(2000); clock.tick(3000); clock.grow(7); seen.stayed = clock.frame;
    clock.seek(99); seen.last = [clock.frame, clock.following];
    clock.stand(0); clock.toggle(); clock.speed = 4;
    let now = 0; clock.tick(now);
    while (clock.tick((now += 50))) ;
    seen.played = [now >= 600 && now < 700, clock.frame, clock.playing, clock.following];
    clock.loop = true; clock.toggle(); seen.again = clock.at; clock.tick(0);
    let turns = 0;
    for (let t = 0, before = 0; t < 5000; t += 50, before = clock.at) {
      clock.tick(t);
      if (clock.at < before) turns += 1;
    }
    seen.turns = turns;
    clock.drag(2.4); seen.dragged = [clock.at, clock.frame, clock.playing];
    print(seen);
    """
    assert in_node(tmp_path, "film", script) == {
        "first": 4,
        "gliding": True,
        "followed": [5, 5],
        "stayed": 2,
        "last": [6, True],
        "played": [True, 6, False, True],
        "again": 0,
        "turns": 3,
        "dragged": [2.4, 2, False],
    }


@needs_node
def test_two_runs_share_one_line_of_steps(tmp_path):
    script = """
    const line = new Timeline();
    line.gather([{ frames: [0, 10, 30].map((step) => ({ step })) }, { frames: [0, 20].map((step) => ({ step })) }]);
    const places = [line.placeOf(15), line.frameOf(29), line.placeOf(99)];
    print({ steps: line.steps, at: [line.stepAt(1.5), line.stepAt(3), ...places] });
    """
    assert in_node(tmp_path, "film", script) == {"steps": [0, 10, 20, 30], "at": [15, 30, 1.5, 2, 3]}


@needs_node
def test_a_frame_without_a_layout_leaves_no_hole(tmp_path):
    film = clouds(5, 4)
    layouts = [layout for layout in film.layouts if layout.frame not in (0, 2)]
    script = """
    const reel = new Reel({ id: "r" });
    reel.add(bytes("film"));
    print([0, 1, 2, 3].map((k) => reel.frames.findIndex(({ layouts }) => layouts.tsne?.xy === reel.layout(k, "tsne"))));
    """
    assert in_node(tmp_path, "film", script, film=film_bytes(replace(film, layouts=layouts))) == [1, 1, 1, 3]


@needs_node
def test_the_script_reads_histograms_in_the_engines_bins_and_says_by_how_much_a_step_changed_a_layer(tmp_path):
    counts = np.zeros((len(QUANTITIES), 2, BINS), np.uint32)
    counts[0, 0, 33], counts[0, 0, 34], counts[2, 0, 20], counts[0, 1, 12] = 3, 1, 4, 5
    found = Histograms(("embeddings", "encoder.1"), counts, np.array([[0.5, 1], [0, 0], [0.001, 0]], np.float32))
    film = clouds(5, 3)
    film = replace(film, histograms={film.frames[2].number: found})
    script = """
    const reel = new Reel({ id: "r" });
    reel.add(bytes("film"));
    const { histograms } = reel.frames[2];
    print({
      bins: MAGNITUDES,
      weights: shares(histograms, 0, 0),
      none: shares(histograms, 1, 0).total,
      span: spanOf([reel]),
      changed: [relativeUpdate(histograms, 0), relativeUpdate(histograms, 1)],
      name: groupName("encoder.1", { group_encoder: "encoder" }),
      missing: reel.frames[0].histograms === undefined,
    });
    """
    got = in_node(tmp_path, "film", script, film=film_bytes(film))
    assert got["bins"] == {"lowest": LOWEST, "perPower": PER_POWER, "bins": BINS}
    assert (got["weights"]["total"], got["weights"]["shares"][33:35], got["none"]) == (4, [0.75, 0.25], 0)
    assert got["span"] == {"first": 12, "last": 34, "peak": 1}  # of 0.75, 1 and 1
    assert got["changed"] == [pytest.approx(0.002), None]
    assert (got["name"], got["missing"]) == ("encoder 1", True)
