"""A baseline of a contributor's own: registered from outside, named in a comparison."""

from collections import Counter

import pytest

from superconext.baselines import BASELINES
from superconext.baselines.baseline import Baseline
from superconext.core.errors import ConfigError, MissingExtraError
from superconext.core.progress import Progress
from superconext.experiments.compare import compare
from superconext.experiments.record import read_results
from superconext.experiments.runner import verify
from superconext.experiments.systems import parse_systems
from tests.cli.conftest import call_main
from tests.experiments.conftest import changed


class WordVotes(Baseline):
    """Each word of a text votes for the class it is most frequent in."""

    def fit(self, train, dev, seed=0):
        counts = {}
        for text, label in zip(*train, strict=True):
            for word in text.split():
                counts.setdefault(word, Counter())[label] += 1
        self.votes = {word: max(sorted(of), key=of.get) for word, of in counts.items()}
        self.other = min(train[1])
        self.settings = {"words": len(self.votes)}
        return self

    def predict(self, texts):
        votes = [Counter(self.votes[w] for w in text.split() if w in self.votes) for text in texts]
        return [max(sorted(of), key=of.get) if of else self.other for of in votes]


class Seeded(WordVotes):
    """The same, fitted with every seed."""

    seeded = True


class Elsewhere(WordVotes):
    """The same, of a package that is not installed."""

    @classmethod
    def check(cls):
        raise MissingExtraError("The baseline elsewhere", "elsewhere")


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setattr(BASELINES, "_added", dict(BASELINES._added))
    BASELINES.register("word_votes", WordVotes)


def test_it_is_a_system_of_a_comparison(request_of, tmp_path):
    result = compare(request_of(objectives="word_votes", seeds=2), Progress())
    assert [row.name for row in result.table.rows][-1] == "word_votes"
    lines = read_results(tmp_path / "out" / "results.jsonl")
    line = lines["word_votes", 0, "given"]
    assert line["words"] > 5 and line["test"]["accuracy"] > 0.5
    assert ("word_votes", 1, "given") not in lines
    assert all(check.same for check in verify(tmp_path / "out", 9, Progress()))


def test_a_seeded_one_has_every_seed_and_a_missing_package_is_said_first(request_of, tmp_path):
    BASELINES.register("votes_of_seeds", Seeded)
    compare(request_of(objectives="votes_of_seeds", seeds=2), Progress())
    lines = read_results(tmp_path / "out" / "results.jsonl")
    assert {key[1] for key in lines if key[0] == "votes_of_seeds"} == {0, 1}
    BASELINES.register("elsewhere", Elsewhere)
    with pytest.raises(MissingExtraError, match="elsewhere"):
        compare(request_of(objectives="elsewhere", out=str(tmp_path / "other")), Progress())
    assert not (tmp_path / "other").exists()


def test_through_the_command_line(data, tmp_path):
    files = [data / "train.tsv", "--dev", data / "dev.tsv", "--test", data / "test.tsv"]
    words = ["compare", *files, "--objectives", "word_votes", "--seeds", 1]
    said = call_main(*words, "--out", tmp_path / "out")
    assert said.code == 0 and "word_votes" in said.out


class Spoiling(WordVotes):
    """Changes the lists that it is given."""

    def fit(self, train, dev, seed=0):
        super().fit(train, dev, seed)
        train[0].sort()
        train[1].reverse()
        return self

    def predict(self, texts):
        found = super().predict(texts)
        texts.reverse()
        return found


def test_what_a_baseline_does_to_its_lists_is_its_own_affair(request_of, tmp_path):
    BASELINES.register("spoiling", Spoiling)
    lines = []
    for name in ("word_votes", "spoiling"):
        request = request_of(objectives=f"{name},superloss", seeds=1)
        compare(changed(request, out=str(tmp_path / name)), Progress())
        found = read_results(tmp_path / name / "results.jsonl")
        lines.append([found[system, 0, "given"]["predictions"] for system in (name, "superloss")])
    assert lines[0] == lines[1]


def test_a_name_of_two_things_is_refused(monkeypatch):
    BASELINES.register("supcon", WordVotes)
    with pytest.raises(ConfigError, match="'supcon', which is an objective and a baseline too"):
        parse_systems("supcon")


def test_an_unknown_name_and_parameters_are_refused():
    with pytest.raises(ConfigError, match="word_vote"):
        parse_systems("word_vote")
    with pytest.raises(ConfigError, match="word_votes, a baseline that chooses its own settings"):
        parse_systems("word_votes:layers=2")
    with pytest.raises(ConfigError, match=r"expected a class that extends .*Baseline|extends"):
        BASELINES.register("no_baseline", dict)
        BASELINES.get("no_baseline")


@pytest.mark.parametrize("answer", [0, "neutral", ["good"]])
def test_a_label_that_training_lacks_is_told(request_of, answer):
    class Lost(WordVotes):
        def predict(self, texts):
            return [answer for _ in texts]

    BASELINES.register("lost", Lost)
    with pytest.raises(ConfigError, match=r"lost. .*: found the label .*by predict"):
        compare(request_of(objectives="lost", seeds=1), Progress())
