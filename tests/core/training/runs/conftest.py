"""A finished run with its zip, for the tests of export and import."""

import io
import zipfile

import pytest

from tests.helpers.tiny_runs import WITH_DATA, first_two, tiny_task
from transformer_core.training.runs.run_list import RunList
from transformer_core.training.runs.worker.session import Session


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory):
    """Return a finished run, and its zip as names and bytes."""
    runs = RunList(tmp_path_factory.mktemp("runs"))
    store, packed = runs.create(WITH_DATA, data=b"text,label\n" * 50), io.BytesIO()
    Session(store, tiny_task, first_two).work()
    runs.export_zip(store.id, packed)
    with zipfile.ZipFile(packed) as archive:
        return store, {name: archive.read(name) for name in archive.namelist()}
