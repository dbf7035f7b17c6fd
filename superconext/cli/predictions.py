"""How are predictions written while the texts are still being read?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from superconext.core.files import tsv_cell

if TYPE_CHECKING:
    import numpy as np

    from superconext.data.reading import RowStream
    from superconext.fitting.model import Model

#: Texts encoded at once; bounds the memory, whatever the reader brings.
_AT_ONCE = 4096


def write_predictions(
    model: Model,
    texts: RowStream,
    as_json: bool = False,
    proba: bool = False,
    abstain_below: float | None = None,
) -> None:
    """Predict block by block; rows go to stdout as they are made, what was read to stderr.

    as_json: one JSON array instead of TSV. proba: every class's probability too.
    abstain_below: rows whose largest probability is lower get no label.
    """
    begun = abstained = told = 0

    def tell() -> None:
        nonlocal told
        for note in texts.notes[told:]:
            click.echo(f"note: {texts.name}: {note}", err=True)
        told = len(texts.notes)

    for block in texts:
        tell()
        for start in range(0, len(block), _AT_ONCE):
            part = block.texts[start : start + _AT_ONCE]
            shares = model.probabilities(part)
            labels: list[str | None] = [model.classes[k] for k in shares.argmax(axis=1)]
            if abstain_below is not None:
                labels = [
                    label if share >= abstain_below else None
                    for label, share in zip(labels, shares.max(axis=1), strict=True)
                ]
                abstained += labels.count(None)
            rows = (_json_rows if as_json else _table_rows)(model, part, labels, shares, proba)
            if as_json:
                click.echo((", " if begun else "[") + ", ".join(rows), nl=False)
            else:
                if proba and not begun:
                    click.echo("\t".join(["label", *map(tsv_cell, model.classes), "text"]))
                click.echo("\n".join(rows))
            begun += len(part)
    if as_json:
        click.echo("]")
    tell()
    if abstain_below is not None:
        click.echo(
            f"note: {texts.name}: no label for {abstained} of {begun} texts, whose classes are "
            f"all less probable than {abstain_below:g}",
            err=True,
        )
    for problem in texts.problems:
        click.echo(f"warning: {problem}", err=True)
    if texts.on_error == "skip":
        click.echo(
            f"{texts.name}: {begun} texts predicted, {texts.skipped} lines skipped", err=True
        )


def _json_rows(
    model: Model, texts: list[str], labels: list[str | None], shares: np.ndarray, proba: bool
) -> list[str]:
    rows = []
    for text, label, row in zip(texts, labels, shares, strict=True):
        told: dict[str, Any] = {"label": label}
        if proba:
            told["probabilities"] = dict(zip(model.classes, row.tolist(), strict=True))
        rows.append(json.dumps({**told, "text": text}, ensure_ascii=False))
    return rows


def _table_rows(
    model: Model, texts: list[str], labels: list[str | None], shares: np.ndarray, proba: bool
) -> list[str]:
    names = {name: tsv_cell(name) for name in model.classes}
    rows = []
    for text, label, row in zip(texts, labels, shares, strict=True):
        cells = ["" if label is None else names[label]]
        cells += [f"{share:.4f}" for share in row] if proba else []
        rows.append("\t".join([*cells, tsv_cell(text)]))
    return rows
