"""A small run of the command line with something beside its encoder, for tests of it."""

import pytest

from tests.cli.conftest import call_main
from tests.estimator.test_contract import LABELS, TEXTS, TINY


def command_line_run(folder, features, copies, cuts):
    """A run of the command line, its labelled test file, and what was said.

    copies: of each text, with a number behind it; cuts: where train and dev end.
    """
    lines = [f"{y}\t{x} {k}" for k in range(copies) for x, y in zip(TEXTS, LABELS, strict=True)]
    parts = (lines[: cuts[0]], lines[cuts[0] : cuts[1]], lines[cuts[1] :])
    for name, part in zip(("train", "dev", "test"), parts, strict=True):
        (folder / f"{name}.tsv").write_text("\n".join(["label\ttext", *part]) + "\n", "utf-8")
    small = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
    files = ["--dev", folder / "dev.tsv", "--test", folder / "test.tsv", "--out", folder / "run"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("superconext.report.figures.available", lambda: False)
        words = ["train", folder / "train.tsv", *files, *small]
        said = call_main(*words, "--probe-features", features)
    assert said.code == 0, said.err
    return folder / "run", folder / "test.tsv", said
