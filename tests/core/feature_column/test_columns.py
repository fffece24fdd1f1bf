"""Feature columns: what they read, what they give, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import opdock as tf
from opdock.feature_column.layers import DenseFeatures, LinearModel, SequenceFeatures
from opdock.feature_column.make import shared_embeddings

fc = tf.feature_column


@pytest.fixture(autouse=True)
def _graph():
    tf.reset_default_graph()


def run(*fetches):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return session.run(fetches)


COLORS = tf.SparseTensorValue(
    np.array([[0, 0], [1, 0], [1, 1]]), np.array(["red", "blue", "red"]), np.array([3, 2])
)


def colors():
    return fc.categorical_column_with_vocabulary_list("color", ["red", "blue"])


def constant(value):
    return tf.SparseTensor(*map(tf.constant, value))


def test_inputs_stand_in_the_order_of_their_names():
    features = {"width": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "color": constant(COLORS)}
    columns = [fc.numeric_column("width", shape=2), fc.indicator_column(colors())]
    parts: dict = {}
    (made,) = run(fc.input_layer(features, columns, cols_to_output_tensors=parts))
    np.testing.assert_array_equal(made, [[1, 0, 1, 2], [1, 1, 3, 4], [0, 0, 5, 6]])
    assert {c.name: t.shape.as_list() for c, t in parts.items()} == {
        "color_indicator": [3, 2],
        "width": [3, 2],
    }


def test_names_of_variables_are_those_of_checkpoints():
    features = {"price": [1.0], "color": tf.constant([["red"]])}
    price, embedded = fc.numeric_column("price"), fc.embedding_column(colors(), 3)
    fc.input_layer(features, [price, embedded])
    fc.linear_model(features, [price, colors()])
    DenseFeatures([embedded])(features)
    LinearModel([price], name="wide")(features)
    assert [v.name for v in tf.global_variables()] == [
        "input_layer/color_embedding/embedding_weights:0",
        "linear_model/color/weights:0",
        "linear_model/price/weights:0",
        "linear_model/bias_weights:0",
        "dense_features/color_embedding/embedding_weights:0",
        "wide/price/weights:0",
        "wide/bias_weights:0",
    ]
    assert len(tf.get_collection(tf.GraphKeys.MODEL_VARIABLES)) == 4


def test_an_estimator_of_others_names_the_scope_of_its_inputs():
    from opdock.mapping import resolve

    layer = resolve.lookup("python.feature_column.feature_column", "_internal_input_layer")
    features, columns = {"color": tf.constant([["red"]])}, [fc.embedding_column(colors(), 3)]
    layer(features, columns, scope="own")
    template = tf.make_template("kept", layer, feature_columns=columns, from_template=True)
    assert template(features).shape == template(features).shape
    assert [v.op.name for v in tf.global_variables()] == [
        f"{scope}/color_embedding/embedding_weights" for scope in ("own", "kept")
    ]


def test_a_linear_model_is_weights_and_a_bias():
    features = {"price": [[1.0], [5.0]], "color": tf.constant([["red"], ["green"]])}
    found: dict = {}
    made = fc.linear_model(features, [fc.numeric_column("price"), colors()], cols_to_vars=found)
    by_name = {getattr(c, "name", c): v[0] for c, v in found.items()}
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        session.run(
            [
                by_name["price"].assign([[10.0]]),
                by_name["color"].assign([[3.0], [7.0]]),
                by_name["bias"].assign([1.0]),
            ]
        )
        np.testing.assert_allclose(session.run(made), [[14.0], [51.0]])


def test_weights_of_ids():
    features = {
        "color": constant(COLORS),
        "much": tf.SparseTensor(COLORS.indices, [0.5, 2.0, 3.0], COLORS.dense_shape),
    }
    weighted = fc.weighted_categorical_column(colors(), "much")
    (made,) = run(fc.input_layer(features, [fc.indicator_column(weighted)]))
    np.testing.assert_allclose(made, [[0.5, 0.0], [3.0, 2.0], [0.0, 0.0]])


def test_an_example_without_ids_has_zeros_for_an_embedding():
    table = fc.embedding_column(colors(), 2, initializer=tf.ones_initializer())
    (made,) = run(fc.input_layer({"color": constant(COLORS)}, [table]))
    np.testing.assert_array_equal(made, [[1, 1], [1, 1], [0, 0]])


def test_columns_share_a_table():
    pair = [fc.categorical_column_with_identity(key, 4) for key in ("a", "b")]
    columns = fc.shared_embedding_columns(pair, dimension=2)
    features = {"a": tf.constant([[1]]), "b": tf.constant([[1]])}
    (made,) = run(fc.input_layer(features, columns))
    np.testing.assert_array_equal(made[:, :2], made[:, 2:])
    (table,) = tf.global_variables()
    assert table.name == "input_layer/a_b_shared_embedding/embedding_weights:0"
    assert table in tf.get_collection("a_b_shared_embedding")


def test_crossed_ids_are_those_of_the_hash():
    crossed = fc.crossed_column(["color", "size"], 10)
    assert crossed.name == "color_X_size"
    features = {"color": tf.constant([["red"]]), "size": tf.constant([["big"]])}
    (made,) = run(fc.input_layer(features, [fc.indicator_column(crossed)]))
    assert made.shape == (1, 10) and made.sum() == 1


def test_a_sequence_has_lengths():
    ids = fc.sequence_categorical_column_with_identity("word", 3)
    columns = [fc.indicator_column(ids), fc.sequence_numeric_column("level")]
    level = tf.SparseTensor(COLORS.indices, [0.5, 1.0, 2.0], COLORS.dense_shape)
    words = tf.SparseTensor(COLORS.indices, tf.constant([2, 0, 1], tf.int64), COLORS.dense_shape)
    dense, steps = SequenceFeatures(columns)({"word": words, "level": level})
    # As many as there are examples: loops of Keras with such a mask keep their states' shapes.
    assert steps.shape == dense.shape[:1] == [3]
    made, lengths = run(dense, steps)
    np.testing.assert_array_equal(lengths, [1, 2, 0])
    np.testing.assert_array_equal(made[1], [[1.0, 1, 0, 0], [2.0, 0, 1, 0]])


def test_what_a_parser_needs():
    columns = [
        fc.numeric_column("price", default_value=7),
        fc.weighted_categorical_column(colors(), "much"),
    ]
    assert fc.make_parse_example_spec(columns) == {
        "price": tf.FixedLenFeature((1,), tf.float32, (7,)),
        "color": tf.VarLenFeature(tf.string),
        "much": tf.VarLenFeature(tf.float32),
    }
    assert columns[0] == fc.numeric_column("price", default_value=7)


def test_an_id_out_of_range_fails_with_the_column():
    ids = fc.categorical_column_with_identity("word", 3)
    made = fc.input_layer(
        {"word": tf.placeholder_with_default([[5]], [1, 1])}, [fc.indicator_column(ids)]
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"word.* exceeds number"):
        run(made)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: fc.numeric_column("a", shape=0), ValueError, "greater than 0"),
        (lambda: fc.numeric_column("a", shape="x"), TypeError, "must be integer"),
        (lambda: fc.numeric_column("a", default_value="x"), TypeError, "compatible with dtype"),
        (lambda: fc.numeric_column("a", 2, default_value=[1]), ValueError, "equal to given shape"),
        (lambda: fc.numeric_column("a", dtype=tf.string), ValueError, "convertible to float"),
        (lambda: fc.numeric_column(3), ValueError, "key must be a string"),
        (
            lambda: fc.bucketized_column(fc.numeric_column("a"), [2, 1]),
            ValueError,
            "sorted list",
        ),
        (lambda: fc.embedding_column(colors(), 0), ValueError, "Invalid dimension 0"),
        (lambda: fc.crossed_column(["a"], 5), ValueError, "length > 1"),
        (
            lambda: fc.categorical_column_with_vocabulary_list("a", ["x", "x"]),
            ValueError,
            "Duplicate keys",
        ),
        (lambda: fc.categorical_column_with_identity("a", 0), ValueError, "num_buckets 0 < 1"),
        (
            lambda: fc.input_layer({"color": [["red"]]}, [colors()]),
            ValueError,
            "wrap a categorical column",
        ),
        (
            lambda: fc.input_layer({}, [fc.numeric_column("a")]),
            ValueError,
            "Feature a is not in features dictionary",
        ),
        (
            lambda: fc.input_layer({"a": 1.0}, [fc.numeric_column("a")]),
            ValueError,
            "cannot have rank 0",
        ),
        (
            lambda: fc.input_layer({"a": [1.0]}, [fc.numeric_column("a")] * 2),
            ValueError,
            "Duplicate feature column name",
        ),
        (
            lambda: fc.input_layer(
                {"a": [1.0], "b": [1.0, 2.0]}, [fc.numeric_column("a"), fc.numeric_column("b")]
            ),
            ValueError,
            r"Batch size of columns \(a, b\): \(1, 2\)",
        ),
    ],
)
def test_bad_columns(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_layers_over_columns_take_what_is_no_tensor_yet() -> None:
    words = tf.feature_column.categorical_column_with_hash_bucket("words", 10)
    column = tf.feature_column.indicator_column(words)
    with tf.Graph().as_default(), tf.Session() as sess:
        made = DenseFeatures([column])({"words": [["a"], ["b"]]})
        assert sess.run(tf.reduce_sum(made, 1)).tolist() == [1.0, 1.0]


def test_shared_embeddings_have_one_table_in_a_graph() -> None:
    """Whatever takes the columns: a layer after another one uses the same variable."""
    a = tf.feature_column.categorical_column_with_identity("a", 3)
    b = tf.feature_column.categorical_column_with_identity("b", 3)
    rows = [[1.0, 2.0], [3.0, 5.0], [7.0, 11.0]]
    one, other = shared_embeddings(
        [b, a], 2, initializer=lambda shape, dtype=None, partition_info=None: tf.constant(rows)
    )
    assert (one.name, other.name) == ("b_shared_embedding", "a_shared_embedding")
    features = {"a": tf.constant([[0], [1]]), "b": tf.constant([[2], [0]])}
    layers = [DenseFeatures([one]), DenseFeatures([other])]
    made = [layer(features) for layer in layers]
    (table,) = tf.global_variables()
    assert table.op.name.endswith("a_b_shared_embedding")
    with tf.Session() as sess:
        sess.run(table.initializer)
        first, second = sess.run(made)
        assert first.tolist() == [[7.0, 11.0], [1.0, 2.0]]
        assert second.tolist() == [[1.0, 2.0], [3.0, 5.0]]
    with tf.Graph().as_default():
        tf.feature_column.input_layer({"b": tf.constant([[1]])}, [one])
        assert len(tf.global_variables()) == 1
    with pytest.raises(ValueError, match="must have the same type"):
        shared_embeddings([a, tf.feature_column.categorical_column_with_hash_bucket("c", 3)], 2)
