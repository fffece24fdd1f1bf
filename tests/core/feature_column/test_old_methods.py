"""Columns and models of them as libraries ask for them that know no state managers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opdock as tf
from opdock.feature_column.functional import LazyBuilder, ScopedLinearModel

fc = tf.feature_column


@pytest.fixture(autouse=True)
def _graph() -> Any:
    with tf.Graph().as_default():
        yield


def run(fetches: Any) -> Any:
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return session.run(fetches)


def test_numbers_are_found_without_a_state_manager() -> None:
    price = fc.numeric_column("price", normalizer_fn=lambda x: x * 2.0)
    features = LazyBuilder({"price": [[1.0], [2.0]]})
    assert price._parse_example_spec == price.parse_example_spec
    assert price._variable_shape == tf.TensorShape([1])
    dense = price._get_dense_tensor(features)
    np.testing.assert_array_equal(
        run([dense, price._transform_feature(features)]), [[[2.0], [4.0]]] * 2
    )
    buckets = fc.bucketized_column(price, [3.0])
    assert buckets._num_buckets == 2
    np.testing.assert_array_equal(run(buckets._get_sparse_tensors(features)[0].values), [0, 1])
    np.testing.assert_array_equal(run(buckets._get_dense_tensor(features))[:, 0], [[1, 0], [0, 1]])


@pytest.mark.parametrize("trainable", [None, False])
def test_an_embedding_makes_its_table_in_the_scope_that_is_open(trainable: bool | None) -> None:
    ids = fc.categorical_column_with_identity("ids", 3)
    embedding = fc.embedding_column(ids, 2, initializer=tf.ones_initializer())
    features = LazyBuilder({"ids": tf.constant([[2], [0]], tf.int64)})
    with tf.variable_scope("deep"):
        dense = embedding._get_dense_tensor(features, ("mine",), trainable)
    (table,) = tf.get_collection("mine")
    assert table.name == "deep/embedding_weights:0"
    assert tf.trainable_variables() == ([] if trainable is False else [table])
    np.testing.assert_array_equal(run(dense), np.ones([2, 2]))


def test_a_sequence_of_embeddings_is_found_with_its_lengths() -> None:
    ids = fc.sequence_categorical_column_with_identity("ids", 3)
    embedding = fc.embedding_column(ids, 2, initializer=tf.ones_initializer())
    entries = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([2, 1, 0], tf.int64), [2, 2])
    dense, lengths = embedding._get_sequence_dense_tensor(LazyBuilder({"ids": entries}))
    values, steps = run([dense, lengths])
    np.testing.assert_array_equal(values[..., 0], [[1, 1], [1, 0]])
    np.testing.assert_array_equal(steps, [2, 1])


def test_calls_of_a_linear_model_share_its_variables() -> None:
    model = ScopedLinearModel([fc.numeric_column("price")], units=2, name="wide")
    assert model.cols_to_vars() == {}
    first, second = (model({"price": [[n]]}) for n in (1.0, 10.0))
    names = ["wide/price/weights:0", "wide/bias_weights:0"]
    assert [v.name for v in tf.global_variables()] == names
    (bias,) = model.cols_to_vars()["bias"]
    (weights,) = model.cols_to_vars()[fc.numeric_column("price")]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run([weights.assign([[1.0, 2.0]]), bias.assign([0.5, 0.0])])
        np.testing.assert_array_equal(session.run(first), [[1.5, 2.0]])
        np.testing.assert_array_equal(session.run(second), [[10.5, 20.0]])
