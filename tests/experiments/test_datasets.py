"""Data sets by their files and by a file of them."""

import pytest

from superconext.core.errors import ConfigError
from superconext.experiments.systems import DataSet, from_files, read_datasets


def test_one_file_needs_no_name():
    (data,) = from_files(["a/train.tsv"], dev=None, test="b.tsv", splits=None)
    assert data.name == "" and data.scheme() == "dev"
    assert data.files() == {"train": "a/train.tsv", "test": "b.tsv"}


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["x/msac.tsv", "y/tsac.csv.gz"], ["msac", "tsac"]),
        (["msac/train.tsv", "tsac/train.tsv"], ["msac", "tsac"]),
        (["d/a/train.tsv", "d/a/test.tsv", "d/b/test.tsv"], ["a-train", "a-test", "b-test"]),
        (["دارجة.tsv", "a b.tsv"], ["دارجة", "a-b"]),
    ],
)
def test_several_are_called_by_what_tells_them_apart(paths, names):
    assert [data.name for data in from_files(paths)] == names


def test_files_that_cannot_be_told_apart_or_belong_nowhere():
    with pytest.raises(ConfigError, match="two data sets are called 'b-train'"):
        from_files(["a/b/train.tsv", "c/b/train.tsv"])
    with pytest.raises(ConfigError, match="give it with --datasets"):
        from_files(["a.tsv", "b.tsv"], test="c.tsv")
    with pytest.raises(ConfigError, match="as a folder of the results is"):
        from_files(["figures.tsv", "b.tsv"])


def write(folder, text):
    path = folder / "datasets.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_of_data_sets(tmp_path):
    path = write(
        tmp_path,
        '[[dataset]]\nname = "msac"\ntrain = "msac/train.tsv"\ntest = "/far/test.tsv"\n'
        'label_column = "class"\nvectors = "w.txt"\nepochs = 3\n'
        '[[dataset]]\nname = "tsac"\ntrain = "t.tsv"\nsplits = "resample"\ndeduplicate = true\n',
    )
    msac, tsac = read_datasets(path, {"text_column": "tweet", "deduplicate": False})
    assert msac == DataSet(
        "msac",
        str(tmp_path / "msac/train.tsv"),
        test="/far/test.tsv",
        text_column="tweet",
        label_column="class",
        parameters=(("vectors", str(tmp_path / "w.txt")), ("epochs", 3)),
    )
    assert msac.scheme() == "dev" and tsac.scheme() == "resampled" and tsac.deduplicate


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('train = "a"', "no name"),
        ('name = "a"', "no train"),
        ('name = "a/b"\ntrain = "a"', "cannot be the name of a folder"),
        ('name = ".."\ntrain = "a"', "cannot be the name of a folder"),
        ('name = "figures"\ntrain = "a"', "as a folder of the results is"),
        ('name = "a"\ntrain = "a"\nsplits = "some"', "expected 'given' or 'resample'"),
        ('name = "a"\ntrain = "a"\ntets = "b"', "did you mean 'test'"),
        ('name = "a"\ntrain = "a"\nseed = 1', "the experiment decides"),
        ('name = "a"\ntrain = "a"\ndeduplicate = "yes"', "expected true or false"),
        ('name = "a"\ntrain = "a"\n[[dataset]]\nname = "A"\ntrain = "b"', "two data sets"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path, text, message):
    path = write(tmp_path, f"[[dataset]]\n{text}\n")
    with pytest.raises(ConfigError, match=message) as caught:
        read_datasets(path, {})
    assert str(path) in str(caught.value)


def test_the_data_set_is_named_where_files_do_not_go_together():
    with pytest.raises(ConfigError, match=r"data set msac: .*without a test file"):
        DataSet("msac", "a.tsv", dev="b.tsv").scheme()
