"""What a training run is asked to do, and the labelled rows that it names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from superconext.config.parameters import Config
from superconext.core.errors import DataError
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset, check_training
from superconext.data.duplicates import leaks
from superconext.data.reading import read_labelled
from superconext.data.splits import stratified_holdout

#: Share of the training rows held back where no dev file is given.
HELD_BACK = 0.1


@dataclass(frozen=True)
class TrainRequest:
    """What the user asked for.

    given: the parameters the user named; everything else is the preset's.
    command: the words of the command line, for the manifest.
    keep_text: whether `predictions.tsv` repeats the texts.
    store: folder for the tokens of a training file that is read in a stream.
    """

    train: str
    out: str
    dev: str | None = None
    test: str | None = None
    given: dict[str, Any] = field(default_factory=dict)
    text_column: str | None = None
    label_column: str | None = None
    force: bool = False
    keep_text: bool = False
    command: tuple[str, ...] = ()
    store: str | None = None


@dataclass(frozen=True)
class Splits:
    """The labelled rows, and which split the figures are reported on."""

    train: Dataset
    dev: Dataset
    test: Dataset | None

    @property
    def reported(self) -> str:
        return "dev" if self.test is None else "test"

    def named(self) -> dict[str, Dataset]:
        found = {"train": self.train, "dev": self.dev, "test": self.test}
        return {name: corpus for name, corpus in found.items() if corpus is not None}


def read_splits(request: TrainRequest, config: Config, progress: Progress) -> Splits:
    """Read and check the labelled files; without a dev file a tenth of train is held back."""

    def read(path: str) -> Dataset:
        corpus = read_labelled(path, request.text_column, request.label_column)
        for note in corpus.notes:
            progress.say(f"note: {corpus.source}: {note}")
        return corpus

    train, big_dev = _read_train(request, config, read, progress)
    test = read(request.test) if request.test else None
    if request.dev:
        dev = read(request.dev)
    elif big_dev is not None:
        dev = big_dev
        progress.say(
            f"note: no dev file, so {len(dev)} of {len(dev) + len(train)} training rows are held "
            "back to choose settings on"
        )
    else:
        kept, held = stratified_holdout(train.texts, train.labels, HELD_BACK, config.seed)
        train, dev = train.select(kept), train.select(held)
        progress.say(
            f"note: no dev file, so {len(dev)} of {len(train) + len(dev)} training rows are held "
            "back to choose settings on"
        )
    if not len(dev):
        raise DataError(
            f"{train.source}: {len(train)} rows are too few to hold any back; expected more rows, "
            "or a dev file with --dev"
        )
    if test is not None:
        unknown = sorted(set(test.labels) - set(train.labels))
        if unknown:
            progress.warn(
                f"{test.source} has labels that training never sees: "
                f"{', '.join(unknown[:5])}; they count as wrong"
            )
        for corpus, name in ((train, "train"), (dev, "dev")):
            copies = _copies(corpus, test)
            if copies:
                progress.warn(
                    f"{copies} of {len(test)} test texts stand in {name} word for word; "
                    "the test figures are flattered by them"
                )
    return Splits(train, dev, test)


def _read_train(
    request: TrainRequest, config: Config, read: Callable[[str], Dataset], progress: Progress
) -> tuple[Dataset, Dataset | None]:
    """The training rows, and those of a file larger than memory that are held back as dev."""
    from superconext.runs.big_file import is_big, read_big

    if is_big(request.train, request.store):
        columns = (request.text_column, request.label_column)
        share = 0.0 if request.dev else HELD_BACK
        return read_big(request.train, columns, config, request.store, share, progress)
    train = read(request.train)
    check_training(train)
    return train, None


def _copies(corpus: Dataset, test: Dataset) -> int:
    """Test texts that stand in another split word for word."""
    from superconext.runs.big_file import BigCorpus

    if isinstance(corpus, BigCorpus):
        return corpus.training.source.has(test.texts, corpus.training.rows)
    return len(leaks(corpus.texts, test.texts))
