"""Paired comparisons of two systems: an interval of the difference, and a p-value.

Where all systems predict the same test rows, test rows and seeds are what could have been others,
and both are resampled (a hierarchical bootstrap). Where every seed draws its own split, systems are
paired split by split; the training sets overlap, so the paired t-test is corrected for that. Holm's
correction accounts for several tests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from superconext.core.errors import plural
from superconext.experiments.subsampling import TEST_HELD, parse_draw

#: Of the intervals; a p-value below one minus this stands beside an interval without 0.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Comparison:
    """difference: mean of ours minus theirs; low, high: its interval at `CONFIDENCE`;
    p: two-sided probability under no difference."""

    difference: float
    low: float
    high: float
    p: float


def resampled_t_test(
    ours: Sequence[float], theirs: Sequence[float], test_share: float
) -> Comparison | None:
    """For scores on the same random train/test splits, one of each system for each split; None
    where all differ by the same, but for 0: no variance could be told from that.

    The splits overlap, so the plain paired t-test is far too sure of itself; the variance
    is corrected by the ratio of test to training rows.

    Args:
        ours, theirs: scores `[S]`, split by split; at least two splits.
        test_share: test rows over training rows, such as 0.1 / 0.8.

    Source: Nadeau and Bengio (2003), "Inference for the generalization error".
    """
    from scipy.stats import t

    differences = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    differences = differences.round(_DIGITS)
    count = len(differences)
    if count < 2:
        raise ValueError(f"found {count} splits; a t-test needs at least two")
    mean = float(differences.mean())
    if np.ptp(differences) == 0:
        return None if mean else Comparison(0.0, 0.0, 0.0, 1.0)
    variance = float(differences.var(ddof=1)) * (1 / count + test_share)
    error = math.sqrt(variance)
    reach = error * float(t.ppf((1 + CONFIDENCE) / 2, count - 1))
    p = float(2 * t.sf(abs(mean) / error, count - 1))
    return Comparison(mean, mean - reach, mean + reach, p)


def hierarchical_bootstrap(
    truth: np.ndarray,
    ours: np.ndarray,
    theirs: np.ndarray,
    *,
    seeds: bool = True,
    paired: bool = False,
    overlap: float = 0.0,
    fits: int = 1,
    resamples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """For predictions of both systems on one fixed test set: weighted F1, rows and seeds resampled.

    Args:
        truth: class indices `[N]`.
        ours, theirs: predicted class indices `[S, N]` and `[T, N]`, one row for each seed (of a
            system without randomness: one row). A system's score is the mean over its seeds.
        seeds: False resamples test rows alone, which rejects too often where seeds vary.
        paired: whether row s of both is of the same seed (S = T), which are then drawn together.
        overlap: what 1/S is added to, see `resampled_t_test`: 0 for seeds that are independent.
        fits: of each seed, in rows that follow one another, such as fits on nested draws of rows:
            `[S * fits, N]`. They are averaged, as they say less than fits of as many seeds.

    Each resample draws N rows with replacement, the same for both systems, and moves the mean over
    S seeds by their standard error times a draw of Student's t with S - 1 degrees of freedom: few
    seeds tell little of how much others would vary, and drawing from them again would be too sure.
    What test rows explain of the variance between seeds is taken off it, as the rows are resampled
    already. A single seed is left as it is, and what another one would change is not in the
    interval.

    The interval has the quantiles of the resampled differences. The p-value is twice the share of
    resamples in which the sign of the difference turns or nothing differs, with one added to both
    counts, so that it is never 0, and at least 2 ** (1 - n) where n rows are predicted
    differently: no test of their signs tells more. An interval that ends at exactly 0 therefore has
    a p-value of at least 1 - `CONFIDENCE`, and of 1 where nothing differs in half of the resamples.
    """
    truth, ours, theirs = np.asarray(truth), np.atleast_2d(ours), np.atleast_2d(theirs)
    classes = int(max(truth.max(), ours.max(), theirs.max())) + 1
    rows = np.random.default_rng([seed, 0])
    of_seeds = np.random.default_rng([seed, 1]) if seeds else None

    def scores(weights: np.ndarray) -> list[np.ndarray]:
        found = (resampled_f1(truth, of, weights, classes) for of in (ours, theirs))
        first, second = (one.reshape(len(weights), -1, fits).mean(axis=2) for one in found)
        return [first - second] if paired else [first, second]

    parts = []
    for start in range(0, resamples, _AT_ONCE):
        count = min(_AT_ONCE, resamples - start)
        drawn = rows.integers(0, len(truth), (count, len(truth)))
        parts.append(scores(_counts(drawn, len(truth))))
    observed = [one[0] for one in scores(np.ones((1, len(truth))))]
    resampled = [
        _over_seeds(np.concatenate(part), of, of_seeds, overlap)
        for part, of in zip(zip(*parts, strict=True), observed, strict=True)
    ]
    difference = round(float(_first_less_second([of.mean() for of in observed])), _DIGITS)
    differences = _first_less_second(resampled).clip(-1, 1).round(_DIGITS) + 0.0  # no -0.0
    turned = int((differences * difference <= 0).sum())
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(differences, (tail, 1 - tail))
    same = (ours == theirs[0]).all(axis=0) & (theirs == theirs[0]).all(axis=0)
    least = 2.0 ** (1 - int((~same).sum()))
    p = min(1.0, max(2 * (turned + 1) / (resamples + 1), least))
    return Comparison(difference, float(low), float(high), p)


#: Resamples computed at once; bounds the memory.
_AT_ONCE = 250

#: Of differences: what lies below comes from rounding, and its sign says nothing.
_DIGITS = 12


def resampled_f1(
    truth: np.ndarray, predicted: np.ndarray, weights: np.ndarray, classes: int
) -> np.ndarray:
    """Weighted F1 `[B, S]` of predictions `[S, N]`, the rows counted by weights `[B, N]`."""
    weights = weights.astype(np.float32)  # counts: exact below 2 ** 24
    names = np.arange(classes)
    actual = (weights @ (truth[:, None] == names).astype(np.float32)).astype(np.float64)
    scores = np.empty((len(weights), len(predicted)))
    for column, row in enumerate(predicted):
        named = row[:, None] == names
        hits = named & (row == truth)[:, None]
        counts = (weights @ np.hstack([named, hits]).astype(np.float32)).astype(np.float64)
        f1 = 2 * counts[:, classes:] / np.maximum(actual + counts[:, :classes], 1e-12)
        scores[:, column] = (f1 * actual).sum(axis=1) / actual.sum(axis=1)
    return scores


def _counts(drawn: np.ndarray, size: int) -> np.ndarray:
    """How often each of `size` numbers is in each row of `drawn` `[B, n]`: `[B, size]`."""
    flat = drawn + size * np.arange(len(drawn))[:, None]
    return np.bincount(flat.ravel(), minlength=size * len(drawn)).reshape(-1, size)


def _first_less_second(both: Sequence[Any]) -> Any:
    """Of paired scores, which are differences, there is but one."""
    return both[0] - both[1] if len(both) == 2 else both[0]


def _over_seeds(
    scores: np.ndarray, observed: np.ndarray, seeds: np.random.Generator | None, overlap: float
) -> np.ndarray:
    """The mean `[B]` over the S seeds of scores `[B, S]`, moved as that of other seeds would be;
    not moved without a generator, and where there is one seed.

    observed: the scores `[S]` on the rows as they are.
    """
    resamples, count = scores.shape
    mean: np.ndarray = scores.mean(axis=1)
    if count == 1 or seeds is None:
        return mean
    of_rows = (scores - mean[:, None]).var(axis=0).mean() * count / (count - 1)
    of_seeds = max(float(observed.var(ddof=1) - of_rows), 0.0)
    error = math.sqrt(of_seeds * (1 / count + overlap))
    moved: np.ndarray = mean + error * seeds.standard_t(count - 1, resamples)
    return moved


def mcnemar_exact(truth: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> float:
    """The p-value for one prediction of each system on one fixed test set: accuracy, rows counted.

    Args:
        truth, ours, theirs: class indices `[N]`.

    Of the rows that only one system gets right, each is as likely to be right as the other
    under no difference: an exact two-sided binomial test.

    Source: McNemar (1947); the exact form as in Dietterich (1998), section 3.1.
    """
    right, rival = np.asarray(ours) == truth, np.asarray(theirs) == truth
    gained, lost = int((right & ~rival).sum()), int((rival & ~right).sum())
    rows, fewer = gained + lost, min(gained, lost)
    # The share of the outcomes with `fewer` and, as multiples of it, of those with still fewer.
    tail = multiple = 1.0
    for k in range(fewer, 0, -1):
        multiple *= k / (rows - k + 1)
        tail += multiple
    return min(1.0, 2 * (math.comb(rows, fewer) / 2**rows) * tail)


def accuracies_against_first(right: Sequence[Sequence[bool]]) -> list[dict[str, Any]]:
    """The accuracy of each system but the first against the first's, of which rows `[N]` each
    labels correctly: the difference, the rows that it alone or the first alone labels correctly,
    and the p-value of `mcnemar_exact`, as it is and corrected for the number of systems."""
    first, *others = np.asarray(right)
    every = np.ones(len(first), dtype=bool)
    p_values = [mcnemar_exact(every, other, first) for other in others]
    return [
        {
            "difference": float(other.mean() - first.mean()),
            "only_right": int((other & ~first).sum()),
            "only_first_right": int((first & ~other).sum()),
            "p_mcnemar": p,
            "p_holm": corrected,
        }
        for other, p, corrected in zip(others, p_values, holm(p_values), strict=True)
    ]


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values `[K]` in the order given: below 0.05 means significant among all K.

    The chance of even one false alarm among the K questions stays below the level, whatever
    the dependence between them.

    Source: Holm (1979), "A simple sequentially rejective multiple test procedure".
    """
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda k: p_values[k])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


TESTED = "f1_weighted"
RESAMPLES = 10_000

Lines = Sequence[Mapping[str, Any]]

BOOTSTRAP, T_TEST = "hierarchical bootstrap", "corrected resampled t-test"


@dataclass(frozen=True)
class Paired:
    """difference: of the tested figure; result, p_mcnemar: None where no such test can be made;
    test: which gave the result."""

    difference: float
    result: Comparison | None = None
    test: str = ""
    p_mcnemar: float | None = None


def design_of(lines: Lines) -> str:
    """How the rows of these lines were drawn: given, resampled, shots or folds."""
    if any("folds" in line for line in lines):
        return "folds"
    if any("overlap" in line or str(line["split"]).startswith("shots") for line in lines):
        return "shots"
    drawn = any(str(line.get("base", line["split"])).startswith("resampled") for line in lines)
    return "resampled" if drawn else "given"


def compare_lines(design: str, ours: Lines, theirs: Lines) -> Paired | None:
    """Ours against theirs; None where they have no split in common."""
    if design == "given":
        return _on_given_rows(ours, theirs, 0.0)
    rivals = {line["split"]: line for line in theirs}
    pairs = [(line, rivals[line["split"]]) for line in ours if line["split"] in rivals]
    if not pairs:
        return None
    firsts, seconds = ([pair[at] for pair in pairs] for at in (0, 1))
    first, second = ([float(line["test"][TESTED]) for line in of] for of in (firsts, seconds))
    overlap = _overlap(design, firsts)
    if len(pairs) == 1 or overlap is None:
        return Paired(float(np.mean(first) - np.mean(second)))
    same_rows = all(line["truth"] == firsts[0]["truth"] for line in firsts)
    if design == "shots" and same_rows:
        return _on_given_rows(firsts, seconds, overlap)
    result = resampled_t_test(first, second, overlap)
    return Paired(float(np.mean(first) - np.mean(second)), result, T_TEST)


#: Seeds from which on those of two systems are paired. Two differences that happen to be alike
#: hide all that seeds do: 7 to 10% of equally good systems differed, of three seeds up to 7%.
FEWEST_PAIRED = 4


def _on_given_rows(ours: Lines, theirs: Lines, overlap: float) -> Paired:
    """The test where all lines predict the same test rows."""
    ours, theirs = (sorted(of, key=lambda line: int(line["seed"])) for of in (ours, theirs))
    same = [line["seed"] for line in ours] == [line["seed"] for line in theirs]
    paired = same and (len(ours) == 1 or len(ours) >= FEWEST_PAIRED)
    truth = np.array(ours[0]["truth"])
    first, second = (np.array([line["predictions"] for line in of]) for of in (ours, theirs))
    result = hierarchical_bootstrap(
        truth, first, second, paired=paired, overlap=overlap, resamples=RESAMPLES
    )
    alone = len(first) == len(second) == 1
    mcnemar = mcnemar_exact(truth, first[0], second[0]) if alone else None
    return Paired(result.difference, result, BOOTSTRAP, mcnemar)


def about_rows(design: str, lines: Lines) -> str:
    """What the percentages are means over."""
    sizes = [line["rows"] for line in lines]
    splits = len({line["split"] for line in lines})
    if design == "folds":
        per = len(lines[0]["folds"])
        deals = f"{splits // per} deals of " * (splits > per)
        held = sum({line["split"]: line["rows"]["test"] for line in lines}.values())
        held //= max(1, splits // per)
        lone = sizes[0]["train"] + sizes[0]["test"] - held
        of_none = f"; {plural(lone, 'row')}, the only text of a class, in none" * (lone > 0)
        return (
            f"Percent on the rows held out, mean ± standard deviation over {splits} folds, each by "
            f"itself ({deals}{held} rows in {per} folds, the same for all "
            f"systems; copies of a text in one fold{of_none})."
        )
    mean = {name: round(float(np.mean([size[name] for size in sizes]))) for name in sizes[0]}
    about = f"{mean['train']} training, {mean['dev']} dev and {mean['test']} test rows"
    draws = sorted({str(line["draw"]) for line in lines if line.get("draw")})
    if draws and not all("shots" in line for line in lines):
        descriptions = "; ".join(f"{name}: {parse_draw(name).describe()}" for name in draws)
        where = (
            "newly drawn test rows" if lines[0]["base"] == "resampled" else "the given test rows"
        )
        return (
            f"Percent on {where}, mean ± standard deviation over {splits} draws ({about}). "
            f"{descriptions}."
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
    given = lines[0].get("base", lines[0]["split"]) == "given"
    dev = "as given" if given else "a tenth of the training rows, drawn by each seed"
    held = lines[0]["split"].startswith(TEST_HELD)
    where = "a tenth of the rows, the same for all seeds" if held else "the given test rows"
    return f"Percent on {where}, mean ± standard deviation over seeds ({about}; dev {dev})."


def about_test(design: str) -> str:
    """Which test the intervals and p-values come from, and why."""
    both = (
        f"hierarchical bootstrap ({RESAMPLES:,} resamples), two-sided: test rows are resampled, "
        "and means over {} moved by their standard error times Student's t, because both are "
        "samples"
    )
    if design == "folds":
        return about_test("resampled").replace("split", "fold")
    return {
        "resampled": (
            "corrected resampled t-test (Nadeau and Bengio 2003), paired by split, two-sided: the "
            "splits' training sets overlap, which a plain paired t-test takes for independent "
            "evidence, so the variance is multiplied by 1/splits + test rows/training rows"
        ),
        "shots": both.format("draws")
        + "; the variance of draws is multiplied by 1 + draws × overlap/(1 - overlap), the "
        "overlap being the share of rows that two draws are expected to have in common (a t-test "
        "with the same correction where the test rows are newly drawn)",
        "given": both.format("seeds") + "; the rows of the training file are not resampled",
    }[design]


def _overlap(design: str, lines: Lines) -> float | None:
    """What 1/splits is added to; None where every draw has the same rows."""
    if design == "shots":
        shared = float(np.mean([line["overlap"] for line in lines]))
        return shared / (1 - shared) if shared < 1 else None
    sizes = [line["rows"] for line in lines]
    return float(sum(size["test"] for size in sizes) / sum(size["train"] for size in sizes))
