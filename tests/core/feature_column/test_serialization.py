"""Columns as configurations and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

import opdock as tf
from opdock.feature_column.layers import DenseFeatures, LinearModel, SequenceFeatures
from opdock.feature_column.serialization import (
    deserialize_feature_column,
    deserialize_feature_columns,
    serialize_feature_column,
    serialize_feature_columns,
)


def double(values: Any) -> Any:
    return values * 2


def _columns() -> list[Any]:
    column = tf.feature_column
    price = column.numeric_column("price", normalizer_fn=double)
    words = column.categorical_column_with_vocabulary_list("words", ["a", "b"], num_oov_buckets=2)
    bought = column.bucketized_column(column.numeric_column("bought"), [1, 10])
    crossed = column.crossed_column([bought, "words"], 7)
    return [
        price,
        column.indicator_column(words),
        column.embedding_column(words, 3, initializer=tf.zeros_initializer()),
        column.indicator_column(column.weighted_categorical_column(words, "weight")),
        column.embedding_column(crossed, 2),
    ]


def test_columns_come_back_from_a_file() -> None:
    columns = _columns()
    saved = json.loads(json.dumps(serialize_feature_columns(columns)))
    found = deserialize_feature_columns(saved, {"double": double})
    assert found[:2] == columns[:2]
    assert found[3] == columns[3]
    for made, given in zip(found[2::2], columns[2::2], strict=True):
        assert made.initializer.get_config() == given.initializer.get_config()
        assert made._replace(initializer=None) == given._replace(initializer=None)
    # What two columns wrap is one column again.
    assert found[1].categorical_column is found[2].categorical_column


def test_keys_stay_keys() -> None:
    assert serialize_feature_column("key") == "key"
    assert deserialize_feature_column("key") == "key"


def test_what_is_no_column_is_an_error() -> None:
    with pytest.raises(ValueError, match="is not a FeatureColumn"):
        serialize_feature_column(3)
    with pytest.raises(ValueError, match="Improper config format"):
        deserialize_feature_column({"config": {}})
    with pytest.raises(ValueError, match="Unknown feature_column_v2: Nothing"):
        deserialize_feature_column({"class_name": "Nothing", "config": {}})
    with pytest.raises(ValueError, match="expected keys"):
        deserialize_feature_column({"class_name": "IndicatorColumn", "config": {}})
    with pytest.raises(ValueError, match="Unknown function: double"):
        deserialize_feature_column(serialize_feature_column(_columns()[0]))


def test_layers_over_columns_are_made_again_of_their_configurations() -> None:
    column = tf.feature_column
    ids = column.categorical_column_with_identity("ids", 5)
    dense = [column.numeric_column("x", 2), column.embedding_column(ids, 3)]
    made = DenseFeatures(dense, trainable=False, name="parts")
    config = json.loads(json.dumps(made.get_config()))
    again = DenseFeatures.from_config(config)
    assert (again.name, again.trainable) == ("parts", False)
    assert again.get_config() == made.get_config()
    assert made.compute_output_shape((None,)) == (None, 5)
    steps = SequenceFeatures([column.sequence_numeric_column("s", 4)])
    assert steps.compute_output_shape((None, 7)) == (None, 7, 4)
    model = LinearModel([*dense[:1], ids], units=2, sparse_combiner="mean", name="sum")
    config = json.loads(json.dumps(model.get_config()))
    assert LinearModel.from_config(config).get_config() == model.get_config()
    assert config["sparse_combiner"] == "mean"
    given = {"x": [[1.0, 2.0]], "ids": [[3]]}
    with tf.Graph().as_default(), tf.Session() as sess:
        found = LinearModel.from_config(config)({k: tf.constant(v) for k, v in given.items()})
        sess.run(tf.global_variables_initializer())
        assert sess.run(found).tolist() == [[0.0, 0.0]]
