"""Datasets of ragged tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.data import Dataset

ROWS = [[[1, 2], []], [], [[3], [4, 5, 6], [7]]]


def lists(values: Any) -> list[Any]:
    return [v.to_list() if hasattr(v, "to_list") else v.tolist() for v in values]


def test_a_ragged_tensor_is_an_element(walk):
    dataset = Dataset.from_tensors({"r": tf.ragged.constant(ROWS), "x": 1})
    spec = dataset.element_spec["r"]
    assert isinstance(spec, tf.RaggedTensorSpec)
    assert dataset.output_shapes["r"].as_list() == [3, None, None]
    assert dataset.output_types["r"] is tf.int32
    assert dataset.output_classes["r"] == spec
    (found,) = walk(dataset)
    assert found["r"].to_list() == ROWS and found["x"] == 1


@pytest.mark.parametrize("value", [tf.ragged.constant, tf.ragged.constant_value])
def test_slices_are_rows_which_batches_stack_again(value, walk):
    dataset = Dataset.from_tensor_slices(value(ROWS))
    assert lists(walk(dataset)) == ROWS
    assert lists(walk(dataset.batch(2))) == [ROWS[:2], ROWS[2:]]
    even = dataset.concatenate(dataset.take(1)).batch(2).batch(2)
    assert lists(walk(even)) == [[ROWS[:2], [ROWS[2], ROWS[0]]]]
    assert lists(walk(dataset.batch(2).unbatch())) == ROWS


def test_functions_take_and_give_ragged_tensors(walk):
    dataset = Dataset.range(1, 4).map(
        lambda n: tf.RaggedTensor.from_row_lengths(tf.range(n), [0, n])
    )
    assert lists(walk(dataset)) == [[[], [0]], [[], [0, 1]], [[], [0, 1, 2]]]
    doubled = dataset.map(lambda r: r * 2).batch(3)
    assert lists(walk(doubled)) == [[[[], [0]], [[], [0, 2]], [[], [0, 2, 4]]]]
    sums = dataset.map(lambda r: tf.reduce_sum(r, axis=1))
    assert lists(walk(sums)) == [[0, 0], [0, 1], [0, 3]]
    split = Dataset.from_tensors(["a b", "c"]).map(
        lambda t: tf.strings.split(t, result_type="RaggedTensor")
    )
    assert lists(walk(split)) == [[[b"a", b"b"], [b"c"]]]


def test_rows_keep_the_shape_inside(walk):
    values = np.arange(8, dtype=np.float32).reshape(4, 2)
    ragged = tf.RaggedTensor.from_row_splits(values, np.array([0, 3, 3, 4], np.int32))
    dataset = Dataset.from_tensors(ragged)
    assert dataset.element_spec == tf.RaggedTensorSpec([3, None, 2], tf.float32, 1, tf.int32)
    (found,) = walk(dataset.repeat(2).batch(2))
    assert found.to_list() == [[values[:3].tolist(), [], values[3:].tolist()]] * 2
    assert found.row_splits.dtype == np.int32


def test_the_place_among_ragged_elements_is_saved(resumed, tmp_path):
    def make() -> Any:
        rows = Dataset.from_tensor_slices(tf.ragged.constant(ROWS)).shuffle(3, seed=1)
        return rows.prefetch(2).map(lambda r: r.to_tensor(default_value=-1))

    resumed(make, tmp_path, (0, 1, 2))


@pytest.mark.parametrize(
    ("attrs", "told"),
    [
        ({"output_ragged_rank": 2, "input_ragged_rank": 1}, "output_ragged_rank must be equal to"),
        ({"output_ragged_rank": 2, "input_ragged_rank": 2}, "input_ragged_rank: 2, found 2"),
        ({"output_ragged_rank": 1, "Tvalues": tf.float32}, "Expected values Tensor dtype: float32"),
        ({"output_ragged_rank": 1, "Tsplits": tf.int32}, "Expected splits Tensor dtype: int32"),
    ],
)
def test_a_box_of_another_kind_is_refused(attrs, told):
    box = tf.raw_ops.RaggedTensorToVariant(
        rt_nested_splits=[np.array([0, 1])], rt_dense_values=np.array([5], np.int64),
        batched_input=False,
    )  # fmt: skip
    box = tf.placeholder_with_default(box, None)
    usual = {"input_ragged_rank": -1, "Tvalues": tf.int64, "Tsplits": tf.int64}
    found = tf.raw_ops.RaggedTensorFromVariant(encoded_ragged=box, **{**usual, **attrs})
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=told):
        session.run(found[-1])


def test_a_spec_wants_to_know_the_ragged_rank():
    with pytest.raises(ValueError, match="Must specify ragged_rank"):
        tf.RaggedTensorSpec()
    with pytest.raises(ValueError, match="ragged_rank must be less than rank"):
        tf.RaggedTensorSpec([2, None], tf.int32, 2)
    assert tf.RaggedTensorSpec([2, None]) == tf.RaggedTensorSpec([2, None], ragged_rank=1)
