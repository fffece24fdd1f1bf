"""Layers of contrib: names, collections, argument scopes, regularizers, initializers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as made:
        yield made


def variables() -> list[str]:
    return [v.op.name for v in tf.global_variables()]


def run(fetches: Any, feed: Any = None) -> Any:
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        return s.run(fetches, feed)


def test_fully_connected() -> None:
    x = np.random.RandomState(0).randn(4, 3).astype(np.float32)
    y = tf.contrib.layers.fully_connected(x, 5, variables_collections={"weights": ["w"]})
    assert variables() == ["fully_connected/weights", "fully_connected/biases"]
    assert y.op.name == "fully_connected/Relu"
    assert tf.model_variables() == tf.global_variables()
    assert tf.get_collection("w") == tf.global_variables()[:1]
    out, w = run([y, tf.global_variables()[0]])
    np.testing.assert_allclose(out, np.maximum(x @ w, 0), rtol=1e-5, atol=1e-6)
    limit = np.sqrt(6 / 8)
    assert np.abs(w).max() <= limit
    with pytest.raises(ValueError, match="num_outputs type"):
        tf.contrib.layers.fully_connected(x, 5.0)


def test_sharing() -> None:
    for reuse in (None, True):
        tf.contrib.layers.fully_connected(tf.ones([2, 3]), 5, scope="fc", reuse=reuse)
        tf.contrib.layers.conv2d(tf.ones([2, 4, 4, 1]), 5, 3, scope="c", reuse=reuse)
        tf.contrib.layers.batch_norm(tf.ones([2, 3]), scope="bn", reuse=reuse)
    assert variables() == [
        "fc/weights", "fc/biases", "c/weights", "c/biases", "bn/beta", "bn/moving_mean",
        "bn/moving_variance",
    ]  # fmt: skip


def test_conv_with_a_normalizer() -> None:
    layers = tf.contrib.layers
    with tf.contrib.framework.arg_scope(
        [layers.conv2d],
        normalizer_fn=layers.batch_norm,
        weights_regularizer=layers.l2_regularizer(0.5),
    ):
        y = layers.conv2d(tf.ones([2, 4, 4, 1]), 5, 3, outputs_collections="outs")
    assert variables() == [
        "Conv/weights", "Conv/BatchNorm/beta", "Conv/BatchNorm/moving_mean",
        "Conv/BatchNorm/moving_variance",
    ]  # fmt: skip
    assert tf.get_collection("outs") == [y]
    assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 2
    (loss,) = tf.losses.get_regularization_losses()
    assert loss.op.name == "Conv/kernel/Regularizer/l2_regularizer"
    got, w = run([loss, tf.global_variables()[0]])
    np.testing.assert_allclose(got, 0.25 * np.sum(w * w), rtol=1e-5)
    with pytest.raises(ValueError, match="expects input with rank 4, got 3"):
        layers.conv2d(tf.ones([2, 4, 1]), 5, 3)
    with pytest.raises(ValueError, match="Invalid data_format"):
        layers.conv2d(tf.ones([2, 4, 4, 1]), 5, 3, data_format="HWC")


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("fused", [None, True, False])
def test_batch_norm(data_format: str, fused: Any) -> None:
    x = (np.random.RandomState(1).randn(4, 5, 5, 5) * 2 + 3).astype(np.float32)
    y = tf.contrib.layers.batch_norm(x, decay=0.5, fused=fused, data_format=data_format)
    axes = (0, 1, 2) if data_format == "NHWC" else (0, 2, 3)
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        got, _ = s.run([y, updates])
        np.testing.assert_allclose(got, (x - mean) / np.sqrt(var + 1e-3), rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(s.run(tf.global_variables()[1]), mean.ravel() / 2, rtol=1e-4)


@pytest.mark.parametrize("shape", [(8, 3), (4, 2, 2, 3)])
def test_batch_norm_in_place(shape: Any) -> None:
    x = np.random.RandomState(1).randn(*shape).astype(np.float32) + 2
    y = tf.contrib.layers.batch_norm(x, decay=0.5, updates_collections=None)
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []
    moving = tf.global_variables()[1]
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        s.run(y)
        mean = x.mean(tuple(range(x.ndim - 1)))
        np.testing.assert_allclose(s.run(moving), mean / 2, rtol=1e-4)


def test_batch_norm_options() -> None:
    x = np.random.RandomState(1).randn(8, 3).astype(np.float32) + 2
    flag = tf.placeholder(tf.bool, [])
    y = tf.contrib.layers.batch_norm(
        x, is_training=flag, scale=True, param_initializers={"gamma": tf.constant_initializer(3.0)},
        activation_fn=tf.nn.relu, updates_collections="mine", zero_debias_moving_mean=True,
    )  # fmt: skip
    assert variables()[:3] == ["BatchNorm/gamma", "BatchNorm/beta", "BatchNorm/moving_mean"]
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        got = s.run(y, {flag: False})
        np.testing.assert_allclose(got, np.maximum(3 * x / np.sqrt(1.001), 0), rtol=1e-4)
        s.run(tf.get_collection("mine"), {flag: True})
        # Corrected for its start at zero, the first mean is the batch's.
        np.testing.assert_allclose(s.run(tf.global_variables()[2]), x.mean(0), rtol=1e-3)
    with pytest.raises(tf.errors.UnimplementedError, match="batch_weights"):
        tf.contrib.layers.batch_norm(x, batch_weights=tf.ones([8]))
    with pytest.raises(ValueError, match="data_format has to be either NCHW or NHWC"):
        tf.contrib.layers.batch_norm(x, data_format="NWHC")


def test_the_lines_of_the_slides_run() -> None:
    input_layer = tf.ones([2, 3, 4, 5])
    made = [
        tf.contrib.layers.batch_norm(input_layer, fused=True, data_format="NCHW"),
        tf.layers.batch_normalization(input_layer, fused=True, data_format="NCHW"),
    ]
    assert [v.shape for v in run(made)] == [(2, 3, 4, 5)] * 2
    assert all(v.shape.as_list() == [3] for v in tf.global_variables())


def test_layer_norm() -> None:
    x = np.random.RandomState(1).randn(4, 6).astype(np.float32) * 3 + 1
    y = run(tf.contrib.layers.layer_norm(x))
    wanted = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
    np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)
    assert variables() == ["LayerNorm/beta", "LayerNorm/gamma"]


def test_pooling_dropout_flatten() -> None:
    x = tf.reshape(tf.range(32.0), [2, 4, 4, 1])
    pooled = tf.contrib.layers.max_pool2d(x, 2)
    assert pooled.op.name == "MaxPool2D/MaxPool"
    flat = tf.contrib.layers.flatten(pooled)
    kept = tf.contrib.layers.dropout(flat, 0.5, is_training=False)
    mean = tf.contrib.layers.avg_pool2d(tf.transpose(x, [0, 3, 1, 2]), 4, data_format="NCHW")
    out, avg = run([kept, mean])
    np.testing.assert_array_equal(out[0], [5, 7, 13, 15])
    np.testing.assert_array_equal(avg.ravel(), [7.5, 23.5])


def test_regularizers() -> None:
    layers = tf.contrib.layers
    w = tf.constant([1.0, -2.0])
    both = layers.l1_l2_regularizer(0.5, 0.2)(w)
    total = layers.apply_regularization(layers.l1_regularizer(0.1), [w, w])
    assert total.op.name == "get_regularization_penalty"
    np.testing.assert_allclose(run([both, total, layers.l2_regularizer(0.2)(w)]), [2.0, 0.6, 0.5])
    assert tf.losses.get_regularization_losses() == [total]
    assert layers.l2_regularizer(0.0)(w) is None
    for bad, text in ((1, "cannot be an integer"), (-1.0, "less than 0")):
        with pytest.raises(ValueError, match=text):
            layers.l2_regularizer(bad)
    with pytest.raises(ValueError, match="No weights"):
        layers.apply_regularization(layers.l1_regularizer(0.1))


def test_initializers() -> None:
    layers = tf.contrib.layers
    shape = [5, 5, 20, 40]
    he = layers.variance_scaling_initializer(seed=1)(shape)
    wide = layers.xavier_initializer(seed=1)(shape)
    normal = layers.xavier_initializer(uniform=False, seed=1)([300])
    a, b, c = run([he, wide, normal])
    np.testing.assert_allclose(a.std(), np.sqrt(2 / 500), rtol=0.05)
    np.testing.assert_allclose(b.std(), np.sqrt(2 / 1500), rtol=0.05)
    np.testing.assert_allclose(c.std(), np.sqrt(1 / 300), rtol=0.15)
    with pytest.raises(TypeError, match="Unknown mode"):
        layers.variance_scaling_initializer(mode="fan_in")
    with pytest.raises(TypeError, match="non-floating"):
        layers.xavier_initializer(dtype=tf.int32)


def test_arg_scope() -> None:
    framework = tf.contrib.framework

    @framework.add_arg_scope
    def f(a: int, b: int = 2, c: int = 3) -> Any:
        return a, b, c

    with framework.arg_scope([f], b=20) as outer:
        assert f(1) == (1, 20, 3)
        with framework.arg_scope([f], c=30):
            assert f(1) == (1, 20, 30)
            assert f(1, b=5) == (1, 5, 30)
        assert f(1) == (1, 20, 3)
    assert f(1) == (1, 2, 3)
    with framework.arg_scope(outer):
        assert f(1) == (1, 20, 3)
    assert framework.has_arg_scope(f)
    assert framework.arg_scoped_arguments(f) == ("b", "c")
    with pytest.raises(ValueError, match="not decorated"), framework.arg_scope([run], b=1):
        pass
    with pytest.raises(TypeError, match="list/tuple or reused scope"), framework.arg_scope(f, b=1):
        pass


def test_embeddings_of_ids():
    ids = tf.constant([[1, 0, 1], [2, 2, 0]])
    plain = tf.contrib.layers.embed_sequence(ids, 3, 4, scope="words")
    once = tf.contrib.layers.embed_sequence(ids, unique=True, scope="words", reuse=True)
    assert [v.op.name for v in tf.global_variables()] == ["words/embeddings"]
    assert plain.shape == (2, 3, 4) and once.shape == (2, 3, 4)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, second = session.run([plain, once])
    assert (first == second).all()
    with pytest.raises(ValueError, match="Must specify vocab size"):
        tf.contrib.layers.embed_sequence(ids, scope="other")


def test_sparse_forms():
    cells = tf.contrib.layers.dense_to_sparse([[1, 0], [0, 2]])
    table = tf.constant([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])
    ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant([1, 2, 0], tf.int64), [3, 2])
    with tf.Session() as session:
        assert session.run(cells.values).tolist() == [1, 2]
        found = session.run(tf.contrib.layers.safe_embedding_lookup_sparse(table, ids))
    assert found.tolist() == [[3, 3], [0, 0], [1, 1]]
