"""`tf.contrib.learn.preprocessing`: a vocabulary, and documents as rows of its ids."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from opdock.io import filesystems
from opdock.io.files import atomic_write
from opdock.io.parsing import parsed_json

__all__ = ["CategoricalVocabulary", "VocabularyProcessor", "tokenizer"]

_WORD = re.compile(r"[A-Z]{2,}(?![a-z])|[A-Z][a-z]+(?=[A-Z])|[\'\w\-]+", re.UNICODE)
UNKNOWN = "<UNK>"
_FORMAT = "opdock vocabulary 1"


def tokenizer(iterator: Iterable[str]) -> Iterator[list[str]]:
    """The words of each text."""
    for text in iterator:
        yield _WORD.findall(text)


class CategoricalVocabulary:
    """Ids of words in the order in which they come; 0 stands for unknown ones.

    Args:
        unknown_token: how the unknown word is called.
        support_reverse: whether words can be found by their ids.
    """

    def __init__(self, unknown_token: str = UNKNOWN, support_reverse: bool = True) -> None:
        self._unknown_token = unknown_token
        self._mapping: dict[str, int] = {unknown_token: 0}
        self._support_reverse = support_reverse
        self._reverse = [unknown_token]
        self._frequencies: dict[str, int] = {}
        self._frozen = False

    def __len__(self) -> int:
        return len(self._mapping)

    def freeze(self, freeze: bool = True) -> None:
        """Whether further words are unknown."""
        self._frozen = freeze

    def get(self, category: str) -> int:
        """The id of a word; a new one, unless the vocabulary is frozen."""
        found = self._mapping.get(category)
        if found is None:
            if self._frozen:
                return 0
            found = self._mapping[category] = len(self._mapping)
            self._reverse.append(category)
        return found

    def add(self, category: str, count: int = 1) -> None:
        """Counts a word."""
        if self.get(category) > 0:
            self._frequencies[category] = self._frequencies.get(category, 0) + count

    def trim(self, min_frequency: int, max_frequency: int = -1) -> None:
        """Keeps the words that are frequent, the most frequent first."""
        order = sorted(sorted(self._frequencies.items()), key=lambda pair: -pair[1])
        kept = [
            (word, n) for word, n in order
            if n > min_frequency and not 0 < max_frequency <= n
        ]  # fmt: skip
        self._reverse = [self._unknown_token, *(word for word, _ in kept)]
        self._mapping = {word: i for i, word in enumerate(self._reverse)}
        self._frequencies = dict(kept)

    def reverse(self, class_id: int) -> str:
        """The word of an id.

        Raises:
            ValueError: the vocabulary cannot do that.
        """
        if not self._support_reverse:
            raise ValueError("This vocabulary wasn't initialized with support_reverse=True")
        return self._reverse[class_id]


class VocabularyProcessor:
    """Makes rows of ids from documents, all of one length.

    Args:
        max_document_length: the length; longer documents are cut, shorter ones padded with 0.
        min_frequency: words must be more frequent than that.
        vocabulary: a CategoricalVocabulary that is there already.
        tokenizer_fn: takes documents and gives lists of words; `tokenizer` by default.
    """

    def __init__(
        self, max_document_length: int, min_frequency: int = 0,
        vocabulary: CategoricalVocabulary | None = None,
        tokenizer_fn: Callable[[Iterable[Any]], Iterable[list[str]]] | None = None,
    ) -> None:  # fmt: skip
        self.max_document_length = max_document_length
        self.min_frequency = min_frequency
        self.vocabulary_ = vocabulary or CategoricalVocabulary()
        self._tokenizer = tokenizer_fn or tokenizer

    def fit(self, raw_documents: Iterable[Any], unused_y: Any = None) -> VocabularyProcessor:
        """Learns the words of documents, and no more after that."""
        for words in self._tokenizer(raw_documents):
            for word in words:
                self.vocabulary_.add(word)
        if self.min_frequency > 0:
            self.vocabulary_.trim(self.min_frequency)
        self.vocabulary_.freeze()
        return self

    def transform(self, raw_documents: Iterable[Any]) -> Iterator[npt.NDArray[np.int64]]:
        """A row of ids for each document."""
        for words in self._tokenizer(raw_documents):
            row = np.zeros(self.max_document_length, np.int64)
            for i, word in enumerate(words[: self.max_document_length]):
                row[i] = self.vocabulary_.get(word)
            yield row

    def fit_transform(
        self, raw_documents: Iterable[Any], unused_y: Any = None
    ) -> Iterator[npt.NDArray[np.int64]]:
        """Learns the words of documents, and gives their rows."""
        documents = list(raw_documents)
        return self.fit(documents).transform(documents)

    def reverse(self, documents: Iterable[Any]) -> Iterator[str]:
        """The words of rows of ids, joined by blanks."""
        for row in documents:
            yield " ".join(self.vocabulary_.reverse(int(i)) for i in row)

    def save(self, filename: str) -> None:
        """Writes words and lengths as JSON; a tokenizer of the user's is not kept."""
        words = self.vocabulary_
        kept = {
            "format": _FORMAT, "max_document_length": self.max_document_length,
            "min_frequency": self.min_frequency, "words": words._reverse,
            "frequencies": words._frequencies,
        }  # fmt: skip
        with atomic_write(filename) as file:
            file.write(json.dumps(kept).encode())

    @classmethod
    def restore(cls, filename: str) -> VocabularyProcessor:
        """Reads what `save` has written.

        Raises:
            OSError: the file cannot be read.
            ValueError: the file is damaged, or another: a pickle of TensorFlow's for example, which
                could run anything.
        """
        try:
            kept = parsed_json(filesystems.of(filename).read(filename), filename)
        except ValueError:
            kept = None
        if not isinstance(kept, dict) or kept.get("format") != _FORMAT:
            raise ValueError(
                f"{filename} was not written by VocabularyProcessor.save of opdock. TensorFlow's "
                "were pickles, which are not read here, as reading one may run any code."
            )
        length: Any = kept.get("max_document_length")
        least: Any = kept.get("min_frequency")
        words, counts = kept.get("words"), kept.get("frequencies")
        if not (
            all(type(v) is int and v >= 0 for v in (length, least))
            and isinstance(words, list) and words and all(isinstance(w, str) for w in words)
            and isinstance(counts, dict) and all(type(n) is int for n in counts.values())
        ):  # fmt: skip
            raise ValueError(f"{filename} is damaged: what it says is no vocabulary")
        vocabulary = CategoricalVocabulary(words[0])
        for word in words[1:]:
            vocabulary.get(word)
        vocabulary._frequencies = counts
        vocabulary.freeze()
        return cls(length, least, vocabulary)
