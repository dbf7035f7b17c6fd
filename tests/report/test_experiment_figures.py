"""The figures of experiments: true dots, bars, means, bands and places on the axis."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from superconext.report import figures
from superconext.report.experiment_figures import Bands, Comparison
from superconext.report.figures import BandsContext, Chosen, ComparisonContext, Level

pytestmark = pytest.mark.skipif(not figures.available(), reason="needs the extra plots")


@pytest.fixture
def saved(monkeypatch):
    """The figures that are saved, to look at what they hold."""
    kept = []
    original = figures.save
    keep = lambda figure, path: kept.append(figure) or original(figure, path)  # noqa: E731
    monkeypatch.setattr("superconext.report.experiment_figures.save", keep)
    return kept


# A comparison

VALUES = {
    "majority": [0.4],
    "tfidf_logreg": [0.6, 0.62, 0.66],
    "ce_ce (own rule)": [0.7, 0.8, 0.75],
}


@pytest.fixture
def axes_of(saved, tmp_path):

    def draw(values, reference=None, significant=()):
        context = ComparisonContext(
            {"": values}, reference=reference, significant={"": significant}
        )
        Comparison().draw(context, tmp_path / "figure.png")
        assert (tmp_path / "figure.png").read_bytes()[:4] == b"\x89PNG"
        return saved[-1].axes[0]

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


def test_data_sets_stand_side_by_side_with_the_same_lines(saved, tmp_path):
    panels = {"msac": VALUES, "tsac": {"tfidf_logreg": [0.5, 0.7], "supcon": [0.8]}}
    stars = {"msac": ["ce_ce (own rule)"], "tsac": []}
    context = ComparisonContext(panels, reference="tfidf_logreg", significant=stars)
    Comparison().draw(context, tmp_path / "figure.png")
    first, second = saved[-1].axes
    assert (first.get_title(), second.get_title()) == ("msac", "tsac")
    names = [text.get_text() for text in first.get_yticklabels()]
    assert names == [*VALUES, "supcon"]
    places = [line.get_ydata()[0] for line in second.lines if line.get_marker() == "D"]
    assert places == [1, 3]  # the second system and the fourth
    assert len(first.texts) == 1 and not second.texts


# Curves with bands

CURVES = {
    "superloss": {4: [0.5, 0.6, 0.58], 8: [0.7, 0.72, 0.66], 64: [0.9]},
    "tfidf_logreg": {4: [0.4, 0.5], 8: [0.6, 0.64], 64: [0.8, 0.82]},
}


@pytest.fixture
def bands_of(saved, tmp_path):
    def draw(curves, **more):
        named = {"xlabel": "rows", "ylabel": "weighted F1, percent", **more}
        Bands().draw(BandsContext(curves, **named), tmp_path / "figure.png")
        assert (tmp_path / "figure.png").read_bytes()[:4] == b"\x89PNG"
        return saved[-1].axes[0]

    return draw


def line_of(axes, label):
    return next(line for line in axes.lines if line.get_label() == label)


def test_lines_are_means_and_bands_one_deviation_to_each_side(bands_of):
    axes = bands_of(CURVES)
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


def test_many_curves_have_bars_side_by_side_and_a_legend_in_the_order_of_their_ends(bands_of):
    curves = {
        f"system {k}": {4: [0.2 + k / 10] * 2, 64: [0.9 - k / 10, 0.8 - k / 10]} for k in range(4)
    }
    axes = bands_of(curves, levels=[Level("majority", [0.3])])
    first = [line_of(axes, name).get_xdata()[0] for name in curves]
    assert np.allclose(np.diff(np.log(first)), np.log(64 / 4) * 0.01)
    assert np.isclose(np.exp(np.log(first).mean()), 4)
    for name, bars in zip(curves, axes.collections, strict=True):
        ends = bars.get_segments()[1][:, 1]
        mean, spread = line_of(axes, name).get_ydata()[1], 100 * np.std(curves[name][64], ddof=1)
        assert np.allclose(sorted(ends), [mean - spread, mean + spread])
    (legend,) = axes.figure.legends
    shown = [text.get_text() for text in legend.get_texts()]
    assert shown == ["system 0", "system 1", "system 2", "system 3", "majority"]
    assert not axes.get_legend()


def test_wide_positive_values_stand_on_a_log_scale(bands_of):
    assert bands_of(CURVES).get_xscale() == "log"
    assert bands_of({"a": {1: [0.5], 3: [0.6]}}).get_xscale() == "linear"
    assert bands_of({"a": {0: [0.5], 30: [0.6]}}).get_xscale() == "linear"


def test_words_stand_side_by_side_in_their_order(bands_of):
    axes = bands_of({"a": {"mean": [0.5], "max": [0.6]}, "b": {"max": [0.7]}})
    assert [text.get_text() for text in axes.get_xticklabels()] == ["mean", "max"]
    assert list(line_of(axes, "b").get_xdata()) == [1]
    axes = bands_of({"a": {True: [0.5], False: [0.6]}})
    assert [text.get_text() for text in axes.get_xticklabels()] == ["yes", "no"]


def test_the_chosen_value_is_ringed_and_has_the_only_test_figures(bands_of):
    chosen = Chosen("superloss", 8, [0.61, 0.65])
    axes = bands_of(CURVES, chosen=chosen, levels=[Level("majority", [0.3, 0.34])])
    ring = line_of(axes, "chosen on dev")
    mean = 100 * np.mean(CURVES["superloss"][8])
    assert ring.get_xydata().tolist() == [[8, pytest.approx(mean)]]
    star = next(line for line in axes.lines if line.get_marker() == "*")
    assert star.get_xydata().tolist() == [[8, pytest.approx(63)]]
    assert line_of(axes, "majority").get_ydata()[0] == pytest.approx(32)


@pytest.mark.parametrize("curves", [{}, {"a": {}}, {"a": {1: []}}, {"س$ا_": {2: [0.1, 0.9]}}])
def test_odd_curves_still_make_a_figure(bands_of, curves):
    bands_of(curves, levels=[Level("none", [])], chosen=Chosen("b", 1, [0.5]))
