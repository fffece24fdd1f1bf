"""`tf.train.warm_start`: names, patterns, and rows and columns that stand for words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.train import warm_starting


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A checkpoint of w, 4 rows of 2 columns, with a vocabulary of its rows; and of b."""
    (tmp_path / "old").write_text("a\nb\nc\nd\n")
    (tmp_path / "new").write_text("d\nx\na\n")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("w", initializer=np.arange(8.0, dtype=np.float32).reshape(4, 2))
        tf.get_variable("b", initializer=[7.0])
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(tmp_path / "c"))
    return tmp_path


def values(*variables: Any) -> list[Any]:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [v.tolist() for v in session.run(list(variables))]


def test_by_name_and_pattern(saved: Path) -> None:
    b = tf.get_variable("b", [1])
    other = tf.get_variable("other", initializer=[1.0])
    c = tf.get_variable("c", [1], trainable=False)
    tf.train.warm_start(str(saved), "b")
    assert values(b, other) == [[7.0], [1.0]]
    tf.train.warm_start(str(saved / "c"), ["c:"], var_name_to_prev_var_name={"c": "b"})
    assert values(c) == [[7.0]]
    tf.train.warm_start(str(saved), [other], var_name_to_prev_var_name={"other": "b"})
    assert values(other) == [[7.0]]


@pytest.mark.parametrize("use_resource", [False, True])
def test_rows_that_stand_for_words(saved: Path, use_resource: bool) -> None:
    w = tf.get_variable(
        "w", [5, 2], partitioner=tf.fixed_size_partitioner(2), use_resource=use_resource
    )
    info = tf.train.VocabInfo(
        str(saved / "new"), 3, 2, str(saved / "old"), backup_initializer=tf.ones_initializer()
    )
    tf.train.warm_start(str(saved), var_name_to_vocab_info={"w": info})
    assert values(w.as_tensor()) == [[[6, 7], [1, 1], [0, 1], [1, 1], [1, 1]]]


def test_columns_that_stand_for_words(saved: Path) -> None:
    (saved / "first").write_text("p\nq\n")
    (saved / "second").write_text("q\nr\np\n")
    w = tf.get_variable("w", [4, 3])
    info = tf.train.VocabInfo(str(saved / "second"), 3, 0, str(saved / "first"), axis=1)
    tf.train.warm_start(str(saved), None, {"w": info})
    assert values(w) == [[[1, 0, 0], [3, 0, 2], [5, 0, 4], [7, 0, 6]]]


def test_what_does_not_fit(saved: Path) -> None:
    b = tf.get_variable("b", [1])
    with pytest.raises(ValueError, match="var_name_to_prev_var_name that were not used"):
        tf.train.warm_start(str(saved), var_name_to_prev_var_name={"z": "b"})
    with pytest.raises(ValueError, match="must be a `list` or `str`"):
        tf.train.warm_start(str(saved), 3)
    with pytest.raises(ValueError, match="all `Variable` or all `str`"):
        tf.train.warm_start(str(saved), [b, "b"])
    with pytest.raises(ValueError, match="0 and 1"):
        tf.train.VocabInfo("a", 1, 0, "b", axis=2)
    info = tf.train.VocabInfo(str(saved / "new"), 9, 0, str(saved / "old"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="has 3 lines, asked for are 9"):
        tf.train.warm_start(str(saved), "b", {"b": info})


def test_one_variable(saved: Path) -> None:
    w = tf.get_variable("w", [3, 2], partitioner=tf.fixed_size_partitioner(3))
    other = tf.get_variable("other", [3, 2])
    key, parts = warm_starting.var_info(w)
    assert (key, len(parts)) == ("w", 3)
    assert warm_starting.var_info(other, "w") == ("w", other)
    assert warm_starting.infer_var_name([other]) == "other"
    vocabularies = str(saved / "new"), 3, str(saved), str(saved / "old")
    warm_starting.warm_start_var_with_vocab(w, *vocabularies)
    warm_starting.warm_start_var_with_vocab(
        other, *vocabularies, previous_vocab_size=2, prev_tensor_name="w"
    )
    assert values(w.as_tensor(), other) == [
        [[6, 7], [0, 0], [0, 1]], [[0, 0], [0, 0], [0, 1]]
    ]  # fmt: skip
    with pytest.raises(TypeError, match="var MUST be one of the following"):
        warm_starting.var_info("w")
    with pytest.raises(TypeError, match="violates the constraints"):
        warm_starting.infer_var_name([other, tf.get_variable("third", [1])])
    with pytest.raises(ValueError, match="Invalid args"):
        warm_starting.warm_start_var_with_vocab(other, "", 3, str(saved), str(saved / "old"))
