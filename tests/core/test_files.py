"""Files appear whole or not at all."""

import errno
import json
from pathlib import Path

import pytest

from superconext.core.errors import RunError
from superconext.core.files import atomic_write, new_folder, write_csv, write_json
from superconext.data.splits import write_folder
from superconext.runs.folder import CHECKPOINT, put_in_place, run_of


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a file"
    path.write_text("old")
    with pytest.raises(OSError, match="disk"), atomic_write(path) as temporary:
        temporary.write_text("half")
        raise OSError("disk")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    with atomic_write(path) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_a_folder_that_appears_meanwhile_is_not_replaced(tmp_path):
    with pytest.raises(RunError, match="made by another process"), new_folder(tmp_path / "a"):
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "precious").touch()
    rows = {"train": iter(_appearing(tmp_path / "b"))}
    with pytest.raises(RunError, match="made by another process"):
        write_folder(tmp_path / "b", rows, {})
    assert (tmp_path / "a" / "precious").is_file() and (tmp_path / "b" / "precious").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def _appearing(folder):
    """Rows in whose midst somebody else makes the folder."""
    yield "zwin", "good"
    folder.mkdir()
    (folder / "precious").touch()
    yield "khayb", "bad"


@pytest.mark.parametrize("value", ["عين 3la", "\ud800", 1.5, {"a": [None, True]}])
def test_json_gives_back_what_was_written(tmp_path, value):
    write_json(tmp_path / "x.json", value)
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8")) == value


def test_json_refuses_what_is_no_number(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(tmp_path / "x.json", float("nan"))
    assert not list(tmp_path.iterdir())


def test_csv_has_every_column_of_every_row(tmp_path):
    write_csv(tmp_path / "x.csv", [{"a": 1}, {"a": 2, "b": "x,y"}])
    assert (tmp_path / "x.csv").read_text() == 'a,b\n1,\n2,"x,y"\n'


def test_a_mount_that_sets_modes_itself_is_written_to(monkeypatch, tmp_path):
    def refused(self, mode):
        raise PermissionError(errno.EPERM, "Operation not permitted", str(self))

    monkeypatch.setattr(Path, "chmod", refused)
    write_json(tmp_path / "x.json", 3)
    assert (tmp_path / "x.json").read_text().strip() == "3"


def test_a_folder_that_appears_while_a_run_is_made_is_kept(tmp_path):
    partial, out = tmp_path / "run.partial", tmp_path / "run"
    (partial / CHECKPOINT).mkdir(parents=True)
    out.mkdir()
    (out / "notes.txt").touch()
    with pytest.raises(RunError, match="was made by another process meanwhile"):
        put_in_place(partial, out, new=True)
    assert (out / "notes.txt").is_file() and (partial / CHECKPOINT).is_dir()


def test_a_run_may_be_named_from_inside_it(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    assert run_of(Path(".")) == tmp_path / "run"
    with pytest.raises(RunError, match="found no run there"):
        run_of(Path("/"))
