"""What tells the files that parameters name apart."""

import os
import zipfile

import pytest

from superconext.config.fingerprints import Fingerprints
from superconext.core.errors import DataError, VectorsError


@pytest.mark.parametrize("name", ["vectors", "init", "unlabelled"])
def test_what_a_parameter_names_is_told_by_content(tmp_path, name):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
        (folder / "weights").write_text("1 2 3", encoding="utf-8")
    first = Fingerprints().of({name: str(here), "epochs": 3})
    assert first[name].startswith("sha256 ") and first["epochs"] == 3
    assert Fingerprints().of({name: str(there), "epochs": 3}) == first
    (there / "weights").write_text("1 2 4", encoding="utf-8")
    assert Fingerprints().of({name: str(there), "epochs": 3}) != first


@pytest.mark.parametrize("name", ["vectors", "init", "unlabelled"])
def test_what_is_not_there_is_said(tmp_path, name):
    error = VectorsError if name == "vectors" else DataError
    with pytest.raises(error, match=f"no such file; expected what {name} names"):
        Fingerprints().of({name: str(tmp_path / "gone")})


@pytest.mark.skipif(os.name == "nt", reason="no named pipes")
def test_a_pipe_is_called_one(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="found a pipe or device, which can be read once alone"):
        Fingerprints().of({"unlabelled": str(tmp_path / "pipe")})


def test_members_of_an_archive_are_not_each_other(tmp_path):
    with zipfile.ZipFile(tmp_path / "glove.zip", "w") as archive:
        archive.writestr("a.txt", "zwin 1 2")
        archive.writestr("b.txt", "zwin 3 4")
    one, other = (
        Fingerprints().of({"vectors": f"{tmp_path}/glove.zip:{name}.txt"}) for name in "ab"
    )
    assert one != other == Fingerprints().of({"vectors": f"{tmp_path}/glove.zip:b.txt"})
