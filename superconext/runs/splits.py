"""What a training run is asked to do, and its labelled splits, in memory or on disk.

A training file that is larger than memory is read in a stream. All its rows train the encoder,
out of a tokenised store on disk. What evaluates the encoder works on rows in memory: dev, and a
sample of the training rows, on which the probe and the baselines are fitted.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from superconext.config.parameters import Config, with_files
from superconext.core.errors import ColumnError, DataError, RowsError, duration, listed, plural
from superconext.core.files import cache_dir, file_sha256
from superconext.core.progress import Progress
from superconext.core.random_streams import SAMPLE, random_stream
from superconext.data.dataset import (
    ALIKE,
    Dataset,
    check_counts,
    check_held,
    check_letters,
    check_training,
    respelt,
    unknown_labels,
)
from superconext.data.duplicates import told_conflicting
from superconext.data.file_rows import (
    FileRows,
    TrainingRows,
    tokenised_rows,
)
from superconext.data.inspect import told_other_shares
from superconext.data.labels import agreement_report
from superconext.data.lines import STDIN, some_shown
from superconext.data.reading import RowStream, read_labelled
from superconext.data.splits import HELD_BACK, stratified_holdout
from superconext.encoders import encoder_class
from superconext.fitting.checks import needs_every_row
from superconext.fitting.cross_validation import (
    DEFAULT_FOLDS,
    FOLDED_BELOW,
    deal,
    lacks_folds,
    repeats,
)
from superconext.fitting.preprocess import make_tokenizer
from superconext.fitting.recipes import DEV_ROWS_THAT_DECIDE, flags_naming
from superconext.fitting.stages import reads_dev
from superconext.probe.base import FEWEST_DEV_ROWS
from superconext.text.normalize import Normalizer, choose_profile
from superconext.text.tokenize import Tokenizer
from superconext.training.distributed import current_world

#: Part of the reader's message on rows without a label.
_NO_LABEL = "an empty label"

#: Files of so many bytes are read in a stream; gzipped ones from a quarter of it.
STREAMED_FROM = 64 << 20

#: Training rows in memory that represent all of them, and dev rows held back, at most.
SAMPLE_ROWS = 20_000
MOST_HELD = 10_000

#: Rows at the head of the file on which the profile `auto` is decided.
PROFILE_ROWS = 20_000


@dataclass(frozen=True)
class TrainRequest:
    """What the user asked for.

    given: the parameters the user named; everything else is the preset's.
    command: the words of the command line, for the manifest.
    keep_text: whether `predictions.tsv` repeats the texts.
    store: folder for the tokens of a training file that is read in a stream.
    no_report: whether the run gets no page, which holds texts.
    figures: formats of the figures beside PNG.
    reading: how the files are read, as `read_labelled` takes it.
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
    no_report: bool = False
    figures: Sequence[str] = ()
    reading: dict[str, Any] = field(default_factory=dict)

    def reads(self, config: Config) -> list[str | None]:
        """The files and folders that are read: of rows, and of the parameters."""
        found = [self.train, self.dev, self.test]
        for name, value in config.to_dict().items():
            with_files(name, value, found.append)
        return found


@dataclass(frozen=True)
class Splits:
    """The labelled rows, and which split the figures are reported on.

    folds: of a cross-validation of train, which has no dev rows then; 0 for none.
    """

    train: Dataset
    dev: Dataset | None
    test: Dataset | None
    folds: int = 0

    @property
    def reported(self) -> str:
        """`cv` stands for the rows of train, each predicted by models fitted without it."""
        return "test" if self.test is not None else "dev" if self.dev is not None else "cv"

    def agreement(self) -> dict[str, Any] | None:
        """How far the annotators agree whose labels are reported on, else those of train."""
        for name in (self.reported, "train"):
            corpus = self.named().get(name)
            if corpus is not None and corpus.annotated is not None and corpus.annotated.several:
                return {"file": Path(corpus.source).name, **agreement_report(corpus.annotated)}
        return None

    def named(self) -> dict[str, Dataset]:
        found = {"train": self.train, "dev": self.dev, "test": self.test}
        return {name: corpus for name, corpus in found.items() if corpus is not None}


def read_splits(request: TrainRequest, config: Config, progress: Progress) -> Splits:
    """Read and check the labelled files; without a dev file a tenth of train is held back, or
    train is cross-validated."""

    def read(path: str) -> Dataset:
        columns = (request.text_column, request.label_column)
        with progress.bar(f"reading {path}") as advance:
            corpus = read_labelled(path, *columns, **request.reading, advance=advance)
        # What is an error of training is told once, by it.
        refused = path == request.train and request.reading.get("fold_label_case") is not False
        for note in corpus.notes:
            if not (refused and ALIKE in note):
                progress.note(note, corpus.source)
        return corpus

    try:
        train, big_dev = _read_train(request, config, read, progress)
    except RowsError as error:  # one problem, and there may be more
        if request.train == STDIN or isinstance(error, ColumnError):
            raise
        still = "; word vectors that the run trains learn from their texts all the same"
        still *= _NO_LABEL in str(error) and not is_big(request.train, request.store)
        raise RowsError(
            f"{error}{still} (superconext data inspect FILE, with the "
            "same options, lists all problems with rows and labels at once)"
        ) from error
    test = read(request.test) if request.test else None
    if request.dev:
        big_dev = read(request.dev)
    train, dev, folds, note = _dev_rows(request, config, train, big_dev)
    if note:
        progress.note(note)
    _check_dev(request, train, dev, folds, progress)
    if folds and train.shares:
        train = replace(train, shares=(), ties=())
        progress.note(
            "in cross-validation texts have the label that most annotators gave; ties are "
            "left out (--cv 0: training learns from the shares of their labels)"
        )
    if test is not None:
        _check_test(request, train, dev, test, progress)
    if config.preset != "auto" and (flags := flags_naming(request.given)):
        typed = {word.partition("=")[0] for word in request.command}
        asked = "--budget" in typed
        if "--config" in typed:
            flags = ["--config", *(flag for flag in flags if flag in typed)]
        unused = ", so --budget is not used" * asked
        progress.note(f"recipes are not compared, because of {listed(flags, 3)}{unused}")
    return Splits(train, dev, test, folds)


def _dev_rows(
    request: TrainRequest, config: Config, train: Dataset, given: Dataset | None
) -> tuple[Dataset, Dataset | None, int, str]:
    """Where dev comes from: the rows to train on, those of dev, the folds of a cross-validation
    in their place or, with few of them, beside them (0 for none), and a note that says so.

    given: the rows of a dev file, or what was held back of a training file read in a stream.

    Raises DataError where no row can be held back.
    """
    if request.dev:
        assert given is not None
        few = train.on_disk is None and len(given) < DEV_ROWS_THAT_DECIDE and not config.soft_labels
        beside = config.preset == "auto" and few and config.cv != 0
        return train, given, DEFAULT_FOLDS * beside, ""
    if folds := folds_of(config, train, request.test):
        times = repeats(len(train), folds, config)
        often = f", {times} times" * (times > 1)
        fits = f"{folds * times} fits"
        if config.preset == "auto":
            fits = (
                f"up to {fits} of a recipe, in {duration(config.budget)} of processor time "
                "at most (--budget)"
            )
        note = (
            f"no dev file, so settings are chosen by cross-validation ({folds} folds{often}):"
            f" {fits}, then one on all rows (--cv 0: a tenth is held out instead)"
        )
        return train, None, folds, note
    if given is None and request.test and needs_every_row(config, HELD_BACK * len(train)):
        note = (
            f"no dev file, and a tenth of {len(train)} rows would choose nothing, so all "
            "are trained on"
        )
        return train, None, 0, note
    if given is None:
        kept, held = stratified_holdout(train.texts, train.labels, HELD_BACK, config.seed)
        if not len(held):
            count, told = len(set(train.texts)), f"{len(train)} rows are too few"
            if count < len(train):
                told = f"only {plural(count, 'different text')} in {len(train)} rows, too few"
            raise DataError(
                f"{train.source}: {told} to hold any back; expected more rows, or a dev file with "
                "--dev"
            )
        train, given = replace(train.select(kept), ties=train.ties), train.select(held)
    purpose = " to choose settings on"
    if len(given) < FEWEST_DEV_ROWS and not reads_dev(config):
        purpose = ", which are too few to choose settings on (--cv 5 trains on all)"
    note = (
        f"no dev file, so {len(given)} of {len(train) + len(given)} training rows are held "
        f"out{purpose}"
    )
    return train, given, 0, note


def _check_dev(
    request: TrainRequest, train: Dataset, dev: Dataset | None, folds: int, progress: Progress
) -> None:
    """Warn of dev rows by which nothing, or too much, is chosen. Raises DataError for none."""
    if dev is None:
        if folds:
            check_held(train)
        return
    if not len(dev):
        raise DataError(
            f"{train.source}: {len(train)} rows are too few to hold any back; expected more rows, "
            "or a dev file with --dev"
        )
    if not request.dev:
        return
    if unknown := sorted(set(dev.labels) - train.class_counts().keys()):
        some = sum(label in unknown for label in dev.labels)
        progress.warn(
            f"{request.dev} has labels that training never sees: {some_shown(unknown)}; "
            f"nothing is chosen by these rows ({some} of {len(dev)}), and they count as wrong"
            + respelt(unknown, train.class_counts())
        )
    if copies := train.repeats_of(dev.texts):
        progress.warn(
            f"{copies} of {len(dev)} dev texts {'is' if copies == 1 else 'are'} in train too: "
            "settings are chosen on rows that were learned, and scores on them are too high "
            f"{_deduplicated(request)}"
        )


def _deduplicated(request: TrainRequest) -> str:
    """The command that leaves copies out, in brackets."""
    files = [request.train, request.dev, request.test]
    quoted = " ".join(shlex.quote(file) for file in files if file)
    return f"(superconext data inspect {quoted} --deduplicate DIR leaves them out)"


def _check_test(
    request: TrainRequest, train: Dataset, dev: Dataset | None, test: Dataset, progress: Progress
) -> None:
    """Warn of test rows whose score says less than it seems to. Raises DataError where all their
    labels are unknown."""
    known = train.class_counts().keys()
    unknown, mend = unknown_labels(test.labels, known, test.source)
    if unknown:
        progress.warn(
            f"{test.source} has labels that training never sees: "
            f"{some_shown(unknown)}; they count as wrong{mend}"
        )
    parts = {"train": train.repeats_of(test.texts)}
    if dev is not None:  # rows held out of the training file are in that too
        name = "dev" if request.dev else "train"
        parts[name] = parts.get(name, 0) + dev.repeats_of(test.texts)
    if told := told_other_shares(train, test):
        files = shlex.join([request.train, request.test or ""])
        progress.note(
            f"{told}: models expect the shares of train, so test scores can be far below those on "
            f"dev (superconext data inspect {files} shows all shares)"
        )
    for name, copies in parts.items():
        if copies:
            told = "the score is not that of new texts"
            if copies == len(test):
                told = "the score says nothing about new texts"
            progress.warn(
                f"{copies} of {len(test)} test texts {'is' if copies == 1 else 'are'} in {name}"
                f" too: {told} {_deduplicated(request)}"
            )


def folds_of(config: Config, train: Dataset, test: str | None) -> int:
    """Into how many folds train is cut where there is no dev file; 0 where a tenth of it is held
    back."""
    if config.cv is not None and config.preset != "auto":
        return config.cv
    alone = current_world().size == 1 and train.on_disk is None and not lacks_folds(config)
    # A large pretrained model is not fine-tuned twenty times without being asked to.
    quick = test is None and not encoder_class(config.encoder).reads_model
    wanted = config.preset == "auto" or (quick and len(train) < FOLDED_BELOW)
    if not (alone and wanted) or config.cv == 0:
        return 0
    if config.cv is None:
        try:
            deal(train, DEFAULT_FOLDS, config.seed)
        except DataError:  # nearly all rows are copies, which holding rows out tells
            return 0
    return config.cv or DEFAULT_FOLDS


def _read_train(
    request: TrainRequest, config: Config, read: Callable[[str], Dataset], progress: Progress
) -> tuple[Dataset, Dataset | None]:
    """The training rows, and those of a file larger than memory that are held back as dev."""
    if is_big(request.train, request.store):
        columns = (request.text_column, request.label_column)
        share = 0.0 if request.dev else HELD_BACK
        return read_big(
            request.train, columns, config, request.store, share, progress, request.reading
        )
    if request.store is not None:
        progress.note(
            f"store: {request.train} is no file, which alone is read in a stream; it is read into "
            "memory"
        )
    train = read(request.train)
    for line in check_training(train, request.reading.get("fold_label_case") is False):
        progress.warn(line)
    if told := told_conflicting(train.texts, train.labels, train.lines, "on lines"):
        progress.warn(f"{train.source}: {told} (superconext data inspect shows them)")
    return train, None


def is_big(path: str, store: str | None) -> bool:
    """Whether a labelled file is read in a stream: for its size, or because a store is named."""
    if path == STDIN or not Path(path).is_file():
        return False
    packed = 4 if path.lower().endswith((".gz", ".bz2", ".parquet", ".pq", ".xlsx")) else 1
    return store is not None or Path(path).stat().st_size * packed >= STREAMED_FROM


def read_big(
    path: str,
    columns: tuple[str | None, str | None],
    config: Config,
    store: str | None,
    hold_back: float,
    progress: Progress,
    reading: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[Dataset, Dataset | None]:
    """The training rows of a file and, where `hold_back` is not 0, those held back as dev.

    Args:
        columns: text column and label column.
        store: folder to keep the tokens in; by default the project's cache.
        hold_back: share of the rows to hold back, though `MOST_HELD` at most.
        reading: as `read_labelled` takes it.

    Raises DataError for rows that cannot be read or trained on.
    """
    sha256 = file_sha256(Path(path))
    stream = RowStream(path, *columns, **reading)
    blocks = stream.large_blocks()
    head = list(islice(chain.from_iterable(block.texts for block in blocks), PROFILE_ROWS))
    check_letters(head, path, stream.names)
    tokenizer = make_tokenizer(config, head)
    # Copies are told by the rules that any run goes by, as in memory.
    usual = Normalizer(choose_profile(head))
    same = tokenizer.normalizer.rules == usual.rules and tokenizer.bridge is None
    home = Path(store) if store else cache_dir()
    progress.note(f"{path} is read in a stream; its tokens are kept in {home}")
    total = len(head) * Path(path).stat().st_size / max(sum(map(len, head)), 1)  # about
    with progress.bar("tokenising") as advance:
        rows = tokenised_rows(
            path,
            sha256,
            tokenizer,
            columns,
            home,
            lambda done: advance(min(done / total, 1.0)),
            reading=reading,
            keys=None if same else Tokenizer(usual),
        )
    for note in rows.notes:
        progress.note(note, path)
    labels, lines = rows.labels(), rows.lines()
    counts = dict(zip(rows.classes, np.bincount(labels).tolist(), strict=True))
    alike = reading.get("fold_label_case") is False
    for line in check_counts(counts, path, lambda label: _line(rows, label), alike):
        progress.warn(line)
    votes = "annotator" in (stream.columns or {})  # each a row of its own, which is told already
    if not votes and (told := rows.told_conflicting()):
        progress.warn(f"{path}: {told} (superconext data inspect shows them)")
    if reading.get("drop_unlabelled"):
        progress.note(
            "read in a stream: word vectors learn nothing from rows without a label", path
        )
    kept, held = np.arange(len(rows)), np.empty(0, dtype=np.int64)
    if hold_back:
        kept, held = rows.hold_back(min(hold_back, MOST_HELD / len(rows)), config.seed)
    draw = random_stream(config.seed, SAMPLE)
    sample = np.sort(_every_class(labels[kept], draw.permutation(len(kept)), SAMPLE_ROWS))
    if len(sample) < len(kept):
        progress.note(
            f"all {len(kept)} rows train the encoder; the probe and the baselines are "
            f"fitted on {len(sample)} of them, on which the train figures are too"
        )
    training = TrainingRows(rows, kept, sample)
    wanted = np.sort(np.concatenate([kept[sample], held]))
    texts = dict(zip(wanted.tolist(), _texts(path, columns, wanted, reading), strict=True))

    def corpus_of(some: np.ndarray) -> tuple[list[str], list[str], list[int]]:
        return (
            [texts[row] for row in some.tolist()],
            [rows.classes[k] for k in labels[some]],
            lines[some].tolist(),
        )

    sampled = corpus_of(kept[sample])
    big = Dataset(*sampled, path, sha256, rows.notes, training, stream.recorded)
    return big, Dataset(*corpus_of(held), path, sha256, rows.notes) if hold_back else None


def _every_class(labels: np.ndarray, order: np.ndarray, count: int) -> np.ndarray:
    """The first `count` of `order`, with two rows of every class ahead of them."""
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    firsts = [
        rows[np.argsort(rank[rows])[:2]]
        for rows in (np.flatnonzero(labels == k) for k in range(int(labels.max()) + 1))
    ]
    ahead = np.concatenate(firsts)
    rank[ahead] = -1
    return np.argsort(rank, kind="stable")[: max(count, len(ahead))]


def _texts(
    path: str,
    columns: tuple[str | None, str | None],
    wanted: np.ndarray,
    reading: Mapping[str, Any],
) -> Iterable[str]:
    """The texts of the given rows, ascending, in a second pass over the file."""
    found: list[str] = []
    at, position = 0, 0
    for block in RowStream(path, *columns, **reading).large_blocks():
        end = at + len(block.texts)
        while position < len(wanted) and wanted[position] < end:
            found.append(block.texts[wanted[position] - at])
            position += 1
        if position == len(wanted):
            break
        at = end
    return found


def _line(rows: FileRows, label: str) -> int:
    return int(rows.lines()[np.flatnonzero(rows.labels() == rows.classes.index(label))[0]])
