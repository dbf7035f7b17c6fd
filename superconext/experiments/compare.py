"""Objectives and baselines on the same splits: what `superconext compare` does.

The parent alone writes, a line as soon as a fit ends, so that a kill loses no more than
the fits that were running.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from superconext.errors import RunError, StoppedEarly
from superconext.experiments.one_fit import run_fit_aside, run_or_tell
from superconext.experiments.plan import Fit, check_reference, choose_scheme, key_of, make_plan
from superconext.experiments.pools import Pools, read_pools
from superconext.experiments.record import (
    CompareRequest,
    check_folder,
    claim,
    config_hash,
    fit_config,
    make_record,
)
from superconext.experiments.results import ResultsFile, only_writer
from superconext.experiments.table_files import write_tables
from superconext.experiments.tables import Table, make_table
from superconext.training.progress import Progress

FIGURE = "weighted_f1.png"


@dataclass(frozen=True)
class Compared:
    """The table, and the lines it was made from, in the order of the plan."""

    table: Table
    lines: list[dict[str, Any]]


def compare(request: CompareRequest, progress: Progress) -> Compared:
    """Run every fit that has no line yet, then write the tables and the figure.

    Raises StoppedEarly on Ctrl-C, RunError when the folder is another comparison's or in
    use, or when a training failed (then the tables are made from the others), and what
    reading and fitting raise.
    """
    folder = Path(request.out)
    scheme = choose_scheme(request.dev is not None, request.test is not None, request.splits)
    plan = make_plan(request.objectives, request.seeds, scheme)
    check_reference(request.reference, request.objectives)
    check_folder(folder)
    _check_parameters(request, plan)
    pools = read_pools(
        request.files(),
        scheme,
        text_column=request.text_column,
        label_column=request.label_column,
        remove_copies=request.deduplicate,
        progress=progress,
    )
    record = make_record(request, scheme, pools, plan)
    folder.mkdir(parents=True, exist_ok=True)
    with only_writer(folder, progress):
        claim(folder, record)
        results = ResultsFile(folder)
        failed = _run_missing(plan, results, record, pools, request, progress)
        lines = [results.lines[fit.key] for fit in plan if fit.key in results.lines]
        table = make_table(lines, request.reference, findings=pools.findings)
        write_tables(folder, table)
        _draw(folder / "figures", table, progress)
    if failed:
        raise RunError(
            f"{len(failed)} of {len(plan)} fits failed, and the tables in {folder} lack them; "
            f"expected all to end; the first was {failed[0]}"
        )
    return Compared(table, lines)


def run_fits(
    fits: Sequence[Fit], pools: Pools, given: Mapping[str, Any], jobs: int
) -> Generator[dict[str, Any], None, None]:
    """The line of each fit as it ends; out of order where `jobs` processes work at once.

    Every process keeps to the parameter `threads`, which is one unless the user says more.
    """
    rest = (pools.rows, dict(given), pools.labels)
    if jobs == 1 or len(fits) < 2:
        for fit in fits:
            yield run_or_tell(fit, *rest)
        return
    from joblib import Parallel, delayed, parallel_config

    threads = fit_config(given, fits[-1]).threads if not fits[-1].is_baseline else 1
    with parallel_config("loky", n_jobs=min(jobs, len(fits)), inner_max_num_threads=threads):
        work = Parallel(return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1)
        with closing(work(delayed(run_fit_aside)(fit, *rest) for fit in fits)) as lines:
            yield from lines


def _check_parameters(request: CompareRequest, plan: Sequence[Fit]) -> None:
    """Raise ConfigError for what no fit could be made with, before anything is read."""
    from superconext.fitting import check_device
    from superconext.objectives.catalogue import objective_class
    from superconext.objectives.options import parse_options

    for fit in plan:
        if not fit.is_baseline and fit.seed == 0:
            config = fit_config(request.given, fit)
            check_device(config.device)
            parse_options(config.options, objective_class(fit.objective).options_type)


def _run_missing(
    plan: Sequence[Fit],
    results: ResultsFile,
    record: Mapping[str, Any],
    pools: Pools,
    request: CompareRequest,
    progress: Progress,
) -> list[str]:
    """Run the fits without a line. Returns what went wrong with those that failed."""
    missing = {fit.key: fit for fit in plan if fit.key not in results.lines}
    done = len(plan) - len(missing)
    if done:
        progress.say(f"note: {done} of {len(plan)} fits stand in {results.path} already")
    failed: list[str] = []
    with _interruptible(plan, results, request), progress.bar("comparing") as advance:
        lines = run_fits(list(missing.values()), pools, request.given, request.jobs)
        with closing(lines):
            for line in lines:
                fit = missing[key_of(line)]
                done += 1
                if "failed" in line:
                    failed.append(f"{fit}: {line['failed']}")
                    progress.warn(failed[-1])
                else:
                    results.add({**line, "config": config_hash(record["identity"], fit)})
                    progress.say(_told(fit, line, done, len(plan)))
                advance(done / len(plan))
    return failed


@contextmanager
def _interruptible(
    plan: Sequence[Fit], results: ResultsFile, request: CompareRequest
) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        stand = sum(fit.key in results.lines for fit in plan)
        raise StoppedEarly(
            f"interrupted; {stand} of {len(plan)} fits stand in {request.out}: go on by giving "
            "the same command again"
        ) from None


def _told(fit: Fit, line: Mapping[str, Any], done: int, total: int) -> str:
    scores = line["test"]
    told = (
        f"[{done}/{total}] {fit}: accuracy {scores['accuracy']:.3f}, "
        f"weighted F1 {scores['f1_weighted']:.3f}, {line['seconds']:.1f} s"
    )
    if line.get("collapsed"):
        told += " (warning: the encoder collapsed)"
    return told


def _draw(folder: Path, table: Table, progress: Progress) -> None:
    from superconext.report import figures
    from superconext.report.figure_compare import draw_comparison

    if not figures.available():
        progress.say(f"note: {figures.UNAVAILABLE}")
        return
    folder.mkdir(exist_ok=True)
    draw_comparison(
        {row.name: row.values for row in table.rows},
        folder / FIGURE,
        reference=table.reference,
        significant=[row.name for row in table.rows if row.better],
    )
