"""`tf.contrib.learn.preprocessing`: a vocabulary, and documents as rows of its ids."""

from __future__ import annotations

import pickle

import pytest

import opdock as tf

VocabularyProcessor = tf.contrib.learn.preprocessing.VocabularyProcessor
TEXTS = ["the cat saw the dog", "a dog", ""]


def test_words_get_ids_in_their_order() -> None:
    made = VocabularyProcessor(4)
    rows = [r.tolist() for r in made.fit_transform(TEXTS)]
    assert rows == [[1, 2, 3, 1], [5, 4, 0, 0], [0, 0, 0, 0]]
    assert next(made.transform(["dog mouse cat"])).tolist() == [4, 0, 2, 0]
    assert list(made.reverse([[1, 4, 0]])) == ["the dog <UNK>"]
    assert len(made.vocabulary_) == 6


def test_modes() -> None:
    modes = tf.contrib.learn.ModeKeys
    assert (modes.TRAIN, modes.EVAL, modes.INFER) == ("train", "eval", "infer")


def test_rare_words_are_left_out() -> None:
    made = VocabularyProcessor(5, min_frequency=1).fit(TEXTS)
    assert next(made.transform(TEXTS)).tolist() == [2, 0, 0, 2, 1]


def test_it_is_kept_in_a_file_that_cannot_run_anything(tmp_path) -> None:
    file = str(tmp_path / "vocabulary")
    VocabularyProcessor(4).fit(TEXTS).save(file)
    again = VocabularyProcessor.restore(file)
    assert next(again.transform(["dog a new cat"])).tolist() == [4, 5, 0, 2]
    for other in (pickle.dumps({"a": 1}), b"{}", b"[1"):
        (tmp_path / "other").write_bytes(other)
        with pytest.raises(ValueError, match="which are not read here"):
            VocabularyProcessor.restore(str(tmp_path / "other"))
