"""What PyTorch's namespace brings beyond the array API is what core's portable way computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import opdock as tf
from opdock.kernels.portable import segment
from opdock_torch.namespace import namespace_for

_EVERY = ("add", "multiply", "maximum", "minimum")


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, dtype) for name in _EVERY for dtype in (torch.float32, torch.int64)),
        *((name, torch.complex64) for name in ("add", "multiply")),
    ],
)
def test_rows_of_an_id_are_folded_as_one_by_one(name: str, dtype: Any) -> None:
    xp = namespace_for(torch.device("cpu"))
    rows = torch.tensor([[1, 2], [3, -4], [5, 6], [7, 8]]).to(dtype)
    ids = torch.tensor([2, 0, 2, -1])
    found, present = segment.fold(xp, getattr(xp, name), rows, ids, 3)
    assert present.tolist() == [True, False, True]  # of a negative id, sums say that as well
    fold = getattr(np, name)
    np.testing.assert_allclose(found[0].numpy(), rows[1].numpy())
    np.testing.assert_allclose(found[2].numpy(), fold(rows[0].numpy(), rows[2].numpy()))


def test_sums_are_zero_where_there_is_no_row() -> None:
    xp = namespace_for(torch.device("cpu"))
    found, present = segment.fold(xp, xp.add, torch.ones(3, 2), torch.tensor([2, 0, 2]), 3)
    assert present is None
    assert found.tolist() == [[1, 1], [0, 0], [2, 2]]


def test_of_equal_elements_the_first_is_the_largest() -> None:
    xp = namespace_for(torch.device("cpu"))
    values, places = xp.top_k(torch.tensor([2.0, 5.0, 3.0, 4.0]), 3)
    assert (values.tolist(), places.tolist()) == ([5, 4, 3], [1, 3, 2])
    values, places = xp.top_k(torch.tensor([-0.0, 1.0, 0.0, 1.0]), 4)
    assert values.tolist() == [1, 1, 0, 0]
    assert places.tolist() == [1, 3, 0, 2]


@pytest.mark.parametrize("dtype", [torch.complex64, torch.uint8, torch.float64])
def test_bits_of_a_part_of_an_array_are_read_as_another_type(dtype: Any) -> None:
    xp = namespace_for(torch.device("cpu"))
    every_other = torch.arange(16, dtype=torch.float32)[::2]
    found = xp.bitcast(every_other, dtype)
    wanted = np.arange(16, dtype=np.float32)[::2].copy().view(found.numpy().dtype)
    np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("best", [tf.argmax, tf.argmin])
def test_nan_is_never_the_best(best: Any) -> None:
    rows = np.array(
        [[1, np.nan, 3], [np.nan, np.nan, np.nan], [np.inf, np.nan, -np.inf], [2, 1, 2]], np.float32
    )
    with tf.Graph().as_default(), tf.Session() as session:
        found = []
        for device in ("/device:TORCH:0", "/device:CPU:0"):
            with tf.device(device):
                found.append(session.run(best(tf.constant(rows) + 0.0, 1)).tolist())
    assert found[0] == found[1]


def test_copies_of_transposed_tensors_lie_in_order() -> None:
    xp = namespace_for(torch.device("cpu"))
    assert xp.asarray(torch.ones(2, 3).mT, copy=True).is_contiguous()


@pytest.mark.parametrize("numbers", [[0, 0], [0, 2], [-1, 0]])
def test_what_is_no_permutation_is_refused(numbers: list[int]) -> None:
    with tf.Graph().as_default(), tf.device("/device:TORCH:0"), tf.Session() as session:
        given = tf.placeholder(tf.int32, [2])
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(tf.math.invert_permutation(given), {given: numbers})


def test_signs_of_nan_are_nan() -> None:
    numbers = np.array([np.nan, -np.inf, -1e-45, 0, 1e-45, 3, np.inf], np.float32)
    with tf.Graph().as_default(), tf.device("/device:TORCH:0"), tf.Session() as session:
        given = tf.placeholder(tf.float32, [7])
        found = session.run(tf.sign(given), {given: numbers})
    np.testing.assert_array_equal(found, [np.nan, -1, -1, 0, 1, 1, 1])


@pytest.mark.parametrize("ids", [[0, 3], [-1, 3], [5, 0], [1, 2]])
def test_rows_of_ids_that_are_too_large_are_refused(ids: list[int]) -> None:
    with tf.Graph().as_default(), tf.device("/device:TORCH:0"), tf.Session() as session:
        data, given = tf.ones([2, 3]), tf.placeholder(tf.int32, [2])
        total = tf.math.unsorted_segment_sum(data, given, 3)
        if max(ids) < 3:
            np.testing.assert_array_equal(session.run(total, {given: ids})[ids], np.ones((2, 3)))
            return
        at = ids.index(max(ids))
        told = rf"segment_ids\[{at}\] = {max(ids)} is out of range \[0, 3\)"
        with pytest.raises(tf.errors.InvalidArgumentError, match=told):
            session.run(total, {given: ids})


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_label_that_is_no_class_spoils_its_row_alone(dtype: Any) -> None:
    logits = np.random.default_rng(3).normal(size=(4, 5)).astype(dtype)
    found = []
    for labels in ([0, 4, 5, -1], [0, 4, 2, 3]):
        with tf.Graph().as_default(), tf.device("/device:TORCH:0"), tf.Session() as session:
            given = tf.placeholder(dtype, [4, 5])
            loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=given)
            found.append(session.run([loss, *tf.gradients(loss, given)], {given: logits}))
    assert np.isnan(found[0][0]).tolist() == [False, False, True, True]
    np.testing.assert_array_equal(np.isnan(found[0][1]).sum(1), [0, 0, 5, 5])
    for spoiled, right in zip(*found, strict=True):
        np.testing.assert_array_equal(spoiled[:2], right[:2])
    chance = np.exp(logits.astype(np.float64))
    chance /= chance.sum(1, keepdims=True)
    np.testing.assert_allclose(found[1][0], -np.log(chance[range(4), labels]), rtol=2e-3)
    np.testing.assert_allclose(found[1][1], chance - np.eye(5)[labels], rtol=1e-2, atol=1e-3)
