"""The shapes of ragged tensors as tensors: made, broadcast, and tensors repeated to them."""

from __future__ import annotations

from typing import Any

import pytest

import opdock as tf
from opdock.ops.composed.ragged_dynamic_shape import (
    RaggedTensorDynamicShape,
    broadcast_dynamic_shape,
    broadcast_to,
)
from opdock.ops.composed.ragged_rows import batch_gather_with_default

make = RaggedTensorDynamicShape.from_dim_sizes


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    with tf.Graph().as_default():
        yield


def sizes(shape: RaggedTensorDynamicShape) -> list[Any]:
    with tf.Session() as session:
        outer, inner = session.run((list(shape.partitioned_dim_sizes), shape.inner_dim_sizes))
    return [size.tolist() for size in outer] + inner.tolist()


def listed(value: Any) -> Any:
    with tf.Session() as session:
        found = session.run(value)
    return found.to_list() if hasattr(found, "to_list") else found.tolist()


def test_of_tensors() -> None:
    dense = RaggedTensorDynamicShape.from_tensor([[1, 2, 3], [4, 5, 6]])
    assert sizes(dense) == [2, 3] and dense.rank == 2 and dense.num_partitioned_dimensions == 0
    deep = RaggedTensorDynamicShape.from_tensor(tf.ragged.constant([[[1, 2], [3]], [[4, 5]]]))
    assert sizes(deep) == [2, [2, 1], [2, 1, 2]] and deep.is_ragged(2) and not deep.is_ragged(0)
    assert listed(deep.num_slices_in_dimension(2)) == 5
    narrow = deep.with_dim_size_dtype(tf.int32)
    assert narrow.dim_size_dtype == tf.int32 and sizes(narrow) == sizes(deep)


def test_made_of_sizes_that_are_checked() -> None:
    for given, text in (
        ([[2, 1]], "outermost partitioned dimension must be uniform"),
        ([2, [[1]]], "Each dim_size must be a scalar or a vector"),
        ([2, tf.constant([1, 1], tf.int32), tf.constant([1, 1], tf.int64)], "matching dtypes"),
    ):
        with pytest.raises(ValueError, match=text):
            make(given)
    with pytest.raises(ValueError, match="rank=1 must be greater than self.rank=2"):
        make([2, 3]).broadcast_to_rank(1)


@pytest.mark.parametrize(
    ("x", "y", "wanted"),
    [
        ([], [2, (2, 3), (5, 7, 2, 0, 9)], [2, [2, 3], [5, 7, 2, 0, 9]]),
        ([3], [3, (2, 3, 1), 1], [3, [2, 3, 1], 3]),
        ([1, 3, (3, 0, 2), 1, 2], [2, 1, 1, (7, 2), 1],
         [2, 3, [3, 0, 2, 3, 0, 2], [7, 7, 7, 7, 7, 2, 2, 2, 2, 2], 2]),
    ],
)  # fmt: skip
def test_broadcast_together(x: Any, y: Any, wanted: Any) -> None:
    assert sizes(broadcast_dynamic_shape(make(x), make(y))) == wanted
    assert sizes(broadcast_dynamic_shape(make(y), make(x))) == wanted


def test_one_dimension_broadcast() -> None:
    # Each of the three rows is there twice: the lengths stay beside one another.
    twice = make([3, 1, [4, 0, 2], 5]).broadcast_dimension(1, 2)
    assert sizes(twice) == [3, 2, [4, 4, 0, 0, 2, 2], 5]
    parted = make([3, 1, [3, 1, 2]]).broadcast_dimension(1, [2, 0, 3])
    assert sizes(parted) == [3, [2, 0, 3], [3, 3, 2, 2, 2]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="size mismatch in dimension"):
        sizes(make([3, [1, 2, 3]]).broadcast_dimension(1, [1, 2, 4]))
    with pytest.raises(ValueError, match="outermost dimension must be uniform"):
        make([1, 2]).broadcast_dimension(0, [1])


def test_tensors_repeated() -> None:
    assert listed(broadcast_to([[10], [20], [30]], make([3, 2]))) == [[10] * 2, [20] * 2, [30] * 2]
    assert listed(broadcast_to(10, make([3, [3, 0, 2]]))) == [[10] * 3, [], [10] * 2]
    rows = broadcast_to([[[1, 2]], [[4, 5]]], make([2, [2, 1], 2]))
    assert listed(rows) == [[[1, 2], [1, 2]], [[4, 5]]]
    with pytest.raises(ValueError, match="ragged rank mismatch"):
        broadcast_to(tf.ragged.constant([[1]]), make([1, 1]))


def test_gathered_with_a_default() -> None:
    params = tf.ragged.constant([["a", "b", "c"], ["d"], [], ["e"]])
    at = tf.ragged.constant([[1, 2, -1], [], [], [0, 1]])
    found = batch_gather_with_default(params, at, "?")
    assert listed(found) == [[b"b", b"c", b"?"], [], [], [b"e", b"?"]]
    deep = tf.ragged.constant([[[1, 2], [3]], [[4]]])
    assert listed(batch_gather_with_default(deep, [[1, 5], [0, -1]], 0)) == [[[3], [0]], [[4], [0]]]
    dense = batch_gather_with_default(tf.constant([[1, 2], [3, 4]]), [[0, 2], [-1, 1]], 9)
    assert listed(dense) == [[1, 9], [9, 4]]
