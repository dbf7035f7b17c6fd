"""`data pool`: many files to one clean text, by oracles in plain Python and by kills."""

from __future__ import annotations

import bz2
import gzip
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from superconext.core.errors import StoppedEarly
from superconext.core.progress import Progress
from superconext.data import pool
from tests.cli.conftest import blame, call_main, environment

SAMPLE = Path(__file__).parents[2] / "data" / "sample"


def pooled(tmp_path, *words, name="pool.txt"):
    """Lines of the pool, and its report."""
    said = call_main("data", "pool", *words, "--out", tmp_path / name, "--json", "--force")
    assert said.code == 0, said.err
    report = json.loads(said.out)
    lines = (tmp_path / name).read_text(encoding="utf-8").splitlines()
    assert report["kept"] == len(lines)
    for row in report["sources"]:
        reasons = {key: n for key, n in row.items() if key not in ("source", "read", "kept")}
        assert row["read"] == row["kept"] + sum(reasons.values())
    return lines, report["sources"]


def test_lines_that_cannot_be_read_are_told_with_what_to_do(tmp_path):
    bad = write(tmp_path / "bad.txt", b"zwin bzaf\n\xff\xe0 bad\n\xe0\xe1\n")
    for words in ((), ("--json",)):
        said = call_main("data", "pool", bad, "--out", tmp_path / "pool.txt", "--force", *words)
        assert said.code == 0
        assert "left out 2 lines that cannot be read; expected text in UTF-8" in said.err
        assert "--encoding" in said.err
    good = write(tmp_path / "good.txt", "zwin bzaf\n")
    assert "--encoding" not in call_main("data", "pool", good, "--out", tmp_path / "g.txt").err


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


SRT = """1
00:00:01,000 --> 00:00:02,500
<i>واش راك</i> لاباس؟

2
00:00:03,000 --> 00:00:04,000
- واش راك لاباس؟
- {\\an8}الحمد لله بزاف

3
00:00:05,000 --> 00:00:06,000
[موسيقى] ♪
"""
VTT = """WEBVTT

NOTE nobody says this

00:01.000 --> 00:02.000 align:start
hadi hiya<00:00:01.500><c> bdaya</c>

00:02.000 --> 00:03.000
hadi hiya bdaya
w hadi l3aqba &amp; tamam
"""
WHATSAPP = """[12/03/2023, 14:22:01] Groupe: \u200eMessages are encrypted
[12/03/2023, 14:22:01] Amine: salam khouya
labas 3lik
[12/03/2023, 2:23:07\u202fPM] Sara: \u200eimage omitted
12.3.23, 14:24 - Sara: chouf https://x.example/a @amine mliha bzaf <This message was edited>
12/03/2023, 14:25 - Amine left
12/03/2023 à 14:26 - Sara: wach rak
12/03/2023, a las 14:27 - Sara: mliha nchallah
١٢/٣/٢٠٢٣، ١٠:٠٠ م - أمين: مرحبا بيك خويا
"""
TELEGRAM = {
    "name": "chat",
    "messages": [
        {"id": 1, "type": "service", "text": "joined the group"},
        {"id": 2, "type": "message", "from": "A", "text": 'un "mot" [deux]'},
        {"id": 3, "text": ["voir ", {"type": "link", "text": "http://x"}, "la suite"]},
        {"id": 4, "type": "message", "text": ""},
    ],
}  # fmt: skip
WIKI = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/"><siteinfo/>
<page><title>A</title><ns>0</ns><revision><text>{{Infobox|a={{b}}}}
'''Casa''' est une [[ville|grande ville]] du [[Maroc]].&lt;ref name="x"&gt;non&lt;/ref&gt;
Elle a un port&lt;ref name="y" /&gt;.
[[Fichier:x.jpg|vignette|une [[photo]] ici]]
== Titre ==
{| class="t"
| cellule du tableau
|}
* point de liste [http://x.example lien externe] utile
[[Catégorie:Villes]]</text></revision></page>
<page><title>Talk</title><ns>1</ns><revision><text>on en parle ici</text></revision></page>
<page><title>R</title><ns>0</ns><redirect title="A"/><revision><text>#REDIRECT [[A ville]]
</text></revision></page>
</mediawiki>
"""

FORMATS = {
    "a.srt": (SRT, ["واش راك لاباس؟", "الحمد لله بزاف"]),
    "a.vtt": (VTT, ["hadi hiya bdaya", "w hadi l3aqba & tamam"]),
    "chat.txt": (
        WHATSAPP,
        [
            "salam khouya labas 3lik",
            "chouf mliha bzaf",
            "wach rak",
            "mliha nchallah",
            "مرحبا بيك خويا",
        ],
    ),
    "result.json": (json.dumps(TELEGRAM, indent=1), ['un "mot" [deux]', "voir la suite"]),
    "one.json": (json.dumps({"chats": {"list": [TELEGRAM]}}), ['un "mot" [deux]', "voir la suite"]),
    "wiki.xml": (
        WIKI,
        [
            "Casa est une grande ville du Maroc.",
            "Elle a un port .",
            "point de liste lien externe utile",
        ],
    ),
    "a.csv": (
        'id;texte\n1;un deux\n2;"trois, <b>quatre</b> &amp; cinq"\n',
        ["un deux", "trois, quatre & cinq"],
    ),
    "a.jsonl": (
        '{"text": "un\\ndeux"}\n{"text": 1}\nbroken\n{"text": "RT @x a b c"}\n',
        ["un deux", "a b c"],
    ),
    "a.txt": (
        "un deux trois\n\nseul\ncourrier a@b.example ici\n",
        ["un deux trois", "courrier ici"],
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_plain_and_packed(tmp_path, name):
    content, expected = FORMATS[name]
    lines, _ = pooled(tmp_path, write(tmp_path / name, content), "--no-near")
    assert lines == expected
    write(tmp_path / f"{name}.gz", gzip.compress(content.encode()))
    assert pooled(tmp_path, tmp_path / f"{name}.gz", "--no-near")[0] == expected
    write(tmp_path / f"{name}.bz2", bz2.compress(content.encode()))
    assert pooled(tmp_path, tmp_path / f"{name}.bz2", "--no-near")[0] == expected
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(tmp_path / name, f"folder/{name}")
        archive.writestr("photo.jpg", b"\xff\xd8\xff")
    lines, (row,) = pooled(tmp_path, tmp_path / "all.zip", "--no-near")
    assert lines == expected and row["source"].endswith(f"all.zip:folder/{name}")


def test_texts_without_labels_cannot_be_trained_on(tmp_path):
    path = write(tmp_path / "a.srt", SRT)
    assert "found subtitles" in blame(call_main("data", "inspect", path))


@pytest.mark.parametrize(
    "name,content,said",
    [
        ("a.xml", "<feed><p>x</p></feed>", "XML of <feed>"),
        ("a.xml", "<html><p>x</p></html>", "a web page (HTML)"),
        ("a.xml", WIKI[:300], "broken"),
        ("a.xml", '<!DOCTYPE m [<!ENTITY a "b">]><mediawiki/>', "entities"),
        ("a.zip", b"PK\x03\x04broken", "archive"),
        ("a.gz", b"\x1f\x8bbroken", "broken gzip"),
        ("a.json", '{"messages": [{"text": "a b"}', "never closed"),
        ("a.txt", "seul\n\n", "no line is kept"),
    ],
)
def test_files_that_are_refused(tmp_path, name, content, said):
    path = write(tmp_path / name, content)
    line = blame(call_main("data", "pool", path, "--out", tmp_path / "pool.txt"))
    assert said in line and name in line and not (tmp_path / "pool.txt").exists()


def test_archives_that_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "some.zip", "w") as archive:
        archive.writestr("a.txt", "kan had zwin\n")
        archive.writestr("scan.pdf", "%PDF")
    said = call_main("data", "pool", tmp_path / "some.zip", "--out", tmp_path / "some.txt")
    assert said.code == 0 and "no known format, passed over: scan.pdf" in said.err
    with zipfile.ZipFile(tmp_path / "none.zip", "w") as archive:
        archive.writestr("photo.jpg", b"\xff")
    assert "no file of a known" in blame(
        call_main("data", "pool", tmp_path / "none.zip", "--out", tmp_path / "p")
    )
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("a.txt", b" " * (100 << 20))
    assert "beyond belief" in blame(
        call_main("data", "pool", tmp_path / "bomb.zip", "--out", tmp_path / "p")
    )
    assert call_main("data", "pool", tmp_path / "p", "--out", tmp_path / "p").code == 2


# Filters, against oracles in plain Python on the project's own sample, in both scripts


def words_of(text):
    return re.findall(r"[^\W_]+", text.casefold())


def grams(text):
    return {f" {text} "[i : i + 4] for i in range(len(text) - 1)}


@pytest.fixture(scope="module")
def sample():
    lines = (SAMPLE / "unlabelled.txt").read_text(encoding="utf-8").splitlines()[:240]
    assert any("\u0600" < c < "\u06ff" for c in "".join(lines)) and "a" in "".join(lines)
    return lines


def test_repeats_and_near_repeats(tmp_path, sample):
    copies = [line.upper() + " !!!" for line in sample[::3]]
    near = [line + " واه" for line in sample[1::3] if len(line) > 40]
    path = write(tmp_path / "a.txt", "\n".join([*sample, *copies, *near]))
    lines, (row,) = pooled(tmp_path, path, "--normalize", "latin")
    kept: list[str] = []
    lost = {"repeat": 0, "near repeat": 0, "short": 0}
    for line in [*sample, *copies, *near]:
        words = " ".join(words_of(line))
        similar = max(
            (len(grams(words) & grams(other)) / len(grams(words) | grams(other)) for other in kept),
            default=0,
        )
        if len(words.split()) < 2:
            lost["short"] += 1
        elif words in kept:
            lost["repeat"] += 1
        elif similar >= 0.8:
            lost["near repeat"] += 1
        else:
            kept.append(words)
    assert abs(row["kept"] - len(kept)) <= 0.02 * len(kept)
    assert abs(row["near repeat"] - lost["near repeat"]) <= 0.02 * len(kept)
    assert abs(row["repeat"] - lost["repeat"]) <= 0.02 * len(kept)
    strict, _ = pooled(tmp_path, path, "--normalize", "latin", "--no-near")
    assert len({" ".join(words_of(line)) for line in strict}) == len(strict) > len(lines)


ENGLISH = [
    "the service was very slow and nobody said sorry to us about this",
    "we will come back next year with all of our friends",
    "a quiet place for a coffee and something sweet after work",
    "there were not enough chairs for everybody who had booked",
    "she told me that it would be ready on monday",
]


@pytest.mark.parametrize("mixed", [True, False])
def test_other_languages(tmp_path, sample, mixed):
    english = [f"{a.split()[i % 5]} {b} {i}" for i in range(10) for a in ENGLISH for b in ENGLISH]
    files = [[*sample, *english]] if mixed else [sample, english]
    paths = [write(tmp_path / f"{i}.txt", "\n".join(f)) for i, f in enumerate(files)]
    like = ("--like", SAMPLE / "train.tsv", "--no-near")
    lines, rows = pooled(tmp_path, *paths, *like)
    kept = set(lines)
    assert sum(line in kept for line in english) <= 0.02 * len(english)
    every, _ = pooled(tmp_path, write(tmp_path / "own.txt", "\n".join(sample)), "--no-near")
    assert sum(line in kept for line in every) >= 0.95 * len(every)
    assert sum(row["other language"] for row in rows) >= 0.9 * len(set(english))
    said = call_main("data", "pool", *paths, *like, "--out", tmp_path / "shown.txt")
    assert said.err.count("other language: ") == 5
    assert ("all" in said.out) is not mixed
    unlike = ("--unlike", write(tmp_path / "en.txt", "\n".join(english[::2])))
    again, _ = pooled(tmp_path, *paths, *like, *unlike)
    assert len(set(again) & set(english)) <= len(kept & set(english))
    assert call_main("data", "pool", *paths, *unlike, "--out", tmp_path / "x").code == 2


def test_labelled_texts_are_left_out(tmp_path):
    table = (SAMPLE / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]
    texts = [line.split("\t", 1)[1] for line in table]
    path = write(
        tmp_path / "a.txt", "\n".join(f'"{text}" !' for text in texts) + "\nبقات وحدها هنا\n"
    )
    leave = ("--leave-out", SAMPLE / "test.tsv", "--no-near")
    lines, (row,) = pooled(tmp_path, path, *leave)
    assert lines == ["بقات وحدها هنا"] and row["left out"] == len(texts)


# Stops


SLOW = """
import superconext.data.pool as p, time, sys; p._BATCH = 50; p._SAVED = 100
judged = p._judged
def slow(*a): time.sleep(0.02); return judged(*a)
p._judged = slow
from superconext.cli import main; main(sys.argv[1:])
"""


def command_of(*words):
    return [sys.executable, "-c", SLOW, "data", "pool", *map(str, words)]


def stop_at(command, state, line, number):
    """Send the command this signal once so many lines are on the disk; its exit code and stderr."""
    process = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True)
    for _ in range(2000):
        if state.exists() and json.loads(state.read_text())["line"] >= line:
            break
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, number)
    return process.wait(), process.stderr.read()


def test_a_pool_that_was_killed_goes_on_to_the_same_bytes_and_counts(tmp_path, sample):
    many = [f"{line} {word}" for word in ("alif", "ba", "ta", "tha", "jim") for line in sample]
    many += many[200:400]  # repeats of near repeats
    path = write(tmp_path / "a.txt.gz", gzip.compress("\n".join(many).encode()))
    other = write(tmp_path / "b.srt", SRT)
    whole, rows = pooled(tmp_path, path, other)
    assert rows[0]["near repeat"] > 300
    shown = json.loads(
        call_main("data", "pool", path, other, "--out", tmp_path / "shown.txt", "--json").out
    )["dropped"]
    out = tmp_path / "killed.txt"
    command = command_of(path, other, "--out", out, "--json")
    state = out.with_name("killed.txt.part.json")
    for line in (100, 600):
        stop_at(command, state, line, signal.SIGKILL)
        assert not out.exists()
    done = subprocess.run(command, env=environment(), capture_output=True, check=True)
    assert b"was stopped while writing" in done.stderr and b"; what it wrote is kept" in done.stderr
    assert b"resuming" in done.stderr
    assert out.read_text(encoding="utf-8").splitlines() == whole
    report = json.loads(done.stdout)
    assert report["sources"] == rows and report["dropped"] == shown
    assert not state.exists() and not out.with_name("killed.txt.part").exists()


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_pool_that_is_asked_to_end_says_that_it_can_be_resumed(tmp_path, sample, number):
    many = [f"{line} {word}" for word in ("alif", "ba", "ta", "tha", "jim") for line in sample]
    path, out = write(tmp_path / "a.txt", "\n".join(many)), tmp_path / "pool.txt"
    command = command_of(path, "--out", out)
    code, err = stop_at(command, tmp_path / "pool.txt.part.json", 100, number)
    last = err.splitlines()[-1]
    assert code == 1 and last.startswith("error: interrupted; what was kept so far is in ")
    assert last.endswith("pool.txt.part: repeat the command to resume")
    done = subprocess.run(command, env=environment(), capture_output=True, check=True)
    assert b"resuming after" in done.stderr
    assert sorted(found.name for found in tmp_path.iterdir()) == ["a.txt", "pool.txt"]


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("end", [".part", ".part.json"])
def test_a_file_of_the_users_own_is_not_taken_for_an_unfinished_pool(tmp_path, end):
    path = write(tmp_path / "a.txt", "un deux trois\n")
    own = write(tmp_path / f"pool.txt{end}", "ma liste\n")
    words = ("data", "pool", path, "--out", tmp_path / "pool.txt")
    line = blame(call_main(*words))
    assert f"{own} exists and is not of an unfinished pool" in line and "rename or remove" in line
    assert own.read_text() == "ma liste\n" and names_in(tmp_path) == ["a.txt", own.name]
    own.unlink()
    assert call_main(*words).code == 0


@pytest.mark.parametrize("end", ["", ".part", ".part.json"])
@pytest.mark.parametrize("role", [None, "--leave-out", "--like"])
def test_a_file_that_is_read_is_not_written(tmp_path, end, role):
    path = write(tmp_path / "a.txt", "un deux trois\n")
    read = write(tmp_path / f"pool.txt{end}", "quatre cinq six\n")
    words = [read] if role is None else [path, role, read]
    said = call_main("data", "pool", *words, "--out", tmp_path / "pool.txt", "--force")
    assert said.code == 2
    line = said.err
    assert f"{read} is one of the files, and would be written" in line
    assert read.read_text() == "quatre cinq six\n"


def test_what_cannot_be_read_is_shown(tmp_path):
    rows = [{"text": "kan had zwin"}, {"text": ["a b", "c d"]}]
    path = write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    said = call_main("data", "pool", path, "--out", tmp_path / "p.txt")
    assert "unreadable: " in said.err and "line 2: 'text' has several values" in said.err
    other = write(tmp_path / "b.jsonl", '{"n": "kan had zwin"}\n')
    line = blame(call_main("data", "pool", other, "--out", tmp_path / "q.txt"))
    assert "1 unreadable; " in line and "no column 'text', found 'n'" in line


def test_a_pool_of_nothing_leaves_nothing(tmp_path):
    path = write(tmp_path / "a.txt", "seul\n")
    assert "no line is kept" in blame(call_main("data", "pool", path, "--out", tmp_path / "p.txt"))
    assert names_in(tmp_path) == ["a.txt"]


def test_an_unfinished_pool_of_other_files_is_discarded_with_a_word(tmp_path, sample):
    path, out = write(tmp_path / "a.txt", "\n".join(sample)), tmp_path / "pool.txt"
    stop_at(command_of(path, "--out", out), tmp_path / "pool.txt.part.json", 100, signal.SIGKILL)
    other = write(tmp_path / "b.txt", "un deux trois\n")
    said = call_main("data", "pool", other, "--out", out)
    assert said.code == 0 and "pool.txt.part, an unfinished pool, is discarded" in said.err
    assert out.read_text() == "un deux trois\n"
    assert names_in(tmp_path) == ["a.txt", "b.txt", "pool.txt"]


def test_a_full_disk_is_named(tmp_path, sample):
    resource = pytest.importorskip("resource")
    path = write(tmp_path / "a.txt", "\n".join(sample))

    def small():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    command = command_of(path, "--out", tmp_path / "pool.txt")
    done = subprocess.run(
        command, env=environment(), capture_output=True, text=True, preexec_fn=small
    )
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and last.startswith(f"error: {tmp_path / 'pool.txt.part'}: File")


@pytest.mark.parametrize("role", ["--leave-out", "--like", "--unlike"])
def test_standard_input_is_refused_in_every_role(tmp_path, role):
    text = write(tmp_path / "text.txt", "zwin bzaf lyoum\nlabas 3lik khouya\n")
    words = [text, role, "-", *(["--like", text] if role == "--unlike" else [])]
    said = call_main("data", "pool", *words, "--out", tmp_path / "p.txt", stdin=b"zwin bzaf\n")
    assert said.code == 2
    assert "error: -: text is read several times; expected a file: save it as one" in said.err


def test_whatsapp_of_a_phone_in_arabic(call, tmp_path):
    day, comma, sender = (
        "\u200f12\u200f/3\u200f/2024",
        "\u060c",
        "\u0645 - \u0633\u0627\u0631\u0629",
    )
    lines = [f"{day}{comma} 10:{n:02d} {sender}: sbah lkhir {n} a khoya\n" for n in range(20)]
    (tmp_path / "chat.txt").write_text("".join(lines), encoding="utf-8")
    out = tmp_path / "pool.txt"
    assert call("data", "pool", tmp_path / "chat.txt", "--out", out).code == 0
    assert out.read_text(encoding="utf-8").splitlines()[0] == "sbah lkhir 0 a khoya"


def test_a_pool_of_one_template_drops_most_near_repeats(tmp_path):
    from tests.data.test_near_duplicates import similarity, template

    texts, kept = template(700), []
    for text in texts:
        if all(similarity(text, other) < 0.8 for other in kept):
            kept.append(text)
    _, (row,) = pooled(tmp_path, write(tmp_path / "a.txt", "\n".join(texts)))
    assert len(kept) < 0.6 * len(texts) and row["kept"] < 1.2 * len(kept)


@pytest.fixture
def stopped_pool(tmp_path, monkeypatch):
    """The request of a pool that was stopped after 15 of 30 lines, 10 of them for good."""
    words = ["zwin", "khayb", "bzaf", "lfilm", "tram", "walo"]
    lines = [" ".join(pair) for pair in itertools.permutations(words, 2)]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setattr(pool, "_BATCH", 5)
    monkeypatch.setattr(pool, "_SAVED", 10)
    request = pool.PoolRequest((str(tmp_path / "a.txt"),), str(tmp_path / "out.txt"), near=None)
    write, written = pool._write, []

    def stopped(file, data):
        write(file, data)
        written.append(data)
        if len(written) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(pool, "_write", stopped)
    with pytest.raises(StoppedEarly):
        pool.make_pool(request, Progress())
    assert len((tmp_path / "out.txt.part").read_text("utf-8").splitlines()) == 15
    return request, lines


def test_what_was_written_after_the_last_state_is_written_anew(stopped_pool, tmp_path):
    request, lines = stopped_pool
    made = pool.make_pool(request, Progress())
    assert (tmp_path / "out.txt").read_text("utf-8").splitlines() == lines
    assert (made["kept"], made["sources"][0]["repeat"]) == (30, 0)


@pytest.mark.parametrize("change", ["text", "cut"])
def test_a_pool_begins_anew_where_its_text_or_what_it_wrote_is_another(
    stopped_pool, tmp_path, change
):
    request, lines = stopped_pool
    if change == "text":
        lines = lines[::-1]
        (tmp_path / "a.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        part = tmp_path / "out.txt.part"
        part.write_bytes(part.read_bytes()[:20])
    assert pool.make_pool(request, Progress())["kept"] == 30
    assert (tmp_path / "out.txt").read_text("utf-8").splitlines() == lines


def test_no_hash_is_forgotten_as_their_table_grows():
    draw, hashes = random.Random(0), pool._Hashes()
    keys = [0, *(draw.getrandbits(64) for _ in range(20_000))]
    assert sum(hashes.add(key) for key in keys) == len(keys)
    assert all(key in hashes for key in keys)
    assert not any(draw.getrandbits(64) in hashes for _ in range(1000))
    assert not any(hashes.add(key) for key in keys)


def test_each_line_left_out_is_counted_under_the_first_reason(tmp_path):
    lines = ["kan had bzaf", "seul", "seul", "kan had bzaf", "12 34 56", "123 zwin had", "un 2"]
    path = write(tmp_path / "a.txt", "\n".join(lines).encode() + b"\n\xff\xe0 bad bytes\n")
    kept, (row,) = pooled(tmp_path, path, "--no-near")
    assert kept == ["kan had bzaf", "123 zwin had"]
    counts = {"read": 8, "kept": 2, "short": 4, "repeat": 1, "unreadable": 1}
    assert {name: row[name] for name in counts} == counts


def test_a_line_shown_as_left_out_is_shown_once(tmp_path):
    path = write(tmp_path / "a.txt", "kan had bzaf\n" * 5)
    said = call_main("data", "pool", path, "--out", tmp_path / "pool.txt", "--json")
    assert json.loads(said.out)["dropped"] == {"repeat": ["kan had bzaf"]}


def test_a_twitter_archive_in_a_zip_is_read(tmp_path):
    tweets = [{"tweet": {"full_text": f"had tweet raqm {k} zwin bzaf"}} for k in range(4)]
    with zipfile.ZipFile(tmp_path / "twitter.zip", "w") as archive:
        archive.writestr("data/tweets.js", f"window.YTD.tweets.part0 = {json.dumps(tweets)}")
        archive.writestr("Your archive.html", "<html></html>")
    out = tmp_path / "pool.txt"
    said = call_main("data", "pool", tmp_path / "twitter.zip", "--out", out, "--no-near")
    assert said.code == 0, said.err
    assert len(out.read_text(encoding="utf-8").splitlines()) == 4
