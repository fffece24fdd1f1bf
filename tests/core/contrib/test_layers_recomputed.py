"""Layers that are computed again for their gradients, and blocks whose inputs are found again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.contrib import layers


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def _dense(x: Any, *side: Any) -> Any:
    made = tf.layers.dense(x, 3, tf.tanh, kernel_initializer=tf.constant_initializer(0.3))
    return tf.add_n([made, *(side[0] if side else [])])


def _run(values: Any) -> Any:
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return sess.run(values)


X = np.random.default_rng(5).normal(size=(2, 3)).astype(np.float32)


@pytest.mark.parametrize("use_data_dep", [False, True])
@pytest.mark.parametrize("tupleize_grads", [False, True])
def test_gradients_of_what_is_computed_again_are_the_same(
    use_data_dep: bool, tupleize_grads: bool
) -> None:
    found = []
    again = layers.recompute_grad(use_data_dep=use_data_dep, tupleize_grads=tupleize_grads)(_dense)
    for name, function in (("plain", _dense), ("again", again)):
        x = tf.constant(X)
        with tf.variable_scope(name, use_resource=True) as scope:
            loss = tf.reduce_sum(function(x) ** 2)
        found.append([loss, *tf.gradients(loss, [x, *scope.trainable_variables()])])
    plain, repeated = _run(found)
    for one, other in zip(plain, repeated, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    names = [op.name for op in tf.get_default_graph().get_operations() if op.type == "MatMul"]
    # Forward of both; once more, and its two gradients, of the second; two gradients of the first.
    assert len(names) == 2 + 2 + 1 + 2


def test_what_cannot_be_computed_again() -> None:
    held = tf.constant(X)
    with pytest.raises(ValueError, match=r"closes over Tensor Const:0 \(local variable name: held"):
        layers.recompute_grad(lambda x: x * held)
    again = layers.recompute_grad(_dense)
    with pytest.raises(ValueError, match="All inputs to function must be Tensors"):
        again(X)
    with tf.variable_scope("layer", use_resource=True):
        x = tf.constant(X)
        loss = tf.reduce_sum(again(x) + again(x))
    with pytest.raises(ValueError, match="called twice in the same enclosing scope"):
        tf.gradients(loss, x)


@pytest.mark.parametrize("sides", [0, 2])
@pytest.mark.parametrize("is_training", [False, True])
def test_blocks_have_the_gradients_of_their_layers(sides: int, is_training: bool) -> None:
    x1, x2 = tf.constant(X), tf.constant(X[::-1].copy())
    side = [tf.constant(X + i) for i in range(sides)]
    y1, y2 = layers.rev_block(x1, x2, _dense, _dense, 2, side, side, is_training)
    assert [v.op.name for v in tf.trainable_variables()] == [
        f"revblock/revlayer_{i}/{kind}/dense/{part}"
        for i in range(2) for kind in "fg" for part in ("kernel", "bias")
    ]  # fmt: skip
    loss = tf.reduce_sum(y1 * y2)
    found = tf.gradients(loss, [x1, x2, *side, *tf.trainable_variables()])

    weights = tf.constant(np.full([3, 3], 0.3, np.float32))

    def layer(x: Any) -> Any:
        return tf.add_n([tf.tanh(tf.matmul(x, weights)), *side])

    z1, z2 = x1, x2
    for _ in range(2):
        z1 += layer(z2)
        z2 += layer(z1)
    plain = tf.gradients(tf.reduce_sum(z1 * z2), [x1, x2, *side])
    results = _run([y1, y2, *found[: 2 + sides]])
    wanted = _run([z1, z2, *plain])
    for one, other in zip(results, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-4)
    assert all(grad is not None for grad in found)


def test_the_inputs_of_a_block_are_found_again() -> None:
    block = layers.RevBlock(_dense, [_dense, _dense], num_layers=2)
    y1, y2 = block.forward(tf.constant(X), tf.constant(2 * X))
    x1, x2 = block.backward(y1, y2)
    np.testing.assert_allclose(_run([x1, x2]), [X, 2 * X], rtol=1e-4, atol=1e-5)
    assert len(block.trainable_variables) == 8
