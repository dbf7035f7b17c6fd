"""The figure of a comparison: a line for each system, true dots, true bars."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from superconext.report import canvas, figures
from superconext.report.figure_compare import draw_comparison, draw_comparisons

pytestmark = pytest.mark.skipif(not figures.available(), reason="needs the extra plots")
VALUES = {
    "majority": [0.4],
    "tfidf_logreg": [0.6, 0.62, 0.66],
    "ce_ce (own rule)": [0.7, 0.8, 0.75],
}


@pytest.fixture
def axes_of(monkeypatch, tmp_path):
    kept = []
    original = canvas.save
    keep = lambda figure, path: kept.append(figure) or original(figure, path)  # noqa: E731
    monkeypatch.setattr("superconext.report.figure_compare.save", keep)

    def draw(*arguments, **more):
        path = draw_comparison(*arguments, tmp_path / "figure.png", **more)
        assert path.read_bytes()[:4] == b"\x89PNG"
        return kept[-1].axes[0]

    return draw


def test_dots_are_the_fits_and_bars_one_deviation(axes_of):
    axes = axes_of(VALUES, reference="tfidf_logreg", significant=["ce_ce (own rule)"])
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == ["majority", "tfidf_logreg", "ce_ce (own rule) *"]
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    for line, values in zip(dots, VALUES.values(), strict=True):
        assert np.allclose(line.get_xdata(), [100 * value for value in values])
    assert len({tuple(line.get_ydata()) for line in dots}) == 3
    bars = [box.get_paths()[0].vertices[:, 0] for box in axes.collections]
    assert len(bars) == 2  # one fit has no deviation
    for ends, name in zip(bars, ("tfidf_logreg", "ce_ce (own rule)"), strict=True):
        mean, spread = np.mean(VALUES[name]), np.std(VALUES[name], ddof=1)
        assert np.allclose(sorted(ends), [100 * (mean - spread), 100 * (mean + spread)])
    dashed = next(line for line in axes.lines if line.get_linestyle() == "--")
    assert dashed.get_xdata()[0] == pytest.approx(100 * np.mean(VALUES["tfidf_logreg"]))
    assert axes.get_ylim()[0] > axes.get_ylim()[1]  # the first system on top
    assert "tfidf_logreg" in axes.figure.get_supxlabel()


@pytest.mark.parametrize(("majority", "far"), [(0.33, True), (0.55, False)])
def test_what_is_far_below_is_a_number_at_the_edge(axes_of, majority, far):
    values = {"majority": [majority], "supcon": [0.60, 0.64], "superloss": [0.66, 0.68]}
    axes = axes_of(values)
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    assert len(dots) == (2 if far else 3)
    assert (axes.get_xlim()[0] > 50) == (far or majority > 0.5)
    assert [text.get_text() for text in axes.texts] == (["\u2190 33.0"] if far else [])
    assert [text.get_text() for text in axes.get_yticklabels()] == list(values)


def test_nothing_is_cut_off_at_the_edge(axes_of):
    long = {f"superloss fine-tuned at length {name}": values for name, values in VALUES.items()}
    axes = axes_of(long, reference=next(iter(long)), significant=list(long))
    axes.figure.canvas.draw()
    told = [*axes.figure.texts, *axes.get_yticklabels(), axes.xaxis.label]
    shown = [text for text in told if text.get_text()]
    assert len(shown) == 4
    for box in (text.get_window_extent() for text in shown):
        assert 0 <= box.x0 < box.x1 <= axes.figure.bbox.width


def test_everything_is_grey(axes_of):
    from matplotlib.colors import to_rgb

    for line in axes_of(VALUES, reference="majority").lines:
        assert len(set(to_rgb(line.get_color()))) == 1 or line.get_marker() == "o"
        if line.get_marker() == "o":
            assert len(set(to_rgb(line.get_markeredgecolor()))) == 1


@pytest.mark.parametrize("values", [{}, {"supcon": []}, {"supcon": [0.5]}, {"س$ا_": [0.1, 0.9]}])
def test_odd_input_still_makes_a_figure(axes_of, values):
    axes_of(values, reference="nobody")


def test_data_sets_stand_side_by_side_with_the_same_lines(monkeypatch, tmp_path):
    kept = []
    original = canvas.save
    keep = lambda figure, path: kept.append(figure) or original(figure, path)  # noqa: E731
    monkeypatch.setattr("superconext.report.figure_compare.save", keep)
    panels = {"msac": VALUES, "tsac": {"tfidf_logreg": [0.5, 0.7], "supcon": [0.8]}}
    stars = {"msac": ["ce_ce (own rule)"], "tsac": []}
    draw_comparisons(panels, tmp_path / "figure.png", reference="tfidf_logreg", significant=stars)
    first, second = kept[-1].axes
    assert (first.get_title(), second.get_title()) == ("msac", "tsac")
    names = [text.get_text() for text in first.get_yticklabels()]
    assert names == [*VALUES, "supcon"]
    places = [line.get_ydata()[0] for line in second.lines if line.get_marker() == "D"]
    assert places == [1, 3]  # the second system and the fourth
    assert len(first.texts) == 1 and not second.texts
