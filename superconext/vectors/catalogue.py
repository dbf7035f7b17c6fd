"""Catalogue of the public word vectors that `vectors fetch` knows, and their download.

Addresses, sizes and MD5 sums of the GloVe files are those that gensim-data publishes in its
`list.json`; its files are GloVe's (Pennington et al., 2014) with a first line `words dimension`.
fastText's vectors of 157 languages (Grave et al., 2018) are published without any hash.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from superconext.core.download import Downloader, PublicFile, gunzipped
from superconext.core.errors import VectorsError, suggestion
from superconext.core.files import atomic_write, cache_dir

_GENSIM_DATA = "https://github.com/RaRe-Technologies/gensim-data/releases/download"
_FASTTEXT = "https://dl.fbaipublicfiles.com/fasttext/vectors-crawl"
_PUBLIC_DOMAIN = "Public Domain Dedication and License 1.0"
_SHARE_ALIKE = "CC BY-SA 3.0"
_FASTTEXT_LIMIT = 12 << 30  # bytes


@dataclass(frozen=True)
class PublicVectors:
    """One downloadable file of word vectors.

    Attributes:
        name: what `vectors fetch` calls it.
        licence: the terms its authors name.
        file: what to download; its `limit` holds for what it unpacks to as well.
        unpack: whether the file is read in place and so must be gunzipped first.
    """

    name: str
    licence: str
    file: PublicFile
    unpack: bool = False

    @property
    def kept_name(self) -> str:
        """Name of the file once it is here, unpacked if need be."""
        return self.file.name.removesuffix(".gz") if self.unpack else self.file.name


# name: (bytes, MD5) of NAME.gz
_GLOVE_FILES = {
    "glove-wiki-gigaword-50": (69_182_535, "c289bc5d7f2f02c6dc9f2f9b67641813"),
    "glove-wiki-gigaword-100": (134_300_434, "40ec481866001177b8cd4cb0df92924f"),
    "glove-wiki-gigaword-200": (264_336_934, "59652db361b7a87ee73834a6c391dfc1"),
    "glove-wiki-gigaword-300": (394_362_229, "29e9329ac2241937d55b852e8284e89b"),
    "glove-twitter-25": (109_885_004, "50db0211d7e7a2dcd362c6b774762793"),
    "glove-twitter-50": (209_216_938, "c168f18641f8c8a00fe30984c4799b2b"),
    "glove-twitter-100": (405_932_991, "b04f7bed38756d64cf55b58ce7e97b15"),
    "glove-twitter-200": (795_373_100, "e52e8392d1860b95d5308a525817d8f9"),
}

#: Every vector file with a name of its own. Twice the published size is allowed, for it is the
#: hash that decides.
NAMED: dict[str, PublicVectors] = {
    name: PublicVectors(
        name, _PUBLIC_DOMAIN, PublicFile(f"{_GENSIM_DATA}/{name}/{name}.gz", md5, size, 2 * size)
    )
    for name, (size, md5) in _GLOVE_FILES.items()
}

_CODES = """
    af als am an ar arz as ast az azb ba bar bcl be bg bh bn bo bpy br bs ca ce ceb ckb co cs cv
    cy da de diq dv el eml en eo es et eu fa fi fr frr fy ga gd gl gom gu gv he hi hif hr hsb ht
    hu hy ia id ilo io is it ja jv ka kk km kn ko ku ky la lb li lmo lt lv mai mg mhr min mk ml mn
    mr mrj ms mt mwl my myv mzn nah nap nds ne new nl nn no nso oc or os pa pam pfl pl pms pnb ps
    pt qu rm ro ru sa sah sc scn sco sd sh si sk sl so sq sr su sv sw ta te tg th tk tl tr tt ug
    uk ur uz vec vi vls vo wa war xmf yi yo zea zh
"""

#: Codes of the languages fastText has vectors for. Of Arabic: `ar` (standard) and `arz`
#: (Egyptian); none of the Maghrebi varieties.
FASTTEXT_LANGUAGES = frozenset(_CODES.split())

_FASTTEXT_NAME = re.compile(r"cc\.([a-z]{2,3})\.300\.(vec|bin)(?:\.gz)?")


def find(name: str) -> PublicVectors:
    """The file of that name: one of `NAMED`, or `cc.LANG.300.vec` or `.bin` of fastText.

    Raises VectorsError, with the nearest name, for any other.
    """
    if name in NAMED:
        return NAMED[name]
    match = _FASTTEXT_NAME.fullmatch(name)
    if match and match[1] in FASTTEXT_LANGUAGES:
        packed = f"cc.{match[1]}.300.{match[2]}.gz"
        file = PublicFile(f"{_FASTTEXT}/{packed}", limit=_FASTTEXT_LIMIT)
        return PublicVectors(packed[:-3], _SHARE_ALIKE, file, unpack=match[2] == "bin")
    if match:
        raise VectorsError(
            f"{name}: fastText has no vectors of a language {match[1]!r}; expected one of "
            f"{' '.join(sorted(FASTTEXT_LANGUAGES))}; choose another"
        )
    raise VectorsError(
        f"{name!r} names no known vectors; expected one of {', '.join(NAMED)}, "
        "cc.LANG.300.vec or cc.LANG.300.bin; " + suggestion(name, NAMED)
    )


@dataclass(frozen=True)
class Fetched:
    """A file that is there and checked.

    Attributes:
        path: what to give to `--vectors` or `vectors convert`.
        bytes, sha256: of that file.
        check: what its content was compared with, for people.
        downloaded: False where a file was there already.
    """

    path: Path
    bytes: int
    sha256: str
    check: str
    downloaded: bool


def fetch(
    entry: PublicVectors,
    out: str | Path | None = None,
    *,
    url_base: str | None = None,
    progress: Callable[[float], None] | None = None,
    say: Callable[[str], None] | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Fetched:
    """Download a file of the catalogue, or check the one that is there already.

    Args:
        out: file to write, or folder to write it into; `downloads` in the cache by default.
        url_base: address of a folder that holds the same file, instead of the catalogue's.
        progress: called with the share downloaded, 0 to 1; say: with lines for people.
        pause: waits so many seconds before another attempt.

    Raises VectorsError: no connection, a server that refuses, too many bytes, or another hash; an
    earlier file is left as it was.
    """
    url = entry.file.address(url_base, VectorsError)
    downloads = cache_dir() / "downloads"
    downloader = Downloader(downloads / "sha256.json", VectorsError, say, pause)
    final = downloads / entry.kept_name if out is None else _destination(entry, out)
    if os.path.lexists(final):
        # A published MD5 is of the packed file, so what was unpacked goes by the record.
        file = PublicFile(entry.file.url) if entry.unpack else entry.file
        checked = downloader.check(final, file, entry.kept_name)
        return Fetched(final, final.stat().st_size, checked.sha256, checked.check, False)
    packed = final.with_name(final.name + ".gz") if entry.unpack else final
    checked = downloader.fetch(
        entry.file,
        packed,
        entry.file.name,
        url=url,
        advice=f"or download that address elsewhere, save it as {packed} and run the command again",
        progress=progress,
    )
    sha256 = checked.sha256
    if entry.unpack:
        downloader.say(f"unpacking {packed}")
        sha256 = _unpack(packed, final, entry.file.limit)
        downloader.record(entry.kept_name, sha256)
        if checked.downloaded:
            packed.unlink()
    return Fetched(final, final.stat().st_size, sha256, checked.check, checked.downloaded)


def _destination(entry: PublicVectors, out: str | Path) -> Path:
    path = Path(out)
    into_folder = path.is_dir() or str(out).endswith(("/", os.sep))
    return path / entry.kept_name if into_folder else path


def _unpack(packed: Path, final: Path, limit: int) -> str:
    """Gunzip into place; the SHA-256 of what came out."""
    digest, written = hashlib.sha256(), 0
    with atomic_write(final) as temporary, temporary.open("wb") as sink:
        for block in gunzipped(packed, VectorsError):
            written += len(block)
            if written > limit:
                raise VectorsError(
                    f"{packed}: unpacks to more than {limit} bytes; expected less; the file is "
                    "not what it should be: remove it"
                )
            digest.update(block)
            sink.write(block)
    return digest.hexdigest()
