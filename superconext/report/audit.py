"""Label errors: rows ranked by how likely their label is wrong, with the likely label and why.

Every row is judged by a fast model that has not seen it: TF-IDF and logistic regression, fitted on
four fifths of the rows and asked about the last, near-duplicates always together. The suspicion
of a row is a log-likelihood ratio: how much more likely its text is among the rows of the likeliest
other class than among those of its own. Class probabilities, from which cleanlab ranks, would add
the sizes of the classes: where one class loses rows to another by mistake, the rows that it lost
look right by them and those that it kept look wrong (docs/labelling.md has both measured).
"""

from __future__ import annotations

import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from superconext.core.blank import INVISIBLE
from superconext.core.errors import DataError
from superconext.data.dataset import Dataset
from superconext.data.duplicates import keys_of, near_duplicate_groups
from superconext.data.lines import shown
from superconext.text.characters import script_of
from superconext.text.mojibake import likely_meant

#: Parts of the rows, each predicted by a model of the others.
AUDIT_FOLDS = 5

#: Inverse regularisation strength of the model.
C = 1.0

#: What annotators, or the same or nearly the same text, with another label add to a suspicion.
CONTRADICTED = 1.0


@dataclass(frozen=True)
class Suspect:
    """One row under suspicion.

    row: its 0-based place in the data set; texts with a tie of annotators' labels come after its
        last, with the label "". line: of the file, or the row from 1.
    suspicion: logarithm of how many times more likely the text is under the likeliest other label,
        below 0 where its own is the likeliest; more where annotators or copies have another label.
    suggested: the label it may be, "" where nothing else is more likely: where the suspicion is 0
        or below, but for misspelt labels and ties.
    why: what speaks against the label, in words; may be outweighed by what speaks for it.
    """

    row: int
    line: int
    text: str
    label: str
    suspicion: float
    suggested: str
    why: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the names of the columns that `audit` writes."""
        return {
            "label": self.label,
            "text": self.text,
            "line": self.line,
            "suggested": self.suggested,
            "suspicion": round(self.suspicion, 4),
            "why": list(self.why),
        }


@dataclass(frozen=True, eq=False)
class Audit:
    """What an audit found.

    ranked: every row, the most suspicious first: misspelt labels, ties, then by suspicion.
    classes: labels, sorted, without misspelt ones and those of `too_few`.
    probabilities: `[N, C]` of the classes for each row, by a model that has not seen it.
    summary: counts of rows, `likely_wrong`, `suspects`, `contradictions` (rows whose text, or
        nearly the same one, carries another label too), `disputed` (rows whose annotators
        disagree), `misspelt_labels` (from spelling to what it may be), `too_few` (of each class too
        small to judge: its rows are no part of the estimate), `mojibake` (rows), `scripts` and
        `sources` (rows of each class in each).
    """

    ranked: list[Suspect]
    classes: list[str]
    probabilities: np.ndarray
    summary: dict[str, Any]

    @property
    def suspects(self) -> list[Suspect]:
        """The rows that another label is suggested for, the most suspicious first."""
        return [suspect for suspect in self.ranked if suspect.suggested]


def audit(
    rows: Dataset,
    vectors: np.ndarray | None = None,
    progress: Callable[[float], None] | None = None,
    sources: Sequence[str] = (),
) -> Audit:
    """The rows of a labelled data set, the most suspicious label first.

    Args:
        rows: of any file; `Dataset(texts, labels)` makes one of lists.
        vectors: sentence vectors `[N, d]` of rows and ties to use beside the n-grams, of an encoder
            that has not been trained on these labels: one that has agrees with their errors.
        progress: called with the share done, 0 to 1.
        sources: where each row is from `[N]`, for the summary.

    Raises DataError where there are fewer than two classes with two different texts.

    Example:
        >>> texts = [f"{word} {place}" for place in "abcdefgh" for word in ("zwin", "khayb")]
        >>> labels = ["good", "bad"] * 7 + ["bad", "bad"]
        >>> first = audit(Dataset(texts, labels)).suspects[0]
        >>> first.text, first.label, first.suggested
        ('zwin h', 'bad', 'good')
    """
    misspelt = misspelt_labels(rows.class_counts())
    labels = [misspelt.get(label, label) for label in rows.labels]
    spelt = {_folded(label): label for label in labels}
    texts = [*rows.texts, *(text for text, _ in rows.ties)]
    votes = [*(rows.shares or [{}] * len(rows)), *(shares for _, shares in rows.ties)]
    votes = [_respelt(shares, spelt) for shares in votes]
    people = rows.annotated
    tied = [people.lines[at] for at in people.ties] if people and rows.ties else []
    keys = keys_of(texts)
    groups = near_duplicate_groups(keys)
    # A row of no group (-1) is one of its own.
    own = np.where(groups < 0, -1 - np.arange(len(groups)), groups)
    few = too_few(labels, own)
    names = sorted({*labels} - {*few})
    index = {name: k for k, name in enumerate(names)}
    # No model learns from ties of annotators, nor from rows of too small a class: theirs is -1.
    truth = np.array([index.get(label, -1) for label in labels] + [-1] * len(rows.ties))
    shares = unseen_probabilities(texts, truth, own, vectors, rows.source, progress)
    suspicion, rivals = suspicions(shares, truth, own)
    contradictions = _contradictions(groups[: len(rows)], np.array(labels))
    found, disputed = [], 0
    short = Counter(shown(name, 24) for name in {*labels, *chain.from_iterable(votes)})

    def told(label: str) -> str:
        """Whole where another label begins alike."""
        cut = shown(label, 24)
        return cut if short[cut] < 2 else shown(label, 200)

    given = [*rows.labels, *[""] * len(rows.ties)]
    for row, (text, label) in enumerate(zip(texts, given, strict=True)):
        suggested, why = "", []
        own_label = labels[row] if label else ""
        against = 1 - votes[row].get(own_label, 0.0) if votes[row] else 0.0
        if label in misspelt:
            suggested = misspelt[label]
            why.append(f"may be {told(suggested)} misspelt")
        others, share = contradictions.get(row, ((), 0.0))
        if len(others):
            other = Counter(labels[at] for at in others).most_common(1)[0][0]
            twin = next(at for at in others if labels[at] == other)
            same = "the same text" if keys[twin] == keys[row] else "nearly the same text"
            why.append(f"{same} is {told(other)} in line {rows.lines[twin]}")
            suggested = suggested or other
        if against > 0:
            disputed += 1
            named = sorted(votes[row].items(), key=lambda vote: -vote[1])
            shown_votes = ", ".join(f"{told(name)} {part:.0%}" for name, part in named)
            why.append(f"annotators disagree: {shown_votes}")
            most = named[0][0] if label and against > 0.5 else ""
            suggested = suggested or (most if most != own_label else "")
        if label and truth[row] < 0:
            suspicion[row] = 0
            why.append(f"too few texts of {told(labels[row])} to judge")
        elif suspicion[row] > 0:
            ratio = float(f"{min(np.exp(suspicion[row]), 1000):.2g}")
            times = f"{ratio:g}"
            its = told(names[truth[row]]) if label else "any other class"
            rival = names[rivals[row]]
            much, than = ("hardly more", "than") if times == "1" else (f"{times} times as", "as")
            why.append(f"{much} likely among rows of {told(rival)} {than} among rows of {its}")
            suggested = suggested or rival
        if meant := likely_meant(text):
            why.append(f"the text looks like mojibake of {shown(meant, 60)}")
        line = rows.lines[row] if label else tied[row - len(rows)]
        score = float(suspicion[row]) + CONTRADICTED * (share + against)
        if score <= 0 and label and label not in misspelt:
            suggested = ""  # such as of the right one of two copies
        found.append(Suspect(row, line, text, label, score, suggested, tuple(why)))
    ranked = sorted(
        found, key=lambda a: (a.label not in misspelt, bool(a.label), -a.suspicion, a.row)
    )
    summary = {
        "file": rows.source,
        "rows": len(ranked),
        "likely_wrong": likely_wrong(shares, truth),
        "suspects": sum(bool(suspect.suggested) for suspect in ranked),
        "contradictions": len(contradictions),
        "disputed": disputed,
        "misspelt_labels": misspelt,
        "too_few": few,
        "mojibake": sum(bool(likely_meant(text)) for text in texts),
        "scripts": _classes_of(rows, [script_of(text) for text in rows.texts]),
        "sources": _classes_of(rows, sources),
    }
    return Audit(ranked, names, shares, summary)


def too_few(labels: Sequence[str], groups: np.ndarray) -> dict[str, int]:
    """Rows of each class that has fewer different texts than there are folds: a model that sees one
    or two of them finds them likely anywhere. At least the two largest classes are not among them.

    Args:
        labels: `[N]`. groups: numbers `[N]` or more; rows of one group count as one text.
    """
    texts = Counter(label for label, _ in set(zip(labels, groups.tolist(), strict=False)))
    enough = min(AUDIT_FOLDS, *sorted([0, *texts.values()])[-2:])
    counts = Counter(labels)
    return {label: counts[label] for label in sorted(texts) if texts[label] < enough}


def suspicions(
    probabilities: np.ndarray, labels: np.ndarray, groups: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Log-likelihood ratio of the likeliest other class to a row's own, and that class, `[N]`.

    The likelihood of a text in a class is, up to a factor, the probability of the class given the
    text over the share of the class (Bayes), near-duplicates counted once.

    Args:
        probabilities: `[N, C]`, of a model that has not seen the row.
        labels: class indices `[N]`, 0 to C - 1, each there; -1 for none, where the second
            likeliest class counts as a row's own.
        groups: numbers `[N]`, the same for near-duplicates.
    """
    rows, known = np.arange(len(labels)), labels >= 0
    weights = once_each(groups[known])
    classes = np.bincount(labels[known], weights) / weights.sum()
    likelihoods = np.log(np.maximum(probabilities, 1e-9)) - np.log(classes)
    own = np.where(known, labels, np.argsort(likelihoods, axis=1)[:, -2])
    given = likelihoods[rows, own]
    likelihoods[rows, own] = -np.inf
    rivals = likelihoods.argmax(axis=1)
    return likelihoods[rows, rivals] - given, rivals


def likely_wrong(probabilities: np.ndarray, labels: np.ndarray) -> int:
    """About how many labels are wrong: rows to which another class is given the probability that
    it has on average among its own rows, or more (the confident joint of Northcutt, Jiang and
    Chuang, 2021). Hard rows are counted too.

    Arguments are the first two of `suspicions`.
    """
    known = labels >= 0
    shares, given = probabilities[known], labels[known]
    means = np.array([shares[given == k, k].mean() for k in range(shares.shape[1])])
    sure = np.where((shares >= means) & (shares > 0), shares, -1.0)
    return int(((sure.max(axis=1) > 0) & (sure.argmax(axis=1) != given)).sum())


def unseen_probabilities(
    texts: Sequence[str],
    labels: np.ndarray,
    groups: np.ndarray,
    vectors: np.ndarray | None = None,
    source: str = "",
    progress: Callable[[float], None] | None = None,
) -> np.ndarray:
    """Class probabilities `[N, C]` of each text by a model of the other folds.

    Args:
        labels: class indices `[N]`; -1 for a text that no model learns from.
        groups: numbers `[N]`; rows of one group share a fold, and count as one row.
        vectors: sentence vectors `[N, d]` beside the n-grams, or None.
        source: file name for messages.

    Raises DataError where there are fewer than two classes with two groups.
    """
    from scipy.sparse import csr_matrix, hstack
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold
    from threadpoolctl import threadpool_limits

    from superconext.probe.ngrams import NgramCounts, TfidfFeatures

    known = np.flatnonzero(labels >= 0)
    _, first, members = np.unique(groups[known], return_index=True, return_inverse=True)
    first = known[first]
    counts = np.bincount(labels[first], minlength=labels.max() + 1)
    several = int((counts >= 2).sum())
    if several < 2 or not any(map(str.split, texts)):
        raise DataError(
            f"{source or 'rows'}: found {several} class{'es' * (several != 1)} with two different "
            "texts or more, expected two: label more rows, or check --label-column"
        )
    shares = np.zeros((len(texts), len(counts)))
    ngrams = NgramCounts(texts)
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)  # of a class with fewer rows than folds
        folds = StratifiedKFold(min(AUDIT_FOLDS, int(counts.max())), shuffle=True, random_state=0)
        for number, (_, asked) in enumerate(folds.split(first, labels[first]), 1):
            held = np.isin(members, asked)
            fitted, other = known[~held], known[held]
            if number == 1:
                other = np.concatenate([other, np.flatnonzero(labels < 0)])
            own, others = ngrams.fold(fitted, other)
            tfidf = TfidfFeatures(own, labels[fitted])
            (features,), (questions,) = tfidf.merged(own), tfidf.merged(others)
            if vectors is not None:
                mean, scale = vectors[fitted].mean(axis=0), vectors[fitted].std(axis=0) + 1e-7
                # As long on average as a row of TF-IDF, which is two unit vectors side by side.
                scale = scale * np.sqrt(vectors.shape[1] / 2)
                dense = [csr_matrix((vectors[part] - mean) / scale) for part in (fitted, other)]
                features, questions = hstack([features, dense[0]]), hstack([questions, dense[1]])
            model = LogisticRegression(C=C, max_iter=1000)
            model.fit(features.tocsr(), labels[fitted], sample_weight=once_each(groups[fitted]))
            shares[np.ix_(other, model.classes_)] = model.predict_proba(questions.tocsr())
            if progress is not None:
                progress(number / folds.n_splits)
    return shares


def once_each(groups: np.ndarray) -> np.ndarray:
    """Weights `[N]` with which each group counts as one row."""
    _, of, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    weights: np.ndarray = 1 / sizes[of]
    return weights


def misspelt_labels(counts: Mapping[str, int]) -> dict[str, str]:
    """Labels that are a commoner one but for case, spaces or invisible characters, and that one.

    counts: rows of each label.
    """
    spellings: dict[str, str] = {}
    for label in sorted(counts, key=lambda label: (-counts[label], label)):
        spellings.setdefault(_folded(label), label)
    return {label: spellings[_folded(label)] for label in counts if label not in spellings.values()}


def _respelt(shares: Mapping[str, float], spelt: Mapping[str, str]) -> dict[str, float]:
    """Shares of labels in the spelling of the rows."""
    found: dict[str, float] = {}
    for name, share in shares.items():
        name = spelt.get(_folded(name), name)
        found[name] = found.get(name, 0.0) + share
    return found


def _folded(label: str) -> str:
    plain = unicodedata.normalize("NFKC", label).casefold()
    return "".join(c for c in plain if not c.isspace() and ord(c) not in INVISIBLE)


def _contradictions(groups: np.ndarray, labels: np.ndarray) -> dict[int, tuple[np.ndarray, float]]:
    """For each row in a group with several labels, the rows of it that have another one, and
    their share of the group."""
    found: dict[int, tuple[np.ndarray, float]] = {}
    order = np.argsort(groups, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
        if groups[rows[0]] >= 0 and len(set(labels[rows].tolist())) > 1:
            for row in rows:
                others = rows[labels[rows] != labels[row]]
                found[int(row)] = others, len(others) / len(rows)
    return found


def _classes_of(rows: Dataset, groups: Sequence[str]) -> dict[str, dict[str, int]]:
    """Rows of each class in each of the groups `[N]`, the largest group first."""
    pairs = Counter(zip(groups, rows.labels, strict=False))
    return {
        group: {label: pairs[group, label] for label in rows.class_counts()}
        for group, _ in Counter(groups).most_common()
    }
