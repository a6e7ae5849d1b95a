"""A name on the hub: from the cache with no network, the size asked first, nothing pickled asked for."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest

from tests.core.tools.open_checkpoints import written
from tests.paths import ROOT
from transformer_core.bundle_files import BundleError
from transformer_core.checkpoints import load

READ = """
import sys
from transformer_core import load
for name in sys.argv[1:]:
    bundle = load(name)
    print(bundle.name, bundle.kind, bundle.n_parameters)
"""


def run(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """Run Python in another process, with an environment of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=240,
    )


def cached(home: Path, name: str, revision: str = "0" * 40) -> Path:
    """Make the hub's cache as it is after a download; return the snapshot's folder."""
    repository = home / "hub" / f"models--{name.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(revision)
    snapshot = repository / "snapshots" / revision
    snapshot.mkdir(parents=True)
    (repository / "blobs").mkdir()
    return snapshot


def test_a_cached_name_is_read_with_no_network(tmp_path: Path) -> None:
    snapshot = cached(tmp_path, "someone/tiny-bert")
    written("BertModel", snapshot)
    blobs = snapshot.parents[1] / "blobs"
    for path in list(snapshot.iterdir()):
        path.rename(blobs / path.name)
        path.symlink_to(Path("..") / ".." / "blobs" / path.name)
    (snapshot / "1_Pooling").mkdir()
    (blobs / "abc").write_text('{"pooling_mode_mean_tokens": true}')
    (snapshot / "1_Pooling" / "config.json").symlink_to(Path("..") / ".." / ".." / "blobs" / "abc")
    done = run(READ, "hf:someone/tiny-bert", "hf:someone/other", HF_HOME=str(tmp_path), HF_HUB_OFFLINE="1")
    assert done.stdout.startswith("someone/tiny-bert encoder "), done.stderr[-800:]
    assert "BundleError: hf:someone/other cannot be fetched: " in done.stderr


def test_a_folder_is_read_without_the_hubs_package(tmp_path: Path) -> None:
    written("BertModel", tmp_path)
    code = "import sys; sys.modules['huggingface_hub'] = None\n" + READ
    assert " encoder " in run(code, str(tmp_path)).stdout


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
