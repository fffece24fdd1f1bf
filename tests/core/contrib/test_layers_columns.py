"""The feature columns of tf.contrib.layers: what they make, their variables, what they refuse."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opdock as tf

layers: Any = tf.contrib.layers


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as made:
        yield made


def run(fetches: Any, *first: Any) -> Any:
    with tf.Session() as s:
        s.run([tf.global_variables_initializer(), tf.tables_initializer(), *first])
        return s.run(fetches)


def words() -> Any:
    return tf.SparseTensor([[0, 0], [0, 1], [2, 0]], ["omar", "marlo", "stringer"], [3, 2])


def dense(made: Any) -> Any:
    return run(tf.sparse.to_dense(made, -1)).tolist()


def test_ids_of_each_kind(tmp_path: Path) -> None:
    path = tmp_path / "words"
    path.write_text("marlo\nomar\n", encoding="utf-8")
    keys = layers.sparse_column_with_keys("w", ["omar", "stringer"])
    lines = layers.sparse_column_with_vocabulary_file("w", str(path), 1, vocab_size=2)
    numbers = layers.sparse_column_with_integerized_feature("n", 10)
    features = {"w": words(), "n": tf.constant([[3], [14], [0]], tf.int64)}
    made = layers.transform_features(features, [keys, lines, numbers])
    assert dense(made[keys]) == [[0, -1], [-1, -1], [1, -1]]
    assert dense(made[lines]) == [[1, 0], [-1, -1], [2, -1]]
    assert dense(made[numbers]) == [[3], [4], [0]]
    assert [keys.length, lines.length, numbers.length] == [2, 3, 10]
    assert {*made} == {keys, lines, numbers}


def test_keys_of_columns_are_their_order() -> None:
    number = layers.real_valued_column("b", normalizer=lambda x: x / 2)
    column = layers.sparse_column_with_hash_bucket("a", 10)
    assert number.key.startswith("_RealValuedColumn(column_name=b, dimension=1")
    assert "normalizer" not in number.key
    assert column.key.startswith("_SparseColumnHashed(column_name='a', is_integerized=False")
    assert copy.deepcopy(column) == column


def test_input_of_a_network() -> None:
    price = layers.real_valued_column("price")
    buckets = layers.bucketized_column(price, [0.0, 10.0, 100.0])
    hot = layers.one_hot_column(layers.sparse_column_with_keys("w", ["omar", "marlo"]))
    vector = layers.embedding_column(
        layers.sparse_column_with_hash_bucket("w", 10), 2, initializer=tf.constant_initializer(0.5)
    )
    features = {"price": tf.constant([[20.0], [110.0], [-3.0]]), "w": words()}
    parts: dict[Any, Any] = {}
    out = layers.input_from_feature_columns(
        features, [price, buckets, hot, vector], cols_to_outs=parts
    )
    assert [v.op.name for v in tf.global_variables()] == [
        "input_from_feature_columns/w_embedding/weights"
    ]
    # By key: _BucketizedColumn, _EmbeddingColumn, _OneHotColumn, _RealValuedColumn.
    np.testing.assert_array_equal(
        run(out),
        [
            [0, 0, 1, 0, 0.5, 0.5, 1, 1, 20],
            [0, 0, 0, 1, 0.0, 0.0, 0, 0, 110],
            [1, 0, 0, 0, 0.5, 0.5, 0, 0, -3],
        ],
    )
    assert {*parts} == {price, buckets, hot, vector}
    assert {*features} == {"price", "w"}


def test_shared_and_scattered_embeddings() -> None:
    columns = [layers.sparse_column_with_hash_bucket(n, 10) for n in ("b", "a")]
    first, second = layers.shared_embedding_columns(columns, 3)
    scattered = layers.scattered_embedding_column("a", 50, 4, hash_key=7)
    features = {"a": words(), "b": words()}
    out = layers.input_from_feature_columns(features, [first, second, scattered])
    assert sorted(v.op.name.rpartition("/")[2] for v in tf.global_variables()) == [
        "a_b_shared_embedding", "weights",
    ]  # fmt: skip
    made = run(out)
    assert made.shape == (3, 10)
    np.testing.assert_array_equal(made[:, :3], made[:, 3:6])


def test_linear_models_learn() -> None:
    age = layers.bucketized_column(layers.real_valued_column("age"), [20, 40])
    word = layers.sparse_column_with_hash_bucket("w", 10)
    both = layers.crossed_column([age, word], 20)
    features = {"age": tf.constant([[10.0], [30.0], [50.0]]), "w": words()}
    total, variables, bias = layers.weighted_sum_from_feature_columns(
        features, [age, word, both], 1, weight_collections=["mine"]
    )
    joint, table, _ = layers.joint_weighted_sum_from_feature_columns(features, [age, word], 1)
    assert {c: v[0].shape[0].value for c, v in variables.items()} == {age: 3, word: 10, both: 20}
    assert bias in tf.get_collection("mine")
    assert table[0].shape.as_list() == [13, 1]
    loss = tf.reduce_sum((total - [[1.0], [2.0], [3.0]]) ** 2)
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session() as s:
        s.run(tf.global_variables_initializer())
        assert s.run(joint).tolist() == [[0.0]] * 3
        for _ in range(50):
            s.run(step)
        assert s.run(loss) < 1e-3


def test_crosses_keep_tf_s_numbers() -> None:
    # As TensorFlow 1.15's two kernels give them.
    first = tf.SparseTensor([[0, 0]], ["batch1-FC1-F1"], [1, 1])
    second = tf.SparseTensor([[0, 0]], ["batch1-FC2-F1"], [1, 1])
    third = tf.SparseTensor([[0, 0]], ["batch1-FC3-F1"], [1, 1])
    given = [first, second, third]
    plain = layers.sparse_feature_cross(given, hashed_output=True)
    assert plain.values.op.type == "SparseFeatureCross"
    keyed = layers.sparse_feature_cross(given, hashed_output=True, num_buckets=1000, hash_key=5)
    text = layers.sparse_feature_cross(given)
    a, b, c = run([plain.values, keyed.values, text.values])
    assert a == [3735511728867393167]
    assert 0 <= b[0] < 1000
    assert c == [b"batch1-FC1-F1_X_batch1-FC2-F1_X_batch1-FC3-F1"]


def test_examples_are_parsed() -> None:
    feature = tf.train.Feature
    example = tf.train.Example(
        features=tf.train.Features(
            feature={
                "n": feature(float_list=tf.train.FloatList(value=[2.0])),
                "w": feature(bytes_list=tf.train.BytesList(value=[b"omar"])),
            }
        )
    )
    number = layers.real_valued_column("n")
    word = layers.sparse_column_with_keys("w", ["x", "omar"])
    made = layers.parse_feature_columns_from_examples([example.SerializeToString()], [number, word])
    assert run([made[number], tf.sparse.to_dense(made[word])])[0].tolist() == [[2.0]]
    spec = layers.create_feature_spec_for_parsing([number, word])
    assert {*spec} == {"n", "w"}


def test_columns_serve_tf_feature_column_too() -> None:
    number = layers.real_valued_column("n")
    hot = layers.one_hot_column(layers.sparse_column_with_keys("w", ["omar", "marlo"]))
    out = tf.feature_column.input_layer(
        {"n": tf.constant([[1.0], [2.0], [3.0]]), "w": words()}, [number, hot]
    )
    assert run(out).tolist() == [[1, 1, 1], [2, 0, 0], [3, 0, 0]]


def test_sequences() -> None:
    number = layers.real_valued_column("n", dimension=2)
    out = layers.sequence_input_from_feature_columns({"n": tf.zeros([4, 5, 2])}, [number])
    assert out.shape.as_list() == [4, 5, 2]
    with pytest.raises(ValueError, match="_BucketizedColumn is not currently supported"):
        layers.sequence_input_from_feature_columns({}, [layers.bucketized_column(number, [1])])


def test_indicators_and_envelopes() -> None:
    ids = layers.indicators_to_sparse_ids([[0, 1, 0, 1], [1, 0, 0, 0]])
    assert dense(ids) == [[1, 3], [0, -1]]
    assert run(layers.sparse_row_envelope(words())).tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: layers.sparse_column_with_hash_bucket("a", 0), ValueError, "at least 1"),
        (lambda: layers.sparse_column_with_hash_bucket("a", 2, dtype=tf.float32), ValueError,
         "dtype must be string or integer"),
        (lambda: layers.sparse_column_with_hash_bucket("a", 2, hash_keys=[[1]]), ValueError,
         "pair of integers"),
        (lambda: layers.sparse_column_with_vocabulary_file("a", "f"), ValueError, "vocab_size"),
        (lambda: layers.real_valued_column("a", dimension=0), ValueError, "greater than 0"),
        (lambda: layers.real_valued_column("a", default_value=1.5, dtype=tf.int32), TypeError,
         "compatible with dtype"),
        (lambda: layers.bucketized_column("a", [1]), TypeError, "_RealValuedColumn"),
        (lambda: layers.bucketized_column(layers.real_valued_column("a"), [2, 1]), ValueError,
         "sorted"),
        (lambda: layers.crossed_column([layers.real_valued_column("a")] * 2, 9), TypeError,
         "is a RealValuedColumn"),
        (lambda: layers.shared_embedding_columns("ab", 2), TypeError, "non-string sequence"),
        (lambda: layers.scattered_embedding_column("a", 0, 2, 1), ValueError, "greater than 0"),
        (lambda: layers.check_feature_columns({}), ValueError, "found dict"),
        (lambda: layers.check_feature_columns([layers.real_valued_column("a")] * 2), ValueError,
         "Duplicate"),
        (lambda: layers.infer_real_valued_columns(tf.constant(["a"])), ValueError, "Non integer"),
        (lambda: layers.transform_features({}, [layers.real_valued_column("a")]), ValueError,
         "doesn't contain key"),
        (lambda: layers.scattered_embedding_lookup(tf.zeros([3]), ["a"], None), ValueError,
         "must specify dimension"),
    ],
)  # fmt: skip
def test_what_columns_refuse(make: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        make()
