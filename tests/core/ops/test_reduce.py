"""Reductions: names and nodes as TF makes them, argument synonyms, edge values, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def run(fetch, feeds=None):
    with tf.Session() as session:
        return session.run(fetch, feeds)


def names(graph):
    return [op.name for op in graph.get_operations()]


# ---------------------------------------------------------------- nodes and arguments
def test_no_axis_makes_a_const_beside_the_op(graph):
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    assert tf.reduce_sum(x).op.name == "Sum"
    assert names(graph) == ["x", "Const", "Sum"]
    assert graph.get_operation_by_name("Const").inputs == ()
    assert run(graph.get_tensor_by_name("Const:0")).tolist() == [0, 1]


def test_an_axis_makes_a_const_inside_the_op_scope(graph):
    x = tf.placeholder(tf.float32, [2, 3], name="x")
    assert tf.reduce_mean(x, 1, name="m").op.name == "m"
    assert names(graph) == ["x", "m/reduction_indices", "m"]


def test_unknown_rank_reduces_a_range(graph):
    x = tf.placeholder(tf.float32, name="x")
    total = tf.reduce_max(x)
    assert total.shape == ()
    assert names(graph) == ["x", "Rank", "range/start", "range/delta", "range", "Max"]
    assert run(total, {x: [[1, 5], [2, 3]]}) == 5


@pytest.mark.parametrize(
    ("fn", "kind"),
    [
        (tf.reduce_sum, "Sum"), (tf.reduce_mean, "Mean"), (tf.reduce_prod, "Prod"),
        (tf.reduce_max, "Max"), (tf.reduce_min, "Min"),
        (tf.math.reduce_euclidean_norm, "EuclideanNorm"),
    ],
)  # fmt: skip
def test_op_types(fn, kind):
    op = fn(tf.zeros([2, 2])).op
    assert (op.type, op.name) == (kind, kind)


@pytest.mark.parametrize("known", [True, False])
def test_a_norm_along_no_axis_changes_nothing(known):
    value = np.array([3 - 4j, -2.0], np.complex64)
    x = tf.constant(value) if known else tf.placeholder(tf.complex64, [None])
    axes = tf.placeholder_with_default(np.zeros(0, np.int32), [None])
    for axis in ([], axes):
        norm = tf.math.reduce_euclidean_norm(x, axis)
        np.testing.assert_array_equal(run(norm, {} if known else {x: value}), value)


def test_old_argument_names():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert run(tf.reduce_sum(x, reduction_indices=[1], keep_dims=True)).tolist() == [[3], [7]]
    assert tf.reduce_any([[True]], reduction_indices=0, keep_dims=True).shape == (1, 1)
    with pytest.raises(ValueError, match="Cannot specify both 'reduction_indices' and 'axis'"):
        tf.reduce_sum(x, axis=0, reduction_indices=0)
    with pytest.raises(ValueError, match="Cannot specify both 'keep_dims' and 'keepdims'"):
        tf.reduce_sum(x, keepdims=True, keep_dims=True)


def test_python_values_and_variables_reduce():
    assert run(tf.reduce_sum([[1, 2], [3, 4]], 0)).tolist() == [4, 6]
    v = tf.Variable([1.0, 2.0])
    total = tf.reduce_sum(v)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(total) == 3


def test_static_shapes():
    x = tf.placeholder(tf.float32, [None, 3, 4])
    assert tf.reduce_sum(x, [0, 2]).shape.as_list() == [3]
    assert tf.reduce_sum(x, -1, keepdims=True).shape.as_list() == [None, 3, 1]
    axis = tf.placeholder(tf.int32, [])
    assert tf.reduce_sum(x, axis).shape.ndims is None
    assert tf.reduce_sum(x, axis, keepdims=True).shape.as_list() == [None, None, None]


def test_wrong_axes():
    x = tf.placeholder(tf.float32, [2, 3])
    with pytest.raises(ValueError, match="Invalid reduction dimension 2 for input with 2 dim"):
        tf.reduce_sum(x, 2)
    axis = tf.placeholder(tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid reduction dimension"):
        run(tf.reduce_sum(x, axis), {x: np.zeros((2, 3)), axis: 5})


def test_an_axis_may_be_named_twice():
    """TF 1.15 marks the dimensions that go; later versions refuse it."""
    x, axis = tf.placeholder(tf.float32, [2, 3]), tf.placeholder(tf.int32)
    data = np.arange(6.0).reshape(2, 3)
    for named in ([1, -1], [1, 1, -1]):
        assert run(tf.reduce_sum(x, axis), {x: data, axis: named}).tolist() == [3.0, 12.0]
        assert run(tf.reduce_max(x, named, keepdims=True), {x: data}).tolist() == [[2.0], [5.0]]


# ---------------------------------------------------------------- values
def test_reductions_of_nothing():
    x = tf.zeros([2, 0])
    assert run(tf.reduce_sum(x, 1)).tolist() == [0, 0]
    assert run(tf.reduce_prod(x, 1)).tolist() == [1, 1]
    assert np.isnan(run(tf.reduce_mean(x, 1))).all()
    assert run(tf.reduce_max(x, 1)).tolist() == [-np.inf] * 2
    assert run(tf.reduce_min(x, 1)).tolist() == [np.inf] * 2
    assert run(tf.reduce_max(tf.zeros([2, 0], tf.int32), 1)).tolist() == [-(2**31)] * 2
    assert run(tf.reduce_all(tf.zeros([0], tf.bool))) and not run(
        tf.reduce_any(tf.zeros([0], tf.bool))
    )
    assert run(tf.reduce_logsumexp(x, 1)).tolist() == [-np.inf] * 2


def test_integer_means_divide_as_in_c():
    assert run(tf.reduce_mean([-1, -2, -4])) == -2
    assert run(tf.reduce_mean(tf.constant([200, 250], tf.uint8))) == 225
    assert run(tf.reduce_mean(tf.constant([-128, -127], tf.int8))) == -127


def test_sums_of_narrow_integers_wrap_around():
    total = run(tf.reduce_sum(tf.constant([100, 100], tf.int8)))
    assert (total, total.dtype) == (-56, np.int8)


def test_sixteen_bit_floats_add_up_in_thirty_two():
    x = np.full(4096, 1.0009765625, np.float16)
    assert run(tf.reduce_sum(tf.constant(x))) == np.float16(4100)
    assert run(tf.reduce_mean(tf.constant(x))) == x[0]
    ones = tf.ones([1000], tf.bfloat16)
    assert float(run(tf.reduce_sum(ones))) == 1000


def test_nan_wins_extremes_and_never_positions():
    x = tf.constant([1.0, np.nan, 3.0])
    assert np.isnan(run(tf.reduce_max(x))) and np.isnan(run(tf.reduce_min(x)))
    assert run(tf.argmax(x)) == 2 and run(tf.argmin(x)) == 0
    assert run(tf.argmax(tf.constant([[np.nan, np.nan], [np.nan, 1.0]]), 1)).tolist() == [0, 1]


@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 1), (1, 2), (0, 2), (0, 1, 2), ()])
@pytest.mark.parametrize("shape", [(3, 4, 5), (70, 4, 3), (2, 1, 700), (9000, 1, 1), (130, 65, 2)])
def test_every_layout_agrees_with_numpy(shape, axis):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    t = tf.placeholder(tf.float32, shape)
    axes = list(axis) if isinstance(axis, tuple) else axis
    fetches = [fn(t, axes) for fn in (tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_min)]
    kept = tf.reduce_sum(t, axes, keepdims=True)
    got = run([*fetches, kept], {t: x})
    wide = x.astype(np.float64)
    wanted = [
        wide.sum(axis),
        wide.mean(axis),
        x.max(axis),
        x.min(axis),
        wide.sum(axis, keepdims=True),
    ]
    for value, want in zip(got, wanted, strict=True):
        np.testing.assert_allclose(value, want, rtol=2e-5, atol=2e-4)
        assert value.shape == want.shape and value.dtype == np.float32


def test_layouts_of_strided_feeds_agree_with_numpy():
    x = np.arange(240, dtype=np.float32).reshape(4, 5, 12)[::2, :, ::3]
    t = tf.placeholder(tf.float32)
    for axis in (None, 0, 1, 2, [0, 2]):
        np.testing.assert_allclose(
            run(tf.reduce_sum(t, axis), {t: x}),
            x.sum(tuple(axis) if isinstance(axis, list) else axis),
        )


def test_an_empty_list_of_axes_copies():
    x = tf.constant([[1.0, -2.0]])
    assert run(tf.reduce_sum(x, [])).tolist() == [[1.0, -2.0]]
    assert run(tf.reduce_all([[True, False]], [])).tolist() == [[True, False]]


# ---------------------------------------------------------------- positions
def test_arg_functions():
    x = tf.constant([[1, 5, 5], [7, 0, 7]])
    assert run(tf.argmax(x)).tolist() == [1, 0, 1] and run(tf.argmax(x, 1)).tolist() == [1, 0]
    assert run(tf.argmin(x, dimension=1)).tolist() == [0, 1]
    assert tf.argmax(x, output_type=tf.int32).dtype == tf.int32
    assert tf.arg_max(x, 0).op.name == "ArgMax_3" and tf.arg_min(x, 1).op.type == "ArgMin"
    with pytest.raises(ValueError, match="Cannot specify both 'dimension' and 'axis'"):
        tf.argmax(x, axis=0, dimension=0)
    with pytest.raises(ValueError, match=r"Dimension \(2\) must be in the range \[-2, 2\)"):
        tf.argmax(x, 2)
    assert tf.gradients(tf.cast(tf.argmax(tf.zeros([3])), tf.float32), x) == [None]


# ---------------------------------------------------------------- composites
def test_statistics():
    x = np.array([[1.0, 2.0, 4.0], [0.0, -3.0, 9.0]], np.float32)
    t = tf.constant(x)
    np.testing.assert_allclose(run(tf.math.reduce_variance(t, 0)), x.var(0), rtol=1e-6)
    np.testing.assert_allclose(run(tf.math.reduce_std(t)), x.std(), rtol=1e-6)
    large = tf.constant([1000.0, 1000.0])
    np.testing.assert_allclose(run(tf.reduce_logsumexp(large)), 1000 + np.log(2))
    assert tf.reduce_logsumexp(t, 1, keep_dims=True).shape == (2, 1)
    assert run(tf.count_nonzero(t, 1, dtype=tf.int32)).tolist() == [3, 2]
    assert run(tf.count_nonzero([b"", b"a", b"b"])) == 2
    assert run(tf.count_nonzero(input=[[1, 0]], keepdims=True)).tolist() == [[1]]


def test_moments():
    x = np.random.default_rng(1).standard_normal((4, 5, 3)).astype(np.float32)
    mean, variance = tf.nn.moments(tf.constant(x), [0, 1])
    np.testing.assert_allclose(run(mean), x.mean((0, 1)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(run(variance), x.var((0, 1)), rtol=1e-5)
    assert (mean.op.name, variance.op.name) == ("moments/Squeeze", "moments/Squeeze_1")
    half = tf.nn.moments(tf.constant(x.astype(np.float16)), [0], keep_dims=True)
    assert [t.dtype for t in half] == [tf.float16] * 2 and half[0].shape == (1, 5, 3)
    weights = np.array([[[1.0], [0.0], [2.0], [1.0], [0.0]]], np.float32)
    mean, variance = tf.nn.weighted_moments(tf.constant(x), [0, 1], weights)
    wanted = np.average(x, weights=np.broadcast_to(weights, x.shape), axis=(0, 1))
    np.testing.assert_allclose(run(mean), wanted, rtol=1e-4, atol=1e-5)


def test_sufficient_statistics_and_their_moments():
    x = np.random.default_rng(2).standard_normal((6, 3)).astype(np.float32)
    t = tf.placeholder(tf.float32, [None, 3])
    for shift in (None, 0.5):
        statistics = tf.nn.sufficient_statistics(t, [0], shift)
        mean, variance = run(tf.nn.normalize_moments(*statistics), {t: x})
        np.testing.assert_allclose(mean, x.mean(0), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(variance, x.var(0), rtol=1e-4)


def test_normalisation():
    x = np.array([[3.0, 4.0], [0.0, 0.0]], np.float32)
    assert run(tf.nn.l2_normalize(x, 1)).tolist() == [
        [pytest.approx(0.6), pytest.approx(0.8)],
        [0, 0],
    ]
    assert run(tf.nn.l2_normalize(x, dim=0))[0].tolist() == [1, 1]
    assert run(tf.nn.zero_fraction(x)) == 0.5


# ---------------------------------------------------------------- gradients
def gradient(fn, value):
    x = tf.constant(value)
    return run(tf.gradients(fn(x), x)[0])


def test_gradients():
    x = np.array([[1.0, 2.0], [2.0, 0.0]], np.float32)
    assert gradient(lambda t: tf.reduce_sum(t, 0), x).tolist() == [[1, 1], [1, 1]]
    assert gradient(tf.reduce_mean, x).tolist() == [[0.25, 0.25], [0.25, 0.25]]
    # Ties share.
    assert gradient(tf.reduce_max, x).tolist() == [[0, 0.5], [0.5, 0]]
    # A zero does not spoil the gradient of a product.
    assert gradient(lambda t: tf.reduce_prod(t, 1), x).tolist() == [[2, 1], [0, 2]]


@pytest.mark.parametrize(
    "fn",
    [tf.reduce_sum, tf.reduce_mean, tf.reduce_prod, tf.reduce_max, tf.math.reduce_euclidean_norm],
)
@pytest.mark.parametrize("shape", [None, [None, None], [None, 3], [2, 3]])
@pytest.mark.parametrize("axis", ["fed", 0, -1, [0, 1], None])
@pytest.mark.parametrize("keep", [False, True])
def test_gradients_whatever_is_known_of_the_shape(fn, shape, axis, keep):
    value = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
    x = tf.placeholder(tf.float64, shape)
    axes = tf.placeholder(tf.int32) if axis == "fed" else axis
    feeds = {x: value} | ({axes: 1} if axis == "fed" else {})
    known = tf.constant(value)
    wanted = tf.gradients(fn(known, 1 if axis == "fed" else axis, keep), known)[0]
    got = tf.gradients(fn(x, axes, keep), x)[0]
    np.testing.assert_allclose(run(got, feeds), run(wanted), rtol=1e-12)


def test_second_derivatives():
    x = tf.constant([1.0, 2.0, 3.0])
    once = tf.gradients(tf.reduce_prod(x), x)[0]
    twice = tf.gradients(once[0], x)[0]
    assert run(twice).tolist() == [0, 3, 2]
