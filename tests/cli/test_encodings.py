"""A file that is not UTF-8, given to every command that reads one: its advice can be followed."""

from __future__ import annotations

import itertools
import re

import click
import pytest

from superconext.cli import cli
from superconext.core.errors import DataError
from superconext.data.lines import guessed, transcoded
from tests.cli.conftest import call_main, rows, write_table

#: Every command with one BAD file, for each argument and option that takes a file. GOOD is UTF-8.
CASES = """
train BAD SMALL
train GOOD SMALL --dev BAD
train GOOD SMALL --test BAD
train GOOD --epochs 1 --preset fast --unlabelled BAD --out OUT
train GOOD --epochs 1 --pretrain --unlabelled BAD --out OUT
train GOOD SMALL --objective css_lm --unlabelled BAD
train GOOD SMALL --related BAD
train GOOD SMALL --objective cross_entropy --soft-labels BAD
evaluate RUN BAD
predict RUN BAD
embed RUN BAD --out OUT.npy
report RUN BAD --out OUT.html
report RUN GOOD --train BAD --out OUT.html
audit BAD
suggest RUN BAD
suggest RUN GOOD --leave-out BAD
explain RUN --file BAD
explain RUN zwin --train BAD
compare BAD EXPERIMENT --objectives ngrams
compare GOOD EXPERIMENT --objectives ngrams --dev BAD --test GOOD
compare GOOD EXPERIMENT --objectives ngrams --test BAD
compare GOOD EXPERIMENT --objectives superloss --preset fast --unlabelled BAD
compare GOOD EXPERIMENT --objectives superloss SMALLEST --related BAD
compare GOOD EXPERIMENT --objectives cross_entropy SMALLEST --soft-labels BAD
fewshot BAD EXPERIMENT SMALLEST --shots 4 --test GOOD
fewshot GOOD EXPERIMENT SMALLEST --shots 4 --dev BAD --test GOOD
fewshot GOOD EXPERIMENT SMALLEST --shots 4 --test BAD
fewshot GOOD EXPERIMENT --shots 4 --test GOOD --epochs 1 --unlabelled BAD
fewshot GOOD EXPERIMENT SMALLEST --shots 4 --test GOOD --related BAD
fewshot GOOD EXPERIMENT SMALLEST --shots 4 --test GOOD --objectives cross_entropy --soft-labels BAD
sweep BAD EXPERIMENT SMALLEST --parameter dropout --values 0.1
sweep GOOD EXPERIMENT SMALLEST --parameter dropout --values 0.1 --dev BAD --test GOOD
sweep GOOD EXPERIMENT SMALLEST --parameter dropout --values 0.1 --test BAD
sweep GOOD EXPERIMENT --epochs 1 --parameter dropout --values 0.1 --unlabelled BAD
sweep GOOD EXPERIMENT SMALLEST --parameter dropout --values 0.1 --related BAD
sweep GOOD EXPERIMENT SMALLEST --parameter dropout --values 0.1 --soft-labels BAD --objective dualcl
vectors train BAD --dimension 4 --epochs 1 --out OUT
vectors train GOOD --dimension 4 --epochs 1 --leave-out BAD --out OUT
vectors info VECTORS --on BAD
vectors convert VECTORS --words-of BAD --out OUT
pretrain BAD PRETRAIN
pretrain GOOD PRETRAIN --leave-out BAD
data inspect BAD
data inspect GOOD --deduplicate OUT --dev BAD
data inspect GOOD --deduplicate OUT --test BAD
data inspect GOOD --unlabelled BAD
data split BAD --out OUT
data pool GOOD --leave-out BAD --out OUT.txt
data pool GOOD --like BAD --out OUT.txt
data pool GOOD --like GOOD --unlike BAD --out OUT.txt
data agreement BAD
data merge BAD GOOD
data merge GOOD BAD
export RUN --prune --test BAD --out OUT
export RUN --prune --test GOOD --expected BAD --out OUT
export RUN --format static --train BAD --out OUT
export RUN --format static --train GOOD --test BAD --out OUT
export RUN --format static --train GOOD --unlabelled BAD --out OUT
""".strip().splitlines()

#: `data pool` counts the lines of its files that cannot be read, and goes on.
COUNTED = {(("data", "pool"), "files")}

_TAKES_A_FILE = re.compile(r"\[?(FILE|TRAIN|UNLABELLED)\]?(\.\.\.)?")
_NAMES = {"file", "old", "new", "unlabelled", "related", "soft_labels"}


def leaves(command, path=()):
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from leaves(inner, (*path, name))
    else:
        yield path, command


LEAVES = dict(leaves(cli))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encodings")
    table = [(label, f"{text} référence") for label, text in rows(60, seed=21)]
    lines = [
        ("label", "text"),
        *(("pos" if n % 2 else "neg", f"c'était réussi {n} référence") for n in range(60)),
    ]
    bad = "".join(f"{label},{text}\n" for label, text in lines)
    (folder / "bad.csv").write_bytes(bad.encode("windows-1252"))
    write_table(folder / "good.tsv", table)
    return folder


def written(case, place, out, finished):
    """The words of a case."""
    small = [*finished.data.small, "--preset", "fast", "--no-baselines", "--no-report"]
    smallest = [*finished.data.small, "--epochs", "1"]
    stands = {
        "BAD": [place / "bad.csv"],
        "GOOD": [place / "good.tsv"],
        "RUN": [finished.folder],
        "VECTORS": [finished.data.vectors],
        "SMALL": [*small, "--out", out],
        "SMALLEST": smallest,
        "EXPERIMENT": ["--seeds", "1", "--out", out],
        "PRETRAIN": [
            "--hidden-size",
            "4",
            "--vector-dimension",
            "4",
            "--epochs",
            "1",
            "--out",
            out,
        ],
    }
    stands |= {f"OUT{end}": [f"{out}{end}"] for end in ("", ".npy", ".html", ".txt")}
    words = itertools.chain(*(stands.get(word, [word]) for word in case.split()))
    return [str(word) for word in words]


def command_of(words):
    path = next(tuple(words[:n]) for n in (1, 2) if tuple(words[:n]) in LEAVES)
    return path, LEAVES[path]


@pytest.mark.parametrize("case", CASES)
def test_advice_on_an_encoding_can_be_followed(case, place, tmp_path, finished):
    words = written(case, place, tmp_path / "out", finished)
    _, command = command_of(words)
    said = call_main(*words)
    assert said.code == 1, said.err
    line = said.err.splitlines()[-1]
    assert line.startswith("error: ") and "bad.csv" in line and "is not UTF-8" in line
    if "--encoding" not in line:
        assert "save the file as UTF-8" in line
        return
    assert any("--encoding" in option.opts for option in command.params)
    said = call_main(*words, "--encoding", "windows-1252")
    assert "not UTF-8" not in said.err and "not expected" not in said.err, said.err


def test_every_argument_and_option_that_takes_a_file_is_among_the_cases(place, tmp_path, finished):
    bad, covered = str(place / "bad.csv"), COUNTED
    for case in CASES:
        path, command = command_of(words := written(case, place, tmp_path / "out", finished))
        given = command.make_context(path[-1], words[len(path) :]).params
        covered = covered | {
            (path, name)
            for name, value in given.items()
            if bad == value or (isinstance(value, tuple) and bad in value)
        }
    takes = {
        (path, one.name)
        for path, command in LEAVES.items()
        for one in command.params
        if one.name not in ("out", "vectors")  # which are UTF-8 or binary
        and (one.name in _NAMES or _TAKES_A_FILE.fullmatch(one.metavar or ""))
    }
    assert takes - covered == set()


def test_a_run_keeps_how_its_file_was_read_for_the_export(place, tmp_path, finished):
    run, given = tmp_path / "run", ("--encoding", "windows-1252")
    small = ("--preset", "fast", "--no-baselines", "--no-report", "--quiet", *finished.data.small)
    said = call_main("train", place / "bad.csv", *given, "--out", run, *small)
    assert said.code == 0, said.err
    static = ("export", run, "--format", "static", "--train", place / "bad.csv")
    said = call_main(*static, "--out", tmp_path / "a")
    assert said.code == 0 and "read as windows-1252" in said.err, said.err
    said = call_main(*static, "--out", tmp_path / "b", "--encoding", "windows-1256")
    assert said.code == 0 and "read as windows-1256" in said.err, said.err
    said = call_main("export", run, "--out", tmp_path / "c", *given)
    assert said.code == 2 and "--prune" in said.err and not (tmp_path / "c").exists()


def test_plain_text_in_another_encoding_is_told_and_read(place, tmp_path):
    (text := tmp_path / "posts.txt").write_bytes(
        "c'était réussi\ndéjà vu été\n".encode("cp1252") * 9
    )
    words = ("vectors", "train", text, "--dimension", 4, "--epochs", 1, "--out")
    said = call_main(*words, tmp_path / "a")
    assert said.code == 1 and not (tmp_path / "a").exists()
    assert "18 of 18 lines are not UTF-8, expected UTF-8: give --encoding windows-1252" in said.err
    said = call_main(*words, tmp_path / "b", "--encoding", "windows-1252")
    assert said.code == 0 and "read as windows-1252" in said.err and "marks" not in said.err
    near = call_main("vectors", "info", tmp_path / "b", "--nearest", "déjà", "--json").out
    assert '"in_table": true' in near
    # Of a text in UTF-8 with few damaged lines the encoding is no question.
    text.write_bytes("déjà vu été\n".encode() * 9 + b"d\xe9j\xe0\n")
    said = call_main(*words, tmp_path / "c")
    assert "1 of 10 lines are not UTF-8 and have replacement marks\n" in said.err


@pytest.mark.parametrize(
    "text", ["جودة ممتازة", "منتج جيد جدا", "ما عجبنيش بزاف", "نوعية رديئة", "3;بشحال هذا très bon"]
)
def test_short_arabic_is_guessed_as_windows_1256(text):
    """As ISO 8859-6, which hardly any program writes, these words are letters that mean nothing."""
    assert guessed(f"{text}\n".encode("windows-1256")) == "windows-1256"


@pytest.mark.parametrize("text", ["café\nmzyan\n", "très bien\nça va\n", "naïve « bon » à Paris"])
def test_few_accents_are_guessed_as_windows_1252(text):
    assert guessed(text.encode("windows-1252")) == "windows-1252"


def test_accents_of_the_macintosh_are_not_taken_for_windows_1252():
    german = "Der Film war schön, die Größe überzeugt, leider zu spät und überhaupt nicht gut\n"
    assert guessed(german.encode("mac-roman")) != "windows-1252"


def test_iso_8859_6_is_guessed_where_it_reads_better():
    assert guessed("ما عجبنيش بزاف هاد الفيلم\n".encode("iso-8859-6")) == "iso-8859-6"


def test_a_stray_line_far_down_in_a_file_of_utf8_gets_no_advice_that_cannot_work(call, tmp_path):
    path = tmp_path / "rows.csv"
    good = "".join(f"caf\u00e9 {n} had l9ahwa zwina bzaf a khouya,pos\n" for n in range(7000))
    path.write_bytes(f"text,label\n{good}".encode() + b"bad \xe9 row,pos\n")
    for more in ((), ("--encoding", "windows-1252")):
        said = call("data", "split", path, "--out", tmp_path / "out", *more)
        assert said.code == 1 and "line 7002: byte 0xe9 is not UTF-8" in said.err
        assert "save the line as UTF-8 or remove it" in said.err and "give --enc" not in said.err


def test_the_line_of_a_wrong_byte_is_counted_over_all_pieces():
    pieces = [b"a\nb\n", b"", b"c\nd\x81\n"]
    with pytest.raises(DataError, match=r"^x\.txt, line 4: found byte 0x81 "):
        list(transcoded(pieces, "windows-1252", "x.txt"))
