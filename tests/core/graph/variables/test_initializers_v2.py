"""TF 2's initializers, which know their type when they are called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.graph.variables import initializers_v2 as v2


def value(tensor: Any) -> Any:
    with tf.Session() as sess:
        return sess.run(tensor)


@pytest.mark.parametrize(
    ("initializer", "bad", "text"),
    [
        (v2.Zeros(), tf.string, "Expected numeric or boolean dtype"),
        (v2.Ones(), tf.string, "Expected numeric or boolean dtype"),
        (v2.RandomUniform(), tf.string, "Expected float or integer dtype"),
        (v2.RandomNormal(), tf.int32, "Expected floating point type"),
        (v2.TruncatedNormal(), tf.int32, "Expected floating point type"),
        (v2.VarianceScaling(), tf.string, "Expected floating point type"),
        (v2.GlorotNormal(), tf.int64, "Expected floating point type"),
        (v2.Orthogonal(), tf.string, "Expected floating point type"),
        (v2.Identity(), tf.int32, "Expected floating point type"),
    ],
)
def test_a_type_that_does_not_serve_is_refused(initializer: Any, bad: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        initializer([2, 2], bad)
    for good in (tf.float32, tf.float64):
        assert initializer([2, 2], good).dtype == good


def test_defaults_are_tf_2s() -> None:
    draws = value(v2.RandomNormal(seed=1)([4000]))
    assert np.std(draws) == pytest.approx(0.05, rel=0.1)
    draws = value(v2.RandomUniform(seed=1)([4000]))
    assert draws.min() < -0.04 and draws.max() > 0.04 and abs(draws).max() <= 0.05
    assert value(v2.RandomUniform(1, 4, 1)([50], tf.int32)).max() == 3
    assert v2.VarianceScaling(distribution="normal").distribution == "truncated_normal"


def test_a_constant_has_one_value_or_all() -> None:
    assert value(v2.Constant(3)([2])).tolist() == [3, 3]
    assert value(v2.Constant([1, 2])([2, 1], tf.float32)).tolist() == [[1], [2]]
    for wrong in ([1, 2, 3], [1, 2, 3, 4, 5]):
        with pytest.raises(TypeError, match="Expected Tensor's shape"):
            v2.Constant(wrong)([2, 2])


def test_configurations_have_no_type() -> None:
    for made in (v2.Zeros(), v2.RandomNormal(1.0, 2.0, 3), v2.GlorotUniform(5), v2.Identity(2.0)):
        config = made.get_config()
        assert "dtype" not in config
        assert type(made).from_config({**config, "dtype": "float32"}).get_config() == config


def test_tf_compat_v2_and_get_variable_take_them() -> None:
    assert tf.compat.v2.random_normal_initializer is v2.RandomNormal
    assert tf.compat.v2.initializers.glorot_uniform is v2.GlorotUniform
    with tf.Graph().as_default():
        made = tf.get_variable("x", [2, 3], tf.float64, tf.compat.v2.initializers.ones())
        parts = tf.get_variable(
            "y", [4, 2], initializer=v2.Identity(), partitioner=tf.fixed_size_partitioner(2)
        )
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            assert sess.run(made).tolist() == [[1.0] * 3] * 2
            np.testing.assert_array_equal(sess.run(tf.convert_to_tensor(parts)), np.eye(4, 2))
