"""Sequences of columns joined by a function, with variables in scopes."""

from __future__ import annotations

import pytest

import opdock as tf

column = tf.contrib.feature_column


def test_sequences_side_by_side() -> None:
    words = column.sequence_categorical_column_with_vocabulary_list("w", ["a", "b"])
    columns = [column.sequence_numeric_column("x"), tf.feature_column.indicator_column(words)]
    features = {
        "w": tf.SparseTensor([[0, 0], [1, 0], [1, 1]], ["b", "a", "b"], [2, 2]),
        "x": tf.SparseTensor([[0, 0], [1, 0], [1, 1]], [1.0, 2.0, 3.0], [2, 2]),
    }
    with tf.Session() as session:
        joined, lengths = column.sequence_input_layer(features, columns)
        session.run(tf.tables_initializer())
        values, steps = session.run([joined, lengths])
    assert values.tolist() == [[[0, 1, 1], [0, 0, 0]], [[1, 0, 2], [0, 1, 3]]]
    assert steps.tolist() == [1, 2]


def test_variables_stand_in_the_scope_of_the_layer() -> None:
    ids = column.sequence_categorical_column_with_identity("i", 3)
    embedding = tf.feature_column.embedding_column(ids, 2)
    with tf.Graph().as_default():
        features = {"i": tf.SparseTensor([[0, 0]], [1], [1, 1])}
        column.sequence_input_layer(features, [embedding], ["mine"])
        (weights,) = tf.get_collection("mine")
    assert weights.op.name == "sequence_input_layer/i_embedding/embedding_weights"
    with pytest.raises(ValueError, match="must be of type _SequenceDenseColumn"):
        column.sequence_input_layer({}, [tf.feature_column.numeric_column("x")])
