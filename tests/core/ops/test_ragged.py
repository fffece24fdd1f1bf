"""Ragged tensors: how they are made and fetched, parts, arithmetic, rows, reductions, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.ops.composed import ragged_map
from opdock.ops.composed.ragged_math import reduce_join


def run(fetch, feeds=None):
    with tf.Session() as session:
        found = session.run(fetch, feeds)
    return found.to_list() if isinstance(found, tf.ragged.RaggedTensorValue) else found.tolist()


ROWS = [[3, 1, 4], [], [1, 5], [9]]
DEEP = [[[1, 2], [3]], [], [[], [4, 5, 6]]]


@pytest.mark.parametrize("kind", [tf.int32, tf.int64])
def test_all_ways_to_part_values(kind):
    values, make = [3, 1, 4, 1, 5, 9], tf.RaggedTensor
    for rt in (
        make.from_row_splits(values, tf.constant([0, 3, 3, 5, 6], kind)),
        make.from_row_lengths(values, tf.constant([3, 0, 2, 1], kind)),
        make.from_row_starts(values, tf.constant([0, 3, 3, 5], kind)),
        make.from_row_limits(values, tf.constant([3, 3, 5, 6], kind)),
        make.from_value_rowids(values, tf.constant([0, 0, 0, 2, 2, 3], kind)),
    ):
        assert run(rt) == ROWS and rt.row_splits.dtype == kind
        assert run(rt.row_lengths()) == [3, 0, 2, 1] and run(rt.nrows()) == 4
        assert run(rt.value_rowids()) == [0, 0, 0, 2, 2, 3]


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (tf.RaggedTensor.from_row_splits, [0, 2, 1, 3]), (tf.RaggedTensor.from_row_splits, [1, 3]),
        (tf.RaggedTensor.from_row_splits, [0, 2]), (tf.RaggedTensor.from_row_lengths, [4, -1]),
        (tf.RaggedTensor.from_row_lengths, [1, 1]), (tf.RaggedTensor.from_row_starts, [0, 4]),
        (tf.RaggedTensor.from_row_limits, [2]), (tf.RaggedTensor.from_value_rowids, [1, 0, 0]),
        (tf.RaggedTensor.from_value_rowids, [0, 0]),
    ],
)  # fmt: skip
def test_parts_are_checked_when_they_run(make, part):
    fed = tf.placeholder(tf.int64, [None])
    rt = make(tf.constant([1, 2, 3]), fed)
    with pytest.raises(tf.errors.InvalidArgumentError, match="do not form a valid RaggedTensor"):
        run(rt, {fed: part})


def test_arguments():
    with pytest.raises(ValueError, match="constructor is private"):
        tf.RaggedTensor(tf.constant([1]), tf.constant([0, 1]))
    with pytest.raises(ValueError, match="row_splits tensor may not be empty"):
        tf.RaggedTensor.from_row_splits([1], [])
    with pytest.raises(ValueError, match="must have dtype int32 or int64"):
        tf.RaggedTensor.from_row_splits([1], tf.constant([0.0, 1.0]))
    with pytest.raises(ValueError, match="Expected nrows >= 0; got -1"):
        tf.RaggedTensor.from_value_rowids([1], [0], nrows=-1)
    with pytest.raises(ValueError, match="all scalar values must have the same nesting depth"):
        tf.ragged.constant([1, [2]])
    with pytest.raises(ValueError, match="mismatched row_splits dtypes"):
        tf.ragged.constant(ROWS) + tf.ragged.constant(ROWS, row_splits_dtype=tf.int32)


def test_static_shapes():
    rt = tf.ragged.constant(DEEP)
    assert rt.shape.as_list() == [3, None, None] and rt.ragged_rank == 2
    inner = tf.ragged.constant([[[1, 2]], [[3, 4], [5, 6]]], ragged_rank=1)
    assert inner.shape.as_list() == [2, None, 2] and inner.flat_values.shape == (3, 2)
    assert (rt + 1).shape.as_list() == [3, None, None]


def test_feeds_and_fetches():
    rt = tf.ragged.placeholder(tf.int32, 2)
    value = tf.ragged.constant_value(DEEP, np.int32)
    assert run(rt, {rt: value}) == DEEP and str(value) == f"<tf.RaggedTensorValue {DEEP}>"
    assert run(rt * 2, {rt: value}) == [[[2, 4], [6]], [], [[], [8, 10, 12]]]
    with pytest.raises(TypeError, match="as many ragged dimensions: 2"):
        run(rt, {rt: tf.ragged.constant_value(ROWS)})
    with tf.Session() as session:
        found = session.run({"a": rt, "b": [rt.nrows()]}, {rt: value})
    assert found["a"].to_list() == DEEP and found["b"] == [3]


def test_dense_and_sparse_forms():
    rt = tf.ragged.constant(DEEP)
    dense = rt.to_tensor(default_value=-1)
    assert run(dense)[0] == [[1, 2, -1], [3, -1, -1]]
    back = tf.RaggedTensor.from_tensor(dense, padding=-1, ragged_rank=2)
    assert run(back) == [[[1, 2], [3]], [[], []], [[], [4, 5, 6]]]
    lengths = tf.RaggedTensor.from_tensor([[1, 2, 3], [4, 5, 6]], lengths=[1, 5])
    assert run(lengths) == [[1], [4, 5, 6]]
    rows = tf.ragged.constant(ROWS)
    assert run(tf.RaggedTensor.from_sparse(rows.to_sparse())) == ROWS
    gap = tf.SparseTensor([[0, 1]], [1], [2, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="not right-ragged"):
        run(tf.RaggedTensor.from_sparse(gap))


def test_subscripts_are_those_of_lists():
    rt = tf.ragged.constant(DEEP)
    assert run(rt[0]) == DEEP[0] and run(rt[-1, 1]) == [4, 5, 6] and run(rt[0, 0, 1]) == 2
    for key in (
        slice(1, None),
        slice(None, -1),
        slice(None, None, 2),
        slice(2, 0),
        slice(-2, None),
    ):
        assert run(rt[key]) == DEEP[key]
        assert run(rt[:, key]) == [row[key] for row in DEEP]
        assert run(rt[..., key]) == [[inner[key] for inner in row] for row in DEEP]
    assert run(rt[:, tf.newaxis]) == [[row] for row in DEEP] and run(rt[tf.newaxis]) == [DEEP]
    with pytest.raises(ValueError, match="Cannot index into an inner ragged dimension"):
        rt[:, 0]
    with pytest.raises(IndexError, match="Too many indices"):
        rt[..., 0, 0, 0, 0]


def test_arithmetic_broadcasts():
    rt = tf.ragged.constant(ROWS)
    assert run(rt + 1) == [[4, 2, 5], [], [2, 6], [10]] and run(10 - rt)[0] == [7, 9, 6]
    assert run(rt * [[1], [2], [3], [4]]) == [[3, 1, 4], [], [3, 15], [36]]
    assert run(tf.constant(2) ** rt)[0] == [8, 2, 16]
    assert run(rt > 3) == [[False, False, True], [], [False, True], [True]]
    assert run(-rt)[2] == [-1, -5] and run(tf.abs(-rt)) == ROWS
    wide = tf.ragged.constant([[[1], [2]], [[3]]], ragged_rank=1)
    assert run(wide + [10, 20]) == [[[11, 21], [12, 22]], [[13, 23]]]
    column = tf.constant([[[10]], [[20]], [[30]]])
    assert run(tf.ragged.constant(DEEP) + column)[2] == [[], [34, 35, 36]]
    one = tf.constant([5]) + tf.ragged.constant([[1, 2], [3]])
    assert run(one) == [[6, 7], [8]]


def test_rows_that_differ_do_not_broadcast():
    message = "identical ragged splits|Unable to broadcast"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        run(tf.ragged.constant([[1, 2], [3]]) + tf.ragged.constant([[1], [2, 3]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="Unable to broadcast"):
        run(tf.ragged.constant([[1, 2], [3]]) + tf.constant([[1, 2], [3, 4]]))


def test_functions_of_values():
    rt = tf.ragged.constant([["ab", "c"], ["d"]])
    assert run(tf.identity(rt)) == [[b"ab", b"c"], [b"d"]]
    numbers = tf.ragged.constant([[1.0, 4.0], [9.0]])
    assert run(tf.sqrt(numbers)) == [[1, 2], [3]] and run(tf.math.sqrt(numbers)) == [[1, 2], [3]]
    assert run(tf.add_n([numbers, numbers])) == [[2, 8], [18]]
    assert run(tf.cast(numbers, tf.int32)) == [[1, 4], [9]]
    mapped = tf.ragged.map_flat_values(tf.where, numbers > 2, numbers, -numbers)
    assert run(mapped) == [[-1, 4], [9]]


def test_rows():
    rt = tf.ragged.constant(ROWS)
    assert run(tf.gather(rt, [2, 0])) == [[1, 5], [3, 1, 4]]
    assert run(tf.gather(rt, [[3], [1]])) == [[[9]], [[]]]
    assert run(tf.gather([10, 20, 30], tf.ragged.constant([[2], [0, 1]]))) == [[30], [10, 20]]
    assert run(tf.gather_nd(rt, [[0, 2], [2, 1]])) == [4, 5]
    assert run(tf.batch_gather(rt, tf.ragged.constant([[2, 0], [], [1], [0]]))) == [
        [4, 3],
        [],
        [5],
        [9],
    ]
    assert run(tf.concat([rt, rt[:1]], 0)) == [*ROWS, ROWS[0]]
    assert run(tf.concat([rt, rt], axis=1)) == [row + row for row in ROWS]
    assert run(tf.stack([rt, rt], axis=1)) == [[row, row] for row in ROWS]
    assert run(tf.tile(rt, [1, 2])) == [row + row for row in ROWS]
    assert run(tf.tile(tf.ragged.constant(DEEP), [2, 1, 2])) == 2 * [
        [i + i for i in r] for r in DEEP
    ]
    assert run(tf.ragged.boolean_mask(rt, [True, False, False, True])) == [[3, 1, 4], [9]]
    assert run(tf.ragged.boolean_mask(rt, tf.equal(rt, 1))) == [[1], [], [1], []]
    assert run(tf.where(rt > 3)) == [[0, 2], [2, 1], [3, 0]]
    assert run(tf.where([True, False], rt[:2], rt[2:])) == [[3, 1, 4], [9]]
    parts = tf.dynamic_partition(rt, [0, 1, 0, 1], 2)
    assert [run(p) for p in parts] == [[ROWS[0], ROWS[2]], [ROWS[1], ROWS[3]]]
    assert run(tf.squeeze(tf.expand_dims(rt, 0), 0)) == ROWS
    assert run(tf.size(rt)) == 6 and run(tf.rank(tf.ragged.constant(DEEP))) == 3


def test_reductions():
    rt = tf.ragged.constant(ROWS)
    assert run(tf.reduce_sum(rt, axis=1)) == [8, 0, 6, 9] and run(tf.reduce_sum(rt)) == 23
    assert run(tf.reduce_max(rt, axis=0)) == [9, 5, 4]
    assert run(tf.reduce_mean(tf.cast(rt, tf.float32)[2:], axis=-1)) == [3, 9]
    deep = tf.ragged.constant(DEEP)
    assert run(tf.reduce_sum(deep, axis=2)) == [[3, 3], [], [0, 15]]
    assert run(tf.reduce_sum(deep, axis=0)) == [[1, 2], [7, 5, 6]]
    assert run(tf.reduce_prod(deep, axis=[0, 2])) == [2, 360]
    assert run(tf.reduce_any(deep > 5, axis=[1, 2])) == [False, False, True]
    with pytest.raises(ValueError, match="keepdims=True is not supported"):
        tf.reduce_sum(rt, axis=1, keepdims=True)
    assert run(tf.unsorted_segment_sum(rt, [0, 1, 0, 1], 2)) == [[4, 6, 4], [9]]


def test_segments_and_ranges():
    assert run(tf.ragged.row_splits_to_segment_ids([0, 3, 3, 5])) == [0, 0, 0, 2, 2]
    assert run(tf.ragged.segment_ids_to_row_splits([0, 0, 0, 2, 2], num_segments=4)) == [
        0,
        3,
        3,
        5,
        5,
    ]
    assert run(tf.ragged.range([0, 5], [3, 9], [1, 2])) == [[0, 1, 2], [5, 7]]


@pytest.mark.parametrize("rows", [1, 40], ids=["a-long-row", "many-short-rows"])
def test_ranges_of_floats_add_up_step_by_step(rows):
    """As TF does it, so that every element has TF's last bit."""
    zeros = np.zeros(rows, np.float32)
    found = run(tf.ragged.range(zeros, zeros + np.float32(3), zeros + np.float32(0.1)))
    wanted = np.add.accumulate(np.full(30, 0.1, np.float32))
    for row in found:
        np.testing.assert_array_equal(np.array(row[1:], np.float32), wanted[: len(row) - 1])
        assert row[0] == 0
        assert len(row) == 30


def test_ranges_of_floats_of_any_lengths_are_sums():
    """Rows that are padded together, those that are not, empty ones, and one alone."""
    for lengths in ([3, 0, 5, 5, 1, 4], [40, 0, 1], [0, 0], [1], [30], [2] * 50 + [40]):
        limits = np.array([-1 if n == 0 else n * 0.1 - 0.05 for n in lengths], np.float32)
        steps = np.full(len(lengths), 0.1, np.float32)
        found = tf.ragged.range(np.zeros_like(limits), limits, steps)
        with tf.Session() as session:
            splits, values = session.run([found.row_splits, found.flat_values])
        assert np.diff(splits).tolist() == lengths
        for n, begin in zip(lengths, splits, strict=False):
            row = np.full(n, 0.1, np.float32)
            row[:1] = 0
            wanted = np.add.accumulate(row)
            np.testing.assert_array_equal(values[begin : begin + n], wanted)


@pytest.mark.parametrize("limit", [1e30, np.inf, np.nan])
def test_ranges_of_floats_that_no_memory_holds(limit):
    with pytest.raises(tf.errors.InvalidArgumentError, match="finite|fit into memory"):
        run(tf.ragged.range(np.float32(0), np.float32(limit), np.float32(1e-3)))


def test_the_last_bit_decides_how_long_a_range_of_floats_is():
    """0.3 / 0.1 is 3 in single precision, and more than that between these two numbers."""
    assert len(run(tf.ragged.range(np.float32(0), np.float32(0.3), np.float32(0.1)))[0]) == 3


def test_a_range_of_no_rows_needs_no_step():
    none = np.zeros(0, np.int32)
    assert run(tf.ragged.range(none, none, np.int32(0))) == []


@pytest.mark.filterwarnings("ignore:Converting sparse IndexedSlices")
def test_gradients_pass_through():
    values = tf.constant([1.0, 2.0, 3.0, 4.0])
    rt = tf.RaggedTensor.from_row_lengths(values, [1, 3])
    weighted = tf.gather(rt, [1, 1, 0]) * tf.constant([[1.0], [10.0], [100.0]])
    (found,) = tf.gradients(tf.reduce_sum(weighted), values)
    assert run(tf.convert_to_tensor(found)) == [100, 11, 11, 11]
    dense = rt.to_tensor() * [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    (found,) = tf.gradients(dense, values)
    assert run(tf.convert_to_tensor(found)) == [1, 4, 5, 6]


def test_control_flow_carries_ragged_tensors():
    rt = tf.ragged.constant(ROWS)
    flag = tf.placeholder(tf.bool, [])
    chosen = tf.cond(flag, lambda: rt + 1, lambda: rt)
    assert run(chosen, {flag: False}) == ROWS and run(chosen, {flag: True})[3] == [10]
    _, doubled = tf.while_loop(lambda i, r: i < 3, lambda i, r: (i + 1, r * 2), [0, rt])
    assert run(doubled) == [[24, 8, 32], [], [8, 40], [72]]


def test_a_function_of_each_row():
    ragged = ragged_map.RaggedTensorType
    rows = tf.ragged.constant(ROWS)
    assert run(ragged_map.map_fn(tf.reduce_sum, rows)) == [8, 0, 6, 9]
    longer = ragged_map.map_fn(
        lambda row: tf.concat([row, row], 0), rows, ragged(tf.int32, 1), infer_shape=False
    )
    assert run(longer) == [2 * row for row in ROWS]
    deep = tf.ragged.constant(DEEP)
    sums = ragged_map.map_fn(
        lambda row: tf.reduce_sum(row, axis=1), deep, ragged(tf.int32, 1), infer_shape=False
    )
    assert run(sums) == [[3, 3], [], [0, 15]]
    counted, same = ragged_map.map_fn(
        lambda x: (tf.range(x[0]), x[1]), (tf.constant([2, 0, 1, 3]), rows),
        (ragged(tf.int32, 1, tf.int32), ragged(tf.int32, 1, tf.int32)), infer_shape=False,
    )  # fmt: skip
    assert counted.row_splits.dtype is tf.int32
    assert run(counted) == [[0, 1], [], [0], [0, 1, 2]] and run(same) == ROWS
    with pytest.raises(ValueError, match=r"declared ragged rank \(3\) mismatches the result \(1\)"):
        ragged_map.map_fn(lambda row: row, rows, ragged(tf.int32, 3))
    with pytest.raises(ValueError, match="not a scalar"):
        ragged_map.map_fn(lambda row: row, 3)


def test_strings_of_ragged_rows_are_joined():
    rows = tf.ragged.constant([["a", "b", "c"], ["d"], []])
    with tf.Session() as session:
        each = session.run(reduce_join(rows, axis=1, separator="-"))
        assert each.tolist() == [b"a-b-c", b"d", b""]
        assert session.run(reduce_join(rows, axis=0)).tolist() == [b"ad", b"b", b"c"]
        public = tf.strings.reduce_join(rows, axis=1, separator="-")
        assert session.run(public).tolist() == each.tolist()
        assert session.run(reduce_join(["a", "b"], axis=0)) == b"ab"
    with pytest.raises(ValueError, match="keepdims=True"):
        reduce_join(rows, axis=1, keepdims=True)


def test_where_takes_dense_tensors_alone_too() -> None:
    from opdock.ops.composed.ragged_rows import where

    with tf.Session() as sess:
        assert sess.run(where(True, 1, 2)) == 1
        mask = [[True, False], [False, True]]
        assert sess.run(where(mask, [[1, 2], [3, 4]], [[5, 6], [7, 8]])).tolist() == [
            [1, 6],
            [7, 4],
        ]


def test_into_variants_and_back() -> None:
    rt = tf.ragged.constant([[["a"], ["b", "c"]], [], [[]]])
    assert run(tf.RaggedTensor._from_variant(rt._to_variant(), tf.string, 2)) == [
        [[b"a"], [b"b", b"c"]],
        [],
        [[]],
    ]
    rows = tf.ragged.constant([[0], [1], [2], [3]])._to_variant(batched_input=True)
    assert rows.shape.as_list() == [4]
    pairs = tf.reshape(rows, [2, 2])
    for given in (None, 0):
        back = tf.RaggedTensor._from_variant(pairs, tf.int32, 2, given)
        assert run(back) == [[[0], [1]], [[2], [3]]]
    with pytest.raises(ValueError, match="output_ragged_rank must be equal to"):
        tf.RaggedTensor._from_variant(pairs, tf.int32, 1, 1)


def test_what_is_kept_beside_the_splits_is_a_tensor() -> None:
    splits = tf.constant([0, 1], tf.int64)
    with pytest.raises(TypeError, match="Cached value must be a Tensor or None"):
        tf.RaggedTensor(tf.constant([1]), splits, cached_nrows=1, internal=True)


def test_ranks_are_checked_when_it_runs() -> None:
    ids = tf.placeholder(tf.int64)
    rt = tf.RaggedTensor.from_value_rowids(tf.placeholder_with_default([[1], [2]], None), ids, 9)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have rank. .1. .Received"):
        run(rt, {ids: [[0], [1]]})


def test_a_mask_of_another_shape_is_told_with_both_shapes():
    with pytest.raises(ValueError, match=r"Shapes \(1, 2\) and \(1, 3\) are incompatible"):
        tf.ragged.boolean_mask([[1, 2]], [[True, True, False]])
    with pytest.raises(ValueError, match=r"Shapes \(2,\) and \(3,\) are incompatible"):
        tf.boolean_mask([1, 2], [True, True, False])


def test_segments_without_integers_have_no_splits():
    with pytest.raises(TypeError, match="segment_ids must be an integer tensor"):
        tf.ragged.segment_ids_to_row_splits([0.5])
    with pytest.raises(ValueError, match=r"Shape \(\) must have rank 1"):
        tf.ragged.segment_ids_to_row_splits(0)
