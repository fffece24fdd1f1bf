"""Functions of tf.compat.v2: TF 2's arguments, 1.x's functions."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock import errors
from opdock.mapping import names, resolve, tables, v2_order
from opdock.util import inspecting

v2 = tf.compat.v2


def value(tensor: Any) -> Any:
    with tf.Session() as sess:
        return sess.run(tensor)


def test_a_call_by_place_means_what_tf_2_says() -> None:
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert value(v2.pad(x, [[0, 0], [1, 0]], "CONSTANT", 9)).tolist() == [[9, 1, 2], [9, 3, 4]]
    assert v2.argmax(x, 1, tf.int32, "first").dtype == tf.int32
    assert value(v2.gather(x, [1], None, 1)).tolist() == [[2], [4]]
    assert value(v2.transpose(x, [1, 0], True, "t")).tolist() == [[1, 3], [2, 4]]
    assert v2.shape(x, tf.int64).dtype == tf.int64
    assert value(v2.reduce_sum(x, 0, True)).tolist() == [[4, 6]]
    assert value(v2.nn.sigmoid_cross_entropy_with_logits([0.0], [0.0])) == pytest.approx(np.log(2))


def test_a_call_by_name_takes_tf_2s_names() -> None:
    x = tf.constant([1.0, 2.0])
    assert value(v2.ones_like(input=x)).tolist() == [1, 1]
    assert value(v2.math.count_nonzero(input=x)) == 2
    found = value(v2.nn.erosion2d(value=np.ones([1, 3, 3, 1]), filters=np.zeros([2, 2, 1]),
        strides=[1] * 4, padding="VALID", data_format="NHWC", dilations=[1] * 4))  # fmt: skip
    assert found.shape == (1, 2, 2, 1)


@pytest.mark.parametrize("name", ["avg_pool", "max_pool"])
def test_pools_take_tf_2s_names_and_any_rank(name: str) -> None:
    image, line = np.arange(16.0).reshape(1, 4, 4, 1), np.arange(4.0).reshape(1, 4, 1)
    new, old = getattr(v2.nn, name), getattr(tf.nn, name)
    expected = value(old(image, 2, 2, "SAME"))
    np.testing.assert_array_equal(value(new(image, 2, 2, "SAME")), expected)
    np.testing.assert_array_equal(
        value(new(input=image, ksize=2, strides=2, padding="SAME")), expected
    )
    assert value(new(line, 2, 2, "VALID")).shape == (1, 2, 1)
    of_two = getattr(v2.nn, f"{name}2d")
    np.testing.assert_array_equal(
        value(of_two(input=image, ksize=2, strides=2, padding="SAME")), expected
    )


def test_what_1x_requires_is_found_under_tf_2s_name() -> None:
    """A call with all that TF 2 requires is one with all that 1.x requires."""
    seen = 0
    for path in names.table().v2_order:
        target = resolve.lookup("compat.v2", path)
        own = names.table().v2.get(path)
        if target is resolve.MISSING or own is None or path in tables.V2:
            continue
        spec = inspecting.getfullargspec(resolve.public(own))
        required = set(spec.args[: len(spec.args) - len(spec.defaults or ())])
        mine = tuple(inspect.signature(target).parameters)
        there = v2_order._renamed(mine, tuple(spec.args), frozenset(required))
        assert required <= set(there.values()), path
        seen += 1
    assert seen > 50


def test_partitions_are_divided_in_blocks() -> None:
    """1.x's functions deal rows out one by one; TF 2's have no argument for it."""
    parts = [tf.constant([[0.0], [1.0]]), tf.constant([[2.0], [3.0]])]
    ids = tf.SparseTensor([[0, 0], [1, 0]], tf.constant([1, 2], tf.int64), [2, 1])
    assert value(v2.nn.embedding_lookup(parts, [1, 2])).tolist() == [[1], [2]]
    assert value(tf.nn.embedding_lookup(parts, [1, 2])).tolist() == [[2], [1]]
    assert value(v2.nn.embedding_lookup_sparse(parts, ids, None)).tolist() == [[1], [2]]
    assert value(v2.nn.safe_embedding_lookup_sparse(parts, ids)).tolist() == [[1], [2]]
    drawn = [np.array([0, 3]), np.full([2, 1], 0.5, "f"), np.full(2, 0.5, "f")]
    for name in ("nce_loss", "sampled_softmax_loss"):
        biases, words = tf.constant([0.1, 0.2, 0.3, 0.4]), [[1], [2]]
        given = {"labels": words, "inputs": [[1.0], [2.0]], "num_sampled": 2, "num_classes": 4}
        old, new = getattr(tf.nn, name), getattr(v2.nn, name)
        blocks = new(parts, [biases[:2], biases[2:]], **given, sampled_values=drawn)
        whole = old(tf.concat(parts, 0), biases, **given, sampled_values=drawn)
        np.testing.assert_allclose(value(blocks), value(whole), rtol=1e-6)


def test_a_function_shows_tf_2s_arguments() -> None:
    assert str(inspect.signature(v2.reduce_sum)) == (
        "(input_tensor, axis=None, keepdims=False, name=None)"
    )
    spec = inspecting.getfullargspec(v2.argmax)
    assert spec.args == ["input", "axis", "output_type", "name"] and not spec.annotations
    assert spec.defaults == (None, tf.int64, None)
    assert v2.pad.__name__ == "pad" and v2.pad is v2.pad
    with pytest.raises(TypeError, match="unexpected keyword argument 'keep_dims'"):
        v2.reduce_sum([1.0], keep_dims=True)


def test_every_function_of_the_table_is_made_of_one() -> None:
    for path in names.table().v2_order:
        module, _, name = path.rpartition(".")
        if module.startswith(("keras", "estimator", "data", "distribute")):
            continue
        found = resolve.lookup(f"compat.v2.{module}".rstrip("."), name)
        assert found is resolve.MISSING or callable(found), path


def test_what_1_lacks_is_refused_where_it_says_something() -> None:
    proto = v2.make_tensor_proto
    assert proto([1.0], tf.float32, [1], False).float_val == [1.0]
    with pytest.raises(errors.UnimplementedError, match="data_format is an argument of TF 2"):
        v2.nn.erosion2d(
            np.ones([1, 3, 3, 1]), np.zeros([2, 2, 1]), [1] * 4, "VALID", "NCHW", [1] * 4
        )


@pytest.mark.parametrize(
    "path", sorted(p for p in names.table().v2_order if not p.startswith(("keras", "estimator")))
)
def test_what_1x_needs_is_among_what_tf_2_takes(path: str) -> None:
    known = inspecting.getfullargspec(resolve.without_libraries(path))
    needed = known.args[: len(known.args) - len(known.defaults or ())]
    served = v2_order._renamed(
        tuple(word.partition("=")[0] for word in names.table().v2_order[path]),
        tuple(known.args), needed,
    )  # fmt: skip
    assert set(needed) <= set(served.values())


def test_pools_by_the_name_of_their_input() -> None:
    x = np.arange(16.0).reshape(1, 4, 4, 1)
    for pool, first in ((v2.nn.avg_pool, 2.5), (v2.nn.avg_pool2d, 2.5), (v2.nn.max_pool, 5)):
        for found in (pool(x, 2, 2, "VALID"), pool(input=x, ksize=2, strides=2, padding="VALID")):
            assert found.shape == (1, 2, 2, 1) and value(found).flat[0] == first
    for rank in (3, 5):
        of_rank = np.ones([1, *[4] * (rank - 2), 1], "f")
        for pool in (v2.nn.avg_pool, v2.nn.max_pool):
            assert pool(input=of_rank, ksize=2, strides=2, padding="VALID").shape.ndims == rank
