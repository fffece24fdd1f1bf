"""Vocabularies and saved matrices: words that moved, rows and columns that came and went."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf

MATRIX = np.arange(15, dtype=np.float32).reshape(5, 3)


@pytest.fixture
def words(tmp_path: Path) -> tuple[str, str]:
    new, old = tmp_path / "new.txt", tmp_path / "old.txt"
    new.write_text("c\nd\na\n")
    old.write_text("a\nb\nc\n")
    return str(new), str(old)


@pytest.fixture
def saved(tmp_path: Path) -> str:
    with tf.Graph().as_default(), tf.Session() as sess:
        matrix = tf.get_variable("m", initializer=tf.constant(MATRIX))
        tf.get_variable("v", initializer=[1.0])
        tf.get_variable("i", initializer=[[1]])
        sess.run(tf.global_variables_initializer())
        assert matrix.shape == (5, 3)
        return tf.train.Saver().save(sess, str(tmp_path / "model"))


def remapped(path: str, rows: Any, columns: Any, fill: Any, **attrs: Any) -> Any:
    with tf.Graph().as_default(), tf.Session() as sess:
        node = tf.raw_ops.LoadAndRemapMatrix(
            ckpt_path=path, old_tensor_name=attrs.pop("name", "m"),
            row_remapping=np.array(rows, np.int64), col_remapping=np.array(columns, np.int64),
            initializing_values=np.array(fill, np.float32), num_rows=len(rows),
            num_cols=attrs.pop("num_cols", len(columns) or 3), **attrs,
        )  # fmt: skip
        return sess.run(node)


def test_each_word_is_found_in_the_old_vocabulary(words: tuple[str, str]) -> None:
    for offset, count, size, want in ((0, 3, -1, [2, -1, 0]), (1, 2, 2, [-1, 0]), (3, 0, -1, [])):
        with tf.Graph().as_default(), tf.Session() as sess:
            places, present = tf.raw_ops.GenerateVocabRemapping(
                new_vocab_file=words[0], old_vocab_file=words[1], new_vocab_offset=offset,
                num_new_vocab=count, old_vocab_size=size,
            )  # fmt: skip
            assert places.shape == (count,)
            got, found = sess.run([places, present])
            assert got.tolist() == want
            assert found == sum(place >= 0 for place in want)


def test_words_beyond_the_vocabulary_are_refused(words: tuple[str, str]) -> None:
    with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match="has 3 lines"):
        sess.run(
            tf.raw_ops.GenerateVocabRemapping(
                new_vocab_file=words[0], old_vocab_file=words[1], new_vocab_offset=2,
                num_new_vocab=2,
            )
        )  # fmt: skip


@pytest.mark.parametrize("in_memory", [-1, 1, 2])
def test_rows_and_columns_come_from_where_they_were(saved: str, in_memory: int) -> None:
    whole = remapped(saved, [3, 0, 4], [], [], max_rows_in_memory=in_memory)
    assert np.array_equal(whole, MATRIX[[3, 0, 4]])
    some = remapped(saved, [2, -1, 0], [1, -1], [7, 8, 9, 10], max_rows_in_memory=in_memory)
    assert some.tolist() == [[7, 7], [8, 9], [1, 10]]
    assert remapped(saved, [-1], [], [1, 2, 3]).tolist() == [[1, 2, 3]]


@pytest.mark.parametrize(
    ("given", "attrs", "error", "words"),
    [
        (([0, 0], [], []), {}, tf.errors.UnimplementedError, "Old ID 0 is mapped to both new ID 0"),
        (([0], [1, 1], []), {}, tf.errors.UnimplementedError, "both new ID 0 and 1"),
        (([-1], [], []), {}, tf.errors.InvalidArgumentError, "more missing values remain"),
        (([0], [], [1]), {}, tf.errors.InvalidArgumentError, "only 0 elements were used"),
        (([5], [], []), {}, tf.errors.InvalidArgumentError, "asks for row 5"),
        (([0], [3], []), {}, tf.errors.InvalidArgumentError, "asks for column 3"),
        (([0], [], []), {"num_cols": 2}, tf.errors.InvalidArgumentError, "2nd dimension is 3"),
        (([0], [], []), {"name": "v"}, tf.errors.InvalidArgumentError, "invalid rank 1"),
        (([0], [], []), {"name": "i"}, tf.errors.InvalidArgumentError, "invalid type int32"),
        (([0], [], []), {"name": "no"}, tf.errors.NotFoundError, "no"),
    ],
)
def test_what_does_not_fit_is_refused(
    saved: str, given: Any, attrs: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        remapped(saved, *given, **attrs)
