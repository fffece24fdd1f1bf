"""Random functions: names, shapes and errors, without running anything."""

from __future__ import annotations

from typing import Any

import pytest

import opdock as tf


def test_node_names_are_those_of_tf(graph: Any) -> None:
    tf.random_uniform([2, 3], minval=-1, maxval=1, seed=1)
    parts = ("shape", "min", "max", "RandomUniform", "sub", "mul")
    wanted = [*(f"random_uniform/{n}" for n in parts), "random_uniform"]
    tf.random_normal([2])
    parts = ("shape", "mean", "stddev", "RandomStandardNormal", "mul")
    wanted += [*(f"random_normal/{n}" for n in parts), "random_normal"]
    assert [op.name for op in graph.get_operations()] == wanted


def test_seeds_are_attributes(graph: Any) -> None:
    tf.set_random_seed(12)
    node = tf.random_shuffle([1, 2], seed=34).op
    assert (node.get_attr("seed"), node.get_attr("seed2")) == (12, 34)


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (lambda n: tf.random_uniform([2, 3]), [2, 3]),
        (lambda n: tf.random_uniform([n, 3]), [None, 3]),
        (lambda n: tf.truncated_normal(tf.TensorShape([4])), [4]),
        (lambda n: tf.random_normal(()), []),
        (lambda n: tf.multinomial([[1.0, 2.0]], 5), [1, 5]),
        (lambda n: tf.multinomial([[1.0, 2.0]], n), [1, None]),
        (lambda n: tf.random_gamma([3], [1.0, 2.0]), [3, 2]),
        (lambda n: tf.random_shuffle(tf.zeros([4, 2])), [4, 2]),
        (lambda n: tf.random.stateless_uniform([7], seed=[1, 2]), [7]),
        (lambda n: tf.random.stateless_categorical([[1.0, 2.0]], 4, seed=[1, 2]), [1, 4]),
    ],
)
def test_static_shapes(build: Any, shape: list[int | None]) -> None:
    n = tf.placeholder(tf.int32, [])
    assert build(n).shape.as_list() == shape


def test_integers_need_a_maximum() -> None:
    with pytest.raises(ValueError, match="Must specify maxval for integer dtype"):
        tf.random_uniform([2], dtype=tf.int32)


def test_other_types_are_refused() -> None:
    with pytest.raises(ValueError, match="Invalid dtype"):
        tf.random_uniform([2], dtype=tf.uint8, maxval=3)


def test_a_shuffle_has_no_gradient() -> None:
    x = tf.placeholder(tf.float32, [4])
    with pytest.raises(LookupError, match="No gradient defined for operation 'RandomShuffle'"):
        tf.gradients(tf.random_shuffle(x), x)


def test_uniform_noise_has_no_gradient_but_lets_it_pass() -> None:
    x = tf.placeholder(tf.float32, [4])
    (slope,) = tf.gradients(x * tf.random_uniform([4]), x)
    assert slope is not None


def test_random_crop_has_the_size_asked_for() -> None:
    image = tf.placeholder(tf.float32, [8, 8, 3])
    assert tf.random_crop(image, [4, 4, 3]).shape.as_list() == [4, 4, 3]
