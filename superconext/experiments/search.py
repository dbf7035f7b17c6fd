"""Which values are best, where a grid would be too large? `superconext sweep --optuna N`.

A trial is one fit, with seed 0, of values that Optuna's tree-structured Parzen estimator (Bergstra
et al., 2011) proposes from the dev figures so far. The best on dev is then fitted with the other
seeds, and it alone is shown on test.

The sampler is seeded and is asked and told in order, so that the same command proposes the same
values again: a search that was stopped reads its fits from `results.jsonl` and goes on. Values
that are proposed twice are fitted once.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from superconext.config.parameters import BY_NAME
from superconext.core.errors import ConfigError, MissingExtraError, RunError
from superconext.core.progress import Progress
from superconext.experiments.pairing import TESTED
from superconext.experiments.plan import name_of
from superconext.experiments.request import Request
from superconext.experiments.runner import Finished, Session, opened, raise_for
from superconext.experiments.sweep import Point, Swept, publish_points
from superconext.experiments.systems import System, parse_value, plain, with_parameters
from superconext.experiments.tables import summarise
from superconext.objectives.catalogue import check_objective

#: Significant digits of a proposed number, so that its name says all of it.
DIGITS = 4


@dataclass(frozen=True)
class Axis:
    """A parameter's values: those of `choices`, or a range, whole numbers or not."""

    name: str
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    log: bool = False

    def proposed(self, trial: Any) -> Any:
        """The value that a trial of Optuna proposes."""
        if self.choices:
            return trial.suggest_categorical(self.name, list(self.choices))
        if self.whole:
            return trial.suggest_int(self.name, int(self.low), int(self.high), log=self.log)
        value = trial.suggest_float(self.name, self.low, self.high, log=self.log)
        return min(self.high, max(self.low, float(f"{value:.{DIGITS}g}")))


def parse_axes(parameters: Sequence[str], values: Sequence[str]) -> tuple[Axis, ...]:
    """The axes of a search.

    Args:
        values: for each parameter `A,B,C` to choose from, `LOW:HIGH`, or `LOW:HIGH:log`.

    Raises ConfigError for what is no parameter, value or range.
    """
    if not parameters or len(parameters) != len(values):
        raise ConfigError(
            f"found {len(parameters)} parameters and {len(values)} lists of values; expected one "
            "--values after each --parameter"
        )
    if len(set(parameters)) < len(parameters):
        raise ConfigError("a parameter is given twice; expected each once: join its values")
    return tuple(_axis(name, text) for name, text in zip(parameters, values, strict=True))


def _axis(name: str, text: str) -> Axis:
    if ":" not in text:
        found = tuple(
            parse_value(name, piece.strip(), "sweep") for piece in text.split(",") if piece.strip()
        )
        if not found or len(set(found)) < len(found):
            raise ConfigError(f"values of {name} = {text!r}: expected one or more, each once")
        return Axis(name, found)
    low, high, *rest = (piece.strip() for piece in text.split(":"))
    ends = [parse_value(name, piece, "sweep") for piece in (low, high)]
    kinds = {type(end) for end in ends}  # an option of the objective has no row in the table
    kind = BY_NAME[name].type if name in BY_NAME else max(kinds, key=[int, float, str].index)
    log = rest == ["log"]
    if kind not in (int, float) or ends[0] >= ends[1] or (rest and not log):
        raise ConfigError(
            f"values of {name} = {text!r}: expected LOW:HIGH or LOW:HIGH:log of a parameter that "
            "is a number, LOW below HIGH: change it"
        )
    if log and ends[0] <= 0:
        raise ConfigError(f"values of {name} = {text!r}: expected LOW above 0 on a log scale")
    return Axis(name, (), float(ends[0]), float(ends[1]), kind is int, log)


def check_optuna() -> None:
    """Raise MissingExtraError without the extra `optuna`."""
    if importlib.util.find_spec("optuna") is None:
        raise MissingExtraError("sweep --optuna", "optuna")


def search(
    request: Request, objective: str, axes: Sequence[Axis], trials: int, progress: Progress
) -> Swept:
    """Run the trials and the chosen values' other seeds, then write the tables and the figure.

    Args:
        request: without systems. With `jobs` above 1 so many trials are proposed at a time,
            from what those before have shown.

    Raises MissingExtraError without Optuna, RunError where every trial failed, and what
    `runner.opened` raises.
    """
    check_optuna()
    check_objective(objective)
    ask, tell = _sampler(axes)
    start = replace(request, systems=(plain(objective),), seeds=1)
    baselines = [fit for fit in start.plan() if fit.is_baseline]
    found: dict[str, Point] = {}
    failed: list[str] = []
    with opened(_probing(request, objective, axes), progress, "dev") as session:
        failed += session.run(baselines)
        done = 0
        while done < trials:
            wave = [ask(objective) for _ in range(min(request.workers.jobs, trials - done))]
            done += len(wave)
            systems = {system.name: system for _, system in wave}
            failed += _fit(session, request, [*systems.values()], 1)
            for trial, system in wave:
                lines = _lines(session, system)
                if not lines:
                    tell(trial, None)
                    continue
                point = Point(system, summarise(system.name, lines[:1], "dev"))
                found.setdefault(system.name, point)
                tell(trial, point.dev.means[TESTED])
                best = max(of.dev.means[TESTED] for of in found.values())
                progress.say(f"trial {done} of {trials}: best dev weighted F1 {best:.3f}")
        if not found:
            raise RunError(
                f"{session.folder}: found no trial that ended; expected one or more: see the "
                "warnings above"
            )
        chosen = max(found.values(), key=lambda point: point.dev.means[TESTED])
        failed += _fit(session, request, [chosen.system], request.seeds)
        shown = [session.lines[fit.key] for fit in _plan(request, (chosen.system,), request.seeds)
                 if fit.key in session.lines]  # fmt: skip
        swept = publish_points(
            Finished(session.request, session.folder, shown, session.findings),
            list(found.values()),
            chosen,
            progress,
            f"{len(found)} fits, one seed each, proposed by Optuna's TPE sampler with seed 0 in "
            f"{trials} trials",
            searched=True,
        )
    raise_for(failed, trials, session.folder)
    return swept


def _sampler(axes: Sequence[Axis]) -> tuple[Callable[[str], Any], Callable[[Any, Any], None]]:
    """Functions that ask for a trial with its system, and that tell its figure."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=0)
        )

    def ask(objective: str) -> tuple[Any, System]:
        trial = study.ask()
        own = tuple((axis.name, axis.proposed(trial)) for axis in axes)
        return trial, with_parameters(objective, own)

    def tell(trial: Any, value: float | None) -> None:
        if value is None:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, value)

    return ask, tell


def _probing(request: Request, objective: str, axes: Sequence[Axis]) -> Request:
    """The request with the systems at the ends of the axes, to be checked before any fit."""
    ends = [(axis.choices[0] if axis.choices else axis.low) for axis in axes]
    own = tuple(
        (axis.name, int(end) if axis.whole else end) for axis, end in zip(axes, ends, strict=True)
    )
    return replace(request, systems=(with_parameters(objective, own),))


def _plan(request: Request, systems: tuple[System, ...], seeds: int) -> list[Any]:
    return replace(request, systems=systems, seeds=seeds).plan()


def _fit(session: Session, request: Request, systems: Sequence[System], seeds: int) -> list[str]:
    wanted = replace(request, systems=tuple(systems), seeds=seeds)
    session.adopt(wanted)
    missing = [fit for fit in wanted.plan() if fit.key not in session.lines]
    return session.run(missing) if missing else []


def _lines(session: Session, system: System) -> list[Any]:
    """The lines of a system with seed 0."""
    return [
        line for key, line in session.lines.items() if name_of(line) == system.name and key[1] == 0
    ]
