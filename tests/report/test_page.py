"""The page of a run: right in its figures, closed to hostile text, bounded in size."""

import base64
import hashlib
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from superconext.data.dataset import Dataset
from superconext.probe.metrics import probability_metrics
from superconext.report import page
from superconext.report.audit import audit
from superconext.report.explain import Explanation, word_spans
from superconext.report.page import PageContext, PageRows, render_page, verdict
from superconext.report.table import Grid, clean, isolated, wilson
from superconext.runs import page as run_page

HOSTILE = [
    "</script><script>document.title = 'stolen'</script>",
    "<img src=x onerror=\"document.title = 'stolen'\">",
    "<!-- <script> {{ 7 * 7 }} {% raw %}",
    "' onmouseover='alert(1)",
    "]]> \u2028 \u2029 \u202e gnitrevni",
    "&lt;b&gt; \\u003c \ud800 \x00",
]


class Document(HTMLParser):
    """The elements of a page, and the text of its scripts and styles."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.blocks, self.text = [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self.blocks.append([tag, dict(attributes), ""])

    def handle_data(self, data):
        if self.tags[-1:] and self.tags[-1][0] in ("script", "style") and data.strip():
            self.blocks[-1][2] += data
        else:
            self.text.append(data)

    def json(self, name):
        return json.loads(next(text for _, given, text in self.blocks if given.get("id") == name))


def rows(count=60, classes=("neg", "pos"), seed=0, text=None):
    draw = np.random.default_rng(seed)
    truth = draw.integers(len(classes), size=count)
    shares = draw.dirichlet(np.ones(len(classes)), size=count)
    shares[np.arange(count), truth] += 0.6
    shares /= shares.sum(axis=1, keepdims=True)
    word = ["خايب", "zwin"]
    texts = [text or f"had {word[k % 2]} lfilm number{i}" for i, k in enumerate(truth)]
    return PageRows(
        texts,
        [classes[k] for k in truth],
        list(range(1, count + 1)),
        [classes[k] for k in shares.argmax(axis=1)],
        shares.max(axis=1),
        shares,
        draw.normal(size=(count, 5)).astype(np.float32) + truth[:, None],
    )


def context(judged=None, **others):
    judged = judged or rows()
    classes = others.pop("classes", ("neg", "pos"))
    metrics = probability_metrics(judged.labels, judged.probabilities, classes)
    given = {
        "train": rows(80, seed=1),
        "unknown": np.linspace(0, 0.5, len(judged)),
        "layout": judged.features[:, :2].astype(float),
        "map_title": "PCA",
        "others": {"majority": {"accuracy": 0.5}, "tfidf_logreg": {"accuracy": 0.7}},
        "history": [{"epoch": 1, "loss": 0.7}, {"epoch": 2, "loss": 0.5, "kept": 1.0}],
    }
    return PageContext("test", judged, classes, metrics, **(given | others))


def test_the_sentences_on_the_page_are_those_of_the_file_with_their_answers():
    judged = rows()
    data = Document(render_page(context(judged))).json("data")
    assert data["rows"]["text"] == judged.texts
    assert [data["classes"][k] for k in data["rows"]["label"]] == judged.labels
    assert [data["classes"][k] for k in data["rows"]["guess"]] == judged.predicted
    assert data["rows"]["line"] == judged.lines
    np.testing.assert_allclose(data["rows"]["sure"], judged.confidence, atol=5e-4)
    top = [pairs[0] for pairs in data["rows"]["top"]]
    assert [k for k, _ in top] == data["rows"]["guess"]


@pytest.mark.parametrize(
    ("model", "best", "said"),
    [(0.9, 0.88, "do not tell them apart"), (0.9, 0.5, "neither lies within the 95% interval"),
     (0.82, 0.868, "not clearly above or below"),  # within the interval of the baseline alone
     (0.5, 0.9, "40.0 points below"), (1.0, 1.0, "as many as by the best baseline")],
)  # fmt: skip
def test_the_verdict_claims_no_more_than_the_interval_allows(model, best, said):
    shown = {"accuracy": model, "interval": wilson(model, 200), "n": 200, "baseline": False}
    shown["judged"] = 200
    words = " ".join(
        verdict("test", [shown, {**shown, "name": "X", "accuracy": best, "baseline": True}])
    )
    assert said in words and f"{model:.1%} " in words and "of 200 sentences of test" in words
    low, high = wilson(model, 200)
    assert f"{low:.1%} to {high:.1%}" in words


def test_the_best_of_several_baselines_is_the_one_that_is_told():
    shown = {"accuracy": 0.8, "interval": wilson(0.8, 200), "n": 200, "judged": 200}
    others = [("X", 0.6), ("Y", 0.8004), ("Z", 0.7)]
    others = [{**shown, "name": a, "accuracy": b, "baseline": True} for a, b in others]
    said = verdict("test", [{**shown, "baseline": False}, *others])
    assert said[0].endswith("as many as by the best baseline."), "a tie is one to three digits"
    assert said[-1] == "The best baseline, Y, has 80.0%, too."


def test_a_baseline_that_is_never_right_is_a_baseline():
    shown = {"accuracy": 0.4, "interval": wilson(0.4, 50), "n": 50, "judged": 50}
    other = {**shown, "name": "X", "accuracy": 0.0, "baseline": True}
    said = verdict("test", [{**shown, "baseline": False}, other])
    assert said[0].endswith(", 40.0 points above the best baseline.")
    assert not any("no baseline" in one for one in said)


def test_scores_stand_under_their_names_on_an_axis_that_holds_their_intervals():
    metrics = {"accuracy": 0.6, "f1_macro": 0.25, "f1_weighted": 0.75, "folds": {"texts": 2000}}
    other = {"accuracy": 0.55, "f1_macro": 0.125, "f1_weighted": 0.5}
    made = replace(context(), split="cv", metrics=metrics, others={"majority": other})
    html = render_page(made)
    cells = re.findall(r'data-name="([^"]+)">([^<]*)<', html)
    assert [(name, value) for name, value in cells if name != "accuracy"] == [
        ("macro F1", "25.0"), ("weighted F1", "75.0"),
        ("macro F1", "12.5"), ("weighted F1", "50.0"),
    ]  # fmt: skip
    # The interval of 55 percent of 2000 texts begins at 52.8, that of 60 ends at 62.1.
    assert "its 95% interval, on an axis from 50% to 65%;" in html
    assert "of 60 sentences of the training file, each predicted by a model that had not" in html


def test_what_to_expect_leaves_out_rows_that_were_seen_and_classes_that_were_not():
    judged = rows()
    made = context(judged)
    assert page.expected(made) == []
    seen = np.arange(len(judged)) % 3 == 0
    labels = ["new" if k % 5 == 1 else label for k, label in enumerate(judged.labels)]
    made = context(replace(judged, labels=labels), seen=seen)
    fresh = [k for k in range(len(labels)) if not seen[k] and labels[k] != "new"]
    right = [labels[k] == judged.predicted[k] for k in fresh]
    first, second, last = page.expected(made)
    assert first.startswith(f"{int(seen.sum())} rows are among those")
    assert f"{labels.count('new')} rows have a class that training never saw (new)" in second
    low, high = wilson(sum(right) / len(right), len(right))
    assert f"Of the other {len(fresh)} rows, {sum(right) / len(right):.1%} are" in last
    assert f"expect {low:.1%} to {high:.1%} right" in last
    assert last in render_page(made)
    one = ["new", *judged.labels[1:]]
    first, second, _ = page.expected(context(replace(judged, labels=one), seen=np.arange(60) == 1))
    assert first == "1 row is among those that it was trained on or chosen by."
    assert second.startswith("1 row has a class") and second.endswith("(new) and counts as wrong.")
    whole = page.expected(context(judged, seen=np.ones(len(judged), dtype=bool)))
    assert whole[1] == "No row tells what to expect of new sentences."


def test_reliability_and_slices_agree_with_plain_loops():
    made = context()
    judged = made.rows
    right = [a == b for a, b in zip(judged.labels, judged.predicted, strict=True)]
    for one in page._reliability(made):
        inside = [
            i for i, p in enumerate(judged.confidence)
            if math.ceil(p * 10) == math.ceil(one["confidence"] * 10)
        ]  # fmt: skip
        assert one["n"] == len(inside)
        assert one["accuracy"] == pytest.approx(np.mean([right[i] for i in inside]))
    mostly = rows(5, text="zwin")
    mostly.texts[0] = "خايب"
    script = page._slices(context(mostly))[0]["rows"]
    assert [(row["name"], row["n"]) for row in script] == [("Latin", 4), ("Arabic", 1)]
    for group in page._slices(made):
        assert all(row["of"] == row["n"] / len(judged) for row in group["rows"])
        assert sum(row["n"] for row in group["rows"]) == len(judged)
        assert sum(row["n"] * row["accuracy"] for row in group["rows"]) == pytest.approx(sum(right))


def test_rows_on_a_limit_are_in_the_bucket_that_names_it():
    names, of = page._sorted_into(np.array([1, 5, 6, 10, 11, 20, 21]), page._LENGTHS)
    assert [names[k].split()[0] for k in of] == ["1", "1", "6", "6", "11", "11", "more"]
    names, of = page._sorted_into(np.array([0.0, 0.01, 0.1, 0.3, 0.31]), page._SHARES)
    assert [names[k] for k in of] == [
        "none",
        "up to 10%",
        "up to 10%",
        "10 to 30%",
        "more than 30%",
    ]
    judged = replace(rows(5), confidence=np.array([0.5, 0.42, 0.51, 1.0, 0.95]))
    bins = page._reliability(context(judged))
    assert [(one["n"], one["confidence"]) for one in bins] == [
        (2, pytest.approx(0.46)), (1, 0.51), (2, pytest.approx(0.975)),
    ]  # fmt: skip


def test_of_many_rows_those_that_are_drawn_keep_their_own_figures(monkeypatch):
    monkeypatch.setattr(page, "MOST_ROWS", 10)
    judged = rows(40)
    explained = {
        row: Explanation(text, "pos", 0.9, [(w, row / 2) for w in text.split()], word_spans(text))
        for row, text in enumerate(judged.texts)
    }
    made = context(judged, explained=explained)
    data = Document(render_page(made)).json("data")["rows"]
    drawn = [line - 1 for line in data["line"]]
    assert len(drawn) == 10 and drawn != list(range(10))
    assert data["text"] == [judged.texts[row] for row in drawn]
    assert [{value for *_, value in marks} for marks in data["words"]] == [{r / 2} for r in drawn]
    np.testing.assert_allclose(data["x"], made.layout[drawn, 0], atol=5e-4)
    np.testing.assert_allclose(data["y"], made.layout[drawn, 1], atol=5e-4)
    for key, _, _, of in made.buckets:
        assert data[key] == of[drawn].tolist()


def test_each_sentence_has_its_three_likeliest_classes_and_its_three_nearest_neighbours():
    classes = ("a", "b", "c", "d")
    judged, train = rows(20, classes), rows(30, classes, seed=1)
    data = Document(render_page(context(judged, classes=classes, train=train))).json("data")["rows"]
    unit = [one.features / np.linalg.norm(one.features, axis=1)[:, None] for one in (judged, train)]
    cosines = unit[0] @ unit[1].T
    for row, shares in enumerate(judged.probabilities):
        likeliest = sorted(range(4), key=lambda k: -shares[k])[:3]
        assert [k for k, _ in data["top"][row]] == likeliest
        nearest = np.argsort(-cosines[row])[:3]
        assert data["near"][row] == nearest.tolist()
        np.testing.assert_allclose(data["cosine"][row], cosines[row][nearest], atol=6e-4)


def test_cells_of_the_matrix_are_shares_of_the_rows_of_their_label():
    judged = rows()
    judged = replace(judged, predicted=["pos"] * 20 + judged.predicted[20:])
    html = render_page(context(judged))
    names, pairs = ("neg", "pos"), list(zip(judged.labels, judged.predicted, strict=True))
    assert Document(html).json("data")["classes"] == list(names)
    cells = re.findall(r'data-cell="(\d),(\d)".*?>(\d+)<small>(\d+)%</small>', html)
    assert len(cells) == 4 and judged.labels.count("neg") != judged.predicted.count("neg")
    for i, j, count, share in cells:
        found = pairs.count((names[int(i)], names[int(j)]))
        assert int(count) == found
        assert int(share) == round(100 * found / judged.labels.count(names[int(i)]))


def test_the_most_certain_rows_are_explained_and_a_quarter_of_them_is_right(monkeypatch):
    monkeypatch.setattr(run_page, "_EXPLAINED", (40, 40))
    monkeypatch.setattr(run_page, "explain", lambda model, texts, guesses: texts)
    judged = rows(40)
    judged = replace(judged, predicted=["pos"] * 40)
    order = np.argsort(-judged.confidence)
    wrong, right = ([k for k in order if judged.labels[k] == name] for name in ("neg", "pos"))
    found = run_page._explained(None, judged, 0)  # each costs five texts
    assert list(found) == [*wrong[:6], *right[:2]]
    assert found[wrong[0]] == judged.texts[wrong[0]]


def test_unknown_words_are_a_share_of_a_text_s_own():
    class Silent:
        """An encoder that does not tell what it knows."""

        indexer = type("Indexer", (), {"unfamiliar": lambda self, tokens: None})()

    tokens = [["a", "b", "b", "c"], ["c"], []]
    found = run_page._unknown(Silent(), tokens, [["a"], ["c", "d", "e"]])
    assert found.tolist() == [0.5, 0.0, 0.0]
    assert run_page._unknown(Silent(), tokens, None) is None


def test_a_map_of_vectors_that_do_not_predict_says_so():
    assert run_page._beside({}) == run_page._beside({"pool_weights": {"encoder": 0.5}}) == ""
    alone = run_page._beside({"pool_weights": {"encoder": 0.0, "tfidf": 1.0}})
    assert alone == ", of word vectors that do not predict"


def test_scores_of_several_cross_validations_are_told_as_their_mean():
    assert run_page._notes({"n": 9}) == run_page._notes({"folds": {"repeats": 1}}) == []
    (note,) = run_page._notes({"folds": {"repeats": 4}})
    assert note.startswith("Scores are means over 4 cross-validations.")


def test_a_training_row_stands_beside_the_judged_rows_that_are_nearest():
    judged = np.eye(5)
    points = np.arange(10.0).reshape(5, 2)
    x, y = page._placed(judged[[3, 0]] + 0.01, judged, points)
    np.testing.assert_allclose(np.transpose([x, y]), points[[3, 0]], atol=0.01)


def test_rows_of_dev_and_parts_of_the_model_are_told_as_what_they_are():
    made = context(
        others={"this model, encoder alone": {"accuracy": 1.0}, "majority": {"accuracy": 0}}
    )
    scores = page._scores(made)
    assert [(one["name"], one["baseline"]) for one in scores] == [
        ("this model", False), ("this model, encoder alone", False), ("majority class", True),
    ]  # fmt: skip
    chosen = "Settings were chosen on these rows: expect somewhat less on new ones."
    assert chosen in verdict("dev", scores, chosen=True) and chosen not in verdict("dev", scores)


def test_copies_of_a_text_are_no_further_evidence_in_the_verdict():
    few = {"accuracy": 0.9, "interval": wilson(0.9, 20), "n": 200, "judged": 20, "baseline": False}
    best = {**few, "name": "X", "accuracy": 0.8, "baseline": True}
    assert "do not tell them apart" in verdict("cv", [few, best])[-1]
    assert "neither lies" in verdict("cv", [{**few, "judged": 200}, best])[-1]


def test_a_word_that_tells_a_class_comes_first():
    telling = {one["name"]: one for one in page._telling(rows(80), ("neg", "pos"))}
    assert telling["pos"]["words"][0][0] in ("zwin", "had zwin", "zwin lfilm")
    ngram, inside, of = telling["neg"]["words"][0]
    assert inside == of > 2 and "خايب" in ngram


def test_words_are_counted_apart_from_their_punctuation():
    train = rows(40)
    train.texts[:] = [
        f"film{'!' * (k % 3)} {('zwin', 'khayb')[k % 2]}{'؟!.'[k % 3]}" for k in range(40)
    ]
    train.labels[:] = ["pos", "neg"] * 20
    telling = {one["name"]: one for one in page._telling(train, ("neg", "pos"))}
    assert ("zwin", 20, 20) in telling["pos"]["words"]
    assert not any(set(word) & set("!؟.") for word, _, _ in telling["pos"]["words"])


def test_words_that_tell_classes_apart_are_those_of_the_sentences_as_shown():
    """A click searches for one among the sentences, which are shown without such characters."""
    train = rows(40)
    train.texts[:] = ["film z\u202ewin", "film kha\x07yeb"] * 20
    train.labels[:] = ["pos", "neg"] * 20
    telling = {one["name"]: one for one in page._telling(train, ("neg", "pos"))}
    found = {
        ngram
        for one in telling.values()
        for kind in ("words", "spellings")
        for ngram, *_ in one[kind]
    }
    assert {"zwin", "kha", "yeb"} < found and all(ngram.isprintable() for ngram in found)


def test_curves_of_the_first_part_say_so():
    history = [
        {"epoch": 1, "loss": 0.5, "member": str(m), "stage": s} for m in (1, 2) for s in (1, 2)
    ]
    assert page._curves_of(history) == "Of the first encoder of 2, the first stage of 2."
    assert page._curves_of(history[:1]) == page._curves_of([{"epoch": 1}]) == ""
    shown = " ".join(Document(render_page(context(history=history))).text)
    assert "Of the first encoder of 2" in shown


def test_what_a_small_class_never_has_does_not_tell_it():
    long = [f"cha9a number{i} lfilm zwin bzaf rana nchofo lmasra7iya lyoum" for i in range(300)]
    few = [f"film {i}" for i in range(6)]
    train = rows(306)
    train.texts[:], train.labels[:] = long + few, ["pos"] * 300 + ["neg"] * 6
    telling = {one["name"]: one for one in page._telling(train, ("neg", "pos"))}
    assert [inside for _, inside, _ in telling["neg"]["words"]] == [6]
    assert all(inside for one in telling.values() for _, inside, _ in one["spellings"])


def test_a_page_without_sentences_promises_none():
    bare = context(replace(rows(), texts=[]), train=None, audit=None)
    shown = " ".join(Document(render_page(bare)).text)
    assert "contains sentences" not in shown and "opens its sentences" not in shown
    tags = Document(render_page(bare)).tags
    assert all("disabled" in given for tag, given in tags if "data-cell" in given)
    places = {given.get("id") for _, given in tags}
    links = [given["href"][1:] for tag, given in tags if tag == "a" and "href" in given]
    assert links and places.issuperset(links)
    shown = " ".join(Document(render_page(context())).text)
    assert "contains sentences" in shown and "opens its sentences" in shown


def test_a_falling_loss_is_drawn_from_the_upper_left_to_the_lower_right():
    history = [{"epoch": epoch, "loss": 1 / epoch} for epoch in (2, 3, 4)]
    (panel,) = page._panels(history)
    assert panel["ends"] == [(0.5, 8), (0.25, 102)]
    (line,) = panel["lines"]
    assert line["points"] == [(0, 0), (0.5, pytest.approx(2 / 3)), (1, 1)] and line["last"] == 0.25


def test_a_constant_score_is_drawn_between_the_ends_with_one_number():
    history = [{"epoch": e, "loss": 1.0 / e, "dev_score": 0.5} for e in range(1, 4)]
    panels = {one["name"]: one for one in page._panels(history)}
    flat = next(one for one in panels.values() if len(one["ends"]) == 1)
    assert {y for line in flat["lines"] for _, y in line["points"]} == {0.5}
    assert flat["ends"][0][0] == 0.5


def test_a_label_from_right_to_left_stands_apart_in_english():
    assert isolated("neutral") == "neutral"
    assert isolated("محايد 3/5") == "\u2068محايد 3/5\u2069"
    assert page._isolated("as likely among rows of 'سلبي' as among rows of 'good'") == (
        "as likely among rows of '\u2068سلبي\u2069' as among rows of 'good'"
    )


def test_hostile_text_stays_text():
    judged = rows(len(HOSTILE))
    hostile = PageRows(HOSTILE, HOSTILE, judged.lines, HOSTILE[1:] + HOSTILE[:1],
                       judged.confidence, None, judged.features)  # fmt: skip
    scores = {"accuracy": 0.0, "per_class": {HOSTILE[0]: {"support": 1}}}
    made = PageContext(
        HOSTILE[0], hostile, HOSTILE[:2], scores,
        others={HOSTILE[1]: {"accuracy": 0.1}}, train=hostile, layout=np.zeros((len(HOSTILE), 2)),
        made={HOSTILE[0]: [(HOSTILE[1], HOSTILE[2])]}, command=HOSTILE[0], notes=[HOSTILE[1]],
    )  # fmt: skip
    html = render_page(made)
    document, plain = Document(html), Document(render_page(context()))
    assert [tag for tag, _ in document.tags if tag == "script"] == ["script"] * 3
    kinds = {tag for tag, _ in plain.tags} | {"pre", "code", "details", "summary"}
    assert {tag for tag, _ in document.tags} <= kinds
    assert not any(name.startswith("on") for _, given in document.tags for name in given)
    shown = document.json("data")["rows"]["text"]
    assert shown == [clean(text) for text in HOSTILE]
    assert "49" not in "".join(document.text)


def test_the_marks_of_words_stand_where_the_words_do():
    judged = rows(4)
    said = " mzyan\u200f  had\tlfilm wllah"
    texts = [judged.texts[0], said, "كلمة " * 600, judged.texts[3]]
    told = PageRows(texts, *list(vars(judged).values())[1:])
    explained = {}
    for row in (0, 1, 2):
        spans = word_spans(texts[row])
        words = [(texts[row][a:b], 0.5 * place - 1) for place, (a, b) in enumerate(spans)]
        explained[row] = Explanation(texts[row], "pos", 0.9, words, spans)
    document = Document(render_page(context(told, explained=explained)))
    data = document.json("data")["rows"]
    assert data["words"][3] == []
    for row in (0, 1, 2):
        marked = [(data["text"][row][a:b], value) for a, b, value in data["words"][row]]
        # A word with a mark of direction in it is another word on the page; a long text is cut.
        kept = [pair for pair in explained[row].words if clean(pair[0]) == pair[0]]
        assert marked == kept[: len(marked)] and len(marked) > 1
    assert ("input", "words") in [(tag, given.get("id")) for tag, given in document.tags]
    assert "known of 3 sentences" in " ".join(document.text)


def test_words_are_marked_of_a_text_that_is_not_read_to_its_end():
    judged = rows(4)
    spans = word_spans(judged.texts[0])
    words = [(judged.texts[0][a:b], 0.5) for a, b in spans[:1]]
    explained = {0: Explanation(judged.texts[0], "pos", 0.9, words, spans[:1])}
    data = Document(render_page(context(judged, explained=explained))).json("data")["rows"]
    assert len(spans) > 2 and len(data["words"][0]) == 1


def test_labels_to_check_are_the_first_of_the_audit():
    known = rows(80, seed=1)
    labels = list(known.labels)
    labels[7] = {"pos": "neg", "neg": "pos"}[known.labels[7]]
    found = audit(Dataset(list(known.texts), labels, known.lines))
    document = Document(render_page(context(audit=found, audited="training sentences")))
    text = " ".join("".join(document.text).split())
    assert f"For {len(found.suspects)} of 80 training sentences" in text
    assert found.suspects[0].line == 8 and len(found.suspects) < 15
    assert len(page._suspects(found)) == len(found.suspects), "no row that is right"
    assert f"8{known.texts[7]}{labels[7]}{known.labels[7]}{found.suspects[0].why[0]}" in text
    found = replace(found, ranked=[replace(found.suspects[0], text=HOSTILE[0], why=HOSTILE)])
    hostile = Document(render_page(context(audit=found)))
    assert {tag for tag, _ in hostile.tags} == {tag for tag, _ in document.tags}
    assert HOSTILE[0] in "".join(hostile.text)


def test_the_policy_allows_the_page_s_own_style_and_script_and_nothing_else():
    document = Document(render_page(context()))
    (policy,) = (given["content"] for tag, given in document.tags if given.get("http-equiv"))
    assert policy.startswith("default-src 'none'; base-uri 'none'; form-action 'none';")
    for kind, tag in (("style-src", "style"), ("script-src", "script")):
        (text,) = (text for name, given, text in document.blocks if name == tag and not given)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    for tag, given in document.tags:
        assert tag not in ("link", "img", "iframe", "object", "base", "form")
        assert not {"src", "style", "srcdoc"} & given.keys()
        assert given.get("href", "#").startswith("#")


def test_the_page_of_an_experiment_shows_its_tables_and_loads_nothing(tmp_path):
    grid = Grid(
        ["system", HOSTILE[0]], [[HOSTILE[1], "61.2 ± 0.5"], ["b", "60.0"]], {(0, 1)}, HOSTILE
    )
    (tmp_path / "x.png").write_bytes(b"\x89PNG")
    page.write_tables(tmp_path / "page.html", "compare", {HOSTILE[2]: grid}, [tmp_path / "x.png"])
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    document = Document(html)
    assert not any(tag == "script" for tag, _ in document.tags)
    (source,) = (given["src"] for tag, given in document.tags if tag == "img")
    assert base64.b64decode(source.removeprefix("data:image/png;base64,")) == b"\x89PNG"
    (policy,) = (given["content"] for tag, given in document.tags if given.get("http-equiv"))
    assert policy.startswith("default-src 'none'") and policy.endswith("; img-src data:")
    text = "".join(document.text)
    assert HOSTILE[0] in text and HOSTILE[1] in text and HOSTILE[2] in text and "49" not in text
    assert '<td class="n best">61.2 ± 0.5</td>' in html
    # What is wider than a telephone is scrolled by keyboard too.
    wide = [given for _, given in document.tags if given.get("class") == "scroll"]
    assert [given["aria-label"] for given in wide] == ["x", HOSTILE[2]]
    assert all(given["tabindex"] == "0" for given in wide)


def test_a_long_sentence_ends_in_a_sign_that_it_was_cut(monkeypatch):
    monkeypatch.setattr(page, "MOST_TEXT", 1)
    judged = rows(2, text="b" * 120)
    judged.texts[1] = "b" * 121
    cut = Document(render_page(context(judged, train=None))).json("data")["rows"]["text"]
    assert cut == ["b" * 120, "b" * 119 + "…"]


def test_a_large_set_stays_under_five_megabytes_and_says_what_is_left_out(monkeypatch):
    judged = rows(6000, text="كلمة طويلة جدا " * 20)
    made = context(judged, train=rows(6000, seed=1, text="جملة " * 90))
    monkeypatch.setattr(page, "_telling", lambda *_: [])
    html = render_page(made)
    assert len(html.encode()) < 5_000_000
    assert "5000 of 6000 sentences" in html and "cut after" in html and "among 5000 of 6000" in html
    counts = [row["n"] for row in page._slices(made)[0]["rows"]]
    assert sum(counts) == 6000


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_rows_and_missing_parts_make_a_page(count):
    judged = rows(2).select(np.arange(count))
    html = render_page(
        context(judged, train=None, unknown=None, layout=None, history=[], others={})
    )
    assert "compared with no baseline" in html or "No row was judged" in html
    without = PageRows([], judged.labels, judged.lines, judged.predicted, judged.confidence)
    html = render_page(PageContext("test", without, ("neg", "pos"), {}))
    assert "sentences are not on this page" in html and 'id="map"' not in html


def test_classes_of_training_alone_or_of_the_rows_alone_are_shown():
    judged = rows(9, classes=("neg", "pos", "odd"))
    html = render_page(context(judged, classes=("neg", "odd", "pos"), train=rows(9, ("x", "neg"))))
    data = Document(html).json("data")
    known = rows(9, ("x", "neg")).labels
    assert data["train"]["label"] == [{"neg": 0, "x": -1}[label] for label in known]
