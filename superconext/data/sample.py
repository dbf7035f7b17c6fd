"""The bundled sample: where its files are, and a copy of them."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from superconext.core.errors import DataError
from superconext.core.files import atomic_write, blamed_on

SAMPLE_FILES = ("train.tsv", "few.tsv", "dev.tsv", "test.tsv", "unlabelled.txt")

_HOME = Path(__file__).parents[2]

#: Where the files may be: of a checkout; of a wheel that was installed, with --user, with --target.
PLACES = (
    _HOME / "data" / "sample",
    *(
        Path(root, "share", "superconext", "sample")
        for root in (
            sysconfig.get_path("data"),
            sysconfig.get_path("data", sysconfig.get_preferred_scheme("user")),
            _HOME,
        )
    ),
)


def write_sample(folder: Path, force: bool = False) -> list[Path]:
    """Copy the sample's files into a folder, which is made; returns their paths.

    Raises DataError where a file of that name is there and `force` is not given, or where the
    installation lacks the sample.
    """
    source = next((place for place in PLACES if (place / SAMPLE_FILES[0]).is_file()), None)
    if source is None:
        raise DataError(
            f"{PLACES[1]}: the sample is not there; expected what the wheel installs: install "
            "superconext again, or take data/sample from its source"
        )
    paths = [folder / name for name in SAMPLE_FILES]
    there = next((path for path in paths if path.exists()), None)
    if there is not None and not force:
        raise DataError(f"{there} exists already; expected none: choose another or add --force")
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        content = (source / path.name).read_bytes()
        with atomic_write(path) as temporary, blamed_on(path):
            temporary.write_bytes(content)
    return paths
