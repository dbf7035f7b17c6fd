"""The runner of an experiment: runs the fits without a result and writes each result at once.

The parent process alone writes, so that a kill loses no more than the fits that were running.
`verify` repeats some of the fits and compares (`compare --verify`).
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

from superconext._version import __version__
from superconext.baselines import ALWAYS_FITTED, BASELINES, CONTROLS
from superconext.config.fingerprints import Fingerprints
from superconext.config.parameters import Config
from superconext.core.errors import ConfigError, DataError, OptionError, RunError, StoppedEarly
from superconext.core.files import file_sha256
from superconext.core.progress import Progress
from superconext.core.registry import Registry
from superconext.encoders import ENCODERS
from superconext.experiments.fit_job import TransferSource, run_fit_aside, run_or_report, with_folds
from superconext.experiments.plan import (
    Fit,
    Key,
    Request,
    Workers,
    key_of,
    name_of,
    possible_fits,
    saved_dataset,
    saved_system,
    side_by_side,
)
from superconext.experiments.record import (
    RESULTS,
    ResultsFile,
    check_folder,
    check_systems,
    claim,
    config_hash,
    first_of_identities,
    make_record,
    only_writer,
    read_record,
    read_results,
)
from superconext.experiments.row_sources import RowSource, read_rows
from superconext.experiments.subsampling import draw_rows, parse_draw
from superconext.experiments.systems import System, fit_config, plain
from superconext.objectives.catalogue import OBJECTIVES
from superconext.probe import ENSEMBLE_NAMES, METRICS, PROBES
from superconext.report.page import write_tables
from superconext.report.table import Grid

Line = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Material:
    """What the fits on one data set are made from: its rows, the parameters for all of them, and
    whether they learn from the texts of rows that are not drawn."""

    source: RowSource
    given: Mapping[str, Any]
    rest: bool


@dataclass(frozen=True)
class Finished:
    """A finished experiment. lines: of the fits that ended, in the plan's order. sources: by data
    set."""

    request: Request
    folder: Path
    lines: list[Line]
    sources: Mapping[str, RowSource]

    def write_page(self, grids: Mapping[str, Grid], drawn: Sequence[Path]) -> None:
        """Write `report.html`: tables under their headings, and those of the figures that are
        pictures."""
        title = f"superconext {self.request.verb} {self.request.protocol}".strip()
        pictures = [path for path in drawn if path.suffix == ".png"]
        write_tables(self.folder / "report.html", title, grids, pictures)


class Session:
    """An experiment's folder while this process may write there.

    material, sources: by data set. lines: of the fits that ended.
    """

    def __init__(
        self,
        request: Request,
        material: Mapping[str, Material],
        results: ResultsFile,
        progress: Progress,
        shown_part: str,
        prints: Fingerprints,
    ) -> None:
        self.material = material
        self.sources = {name: of.source for name, of in material.items()}
        self._results, self._progress, self._shown_part = results, progress, shown_part
        self._prints = prints
        self.adopt(request)

    def adopt(self, request: Request) -> None:
        """Take systems that the folder may not know yet into its record.

        Raises RunError for a name that stands for something else there.
        """
        record = make_record(request, self.sources, self._prints)
        check_systems(self.folder, self._results.lines.values(), request.systems, self._prints)
        self._record = claim(self.folder, record)
        self.request = request

    @property
    def folder(self) -> Path:
        return self._results.path.parent

    @property
    def lines(self) -> Mapping[Key, Line]:
        return self._results.lines

    def run(self, plan: Sequence[Fit]) -> list[str]:
        """Run the fits that have no line. Returns what went wrong with those that failed.

        Raises RunError for a line that another folder's fit has left, with other parameters.
        """
        say, results, total = self._progress.say, self._results, len(plan)
        for fit in plan:
            line = self.lines.get(fit.key, {})
            if "config" in line and line["config"] != self._config_of(fit):
                raise RunError(
                    f"{results.path}: the line of {fit} was made with other rows, parameters or "
                    "code, or another version, such as those of another folder; expected this "
                    "one's: choose another folder with --out, or remove the line, and its fit is "
                    "run again"
                )
            before, now = line.get("metric_files", {}), _metric_files()
            for name in sorted(before.keys() & now.keys()):
                if before[name] != now[name]:
                    raise RunError(
                        f"{results.path}: the line of {fit} was made with another file of metric "
                        f"{name!r}; expected the same, as means would be of two metrics: give the "
                        "metric another name, or choose another folder with --out"
                    )
        missing = {fit.key: fit for fit in plan if fit.key not in self.lines}
        done = total - len(missing)
        if done:
            say(f"note: {done} of {total} fits are in {results.path} already")
        failed: list[str] = []
        fits = run_fits(list(missing.values()), self.material, self.request.workers)
        try:
            with self._progress.bar("comparing") as advance, closing(fits) as lines:
                for line in lines:
                    fit = missing[key_of(line)]
                    done += 1
                    if "failed" in line:
                        failed.append(f"{fit}: {line['failed']}")
                        self._progress.warn(failed[-1])
                    else:
                        self._add(fit, line)
                        say(progress_line(fit, line, done, total, self._shown_part))
                    advance(done / total)
        except KeyboardInterrupt:
            # The plan may be a part of a search, of which the folder has more.
            count = len(self.lines)
            of = f" of {total}" * (self.lines.keys() <= {fit.key for fit in plan})
            verb = "fit is" if count == 1 and not of else "fits are"
            raise StoppedEarly(
                f"interrupted; {count}{of} {verb} in {self.request.out}: resume by repeating the "
                "command"
            ) from None
        return failed

    def _add(self, fit: Fit, line: Line) -> None:
        own = self._prints.of(dict(fit.system.parameters))
        files = {"metric_files": found} if (found := _metric_files()) else {}
        config = self._config_of(fit)
        self._results.add({**line, "parameters": own, "config": config, **files})

    def _config_of(self, fit: Fit) -> str:
        names = [fit.dataset, *filter(None, [fit.system.source])]
        identities = [self._record["datasets"][name]["identity"] for name in names]
        system, own = fit.system, self._prints.of(dict(fit.system.parameters))
        kind: Registry[Any] = BASELINES if system.is_baseline else OBJECTIVES
        configs, added = [], [(kind, system.objective)]
        for name in names if fit.reads_parameters else ():
            config = fit_config(self.material[name].given, system, fit.seed)
            configs.append(self._prints.of(config.to_dict()))
            added.append((ENCODERS, config.encoder))
            if config.probe_features not in ENSEMBLE_NAMES:
                added.append((PROBES, config.probe_features))
        added = [] if system.is_auto else added
        files = dict.fromkeys(registry.file_of(name) for registry, name in added)
        code = [file_sha256(Path(file)) for file in files if os.path.isfile(file)]
        identity = identities if system.source else identities[0]
        return config_hash(identity, fit, own, configs, code)


def _metric_files() -> dict[str, str]:
    """Hashes of the files of metrics that a user has added, by name."""
    own = [name for name in METRICS if name not in METRICS.built_in]
    for name in own:
        METRICS.get(name)
    return {name: METRICS.digests[name] for name in own if METRICS.digests[name]}


@contextmanager
def open_session(
    request: Request, progress: Progress, shown_part: str = "test"
) -> Iterator[Session]:
    """Read the data of a request and hold its folder inside the block.

    Raises RunError when the folder is another experiment's or in use, and what reading raises.
    """
    folder = Path(request.out)
    request.workers.check()
    check_folder(folder)
    _check_parameters(request, progress)
    material = {
        data.name: Material(
            read_rows(data, request.scheme(data), progress),
            request.given_on(data),
            data.rest_unlabelled,
        )
        for data in request.datasets
    }
    sources = {name: of.source for name, of in material.items()}
    request = with_folds(request, sources, progress)
    if request.verb == "fewshot":
        for part in material.values():
            rows = part.source.rows
            largest = max(map(parse_draw, request.draws), key=attrgetter("amount"))
            draw_rows(rows["train"], largest, 0, dev="dev" not in rows)
    prints = Fingerprints()
    # Missing files are reported before the folder is made.
    make_record(request, sources, prints)
    folder.mkdir(parents=True, exist_ok=True)
    with only_writer(folder, progress):
        yield Session(request, material, ResultsFile(folder), progress, shown_part, prints)


def run_experiment(
    request: Request,
    progress: Progress,
    publish: Callable[[Finished], T],
    shown_part: str = "test",
) -> T:
    """Run every fit that has no line yet, then call `publish` while the folder is locked.

    A draw that a data set has too few rows for is left out with a warning. shown_part: the part
    whose metrics are shown after each fit.

    Raises StoppedEarly on Ctrl-C, RunError when the folder is another experiment's or in use, or
    when a training failed (after publishing the others), and what reading and fitting raise.
    """
    request.check()
    try:
        with open_session(request, progress, shown_part) as session:
            request = session.request
            rows = {name: of.rows for name, of in session.sources.items()}
            plan = possible_fits(request.plan(), rows, request.draws, progress.warn)
            if not plan:
                raise DataError(
                    "found too few rows for every draw; expected enough for one: give more rows, "
                    "or other draws"
                )
            failed = session.run(plan)
            lines = [session.lines[fit.key] for fit in plan if fit.key in session.lines]
            published = publish(Finished(request, session.folder, lines, session.sources))
    except KeyboardInterrupt:  # before the first fit or after the last
        if not (kept := Path(request.out) / RESULTS).is_file():
            raise
        raise StoppedEarly(
            f"interrupted; the fits that ended are in {kept}: resume by repeating the command"
        ) from None
    raise_for(failed, len(plan), session.folder)
    return published


def raise_for(failed: Sequence[str], planned: int, folder: Path) -> None:
    """Raise RunError if fits failed."""
    if failed:
        raise RunError(
            f"{len(failed)} of {planned} fits failed, and the tables in {folder} lack them; "
            f"expected all to end; the first was {failed[0]}"
        )


def run_fits(
    fits: Sequence[Fit], material: Mapping[str, Material], workers: Workers
) -> Generator[Line, None, None]:
    """The line of each fit as it ends; out of order where several work at once.

    Every process keeps to the parameter `threads`, which is one unless the user says more.
    """
    tasks = []
    threads = 1
    for fit in fits:
        part = material[fit.dataset]
        other = material[fit.system.source] if fit.system.source else None
        transfer = other and TransferSource(other.source.rows, dict(other.given))
        own = part.source.rows, dict(part.given), part.source.labels
        tasks.append((fit, *own, transfer, part.source.unlabelled, part.rest))
        if fit.reads_parameters:
            threads = max(threads, fit_config(part.given, fit.system, fit.seed).threads)
    if workers.backend == "processes" and (workers.jobs == 1 or len(tasks) < 2):
        for task in tasks:
            yield run_or_report(*task)
        return
    with closing(side_by_side(run_fit_aside, tasks, workers, threads)) as lines:
        yield from lines


def _check_parameters(request: Request, progress: Progress) -> None:
    """Raise ConfigError for what no fit could be made with, before anything is read.

    MissingExtraError where a baseline's package is not installed.
    """
    from superconext.baselines import BASELINES
    from superconext.baselines.baseline import check_run
    from superconext.fitting.checks import (
        changed_parameters,
        check_config,
        unread_parameters,
        warn_where_slow,
    )
    from superconext.fitting.cross_validation import check_folds

    configs = []
    read: dict[str, set[str]] = {}
    for system in request.systems:
        if system.is_baseline:
            BASELINES.get(system.objective).check()
    for data in request.datasets:
        for system in request.systems:
            if not system.reads_parameters:
                continue
            config = fit_config(request.given_on(data), system, 0)
            configs.append(config)
            beside = "related" if config.related else "soft_labels" if config.soft_labels else ""
            if data.rest_unlabelled and beside:
                raise ConfigError(
                    f"rest_unlabelled with {beside} = {getattr(config, beside)!r}, which may have "
                    "labels of the rows that are not drawn; expected one of them: leave one out"
                )
            try:
                check_config(config, data.rest_unlabelled or data.drop_unlabelled)
                check_folds(replace(config, cv=data.cv))
                if system.source:
                    _check_transferred(config)
                if system.is_baseline:
                    check_run(system.objective, config)
            except OptionError as error:
                raise OptionError(f"{system.name}: {error}", error.name) from None
            except ConfigError as error:
                raise ConfigError(f"{system.name}: {error}") from None
            if not (system.is_baseline or system.is_auto):
                unread, own = unread_parameters(config), dict(system.parameters)
                for name in {*own, *changed_parameters(config)} - {"objective", "encoder"}:
                    read.setdefault(name, set()).add(unread.get(name, ""))
    warn_where_slow(configs, progress)
    for name, reasons in sorted(read.items()):
        if "" not in reasons:
            told = " or ".join(sorted(reasons))
            progress.warn(f"{name} with {told}, where nothing reads it: leave it out")


def _check_transferred(config: Config) -> None:
    """Raise ConfigError for what the probe of an encoder of other rows does not do."""
    from superconext.probe.ensemble import ENSEMBLES

    lacks = {
        f"probe_features = {config.probe_features!r}": config.probe_features in ENSEMBLES,
        "calibrate": config.calibrate,
    }
    if lack := next((name for name, found in lacks.items() if found), ""):
        raise ConfigError(
            f"found {lack} for an encoder of another data set; expected a linear probe alone: "
            "leave it out"
        )


def progress_line(
    fit: Fit, line: Mapping[str, Any], done: int, total: int, shown_part: str = "test"
) -> str:
    """A line of progress about a fit that has ended."""
    scores = line[shown_part]
    part = "" if shown_part == "test" else f"{shown_part} "
    text = (
        f"[{done}/{total}] {fit}: {part}accuracy {scores['accuracy']:.3f}, "
        f"{part}weighted F1 {scores['f1_weighted']:.3f}, {line['seconds']:.1f} s"
    )
    if line.get("collapsed"):
        text += " (warning: the encoder collapsed)"
    return text


#: What a line has that running its fit again cannot give, or gives otherwise each time; what it was
#: made with is looked at before.
_NOT_COMPARED = {"seconds", "parameters", "config", "metric_files"}


@dataclass(frozen=True)
class Check:
    """differing: test rows predicted otherwise; changed: keys of the line that differ."""

    fit: Fit
    rows: int
    differing: int
    changed: tuple[str, ...]

    @property
    def same(self) -> bool:
        return not self.changed

    def __str__(self) -> str:
        if self.same:
            return f"{self.fit}: match ({self.rows} predictions)"
        return (
            f"{self.fit}: DIFFERS ({self.differing} of {self.rows} predictions; "
            f"differing: {', '.join(self.changed)})"
        )


def verify(
    folder: Path, number: int, progress: Progress, *, workers: Workers | None = None
) -> list[Check]:
    """Re-run `number` lines of an experiment, drawn at random, from the files it names.

    A line matches if all in it but its seconds is exactly as written: predictions, figures and what
    was chosen.

    Raises RunError if the folder is no experiment, was made by another version, or if its
    data have changed since.
    """
    record = read_record(folder)
    lines = read_results(folder / RESULTS)
    if not lines:
        raise RunError(f"{folder / RESULTS}: found no fit to verify; expected one or more lines")
    made = {part["identity"].get("version") for part in record["datasets"].values()}
    if made != {__version__}:
        raise RunError(
            f"{folder}: made by version {', '.join(sorted(map(str, made)))}, this is "
            f"{__version__}; expected the same: install that version to verify it"
        )
    chosen = random.sample(sorted(lines), min(number, len(lines)))
    fits = {key: _fit(record, lines[key]) for key in chosen}
    request = _request(record, folder, list(fits.values()))
    material = {
        data.name: Material(
            read_rows(
                data,
                record["datasets"][data.name]["identity"]["splits"],
                progress,
                near_findings=False,
            ),
            request.given_on(data),
            data.rest_unlabelled,
        )
        for data in request.datasets
    }
    prints = Fingerprints()
    now = make_record(request, {name: of.source for name, of in material.items()}, prints)
    for name, part in now["datasets"].items():
        before = record["datasets"][name]
        changed = first_of_identities(before["identity"], part["identity"])
        if changed or before["labels"] != part["labels"]:
            raise RunError(
                f"{folder}: the data or vectors it was made from have changed since "
                f"({changed or 'other labels'}); expected the files as they were: put them back"
            )
    check_systems(folder, [lines[key] for key in chosen], request.systems, prints)
    written = {name for key in chosen for name in lines[key]["test"]} - {"n"}
    if missing := sorted(name for name in written if name not in METRICS):
        raise RunError(
            f"{folder}: its lines have the metric {missing[0]!r}, which is not registered; "
            "expected it: register it as when they were made"
        )
    if now["versions"] != record["versions"]:
        differ = [k for k, v in now["versions"].items() if record["versions"].get(k) != v]
        progress.note(
            f"made with other versions of {', '.join(differ)}; figures may differ for that"
        )
    checks = []
    with progress.bar("verifying") as advance:
        for again in run_fits(list(fits.values()), material, workers or Workers()):
            key = key_of(again)
            checks.append(_checked(fits[key], lines[key], again))
            advance(len(checks) / len(fits))
    return checks


def _fit(record: Mapping[str, Any], line: Mapping[str, Any]) -> Fit:
    name = name_of(line)
    saved = record["systems"].get(name)
    system = saved_system(name, saved) if saved else plain(name)
    return Fit(system, line["seed"], line["split"], line.get("dataset", ""))


def _request(record: Mapping[str, Any], folder: Path, fits: list[Fit]) -> Request:
    """The part of the recorded request that is needed to run these fits."""
    names = dict.fromkeys(name for fit in fits for name in (fit.dataset, fit.system.source))
    datasets = {name: record["datasets"][name] for name in names if name in record["datasets"]}
    systems: dict[str, System] = {fit.system.name: fit.system for fit in fits}
    default = (*ALWAYS_FITTED, *CONTROLS)
    return Request(
        datasets=tuple(saved_dataset(name, saved) for name, saved in datasets.items()),
        systems=tuple(system for name, system in systems.items() if name not in default),
        seeds=record["seeds"],
        out=str(folder),
        verb=record["verb"],
        given=record["given"],
        reference=record["reference"],
    )


def _checked(fit: Fit, before: Mapping[str, Any], again: Mapping[str, Any]) -> Check:
    old = before.get("predictions", [])
    new = again.get("predictions", [])
    differing = sum(a != b for a, b in zip(old, new, strict=False)) + abs(len(old) - len(new))
    found = _restricted(json.loads(json.dumps(again)), before)
    changed = tuple(
        name
        for name in {**before, **again}
        if name not in _NOT_COMPARED and (name not in before or before[name] != found.get(name))
    )
    return Check(fit, len(old), differing, changed)


def _restricted(value: Any, earlier: Any) -> Any:
    """What stands in a line, without metrics that were registered after the earlier one."""
    if isinstance(value, dict) and isinstance(earlier, dict):
        return {key: _restricted(of, earlier[key]) for key, of in value.items() if key in earlier}
    if isinstance(value, list) and isinstance(earlier, list) and len(value) == len(earlier):
        return [_restricted(*pair) for pair in zip(value, earlier, strict=True)]
    return value
