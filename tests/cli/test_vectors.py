"""`superconext vectors`: what is printed, written and refused; and the commands of its page."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
import shlex
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from superconext.cli import cli
from superconext.cli.vectors import vectors
from superconext.core.download import PublicFile
from superconext.text.normalize import Normalizer
from superconext.text.tokenize import Tokenizer
from superconext.vectors import catalogue, training
from superconext.vectors.catalogue import PublicVectors
from superconext.vectors.readers import read_vectors
from superconext.vectors.table import WordVectors
from superconext.vectors.training import train_vectors
from tests.cli.conftest import BAD, COMMON, GOOD, blame, call_main, environment, rows, write_table

cli.add_command(vectors)
TINY = ("--dimension", 6, "--epochs", 2)
DOCS = Path(__file__).parents[2] / "docs" / "vectors.md"


def sentences(count, seed):
    draw = random.Random(seed)
    words = [*GOOD, *BAD, *COMMON]
    return [" ".join(draw.choices(words, k=7)) for _ in range(count)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with text, labelled text and a small table; an empty cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "tweets.txt").write_text("\n".join(sentences(80, 0)) + "\n", encoding="utf-8")
    with gzip.open(tmp_path / "more.txt.gz", "wt", encoding="utf-8") as stream:
        stream.write("\n\n".join(sentences(40, 1)))
    for seed, part in ((2, "train"), (3, "dev"), (4, "test")):
        write_table(tmp_path / f"{part}.tsv", rows(40, seed=seed))
    draw = random.Random(3)
    lines = [f"{w} {draw.random():.4f} {draw.random():.4f} 0.5" for w in [*GOOD[1:], *COMMON]]
    (tmp_path / "glove.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def run(*words):
    """Call `superconext vectors`, expect success, return what it said."""
    said = call_main("vectors", *words)
    assert said.code == 0, said.err
    return said


def document(*words):
    return json.loads(run(*words, "--json").out)


def refused(*words):
    return blame(call_main("vectors", *words))


# Training


def test_training_prints_facts_and_writes_a_folder(folder):
    said = run("train", "tweets.txt", "--out", "made", *TINY)
    facts = dict(line.split(None, 1) for line in said.out.splitlines())
    made = read_vectors("made")
    assert int(facts["words"]) == len(made) and int(facts["dimension"]) == made.dimension == 6
    assert int(facts["tokens"]) == 80 * 7
    assert facts["sha256"] == made.sha256 and facts["profile"] == "arabic"
    assert facts["cached"] == "no" and float(facts["seconds"]) > 0
    assert "n-grams of 2 to 5" in facts["subwords"]
    assert sorted(p.name for p in (folder / "made").iterdir()) == [
        "info.json",
        "matrix.npy",
        "subword_rows.json",
        "subwords.npy",
        "tokenizer.json",
        "words.json",
    ]
    # No scratch file is left beside it.
    assert not [p for p in folder.iterdir() if p.name.startswith(("tmp", "."))]


@pytest.mark.parametrize("method", ["fasttext", "word2vec"])
def test_training_is_that_of_the_library_on_the_same_tokens(folder, method):
    options = ("--window", 3, "--min-count", 2, "--min-n", 2, "--max-n", 4, "--seed", 7)
    facts = document(
        "train",
        "tweets.txt",
        "more.txt.gz",
        "--out",
        "made",
        "--method",
        method,
        "--normalize",
        "arabizi",
        *TINY,
        *options,
    )
    split = Tokenizer(Normalizer("arabizi"))
    text = (folder / "tweets.txt").read_text("utf-8").splitlines()
    with gzip.open(folder / "more.txt.gz", "rt", encoding="utf-8") as stream:
        text += stream.read().split("\n\n")
    expected = train_vectors(
        [split(line) for line in text],
        method=method,
        dimension=6,
        epochs=2,
        window=3,
        min_count=2,
        min_n=2,
        max_n=4,
        seed=7,
    )
    made = read_vectors("made")
    assert made.words == expected.words
    np.testing.assert_array_equal(made.matrix, expected.matrix)
    assert facts["sha256"] == expected.sha256 and facts["tokens"] == 120 * 7
    recorded = json.loads((folder / "made" / "tokenizer.json").read_text())
    assert recorded == split.to_dict()


def test_the_same_text_is_trained_once(folder, monkeypatch):
    first = document("train", "tweets.txt", "--out", "one", *TINY)
    with monkeypatch.context() as patch:
        patch.setattr(training, "_gensim_model", None)
        # The file's name and place do not matter, its content does.
        (folder / "copy.txt").write_bytes((folder / "tweets.txt").read_bytes())
        again = document("train", "copy.txt", "--out", "two", *TINY)
    assert (first["cached"], again["cached"]) == (False, True)
    assert {**first, "out": 0, "cached": 0, "seconds": 0} == {
        **again,
        "out": 0,
        "cached": 0,
        "seconds": 0,
    }
    (folder / "copy.txt").write_text((folder / "tweets.txt").read_text("utf-8") + "zwin\n", "utf-8")
    assert not document("train", "copy.txt", "--out", "three", *TINY)["cached"]
    for more in (
        ("--normalize", "none"),
        ("--normalize", "auto-alef"),
        ("--seed", 1),
        ("--bridge", "moroccan"),
    ):
        assert not document("train", "tweets.txt", "--out", "four", "--force", *TINY, *more)[
            "cached"
        ]


def test_labels_are_no_words(folder):
    (folder / "ft.txt").write_text("__label__secret bnin bzaf had lfilm\n" * 9, "utf-8")
    table = [("secret", text) for _, text in rows(40, seed=5)]
    write_table(folder / "secret.tsv", table)
    facts = document("train", "ft.txt", "secret.tsv", "--out", "made", *TINY)
    assert facts["tokens"] == 9 * 4 + 40 * 5
    assert not {"secret", "__label__secret", "label", "text"} & set(read_vectors("made").words)


def test_a_damaged_line_is_counted_and_a_mark_of_order_is_no_letter(folder):
    body = "\ufeffzwin bnin kan\n".encode() + b"caf\xe9 zwin\n" + b"\n  \n" + b"zwin bnin kan\n" * 9
    (folder / "odd.txt").write_bytes(body)
    said = run("train", "odd.txt", "--out", "made", *TINY)
    assert "note: odd.txt: 1 of 13 lines are not UTF-8" in said.err
    assert "zwin" in read_vectors("made").words
    assert not any("\ufeff" in word for word in read_vectors("made").words)


def test_text_in_utf_16_is_read(folder):
    (folder / "wide.txt").write_text("zwin bnin\nkhayb\n", "utf-16")
    run("train", "wide.txt", "--out", "made", *TINY)
    assert {"zwin", "bnin", "khayb"} <= set(read_vectors("made").words)


def test_auto_looks_at_every_file(folder):
    (folder / "latin.txt").write_text("the cat sat on the mat\n" * 30, "utf-8")
    assert document("train", "latin.txt", "--out", "a", *TINY)["profile"] == "latin"
    assert document("train", "latin.txt", "tweets.txt", "--out", "b", *TINY)["profile"] == "arabic"


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("none.txt", None, "no such file"),
        ("a.txt", b"zwin\nb\0nin\n", "line 2: found a NUL"),
        ("a.txt", b"", "a.txt: no text found"),
        ("a.txt.gz", gzip.compress(b"zwin bnin\n" * 999, mtime=0)[:-20], "broken gzip"),
        ("a.tsv", b"label\ttext\nneg\t\n", "no row with a text"),
    ],
)
def test_text_that_cannot_be_trained_on(folder, name, body, said):
    if body is not None:
        (folder / name).write_bytes(body)
    line = refused("train", name, "--out", "made", *TINY)
    assert said in line, line
    assert not (folder / "made").exists()


def test_impossible_settings(folder):
    assert "min_n=4" in refused(
        "train", "tweets.txt", "--out", "m", "--min-n", 4, "--max-n", 3, *TINY
    )
    assert "directory" in refused("train", ".", "--out", "m", *TINY)
    rule = refused("train", "tweets.txt", "--out", "m", "--normalize", "auto+nonsense", *TINY)
    assert "'nonsense' in normalize" in rule


# What stands in the way


@pytest.mark.parametrize("verb", [("train", "tweets.txt", *TINY), ("convert", "glove.txt")])
def test_the_folder_to_write(folder, verb):
    run(*verb, "--out", "made")
    before = (folder / "made" / "info.json").stat().st_mtime_ns
    assert "made exists already" in refused(*verb, "--out", "made")
    assert (folder / "made" / "info.json").stat().st_mtime_ns == before
    run(*verb, "--out", "made", "--force")
    run(*verb, "--out", "deep/er/made")
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.tex").write_text("all of it")
    assert "no folder of word vectors" in refused(*verb, "--out", "mine", "--force")
    assert "no folder of word vectors" in refused(*verb, "--out", "glove.txt", "--force")
    assert (folder / "mine" / "thesis.tex").read_text() == "all of it"
    assert "names no new folder" in refused(*verb, "--out", "..")


# Looking


def test_info_of_a_folder_and_of_a_file(folder):
    run("train", "tweets.txt", "--out", "made", *TINY)
    facts, plain = document("info", "made"), document("info", "glove.txt")
    assert facts["dimension"] == 6 and facts["profile"] == "arabic"
    assert facts["subwords"] == {"buckets": 100_000, "min_n": 2, "max_n": 5}
    assert plain["words"] == len(GOOD) - 1 + len(COMMON) and plain["subwords"] is None
    assert plain["sha256"] == hashlib.sha256((folder / "glove.txt").read_bytes()).hexdigest()
    assert plain["name"] == "glove.txt" and plain["notes"] == [] and "profile" not in plain
    (folder / "glove.txt").write_text(
        (folder / "glove.txt").read_text("utf-8") + "bad row\n", "utf-8"
    )
    said = run("info", "glove.txt")
    assert "note: 1 malformed row " in said.err and "subwords   none" in said.out


def test_coverage_counted_by_hand(folder):
    table = WordVectors(["zwin", "Kan", "bnin"], np.eye(3, dtype=np.float32))
    table.save("table")
    (folder / "text.txt").write_text("zwin zwin kan\nbzaf bzaf bzaf\nwalou, zwin\n", "utf-8")
    report = document("info", "table", "--on", "text.txt", "--normalize", "none")["coverage"]
    assert (report["types"], report["tokens"]) == (5, 9)
    assert report["exact"] == {
        "types": 1,
        "tokens": 3,
        "type_share": 1 / 5,
        "token_share": 3 / 9,
    }
    assert (report["any_case"]["types"], report["any_case"]["tokens"]) == (2, 4)
    assert report["served"] == report["any_case"]  # no subwords in this table
    assert report["missing"] == [["bzaf", 3], [",", 1], ["walou", 1]]
    said = run("info", "table", "--on", "text.txt", "--normalize", "none").out
    assert "bzaf 3, , 1, walou 1" in said and re.search(r"exact +1 +20\.0% +3 +33\.3%", said)


def test_coverage_with_subwords_and_of_a_labelled_file(folder):
    run("train", "tweets.txt", "--out", "made", *TINY)
    report = document("info", "made", "--on", "train.tsv")["coverage"]
    # The labels and the heading are not among the words.
    assert report["tokens"] == 40 * 5 and report["types"] <= len({*GOOD, *BAD, *COMMON})
    assert report["profile"] == "arabic"
    assert report["served"]["token_share"] == 1.0
    (folder / "new.txt").write_text("zwinzwin bninbnin\n", "utf-8")
    report = document("info", "made", "--on", "new.txt")["coverage"]
    assert report["exact"]["types"] == 0 and report["served"]["types"] == 2
    assert report["missing"] == [["bninbnin", 1], ["zwinzwin", 1]]
    # Read as the table's words were, whatever the text itself would suggest.
    assert report["profile"] == "arabic"
    assert (
        document("info", "made", "--on", "new.txt", "--normalize", "latin")["coverage"]["profile"]
        == "latin"
    )


def test_nearest(folder):
    matrix = np.array([[1, 0], [0.8, 0.6], [0, 1], [-1, 0]], dtype=np.float32)
    WordVectors(["a", "b", "c", "d"], matrix).save("table")
    found = document("info", "table", "--nearest", "a")["nearest"]
    assert (found["word"], found["in_table"]) == ("a", True)
    assert [(row["word"], round(row["cosine"], 4)) for row in found["words"]] == [
        ("b", 0.8),
        ("c", 0.0),
        ("d", -1.0),
    ]
    assert " 0.800  b\n" in run("info", "table", "--nearest", "a").out
    assert "no vector for 'zzz'" in refused("info", "table", "--nearest", "zzz")


def test_the_word_is_spelt_as_those_of_the_table(folder):
    run("train", "tweets.txt", "--out", "made", *TINY)
    found = document("info", "made", "--nearest", "ZWIN")["nearest"]
    assert found["word"] == "zwin" and found["in_table"]
    assert len(found["words"]) == 10 and "zwin" not in {row["word"] for row in found["words"]}
    composed = document("info", "made", "--nearest", "zwinzwin")["nearest"]
    assert not composed["in_table"]
    assert "of its n-grams" in run("info", "made", "--nearest", "zwinzwin").out


def test_vectors_that_cannot_be_read(folder):
    assert "no such file" in refused("info", "none.txt")
    run("convert", "glove.txt", "--out", "made")
    (folder / "made" / "tokenizer.json").write_text("[1")
    assert "tokenizer.json" in refused("info", "made")
    (folder / "made" / "matrix.npy").unlink()
    assert "not a readable folder" in refused("info", "made")
    assert "no such file" in refused("info", "glove.txt", "--on", "none.txt")


# Converting


def test_converting_keeps_every_row(folder):
    facts = document("convert", "glove.txt", "--out", "made")
    given, made = read_vectors("glove.txt"), read_vectors("made")
    assert made.words == given.words and facts["words"] == len(given)
    np.testing.assert_array_equal(made.matrix, given.matrix)
    assert facts["sha256"] == given.sha256 and facts["out"] == "made"
    assert isinstance(made.matrix, np.memmap)


def test_converting_a_part(folder):
    words = read_vectors("glove.txt").words
    assert document("convert", "glove.txt", "--limit", 3, "--out", "a")["words"] == 3
    assert read_vectors("a").words == words[:3]
    (folder / "text.txt").write_text(f"{words[5]} {words[7]} unheard\n", "utf-8")
    run("convert", "glove.txt", "--words-of", "text.txt", "--normalize", "none", "--out", "b")
    assert read_vectors("b").words == [words[5], words[7]]
    run(
        "convert",
        "glove.txt",
        "--words-of",
        "text.txt",
        "--normalize",
        "none",
        "--limit",
        2,
        "--out",
        "c",
    )
    assert read_vectors("c").words == [*words[:2], words[5], words[7]]


def test_converting_a_folder_keeps_its_tokenizer_and_subwords(folder):
    run("train", "tweets.txt", "--out", "made", *TINY)
    run("convert", "made", "--limit", 4, "--out", "part")
    made, part = read_vectors("made"), read_vectors("part")
    np.testing.assert_array_equal(part.lookup(["newword"])[0], made.lookup(["newword"])[0])
    assert (folder / "part" / "tokenizer.json").read_bytes() == (
        folder / "made" / "tokenizer.json"
    ).read_bytes()
    assert "made itself, which is read" in refused("convert", "made", "--out", "./made", "--force")


# Fetching


@pytest.fixture
def mirror(folder, monkeypatch):
    """A server with one file, known to the catalogue as `tiny`."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (folder / "www").mkdir()
    body = gzip.compress((folder / "glove.txt").read_bytes(), mtime=0)
    (folder / "www" / "tiny.gz").write_bytes(body)

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *words):
            super().__init__(*words, directory=str(folder / "www"))

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    file = PublicFile(f"{url}/tiny.gz", hashlib.md5(body).hexdigest(), len(body), 10**6)
    entry = PublicVectors("tiny", "none", file)
    monkeypatch.setitem(catalogue.NAMED, "tiny", entry)
    yield url
    server.shutdown()
    server.server_close()


def test_fetching(folder, mirror):
    said = run("fetch", "tiny")
    path = Path(said.out.strip())
    assert path == folder / "cache" / "downloads" / "tiny.gz"
    assert "MD5 as published" in said.err and "licence: none" in said.err
    assert document("info", path)["words"] == len(GOOD) - 1 + len(COMMON)
    facts = document("fetch", "tiny", "--out", "here.gz", "--url-base", mirror)
    assert facts["path"] == "here.gz" and facts["downloaded"] and facts["licence"] == "none"
    assert facts["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert not document("fetch", "tiny", "--out", "here.gz")["downloaded"]
    assert run("fetch", "tiny", "--quiet").err == ""


def test_fetching_in_vain(folder, mirror):
    assert "404" in refused("fetch", "glove-twitter-25", "--url-base", mirror)
    (folder / "www" / "tiny.gz").write_bytes(b"other")
    assert "as published" in refused("fetch", "tiny", "--out", "x.gz")
    assert not list(folder.glob("x.gz*"))
    unknown = call_main("vectors", "fetch", "glove-twitter-20")
    assert unknown.code == 2 and "did you mean" in unknown.err


# Usage


@pytest.mark.parametrize(
    "words",
    [
        ("train",),
        ("train", "a.txt"),
        ("train", "a.txt", "--out", "x", "--dimension", "0"),
        ("train", "a.txt", "--out", "x", "--method", "glove"),
        ("train", "a.txt", "--out", "x", "--normalize", "greek"),
        ("info",),
        ("convert", "a"),
        ("convert", "a", "--out", "b", "--limit", "-1"),
        ("fetch",),
        ("nonsense",),
    ],
)
def test_wrong_usage(words):
    said = call_main("vectors", *words)
    assert said.code == 2 and said.out == ""


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from superconext.cli import cli, main\n"
        "from superconext.cli.vectors import vectors\n"
        "cli.add_command(vectors)\n"
        "for verb in ([], ['train'], ['info'], ['convert'], ['fetch']):\n"
        "    try: main(['vectors', *verb, '--help'])\n"
        "    except SystemExit as leaving: assert not leaving.code\n"
        "heavy = {'torch', 'sklearn', 'gensim', 'numpy', 'urllib.request'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "glove-wiki-gigaword-50" in done.stdout and "--words-of" in done.stdout


# The page


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", DOCS.read_text("utf-8"), re.M | re.S)


def test_every_command_of_the_page_runs(folder):
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    assert len(lines) > 8
    for line in lines:
        _, *words = shlex.split(line)
        if words[:2] == ["vectors", "fetch"]:
            assert catalogue.find(words[2]) and words[3:] in ([], ["--out", "vectors/"])
            continue
        if words[:2] == ["vectors", "train"] and "--epochs" not in words:
            words += ["--epochs", "1"]
        if words[0] == "train":
            words += ["--epochs", "1", "--hidden-size", "4", "--no-baselines", "--quiet"]
        said = call_main(*words)
        assert said.code == 0, (line, said.err)
    for block in blocks("python"):
        scope = {}
        exec(block, scope)
        assert scope["rows"].shape == (2, 100) and scope["found"].all()
    named = set(re.findall(r"`(glove-[a-z-]+)\d+`", DOCS.read_text("utf-8")))
    assert named == {re.sub(r"\d+$", "", name) for name in catalogue.NAMED}


def test_a_profile_named_keeps_the_bridge_that_the_vectors_were_trained_with(folder):
    lines = ["chkoun mchat l mdrasa", "شكون مشات ل مدرسة"] * 20
    (folder / "two.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    rules = ("--normalize", "arabic", "--bridge", "moroccan")
    run("train", "two.txt", "--out", "bridged", *rules, *TINY)
    plain, named = (
        document("info", "bridged", "--on", "two.txt", *more)["coverage"]
        for more in ((), ("--normalize", "arabic"))
    )
    assert plain == named and plain["exact"]["tokens"] > 0


def test_an_encoding_is_that_of_the_text_whose_words_are_kept(folder):
    said = call_main("vectors", "convert", "glove.txt", "--out", "g", "--encoding", "latin-1")
    assert said.code == 2 and "--words-of" in said.err and not (folder / "g").exists()


def test_many_words_in_another_encoding_are_warned_of(folder):
    (folder / "l1.txt").write_bytes("".join(f"é{n} 1 2\n" for n in range(30)).encode("latin-1"))
    assert "warning: " in run("info", "l1.txt").err
