"""What a run tells of new texts: which it has seen, and which are unlike all of those."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from superconext.data.duplicates import SeenTexts
from superconext.fitting.familiarity import Familiarity, facts_of, overlap_report, seen_by
from superconext.probe.metrics import probability_metrics


class Indexer:
    """Reads four words; what is unfamiliar in a text is what the text says: "0.8 0.1"."""

    tokenizer = SimpleNamespace(many=lambda texts: [text.split() for text in texts])
    max_length, limited = 4, False

    def unfamiliar(self, tokens):
        return np.array([[*map(float, [*of, "0", "0"][:2])] for of in tokens]).reshape(-1, 2)

    def cut(self, tokens):
        return sum(len(of) > 4 for of in tokens)


def model_of(**splits):
    seen = SeenTexts.of({name: [text.split() for text in of] for name, of in splits.items()})
    return SimpleNamespace(indexer=Indexer(), seen=seen if splits else None)


@pytest.mark.parametrize(
    ("text", "strange"),
    [("0.8 0.1", 1), ("0.79 0.1", 0), ("0.1 0.5", 1), ("0.1 0.49", 0), ("1 1", 1)],
)
def test_new_words_or_a_new_script_make_a_text_strange(text, strange):
    found = Familiarity()
    (fact,) = found.add(model_of(), [text])
    words, script = map(float, text.split())
    assert fact == {"unknown_words": words, "unseen_script": script}
    assert found.strange == strange and found.seen is None


@pytest.mark.parametrize(("others", "told"), [(4, True), (5, False)])
def test_strange_texts_are_told_of_where_they_are_a_fifth(others, told):
    found = Familiarity()
    found.add(model_of(), ["1 1", *["0 0"] * others, "", " "])
    (*lines,) = found.warnings()
    assert bool(lines) == told and found.texts == others + 1, "blank texts are none"
    assert all(f"1 of {others + 1} texts are unlike" in line for line in lines)


def test_what_is_added_in_parts_is_counted_together():
    found, model = Familiarity(), model_of(train=["0 0 a", "0 0 b"], dev=["0 0 c"])
    facts = [
        fact
        for part in (["0 0 a", "", "1 1 1 1 1"], ["0 0 c"], ["0 0 0 0 0", "0 0 d"])
        for fact in found.add(model, part)
    ]
    seen = ["train", None, None, "dev", None, None]
    assert [fact and fact["seen_in"] for fact in facts] == seen and facts[1] is None
    assert (found.texts, found.strange, found.cut) == (5, 1, 2)
    assert found.seen == {"train": 1, "dev": 1}
    assert "2 of 5 texts are among the rows of the run (1 train and 1 dev)" in found.warnings()[0]
    (told,) = found.unread()
    assert told.endswith(
        "the first 4 tokens of a text (--max-length of train), and 2 of 5 texts are longer"
    )
    model.indexer.limited = True
    found.add(model, ["0 0"])
    assert "(its model's longest input)" in found.unread()[0]


def test_rows_of_dev_are_seen_too():
    texts = ["0 0 a", "0 0 c", "", "0 0 d"]
    model = model_of(train=["0 0 a"], dev=["0 0 c"])
    assert seen_by(model, texts).tolist() == [True, True, False, False]
    assert seen_by(model_of(), texts) is None


def test_the_metrics_without_them_are_those_of_the_other_rows():
    labels, classes = ["neg", "pos", "pos", "neg"], ["neg", "pos"]
    shares = np.array([[0.1, 0.9], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4]])
    facts = [{"seen_in": "train"}, {"seen_in": None}, {"seen_in": "dev"}, None]
    evaluation, seen = SimpleNamespace(probabilities=shares), Counter(train=1, dev=1)
    report = overlap_report(facts, seen, evaluation, labels, classes)
    rest = probability_metrics(["pos", "neg"], shares[[1, 3]], classes)
    assert (report["train"], report["dev"]) == (1, 1) and report["without"]["n"] == 2
    assert report["without"] == {name: rest[name] for name in report["without"]}
    found = Familiarity()
    found.texts, found.seen = 4, seen
    assert "accuracy without them 1.000 (2 rows)" in found.warnings(report)[0]
    new = overlap_report([{"seen_in": None}] * 4, Counter(), evaluation, labels, classes)
    assert new == {"train": 0, "dev": 0, "without": None}
    assert overlap_report(facts, None, evaluation, labels, classes) is None


def test_a_model_without_an_indexer_tells_of_blank_texts_alone():
    assert facts_of(SimpleNamespace(indexer=None), ["zwin", " ", ""]) == [{}, None, None]
