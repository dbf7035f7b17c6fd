"""The model card: what it says, what it leaves open, and that no label breaks it."""

import copy
import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from superconext.core.errors import RunError
from superconext.encoders import ENCODERS
from superconext.report.card import render_card, write_card
from superconext.report.table import wilson

MANIFEST = {
    "format": 1,
    "version": "0.1.0",
    "command": ["superconext", "train", "data/train.tsv", "--out", "my run"],
    "objective": "superloss",
    "preset": "dialect",
    "seed": 0,
    "threads": 1,
    "data": {
        "train": {
            "file": "/home/someone/train.tsv",
            "sha256": "ab" * 32,
            "rows": 1600,
            "classes": {"neg": 900, "إيجابي": 700},
        },
        "dev": {
            "file": "dev.tsv",
            "sha256": "cd" * 32,
            "rows": 150,
            "classes": {"neg": 75, "إيجابي": 75},
        },
        "test": {
            "file": "C:\\data\\test.tsv",
            "sha256": "ef" * 32,
            "rows": 200,
            "classes": {"neg": 180, "إيجابي": 20},
        },
    },
    "vectors": {"name": "fasttext", "sha256": "12" * 32, "dimension": 100, "trained_on": "tweets"},
    "versions": {"python": "3.11.7", "torch": "2.13.0"},
    "wall_seconds": 31.2,
    "cpu_seconds": 30.1,
    "status": "complete",
    "created": "2026-01-31T12:00:00Z",
}
METRICS = {
    "reported_split": "test",
    "test": {
        "n": 200,
        "accuracy": 0.86,
        "f1_macro": 0.855,
        "f1_weighted": 0.861,
        "per_class": {
            "neg": {"precision": 0.8, "recall": 0.9, "f1": 0.847, "support": 180},
            "إيجابي": {"precision": 0.9, "recall": 0.82, "f1": 0.858, "support": 20},
        },
    },
    "dev": {"n": 150, "accuracy": 0.9, "f1_macro": 0.9, "f1_weighted": 0.9},
    "train": {"n": 1600, "accuracy": 0.99, "f1_macro": 0.99, "f1_weighted": 0.99},
    "baselines": {
        "majority": {
            "test": {"accuracy": 0.5, "f1_macro": 0.333, "f1_weighted": 0.333},
            "dev": {"accuracy": 0.5},
        },
        "tfidf_logreg": {"test": {"accuracy": 0.82, "f1_macro": 0.81, "f1_weighted": 0.82}},
    },
    "collapse": {"effective_rank": 31.2, "mean_cosine": 0.1, "collapsed": False},
}
FACTS = {**MANIFEST, **METRICS}


def changed(**values):
    return {**copy.deepcopy(FACTS), **values}


def section(card, heading):
    return card.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def table(text, first):
    """Rows of the table whose heading starts with `first`, as {first cell: other cells}."""
    lines = text[text.index(f"| {first} |") :].split("\n\n")[0].strip().split("\n")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert len({len(row) for row in cells}) == 1
    return {row[0]: row[1:] for row in cells[2:]}


def front(card):
    """The front matter's lines and the rest."""
    assert card.startswith("---\n")
    head, body = card[4:].split("\n---\n", 1)
    return head.split("\n"), body


def test_the_hub_reads_the_scores_and_the_figures_are_shown(tmp_path):
    hub = pytest.importorskip("huggingface_hub")
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "map.png").write_bytes(b"")
    write_card(tmp_path, FACTS)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "![Map of the sentence vectors](figures/map.png)" in text and "confusion.png" not in text
    results = hub.ModelCard(text).data.eval_results
    split = FACTS.get("combined", FACTS)["test"]
    found = {one.metric_name: one.metric_value for one in results}
    assert found == {
        "accuracy": split["accuracy"],
        "macro F1": split["f1_macro"],
        "weighted F1": split["f1_weighted"],
    }
    assert {one.dataset_split for one in results} == {"test"}
    hostile = changed(data={"test": {"file": 'x"\n- evil: "y'}}, objective='a"b')
    read = hub.ModelCard(render_card(hostile)).data
    assert read.eval_results[0].dataset_name == 'x" - evil: "y' and not hasattr(read, "evil")


def test_front_matter():
    lines, _ = front(render_card(FACTS))
    for line in (
        "library_name: superconext",
        "pipeline_tag: text-classification",
        "metrics:",
        "- accuracy",
        "- f1",
        '- "superloss"',
    ):
        assert line in lines
    # Nobody but the user can answer these, so they are questions, not values.
    assert not [line for line in lines if re.match("(license|language):", line)]
    assert [line for line in lines if line.startswith("# license:") and "?" in line]
    assert [line for line in lines if line.startswith("# language:") and "?" in line]


def test_scores_stand_beside_baselines_with_intervals():
    rows = table(section(render_card(FACTS), "Results"), "model")
    assert rows == {
        "this model": ["0.860 (0.805 to 0.901)", "0.855", "0.861"],
        "majority class": ["0.500 (0.431 to 0.569)", "0.333", "0.333"],
        "TF-IDF + logistic regression": ["0.820 (0.761 to 0.867)", "0.810", "0.820"],
    }


def test_an_objective_that_predicts_by_itself_has_its_own_row():
    facts = changed(native={"test": {"accuracy": 0.84, "f1_macro": 0.83, "f1_weighted": 0.84}})
    rows = table(section(render_card(facts), "Results"), "model")
    name = "this model, by its objective's own rule"
    assert list(rows)[:2] == ["this model", name]
    assert rows[name] == ["0.840 (0.783 to 0.884)", "0.830", "0.840"]


def test_a_second_objective_is_told_of():
    text = render_card(changed(second_objective="ce_<b>"))
    assert "# Text classifier trained with superloss and ce\\_\\<b\\>\n" in text
    assert "every second one was trained with ce\\_\\<b\\> instead" in text
    assert "every second one" not in render_card(changed(second_objective=None))


def test_the_kind_of_encoder_is_named():
    assert "A sentence encoder (a bidirectional LSTM over word vectors) trained" in render_card(
        FACTS
    )
    summary = ENCODERS.summary("transformer")
    assert f"A sentence encoder ({summary}) trained" in render_card(changed(encoder="transformer"))
    assert "A sentence encoder (mine\\_\\<b\\>) trained" in render_card(changed(encoder="mine_<b>"))


def test_other_splits_and_classes():
    results = section(render_card(FACTS), "Results")
    assert set(table(results, "split")) == {"train", "dev"}
    assert table(results, "class") == {
        "neg": ["0.800", "0.900", "0.847", "180"],
        "إيجابي": ["0.900", "0.820", "0.858", "20"],
    }


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_solves_its_equation(pair):
    hits, n = pair
    share, z = hits / n, 1.959963984540054
    low, high = wilson(share, n)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1
    # The ends are, by definition, those p from which the share lies z standard errors away.
    for p in (low, high):
        assert math.isclose((share - p) ** 2, z * z * p * (1 - p) / n, rel_tol=1e-6, abs_tol=1e-12)


def test_comparison_with_the_best_baseline_claims_no_more_than_it_may():
    results = section(render_card(FACTS), "Results")
    assert "0.040 above that of the best baseline (TF-IDF + logistic regression)" in results
    assert "may be chance" in results
    far = changed(baselines={"majority": {"test": {"accuracy": 0.5}}})
    results = section(render_card(far), "Results")
    assert "0.360 above that of the best baseline (majority class)." in results
    assert "may be chance" not in results
    full = changed(baselines={"tfidf_logreg": {"test": {"accuracy": 1.0}}})
    full["test"] |= {"n": 18, "accuracy": 16 / 18}
    results = section(render_card(full), "Results")
    assert "within whose interval the model's lies: this may be chance." in results
    better = changed(baselines={"tfidf_logreg": {"test": {"accuracy": 0.95}}})
    assert "0.090 below that of the best baseline" in section(render_card(better), "Results")
    tied = {"majority": {"test": {"accuracy": 0.5}}, "tfidf_logreg": {"test": {"accuracy": 0.5}}}
    results = section(render_card(changed(baselines=tied)), "Results")
    assert "best baseline (majority class)." in results, "the first of a tie, as on the page"


def test_dev_figures_are_called_dev_figures():
    facts = changed(reported_split="dev")
    del facts["test"]
    results = section(render_card(facts), "Results")
    assert "On dev (150 rows)" in results
    assert "No test file was given" in results
    assert "No test file" not in render_card(FACTS)
    del facts["reported_split"]
    assert "On dev (150 rows)" in render_card(facts)


def test_number_of_rows_is_taken_from_the_supports_else_no_interval():
    facts = changed()
    del facts["test"]["n"]
    assert "0.860 (0.805 to 0.901)" in render_card(facts)
    del facts["test"]["per_class"]
    card = render_card(facts)
    assert table(section(card, "Results"), "model")["this model"][0] == "0.860"
    assert "hence no interval" in card


def test_the_split_that_was_reported_is_the_one_that_is_shown():
    assert "On dev (150 rows)" in render_card(changed(reported_split="dev"))
    rows = table(section(render_card(FACTS), "Results"), "split")
    assert rows["dev"][0] == "0.900 (0.842 to 0.938)", "of its own rows"


def test_a_tie_is_one_to_three_digits():
    tied = changed(baselines={"majority": {"test": {"accuracy": 0.8604}}})
    assert "Its accuracy equals that of the best baseline (majority class)." in render_card(tied)


def pooled(**values):
    """Facts of a run that predicts by a pool of its encoder and a model of n-grams."""
    scores = {"f1_macro": 0.5, "f1_weighted": 0.5}
    classes = {"neg": {"precision": 0.7, "recall": 0.6, "f1": 0.65, "support": 180}}
    given = {
        "pool_weights": {"encoder": 0.5, "tfidf": 0.5},
        "companion": "n-grams",
        "probe_title": "trained encoder",
        "combined": {"test": {**scores, "accuracy": 0.9, "per_class": classes}},
        "encoder_alone": {"test": {**scores, "accuracy": 0.7}},
    }
    return changed(**(given | values))


def test_a_pool_of_models_is_the_model_and_its_encoder_a_part():
    card = render_card(pooled())
    assert "It predicts with two models, the probe and a logistic regression on TF-IDF" in card
    results = section(card, "Results")
    rows, part = table(results, "model"), "its encoder alone, with a linear probe"
    assert list(rows)[:2] == ["this model", part]
    assert [rows[name][0][:5] for name in list(rows)[:2]] == ["0.900", "0.700"]
    assert table(results, "class") == {"neg": ["0.700", "0.600", "0.650", "180"]}
    # Runs of versions before 0.2 have the probe's own figures under the split's name.
    earlier = table(section(render_card(pooled(encoder_alone=None)), "Results"), "model")
    assert earlier[part][0].startswith("0.860")
    three = {"encoder": 0.2, "tfidf": 0.4, "ngrams": 0.4}
    assert "It predicts with three models, " in render_card(pooled(pool_weights=three))


def test_a_model_of_n_grams_alone_is_not_called_an_encoder():
    facts = pooled(pool_weights={"encoder": 0.0, "tfidf": 1.0}, probe_title="")
    card = render_card(facts, ["confusion", "map", "curves"])
    lines, body = front(card)
    assert "# Text classifier on n-grams\n" in body and "its encoder alone" not in body
    assert [line for line in lines if line.startswith('- "')] == ['- "text-classification"']
    assert re.findall(r"figures/(\w+)\.png", body) == ["confusion"]


def test_an_encoder_that_was_not_trained_has_no_objective():
    lines, body = front(render_card(changed(freeze=True), ["confusion", "map", "curves"]))
    tags = [line for line in lines if line.startswith('- "')]
    assert tags == ['- "text-classification"', '- "sentence-embeddings"']
    assert "that was not trained on the labels" in body
    assert re.findall(r"figures/(\w+)\.png", body) == ["confusion", "map"]


def test_a_cross_validation_counts_distinct_texts():
    folds = {"count": 10, "repeats": 2, "texts": 400, "accuracy": {"mean": 0.8, "sd": 0.02}}
    facts = changed(reported_split="cv", cv={"n": 1600, "accuracy": 0.8, "folds": folds})
    seen = {"texts": 200, "train": 3, "dev": 1, "without": {"n": 196, "accuracy": 0.85}}
    card = render_card(facts | {"overlap": seen})
    results = section(card, "Results")
    assert "cross-validated (1600 rows, 400 distinct texts)" in results
    assert "Cross-validated (5 folds, 2 times)" in results and "0.800 ± 0.020" in results
    assert table(results, "model")["this model"][0] == "0.800 (0.758 to 0.836)"
    assert '      name: "train.tsv"' in front(card)[0]
    told = (
        "4 of 200 texts are among the rows of the run (3 train and 1 dev); accuracy without them "
        "0.850 (196 rows)."
    )
    assert told not in card and told in render_card(changed(overlap=seen))


def test_recipes_that_were_compared_are_told_with_their_scores():
    scores = {"log_loss": 0.41, "accuracy": 0.8, "f1_macro": 0.7, "f1_weighted": 0.75}
    recipes = {"chosen": "a", "why": "the best", "compared": "on dev"}
    facts = changed(recipes={**recipes, "recipes": {"a": {"title": "n-grams", **scores}}})
    rows = table(section(render_card(facts), "Results"), "recipe")
    assert rows == {"n-grams": ["0.410", "0.800", "0.700", "0.750"]}


def test_data_section():
    card = render_card(FACTS)
    data = section(card, "Data")
    assert table(data, "split") == {
        "train": ["train.tsv", "1600", "ab" * 8],
        "dev": ["dev.tsv", "150", "cd" * 8],
        "test": ["test.tsv", "200", "ef" * 8],
    }
    assert table(data, "class") == {"neg": ["900", "75", "180"], "إيجابي": ["700", "75", "20"]}
    facts = changed()
    facts["data"]["dev"] = {"file": "/home/someone/corpus/", "rows": 3, "classes": {"neg": 3}}
    data = section(render_card(facts), "Data")
    assert table(data, "split")["dev"] == ["corpus", "3", "-"]
    assert table(data, "class")["إيجابي"] == ["700", "0", "20"]
    assert "/home/someone" not in card  # folders of the author's machine stay out of the table


@pytest.mark.parametrize(
    ("collapsed", "said"), [(False, "did not collapse"), (True, "**The encoder collapsed**")]
)
def test_collapse_in_words(collapsed, said):
    facts = changed(collapse={"effective_rank": 2.04, "mean_cosine": 0.97, "collapsed": collapsed})
    text = section(render_card(facts), "Sentence vectors")
    assert said in text
    assert "about 2.0 directions" in text
    assert "0.97" in text


def test_limits_name_rows_and_small_classes():
    limits = section(render_card(FACTS), "Limits")
    assert "Trained on 1600 rows" in limits
    assert "Fewer than 30 rows were evaluated of: \u2068إيجابي\u2069." in limits
    enough = changed()
    enough["test"]["per_class"]["إيجابي"]["support"] = 30
    assert "Fewer than 30 rows" not in render_card(enough)
    for word in ("One class a sentence", "Label noise", "Dialect coverage", "other seeds"):
        assert word in limits


def test_command_versions_and_loading():
    card = render_card(FACTS)
    made = section(card, "How it was made")
    assert "```bash\nsuperconext train data/train.tsv --out 'my run'\n```" in made
    rows = table(made, "what")
    assert rows["torch"] == ["2.13.0"]
    assert rows["superconext"] == ["0.1.0"]
    assert rows["seed"] == ["0"]
    assert rows["wall clock"] == ["31.2 s"]
    loading = section(card, "How to load it")
    assert "superconext.load(" in loading
    assert "superconext predict " in loading


def test_an_unfinished_run_says_so():
    assert "did not reach its end (status: interrupted)" in render_card(
        changed(status="interrupted")
    )
    assert "did not reach" not in render_card(FACTS)


def test_what_nobody_recorded_is_asked_for():
    questions = section(render_card(FACTS), "What we cannot know: please fill in")
    for word in ("Intended use", "Source", "Licence", "Labels", "Consent"):
        assert re.search(f"- {word}.*<!-- .+ -->", questions)


def test_an_empty_run_becomes_comments_not_lies():
    card = render_card({})
    assert card.count("<!--") == card.count("-->") > 12
    _, body = front(card)
    shown = re.sub("<!--.*?-->", "", body, flags=re.S)
    assert "None" not in shown
    assert "nan" not in shown
    assert not re.search(r"\d\.\d", shown)


def paths(value, at=()):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*at, key)
            yield from paths(inner, (*at, key))


@pytest.mark.parametrize("path", list(paths(FACTS)), ids="/".join)
def test_any_fact_may_be_missing_or_wrong(path):
    for junk in (..., None, "x", 3, -1, [], {}, math.nan, True):
        facts = copy.deepcopy(FACTS)
        place = facts
        for key in path[:-1]:
            place = place[key]
        if junk is ...:
            del place[path[-1]]
        else:
            place[path[-1]] = junk
        card = render_card(facts)
        assert "None" not in card
        assert card.count("<!--") == card.count("-->")


HOSTILE = [
    'x"\n---\nlicense: mit\n# ',
    "a|b|c",
    "--> <script>alert(1)</script> <!--",
    "# heading\n\n## Results\n\n| model |",
    "```\n\n# out of the fence",
    "\u202eevil\u2028---\u0085\x1b[2J",
    "' : { [ & * ! % @ `",
    "\ud800",
]


def prose(body):
    """The lines outside code blocks. A block ends at a fence as long as its first."""
    kept, fence = [], ""
    for line in body.split("\n"):
        run = re.match("`*", line)[0]
        if fence:
            if line == run and len(run) >= len(fence):
                fence = ""
        elif len(run) >= 3:
            fence = run
        else:
            kept.append(line)
    assert not fence
    return "\n".join(kept)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_from_a_user_breaks_the_card(text, tmp_path):
    facts = changed(
        objective=text, preset=text, created=text, version=text, status=text, reported_split=text
    )
    facts["versions"] = {text: text}
    facts["command"] = ["superconext", text]
    facts["vectors"] = {"name": text, "trained_on": text}
    facts["baselines"] = {text: METRICS["baselines"]["majority"]}
    for split in ("train", "dev", "test"):
        facts["data"][split]["file"] = text
        facts["data"][split]["sha256"] = text
        facts["data"][split]["classes"] = {text: 1, "b": 2}
    facts["test"]["per_class"] = {text: {"precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 1}}
    card = render_card(facts)

    lines, body = front(card)
    assert not [line for line in lines if line.startswith("license:")]
    quoted = [line[2:] for line in lines if line.startswith('- "')]
    assert len([json.loads(line) for line in quoted]) == 4

    body = prose(body)
    headings = re.findall("^#+ .*", body, re.M)
    assert [h for h in headings if h.startswith("## ")] == [
        "## Data", "## Results", "## Sentence vectors", "## Limits", "## How to load it",
        "## How it was made", "## What we cannot know: please fill in",
    ]  # fmt: skip
    assert len(headings) == 8
    assert not re.search(r"(?<!\\)<(?!!--)", body)
    assert len(re.findall(r"(?<!\\)<!--", body)) == len(re.findall(r"(?<!\\)<!-- [^<>]* -->", body))
    for name in ("split", "class", "model", "what"):
        assert table(body, name)

    write_card(tmp_path / "README.md", facts)
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == card


@given(st.text())
def test_front_matter_is_yaml_whatever_the_objective(text):
    lines, _ = front(render_card(changed(objective=text)))
    yaml = pytest.importorskip("yaml")
    head = yaml.safe_load("\n".join(lines))
    assert head["library_name"] == "superconext"
    assert all(isinstance(tag, str) for tag in head["tags"])


def test_write_card_into_a_folder_replaces_and_leaves_nothing_beside(tmp_path):
    write_card(tmp_path, {})
    write_card(tmp_path, FACTS)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert (tmp_path / "README.md").read_bytes() == render_card(FACTS).encode()


def test_write_card_says_where_it_could_not(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"README\.md: cannot be written"):
        write_card(tmp_path / "file" / "README.md", FACTS)


def test_what_else_it_learned_from_and_what_annotators_agreed_on_are_told():
    soft = render_card(changed(soft_labels={"file": "soft.csv", "rows": 60}))
    assert "learnt from 60 texts that have a share of each class" in soft
    model = {"name": "mini", "sha256": "ab" * 32, "revision": None}
    card = render_card(changed(model=model, vectors=None))
    assert "Pretrained model: mini, sha256 abababababababab." in card
    assert "which word vectors" not in card.lower() and "word vectors come from" not in card
    agreed = render_card(changed(agreement={"alpha": 0.713, "annotators": 3}))
    assert "- Labels: 3 annotators, Krippendorff's alpha 0.71. <!-- Who" in agreed
    assert "How often did two people agree?" not in agreed
    assert "How often did two people agree?" in render_card(FACTS)


def test_rows_that_other_models_predicted_are_none_of_this_model():
    cv = {"n": 90, "accuracy": 0.7, "f1_macro": 0.7, "f1_weighted": 0.7}
    rows = table(render_card(changed(cv=cv)).split("on the other rows:")[1], "split")
    assert set(rows) == {"train", "dev"}


def test_repeated_folds_say_what_the_pictures_show():
    folds = {"count": 20, "repeats": 4, "accuracy": {"mean": 0.64, "sd": 0.05}}
    cv = {**METRICS["test"], "n": 90, "folds": folds}
    for repeats, told in ((4, True), (1, False)):
        given = {**cv, "folds": {**folds, "repeats": repeats}}
        card = render_card(changed(reported_split="cv", cv=given))
        assert ("the average of their answers" in card) == told


def test_the_card_counts_encoders_and_names_the_second_stage():
    one = render_card(MANIFEST | METRICS)
    assert "\nA sentence encoder (" in one and "on its frozen" in one
    assert "cross-entropy" not in one
    card = render_card(changed(members=2, finetune_epochs=3))
    assert "\n2 sentence encoders (" in card and "on their frozen sentence vectors" in card
    assert "objective superloss, then by cross-entropy, and a linear probe" in card
    frozen = render_card(changed(members=3, freeze=True))
    assert "\n3 sentence encoders (" in frozen and "that were not trained on the labels" in frozen


def test_a_card_of_a_streamed_file_counts_the_sample():
    train = {**METRICS["test"], "n": 1000}
    card = render_card(changed(train=train))
    assert "from all 1600 training rows; the linear probe and the baselines" in card
    assert "fitted on 1000 of them" in card
    assert "training rows; the linear" not in render_card(changed(train={**train, "n": 1600}))


def test_only_dev_rows_that_chose_something_are_said_to():
    for count, more, told in ((150, {}, True), (19, {}, False), (150, {"cv": {"n": 90}}, False)):
        dev = {**METRICS["dev"], "n": count}
        card = render_card(changed(reported_split="dev", dev=dev, test=None, **more))
        assert ("settings were chosen on these rows" in card) == told
    card = render_card(changed(reported_split="dev", chosen_on_dev=False, test=None))
    assert "settings were chosen on these rows" not in card
