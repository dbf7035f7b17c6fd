"""Which public word vectors are known by name, where do they lie, what must their bytes be?

Addresses, sizes and MD5 sums of the GloVe files are those that gensim-data publishes in its
`list.json`; its files are GloVe's (Pennington et al., 2014) with a first line `words dimension`.
fastText's vectors of 157 languages (Grave et al., 2018) are published without any hash.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from superconext.core.errors import VectorsError

_GENSIM_DATA = "https://github.com/RaRe-Technologies/gensim-data/releases/download"
_FASTTEXT = "https://dl.fbaipublicfiles.com/fasttext/vectors-crawl"
_PUBLIC_DOMAIN = "Public Domain Dedication and License 1.0"
_SHARE_ALIKE = "CC BY-SA 3.0"
_GIB = 1 << 30


@dataclass(frozen=True)
class PublicVectors:
    """One downloadable file of word vectors.

    Attributes:
        name: what `vectors fetch` calls it.
        url: its address, whose last part is the file's name.
        size: bytes of the file where published, else None.
        md5: its MD5 sum in hexadecimal where published, else None.
        limit: bytes beyond which a download, or what it unpacks to, is refused.
        unpack: whether the file is read in place and so must be gunzipped first.
        licence: the terms its authors name.
    """

    name: str
    url: str
    size: int | None = None
    md5: str | None = None
    limit: int = 12 * _GIB
    unpack: bool = False
    licence: str = ""

    @property
    def file_name(self) -> str:
        """Name of the file as it is downloaded."""
        return self.url.rsplit("/", 1)[-1]


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
        name, f"{_GENSIM_DATA}/{name}/{name}.gz", size, md5, 2 * size, licence=_PUBLIC_DOMAIN
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
        file = f"cc.{match[1]}.300.{match[2]}.gz"
        unpack = match[2] == "bin"
        return PublicVectors(file[:-3], f"{_FASTTEXT}/{file}", unpack=unpack, licence=_SHARE_ALIKE)
    if match:
        raise VectorsError(
            f"{name}: fastText has no vectors of a language {match[1]!r}; expected one of "
            f"{' '.join(sorted(FASTTEXT_LANGUAGES))}; choose another"
        )
    close = difflib.get_close_matches(name, NAMED, 1)
    raise VectorsError(
        f"{name!r} names no known vectors; expected one of {', '.join(NAMED)}, "
        "cc.LANG.300.vec or cc.LANG.300.bin; "
        + (f"did you mean {close[0]!r}?" if close else "take one of these")
    )
