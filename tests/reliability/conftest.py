"""What the tests that stop commands share: the files they read, and who runs the commands."""

from __future__ import annotations

import pytest

from tests.reliability.commands import Server, digest, make_files


@pytest.fixture(scope="package")
def server(tmp_path_factory):
    made = Server(tmp_path_factory.mktemp("cache"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def whole(server, files, tmp_path_factory):
    """What the run nobody stopped came to, how many events it had and how long it took."""
    folder = tmp_path_factory.mktemp("whole")
    said = server(files.train_words(folder / "run"), folder)
    assert said.code == 0, said.err
    return digest(folder / "run"), said
