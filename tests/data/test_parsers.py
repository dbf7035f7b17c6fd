"""Parsers on small files laid out as the authors of each set lay out theirs."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile

import pytest

from superconext.core.errors import DataError
from superconext.data.fetch import CATALOGUE
from superconext.data.parsers import PARSERS


def parse(entry, tmp_path, **contents):
    """Write a file for each role and call the set's own parser with its own options."""
    paths = {}
    for role, content in contents.items():
        path = tmp_path / f"{role.replace('/', '_')}.bin"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        paths[role] = path
    entry = CATALOGUE[entry]
    return PARSERS[entry.parser](paths, entry.options)


def test_afrisenti(tmp_path):
    table = 'tweet\tlabel\n@user "wa3r" bzaf\tpositive\nخاوتي\\nوعلاش 😔\tnegative\n'
    parts = parse("afrisenti_arq", tmp_path, train=table, test="tweet\tlabel\nوالو\tneutral\n")
    assert parts == {
        "train": [("positive", '@user "wa3r" bzaf'), ("negative", "خاوتي وعلاش 😔")],
        "test": [("neutral", "والو")],
    }


def test_twifil(tmp_path):
    table = (
        "id\tPost\tlang\tpolarity\tPolarity Class\tEmotion\tTopic\tuserAge\tgender\n"
        '1\tقال: " ... سلام\tar\t0,00\tNeutral\tneutral\t--\t\t\n'
        "2\tYES 💜 https://t.co/Z\tund\t3,00\tPositive\t\t--\t\t\n"
    )
    assert parse("twifil", tmp_path, all=table) == {
        "all": [("Neutral", 'قال: " ... سلام'), ("Positive", "YES 💜 https://t.co/Z")]
    }


def test_mac(tmp_path):
    table = 'tweets,type,class\r\nروعة ,positive,standard\r\n"واو, بزاف ""مزيان""",mixed,dialectal'
    assert parse("mac", tmp_path, all=table) == {
        "all": [("positive", "روعة "), ("mixed", 'واو, بزاف "مزيان"')]
    }


def test_msac(tmp_path):
    arff = (
        "@relation 'datasets'\n\n@attribute text string\n@attribute @@class@@ {neg,pos}\n\n@data\n"
        "'منتوج رائع ....جميل',pos\n"
        "'_,\"أحسن, ',pos\n"
        "'l\\'argent \\\\ \\\"a\\\"\\tb',neg\n"
        "% a comment\n\n"
        "كلمة,neg\n"
        '"it\'s, fine",pos'
    )
    assert parse("msac", tmp_path, all=arff) == {
        "all": [
            ("pos", "منتوج رائع ....جميل"),
            ("pos", '_,"أحسن, '),
            ("neg", 'l\'argent \\ "a" b'),
            ("neg", "كلمة"),
            ("pos", "it's, fine"),
        ]
    }


def test_tsac(tmp_path):
    parts = parse(
        "tsac",
        tmp_path,
        **{
            "train/negative": "khayb\n\nقبيح\n",
            "train/positive": "bravo\n",
            "test/positive": "7lou",
        },
    )
    assert [row for row in parts["train"] if row[1]] == [
        ("negative", "khayb"),
        ("negative", "قبيح"),
        ("positive", "bravo"),
    ]
    assert parts["test"] == [("positive", "7lou")]


def test_astd(tmp_path):
    tweets = "خبر\tOBJ\nحلو\tPOS\nسيئ\tNEG\n\u2028مختلط\tNEUTRAL\n"
    parts = parse("astd", tmp_path, tweets=tweets, train="2\n0\n", dev="3", test="1\n")
    assert parts == {
        "train": [("NEG", "سيئ"), ("OBJ", "خبر")],
        "dev": [("NEUTRAL", "\u2028مختلط")],
        "test": [("POS", "حلو")],
    }


def test_label_first(tmp_path):
    parts = parse("trec", tmp_path, train="0 What is it ?\n4 Where ?\n", test=b"1 caf\xe9 \n1 \n")
    assert parts == {
        "train": [("0", "What is it ?"), ("4", "Where ?")],
        "test": [("1", "café "), ("1", "")],
    }


def test_scientific(tmp_path):
    lines = [
        {"text": "<< A >> inhibits [[ B ]].", "label": "INHIBITOR", "metadata": []},
        {"text": "two\nlines \u2026", "label": "SUBSTRATE", "metadata": {}},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    assert parse("chemprot", tmp_path, train=text) == {
        "train": [("INHIBITOR", "<< A >> inhibits [[ B ]]."), ("SUBSTRATE", "two\nlines …")]
    }


def glue(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in {"README": "x", **members}.items():
            archive.writestr(f"SST-2/{name}" + (".tsv" if name != "README" else ""), text)
    return buffer.getvalue()


def test_sst2_phrases(tmp_path):
    packed = glue(
        train='sentence\tlabel\nhide new " secretions \t0\n',
        dev="sentence\tlabel\na joy\t1\n",
        test="index\tsentence\n0\tuneasy\n",
    )
    assert parse("sst2_phrases", tmp_path, all=packed) == {
        "train": [("0", 'hide new " secretions ')],
        "test": [("1", "a joy")],
    }
    with pytest.raises(DataError, match=r"found no SST-2/dev.tsv in it"):
        parse("sst2_phrases", tmp_path, all=glue(train="sentence\tlabel\na\t0\n"))


def test_imdb(tmp_path):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name in (
            "train/pos/1_9.txt",
            "train/neg/0_1.txt",
            "train/unsup/0_0.txt",
            "test/pos/0_8.txt",
            "imdb.vocab",
            "train/urls_pos.txt",
        ):
            data = f"{name} <br /> café".encode()
            info = tarfile.TarInfo(f"aclImdb/{name}")
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    assert parse("imdb", tmp_path, all=buffer.getvalue()) == {
        "train": [
            ("neg", "train/neg/0_1.txt <br /> café"),
            ("pos", "train/pos/1_9.txt <br /> café"),
        ],
        "test": [("pos", "test/pos/0_8.txt <br /> café")],
    }


@pytest.mark.parametrize(
    ("entry", "role", "content", "said"),
    [
        ("afrisenti_ary", "train", "<html>\tnot found\n", "no column 'label'"),
        ("afrisenti_ary", "train", "tweet\tlabel\nalone\n", "line 2: found 1 columns"),
        ("mac", "all", 'tweets,type\n"open,x\n', "quote that is never closed"),
        ("msac", "all", "<html></html>", "no line @data"),
        ("msac", "all", "@data\n'open,pos\n", "line 2: found another row"),
        ("msac", "all", "@data\n'a',pos,more\n", "line 2: found another row"),
        ("trec", "train", f"0 fine\n{'x' * 50}\n", "line 2: found no label"),
        ("chemprot", "train", '{"text": "a"}\n', "line 1: found another line"),
        ("chemprot", "train", '{"text": "a", "label": 3}\n', "line 1"),
        ("chemprot", "train", "[1]\n", "line 1"),
        ("chemprot", "train", "404: Not Found", "line 1"),
        ("tsac", "test/positive", b"\xff\xfe", "is empty"),
        ("imdb", "all", b"<html></html>", "broken archive"),
        ("sst2_phrases", "all", b"<html></html>", "broken archive"),
    ],
)
def test_other_files_are_refused(tmp_path, entry, role, content, said):
    with pytest.raises(DataError, match=said) as caught:
        parse(entry, tmp_path, **{role: content})
    assert "\n" not in str(caught.value) and str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("number", ["7", "-1", "x", "٣", "1.0"])
def test_numbers_of_no_tweet(tmp_path, number):
    with pytest.raises(DataError, match=r"line 2: found"):
        parse("astd", tmp_path, tweets="a\tPOS\nb\tNEG\n", train=f"0\n{number}\n")
    with pytest.raises(DataError, match=r"line 2: found no tab"):
        parse("astd", tmp_path, tweets="a\tPOS\nb NEG\n", train="1\n")
