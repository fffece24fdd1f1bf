"""Matrices of a checkpoint in the order of other vocabularies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.contrib import framework
from opdock.graph.variables.partitioned import PartitionInfo
from opdock.train.remapped_matrices import load_and_remap_matrix

OLD = np.arange(6.0, dtype=np.float32).reshape(3, 2)


@pytest.fixture
def saved(tmp_path: Path) -> dict[str, Any]:
    """The arguments that name a checkpoint with a matrix, and vocabularies of its rows."""
    with tf.Graph().as_default(), tf.Session() as session:
        matrix = tf.Variable(OLD, name="old")
        column = tf.Variable(OLD[:, :1], name="column")
        session.run(tf.global_variables_initializer())
        path = tf.train.Saver([matrix, column]).save(session, str(tmp_path / "m"))
    for name, words in (("old", "mercury venus mars"), ("new", "venus jupiter mercury")):
        (tmp_path / name).write_text("\n".join(words.split()) + "\n")
    return {"path": path, "old": str(tmp_path / "old"), "new": str(tmp_path / "new")}


def made(initializer: Any, shape: list[int], partitioner: Any = None) -> np.ndarray[Any, Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", shape, initializer=initializer, partitioner=partitioner)
        session.run(tf.global_variables_initializer())
        return session.run(tf.convert_to_tensor(v))


@pytest.mark.parametrize("parts", [1, 2])
def test_embeddings_go_to_the_lines_of_their_words(saved: dict[str, Any], parts: int) -> None:
    initializer = framework.load_embedding_initializer(
        saved["path"], "old", 3, 2, saved["old"], saved["new"], num_oov_buckets=1,
        initializer=tf.ones_initializer(),
    )  # fmt: skip
    found = made(initializer, [4, 2], tf.fixed_size_partitioner(parts))
    assert found.tolist() == [[2, 3], [1, 1], [0, 1], [1, 1]]


def test_rows_and_columns_change_together(saved: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "a").write_text("good\nbad\n")
    (tmp_path / "b").write_text("bad\nugly\n")
    initializer = framework.load_and_remap_matrix_initializer(
        saved["path"], "old", 3, 2, -1, saved["old"], saved["new"],
        str(tmp_path / "a"), str(tmp_path / "b"), num_col_oov_buckets=1,
    )  # fmt: skip
    assert made(initializer, [3, 3]).tolist() == [[3, 0, 0], [0, 0, 0], [1, 0, 0]]


def test_biases_are_a_column(saved: dict[str, Any]) -> None:
    initializer = framework.load_linear_multiclass_bias_initializer(
        saved["path"], "column", 3, saved["old"], saved["new"], 1, tf.ones_initializer()
    )
    assert made(initializer, [4, 1]).tolist() == [[2], [1], [0], [1]]


def test_a_slot_is_told_where_its_variable_lies(saved: dict[str, Any]) -> None:
    initializer = framework.load_variable_slot_initializer(
        saved["path"], "old", PartitionInfo([3, 2], [1, 0]), 3, 2, saved["old"], saved["new"]
    )
    assert made(initializer, [2, 2]).tolist() == [[0, 0], [0, 1]]


def test_what_is_refused(saved: dict[str, Any]) -> None:
    def remap(**more: Any) -> Any:
        return load_and_remap_matrix(saved["path"], "old", 0, 3, 2, tf.zeros_initializer(), **more)

    with pytest.raises(ValueError, match="num_row_oov_buckets must be >= 0, but received -1"):
        remap(num_row_oov_buckets=-1)
    with pytest.raises(ValueError, match="must both be specified or left unspecified"):
        remap(new_row_vocab_file=saved["new"])
    with pytest.raises(ValueError, match="Must provide either row or column vocab files"):
        remap()
    with pytest.raises(TypeError, match="initializer must be callable"):
        framework.load_and_remap_matrix_initializer("p", "old", 3, 2, initializer=3)
    initializer = framework.load_embedding_initializer(
        saved["path"], "old", 3, 2, saved["old"], saved["new"]
    )
    for shape, told in (
        ([3], "Expected 2-dim shape"), ([0, 2], "1st dim of shape to be > 0"),
        ([3, 3], "Expected 2nd dim of shape"), ([4, 2], "would exceed expected total row count"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=told):
            initializer(shape)
    with pytest.raises(TypeError, match="only float32 is supported"):
        initializer([3, 2], tf.float64)


def test_parts_know_the_axis_that_is_cut() -> None:
    part = PartitionInfo([6, 4], [2, 0])
    assert (part.single_slice_dim([2, 4]), part.single_offset([2, 4])) == (0, 2)
    assert PartitionInfo([6, 4], [0, 0]).single_offset([6, 4]) == 0
    for shape, told in (
        ([2], "Expected equal length"), ([5, 4], "would exceed"), ([2, 2], "either dimension 1"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=told):
            part.single_slice_dim(shape)
    with pytest.raises(TypeError, match="must be a sequence"):
        part.single_slice_dim(3)


def test_initializers_take_sizes_that_are_computed() -> None:
    rows = tf.constant(2) + 1
    with tf.Session() as session:
        for initializer in (tf.zeros_initializer(), tf.random_normal_initializer(seed=1)):
            assert session.run(initializer([rows, 2])).shape == (3, 2)
