"""A damaged or hostile set of weights is told before it is believed; one in several files is read as one."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.helpers.bundles import refused
from tests.helpers.open_checkpoints import written
from transformer_core.bundle_files import BundleError
from transformer_core.checkpoints import load
from transformer_core.open_checkpoints import kind_of_folder

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


def test_only_pickled_weights_are_refused_and_never_opened(checkpoint: Path) -> None:
    (checkpoint / WEIGHTS).unlink()
    (checkpoint / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch owned'\ntR.")
    refused(checkpoint, "it has pytorch_model.bin, which is not read: only safetensors is")
    assert not Path("owned").exists()


def change_weights(folder: Path, change) -> None:
    """Let `change` work on the tensors by name."""
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS)


SPOILT = {
    "a missing tensor": (lambda t: t.pop("encoder.layer.0.output.dense.bias"), "lacks encoder.layer.0.output.dense.b"),
    "not finite": (lambda t: t["embeddings.LayerNorm.bias"].fill_(float("nan")), "must hold finite floating-point"),
    "whole numbers": (
        lambda t: t.update({"embeddings.LayerNorm.bias": torch.ones(16, dtype=torch.int64)}),
        "embeddings.LayerNorm.bias must hold finite floating-point numbers",
    ),
    "relative distances": (
        lambda t: t.update({"encoder.layer.0.attention.self.distance_embedding.weight": torch.ones(3, 8)}),
        "distance_embedding.weight (1 tensors in all), which our bert does not compute with",
    ),
    "the same twice": (
        lambda t: t.update({"bert.embeddings.LayerNorm.bias": torch.ones(16)}),
        "holds embeddings.LayerNorm.bias twice",
    ),
}


@pytest.mark.parametrize(("change", "message"), SPOILT.values(), ids=SPOILT)
def test_spoilt_weights_are_told(change, message: str, checkpoint: Path) -> None:
    change_weights(checkpoint, change)
    refused(checkpoint, message)


def test_heads_that_we_do_not_read_are_named_in_the_card(checkpoint: Path) -> None:
    change_weights(checkpoint, lambda t: t.update({"qa_outputs.weight": torch.ones(2, 16)}))
    assert "Left unread: pooler.dense.bias, pooler.dense.weight, qa_outputs.weight (3 tensors" in load(checkpoint).card


def test_old_names_and_buffers_are_read(checkpoint: Path) -> None:
    before = load(checkpoint, device="cpu").model

    def age(tensors: dict) -> None:
        for name in list(tensors):
            old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            tensors[f"bert.{old}"] = tensors.pop(name)
        tensors["bert.embeddings.position_ids"] = torch.arange(20)[None]

    change_weights(checkpoint, age)
    after = load(checkpoint, device="cpu").model
    assert all(torch.equal(p, q) for p, q in zip(before.parameters(), after.parameters(), strict=True))


def test_a_truncated_file_is_told(checkpoint: Path) -> None:
    (checkpoint / WEIGHTS).write_bytes((checkpoint / WEIGHTS).read_bytes()[:-100])
    refused(checkpoint, "is not a safetensors file")


def test_sizes_are_bounded_before_anything_is_read(checkpoint: Path) -> None:
    refused(checkpoint, "bytes; at most 1000 are read", max_bytes=1000)


def sharded(folder: Path) -> dict[str, str]:
    """Let theirs write a model in several files; return the index's map."""
    written("BertModel", folder, max_shard_size="4KB")
    return json.loads((folder / INDEX).read_text())["weight_map"]


def test_shards_are_read_as_one(sound_checkpoint: Path, tmp_path: Path) -> None:
    assert len(set(sharded(tmp_path).values())) > 2
    one, other = (load(folder, device="cpu").model for folder in (sound_checkpoint, tmp_path))
    assert all(torch.equal(p, q) for p, q in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize(
    "name", ["../sound/model.safetensors", "/etc/passwd", "a\\b.safetensors", "..", "", "x\n.safetensors", "w.bin"]
)
def test_an_index_cannot_lead_out_of_the_folder(name: str, tmp_path: Path) -> None:
    names = sharded(tmp_path)
    names[next(iter(names))] = name
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": names}))
    refused(tmp_path, "must be the plain name of a safetensors file in the same folder")


def test_an_index_that_does_not_fit_is_told(tmp_path: Path) -> None:
    names = sharded(tmp_path)
    for wrong in ({}, [], {"a": 1}, None):
        (tmp_path / INDEX).write_text(json.dumps({"weight_map": wrong}))
        refused(tmp_path, "weight_map must say for each tensor the name of its file")
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": names | {"ghost": next(iter(names.values()))}}))
    refused(tmp_path, "lacks 'ghost', which its index names")
    (tmp_path / INDEX).write_text(json.dumps({"weight_map": names}))
    refused(tmp_path, "bytes; at most", max_bytes=9000)
    (tmp_path / next(iter(names.values()))).unlink()
    refused(tmp_path, "is missing")


def test_a_link_out_of_the_folder_is_not_followed(checkpoint: Path, sound_checkpoint: Path) -> None:
    (checkpoint / WEIGHTS).unlink()
    (checkpoint / WEIGHTS).symlink_to(sound_checkpoint / WEIGHTS)
    refused(checkpoint, "is a link; a bundle's files lie in its folder")


def test_a_snapshot_of_the_hubs_cache_is_read_where_its_blobs_lie(sound_checkpoint: Path, tmp_path: Path) -> None:
    snapshot, blobs = tmp_path / "models--x" / "snapshots" / "abc", tmp_path / "models--x" / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for path in sound_checkpoint.iterdir():
        (blobs / path.name).write_bytes(path.read_bytes())
        (snapshot / path.name).symlink_to(Path("..") / ".." / "blobs" / path.name)
    assert kind_of_folder(snapshot) == load(snapshot).kind == "encoder"
    (snapshot / WEIGHTS).unlink()
    (snapshot / WEIGHTS).symlink_to(sound_checkpoint / WEIGHTS)
    with pytest.raises(BundleError, match="is a link"):
        load(snapshot)
