"""TensorFlow Hub 0.7.0: a module is made, exported, loaded, trained and made anew."""

import numpy as np
import tensorflow as tf
import tensorflow_hub as hub


def scaled():
    x = tf.placeholder(tf.float32, [None, 2])
    w = tf.get_variable("w", [2, 3], initializer=tf.ones_initializer())
    hub.add_signature(inputs=x, outputs=tf.matmul(x, w))


def words():
    table = tf.contrib.lookup.index_table_from_tensor(tf.constant(["a", "b"]), default_value=2)
    x = tf.placeholder(tf.string, [None])
    embedding = tf.get_variable("e", [3, 2], initializer=tf.ones_initializer())
    hub.add_signature(inputs=x, outputs=tf.nn.embedding_lookup(embedding, table.lookup(x)))


def test_export_and_load(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        module = hub.Module(hub.create_module_spec(scaled), trainable=True)
        y = module(tf.ones([4, 2]))
        step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(tf.square(y)))
        sess.run(tf.global_variables_initializer())
        sess.run(step)
        trained = sess.run(y)
        module.export(str(tmp_path / "module"), sess)
    assert not np.allclose(trained, 2.0)
    with tf.Graph().as_default(), tf.Session() as sess:
        y = hub.Module(str(tmp_path / "module"))(tf.ones([4, 2]))
        sess.run(tf.global_variables_initializer())
        np.testing.assert_allclose(sess.run(y), trained)


def test_tables(tmp_path):
    with tf.Graph().as_default(), tf.Session() as sess:
        module = hub.Module(hub.create_module_spec(words))
        y = module(tf.constant(["a", "b", "c"]))
        sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
        assert sess.run(y).shape == (3, 2)
        module.export(str(tmp_path / "words"), sess)
    with tf.Graph().as_default(), tf.Session() as sess:
        column = hub.text_embedding_column("text", str(tmp_path / "words"))
        y = tf.feature_column.input_layer({"text": tf.constant(["a", "z"])}, [column])
        sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
        np.testing.assert_allclose(sess.run(y), np.ones((2, 2)))
