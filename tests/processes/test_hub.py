"""A name of the hub is read from its cache with no network; a folder is read without the hub's package."""

import os
import subprocess
import sys
from pathlib import Path

from tests.helpers import ROOT
from tests.helpers.open_checkpoints import cached, written

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
