"""Curves with bands: true means, true widths, places on the axis."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from superconext.report import canvas, figures
from superconext.report.figure_bands import Chosen, Level, draw_bands

pytestmark = pytest.mark.skipif(not figures.available(), reason="needs the extra plots")
CURVES = {
    "superloss": {4: [0.5, 0.6, 0.58], 8: [0.7, 0.72, 0.66], 64: [0.9]},
    "tfidf_logreg": {4: [0.4, 0.5], 8: [0.6, 0.64], 64: [0.8, 0.82]},
}


@pytest.fixture
def axes_of(monkeypatch, tmp_path):
    kept = []
    original = canvas.save
    keep = lambda figure, path: kept.append(figure) or original(figure, path)  # noqa: E731
    monkeypatch.setattr("superconext.report.figure_bands.save", keep)

    def draw(curves, **more):
        named = {"xlabel": "rows", "ylabel": "weighted F1, percent", **more}
        path = draw_bands(curves, tmp_path / "figure.png", **named)
        assert path.read_bytes()[:4] == b"\x89PNG"
        return kept[-1].axes[0]

    return draw


def line_of(axes, label):
    return next(line for line in axes.lines if line.get_label() == label)


def test_lines_are_means_and_bands_one_deviation_to_each_side(axes_of):
    axes = axes_of(CURVES)
    for name, band in zip(CURVES, axes.collections, strict=True):
        line = line_of(axes, name)
        means = [100 * np.mean(values) for values in CURVES[name].values()]
        assert list(line.get_xdata()) == [4, 8, 64]
        assert np.allclose(line.get_ydata(), means)
        outline = band.get_paths()[0].vertices
        for x, mean, values in zip((4, 8, 64), means, CURVES[name].values(), strict=True):
            spread = 100 * np.std(values, ddof=1) if len(values) > 1 else 0
            ys = outline[np.isclose(outline[:, 0], x), 1]
            assert np.isclose(ys.min(), mean - spread) and np.isclose(ys.max(), mean + spread)


def test_wide_positive_values_stand_on_a_log_scale(axes_of):
    assert axes_of(CURVES).get_xscale() == "log"
    assert axes_of({"a": {1: [0.5], 3: [0.6]}}).get_xscale() == "linear"
    assert axes_of({"a": {0: [0.5], 30: [0.6]}}).get_xscale() == "linear"


def test_words_stand_side_by_side_in_their_order(axes_of):
    axes = axes_of({"a": {"mean": [0.5], "max": [0.6]}, "b": {"max": [0.7]}})
    assert [text.get_text() for text in axes.get_xticklabels()] == ["mean", "max"]
    assert list(line_of(axes, "b").get_xdata()) == [1]
    axes = axes_of({"a": {True: [0.5], False: [0.6]}})
    assert [text.get_text() for text in axes.get_xticklabels()] == ["yes", "no"]


def test_the_chosen_value_is_ringed_and_has_the_only_test_figures(axes_of):
    chosen = Chosen("superloss", 8, [0.61, 0.65])
    axes = axes_of(CURVES, chosen=chosen, levels=[Level("majority", [0.3, 0.34])])
    ring = line_of(axes, "chosen on dev")
    mean = 100 * np.mean(CURVES["superloss"][8])
    assert ring.get_xydata().tolist() == [[8, pytest.approx(mean)]]
    star = next(line for line in axes.lines if line.get_marker() == "*")
    assert star.get_xydata().tolist() == [[8, pytest.approx(63)]]
    assert line_of(axes, "majority").get_ydata()[0] == pytest.approx(32)


@pytest.mark.parametrize("curves", [{}, {"a": {}}, {"a": {1: []}}, {"س$ا_": {2: [0.1, 0.9]}}])
def test_odd_input_still_makes_a_figure(axes_of, curves):
    axes_of(curves, levels=[Level("none", [])], chosen=Chosen("b", 1, [0.5]))
