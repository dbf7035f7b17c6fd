"""Several tables at a glance."""

import pytest

from superconext.experiments.tables import (
    Row,
    Table,
    mean_ranks,
    to_long_grid,
    to_long_rows,
    to_overview,
)


def table(better=(), **values):
    means = {name: dict.fromkeys(("accuracy", "f1_macro", "seconds"), 0.0) for name in values}
    rows = [
        Row(
            name,
            2,
            {**means[name], "f1_weighted": value},
            dict.fromkeys((*means[name], "f1_weighted"), 0.01),
            [value],
            better=name in better,
        )
        for name, value in values.items()
    ]
    return Table(rows, "tfidf", "t")


TABLES = {
    "msac": table(majority=0.3, tfidf=0.6, ours=0.8, better=["ours"]),
    "tsac": table(majority=0.3, tfidf=0.7, ours=0.7, other=0.9),
}


def test_systems_by_tables_bold_where_better():
    grid = to_overview(TABLES, ["A note."], ranked=True)
    assert grid.headings == ["system", "msac", "tsac", "mean", "mean rank"]
    assert grid.rows == [
        ["majority", "30.0 ± 1.0", "30.0 ± 1.0", "30.0", "3.00"],
        ["tfidf", "60.0 ± 1.0", "70.0 ± 1.0", "65.0", "1.75"],
        ["ours", "80.0 ± 1.0", "70.0 ± 1.0", "75.0", "1.25"],
        ["other", "-", "90.0 ± 1.0", "-", "-"],
    ]
    assert grid.bold == {(2, 1)}
    assert grid.markdown().splitlines()[4] == (
        "| ours | **80.0 ± 1.0** | 70.0 ± 1.0 | 75.0 | 1.25 |"
    )


def test_ranks_are_shared_by_equals_and_over_what_all_have():
    assert mean_ranks(TABLES) == pytest.approx({"majority": 3, "tfidf": 1.75, "ours": 1.25})
    assert mean_ranks({}) == {} == mean_ranks({"a": table(x=1), "b": table(y=1)})


def test_one_long_table_says_which_table_a_row_is_from():
    grid = to_long_grid("dataset", TABLES, [])
    assert [row[:2] for row in grid.rows][2:4] == [["msac", "ours"], ["tsac", "majority"]]
    assert grid.bold and all(grid.rows[row][:2] == ["msac", "ours"] for row, _ in grid.bold)
    assert {len(row) for row in grid.rows} == {len(grid.headings)}
    rows = to_long_rows("dataset", TABLES)
    assert [row["dataset"] for row in rows] == ["msac"] * 3 + ["tsac"] * 4
