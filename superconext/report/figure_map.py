"""A map of sentence vectors in two dimensions."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from superconext.core.errors import ConfigError, DataError
from superconext.report.canvas import label_text, mark, new_figure, note, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = ("auto", "tsne", "pca")

#: Above this t-SNE takes longer than training; below `_FEWEST` it has no neighbourhoods.
_MOST = 3000
_FEWEST = 10
_PERPLEXITY = 30.0
_PCA_FIRST = 50
_LEGEND_COLUMN = 25
_LEGEND_MOST = 75


def draw_map(
    features: np.ndarray,
    labels: Sequence[str],
    path: str | os.PathLike[str],
    *,
    method: str = "auto",
    seed: int = 0,
    predicted: Sequence[str] | None = None,
) -> Path:
    """Draw sentence vectors in two dimensions, classes apart by shape and lightness.

    t-SNE (van der Maaten and Hinton, 2008) after PCA to 50 dimensions, as the
    SuperConText papers show their vectors, or plain PCA. Distances between far groups of
    a t-SNE map mean nothing; the title names the method.

    Args:
        features: `[N, d]` sentence vectors. Rows that are not finite are left out, and
            the title says how many.
        labels: N true classes.
        path: PNG to write.
        method: "tsne", "pca", or "auto": t-SNE from 10 to 3000 rows, else PCA. Fewer
            than 4 rows, or rows all equal, are always drawn by PCA.
        seed: seed of both methods.
        predicted: N predicted classes; where they differ from `labels` the point is
            ringed.

    Raises:
        ConfigError: for another method.
        DataError: when shapes do not agree.
        MissingExtraError: without the extra `plots`.
        RunError: when the file cannot be written.
    """
    if method not in METHODS:
        raise ConfigError(f"method = {method!r}: expected one of {', '.join(METHODS)}; change it")
    features = np.asarray(features, dtype=np.float64)
    if not features.size and not len(labels):
        features = features.reshape(0, 0)
    if features.ndim != 2 or len(features) != len(labels):
        raise DataError(
            f"map: found features of shape {features.shape} for {len(labels)} labels: expected "
            "[N, d] and N labels; give one vector for each label"
        )
    if predicted is not None and len(predicted) != len(labels):
        raise DataError(
            f"map: found {len(predicted)} predictions for {len(labels)} labels: expected as "
            "many; give one prediction for each label"
        )
    finite = np.isfinite(features).all(axis=1)
    truth = np.array([str(label) for label in labels], dtype=object)
    wrong = np.zeros(len(truth), dtype=bool)
    if predicted is not None:
        wrong = truth != np.array([str(label) for label in predicted], dtype=object)
    points, title, names = place(features[finite], method, seed)
    if not finite.all():
        title += f"; {int((~finite).sum())} rows that are not finite left out"
    return save(_draw(points, truth[finite], wrong[finite], title, names), path)


def place(
    features: np.ndarray, method: str = "auto", seed: int = 0
) -> tuple[np.ndarray, str, tuple[str, str]]:
    """Coordinates `[N, 2]` of finite features `[N, d]`, the method in words, axis names."""
    rows = len(features)
    reduced, shares = _principal(features, seed)
    axes = tuple(
        f"component {i + 1} ({share:.0%} of the variance)" for i, share in enumerate(shares[:2])
    )
    if method == "auto":
        method = "tsne" if _FEWEST <= rows <= _MOST else "pca"
    flat = not shares.any()
    if method == "pca" or rows < 4 or flat:
        why = " (all vectors are equal)" if flat and rows > 1 else ""
        return reduced[:, :2], f"Sentence vectors, PCA{why}", (axes[0], axes[1])
    from sklearn.manifold import TSNE

    # Perplexity counts neighbours, so it must stay well below the number of rows.
    perplexity = min(_PERPLEXITY, (rows - 1) / 3)
    start = (reduced[:, :2] / reduced[:, 0].std() * 1e-4).astype(np.float32)
    model = TSNE(perplexity=perplexity, init=start, learning_rate="auto", random_state=seed)
    points = model.fit_transform(reduced.astype(np.float32))
    title = f"Sentence vectors, t-SNE (perplexity {perplexity:.3g})"
    return points.astype(np.float64), title, ("", "")


def _principal(features: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Up to 50 principal components `[N, >=2]` and their shares of the variance `[>=2]`."""
    rows = len(features)
    # Scaling keeps squares within range and changes no picture.
    scale = np.abs(features).max(initial=0.0)
    centred = features / scale if scale > 0 else features
    if rows:
        centred = centred - centred.mean(axis=0)
    if rows < 2 or np.abs(centred).max(initial=0.0) < 1e-9:
        return np.zeros((rows, 2)), np.zeros(2)
    from sklearn.decomposition import PCA

    # Subnormal spread would divide by zero inside PCA; the largest entry becomes 1.
    centred = centred / np.abs(centred).max()
    model = PCA(n_components=min(_PCA_FIRST, *centred.shape), random_state=seed)
    reduced = model.fit_transform(centred)
    shares = np.asarray(model.explained_variance_ratio_)
    if reduced.shape[1] < 2:
        reduced = np.hstack([reduced, np.zeros((rows, 1))])
        shares = np.append(shares, 0.0)
    return reduced, shares


def _draw(
    points: np.ndarray, truth: np.ndarray, wrong: np.ndarray, title: str, names: tuple[str, str]
) -> Figure:
    counts = dict(sorted(Counter(truth).items()))
    classes = list(counts)
    columns = min(-(-len(classes) // _LEGEND_COLUMN), _LEGEND_MOST // _LEGEND_COLUMN)
    figure = new_figure(7.5 + 1.8 * max(columns - 1, 0), 5.5)
    axes = figure.add_subplot()
    axes.set_title(f"{title}; N = {len(truth)}", fontsize=10, wrap=True)
    if not len(truth):
        note(axes, "no rows to draw")
        return figure
    size = float(np.clip(3000 / np.sqrt(len(truth)) / 4, 12, 60))
    handles, texts = [], []
    for at, name in enumerate(classes):
        marker, colour = mark(at)
        chosen = points[truth == name]
        handle = axes.scatter(
            chosen[:, 0], chosen[:, 1], s=size, marker=marker, color=[colour],
            edgecolors="black", linewidths=0.4,
            # The largest class lies lowest, so that it does not cover the others.
            zorder=2 + 1 / (1 + counts[name]),
        )  # fmt: skip
        handles.append(handle)
        texts.append(label_text(name, f" ({counts[name]})"))
    if len(handles) > _LEGEND_MOST:
        hidden = len(handles) - (_LEGEND_MOST - 1)
        handles, texts = handles[: _LEGEND_MOST - 1], texts[: _LEGEND_MOST - 1]
        handles.append(axes.scatter([], [], s=0))
        texts.append(f"and {hidden} more classes")
    if wrong.any():
        ring = axes.scatter(
            points[wrong, 0], points[wrong, 1], s=size * 3.2, facecolors="none",
            edgecolors="black", linewidths=1.1, zorder=4,
        )  # fmt: skip
        handles.append(ring)
        texts.append(f"ringed: wrongly classified ({int(wrong.sum())})")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlabel(names[0])
    axes.set_ylabel(names[1])
    axes.margins(0.06)
    # Texts are set afterwards: matplotlib hides a label that begins with "_".
    legend = figure.legend(
        handles, ["x"] * len(handles), loc="outside right upper", fontsize=8,
        ncols=max(columns, 1), frameon=False,
    )  # fmt: skip
    for entry, text in zip(legend.get_texts(), texts, strict=True):
        entry.set_text(text)
    return figure
