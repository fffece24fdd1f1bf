"""Public parsing of Examples: what comes out for each description, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf


def _example(**named):
    example = tf.train.Example()
    for key, values in named.items():
        feature = example.features.feature[key]
        if isinstance(values[0], bytes):
            feature.bytes_list.value.extend(values)
        elif isinstance(values[0], float):
            feature.float_list.value.extend(values)
        else:
            feature.int64_list.value.extend(values)
    return example.SerializeToString()


BATCH = [_example(i=[1, 2], s=[b"a", b"b"], v=[1.0]), _example(i=[3, 4], v=[2.0, 3.0])]
FEATURES = {
    "i": tf.FixedLenFeature([2], tf.int64),
    "s": tf.VarLenFeature(tf.string),
    "v": tf.FixedLenSequenceFeature([], tf.float32, allow_missing=True, default_value=-1.0),
    "d": tf.FixedLenFeature([], tf.string, default_value="none"),
}


def test_a_batch():
    found = tf.parse_example(BATCH, FEATURES)
    assert found["i"].shape.as_list() == [2, 2]
    with tf.Session() as sess:
        out = sess.run(found)
    np.testing.assert_array_equal(out["i"], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(out["v"], [[1, -1], [2, 3]])
    assert out["d"].tolist() == [b"none"] * 2
    assert out["s"].values.tolist() == [b"a", b"b"]
    assert out["s"].dense_shape.tolist() == [2, 2]


@pytest.mark.parametrize("names", [None, "here"])
def test_a_single_one(names):
    found = tf.parse_single_example(BATCH[1], FEATURES, example_names=names)
    with tf.Session() as sess:
        out = sess.run(found)
    assert out["v"].tolist() == [2.0, 3.0]
    assert out["d"] == b"none"
    assert out["s"].dense_shape.tolist() == [0]


def test_what_is_missing_is_named():
    found = tf.parse_example(
        BATCH, {"x": tf.FixedLenFeature([], tf.int64)}, example_names=["p", "q"]
    )
    with (
        tf.Session() as sess,
        pytest.raises(
            tf.errors.InvalidArgumentError,
            match=r"Name: p, Feature: x \(data type: int64\) is required but could not be found",
        ),
    ):
        sess.run(found)


@pytest.mark.parametrize(
    ("feature", "match"),
    [
        (tf.FixedLenFeature(None, tf.int64), "Missing shape for feature k"),
        (tf.FixedLenFeature([None], tf.int64), "First dimension of shape for feature k unknown"),
        (tf.VarLenFeature(None), "Missing type for feature k"),
        (tf.FixedLenSequenceFeature([], tf.int64), "requires allow_missing to be True"),
        ("int64", "Invalid feature k:int64"),
    ],
)
def test_descriptions_are_checked(feature, match):
    with pytest.raises(ValueError, match=match):
        tf.parse_example(BATCH, {"k": feature})
