"""Training of word vectors that was stopped goes on, and ends with the same bits."""

import pytest

from superconext.vectors import training
from superconext.vectors.training import cached_vectors, train_vectors
from tests.cli.conftest import call_main

pytest.importorskip("gensim.models")

SENTENCES = [["zwin", "bzaf", "had"], ["khayb", "bzaf", "had", "chi"], ["zwin", "chi"]] * 40
SMALL = {"dimension": 12, "buckets": 300, "epochs": 4, "min_count": 1}


@pytest.fixture(autouse=True)
def _saved_after_every_pass(monkeypatch):
    monkeypatch.setattr(training, "SAVED_EVERY", 0.0)


def stops_after(passes):
    """A report that stops training once so many of four passes are done."""

    def report(done):
        if done == passes / 4:
            raise KeyboardInterrupt

    return report


@pytest.mark.parametrize("method", ["fasttext", "word2vec"])
@pytest.mark.parametrize("passes", [1, 2, 3])
def test_what_was_stopped_ends_with_the_same_bits(tmp_path, method, passes):
    settings = {**SMALL, "method": method}
    straight = train_vectors(SENTENCES, **settings)
    state = tmp_path / "cache" / "one.state"
    with pytest.raises(KeyboardInterrupt):
        train_vectors(SENTENCES, progress=stops_after(passes), state=state, **settings)
    seen = []
    again = train_vectors(SENTENCES, progress=seen.append, state=state, **settings)
    assert seen == sorted(seen)
    assert sorted(set(seen)) == [k / 4 for k in range(passes, 5)]
    assert again.sha256 == straight.sha256


def test_a_state_is_not_written_at_every_turn(tmp_path, monkeypatch):
    monkeypatch.setattr(training, "SAVED_EVERY", 3600.0)
    train_vectors(SENTENCES, state=tmp_path / "one.state", **SMALL)
    assert list(tmp_path.iterdir()) == []


def cut(state):
    state.write_bytes(state.read_bytes()[:-9])


def of_another_size(state):
    with pytest.raises(KeyboardInterrupt):
        train_vectors(
            SENTENCES, progress=stops_after(2), state=state, **{**SMALL, "dimension": 8}
        )  # fmt: skip


@pytest.mark.parametrize("damage", [cut, of_another_size, lambda state: state.write_bytes(b"")])
def test_what_is_damaged_is_begun_anew(tmp_path, damage):
    state = tmp_path / "one.state"
    with pytest.raises(KeyboardInterrupt):
        train_vectors(SENTENCES, progress=stops_after(2), state=state, **SMALL)
    if damage is of_another_size:
        state.unlink()
    damage(state)
    seen = []
    again = train_vectors(SENTENCES, progress=seen.append, state=state, **SMALL)
    assert seen[0] == 0.0 and again.sha256 == train_vectors(SENTENCES, **SMALL).sha256


def test_a_pass_that_could_not_be_read_to_its_end_is_not_kept(tmp_path):
    class Breaks:
        reads = 0  # the first only counts words

        def __iter__(self):
            self.reads += 1
            for number, tokens in enumerate(SENTENCES):
                if self.reads == 3 and number == 7:
                    raise OSError("the disk is gone")
                yield tokens

    text, state = Breaks(), tmp_path / "one.state"
    with pytest.raises(OSError, match="disk"):
        train_vectors(text, state=state, **SMALL)
    assert text.reads == 3
    seen = []
    again = train_vectors(SENTENCES, progress=seen.append, state=state, **SMALL)
    assert seen[0] == 0.25 and again.sha256 == train_vectors(SENTENCES, **SMALL).sha256


def test_the_cache_keeps_the_state_until_training_ends(tmp_path):
    with pytest.raises(KeyboardInterrupt, match="repeat the command to resume"):
        cached_vectors(SENTENCES, cache_dir=tmp_path, progress=stops_after(3), **SMALL)
    (state,) = (tmp_path / "vectors").iterdir()
    assert state.suffix == ".state"
    seen = []
    made = cached_vectors(SENTENCES, cache_dir=tmp_path, progress=seen.append, **SMALL)
    assert sorted(set(seen)) == [0.75, 1.0] and not state.exists()
    assert made.sha256 == train_vectors(SENTENCES, **SMALL).sha256


def test_without_room_for_a_state_training_goes_on(tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    made = train_vectors(SENTENCES, state=tmp_path / "file" / "one.state", **SMALL)
    assert made.sha256 == train_vectors(SENTENCES, **SMALL).sha256


def test_the_command_says_how_to_go_on(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    text = tmp_path / "text.txt"
    text.write_text("\n".join(map(" ".join, SENTENCES)), encoding="utf-8")
    words = ("vectors", "train", text, "--epochs", "3", "--out", tmp_path / "folder")
    original = training.Epochs.end_pass

    def stopped(self, *given):
        original(self, *given)
        if self.done == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(training.Epochs, "end_pass", stopped)
        said = call_main(*words)
    assert said.code == 1 and not (tmp_path / "folder").exists()
    assert "interrupted; finished work is kept in" in said.err and "to resume" in said.err
    assert call_main(*words).code == 0
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "another"))
    assert call_main(*words[:-1], tmp_path / "straight").code == 0
    for name in ("matrix.npy", "subwords.npy"):
        made = [(tmp_path / folder / name).read_bytes() for folder in ("folder", "straight")]
        assert made[0] == made[1]
