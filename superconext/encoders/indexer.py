"""Texts to token ids: the part of an encoder that all members of a run share.

Nothing here needs torch, so that an exported model can read texts without it.

Encoders over word vectors read ids of vocabulary words. Words that training never saw get ids
after the vocabulary's, with vectors from the word vectors kept for them (`oov_vectors`) and from
their character n-grams, so that a saved model can read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superconext.core.errors import RunError
from superconext.data.token_store import OovWords, TokenRows, TokenStore
from superconext.text.characters import letters_of
from superconext.text.ngrams import NgramVocabulary, WordNgrams
from superconext.text.normalize import PLACEHOLDERS
from superconext.text.tokenize import PAD, UNK, UNK_ID, Pieces, Tokenizer, Vocabulary
from superconext.vectors.subwords import SubwordTable
from superconext.vectors.table import WordVectors

if TYPE_CHECKING:
    from superconext.config.parameters import Config
    from superconext.core.progress import Progress

#: Numbers of a table of n-grams once the rows of zeros that a file leaves out are back. They
#: take no memory until they are written to, so this bounds addresses alone.
MOST_NUMBERS = 1 << 31

#: A script that fewer than one in so many letters of the training text are of counts as new.
_RARE_SCRIPT = 100

#: Says that an encoder has no ONNX form; takes the name of its class.
NO_ONNX = (
    "{} cannot be written as ONNX; expected an encoder that can: use --format "
    "sentence-transformers, or the run folder itself"
)


class TextIndexer:
    """Texts to token ids: the part of an encoder that all members of a run share.

    Attributes:
        tokenizer: the run's word tokenizer.
        facts: what the run's manifest says of it.
        limited: whether texts are cut sooner than `max_length` of the run asks for, as the encoder
            reads no more.
    """

    tokenizer: Tokenizer
    facts: dict[str, Any]
    limited: bool = False

    @property
    def known_words(self) -> Sequence[str]:
        """Words that training met; none where the encoder keeps no list of words."""
        return ()

    @property
    def misread(self) -> str:
        """What whoever uses a model of an earlier version must know of words that it was trained
        with and that texts are no longer cut into; "" where there are none."""
        lost = self.tokenizer.lost(self.known_words)
        return lost and (
            f"trained with superconext 0.2.0, whose rules cut texts otherwise: {lost} by this "
            "version: train again, or predict with 0.2.0"
        )

    def store(self, texts: Sequence[str] | Pieces) -> TokenStore:
        """Token ids of texts `[N]`, or of texts that the tokenizer has cut into pieces."""
        raise NotImplementedError

    def training_store(self, rows: TokenRows, config: Config) -> TokenStore:
        """Token ids of the training rows `[N]`, as training reads them."""
        raise NotImplementedError

    def missing_words(self, tokens: Sequence[Sequence[str]]) -> dict[str, Any]:
        """How many of the words of texts the encoder does not know, for the manifest."""
        return {}

    def unfamiliar(self, tokens: Sequence[Sequence[str]]) -> np.ndarray | None:
        """How little the encoder knows of texts, float64 `[N, 2]`: the share of their words (where
        there are none, of their signs and emoji) that training never met, and of their letters
        that are of a script it never met; None where it does not know."""
        return None

    def cut(self, tokens: Sequence[Sequence[str]]) -> int:
        """How many of the texts are longer than its `max_length`, after which it reads no more."""
        most = getattr(self, "max_length", None)
        return 0 if most is None else sum(len(row) > most for row in tokens)

    def sizes(self) -> dict[str, int]:
        """Rows of what `pruned` can make smaller, by name."""
        return {}

    def pruned(self, expected: Sequence[str] | None) -> TextIndexer:
        """A smaller indexer for export: without what no text needs.

        expected: texts such as the model will read; words that only other texts have are left
            out too. None keeps all words.
        """
        return self

    def without_rare_words(
        self, min_count: int, public_vectors: bool
    ) -> tuple[TextIndexer, dict[str, np.ndarray], int]:
        """An indexer without the words seen fewer times in training, for privacy.

        public_vectors: whether the word vectors came from a file, so that their words say
            nothing of the training text.

        Returns the indexer, the rows to keep of each table of the encoder (see
        `Encoder.with_rows`) and how many words were left out. Raises RunError where the encoder
        has no words to leave out.
        """
        raise RunError(
            f"{type(self).__name__} keeps no list of words; expected an encoder over word "
            "vectors: leave out --vocabulary-min-count"
        )

    def to_saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """A JSON document and arrays from which `from_saved` makes the same indexer."""
        raise NotImplementedError

    @classmethod
    def from_saved(
        cls, document: Mapping[str, Any], arrays: Mapping[str, np.ndarray], config: Config
    ) -> TextIndexer:
        """The indexer of a run folder, which may be a stranger's.

        Raises ValueError, LookupError or TypeError where the parts do not fit together.
        """
        raise NotImplementedError

    def write_onnx(self, folder: Path) -> dict[str, Any]:
        """Write what an ONNX export needs to go from texts to ids without torch.

        Returns a JSON document that goes with the files. Raises RunError where it has no such
        form.
        """
        raise RunError(NO_ONNX.format(type(self).__name__))

    @classmethod
    def from_onnx(cls, folder: Path, document: Mapping[str, Any]) -> TextIndexer:
        """What `write_onnx` wrote.

        Raises OSError, ValueError, LookupError, TypeError or VectorsError where it is damaged.
        """
        raise RunError(NO_ONNX.format(cls.__name__))


@dataclass
class WordIndexer(TextIndexer):
    """Texts to ids of words.

    Args:
        tokenizer: text to words.
        vocabulary: the V training words; the encoders own their vectors and may tune them.
        oov_vectors: vectors of words the training text lacks.
        ngrams: character n-grams the encoders have vectors for, or None.
        max_length: tokens read of a text at most.
        table: initial vectors of the vocabulary float32 `[V, e]`; None in a loaded model.
        word_ngrams: the n-grams of each of the V words; None in a loaded model.
        emoji_scores: of mean word vectors, see `WordVectors`; None in a loaded model.
    """

    tokenizer: Tokenizer
    vocabulary: Vocabulary
    oov_vectors: WordVectors
    ngrams: NgramVocabulary | None
    max_length: int
    table: np.ndarray | None = None
    word_ngrams: WordNgrams | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    emoji_scores: np.ndarray | None = None
    _scripts: set[str] | None = field(default=None, init=False, repr=False)

    @classmethod
    def fit(
        cls, rows: TokenRows, config: Config, held_out: Sequence[str], progress: Progress
    ) -> WordIndexer:
        """A vocabulary and word vectors for training rows; see `Encoder.fit_indexer`."""
        from superconext.encoders.embedding_init import initial_vectors

        vocabulary = rows.vocabulary(config.min_count)
        ngrams = NgramVocabulary.build(vocabulary.words[2:]) if config.subwords else None
        initial = initial_vectors(config, vocabulary, rows, rows.tokenizer, progress, held_out)
        return cls(
            rows.tokenizer,
            vocabulary,
            initial.oov_vectors,
            ngrams,
            config.max_length,
            initial.table,
            ngrams.encode(vocabulary.words) if ngrams else None,
            {"words": len(vocabulary), **initial.facts},
            initial.emoji_scores,
        )

    @property
    def known_words(self) -> Sequence[str]:
        return self.vocabulary.words[2:]

    def store(self, texts: Sequence[str] | Pieces) -> TokenStore:
        pieces = texts if isinstance(texts, Pieces) else self.tokenizer.pieces(texts)
        return store_with_oov(
            pieces, self.vocabulary, self.oov_vectors, self.ngrams, self.max_length
        )

    def training_store(self, rows: TokenRows, config: Config) -> TokenStore:
        """Words seen fewer than `min_count` times are the unknown word here."""
        return rows.store(self.vocabulary, config.min_count, self.max_length)

    def missing_words(self, tokens: Sequence[Sequence[str]]) -> dict[str, Any]:
        return self.vocabulary.oov_report(tokens)

    def unfamiliar(self, tokens: Sequence[Sequence[str]]) -> np.ndarray:
        """Known are the words of the vocabulary and those with a vector of their own. A script is
        one that training met if a letter in `_RARE_SCRIPT` of its words is of it."""
        if self._scripts is None:
            met: Counter[str] = Counter()
            words = self.vocabulary
            for word, count in zip(words.words[2:], words.counts[2:], strict=True):
                for script, size in letters_of(word).items():
                    met[script] += size * count
            self._scripts = {name for name, n in met.items() if n * _RARE_SCRIPT >= met.total()}
        facts: dict[str, tuple[int, ...]] = {}
        signs: dict[str, bool] = {}
        for token in set(chain.from_iterable(tokens)):
            letters = letters_of(token)
            strange = sum(n for script, n in letters.items() if script not in self._scripts)
            is_word = token not in PLACEHOLDERS and any(map(str.isalnum, token))
            known = token in self.vocabulary or token in self.oov_vectors
            facts[token] = is_word and not known, is_word, strange, letters.total()
            signs[token] = not known
        rows = [(0, 0, 0, 0), *(facts[token] for token in chain.from_iterable(tokens))]
        ends = np.cumsum([0, *map(len, tokens)])
        sums = np.diff(np.cumsum(rows, axis=0)[ends], axis=0)
        shares: np.ndarray = sums[:, ::2] / np.maximum(sums[:, 1::2], 1)
        for row in np.flatnonzero(sums[:, 1] == 0).tolist():
            if tokens[row]:
                shares[row, 0] = np.mean([signs[token] for token in tokens[row]])
        return shares

    def class_vectors(self, classes: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Word vectors float32 `[C, e]` of what each class is called, and for which classes there
        is one, bool `[C]`."""
        from superconext.vectors.table import label_vectors

        assert self.table is not None
        words = self.tokenizer, self.vocabulary, self.table, self.oov_vectors
        return label_vectors(classes, *words)

    def sizes(self) -> dict[str, int]:
        subwords = self.oov_vectors.subwords
        buckets = 0 if subwords is None else len(subwords.rows_in_use())
        return {"words": len(self.oov_vectors), "buckets": buckets}

    def pruned(self, expected: Sequence[str] | None) -> WordIndexer:
        """Buckets of n-grams that no known word falls into go: they hold what they were initialised
        with, or what a pretrained encoder has learned of words that the table lacks. Words beside
        the training text go where `expected` texts lack them; they are then composed of n-grams, as
        other unseen words are.
        """
        kept, words = self.oov_vectors, list(self.oov_vectors.words)
        if expected is not None:
            wanted = {token for text in expected for token in self.tokenizer(text)}
            kept = kept.restrict(sorted(wanted))
            words = sorted({*wanted, *kept.words})
        subwords = kept.subwords
        if subwords is not None:
            used = np.zeros(len(subwords.buckets), dtype=bool)
            for word in [*self.vocabulary.words[2:], *words]:
                used[subwords.hashes(word)] = True
            buckets = np.where(used[:, None], subwords.buckets, 0).astype(subwords.buckets.dtype)
            subwords = SubwordTable(buckets, subwords.min_n, subwords.max_n)
        return replace(self, oov_vectors=_with(kept, kept.words, kept.matrix, subwords))

    def without_rare_words(
        self, min_count: int, public_vectors: bool
    ) -> tuple[WordIndexer, dict[str, np.ndarray], int]:
        """Left out are the words, the n-grams that no other word has and, unless the vectors are
        public, all words beside the training text: how often those were seen is not known. What
        is kept are hashed n-grams, which spell no word."""
        words, counts = self.vocabulary.words, np.array(self.vocabulary.counts)
        kept = np.flatnonzero(counts >= min_count)
        kept = np.concatenate([[0, 1], kept[kept > 1]])  # padding and the unknown word stay
        unknown = int(counts.sum() - counts[kept[2:]].sum())
        vocabulary = Vocabulary(
            [words[row] for row in kept[2:]], [int(counts[row]) for row in kept[2:]], unknown
        )
        ngrams, rows = self.ngrams, {"words": kept}
        if ngrams is not None:
            sizes = ngrams.shortest, ngrams.longest
            common = set(NgramVocabulary.build(vocabulary.words[2:], *sizes).ngrams)
            places = [i for i, ngram in enumerate(ngrams.ngrams) if ngram in common]
            rows["ngrams"] = np.array(places, dtype=int)
            ngrams = NgramVocabulary([ngrams.ngrams[place] for place in places], *sizes)
        vectors = self.oov_vectors
        if not public_vectors:
            vectors = _with(vectors, [], vectors.matrix[:0], vectors.subwords)
        small = replace(self, vocabulary=vocabulary, ngrams=ngrams, oov_vectors=vectors)
        return small, rows, len(words) - len(kept)

    def to_saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Vectors are kept in half precision, and n-gram buckets of zeros left out."""
        kept = self.oov_vectors
        document: dict[str, Any] = {
            "tokenizer": self.tokenizer.to_dict(),
            "vocabulary": self.vocabulary.to_json(),
            "ngrams": None if self.ngrams is None else self.ngrams.to_json(),
            "reserve": {"name": kept.name, "sha256": kept.sha256, "words": list(kept.words)},
        }
        arrays = {"matrix": np.ascontiguousarray(kept.matrix, dtype=np.float16)}
        if kept.subwords is None:
            return document, arrays
        document["reserve"] |= {"min_n": kept.subwords.min_n, "max_n": kept.subwords.max_n}
        buckets = np.ascontiguousarray(kept.subwords.buckets, dtype=np.float16)
        # Buckets that no word fell into while the vectors were trained are zeros: most of
        # them after little text, and all that pruning took away.
        filled = np.flatnonzero(buckets.any(axis=1))
        if len(filled) < len(buckets):
            arrays["bucket_rows"] = filled.astype(np.int32)
            arrays["bucket_count"] = np.array([len(buckets)])
            buckets = np.ascontiguousarray(buckets[filled])
        arrays["buckets"] = buckets
        return document, arrays

    @classmethod
    def from_saved(
        cls, document: Mapping[str, Any], arrays: Mapping[str, np.ndarray], config: Config
    ) -> WordIndexer:
        ngrams = document["ngrams"]
        return cls(
            Tokenizer.from_dict(document["tokenizer"]),
            Vocabulary.from_json(document["vocabulary"]),
            _saved_vectors(document["reserve"], arrays),
            None if ngrams is None else NgramVocabulary.from_json(ngrams),
            config.max_length,
        )

    def write_onnx(self, folder: Path) -> dict[str, Any]:
        """The vectors of out-of-vocabulary words go into the folder `vectors`."""
        self.oov_vectors.save(folder / "vectors")
        return {
            "max_length": self.max_length,
            "tokenizer": self.tokenizer.to_dict(),
            "vocabulary": self.vocabulary.to_json(),
            "ngrams": None if self.ngrams is None else self.ngrams.to_json(),
        }

    @classmethod
    def from_onnx(cls, folder: Path, document: Mapping[str, Any]) -> WordIndexer:
        ngrams = document["ngrams"]
        return cls(
            Tokenizer.from_dict(document["tokenizer"]),
            Vocabulary.from_json(document["vocabulary"]),
            WordVectors.load(folder / "vectors"),
            None if ngrams is None else NgramVocabulary.from_json(ngrams),
            int(document["max_length"]),
        )


def store_with_oov(
    texts: Sequence[Sequence[str]] | Pieces,
    vocabulary: Vocabulary,
    oov_vectors: WordVectors,
    ngrams: NgramVocabulary | None,
    max_length: int,
) -> TokenStore:
    """Token ids under `vocabulary`; words it lacks get ids after it.

    A word of which neither `oov_vectors` nor an n-gram is known becomes the unknown word.

    Args:
        texts: the tokens of each text, or its pieces: a word is then looked up once for each
            distinct piece that has it.
        max_length: tokens of a text after so many are left out.
    """
    if not isinstance(texts, Pieces):
        cut = [tokens[:max_length] for tokens in texts]
        texts = Pieces(cut, np.arange(len(cut)), np.ones(len(cut), dtype=np.int64))
    words = list(chain.from_iterable(texts.tokens))
    ids = vocabulary.encode(words)
    chosen, edges = texts.spread(max_length)
    lengths = np.diff(edges)
    read = np.zeros(len(words), dtype=bool)
    read[chosen] = True
    places = np.flatnonzero((ids == UNK_ID) & read)
    unknown = [words[place] for place in places.tolist()]
    # Of the vocabulary's words, these two alone read as unknown.
    new = sorted(set(unknown).difference((PAD, UNK)))
    vectors, known = oov_vectors.lookup(new)
    pieces = ngrams.encode(new) if ngrams is not None else None
    oov_words = OovWords(np.ascontiguousarray(vectors), known, pieces)
    useful = known if pieces is None else known | (np.diff(pieces.offsets) > 0)
    numbers = np.where(useful, len(vocabulary) + np.arange(len(new)), UNK_ID)
    ids_of = {PAD: UNK_ID, UNK: UNK_ID, **dict(zip(new, numbers.tolist(), strict=True))}
    # As the words' table does: a word of another case or Unicode form is the vocabulary's.
    for word in oov_vectors.lacking(new):
        if (same := vocabulary.folded_id(word)) is not None:
            ids_of[word] = same
    ids[places] = [ids_of[word] for word in unknown]
    ids = ids[chosen]
    # A text without a token is the single unknown word, as in `build_store`.
    empty = np.flatnonzero(lengths == 0)
    ids = np.insert(ids, (np.cumsum(lengths) - lengths)[empty], UNK_ID)
    lengths[empty] = 1
    return TokenStore(ids, np.append(0, np.cumsum(lengths)), oov_words)


def _with(
    vectors: WordVectors, words: Sequence[str], matrix: np.ndarray, subwords: SubwordTable | None
) -> WordVectors:
    """Word vectors with other parts under the same name."""
    return WordVectors(words, matrix, subwords, name=vectors.name, sha256=vectors.sha256)


def _saved_vectors(facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> WordVectors:
    """The vectors of out-of-vocabulary words, of a run folder."""
    subwords = None
    if "buckets" in arrays:
        buckets = arrays["buckets"]
        if "bucket_rows" in arrays:
            buckets = _spread_rows(buckets, arrays["bucket_rows"], int(arrays["bucket_count"][0]))
        lengths = facts["min_n"], facts["max_n"]
        if not all(type(length) is int for length in lengths):
            raise ValueError(f"n-gram lengths {lengths!r:.99}")
        subwords = SubwordTable(buckets, *lengths)
    for value in (facts["words"], [facts["name"], facts["sha256"]]):
        if not isinstance(value, list) or not set(map(type, value)) <= {str}:
            raise ValueError("the words of the vectors, their name or sha256 are no texts")
    return WordVectors(
        facts["words"], arrays["matrix"], subwords, name=facts["name"], sha256=facts["sha256"]
    )


def _spread_rows(buckets: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
    """`[count, e]` with the given rows where `rows` says and zeros elsewhere."""
    if buckets.ndim != 2 or rows.shape != (len(buckets),) or rows.dtype.kind not in "iu":
        raise ValueError(f"{list(rows.shape)} places of n-gram rows {list(buckets.shape)}")
    if not 0 < count * buckets.shape[1] <= MOST_NUMBERS:
        raise ValueError(f"a table of {count} n-gram rows, more than {MOST_NUMBERS} numbers")
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < count:
        raise ValueError(f"n-gram rows outside the {count} there are")
    table = np.zeros((count, buckets.shape[1]), buckets.dtype)
    table[rows] = buckets
    return table
