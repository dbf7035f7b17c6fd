"""Figures: written whole, right in content, and never a crash on odd input."""

import math
import struct
import sys
import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from superconext.core.errors import DataError, MissingExtraError, RunError
from superconext.report import figures
from superconext.report.run_figures import (
    Curves,
    Layout,
    SentenceMap,
    count_pairs,
    draw_confusion,
    draw_curves,
    draw_map,
    lay_out,
    place,
    text_colour,
)

matplotlib = pytest.importorskip("matplotlib")

ARABIC = ["إيجابي", "سلبي", "محايد"]
LOGICAL = "\ufeb3\ufee0\ufe92\ufef2"  # seen, lam, beh, final yeh: the joined forms of سلبي


@pytest.fixture
def drawn(monkeypatch):
    """The figures saved during a test, to look at what they hold."""
    from matplotlib.figure import Figure

    kept, original = [], Figure.savefig

    def keep(self, *arguments, **options):
        kept.append(self)
        return original(self, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", keep)
    return kept


def size(path):
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", head[16:24])


def texts(figure):
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def groups(rows, classes=3, d=8, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(rows) % classes
    return rng.normal(size=(rows, d)) + 6 * np.eye(classes, d)[y], y


# The map


def test_map_names_method_classes_counts_and_errors(tmp_path, drawn):
    x, y = groups(40)
    labels = [ARABIC[i] for i in y]
    predicted = [ARABIC[0], ARABIC[0], ARABIC[0], *labels[3:]]  # rows 1 and 2 are wrong
    path = draw_map(lay_out(x), labels, tmp_path / "map.png", predicted=predicted)
    assert path == tmp_path / "map.png"
    assert size(path) == (1125, 825)
    found = texts(drawn[0])
    assert any("t-SNE" in text and "N = 40" in text for text in found)
    assert "\u2068إيجابي\u2069 (14)" in found
    assert "\u2068سلبي\u2069 (13)" in found
    assert any("wrongly classified (2)" in text for text in found)


def test_points_and_rings_stand_where_the_layout_has_them(tmp_path, drawn):
    points = np.array([[np.nan, np.nan], [0, 0], [1, 2], [3, 1]])
    truth, guess = ["a", "a", "b", "b"], ["b", "a", "a", "b"]
    for axes in (("across", "up"), ("", "")):
        laid = Layout(points, "t", axes)
        draw_map(laid, truth, tmp_path / "m.png", predicted=guess, split="dev")
        shown = drawn[-1].axes[0]
        found = [one.get_offsets().tolist() for one in shown.collections]
        assert found == [[[0, 0]], [[1, 2], [3, 1]], [[1, 2]]], "a, b, and the ring"
        a, b, ring = (one.get_zorder() for one in shown.collections)
        assert b < a < ring, "the larger class does not cover the other"
        assert (shown.get_xlabel(), shown.get_ylabel()) == axes
        # Components of a PCA have scales of their own; distances of a t-SNE map one for both.
        assert shown.get_aspect() == ("auto" if any(axes) else 1)
        assert shown.get_title().startswith("dev: t; 1 rows that are not finite")
        assert "ringed: wrongly classified (1)" in texts(drawn[-1])


def test_the_map_of_a_run_rings_its_mistakes(tmp_path, drawn):
    x, y = groups(12, 2)
    labels = [ARABIC[i] for i in y]
    context = figures.RunContext(x, labels, [ARABIC[0]] * 12, ARABIC[:2], [])
    SentenceMap().draw(context, tmp_path / "m.png")
    assert "ringed: wrongly classified (6)" in texts(drawn[0])


#: Linear RGB as it is seen without red, and without green cones (Machado et al., 2009).
BLINDNESS = (
    ((0.152, 1.052, -0.204), (0.114, 0.786, 0.099), (-0.003, -0.048, 1.051)),
    ((0.367, 0.860, -0.227), (0.280, 0.672, 0.047), (-0.011, 0.042, 0.968)),
)  # fmt: skip


def test_classes_differ_in_shape_and_in_colour_for_every_eye():
    marks = [figures.mark(i) for i in range(88)]
    assert len(set(marks)) == 88
    for (shape_a, colour_a), (shape_b, colour_b) in pairwise(marks):
        assert shape_a != shape_b and colour_a != colour_b
    rgb = [matplotlib.colors.to_rgb(colour) for colour in figures.COLOURS[:4]]
    for matrix in (np.eye(3), *map(np.array, BLINDNESS)):
        seen = np.array(rgb) ** 2.2 @ matrix.T
        apart = np.linalg.norm(seen[:, None] - seen[None], axis=2) + np.eye(4)
        assert apart.min() > 0.1


def test_what_classes_are_called_decides_their_colour():
    names = ["negative", "neutral", "positive", "post", " NEG "]
    assert figures.class_colours(names) == [1, 7, 0, 2, 1]
    assert figures.class_colours(["a", "b"]) == [0, 1]
    (shape, colour), (other, same) = figures.class_marks(["neg", " NEG "])
    assert shape != other and colour == same


@pytest.mark.parametrize(
    ("rows", "tsne", "named"),
    [(9, True, "PCA"), (10, True, "t-SNE"), (40, False, "PCA"), (3, True, "PCA")],
)
def test_which_method_is_used(rows, tsne, named):
    points, title, _ = place(groups(rows)[0], tsne=tsne)
    assert named in title
    assert points.shape == (rows, 2)


def test_auto_uses_pca_for_many_rows():
    assert "PCA" in place(np.random.default_rng(0).normal(size=(3001, 4)))[1]


def test_pca_agrees_with_the_definition():
    x, _ = groups(30, d=5)
    points, _, names = place(x, tsne=False)
    centred = x - x.mean(axis=0)
    variance, axes = np.linalg.eigh(centred.T @ centred)
    expected = centred @ axes[:, ::-1][:, :2]
    for i in range(2):
        ratio = points[:, i] / expected[:, i]
        assert np.allclose(ratio, ratio[0])  # same up to sign and one scale
    assert f"{variance[-1] / variance.sum():.0%}" in names[0]


def test_tsne_keeps_groups_together_and_repeats_itself():
    x, y = groups(60)
    points, title, _ = place(x, seed=3)
    assert "perplexity 19.7" in title, "a third of the other rows"
    assert np.ptp(points[:, 0]) > np.ptp(points[:, 1]), "as wide as pages are"
    assert np.array_equal(points, place(x, seed=3)[0])
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (y[distances.argmin(axis=1)] == y).mean() > 0.95


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 4, 5])
def test_map_of_few_rows(tmp_path, rows):
    x, y = groups(rows)
    assert size(draw_map(lay_out(x), [str(i) for i in y], tmp_path / "m.png"))


ODD = {
    "constant": np.ones((12, 4)),
    "zero": np.zeros((12, 4)),
    "one column": np.arange(12.0)[:, None],
    "no columns": np.zeros((12, 0)),
    "huge": np.arange(48.0).reshape(12, 4) * 1e300,
    "tiny": np.arange(48.0).reshape(12, 4) * 1e-310,
    "nearly constant": 1 + 1e-17 * np.arange(48.0).reshape(12, 4),
    "two values": np.repeat([[0.0, 1.0], [1.0, 0.0]], 6, axis=0),
    "one apart": np.eye(12, 4) * np.array([1, 0, 0, 0.0]),
}


@pytest.mark.parametrize("tsne", [True, False])
@pytest.mark.parametrize("name", ODD)
@pytest.mark.filterwarnings("error")
def test_map_of_odd_features(name, tsne):
    points, _, _ = place(ODD[name], tsne=tsne)
    assert points.shape == (12, 2)
    assert np.isfinite(points).all()


def test_rows_that_are_not_finite_are_left_out_and_counted(tmp_path, drawn):
    x, _ = groups(12)
    x[0, 0], x[1, 1] = np.nan, np.inf
    draw_map(lay_out(x), ["a"] * 12, tmp_path / "m.png")
    assert any(
        "N = 10" in text and "2 rows that are not finite left out" in text
        for text in texts(drawn[0])
    )
    x[:] = np.nan
    draw_map(lay_out(x), ["a"] * 12, tmp_path / "m.png")
    assert "no rows to draw" in texts(drawn[1])


def test_an_empty_list_is_an_empty_map(tmp_path):
    assert size(draw_map(lay_out(np.array([])), [], tmp_path / "m.png"))


def test_labels_that_matplotlib_would_misread(tmp_path, drawn):
    labels = ["_hidden", "$x^", "$a$ $b^$", "a\nb", "\\frac", "a\x00"] * 2
    draw_map(lay_out(groups(12)[0]), labels, tmp_path / "m.png")
    shown = {text.replace(r"\$", "$") for text in texts(drawn[0])}
    assert {"_hidden (2)", "$x^ (2)", "$a$ $b^$ (2)", "a b (2)", "\\frac (2)", "a (2)"} <= shown
    from matplotlib.cbook import is_math_text

    assert not any(is_math_text(text) for text in texts(drawn[0]))


def test_classes_that_are_shortened_alike_have_numbers(tmp_path, drawn):
    named = "complaint about delivery of {} parcels by courier"
    labels = [named.format(size) for size in ("large", "small")] * 8 + ["praise"] * 8
    draw_map(lay_out(groups(24)[0]), labels, tmp_path / "m.png")
    draw_confusion(labels, labels, sorted({*labels}), tmp_path / "c.png")
    for figure in drawn:
        shown = [text for text in texts(figure) if text.startswith("complaint")]
        assert {text.partition(" (")[0][-2:] for text in shown} == {"#1", "#2"}


def test_a_legend_of_very_many_classes_ends(tmp_path, drawn):
    x = np.random.default_rng(0).normal(size=(100, 3))
    draw_map(lay_out(x), [f"class {i:03}" for i in range(100)], tmp_path / "m.png")
    found = texts(drawn[0])
    assert "and 26 more classes" in found
    assert sum(text.startswith("class") for text in found) == 74


@pytest.mark.parametrize("classes", [3, 12, 60])
def test_points_fill_the_axes_however_large_the_legend_is(tmp_path, drawn, classes):
    x = np.random.default_rng(0).normal(size=(120, 3))
    labels = [f"complaint about department {i % classes:02} of the north" for i in range(120)]
    layout = lay_out(x)
    draw_map(layout, labels, tmp_path / "m.png")
    axes = drawn[0].axes[0]
    sides = axes.transData.transform(layout.points) / axes.bbox.size
    assert np.ptp(sides, axis=0).max() > 0.8  # along one side at least, for the scales are equal
    assert 0.6 < axes.bbox.width / axes.bbox.height < 1.7


def test_map_refuses_what_does_not_fit(tmp_path):
    with pytest.raises(DataError, match="3 labels"):
        draw_map(lay_out(np.zeros((2, 2))), ["a"] * 3, tmp_path / "m.png")
    with pytest.raises(DataError, match="1 predictions for 2 labels"):
        draw_map(lay_out(np.zeros((2, 2))), ["a", "b"], tmp_path / "m.png", predicted=["a"])
    assert not list(tmp_path.iterdir())


# The confusion matrix


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcde")), max_size=30))
def test_counts_agree_with_a_plain_loop(pairs):
    names, counts = count_pairs([t for t, _ in pairs], [p for _, p in pairs], ["c", "a", "c"])
    assert names[:2] == ["c", "a"]
    assert names[2:] == sorted({x for pair in pairs for x in pair} - {"a", "c"})
    for i, true in enumerate(names):
        for j, guess in enumerate(names):
            assert counts[i, j] == sum(pair == (true, guess) for pair in pairs)


def test_cells_show_shares_of_the_row_and_counts(tmp_path, drawn):
    truth = ["إيجابي"] * 4 + ["سلبي"] * 2
    guess = ["إيجابي", "إيجابي", "إيجابي", "سلبي", "سلبي", "سلبي"]
    path = draw_confusion(truth, guess, ARABIC, tmp_path / "c.png")
    assert size(path)
    (axes,) = drawn[0].axes
    cells = {
        (int(t.get_position()[1]), int(t.get_position()[0])): (t.get_text(), t.get_color())
        for t in axes.texts
    }
    assert cells == {
        (0, 0): ("75%\n3", "black"),
        (0, 1): ("25%\n1", "black"),
        (0, 2): ("0%\n0", "black"),
        (1, 0): ("0%\n0", "black"),
        (1, 1): ("100%\n2", "white"),
        (1, 2): ("0%\n0", "black"),  # no row of the third class: its cells stay empty
    }
    assert [t.get_text() for t in axes.get_yticklabels()] == list(ARABIC)
    assert "accuracy 0.833" in axes.get_title()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("predicted class", "true class")
    colours = np.asarray(axes.images[0].get_array())
    blue, orange = (np.array(matplotlib.colors.to_rgb(name)) for name in ("#0072b2", "#d55e00"))
    shown = [1 - 0.75 * (1 - blue), 1 - 0.25 * (1 - orange), blue, np.ones(3), np.ones(3)]
    places = [(0, 0), (0, 1), (1, 1), (1, 0), (2, 2)]
    np.testing.assert_allclose([colours[place] for place in places], shown)


def test_the_matrix_of_many_classes_has_no_zeros_and_upright_names(tmp_path, drawn):
    names = [f"c{k:02}" for k in range(11)]
    draw_confusion(names, [*names[:10], "c00"], names, tmp_path / "c.png", split="dev")
    draw_confusion(["a"], ["a"], ["a", "a long name"], tmp_path / "d.png")
    draw_confusion(["a"], ["a"], ["a", "b"], tmp_path / "e.png")
    many, long, short = (figure.axes[0] for figure in drawn)
    assert len(many.texts) == 11 and "\ndev, N = 11, accuracy" in many.get_title()
    turns = [axes.get_xticklabels()[0].get_rotation() for axes in (many, long, short)]
    assert turns == [90, 90, 0]


def test_text_stands_out_on_every_background():
    for level in np.linspace(0, 1, 101):
        linear = level / 12.92 if level <= 0.04045 else ((level + 0.055) / 1.055) ** 2.4
        contrast = {"black": (linear + 0.05) / 0.05, "white": 1.05 / (linear + 0.05)}
        assert text_colour((level,) * 3) == max(contrast, key=contrast.__getitem__)


@pytest.mark.parametrize("classes", [0, 1, 2, 11, 50, 70])
def test_any_number_of_classes(tmp_path, classes):
    names = [
        f"{ARABIC[i % 3]} with a name that is far too long for a figure {i}" for i in range(classes)
    ]
    width, height = size(draw_confusion(names, names[::-1], names, tmp_path / "c.png"))
    assert max(width, height) < 4500


def test_confusion_refuses_uneven_lists(tmp_path):
    with pytest.raises(DataError, match="2 true and 1 predicted"):
        draw_confusion(["a", "b"], ["a"], ["a", "b"], tmp_path / "c.png")


# The curves

HISTORY = [
    {"epoch": 1, "loss": 0.69, "dev_score": 0.5, "positive_similarity": 0.2,
     "negative_similarity": 0.1, "kept": 1.0},
    {"epoch": 2, "loss": 0.40, "dev_score": 0.7, "positive_similarity": 0.6,
     "negative_similarity": -0.1, "kept": 0.3},
]  # fmt: skip


def lines(figure):
    return {
        line.get_label(): (list(line.get_xdata()), list(line.get_ydata()))
        for axes in figure.axes
        for line in axes.lines
    }


def test_curves_show_every_series(tmp_path, drawn):
    assert size(draw_curves(HISTORY, tmp_path / "h.png", chance=math.log(2)))
    found = lines(drawn[0])
    assert found.pop("chance, log 2")[1] == [math.log(2)] * 2
    assert found == {
        "training loss": ([1, 2], [0.69, 0.40]),
        "dev probe score": ([1, 2], [0.5, 0.7]),
        "mean cosine of positives": ([1, 2], [0.2, 0.6]),
        "mean cosine of negatives": ([1, 2], [0.1, -0.1]),
        "share of negatives kept": ([1, 2], [1.0, 0.3]),
    }
    assert len(drawn[0].axes) == 3
    assert len({line.get_linestyle() for line in drawn[0].axes[2].lines}) == 3


def test_curves_of_a_run_are_those_of_its_first_member_and_stage(tmp_path, drawn):
    rows = [{"member": m, "epoch": e, "loss": m / e, "kept": 1.0} for m in (1, 2) for e in (1, 2)]
    rows = [{**row, "positive_similarity": 0.5} for row in rows]
    staged = [{**row, "stage": stage} for stage in ("1", "2") for row in rows]
    for history in (rows, staged):
        context = figures.RunContext(np.eye(2), "ab", "ab", "ab", history, chance=1.386)
        Curves().draw(context, tmp_path / "h.png")
        assert lines(drawn[-1])["training loss"] == ([1, 2], [1, 0.5])
        assert "share of negatives kept" not in lines(drawn[-1]), "nothing was mined"
        assert [axes.get_ylabel() for axes in drawn[-1].axes] == ["loss", "cosine"]
    plain, of_stages = map(lines, drawn)
    assert "chance, 1.386" in plain and not any("chance" in name for name in of_stages)


def test_text_from_a_csv_file_and_gaps(tmp_path, drawn):
    rows = [
        {"epoch": "1", "loss": "0.5", "dev_score": "", "kept": ""},
        {"epoch": "2", "loss": "", "dev_score": "", "kept": "inf"},
        {"epoch": "3", "loss": "0.3", "dev_score": "x", "kept": None},
    ]
    draw_curves(rows, tmp_path / "h.png")
    assert len(drawn[0].axes) == 1
    xs, ys = lines(drawn[0])["training loss"]
    assert xs == [1, 2, 3]
    assert np.array_equal(ys, [0.5, np.nan, 0.3], equal_nan=True)


@pytest.mark.parametrize("history", [[], [{}], [{"epoch": 4}], [{"loss": ""}]])
def test_nothing_to_draw_is_said(tmp_path, drawn, history):
    draw_curves(history, tmp_path / "h.png")
    assert "no epochs to draw" in texts(drawn[0])


def test_one_epoch_is_a_mark_on_a_whole_number(tmp_path, drawn):
    draw_curves([{"loss": 0.5}], tmp_path / "h.png")
    (axes,) = drawn[0].axes
    assert axes.lines[0].get_marker() == "o"
    low, high = axes.get_xlim()
    assert [tick for tick in axes.get_xticks() if low <= tick <= high] == [1]


# Arabic


def ink(text):
    """Black pixels of `text` drawn alone, cut to its box."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3, 1), dpi=100)
    sheet = FigureCanvasAgg(figure)
    figure.text(0.1, 0.4, text, fontsize=30, fontfamily=figures.FONT)
    sheet.draw()
    dark = np.asarray(sheet.buffer_rgba())[:, :, 0] < 128
    rows, columns = np.nonzero(dark)
    return dark[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]


def test_drawn_letters_are_joined():
    assert np.array_equal(ink("سلبي"), ink(LOGICAL))
    pieces = np.diff(ink("ببب").any(axis=0).astype(int)) == 1
    assert not pieces.any()  # three letters, one stroke: no empty column


def test_drawn_letters_run_from_right_to_left():
    tall = ink("اسس")  # alef is read first and rises above the others
    top = np.nonzero(tall[0])[0]
    assert top.min() > tall.shape[1] * 2 / 3


def test_the_font_has_every_letter_of_the_labels():
    from matplotlib.font_manager import findfont
    from matplotlib.ft2font import FT2Font

    glyphs = FT2Font(findfont(figures.FONT)).get_charmap()
    assert all(ord(letter) in glyphs for letter in "".join(ARABIC) + "ڭگڤڨپچ" + "ⴰⵣ")


# Letters that the font lacks


@pytest.mark.filterwarnings("error")
def test_letters_that_the_font_lacks_are_drawn_in_another_that_has_them(tmp_path, drawn):
    mono = "\U0001d670\U0001d68b"  # which come with matplotlib, in DejaVu Sans Mono
    draw_confusion([mono, "b"], [mono, "b"], [mono, "b"], tmp_path / "c.png")
    assert mono in texts(drawn[0])


def test_classes_whose_letters_no_font_has_are_numbered_in_one_order(tmp_path, drawn):
    # Letters of private use stand for those of a script without a font, on any machine.
    alike = ["\U000f1234", "\U000f1235", "b"]
    with pytest.warns(figures.LettersMissing) as said:
        draw_confusion(alike, alike, alike, tmp_path / "c.png")
        x = np.eye(6, dtype=np.float32)
        draw_map(lay_out(x), [*alike[1:]] * 3, tmp_path / "m.png", classes=alike)
    assert {one.message.label for one in said} == set(alike[:2])
    confusion, sentence_map = map(texts, drawn)
    assert {"class 1", "class 2", "b"} <= {*confusion}
    assert {"class 2 (3)", "b (3)"} <= {*sentence_map}
    assert not set("".join([*confusion, *sentence_map])) & set("".join(alike[:2]))


# Files, threads, extras


@pytest.mark.parametrize(
    ("kind", "head", "dated"), [("svg", b"<?xml", b"dc:date"), ("pdf", b"%PDF", b"CreationDate")]
)
def test_other_formats_have_no_date(tmp_path, kind, head, dated):
    written = draw_curves(HISTORY, tmp_path / f"h.{kind}").read_bytes()
    assert written.startswith(head) and dated not in written
    assert draw_curves(HISTORY, tmp_path / f"again.{kind}").read_bytes() == written


def test_drawing_leaves_no_pyplot_state(tmp_path):
    import subprocess

    code = (
        "import sys; from superconext.report import figures, run_figures as f\n"
        "assert 'matplotlib' not in sys.modules and 'sklearn' not in sys.modules\n"
        f"f.draw_confusion(['a'], ['a'], ['a'], {str(tmp_path / 'c.png')!r})\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert size(tmp_path / "c.png")


def test_threads_draw_the_same_bytes(tmp_path):
    def work(name):
        draw_curves(HISTORY, tmp_path / name)

    work("alone.png")
    threads = [threading.Thread(target=work, args=(f"{i}.png",)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    written = {path.read_bytes() for path in tmp_path.iterdir()}
    assert len(written) == 1
    assert len(list(tmp_path.iterdir())) == 4


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    path = draw_curves(HISTORY, tmp_path / "new folder" / "h.png")
    before = path.read_bytes()

    def fail(self, target, **options):
        target.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", fail)
    with pytest.raises(RunError, match=r"h\.png.*No space left"):
        draw_curves([], path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["h.png"]


def test_without_matplotlib(tmp_path, monkeypatch):
    assert figures.available()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert not figures.available()
    with pytest.raises(MissingExtraError, match=r"superconext\[plots\]"):
        draw_curves(HISTORY, tmp_path / "h.png")
    assert "superconext[plots]" in figures.UNAVAILABLE


def test_a_matplotlib_that_does_not_shape_arabic_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "version", lambda name: "3.10.8")
    assert not figures.available()
    with pytest.raises(MissingExtraError, match=r"superconext\[plots\]"):
        draw_curves(HISTORY, tmp_path / "h.png")
