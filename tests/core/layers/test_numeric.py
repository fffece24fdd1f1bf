"""Layers against plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf

RNG = np.random.RandomState(7)


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as made:
        yield made


def value(tensor: Any, feed: Any = None) -> Any:
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        out, weights = s.run([tensor, tf.global_variables()], feed)
    assert tensor.shape.is_compatible_with(out.shape)
    return out, {v.op.name.split("/")[-1]: w for v, w in zip(tf.global_variables(), weights)}


def conv(x: Any, kernel: Any, stride: int = 1, rate: int = 1) -> Any:
    """VALID convolution of [n, *space, c] by [*window, c, f], one window at a time."""
    rank = x.ndim - 2
    reach = [rate * (k - 1) + 1 for k in kernel.shape[:rank]]
    size = [(d - r) // stride + 1 for d, r in zip(x.shape[1:-1], reach)]
    out = np.zeros((x.shape[0], *size, kernel.shape[-1]))
    for place in np.ndindex(*size):
        cut = tuple(slice(p * stride, p * stride + r, rate) for p, r in zip(place, reach))
        axes = list(range(1, rank + 2)), list(range(rank + 1))
        out[(slice(None), *place)] = np.tensordot(x[(slice(None), *cut)], kernel, axes)
    return out


def data(*shape: int) -> Any:
    return RNG.randn(*shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(4, 3), (2, 5, 3), (2, 2, 2, 3)])
def test_dense(shape: Any) -> None:
    x = data(*shape)
    y, w = value(tf.layers.dense(x, 4, tf.nn.tanh, bias_initializer=tf.ones_initializer()))
    np.testing.assert_allclose(y, np.tanh(x @ w["kernel"] + w["bias"]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("stride", "rate"), [(1, 1), (2, 1), (1, 2)])
def test_conv(rank: int, stride: int, rate: int) -> None:
    x = data(2, *[6] * rank, 3)
    layer = getattr(tf.layers, f"conv{rank}d")
    y, w = value(layer(x, 4, 2, strides=stride, dilation_rate=rate))
    np.testing.assert_allclose(y, conv(x, w["kernel"], stride, rate), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rank", [1, 2])
def test_channels_first(rank: int) -> None:
    x = data(2, *[6] * rank, 3)
    layer = getattr(tf.layers, f"conv{rank}d")
    ones = tf.ones_initializer()
    moved = np.moveaxis(x, -1, 1)
    y, w = value(layer(moved, 4, 3, data_format="channels_first", bias_initializer=ones))
    np.testing.assert_allclose(
        np.moveaxis(y, 1, -1), conv(x, w["kernel"]) + 1, rtol=1e-4, atol=1e-5
    )


def test_causal_conv1d() -> None:
    x = data(2, 6, 3)
    y, w = value(tf.layers.conv1d(x, 4, 3, padding="causal"))
    padded = np.pad(x, ((0, 0), (2, 0), (0, 0)))
    np.testing.assert_allclose(y, conv(padded, w["kernel"]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rank", [1, 2])
def test_separable(rank: int) -> None:
    x = data(2, *[6] * rank, 3)
    layer = getattr(tf.layers, f"separable_conv{rank}d")
    y, w = value(layer(x, 4, 3, depth_multiplier=2, bias_initializer=tf.ones_initializer()))
    depth, point = w["depthwise_kernel"], w["pointwise_kernel"]
    parts = [
        conv(x[..., c : c + 1], depth[..., c : c + 1, :]) for c in range(3)
    ]  # fmt: skip
    mixed = np.concatenate(parts, -1) @ point.reshape(6, 4)
    np.testing.assert_allclose(y, mixed + 1, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize("first", [False, True])
def test_transposed(rank: int, padding: str, first: bool) -> None:
    x = data(1, *[3] * rank, 2)
    layer = getattr(tf.layers, f"conv{rank}d_transpose")
    given = np.moveaxis(x, -1, 1) if first else x
    y, w = value(
        layer(given, 4, 3, strides=2, padding=padding,
              data_format="channels_first" if first else "channels_last")
    )  # fmt: skip
    y = np.moveaxis(y, 1, -1) if first else y
    full = np.zeros((1, *[7] * rank, 4))
    for place in np.ndindex(*[3] * rank):
        cut = tuple(slice(2 * p, 2 * p + 3) for p in place)
        full[(slice(None), *cut)] += np.moveaxis(
            np.tensordot(x[(slice(None), *place)], w["kernel"], [[1], [rank + 1]]), 0, 0
        )
    if padding == "same":
        full = full[(slice(None), *[slice(0, 6)] * rank)]
    np.testing.assert_allclose(y, full, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("kind", ["max", "average"])
@pytest.mark.parametrize("first", [False, True])
def test_pooling(rank: int, kind: str, first: bool) -> None:
    x = data(2, *[5] * rank, 3)
    layer = getattr(tf.layers, f"{kind}_pooling{rank}d")
    given = np.moveaxis(x, -1, 1) if first else x
    made = layer(given, 2, 2, data_format="channels_first" if first else "channels_last")
    with tf.Session() as s:
        y = s.run(made)
    assert made.shape.as_list() == list(y.shape)
    y = np.moveaxis(y, 1, -1) if first else y
    reduce = np.max if kind == "max" else np.mean
    for place in np.ndindex(*[2] * rank):
        cut = tuple(slice(2 * p, 2 * p + 2) for p in place)
        window = x[(slice(None), *cut)]
        wanted = reduce(window, axis=tuple(range(1, rank + 1)))
        np.testing.assert_allclose(y[(slice(None), *place)], wanted, rtol=1e-5, atol=1e-6)


def test_flatten() -> None:
    x = tf.placeholder(tf.float32, [None, 2, 3])
    y = tf.layers.flatten(x)
    assert y.op.name == "flatten/Reshape"
    assert y.shape.as_list() == [None, 6]
    first = tf.layers.flatten(x, data_format="channels_first")
    a = data(4, 2, 3)
    np.testing.assert_array_equal(value(y, {x: a})[0], a.reshape(4, 6))
    moved = np.moveaxis(a, 1, -1).reshape(4, 6)
    np.testing.assert_array_equal(value(first, {x: a})[0], moved)
    assert tf.layers.flatten(tf.placeholder(tf.float32, [3, None])).shape.as_list() == [3, None]


def test_dropout() -> None:
    x = tf.ones([1000])
    training = tf.placeholder(tf.bool, [])
    made = [tf.layers.dropout(x, 0.25, training=t, seed=1) for t in (False, True, training)]
    assert made[0].op.name == "dropout/Identity"
    with tf.Session() as s:
        off, on, later = s.run(made, {training: False})
        np.testing.assert_array_equal(off, np.ones(1000))
        np.testing.assert_array_equal(later, np.ones(1000))
        assert set(np.round(on.astype(float), 4)) == {0.0, 1.3333}
        assert 700 < np.count_nonzero(on) < 800
        assert 700 < np.count_nonzero(s.run(made[2], {training: True})) < 800
    whole = tf.layers.dropout(tf.ones([50, 8]), noise_shape=[None, 1], training=True)
    rows = value(whole)[0]
    assert np.all(rows == rows[:, :1])
