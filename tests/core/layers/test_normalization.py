"""Batch normalization against NumPy, and a small network trained with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf

RNG = np.random.RandomState(3)


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as made:
        yield made


def updates() -> list[Any]:
    return tf.get_collection(tf.GraphKeys.UPDATE_OPS)


@pytest.mark.parametrize("shape", [(6, 3), (4, 5, 5, 3), (2, 3, 4, 5, 3)])
@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("fused", [None, False])
@pytest.mark.parametrize("when", ["python", "tensor"])
def test_statistics(shape: Any, axis: int, fused: Any, when: str) -> None:
    x = (RNG.randn(*shape) * 3 + 2).astype(np.float32)
    x = x if axis == -1 else np.ascontiguousarray(np.moveaxis(x, -1, 1))
    flag = tf.placeholder_with_default(True, [])
    training: Any = True if when == "python" else flag
    y = tf.layers.batch_normalization(
        x, axis=axis, momentum=0.9, training=training, fused=fused,
        beta_initializer=tf.constant_initializer(0.5),
        gamma_initializer=tf.constant_initializer(2.0),
    )  # fmt: skip
    axes = tuple(i for i in range(x.ndim) if i != axis % x.ndim)
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    n = x.size / 3
    unbiased = n / (n - 1) if fused is None and x.ndim == 4 else 1.0
    assert [t.name for t in updates()] == [
        f"batch_normalization/AssignMovingAvg{i}:0" for i in ("", "_1")
    ]
    assert [v.op.name for v in tf.trainable_variables()] == [
        "batch_normalization/gamma", "batch_normalization/beta",
    ]  # fmt: skip
    moving = tf.global_variables()[2:]
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        wanted = 2 * (x - mean) / np.sqrt(var + 1e-3) + 0.5
        np.testing.assert_allclose(s.run([y, updates()])[0], wanted, rtol=1e-3, atol=1e-4)
        m, v = s.run(moving)
        np.testing.assert_allclose(m, 0.1 * mean.ravel(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(v, 0.9 + 0.1 * unbiased * var.ravel(), rtol=1e-4)
        if when == "tensor":
            wide = mean.shape
            got, *_ = s.run([y, updates()], {flag: False})
            wanted = 2 * (x - m.reshape(wide)) / np.sqrt(v.reshape(wide) + 1e-3) + 0.5
            np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4)
            np.testing.assert_allclose(s.run(moving), [m, v], rtol=1e-6)


def test_inference_by_default() -> None:
    x = np.ones((2, 4, 4, 3), np.float32)
    y = tf.layers.batch_normalization(x)
    assert updates() == []
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        np.testing.assert_allclose(s.run(y), x / np.sqrt(1.001), rtol=1e-5)


def test_fused_op_and_its_format(graph: Any) -> None:
    tf.layers.batch_normalization(tf.ones([1, 3, 4, 5]), axis=1, training=True)
    tf.layers.batch_normalization(tf.ones([1, 3, 4, 5]), training=True, fused=True)
    tf.layers.batch_normalization(tf.ones([1, 3, 4, 5]), training=True, data_format="NCHW")
    nodes = [op for op in graph.get_operations() if op.type == "FusedBatchNormV3"]
    assert [n.get_attr("data_format") for n in nodes] == [b"NCHW", b"NHWC", b"NCHW"]


def test_without_center_and_scale() -> None:
    x = RNG.randn(4, 2, 2, 3).astype(np.float32)
    made = [
        tf.layers.batch_normalization(x, center=False, scale=False, training=True, fused=f)
        for f in (True, False)
    ]
    assert tf.trainable_variables() == []
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        a, b = s.run(made)
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_frozen_layers_collect_no_updates() -> None:
    tf.layers.batch_normalization(tf.ones([2, 3]), training=True, trainable=False)
    assert updates() == []


def test_shared_layers_collect_each_update() -> None:
    for reuse in (None, True):
        tf.layers.batch_normalization(tf.ones([2, 3]), training=True, name="bn", reuse=reuse)
    assert len(updates()) == 4
    assert len(tf.global_variables()) == 4


def test_what_the_fused_op_cannot_do_is_done_unfused(graph: Any) -> None:
    tf.layers.batch_normalization(tf.ones([1, 3, 4, 5]), axis=2, fused=True, training=True)
    assert "FusedBatchNormV3" not in {op.type for op in graph.get_operations()}


def test_adjustment() -> None:
    x = RNG.randn(4, 3).astype(np.float32)
    training = tf.placeholder_with_default(True, [])
    y = tf.layers.batch_normalization(
        x, training=training, adjustment=lambda shape: (tf.fill(shape, 3.0), tf.fill(shape, 1.0))
    )
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        normal = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-3)
        np.testing.assert_allclose(s.run(y), 3 * normal + 1, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(s.run(y, {training: False}), x / np.sqrt(1.001), rtol=1e-5)


def test_parts_of_the_batch_are_normalized_on_their_own() -> None:
    x = RNG.randn(6, 2, 2, 3).astype(np.float32)
    y = tf.layers.batch_normalization(x, virtual_batch_size=2, training=True)
    # TF folds the batch so that every third example belongs to one part.
    parts = x.reshape(2, 3, 2, 2, 3)
    mean, var = (f(parts, axis=(0, 2, 3), keepdims=True) for f in (np.mean, np.var))
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        wanted = ((parts - mean) / np.sqrt(var + 1e-3)).reshape(x.shape)
        np.testing.assert_allclose(s.run(y), wanted, rtol=1e-4, atol=1e-5)
        s.run(updates())
        moved = 0.01 * mean.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(s.run(tf.global_variables()[2]), moved, rtol=1e-4, atol=1e-7)


def test_renorm_corrects_towards_what_it_has_seen() -> None:
    x = RNG.randn(5, 2).astype(np.float32) + 2
    training = tf.placeholder_with_default(True, [])
    y = tf.layers.batch_normalization(
        x, renorm=True, renorm_clipping={"rmax": 1.5, "rmin": 0.9, "dmax": 0.5},
        renorm_momentum=0.5, training=training,
    )  # fmt: skip
    kept = {v.op.name.split("/")[-1]: v for v in tf.global_variables()}
    mean, std = x.mean(0), np.sqrt(x.var(0) + 1e-3)
    r, d = np.clip(std, 0.9, 1.5), np.clip(mean, -0.5, 0.5)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        s.run(updates(), {training: False})
        np.testing.assert_allclose(s.run(kept["moving_variance"]), [1, 1])
        got = s.run([y, *updates()])[0]
        np.testing.assert_allclose(got, (x - mean) / std * r + d, rtol=1e-4, atol=1e-5)
        found = s.run(kept)
    np.testing.assert_allclose(found["renorm_mean"], mean / 2, rtol=1e-4)
    np.testing.assert_allclose(found["renorm_stddev"], (1 + std) / 2, rtol=1e-4)
    np.testing.assert_allclose(found["moving_stddev"], 0.99 + 0.01 * std, rtol=1e-4)
    np.testing.assert_allclose(found["moving_variance"], (0.99 + 0.01 * std) ** 2 - 1e-3, rtol=1e-4)


@pytest.mark.parametrize("fused", [True, False])
def test_partitioned_variables(fused: bool) -> None:
    x = RNG.randn(4, 2, 2, 4).astype(np.float32)
    with tf.variable_scope("parts", partitioner=tf.fixed_size_partitioner(2)):
        y = tf.layers.batch_normalization(x, training=True, fused=fused)
    assert len(tf.trainable_variables()) == 4 and len(tf.global_variables()) == 6
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        got, *_ = s.run([y, *updates()])
    wanted = (x - x.mean((0, 1, 2))) / np.sqrt(x.var((0, 1, 2)) + 1e-3)
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4)


def test_errors() -> None:
    x = tf.ones([2, 4, 4, 3])
    with pytest.raises(ValueError, match="renorm_clipping .* contains keys not in"):
        tf.layers.batch_normalization(x, renorm=True, renorm_clipping={"max": 1})
    with pytest.raises(ValueError, match="adjustment cannot be specified"):
        tf.layers.batch_normalization(x, virtual_batch_size=2, adjustment=lambda s: (1.0, 0.0))
    with pytest.raises(ValueError, match="virtual_batch_size must be a positive integer"):
        tf.layers.batch_normalization(x, virtual_batch_size=-1)
    with pytest.raises(ValueError, match="means axis=1, but axis=3"):
        tf.layers.batch_normalization(x, axis=3, data_format="NCHW")
    with pytest.raises(ValueError, match="the same as axis=1"):
        tf.layers.batch_normalization(x, data_format="CHWN")
    with pytest.raises(ValueError, match="Invalid axis: 4"):
        tf.layers.batch_normalization(x, axis=4)
    with pytest.raises(TypeError, match="axis must be int or list"):
        tf.layers.batch_normalization(x, axis="c")
    with pytest.raises(ValueError, match="undefined rank"):
        tf.layers.batch_normalization(tf.placeholder(tf.float32))
    with pytest.raises(ValueError, match="undefined `axis` dimension"):
        tf.layers.batch_normalization(tf.placeholder(tf.float32, [2, None]))


def test_a_network_learns() -> None:
    tf.set_random_seed(5)
    rng = np.random.RandomState(0)
    labels = rng.randint(0, 2, 256)
    # Stripes across or along, with noise and a brightness of their own.
    line = np.tile([1.0, -1.0], 4)
    images = np.where(labels[:, None, None], line[None, :, None], line[None, None, :])
    images = images * 0.7 + rng.randn(256, 8, 8) * 0.8 + rng.randn(256, 1, 1) * 3
    x = tf.placeholder(tf.float32, [None, 8, 8, 1])
    y = tf.placeholder(tf.int64, [None])
    training = tf.placeholder(tf.bool, [])
    h = tf.layers.conv2d(x, 8, 3, use_bias=False)
    h = tf.nn.relu(tf.layers.batch_normalization(h, training=training, momentum=0.9))
    h = tf.layers.max_pooling2d(h, 2, 2)
    h = tf.layers.dense(tf.layers.flatten(h), 16)
    h = tf.nn.relu(tf.layers.batch_normalization(h, training=training, momentum=0.9))
    logits = tf.layers.dense(tf.layers.dropout(h, 0.1, training=training), 2)
    loss = tf.losses.sparse_softmax_cross_entropy(y, logits)
    with tf.control_dependencies(updates()):
        train = tf.train.AdamOptimizer(0.01).minimize(loss)
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
    feed = {x: images[..., None], y: labels, training: True}
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        losses = [s.run([loss, train], feed)[0] for _ in range(40)]
        feed[training] = False
        assert losses[-1] < 0.1 < losses[0]
        assert s.run(accuracy, feed) > 0.98


def test_a_fused_layer_moves_to_the_variance_of_an_unfused_one_if_asked_to() -> None:
    x = tf.constant(np.random.RandomState(0).standard_normal((1, 2, 2, 1)), tf.float32)
    layers = [tf.layers.BatchNormalization(momentum=0.0, fused=f) for f in (True, True, False)]
    layers[1]._bessels_correction_test_only = False
    for layer in layers:
        layer.apply(x, training=True)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([layer.updates for layer in layers])
        fused, corrected, plain = session.run([layer.moving_variance for layer in layers])
    np.testing.assert_allclose(fused, plain * 4 / 3, rtol=1e-5)
    np.testing.assert_allclose(corrected, plain, rtol=1e-5)
