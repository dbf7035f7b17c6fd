"""How is one system compared with another, given how the rows were drawn?

Where every seed draws its own split, systems are paired split by split, but the training
sets overlap, so the paired t-test is corrected for that. Where a few rows of each class are
drawn, they are paired draw by draw, and corrected by how much the draws overlap. Where all
systems answer the same given test rows, the rows are what could have been others, so they
are resampled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from superconext.experiments.draws import parse_draw
from superconext.experiments.significance import (
    mcnemar_exact,
    paired_bootstrap,
    resampled_t_test,
)

TESTED = "f1_weighted"
RESAMPLES = 2000

Lines = Sequence[Mapping[str, Any]]

#: The test by how the rows were drawn.
TESTS = {
    "given": "paired bootstrap",
    "resampled": "corrected resampled t-test",
    "shots": "corrected paired t-test",
}


@dataclass(frozen=True)
class Paired:
    """difference: of the tested figure; p, p_mcnemar: None where no such test can be made."""

    difference: float
    p: float | None = None
    p_mcnemar: float | None = None


def design_of(lines: Lines) -> str:
    """How the rows of these lines were drawn, a key of TESTS."""
    if any("overlap" in line or str(line["split"]).startswith("shots") for line in lines):
        return "shots"
    drawn = any(str(line.get("base", line["split"])).startswith("resampled") for line in lines)
    return "resampled" if drawn else "given"


def compare_lines(design: str, ours: Lines, theirs: Lines) -> Paired | None:
    """Ours against theirs; None where they have no split in common."""
    if design != "given":
        return _split_by_split(design, ours, theirs)
    truth = np.array(ours[0]["truth"])
    first, second = (np.array([line["predictions"] for line in of]) for of in (ours, theirs))
    result = paired_bootstrap(truth, first, second, resamples=RESAMPLES)
    alone = len(first) == len(second) == 1
    mcnemar = mcnemar_exact(truth, first[0], second[0]).p if alone else None
    return Paired(result.difference, result.p, mcnemar)


def about_rows(design: str, lines: Lines) -> str:
    """What the percentages are means over."""
    sizes = [line["rows"] for line in lines]
    mean = {name: round(float(np.mean([size[name] for size in sizes]))) for name in sizes[0]}
    splits = len({line["split"] for line in lines})
    about = f"{mean['train']} training, {mean['dev']} dev and {mean['test']} test rows"
    draws = sorted({str(line["draw"]) for line in lines if line.get("draw")})
    if draws and not all("shots" in line for line in lines):
        told = "; ".join(f"{name}: {parse_draw(name).told()}" for name in draws)
        where = "test rows drawn anew" if lines[0]["base"] == "resampled" else "the given test rows"
        return (
            f"Percent on {where}, mean ± standard deviation over {splits} draws ({about}). {told}."
        )
    if design == "resampled":
        return (
            f"Percent on test, mean ± standard deviation over {splits} random stratified split"
            f"{'s' if splits > 1 else ''} "
            f"(about {about}; copies of a text stay on one side)."
        )
    if design == "shots":
        shots = sorted({int(line["shots"]) for line in lines})
        return (
            f"Percent on the given test rows, mean ± standard deviation over draws of "
            f"{', '.join(map(str, shots))} rows of each class ({mean['test']} test rows; a seed's "
            "smaller draws are part of its larger ones)."
        )
    dev = "as given" if splits == 1 else "a tenth of the training rows, drawn by each seed"
    return (
        f"Percent on the given test rows, mean ± standard deviation over seeds ({about}; dev "
        f"{dev})."
    )


def about_test(design: str) -> str:
    """Which test the p-values come from, and why."""
    return {
        "resampled": (
            "corrected resampled t-test (Nadeau and Bengio 2003), paired by split, two-sided: the "
            "splits' training sets overlap, which a plain paired t-test takes for independent "
            "evidence, so the variance is multiplied by 1/splits + test rows/training rows"
        ),
        "shots": (
            "t-test paired by draw, two-sided, its variance multiplied by 1/draws + "
            "overlap/(1 - overlap), the overlap being the share of rows that two draws are "
            "expected to have in common; it speaks for other draws, not for other test rows"
        ),
        "given": (
            f"paired bootstrap over the test rows ({RESAMPLES} resamples), two-sided, of the "
            "difference in weighted F1 averaged over seeds: all systems answer the same rows, so "
            "seeds are no independent test sets; it speaks for other test rows, not for other "
            "training sets"
        ),
    }[design]


def _split_by_split(design: str, ours: Lines, theirs: Lines) -> Paired | None:
    """The test over the splits both have; the difference alone where that is one split."""
    rivals = {line["split"]: line for line in theirs}
    pairs = [(line, rivals[line["split"]]) for line in ours if line["split"] in rivals]
    if not pairs:
        return None
    first = [float(line["test"][TESTED]) for line, _ in pairs]
    second = [float(line["test"][TESTED]) for _, line in pairs]
    share = _overlap(design, [line for line, _ in pairs])
    if len(pairs) == 1 or share is None:
        return Paired(float(np.mean(first) - np.mean(second)))
    result = resampled_t_test(first, second, share)
    return Paired(result.difference, result.p)


def _overlap(design: str, lines: Lines) -> float | None:
    """What 1/splits is added to; None where every draw has the same rows."""
    if design == "shots":
        shared = float(np.mean([line["overlap"] for line in lines]))
        return shared / (1 - shared) if shared < 1 else None
    sizes = [line["rows"] for line in lines]
    return float(sum(size["test"] for size in sizes) / sum(size["train"] for size in sizes))
