"""A name on the hub: the size asked first, nothing pickled asked for."""

from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest

from tests.helpers.open_checkpoints import written
from transformer_core.bundle_files import BundleError
from transformer_core.checkpoints import load


@pytest.fixture
def hub(tmp_path: Path, monkeypatch) -> SimpleNamespace:
    """Stand in for the hub: a folder, and what was asked for."""
    asked: list[dict] = []
    stand_in = SimpleNamespace(folder=tmp_path, asked=asked, size=100)

    def snapshot_download(name: str, **options):
        asked.append({"name": name} | options)
        if options.get("dry_run"):
            return [SimpleNamespace(file_size=stand_in.size)]
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    return stand_in


def test_what_is_asked_for(hub: SimpleNamespace) -> None:
    written("BertModel", hub.folder)
    assert load("hf:someone/tiny").name == "someone/tiny"
    assert [sorted(one) for one in hub.asked] == [
        ["allow_patterns", "name"],
        ["allow_patterns", "dry_run", "name"],
        ["allow_patterns", "name"],
    ]
    patterns = {pattern for one in hub.asked for pattern in one["allow_patterns"]}
    assert {pattern.rpartition(".")[2] for pattern in patterns} == {"json", "safetensors", "spm", "txt"}


def test_a_name_that_is_not_supported_costs_no_download(hub: SimpleNamespace) -> None:
    (hub.folder / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(BundleError, match=r"^hf:someone/tiny: model_type='llama' is not supported; supported: bert, "):
        load("hf:someone/tiny")
    assert len(hub.asked) == 1


def test_what_is_too_large_is_not_fetched(hub: SimpleNamespace) -> None:
    written("BertModel", hub.folder)
    hub.size = 2000
    with pytest.raises(BundleError, match=r"^hf:someone/tiny has 2000 bytes to read; at most 1500 are read$"):
        load("hf:someone/tiny", max_bytes=1500)
    assert len(hub.asked) == 2


@pytest.mark.parametrize("name", ["", "/", "../x", "a/b/c", "a b", "a/..", "https://x.y/z", "a\n", "-x", "x" * 99])
def test_a_name_that_is_none_is_told(name: str, hub: SimpleNamespace) -> None:
    with pytest.raises(BundleError, match=r"must be hf:NAME or hf:OWNER/NAME$"):
        load(f"hf:{name}")
    assert not hub.asked
