"""The catalogue: every set asked for is there, whole, and found by its name."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest

from superconext.core.download import PublicFile
from superconext.core.errors import DataError
from superconext.data.fetch import CATALOGUE, find
from superconext.data.parsers import PARSERS

ASKED = """
    msac afrisenti_arq afrisenti_ary mac twifil tsac astd sst2 sst5 subj trec cr imdb scicite
    acl_arc scierc chemprot ag_news dbpedia yelp_polarity yelp_full amazon_polarity amazon_full
"""


def test_every_set_is_there():
    assert set(ASKED.split()) <= set(CATALOGUE)
    assert all(name == entry.name for name, entry in CATALOGUE.items())


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=list(CATALOGUE))
def test_every_entry_is_whole(entry):
    assert entry.task and entry.language and entry.licence and entry.classes > 1
    assert list(entry.rows) in (["all"], ["train", "test"], ["train", "dev", "test"])
    # One way to get it, and only one.
    assert sum(map(bool, (entry.files, entry.hub, entry.by_hand))) == 1
    if entry.files:
        assert entry.parser in PARSERS
    if entry.labels:
        assert len(entry.labels) == entry.classes
    for file in entry.files.values():
        parts = urlsplit(file.url)
        assert parts.scheme == "https" and file.name and "/" not in file.name
        if parts.netloc == "raw.githubusercontent.com":  # a commit, never a branch
            assert re.fullmatch(r"/[^/]+/[^/]+/[0-9a-f]{40}/.+", parts.path)
        else:
            assert re.fullmatch("[0-9a-f]{32}", file.md5) and file.size < file.limit
    names = [file.name for file in entry.files.values()]
    assert len(set(names)) == len(names), "they come into one folder"


def test_names_of_files_are_not_quoted():
    assert PublicFile("https://example.invalid/a/MAC%20corpus.csv?raw=1").name == "MAC corpus.csv"


def test_finding():
    assert find("SST2-phrases") is CATALOGUE["sst2_phrases"]
    with pytest.raises(DataError, match="did you mean 'chemprot'"):
        find("chemport")
    with pytest.raises(DataError, match="expected one of msac"):
        find("zzz")
